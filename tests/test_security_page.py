"""The examples of docs/security.md run: the attack, the defence, keys and certificates."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Serve
from support.pki import Pair, trusting
from support.serving import RunningServer, write_config

PAGE = (Path(__file__).parents[1] / "docs/security.md").read_text(encoding="utf-8")
SHELL = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
TOML = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl here")


def shell(script: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_a_concatenated_prompt_is_attacked_and_segments_are_not(
    serve: Serve, tmp_path: Path
) -> None:
    config = f'builtin_encodings = ["o200k_harmony"]\n{TOML[0]}'
    server = serve("--config", write_config(tmp_path, config), environment={})
    page = PAGE.replace("localhost:50051", server.target)
    test = doctest.DocTestParser().get_doctest(page, {}, "docs/security.md", None, None)
    assert len(test.examples) > 10
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
    assert result.failed == 0


@needs_openssl
def test_a_key_made_by_the_page_s_commands_is_accepted(serve: Serve, tmp_path: Path) -> None:
    shell(SHELL[0], tmp_path)
    server = serve("--api-keys-file", str(tmp_path / "keys.toml"))
    count = f"echo -n 'a b' | bytepair count --target {server.target} --encoding gpt-4"
    assert shell(f"{count} --api-key-file chat.key", tmp_path) == "2\n"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder where the commands for TLS have run."""
    for script in SHELL[1:4]:
        shell(script, tmp_path)
    return tmp_path


@pytest.mark.slow
@needs_openssl
def test_certificates_made_by_the_page_s_commands_are_accepted(made: Path) -> None:
    config = f'builtin_encodings = ["o200k_base"]\n{TOML[1]}'
    shown = Pair(*((made / name).read_bytes() for name in ("billing.pem", "billing-key.pem")))
    credentials = trusting((made / "ca.pem").read_bytes(), shown)
    with RunningServer("--config", write_config(made, config), credentials=credentials) as server:
        target = server.target.replace("127.0.0.1", "localhost")
        script = SHELL[4].replace("localhost:50051", target)
        assert shell(script, made) == "4\n"
        assert server.wait_for_log("call", rpc="Count")["caller"] == "billing"


def test_every_block_is_tested_above() -> None:
    assert (len(SHELL), len(TOML)) == (5, 2)
