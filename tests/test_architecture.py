"""The imports between folders that docs/architecture.md allows."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "engine" / "python" / "bytepair_engine"
CLIENT = ROOT / "client" / "src" / "bytepair_client"
SERVER = ROOT / "server" / "python" / "bytepair_server"
TOOLS = ROOT / "tools" / "src" / "bytepair_tools"


def imported(file: Path) -> set[str]:
    """Return the top-level packages that a file imports anywhere."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).partition(".")[0])
    return names


def importers(folder: Path, package: str) -> list[str]:
    """Return the files below a folder that import a package."""
    return sorted(
        str(file.relative_to(folder)) for file in folder.rglob("*.py") if package in imported(file)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        (
            ENGINE,
            ("grpc", "google", "bytepair", "bytepair_client", "bytepair_server", "bytepair_tools"),
        ),
        (
            CLIENT,
            ("bytepair_engine", "bytepair_server", "bytepair_tools", "grpc_status"),
        ),
        (TOOLS, ("grpc", "google", "bytepair", "bytepair_client", "bytepair_server")),
        (SERVER, ("bytepair_client", "bytepair_tools", "regex")),
    ],
)
def test_each_part_imports_only_what_it_may(folder: Path, forbidden: tuple[str, ...]) -> None:
    assert {package: importers(folder, package) for package in forbidden} == {
        package: [] for package in forbidden
    }


@pytest.mark.slow
def test_the_engine_imports_only_declared_dependencies() -> None:
    # The caller provides numpy: one method of the tiktoken module returns its arrays.
    known = {"regex", "bytepair_engine", "numpy"}
    third_party = {
        name
        for file in ENGINE.rglob("*.py")
        for name in imported(file)
        if name not in known and name not in sys.stdlib_module_names
    }
    # Only chat templates need the extra.
    assert third_party == {"jinja2"}
    assert all(file.startswith("chat/templates/") for file in importers(ENGINE, "jinja2"))


def test_tools_run_only_their_own_regular_expressions() -> None:
    """The engine runs those of vocabularies."""
    assert importers(TOOLS, "regex") == ["evaluation/scripts.py", "evaluation/segments.py"]


def test_only_loaders_know_formats() -> None:
    """Neither the definition of a pipeline nor the code that runs encodings knows a format."""
    readers = tuple(f"bytepair_engine.{name}." for name in ("formats", "loading", "spec"))
    pipelines = [*(ENGINE / "pipeline").glob("*.py")]
    running = [
        ENGINE / f"{name}.py" for name in ("encoding", "backends/reference", "backends/interface")
    ]
    running += (ENGINE / "streaming").glob("*.py")
    leaks = {
        file.name: [name for name in imported_modules(file) if f"{name}.".startswith(readers)]
        for file in [*pipelines, *running]
    }
    assert len(pipelines) > 10
    assert {name: found for name, found in leaks.items() if found} == {}


def imported_modules(file: Path) -> list[str]:
    """Return the modules that a file imports names from."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_the_folders_of_the_server_import_only_those_below_them() -> None:
    """Files beside the folders are in the same table, with others in a row."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = (
        page.partition("Imports go down this table.")[2].partition("\n\n")[2].partition("\n\n")[0]
    )
    rows = [re.findall(r"`(\w+)(?:/|\.py)`", row) for row in table.splitlines()[2:]]
    place = {folder: number for number, row in enumerate(rows) for folder in row}
    wrong = set()
    for file in SERVER.rglob("*.py"):
        folder = file.relative_to(SERVER).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or folder == "__init__":
                continue
            package, _, rest = f"{node.module}.".partition(".")
            names = [rest] if rest else [alias.name for alias in node.names]
            used = {name.partition(".")[0] for name in names} - {"__version__", "_transport"}
            if package == "bytepair_server":
                wrong |= {(folder, other) for other in used if place[other] < place[folder]}
    assert len(rows) > 10
    assert wrong == set()


def test_only_the_transport_of_the_server_knows_grpcio() -> None:
    assert {file.partition("/")[0] for file in importers(SERVER, "grpc")} == {"transport"}


def test_only_one_rust_folder_uses_pyo3() -> None:
    sources = ROOT / "engine" / "src"
    knowing = {
        file.relative_to(sources).parts[0]
        for file in sources.rglob("*.rs")
        if "pyo3::" in file.read_text(encoding="utf-8")
    }
    assert knowing == {"python"}


def test_every_unsafe_block_is_listed_with_its_benefit() -> None:
    """The list is in docs/algorithms.md, by file and function."""
    sources = ROOT / "engine" / "src"
    found = set()
    for file in sources.rglob("*.rs"):
        function = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            if named := re.search(r"\bfn (\w+)", line):
                function = named.group(1)
            if re.search(r"\bunsafe\b", line.partition("//")[0]):
                found.add((str(file.relative_to(sources)), function))
    page = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+\.rs)` ((?:`\w+`(?:, )?)+) \| .+ \| .+ \|$", page, re.MULTILINE)
    listed = {(file, name) for file, names in rows for name in re.findall(r"\w+", names)}
    assert listed == found


def test_each_file_is_small() -> None:
    """Except for generated tables and stubs."""
    long = {
        str(file.relative_to(ROOT)): lines
        for folder in ("engine", "client", "tools", "server", "tests", "bench", "deploy", "scripts")
        for suffix in ("py", "rs")
        for file in (ROOT / folder).rglob(f"*.{suffix}")
        if "target" not in file.parts and "_pb2" not in file.name
        if "Generated by" not in (text := file.read_text(encoding="utf-8"))[:200]
        if (lines := text.count("\n")) > 450
    }
    assert long == {}


def test_rust_comments_fit_100_columns() -> None:
    """rustfmt does not wrap them."""
    wide = [
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for folder in ("engine", "server")
        for file in (ROOT / folder).rglob("*.rs")
        if "target" not in file.parts
        for line in file.read_text(encoding="utf-8").splitlines()
        if len(line) > 100 and line.lstrip().startswith("//")
    ]
    assert wide == []
