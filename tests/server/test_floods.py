"""Floods of calls that come to nothing: who sends them is refused, and the others are answered."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from io import StringIO
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import pytest
from bytepair_server.admission.abuse import LOOK_SECONDS, Floods
from bytepair_server.observability import logs
from bytepair_server.observability.metrics import Metrics
from bytepair_server.transport.sockets import MAX_REFUSED, YOUNG_PACKETS
from conftest import Serve
from support import hostile, http2
from support.bystander import bystander
from support.keys import keys_toml
from support.pki import Authority
from support.serving import START_SECONDS, RunningServer

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux lets addresses be refused"
)

REFUSED = "a flood of calls that come to nothing: its address is refused"
MOST = 50
#: An attempt to connect that gets no answer is given up after so long.
PATIENCE_SECONDS = 0.3
#: What makes a connection what is spoken over it.
Hello = Callable[[socket.socket], socket.socket]


@pytest.fixture(autouse=True)
def _from_everywhere() -> Iterator[None]:
    yield
    http2.come_from(1)


def connects(target: str, number: int, seconds: float = 20) -> bool:
    """Whether an address gets an answer to its SYN, soon."""
    http2.come_from(number)
    try:
        with http2.connection(target, seconds=seconds):
            return True
    except TimeoutError:
        return False


def is_refused(target: str, number: int) -> bool:
    """Whether an address gets no answer to its SYN."""
    return not connects(target, number, PATIENCE_SECONDS)


def reset_until_refused(server: RunningServer, number: int, said: bytes, hello: Hello) -> None:
    """Have an address reset calls with these headers until it is refused. How many that takes is
    not known: of those that are reset before the server asks for them gRPC tells nobody."""
    http2.come_from(number)
    address = f"127.1.{number >> 8}.{number & 255}/32"
    until = monotonic() + START_SECONDS
    while not any(line["event"] == REFUSED and line["address"] == address for line in server.log):
        assert monotonic() < until, f"{address} is not refused"
        with (
            suppress(OSError),
            http2.connection(server.target, hello=b"", seconds=1) as link,
            hello(link) as spoken,
        ):
            spoken.sendall(http2.PREFACE + http2.frame(http2.SETTINGS, 0, 0))
            spoken.sendall(hostile.reset_calls(1, said))
            sleep(0.05)
    assert is_refused(server.target, number)


@pytest.mark.parametrize("name", ["streams opened and reset on ten connections", "flood"])
def test_calls_of_others_go_on_and_whoever_floods_is_refused(serve: Serve, name: str) -> None:
    server = serve("--log-level", "info", "--max-abandoned-per-second", "200")
    attack = hostile.ATTACKS.get(name, hostile.flooding)
    with bystander(server.target) as count:
        for _ in range(2 * YOUNG_PACKETS):
            count()
        http2.come_from(7)
        flood = Thread(target=attack, args=(server.target, hostile.going_for(2)))
        flood.start()
        said = server.wait_for_log(REFUSED, address="127.1.0.7/32")
        server.wait_for_metric("bytepair_refused_addresses", 1)
        assert is_refused(server.target, 7)
        for _ in range(100):
            count()
        flood.join(60)
    assert said["connections_ended"] > 0
    assert connects(server.target, 8)
    server.wait_for_metric("bytepair_floods_total", 1)
    for _ in range(200):
        if server.metric("bytepair_dropped_connections_total"):
            break
        sleep(0.05)
    assert server.metric("bytepair_dropped_connections_total") > 0


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    file = tmp_path_factory.mktemp("flooded") / "keys.toml"
    file.write_text(keys_toml(chat="chat-key"))
    flags = ("--builtin-encodings", "cl100k_base", "--api-keys-file", str(file))
    few = ("--max-abandoned-per-second", str(MOST), "--log-level", "info")
    with RunningServer(*flags, *few) as running:
        yield running


@pytest.mark.parametrize(
    ("number", "service", "rpc", "key"),
    [
        (11, http2.SERVICE, "Count", "chat-key"),
        (12, http2.SERVICE, "Count", "nobody's"),
        (13, http2.SERVICE, "DecodeStream", "chat-key"),
        (14, http2.SERVICE, "NoSuchRpc", "chat-key"),
        (15, "/grpc.health.v1.Health/", "Check", ""),
        (16, "/grpc.health.v1.Health/", "Watch", ""),
    ],
)
def test_no_rpc_is_a_way_around_it(
    keyed: RunningServer, number: int, service: str, rpc: str, key: str
) -> None:
    said = http2.headers(rpc, service=service, key=key)
    reset_until_refused(keyed, number, said, lambda link: link)


def test_who_floods_through_tls_is_found_out_as_well(tmp_path: Path) -> None:
    authority = Authority()
    authority.server().write(tmp_path)
    files = {"--tls-cert-file": tmp_path / "server.pem", "--tls-key-file": tmp_path / "key.pem"}
    flags: tuple[str, ...] = ("--builtin-encodings", "cl100k_base")
    flags += ("--max-abandoned-per-second", str(MOST))
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.set_alpn_protocols(["h2"])
    flags += tuple(str(part) for pair in files.items() for part in pair)
    with RunningServer(*flags) as server:
        reset_until_refused(
            server,
            7,
            http2.headers("Count"),
            lambda link: context.wrap_socket(link, server_hostname="localhost"),
        )
        assert connects(server.target, 8)


def test_nobody_is_refused_where_any_number_may_come(serve: Serve) -> None:
    """Here more than may by default."""
    server = serve("--max-abandoned-per-second", "0")
    http2.come_from(7)
    until = monotonic() + START_SECONDS
    with http2.connection(server.target) as link:
        for stream in range(1, 1 << 31, 200):
            link.sendall(hostile.reset_calls(stream, http2.headers("Count")))
            if server.metric("bytepair_cancelled_total", rpc="Count") > 1_000:
                break
            assert monotonic() < until
    assert connects(server.target, 7)
    assert server.metric("bytepair_floods_total") == 0


def test_who_waited_and_then_gives_up_is_no_flood(serve: Serve) -> None:
    """Thousands of calls may wait for a server, and end at once as their caller's process does."""
    server = serve("--max-abandoned-per-second", str(MOST))
    http2.come_from(7)
    half = http2.message(bytes(100), length=1_000)
    with http2.connection(server.target) as link:
        for stream in range(1, 8 * MOST, 2):
            link.sendall(
                http2.frame(http2.HEADERS, http2.END_HEADERS, stream, http2.headers("Count"))
                + http2.frame(http2.DATA, 0, stream, half)
            )
        sleep(3)
    for _ in range(400):
        if server.metric("bytepair_cancelled_total", rpc="Count") > 2 * MOST:
            break
        sleep(0.05)
    assert server.metric("bytepair_cancelled_total", rpc="Count") > 2 * MOST
    assert server.metric("bytepair_floods_total") == 0
    assert connects(server.target, 7)


class Guarded:
    """A port with nothing behind it, and who is refused there."""

    def __init__(self, *, seconds: float = 60) -> None:
        self.log = StringIO()
        self.v4 = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.v4.getsockname()[1]
        # In this order, as hardly anybody has the same port there.
        self.listener = socket.create_server(("::1", self.port), family=socket.AF_INET6)
        self.floods = Floods(
            MOST, Metrics(), logs.configure("json", "info", self.log), seconds=seconds
        )
        self.floods.guard(self.port)

    def comes_to_nothing(self, peer: str, times: int = MOST + 1) -> None:
        for _ in range(times):
            self.floods.came_to_nothing(peer)

    def takes(self, source: str) -> bool:
        host = "::1" if ":" in source else "127.0.0.1"
        try:
            socket.create_connection(
                (host, self.port), PATIENCE_SECONDS, source_address=(source, 0)
            ).close()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self.floods.close()
        self.listener.close()
        self.v4.close()


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    monkeypatch.setattr(
        "bytepair_server.admission.abuse.WINDOW_SECONDS", 60.0
    )  # none ends within a test
    each = Guarded()
    yield each
    each.close()


def test_one_more_than_may_come_to_nothing_is_a_flood(guarded: Guarded) -> None:
    async def come() -> None:
        guarded.comes_to_nothing("ipv4:127.0.0.2:1", MOST)
        assert guarded.takes("127.0.0.2")
        guarded.comes_to_nothing("ipv4:127.0.0.2:1", 1)
        assert not guarded.takes("127.0.0.2")
        assert guarded.takes("127.0.0.3")
        assert guarded.takes("::1")

    asyncio.run(come())


def test_half_of_an_ipv6_address_is_refused(guarded: Guarded) -> None:
    async def come() -> None:
        guarded.comes_to_nothing("ipv6:%5B::2:3:4:5%5D:1")
        assert not guarded.takes("::1")
        assert guarded.takes("127.0.0.2")

    asyncio.run(come())
    assert '"address": "::/64"' in guarded.log.getvalue()


def test_an_address_whose_calls_are_answered_as_well_is_not_refused(guarded: Guarded) -> None:
    """It may be a proxy's."""

    async def come() -> None:
        guarded.comes_to_nothing("ipv4:127.0.0.2:1", MOST)
        assert guarded.floods.suspicious
        for _ in range(MOST // 5):
            guarded.floods.answered("ipv4:127.0.0.2:2")
        guarded.comes_to_nothing("ipv4:127.0.0.2:1", 10)
        assert guarded.takes("127.0.0.2")

    asyncio.run(come())


def test_a_unix_socket_has_no_address_to_refuse(guarded: Guarded) -> None:
    async def come() -> None:
        guarded.comes_to_nothing("unix:")
        assert not guarded.floods.active

    asyncio.run(come())


def test_connections_that_were_answered_go_on(guarded: Guarded) -> None:
    def connect() -> tuple[socket.socket, socket.socket]:
        where = ("127.0.0.1", guarded.port)
        link = socket.create_connection(where, source_address=("127.0.0.2", 0))
        return link, guarded.v4.accept()[0]

    async def come() -> None:
        with ExitStack() as stack:
            pairs = [connect() for _ in range(3)]
            for pair in pairs:
                for each in pair:
                    stack.enter_context(each)
            (old, at_old), (young, _), (bad, at_bad) = pairs
            for link, at_link in ((old, at_old), (bad, at_bad)):
                for _ in range(YOUNG_PACKETS):
                    at_link.sendall(b"answer")
                    assert link.recv(100) == b"answer"
            young.sendall(b"unread")
            guarded.comes_to_nothing(f"ipv4:127.0.0.2:{bad.getsockname()[1]}")
            for link in (young, bad):
                with pytest.raises(ConnectionResetError):
                    link.recv(1)
            at_old.sendall(b"answer")
            assert old.recv(100) == b"answer"
            guarded.floods.hear_of(f"ipv4:127.0.0.2:{old.getsockname()[1]}")
            with pytest.raises(asyncio.CancelledError):
                guarded.floods.hear_of(f"ipv4:127.0.0.2:{young.getsockname()[1]}")
            guarded.floods.hear_of("ipv4:127.0.0.3:1")

    asyncio.run(come())


def test_an_address_is_let_in_again() -> None:
    guarded = Guarded(seconds=0.1)

    async def come() -> None:
        guarded.comes_to_nothing("ipv4:127.0.0.2:1")
        assert not guarded.takes("127.0.0.2")
        await asyncio.sleep(1.5 * LOOK_SECONDS)
        assert guarded.takes("127.0.0.2")
        assert not guarded.floods.active

    try:
        asyncio.run(come())
    finally:
        guarded.close()
    assert "an address is let in again" in guarded.log.getvalue()


def test_nobody_is_refused_any_more_at_the_end(guarded: Guarded) -> None:
    async def come() -> None:
        for number in range(2, 5):
            guarded.comes_to_nothing(f"ipv4:127.0.0.{number}:1")
            assert not guarded.takes(f"127.0.0.{number}")
        guarded.floods.close()
        assert all(guarded.takes(f"127.0.0.{number}") for number in range(2, 5))

    asyncio.run(come())


def test_of_too_many_the_first_is_let_in_again(guarded: Guarded) -> None:
    async def come() -> None:
        for number in range(2, MAX_REFUSED + 3):
            guarded.comes_to_nothing(f"ipv4:127.0.{number >> 8}.{number & 255}:1")
        assert guarded.takes("127.0.0.2")
        assert not guarded.takes("127.0.0.3")
        assert not guarded.takes(f"127.0.0.{MAX_REFUSED + 2}")

    asyncio.run(come())
