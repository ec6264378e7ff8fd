"""The command `bytepair`, as a shell runs it, against a real server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import bytepair_client
import grpc
import pytest
from bytepair_client import InputTooLarge
from bytepair_client._cli.output import Results
from bytepair_engine.chat import Tool, get_chat_format, list_chat_formats
from bytepair_engine.chat.format import Chat
from support.oracle import oracle
from support.scripted import ScriptedServer, details, fail
from support.serving import RunningServer
from support.shell import Shell

pytestmark = pytest.mark.slow  # together too long for make check

END = "<|endoftext|>"
TEXT = "Hello, world! naïve 日本語 🙂\r\n"


@pytest.fixture
def shell(server: RunningServer, tmp_path: Path) -> Shell:
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    (tmp_path / "b.txt").write_bytes(b"one two three")
    (tmp_path / "end.txt").write_bytes(b"the " + END.encode())
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    return Shell(tmp_path, server.target)


def ids_of(text: str) -> list[int]:
    return oracle("o200k_base").encode(text, disallowed_special=())


def test_count_prints_as_wc_does(shell: Shell) -> None:
    a = len(ids_of(TEXT))
    assert shell("count", stdin=TEXT.encode()) == f"{a}\n"
    assert shell("count", "-", stdin=TEXT.encode()) == f"{a}\n"
    assert shell("count", "a.txt") == f"{a} a.txt\n"
    assert shell("count", "a.txt", "b.txt") == f"{a:9} a.txt\n{3:9} b.txt\n{a + 3:9} total\n"
    assert shell("count", stdin=b"") == "0\n"


def test_the_encoding_has_short_names(shell: Shell) -> None:
    del shell.variables["BYTEPAIR_ENCODING"]
    for option in ("-e", "--encoding", "--model"):
        assert shell("count", option, "gpt-4o", "a.txt") == f"{len(ids_of(TEXT))} a.txt\n"


def test_count_never_fails_on_what_a_text_contains(shell: Shell) -> None:
    assert shell("count", "end.txt") == f"{len(ids_of(f'the {END}'))} end.txt\n"
    remedy = "; --disallowed-special as-text reads it as ordinary text"
    shell("count", "--disallowed-special", "reject", "end.txt", status=1, errors="at byte 4")
    shell("count", "--disallowed-special", "reject", "end.txt", status=1, errors=remedy)
    shell("count", "--allowed-special", END, "end.txt", status=1, errors="ceiling")
    assert shell("count", "--allowed-special", "all", "end.txt") == "8 end.txt\n"


def test_encode_and_decode_undo_each_other(shell: Shell) -> None:
    ids = shell("encode", "a.txt")
    assert ids == " ".join(map(str, ids_of(TEXT))) + "\n"
    assert shell("decode", stdin=ids.encode()) == TEXT
    assert shell("decode", "--errors", "bytes", stdin=ids.encode()) == TEXT
    assert shell("encode", "b.txt", "-", stdin=b"") == shell("encode", "b.txt") + "\n"
    assert shell("encode", "end.txt", status=1, errors="end.txt: ") == ""
    assert shell("encode", "--disallowed-special", "as-text", "end.txt") == (
        " ".join(map(str, ids_of(f"the {END}"))) + "\n"
    )


@pytest.mark.parametrize("written", ["64 65", "64,65", " 64,\n\t65\n", "[64, 65]", "[64,65]\n"])
def test_ids_may_be_written_in_several_ways(shell: Shell, written: str) -> None:
    assert shell("decode", stdin=written.encode()) == oracle("o200k_base").decode([64, 65])


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("64 x", "index 1 "),
        ("[64, true]", "index 1 "),
        ("[64, 1.5]", "index 1 "),
        ("[64,", "not a JSON list"),
        ("64 -1", "index 1 "),
        ("[-1]", "at index 0"),
        ("99999999999", "at index 0"),
        ("9" * 5000, "index 0 "),
        ("[" * 100_000, "not a JSON list"),
        ("64 4000000000", "at index 1"),
    ],
)
def test_an_error_names_the_position_of_a_bad_id(shell: Shell, written: str, said: str) -> None:
    assert shell("decode", stdin=written.encode(), status=1, errors=said) == ""


def test_decode_handles_bytes_that_are_not_utf8_as_requested(shell: Shell) -> None:
    cut = str(ids_of("𐍈")[0]).encode()
    assert shell("decode", stdin=cut) == "\ufffd"
    shell("decode", "--errors", "strict", stdin=cut, status=1, errors="standard input: ")
    shell(
        "decode",
        "--errors",
        "strict",
        stdin=cut,
        status=1,
        errors="use --errors replace or --errors bytes",
    )
    assert shell("decode", "--skip-special-tokens", stdin=b"64 199999 65") == (
        shell("decode", stdin=b"64 65")
    )
    shell("decode", "--errors", "bytes", "--json", status=2, errors="combined with --json")


def test_json_names_the_encoding_and_its_fingerprint(shell: Shell) -> None:
    fingerprint = json.loads(shell("encodings", "o200k_base", "--json"))[0]["fingerprint"]
    named = {"encoding": "o200k_base", "fingerprint": fingerprint}
    of_a = len(ids_of(TEXT))
    files = [{"file": "a.txt", "count": of_a}, {"file": "b.txt", "count": 3}]
    assert json.loads(shell("count", "--json", "a.txt", "b.txt", "--encoding", "gpt-4o")) == (
        {**named, "files": files, "total": of_a + 3}
    )
    assert json.loads(shell("encode", "--json", "b.txt")) == (
        {**named, "files": [{"file": "b.txt", "ids": ids_of("one two three")}]}
    )
    assert json.loads(shell("decode", "--json", stdin=b"64")) == (
        {**named, "files": [{"file": "-", "text": "a"}]}
    )
    failed = json.loads(shell("encode", "--json", "end.txt", status=1, errors="end.txt"))
    assert failed["files"][0]["error"]["reason"] == "SPECIAL_TOKEN_IN_TEXT"


@pytest.mark.parametrize(
    ("data", "advice"),
    [
        (b"\x1f\x8b\x08", "byte 1 (0x8b) starts no character; decompress it first, by gzip -dc"),
        (
            b"\x28\xb5\x2f\xfd",
            "byte 1 (0xb5) starts no character; decompress it first, by zstd -dc",
        ),
        (
            b"PAR1\xff",
            "byte 4 (0xff) starts no character; it is a Parquet file, which bytepair cor",
        ),
        (b"a\x1f\x8b", "byte 2 (0x8b) starts no character; convert it first, for example by iconv"),
    ],
)
def test_an_error_says_what_to_do_with_a_binary_file(
    shell: Shell, data: bytes, advice: str
) -> None:
    shell("count", stdin=data, status=1, errors=f"standard input: not UTF-8: {advice}")


def test_one_bad_file_does_not_stop_the_others(shell: Shell) -> None:
    output = shell("count", "latin.txt", "b.txt", status=1, errors="latin.txt: not UTF-8: byte 3")
    assert output == f"{3:9} b.txt\n{3:9} total\n"
    output = shell("count", "nowhere", "b.txt", status=1, errors="nowhere: No such file")
    assert output.endswith(f"{3:9} total\n")
    shell("count", ".", status=1, errors="directory")
    (shell.folder / "emoji.txt").write_text("🧠")
    output = shell(
        "split",
        "--max-tokens",
        "1",
        "emoji.txt",
        "b.txt",
        status=1,
        errors="emoji.txt: the code point",
    )
    assert [json.loads(line)["text"] for line in output.splitlines()] == ["one", " two", " three"]
    (shell.folder / "part.json").write_text('[{"role": "user", "content": [{"type": "image"}]}]')
    (shell.folder / "chat.json").write_text('[{"role": "user", "content": "hello"}]')
    (shell.folder / "role.json").write_text('[{"role": 5}]')
    for wrong, said in (
        ("part.json", "part.json: "),
        ("role.json", "role.json: message 0: role must be a string"),
        ("b.txt", "b.txt: not JSON at line 1 column 1"),
    ):
        output = shell(
            "count-chat", "--format", "openai-chat", wrong, "chat.json", status=1, errors=said
        )
        assert output == "8 chat.json (exact)\n"


def test_a_text_that_cannot_be_cut_is_too_large(shell: Shell) -> None:
    (shell.folder / "word.txt").write_bytes(b"a" * 3_000_000)
    (shell.folder / "b.txt").write_bytes(b"one two three")
    output = shell("count", "word.txt", "b.txt", status=1, errors="word.txt: text has ")
    assert output == f"{3:9} b.txt\n{3:9} total\n"
    limit = "the server's --max-pending-bytes decides this limit"
    shell("count", "word.txt", status=1, errors=limit)
    limit = "the limit follows from the server's --max-input-bytes and --max-ids\n"
    shell("inspect-text", "word.txt", status=1, errors=limit)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("truncate", "--max-tokens", "-1"), 2, "bytepair: --max-tokens: must be 0 or more"),
        (("split", "--max-tokens", "0"), 2, "bytepair: --max-tokens: must be 1 or more, not 0\n"),
        (
            ("split", "--max-tokens", "5", "--overlap-tokens", "3"),
            2,
            "bytepair: --overlap-tokens: must be 0 to 2, half of --max-tokens, not 3\n",
        ),
        (
            ("count", "--allowed-special", END, "--allowed-special", "all"),
            2,
            'bytepair: --allowed-special: give "all" by itself, not in a list of tokens\n',
        ),
        (("count", "--timeout", "0"), 2, "above 0 and at most 1000000000\n"),
        (
            ("count", "--tls-cert", "a.txt"),
            2,
            "bytepair: --tls-cert and --tls-key must be given together",
        ),
        (("count", "--tls-ca", "nowhere"), 2, "bytepair: --tls-ca: nowhere: No such file"),
        (("count-chat", "--format", "nope"), 1, "'bytepair chat-formats' shows"),
        (("encode", "--allow-special", "X"), 2, "usage: bytepair encode "),
        (("encode", "--allow-special=X"), 2, "--allow-special=X; did you mean --allowed-special?"),
        (("encode", "--x"), 2, "bytepair encode: error: unrecognized arguments: --x\n"),
    ],
)
def test_an_error_names_options_of_the_command_line(
    shell: Shell, arguments: tuple[str, ...], status: int, said: str
) -> None:
    chat = b'[{"role": "user", "content": "one"}]'
    shell(*arguments, stdin=chat, status=status, errors=said)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("BYTEPAIR_TARGET", "a b", "has no port"),
        ("BYTEPAIR_API_KEY", "a b", "must be visible ASCII"),
        ("BYTEPAIR_TLS_CA", "nowhere", "nowhere: No such file"),
    ],
)
def test_an_error_names_the_variable_that_was_used(
    shell: Shell, variable: str, value: str, said: str
) -> None:
    shell.variables[variable] = value
    shell("count", status=2, errors=f"bytepair: {variable}: {said}")


def test_a_file_name_need_not_be_utf8(shell: Shell) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (shell.folder / name).write_bytes(b"one")
    with shell.start("count", name) as running:
        assert running.communicate() == (b"1 caf\xe9.txt\n", b"")
    assert json.loads(shell("count", "--json", name))["files"][0]["file"] == name


def test_encodings_are_listed_and_described(shell: Shell) -> None:
    listed = shell("encodings")
    assert [line.split()[0] for line in listed.splitlines() if not line.startswith(" ")] == (
        ["cl100k_base", "o200k_base", "o200k_harmony", "p50k_base", "p50k_edit", "r50k_base"]
    )
    described = json.loads(shell("encodings", "--json", "gpt-4o", "r50k_base"))
    assert [info["name"] for info in described] == ["o200k_base", "r50k_base"]
    assert described[0]["special_tokens"][END] == 199999
    assert described[0]["fingerprint"] in listed
    assert "o200k_base" in shell("encodings", "gpt-4o")
    assert "--json lists them" in shell("encodings", "o200k_harmony")
    shell("encodings", "nope", status=1, errors="nope")


def test_chat_formats_are_listed_and_described(shell: Shell) -> None:
    listed = shell("chat-formats")
    assert "\nopenai-chat     exact     gpt-3.5-turbo" in listed
    chat = Chat((), (Tool({}, "f", "", None),))
    formats = [name for name in list_chat_formats() if get_chat_format(name).tools]
    estimated = [name for name in formats if get_chat_format(name).accuracy_of(chat) == "estimate"]
    note = "; with tools an estimate"
    noted = [line.split()[0] for line in listed.splitlines() if line.endswith(note)]
    assert noted == estimated == ["openai-chat"]
    for name in formats:
        assert ("with tools:      estimate" in shell("chat-formats", name)) == (name in estimated)
    (described,) = json.loads(shell("chat-formats", "--json", "openai-chat"))
    assert described["encodings"] == ["cl100k_base", "o200k_base"]
    assert len(json.loads(shell("chat-formats", "--json"))) == len(listed.splitlines())
    assert "\nencodings:       cl100k_base, o200k_base" in shell("chat-formats", "openai-chat")
    shell("chat-formats", "nope", status=1, errors="nope")


def test_an_encoding_is_required_and_must_exist(shell: Shell) -> None:
    assert shell("count", "--encoding", "nope", status=1, errors="bytepair encodings") == ""
    wrong = ("count", "--expected-fingerprint", "sha256:0")
    shell(*wrong, status=1, errors="sha256:0")
    del shell.variables["BYTEPAIR_ENCODING"]
    shell("count", status=2, errors="--encoding NAME, or set BYTEPAIR_ENCODING")
    assert shell("count", "--encoding", "gpt2", stdin=b"one") == "1\n"


@pytest.mark.parametrize(
    "arguments", [(), ("nope",), ("count", "--nope"), ("count", "--timeout", "soon"), ("decod",)]
)
def test_wrong_usage(shell: Shell, arguments: tuple[str, ...]) -> None:
    shell(*arguments, status=2, errors="usage: bytepair")
    shell("count", "--timeout", "0", status=2, errors="timeout: ")
    encoding = "--encoding", "any"
    bytes_ = "decode", *encoding, "--errors", "bytes", "--json", "missing"
    shell(*bytes_, status=2, errors="cannot be combined with --json")
    several = "truncate", *encoding, "--max-tokens", "1", "missing", "missing"
    shell(*several, status=2, errors="needs --json")
    shell("count", "--encoding", os.fsdecode(b"\xff"), status=2, errors="encoding: not UTF-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ("split", "--max-tokens", "0"),
        ("split", "--max-tokens", "2", "--overlap-tokens", "2"),
        ("truncate", "--max-tokens", "-2"),
        ("truncate", "--max-tokens", "9" * 20),
        ("count", "--allowed-special", "ALL"),
        ("count", "--allowed-special", "all", "--allowed-special", END),
        ("count-chat", "--format", os.fsdecode(b"\xff")),
    ],
)
def test_options_are_checked_before_an_input_is_read_or_sent(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    with ScriptedServer() as server:
        target = "--target", server.target
        shell(*arguments, *target, "missing", status=2, errors="bytepair: --")
        assert not server.calls
    shell(*arguments, *target, "b.txt", status=2, errors="bytepair: --")


def test_the_server_may_reject_an_option(shell: Shell) -> None:
    code = grpc.StatusCode.INVALID_ARGUMENT
    for field, status in (("config.max_tokens", 2), ("unit", 1)):
        info = details("INVALID_OPTION", code, {"field": field})
        with ScriptedServer(fail(code, f"{field}: wrong", details=info)) as server:
            truncate = "truncate", "--max-tokens", "3", "--target", server.target
            said = "bytepair: --max-tokens: wrong\n" if status == 2 else "bytepair: unit: wrong\n"
            shell(*truncate, "b.txt", status=status, errors=said)


def test_the_name_of_an_input_does_not_hide_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with Results(1, as_json=False).errors_of("follows from.txt"):
        raise InputTooLarge("too large", code="INVALID_ARGUMENT", metadata={"size": "9"})
    said = "bytepair: follows from.txt: too large; have the server's limit raised\n"
    assert capsys.readouterr().err == said


def test_version_and_help(shell: Shell) -> None:
    assert shell("--version") == f"bytepair {bytepair_client.__version__}\n"
    for name in ("count", "encode", "decode", "encodings", "health"):
        assert name in shell("--help")
        assert "--target" in shell(name, "--help")
