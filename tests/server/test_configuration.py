"""Settings: their sources, their validation, and their documentation."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from bytepair.v1 import text_pb2, tokenizer_pb2
from bytepair_server.auth import callers
from bytepair_server.config import loader
from bytepair_server.config.loader import ConfigurationError
from bytepair_server.config.settings import FILE_ONLY, Settings
from conftest import Serve
from support.check_config import check_config
from support.keys import keys_toml
from support.serving import write_config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")


def test_a_flag_wins_over_a_variable_over_the_file(tmp_path: Path) -> None:
    path = write_config(tmp_path, "max_ids = 150000\nmax_segments = 2\nmax_batch_items = 3\n")
    variables = {
        "BYTEPAIR_MAX_IDS": "200000",
        "BYTEPAIR_MAX_SEGMENTS": "20",
        "BYTEPAIR_CONFIG": path,
        "BYTEPAIR_SERVICE_HOST": "10.0.0.1",
        "BYTEPAIR_MAX_IDZ": "1",
        "BYTEPAIR_QUOTAS": "5",
        "BYTEPAIR_TLS_CA": "of-the-health-probe.pem",
        "HOME": "/",
    }
    read = loader.load(["--max-ids", "300000"], variables)
    assert read.settings.max_ids == 300000
    assert read.settings.max_segments == 20
    assert read.settings.max_batch_items == 3
    assert read.settings.max_in_flight == Settings().max_in_flight
    assert read.base_dir == tmp_path
    assert read.ignored_variables == {
        "BYTEPAIR_MAX_IDZ": "no such setting; did you mean BYTEPAIR_MAX_IDS?",
        "BYTEPAIR_QUOTAS": "quotas can only be set in the file",
        "BYTEPAIR_SERVICE_HOST": "no such setting",
    }
    assert not read.check_only


def test_a_path_is_relative_to_the_config_file_or_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (folder := tmp_path / "etc").mkdir()
    lines = 'api_keys_file = "a"\ntls_cert_file = "b"\ntls_key_file = "c"'
    config = Path(write_config(folder, lines)).relative_to(tmp_path)
    arguments = ["--config", str(config), "--api-keys-file", "a"]
    read = loader.load(arguments, {"BYTEPAIR_TLS_CERT_FILE": "b"})
    named = (
        read.settings.api_keys_file,
        read.settings.tls_cert_file,
        read.settings.tls_key_file,
    )
    found = [(read.base_dir / str(each)).absolute() for each in named]
    assert found == [tmp_path / "a", tmp_path / "b", folder / "c"]


@pytest.mark.parametrize(
    ("address", "used"),
    [
        ("unix:a.sock", "unix:etc/a.sock"),
        ("unix:/run/a.sock", "unix:/run/a.sock"),
        ("unix:///run/a.sock", "unix:/run/a.sock"),
        ("127.0.0.1:1", "127.0.0.1:1"),
    ],
)
def test_a_unix_socket_is_relative_to_the_config_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, used: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (folder := tmp_path / "etc").mkdir()
    config = Path(write_config(folder, f'grpc_address = "{address}"')).relative_to(tmp_path)
    assert loader.load(["--config", str(config)], {}).settings.grpc_address == used
    arguments = ["--config", str(config), "--grpc-address", "unix:a.sock"]
    assert loader.load(arguments, {}).settings.grpc_address == "unix:a.sock"


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    config = write_config(tmp_path, "\ufeffapi_keys_file = 'keys.toml'")
    (tmp_path / "keys.toml").write_text("\ufeff" + keys_toml(chat="a"), encoding="utf-8")
    read = loader.load(["--config", config], {})
    callers.load(read.settings, read.base_dir)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], False),
        (["--reflection"], True),
        (["--reflection", "true"], True),
        (["--reflection=false"], False),
    ],
)
def test_a_switch_may_have_a_value(arguments: list[str], expected: bool) -> None:
    assert loader.load(arguments, {}).settings.reflection is expected
    assert loader.load([], {"BYTEPAIR_REFLECTION": "1"}).settings.reflection


@pytest.mark.parametrize(
    ("grpc", "http"),
    [("0.0.0.0:1", "[::1]:1"), ("127.0.0.1:1", "[::1]:1"), ("0.0.0.0:0", "0.0.0.0:0")],
)
def test_addresses_that_do_not_overlap_may_have_one_port(grpc: str, http: str) -> None:
    read = loader.load(["--grpc-address", grpc, "--http-address", http], {})
    assert (read.settings.grpc_address, read.settings.http_address) == (grpc, http)


def test_a_list_is_separated_by_commas() -> None:
    read = loader.load(["--builtin-encodings", "r50k_base, cl100k_base"], {})
    assert read.settings.builtin_encodings == ("r50k_base", "cl100k_base")


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().max_ids = 1


@pytest.mark.parametrize(
    ("arguments", "variables", "text", "said"),
    [
        (
            ["--max-ids", "x"],
            {},
            "",
            "max_ids (from flag --max-ids): must be a whole number, not 'x'",
        ),
        (
            ["--max-ids", "0"],
            {},
            "",
            "must be at least 1, not '0'. The setting: Maximum token ids in one Decode call",
        ),
        ([], {"BYTEPAIR_MAX_IDS": "-1"}, "", "max_ids (from variable BYTEPAIR_MAX_IDS): "),
        ([], {}, "max_ids = true", "max_ids (from file {file}): must be a number, not true"),
        ([], {}, "max_ids = '5'", "max_ids (from file {file}): must be a number, not '5'"),
        ([], {}, "reflection = 1", "must be true or false, not 1"),
        ([], {}, "playground = true", "not true"),
        (["--max-buffered-bytes", "1048576"], {}, "", "must be at least 2686976: the largest "),
        ([], {}, "max_input_bytes = 400_000_000", "max_buffered_bytes (from default): must be at"),
        ([], {}, "max_pending_bytes = 300_000_000", "max_streams_bytes (from default): must be "),
        ([], {}, "flagged_tokens.a = [true]", "flagged_tokens.a.0 (from file {file}): must be a"),
        ([], {}, "workers = 1.5", "must be a whole number, not 1.5"),
        ([], {}, "callers = 5", "must be a table, not 5"),
        ([], {}, "callers.a = 5", "callers.a (from file {file}): must be a table, not 5"),
        ([], {}, "builtin_encodings = 5", "must be a list, not 5"),
        (["--reflection", "si"], {}, "", "must be true or false, not 'si'"),
        (["--workers", "2000"], {}, "", "must be at most 1024, not '2000'"),
        (["--cors-origins", "https://a.example/"], {}, "", "'https://a.example/' must be *, or"),
        (["--cors-origins", "https://[::1]:443"], {}, "", "and without the default port"),
        (["--cors-origins", "http://a.example:80"], {}, "", "and without the default port"),
        ([], {}, "max_idz = 1", "no such setting; did you mean max_ids?"),
        (["--max-id", "4"], {}, "", "--max-id: no such flag; did you mean --max-ids? See --help"),
        (["--max-idz=4"], {}, "", "--max-idz: no such flag; did you mean --max-ids?"),
        (["--confg", "a"], {}, "", "--confg: no such flag; did you mean --config? See --help"),
        (["--callers", "a"], {}, "", "--callers: not a flag; set it in the file that"),
        (["serve"], {}, "", "serve: no such flag. See --help"),
        ([], {"BYTEPAIR_API_KEYS_FILE": ""}, "", "must name a file; leave it out for none"),
        ([], {}, "max_ids = ", "is not TOML: "),
        pytest.param([], {}, "max_ids = " + 5000 * "[", "is nested too deeply", id="nested"),
        pytest.param([], {}, "max_ids = " + 5000 * "1", "is not TOML: ", id="digits"),
        ([], {}, "[callers.a]\ncertificate = []", "did you mean certificates?"),
        ([], {}, "[server]\nmax_ids = 5", "server (from file {file}): no such setting; settings"),
        ([], {}, "[quotas.a]\nrequests_per_sec = 1", "did you mean requests_per_second?"),
        ([], {}, "[quotas.a]\nrequests = 1", "did you mean requests_per_second?"),
        ([], {}, "[quotas.a]\nlog_level = 'debug'", "no such setting; settings stand in no table,"),
        (["--config", ""], {}, "", "--config, BYTEPAIR_CONFIG: must name a file"),
        ([], {"BYTEPAIR_CONFIG": ""}, "", "--config, BYTEPAIR_CONFIG: must name a file"),
        ([], {"BYTEPAIR_CONFIG": "/no/such"}, "", "cannot read file /no/such: No such file"),
        (["--log-format", "xml"], {}, "", "must be 'json' or 'console', not 'xml'"),
        (["--grpc-address", "50051"], {}, "", "such as 0.0.0.0:50051, or unix:/path; "),
        (["--grpc-address", "a:70000"], {}, "", "must be host:port"),
        (["--grpc-address", "*:50051"], {}, "", "must be host:port, such as 0.0.0.0:50051"),
        (["--http-address", "a:1"], {}, "grpc_address = 'a:1'", "must have another port than"),
        (["--grpc-address", "0.0.0.0:9464"], {}, "", "(from default): must have another port"),
        (["--http-address", "[::]:50051"], {}, "", "grpc_address, which is 0.0.0.0:50051. The"),
        (
            ["--http-address", "localhost:1"],
            {},
            "grpc_address = '127.0.0.1:1'",
            "must have another port than grpc_address",
        ),
        (["--unix-socket-mode", "0551"], {}, "", "must permit someone to write"),
        (["--stream-idle-seconds", "0.001"], {}, "", "must be 0 or at least 0.1, not 0.001"),
        (["--grpc-address", "127.0.0.1:1:2"], {}, "", "must be host:port"),
        (["--grpc-address", "unix:"], {}, "", "must be host:port, such as"),
        (["--http-address", ":1"], {}, "", "http_address (from flag --http-address): must be"),
        (["--http-address", "off"], {}, "", "must be host:port, such as 0.0.0.0:9464, or none; "),
        (["--builtin-encodings", "gpt9"], {}, "", "'gpt9' is not built in; these are: cl100k_base"),
        (["--builtin-encodings", "gpt-4o"], {}, "", "'gpt-4o' is an alias of o200k_base: write o"),
        ([], {}, "grace_seconds = true", "grace_seconds (from file "),
        (["--max-connection-age-seconds", "inf"], {}, "", "max_connection_age_seconds (from flag"),
        (
            [],
            {},
            "[ceiling.default]\ncl100k_base = 'SOME'",
            'ceiling.default.cl100k_base (from file {file}): must be "ALL" or a list of',
        ),
        ([], {}, "[ceiling.default]\ncl100k_base = [1]", 'must be "ALL" or a list of'),
    ],
)
def test_an_error_names_the_setting_its_source_and_the_remedy(
    tmp_path: Path, arguments: list[str], variables: dict[str, str], text: str, said: str
) -> None:
    file = write_config(tmp_path, text)
    if text:
        arguments = [*arguments, "--config", file]
    with pytest.raises(ConfigurationError) as caught:
        loader.load(arguments, variables)
    assert said.replace("{file}", file) in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[encodings.mine]\nfile = 'none'\npattern = 'gpt2'", "encodings.mine: "),
        ("[encodings.mine]\nfil = 'none'", "encodings.mine: unknown key 'fil'; did you mean file?"),
        ("[encodings.mine]\nextends = 'gpt9'", "encodings.mine: unknown encoding 'gpt9'"),
        (
            "[encodings.mine]\nextends = 'r50k_base'\naliases = ['gpt2']",
            "encodings.mine: 'gpt2' already names r50k_base",
        ),
        ("[encodings.gpt2]\nextends = 'r50k_base'", "encodings.gpt2: 'gpt2' already names r50k"),
        ("[ceiling.default]\ngpt2 = ['<|endoftext|>']", "ceiling.default.gpt2: no encoding of"),
        ("[ceiling.default]\ngpt2 = []", "'gpt2' is an alias of r50k_base: write r50k_base"),
        ("[ceiling.default]\nr50k_base = ['<|x|>']", "not special tokens of this encoding: <|x|>"),
        ("[ceiling.default]\nformats = ['harmon']", "not chat formats: harmon; did you mean harm"),
        ("[ceiling.default]\nr50k_base = ['<|endofext|>']", "; did you mean <|endoftext|>?"),
        (
            "[ceiling.chat]\nr50k_base = 'ALL'",
            "ceiling.chat: no such caller or group; known: anonymous",
        ),
        ("api_keys_file = 'none.toml'", "none.toml: cannot be read: No such file"),
        ("builtin_encodings = []", "builtin_encodings: no encoding is configured"),
    ],
)
def test_a_server_does_not_start_with_an_invalid_file(tmp_path: Path, text: str, said: str) -> None:
    prefix = "" if "builtin_encodings" in text else "builtin_encodings = ['r50k_base']\n"
    path = write_config(tmp_path, prefix + text)
    ended = check_config("--config", path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("bytepair-server: ")
    source = f" (from file {path})"
    assert (source in ended.stderr) == text.startswith("[")
    assert said in ended.stderr.replace(source, "")
    assert "Traceback" not in ended.stderr
    assert not ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("'' = []", "'' is not a printable name"),
        ('"a\\u001b[31m" = []', "is not a printable name"),
        ("chat = 'sha256:'", "caller 'chat' needs a list of key hashes"),
        ("chat = ['hunter2']", "entry 0 of caller 'chat' is not 'sha256:' and 64"),
        ("chat = []\nbilling = [hunter2]", "is not TOML in line 2"),
        ("chat = []\nbilling = ['hunter2'", "is not TOML at its end"),
        pytest.param("chat = " + 5000 * "[", "is not TOML", id="nested"),
        pytest.param("chat = " + 5000 * "1", "is not TOML", id="digits"),
        ("", "names no caller"),
        ("a = ['{hash}']\nb = ['{hash}']", "callers 'a' and 'b' share a key"),
        (keys_toml(chat=""), "entry 0 of caller 'chat': the key was empty when it was hashed"),
    ],
)
def test_an_invalid_key_file_is_rejected_and_not_quoted(
    tmp_path: Path, text: str, said: str
) -> None:
    digest = "sha256:" + hashlib.sha256(b"hunter2").hexdigest()
    (tmp_path / "keys.toml").write_text(text.replace("{hash}", digest), encoding="utf-8")
    ended = check_config("--config", write_config(tmp_path, "api_keys_file = 'keys.toml'"))
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "hunter2" not in ended.stderr
    assert digest not in ended.stderr


@pytest.mark.slow
def test_a_valid_configuration_is_reported_as_valid() -> None:
    ended = check_config("--builtin-encodings", "r50k_base")
    assert (ended.returncode, ended.stdout) == (0, "configuration is good\n")


@pytest.mark.slow
def test_settings_that_the_transport_ignores_are_reported(tmp_path: Path) -> None:
    settings = {
        name: field.get_default()
        for name, field in Settings.model_fields.items()
        if loader.described(name).endswith("Native transport only.") and name != "playground"
    }
    lines = (f"{name} = {json.dumps(value)}" for name, value in settings.items())
    path = write_config(tmp_path, "\n".join(('builtin_encodings = ["r50k_base"]', *lines)))
    for transport, is_ignored in {"native": False, "grpcio": True}.items():
        said = check_config("--config", path, "--transport", transport).stderr
        for name in settings:
            assert (f"the grpcio transport lacks it setting={name}" in said) == is_ignored
    assert len(settings) > 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("nope = [1]", "flagged_tokens.nope: no encoding of this canonical name is loaded"),
        ("gpt2 = [1]", "flagged_tokens.gpt2: no encoding of this canonical name is loaded; 'gpt2'"),
        ("r50k_base = [1, 9999999]", "flagged_tokens.r50k_base: no token has id 9999999"),
    ],
)
def test_flagged_tokens_must_exist(tmp_path: Path, table: str, said: str) -> None:
    path = write_config(tmp_path, f"[flagged_tokens]\n{table}")
    ended = check_config("--config", path)
    assert (ended.returncode, ended.stdout) == (2, "")
    setting, _, problem = said.partition(": ")
    assert f"{setting} (from file {path}): {problem}" in ended.stderr


@pytest.mark.slow
def test_help_names_every_setting_with_its_variable() -> None:
    ended = check_config("--help", COLUMNS="200")
    assert ended.returncode == 0
    for name in Settings.model_fields.keys() - FILE_ONLY:
        assert f"--{name.replace('_', '-')}" in ended.stdout
        assert f"BYTEPAIR_{name.upper()}," in ended.stdout
    assert "[BYTEPAIR_CORS_ORIGINS, none]" in ended.stdout


def test_the_documented_defaults_are_the_real_ones() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)
    assert {name for name, _, _ in rows} == Settings.model_fields.keys() - FILE_ONLY
    for name, shown, text in rows:
        field = Settings.model_fields[name]
        default = field.get_default(call_default_factory=True)
        assert shown == shown_default(default)
        assert text.startswith(loader.described(name).removesuffix("."))


def shown_default(default: object) -> str:
    """Format a default as the table does."""
    if default is None or default == ():
        return "none"
    if isinstance(default, tuple):
        assert len(default) == 6
        return "all six"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def test_the_documented_examples_are_served(serve: Serve, tmp_path: Path) -> None:
    examples = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (encodings,) = [text for text in examples if "[encodings.qwen]" in text]
    chatml = encodings.split("[encodings.qwen]")[0]
    ceiling, quotas = [text for text in examples if text.startswith(("[ceiling", "[quotas"))]
    (tmp_path / "keys.toml").write_text(
        f'chat = ["sha256:{hashlib.sha256(b"k").hexdigest()}"]', encoding="utf-8"
    )
    config = f"api_keys_file = 'keys.toml'\n{chatml}\n{ceiling}\n{quotas}"
    server = serve("--config", write_config(tmp_path, config))
    key = (("authorization", "Bearer k"),)
    prompt = tokenizer_pb2.EncodeRequest(
        encoding="my-model",
        segments=[
            text_pb2.Segment(special_token="<|im_start|>"),
            text_pb2.Segment(text="hello"),
            text_pb2.Segment(special_token="<|im_end|>"),
        ],
    )
    answer = server.stub.Encode(prompt, metadata=key)
    assert list(answer.ids) == [100264, 15339, 100265]
    assert answer.encoding == "chatml"
    described = server.stub.GetEncoding(
        tokenizer_pb2.GetEncodingRequest(encoding="chatml"), metadata=key
    ).encoding
    assert list(described.aliases) == ["my-model"]
