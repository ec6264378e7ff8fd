"""Runners of a job: processes of this machine, or the workers of a Ray cluster.

Workers share nothing but files, so both do the same, and a job that one began can be finished by
the other.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

from bytepair_engine import BytepairError

from bytepair_tools.corpus.job import Job, Outcome
from bytepair_tools.shared.failure import Failure

#: What is done with the partition, or bucket, of a number.
Work = Callable[[Job, Path, int], Outcome]

#: The address for which a cluster of this machine alone is started, and stopped in the end.
LOCAL: Final = "local"

#: Tasks given to a cluster, for each of its processors: enough that none waits for the next.
_AHEAD: Final = 2

_DIED: Final = (
    "a worker died, perhaps for lack of memory; run the command again to continue with what is "
    "missing"
)


class Runner(Protocol):
    """Runs the same work for many numbers, in any order."""

    def run(
        self, work: Work, job: Job, folder: Path, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Outcome]]:
        """Each number with what was done, as it is finished.

        Raises:
            Failure: One was refused, or a worker died; what is finished stays so.
        """


def attempted(work: Work, job: Job, folder: Path, number: int) -> Outcome | str:
    """What was done, or why it was refused."""
    try:
        return work(job, folder, number)
    except (Failure, BytepairError) as refused:
        return str(refused)


def _checked(outcome: Outcome | str) -> Outcome:
    if isinstance(outcome, str):
        raise Failure(outcome)
    return outcome


class LocalProcesses:
    """Processes of this machine.

    Args:
        workers: How many, from 1.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(
        self, work: Work, job: Job, folder: Path, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Outcome]]:
        """See `Runner`."""
        with ProcessPoolExecutor(
            min(self._workers, len(numbers)),
            # A fork of a process with threads, as Arrow has, may never end.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_prepare,
            initargs=(work, job, folder),
        ) as pool:
            futures = {pool.submit(_prepared, number): number for number in numbers}
            try:
                for future in as_completed(futures):
                    yield futures[future], _checked(future.result())
            except BrokenProcessPool:
                raise Failure(_DIED) from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


_task: tuple[Work, Job, Path] | None = None


def _prepare(work: Work, job: Job, folder: Path) -> None:
    """Sent to a process once, and not with every number: a job may name many files."""
    global _task
    _task = work, job, folder
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a traceback from each would tell nothing


def _prepared(number: int) -> Outcome | str:
    assert _task is not None
    return attempted(*_task, number)


class RayCluster:
    """The workers of a Ray cluster, on each of which this distribution is installed.

    Args:
        address: The cluster's, as Ray has it; LOCAL to start one on this machine.
        workers: How many processors a cluster that is started has.
        retries: How often a task is given to another worker where one died.
    """

    def __init__(self, address: str, *, workers: int, retries: int) -> None:
        if find_spec("ray") is None:
            raise Failure("--ray needs Ray: pip install bytepair-tools[ray]")
        self._address = address
        self._workers = workers
        self._retries = retries

    def run(
        self, work: Work, job: Job, folder: Path, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Outcome]]:
        """See `Runner`."""
        ray = self._connected()
        try:
            task = ray.remote(attempted).options(num_cpus=1, max_retries=self._retries)
            shared = ray.put(job)
            ahead = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
            waiting = list(reversed(numbers))
            running: dict[object, int] = {}
            while waiting or running:
                while waiting and len(running) < ahead:
                    number = waiting.pop()
                    running[task.remote(work, shared, folder, number)] = number
                done, _ = ray.wait(list(running))
                for reference in done:
                    yield running.pop(reference), _checked(ray.get(reference))
        except ray.exceptions.RayTaskError:
            raise  # a bug, which is reported as one
        except ray.exceptions.RayError as error:
            raise Failure(f"{_DIED} ({type(error).__name__})") from None

    def _connected(self) -> Any:
        """The module `ray`, connected to the cluster for as long as the process runs."""
        is_local = self._address == LOCAL
        # Ray reads these when it is imported.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if is_local:
            # Its ports are open on every interface, for anyone who has the token.
            os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        ray = import_module("ray")
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if is_local:
            options |= {"num_cpus": self._workers, "include_dashboard": False}
            options["_node_ip_address"] = "127.0.0.1"
        else:
            options["address"] = self._address
        try:
            ray.init(ignore_reinit_error=True, **options)
        except Exception as error:  # Ray raises just that where a cluster does not start
            raise Failure(f"the Ray cluster at {self._address}: {error}") from None
        return ray
