"""`bytepair corpus --ray`: the same results on a cluster of two workers, one of which dies.

make test-ray

Needs Ray, which is larger than all other requirements of tests. So it runs separately, in CI too.
"""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import parquet
from support.corpus import GPT2, TRAIN
from support.dying import feeding, killing_its_reader
from support.serving import clean_environment
from support.shell import command

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs").glob("*.md"))][:6]

CLUSTER = """
import ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
print("address", ray.get_runtime_context().gcs_address, flush=True)
input()
"""

#: Prints for each of four numbers whether its job has been used before.
USED = """
from pathlib import Path
from bytepair_tools.corpus.job import Job, Outcome
from bytepair_tools.corpus.runners import RayCluster

def work(job, folder, number):
    is_used = "fingerprint" in vars(job)
    job.fingerprint
    return Outcome(is_used)

Job("count", {}, ("a.txt",), (1,), (1,)).begin(Path())
cluster = RayCluster("local", workers=1, retries=0)
print([outcome.documents for _, outcome in cluster.run(work, Path(), range(4))])
"""


@pytest.fixture
def variables() -> dict[str, str]:
    """Return Ray's settings: no other work, and no usage reports."""
    return clean_environment(
        RAY_USAGE_STATS_ENABLED="0",
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN=secrets.token_hex(32),
        RAY_raylet_start_wait_time_s="100",  # for a busy machine
    )


@pytest.fixture
def cluster(variables: dict[str, str]) -> Iterator[str]:
    """The address of a cluster with two workers."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=variables,
    ) as process:
        assert process.stdout is not None
        lines = (line for line in process.stdout if line.startswith("address "))
        yield next(lines).split()[1]
        process.communicate("\n")


@pytest.mark.timeout(300)
def test_a_cluster_gives_the_results_of_one_machine(
    tmp_path: Path, cluster: str, variables: dict[str, str]
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, text in enumerate(TEXTS):
        (corpus / f"{number}.txt").write_text(text, encoding="utf-8")
    fifo = tmp_path / "last.txt"  # a folder may not have a pipe

    def run(*arguments: str, status: int = 0, errors: str = "") -> None:
        done = subprocess.run(
            command(*arguments), cwd=tmp_path, capture_output=True, text=True, env=variables
        )
        assert done.returncode == status, done.stderr
        assert errors in done.stderr

    on_ray = ("--ray", cluster, "--retries", "0")
    counting = (
        "corpus",
        "count-pretokens",
        "corpus",
        fifo.name,
        *GPT2,
        "--output",
        "counts",
        *on_ray,
    )
    with killing_its_reader(fifo):
        run(*counting, status=1, errors="a worker died")
    with feeding(fifo, TEXTS[0].encode()):
        run(*counting)
    run(*TRAIN, "--counts", "counts", "--output", "apart")
    fifo.unlink()
    fifo.write_text(TEXTS[0], encoding="utf-8")
    files = [f"corpus/{file.name}" for file in corpus.iterdir()]
    run(*TRAIN, *files, fifo.name, "--output", "at-once")
    tables = [tmp_path / name / f"{name}.tiktoken" for name in ("apart", "at-once")]
    assert tables[0].read_bytes() == tables[1].read_bytes()

    # The second runner finishes the work of the first.
    encoding = ("corpus", "encode", "corpus", "--encoding", "gpt2", "--output", "ids")
    run(*encoding, "--disallowed-special", "as-text")
    expected = parquet.read_table(tmp_path / "ids")
    for number in (0, 3):
        (tmp_path / "ids" / f"part-{number:05}.parquet").unlink()
    kept = (tmp_path / "ids" / "part-00001.parquet").stat().st_mtime_ns
    run(*encoding, "--disallowed-special", "as-text", "--ray", cluster)
    assert parquet.read_table(tmp_path / "ids").equals(expected)
    assert (tmp_path / "ids" / "part-00001.parquet").stat().st_mtime_ns == kept


@pytest.mark.timeout(300)
def test_a_worker_loads_the_job_once(tmp_path: Path, variables: dict[str, str]) -> None:
    """A job may have many files."""
    script = [sys.executable, "-W", "ignore", "-c", USED]
    variables["RAY_ADDRESS"] = "127.0.0.1:1"  # of another cluster than the local one
    printed = subprocess.run(script, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=variables)
    assert printed.stdout == "[False, True, True, True]\n"


def test_an_address_where_nothing_listens_fails(tmp_path: Path, variables: dict[str, str]) -> None:
    """Ray would try to connect for ten minutes."""
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    counting = ("corpus", "count-pretokens", "a.txt", *GPT2, "--output", "counts")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        on_ray = command(*counting, "--ray", address)
        done = subprocess.run(on_ray, cwd=tmp_path, capture_output=True, text=True, env=variables)
    assert done.returncode == 1
    assert f"the Ray cluster at {address}: [Errno" in done.stderr
