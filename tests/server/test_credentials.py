"""Authentication by key, by certificate and by both: its effect on calls, health and the log."""

from __future__ import annotations

import hashlib
import socket
import ssl
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from bytepair.v1 import tokenizer_pb2
from bytepair_server.auth.api_keys import Keys, hashed
from bytepair_server.auth.callers import Callers
from bytepair_server.config.tables import CallerTable
from bytepair_server.errors import Unauthenticated
from conftest import Serve
from grpc_health.v1 import health_pb2, health_pb2_grpc
from support.failures import failure
from support.keys import keys_toml
from support.pki import Authority, trusting
from support.serving import START_SECONDS, RunningServer, write_config
from support.streaming import CountRequest, count_config

REQUEST = tokenizer_pb2.CountRequest(encoding="gpt-4", text="a")
BILLING = "spiffe://example.org/billing"
KEYS = keys_toml(chat="chat-key")
CONFIG = f"""
api_keys_file = "keys.toml"
tls_cert_file = "server.pem"
tls_key_file = "key.pem"
tls_client_ca_file = "ca.pem"
log_calls = "info"
health_needs_caller = true
builtin_encodings = ["cl100k_base"]
[callers.billing]
certificates = ["uri:{BILLING}", "dns:Billing.example.org"]
[callers.search]
certificates = ["dns:search.example.org"]
"""


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def mutual(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[RunningServer]:
    """A server that requires a certificate of every client, and knows one key."""
    folder = tmp_path_factory.mktemp("mutual")
    authority.server().write(folder)
    (folder / "ca.pem").write_bytes(authority.pem)
    (folder / "keys.toml").write_text(KEYS)
    shown = authority.client(uris=[BILLING])
    with RunningServer(
        "--config", write_config(folder, CONFIG), credentials=trusting(authority.pem, shown)
    ) as running:
        yield running


class Connection:
    """A separate connection to a server, with its stubs."""

    def __init__(self, server: RunningServer, credentials: grpc.ChannelCredentials) -> None:
        self.channel = grpc.secure_channel(
            server.target.replace("127.0.0.1", "localhost"), credentials
        )

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def method(self, name: str, kind: str = "unary_unary", **types: Any) -> Any:
        make = getattr(self.channel, kind)
        return make(f"/bytepair.v1.TokenizerService/{name}", **types)

    def count(self, **options: Any) -> Any:
        """Call Count."""
        method = self.method(
            "Count",
            request_serializer=tokenizer_pb2.CountRequest.SerializeToString,
            response_deserializer=tokenizer_pb2.CountResponse.FromString,
        )
        return method(REQUEST, **options)

    def health(self, **options: Any) -> int:
        stub: Any = health_pb2_grpc.HealthStub(self.channel)
        return int(stub.Check(health_pb2.HealthCheckRequest(), **options).status)


def caller_of(server: RunningServer, credentials: grpc.ChannelCredentials, **names: str) -> str:
    """Return the caller that the server identifies."""
    request_id = hashlib.sha256(repr(names).encode()).hexdigest()[:32]
    metadata = [("x-request-id", request_id)]
    if "key" in names:
        metadata.append(("authorization", f"Bearer {names['key']}"))
    with Connection(server, credentials) as connection:
        connection.count(metadata=metadata)
    return str(server.wait_for_log("call", request_id=request_id)["caller"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "caller"),
    [
        ({"uris": [BILLING]}, "billing"),
        ({"dns": ["billing.example.org"]}, "billing"),
        ({"dns": ["BILLING.example.ORG"]}, "billing"),
        ({"dns": ["search.example.org", "other.example.org"]}, "search"),
        ({"dns": ["billing.example.org"], "uris": [BILLING]}, "billing"),
    ],
)
def test_the_certificate_identifies_the_caller(
    mutual: RunningServer, authority: Authority, names: dict[str, Any], caller: str
) -> None:
    shown = authority.client(**names)
    assert caller_of(mutual, trusting(authority.pem, shown), case=repr(names)) == caller


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"common_name": "billing.example.org"},
        {"email": "billing@example.org"},
        {"dns": ["stranger.example.org"]},
        {"dns": ["*.example.org"]},
        {"dns": ["billing.example.org.evil.example"]},
        {"dns": ["sub.billing.example.org"]},
        {"dns": [BILLING.replace("spiffe://", "spiffe.")]},
        {"uris": [BILLING + "/"]},
        {"uris": [BILLING.upper()]},
        {"uris": ["dns:billing.example.org"]},
        {"dns": ["billing.example.org", "search.example.org"]},
        {"dns": ["billing.example.org\0.evil.example"]},
        {"uris": [BILLING + "\0.evil.example"]},
    ],
    ids=repr,
)
def test_a_certificate_without_exactly_one_known_caller_is_rejected(
    mutual: RunningServer, authority: Authority, names: dict[str, Any]
) -> None:
    with Connection(mutual, trusting(authority.pem, authority.client(**names))) as connection:
        failed = failure(connection.count)
        assert (failed.code, failed.reason) == (
            grpc.StatusCode.UNAUTHENTICATED,
            "UNAUTHENTICATED",
        )
        assert failed.message.endswith("<API key>' or a client certificate with a known name")
        with pytest.raises(grpc.RpcError) as caught:
            connection.health()
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_connection_needs_a_certificate_of_the_authority(
    mutual: RunningServer, authority: Authority
) -> None:
    forged = Authority().client(uris=[BILLING])
    for credentials in (trusting(authority.pem), trusting(authority.pem, forged)):
        with Connection(mutual, credentials) as connection:
            assert failure(connection.count).code is grpc.StatusCode.UNAVAILABLE
    with grpc.insecure_channel(mutual.target) as channel:
        method: Any = channel.unary_unary("/bytepair.v1.TokenizerService/Count")
        assert failure(method, b"").code is grpc.StatusCode.UNAVAILABLE
    assert mutual.stub.Count(REQUEST).count == 1


def test_a_key_takes_precedence_over_the_certificate(
    mutual: RunningServer, authority: Authority
) -> None:
    shown = trusting(authority.pem, authority.client(uris=[BILLING]))
    assert caller_of(mutual, shown, key="chat-key") == "chat"
    stranger = trusting(authority.pem, authority.client(dns=["proxy.example.org"]))
    assert caller_of(mutual, stranger, key="chat-key", through="proxy") == "chat"
    with Connection(mutual, shown) as connection:
        for value, problem in (
            ("Bearer wrong", "may be mistyped or revoked"),
            ("Basic chat-key", "does not begin with 'Bearer '"),
            ("Digest chat-key", "does not begin with 'Bearer '"),
            ("chat-key", "does not begin with 'Bearer '"),
            ("", "does not begin with 'Bearer '"),
        ):
            failed = failure(connection.count, metadata=(("authorization", value),))
            assert failed.reason == "UNAUTHENTICATED"
            assert f"{problem}; send 'authorization: Bearer <API key>' or" in failed.message


def test_two_credentials_are_those_of_no_caller(
    mutual: RunningServer, authority: Authority
) -> None:
    shown = trusting(authority.pem, authority.client(uris=[BILLING]))
    right, wrong = ("authorization", "Bearer chat-key"), ("authorization", "Bearer wrong")
    with Connection(mutual, shown) as connection:
        for sent in ((right, wrong), (wrong, right), (right, right)):
            assert failure(connection.count, metadata=sent).reason == "UNAUTHENTICATED"


def test_a_stream_has_the_caller_of_its_connection(
    mutual: RunningServer, authority: Authority
) -> None:
    messages = [count_config(), CountRequest(text="a")]
    assert mutual.stub.CountStream(iter(messages)).count == 1
    assert mutual.wait_for_log("call", rpc="CountStream")["caller"] == "billing"
    with Connection(mutual, trusting(authority.pem, authority.client())) as connection:
        method = connection.method("EncodeStream", "stream_stream")
        with pytest.raises(grpc.RpcError) as caught:
            list(method(iter([b""])))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_health_rejects_unknown_callers_if_it_needs_a_caller(
    mutual: RunningServer, authority: Authority
) -> None:
    stranger = trusting(authority.pem, authority.client())
    known = trusting(authority.pem, authority.client(uris=[BILLING]))
    with Connection(mutual, known) as connection:
        assert connection.health() == health_pb2.HealthCheckResponse.SERVING
        watch: Any = health_pb2_grpc.HealthStub(connection.channel)
        seen = watch.Watch(health_pb2.HealthCheckRequest())
        assert next(seen).status == health_pb2.HealthCheckResponse.SERVING
        seen.cancel()
    with Connection(mutual, stranger) as connection:
        key = (("authorization", "Bearer chat-key"),)
        assert connection.health(metadata=key) == health_pb2.HealthCheckResponse.SERVING
        watch = health_pb2_grpc.HealthStub(connection.channel)
        with pytest.raises(grpc.RpcError) as caught:
            list(watch.Watch(health_pb2.HealthCheckRequest()))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_health_is_open_to_probes_by_default(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(KEYS)
    server = serve("--api-keys-file", str(tmp_path / "keys.toml"))
    stub: Any = health_pb2_grpc.HealthStub(server.channel)
    assert stub.Check(health_pb2.HealthCheckRequest()).status == 1
    assert failure(server.stub.Count, REQUEST).reason == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    ("address", "level"), [("127.0.0.1:0", "info"), ("[::1]:0", "info"), ("0.0.0.0:0", "warning")]
)
def test_the_log_says_that_no_authentication_is_configured(
    serve: Serve, address: str, level: str
) -> None:
    line = serve("--grpc-address", address).wait_for_log(
        "no authentication is configured: anyone who can reach the port may call"
    )
    assert (line["level"], line["caller"]) == (level, "anonymous")


def test_the_log_warns_of_keys_sent_in_plaintext(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(KEYS)
    server = serve("--grpc-address", "0.0.0.0:0", "--api-keys-file", str(tmp_path / "keys.toml"))
    line = server.wait_for_log("no TLS: API keys and text can be read on the network")
    assert line["level"] == "warning"


@pytest.mark.parametrize(("given", "mode"), [([], 0o600), (["--unix-socket-mode", "666"], 0o666)])
def test_a_unix_socket_has_the_permissions_of_the_setting(
    socket_folder: Path, serve: Serve, given: list[str], mode: int
) -> None:
    path = socket_folder / "socket"
    server = serve("--grpc-address", f"unix:{path}", *given)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert server.stub.Count(REQUEST).count == 1


@dataclass
class Shown:
    """A connection with a certificate."""

    certificate: bytes | None


def test_no_key_and_an_empty_one_identify_nobody() -> None:
    """Even if the hash of the empty one were known."""
    known = Callers(Keys({hashed(""): "a"}, frozenset({"a"})))
    for empty in ("Bearer ", "Bearer \t "):
        with pytest.raises(Unauthenticated):
            known.identify(empty, Shown(None))
    with pytest.raises(Unauthenticated, match="the call has no authorization header"):
        known.identify(None, Shown(None))


def test_names_in_certificates_are_compared_by_kind(authority: Authority) -> None:
    """A host name does not equal a URI of the same spelling, although gRPC merges both."""
    known = Callers(None, {"a": CallerTable(certificates=("uri:x.example",))})

    def shown(**names: Any) -> Shown:
        return Shown(ssl.PEM_cert_to_DER_cert(authority.client(**names).certificate.decode()))

    assert known.identify(None, shown(uris=["x.example"])) == "a"
    with pytest.raises(Unauthenticated):
        known.identify(None, shown(dns=["x.example"]))
    with pytest.raises(Unauthenticated):
        known.identify(None, Shown(b"not a certificate"))


def test_failed_handshakes_write_nothing_to_the_log(mutual: RunningServer) -> None:
    """gRPC's own log lines quote the server name that a client requests."""
    forged = '{"event": "forged"}'
    host, port = mutual.target.rsplit(":", 1)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, int(port))) as link, suppress(ssl.SSLError, OSError):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        hello = context.wrap_bio(incoming, outgoing, server_hostname=f"a.{'b' * len(forged)}")
        with suppress(ssl.SSLWantReadError):
            hello.do_handshake()
        link.sendall(outgoing.read().replace(b"a." + b"b" * len(forged), f"a\n{forged}".encode()))
        link.settimeout(START_SECONDS)
        link.recv(1 << 16)
    assert mutual.stub.Count(REQUEST).count == 1
    assert forged not in mutual.raw_log
