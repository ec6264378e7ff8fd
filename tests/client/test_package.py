"""What the distribution promises as a whole."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FunctionType

import bytepair_client
from bytepair.v1 import tokenizer_pb2
from bytepair_client import (
    AsyncFullResponses,
    AsyncTokenizerClient,
    FullResponses,
    TokenizerClient,
    operations,
)
from bytepair_client.base import BaseClient
from bytepair_client.call import Method
from bytepair_client.operations import counting, decoding, describing, encoding, streaming
from google.protobuf.message_factory import GetMessageClass

CLIENT = Path(__file__).parents[2] / "client"
SERVICE = tokenizer_pb2.DESCRIPTOR.services_by_name["TokenizerService"]

# A fresh interpreter in which nothing is installed but the client and what it depends on, with
# the dependencies of those two (typing_extensions is grpcio's).
ALONE = """
import sys
allowed = {"bytepair", "bytepair_client", "google", "grpc", "typing_extensions"}
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed | sys.stdlib_module_names:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Nothing())
import bytepair_client, bytepair_client.cli
from google.protobuf import descriptor_pool
try:
    descriptor_pool.Default().FindFileByName("google/rpc/status.proto")
except KeyError:
    print("imported, and google.rpc is not in the default pool")
"""


def test_grpcio_and_protobuf_are_all_that_it_needs() -> None:
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    names = [requirement.partition(">")[0] for requirement in project["dependencies"]]
    assert names == ["bytepair-proto", "grpcio", "protobuf"]
    ran = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("imported")


def test_it_is_typed() -> None:
    assert (CLIENT / "src" / "bytepair_client" / "py.typed").exists()
    assert (CLIENT.parent / "proto" / "python" / "bytepair" / "py.typed").exists()


def test_the_package_exports_what_it_imports_and_no_more() -> None:
    public = {
        name
        for name, value in vars(bytepair_client).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public | {"__version__"} == set(bytepair_client.__all__)
    assert len(set(bytepair_client.__all__)) == len(bytepair_client.__all__)


def test_every_rpc_has_a_method_that_parses_its_answer() -> None:
    found = {
        value.path: value
        for module in (encoding, decoding, counting, describing, streaming)
        for value in vars(module).values()
        if isinstance(value, Method)
    }
    for rpc in SERVICE.methods:
        method = found[f"/{SERVICE.full_name}/{rpc.name}"]
        assert method.parse == GetMessageClass(rpc.output_type).FromString
        assert method.streamed == rpc.client_streaming
    assert len(found) == len(SERVICE.methods)


def signatures(kind: type) -> dict[str, str]:
    """The operations that a class offers, as their users see them."""
    return {
        name: str(inspect.signature(getattr(operations, name)))
        for name in operations.__all__
        if isinstance(vars(kind).get(name), FunctionType)
        and inspect.unwrap(vars(kind)[name]) is getattr(operations, name)
    }


def test_both_clients_have_the_same_methods() -> None:
    assert list(signatures(TokenizerClient)) == operations.__all__
    assert signatures(TokenizerClient) == signatures(AsyncTokenizerClient)
    full = set(operations.__all__) - {"health"}  # whose answer is no message of this API
    assert set(signatures(FullResponses)) == set(signatures(AsyncFullResponses)) == full

    def own(kind: type) -> set[str]:
        return {name for name in {*vars(kind), *vars(BaseClient)} if not name.startswith("_")}

    assert own(TokenizerClient) == own(AsyncTokenizerClient)
    for name in operations.__all__:
        waits = name not in ("decode_stream", "encode_stream")  # which return iterators
        assert inspect.iscoroutinefunction(getattr(AsyncTokenizerClient, name)) == waits
        assert inspect.getdoc(getattr(TokenizerClient, name))
