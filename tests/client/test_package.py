"""The distribution as a whole: exports, version, dependencies."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FunctionType

import bytepair_client
from bytepair.v1 import chat_pb2, tokenizer_pb2
from bytepair_client import (
    AsyncRawResponses,
    AsyncTokenizerClient,
    RawResponses,
    TokenizerClient,
)
from bytepair_client import (
    _operations as operations,
)
from bytepair_client._base import BaseClient
from bytepair_client._call import Method
from google.protobuf.message_factory import GetMessageClass

CLIENT = Path(__file__).parents[2] / "client"
SERVICES = [
    service
    for file in (tokenizer_pb2, chat_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
]

# A fresh interpreter in which nothing is installed but the client and its dependencies, with
# those of grpcio (typing_extensions).
ALONE = """
import sys
allowed = {"bytepair", "bytepair_client", "google", "grpc", "grpc_health", "typing_extensions"}
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed | sys.stdlib_module_names:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Nothing())
import bytepair_client, bytepair_client._cli
"""


def test_it_needs_what_it_declares_and_no_more() -> None:
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    names = [requirement.partition(">")[0] for requirement in project["dependencies"]]
    assert names == [
        "bytepair-proto",
        "googleapis-common-protos",
        "grpcio",
        "grpcio-health-checking",
        "protobuf",
    ]
    subprocess.run([sys.executable, "-c", ALONE], check=True)


def test_the_ordinary_client_is_the_twin_of_the_other() -> None:
    subprocess.run([sys.executable, CLIENT / "twin.py", "--check"], check=True)


def test_importing_it_leaves_the_environment_as_it_was() -> None:
    shows = "import os, bytepair_client; print(os.environ.get('GRPC_VERBOSITY'))"
    for environment, shown in (({}, "None"), ({"GRPC_VERBOSITY": "ERROR"}, "ERROR")):
        ran = subprocess.run(
            [sys.executable, "-c", shows],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.strip() == shown


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
    modules = [
        importlib.import_module(f"{operations.__name__}.{module.name}")
        for module in pkgutil.iter_modules(operations.__path__)
    ]
    found = {
        value.path: value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Method)
    }
    for service in SERVICES:
        for rpc in service.methods:
            method = found[f"/{service.full_name}/{rpc.name}"]
            assert method.parse == GetMessageClass(rpc.output_type).FromString
            assert method.streamed == rpc.client_streaming


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
    assert set(signatures(RawResponses)) == set(signatures(AsyncRawResponses)) == full

    def own(kind: type) -> set[str]:
        return {name for name in {*vars(kind), *vars(BaseClient)} if not name.startswith("_")}

    assert own(TokenizerClient) == own(AsyncTokenizerClient)
    for name in operations.__all__:
        waits = name not in (
            "decode_stream",
            "encode_stream",
            "split_stream",
        )  # which return iterators
        assert inspect.iscoroutinefunction(getattr(AsyncTokenizerClient, name)) == waits
        assert inspect.getdoc(getattr(TokenizerClient, name))
