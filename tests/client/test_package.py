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
from typing import Any

import bytepair_client
import pytest
from bytepair.v1 import chat_pb2, tokenizer_pb2
from bytepair_client import (
    NOT_GIVEN,
    AsyncRawResponses,
    AsyncTokenizerClient,
    InvalidOption,
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


def test_it_imports_only_its_declared_dependencies() -> None:
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


def operations_of(kind: type) -> dict[str, Any]:
    """The operations behind the methods of a class, by name."""
    return {
        name: inspect.unwrap(method)
        for name, method in vars(kind).items()
        if isinstance(method, FunctionType)
        and inspect.unwrap(method).__module__.startswith(operations.__name__)
    }


def test_both_clients_have_the_same_methods() -> None:
    own = operations_of(TokenizerClient)
    assert own == operations_of(AsyncTokenizerClient)
    for name, operation in own.items():
        assert operation.__name__ == name
    full = {name: own[name] for name in own if name != "health"}  # no message of this API
    assert operations_of(RawResponses) == operations_of(AsyncRawResponses) == full

    def public(kind: type) -> set[str]:
        return {name for name in {*vars(kind), *vars(BaseClient)} if not name.startswith("_")}

    assert public(TokenizerClient) == public(AsyncTokenizerClient)
    for name in own:
        waits = name not in (
            "decode_stream",
            "encode_stream",
            "split_stream",
        )  # which return iterators
        assert inspect.iscoroutinefunction(getattr(AsyncTokenizerClient, name)) == waits
        assert inspect.getdoc(getattr(TokenizerClient, name))


def test_help_shows_every_option_of_a_method_by_its_name() -> None:
    for kind in (TokenizerClient, AsyncRawResponses):
        for name in operations_of(kind):
            first, *others = inspect.signature(getattr(kind, name)).parameters.values()
            assert first.name == "self"
            assert "timeout" in {parameter.name for parameter in others}
            assert not [each for each in others if each.kind is each.VAR_KEYWORD]
    shown = str(inspect.signature(TokenizerClient.count_batch))
    assert "disallowed_special" in shown
    for option in (
        "encoding: str | None = <client's default>",
        "timeout: float | None | bytepair_client.NotGiven = <client's default>",
        "add_special_tokens: bool = ...",
        "return_exceptions: bool = False",
    ):
        assert option in shown
    with TokenizerClient("nowhere:1") as client:
        with pytest.raises(TypeError, match=r"count\(\) got an unexpected .* 'model'"):
            client.count("a", model="gpt-4o")  # type: ignore[call-arg]
        left_out: Any = NOT_GIVEN  # the default of an option
        unset: Any = inspect.signature(client.count).parameters["limit"].default
        with pytest.raises(InvalidOption, match="encoding: must be given"):
            client.count("a", limit=unset, allowed_special=left_out, encoding=left_out)
