"""Runners of a job: processes on this machine, or the workers of a Ray cluster.

Workers share only files, so both runners do the same, and one can finish a job of the other.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from bytepair_engine import BytepairError

from bytepair_tools.corpus.job import Job, Outcome
from bytepair_tools.shared.failure import Failure

#: Processes the partition or bucket with a number.
Work = Callable[[Job, Path, int], Outcome]

#: The address that starts a cluster on this machine only, and stops it at the end.
LOCAL: Final = "local"

#: Number of submitted tasks per processor of a cluster: enough that none is idle.
_TASKS_PER_CPU: Final = 2

#: Maximum duration of a connection to a cluster, in seconds.
_CONNECT_S: Final = 10

_WORKER_DIED: Final = "a worker died, perhaps for lack of memory; run the command again to continue"


class Runner(Protocol):
    """Runs the same work for many numbers, in any order."""

    def run(
        self, work: Work, folder: Path, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Outcome]]:
        """Yield each number with its outcome when it is finished.

        Args:
            work: The work.
            folder: The folder of the job.
            numbers: The numbers of partitions or buckets.
        Raises:
            Failure: Input was rejected, or a worker died; finished results are kept.
        """


def attempted(work: Work, job: Job, folder: Path, number: int) -> Outcome | str:
    """Return the outcome, or the message of an error."""
    try:
        return work(job, folder, number)
    except (Failure, BytepairError) as error:
        return str(error)


def _checked(outcome: Outcome | str) -> Outcome:
    if isinstance(outcome, str):
        raise Failure(outcome)
    return outcome


class LocalProcesses:
    """Processes on this machine.

    Args:
        workers: Number of processes, at least 1.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(
        self, work: Work, folder: Path, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Outcome]]:
        """See `Runner`."""
        with ProcessPoolExecutor(
            min(self._workers, len(numbers)),
            # A fork of a process with threads, such as Arrow's, may deadlock.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_prepare,
            initargs=(work, folder),
        ) as pool:
            try:
                # Workers inherit the mask: Ctrl-C does not interrupt their start.
                before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                try:
                    futures = {pool.submit(_prepared, number): number for number in numbers}
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, before)
                for future in as_completed(futures):
                    yield futures[future], _checked(future.result())
            except BrokenProcessPool:
                raise Failure(_WORKER_DIED) from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


_task: tuple[Work, Job, Path] | None = None


def _prepare(work: Work, folder: Path) -> None:
    """Set the task of a process once, instead of with every number: a job may have many files.

    The process reads the job itself. A large argument would fill the pipe to a process that dies at
    its start, and the parent would wait forever.
    """
    global _task
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # avoids a traceback from each process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _task = work, Job.of_folder(folder), folder


def _end_with_parent() -> None:
    """End this process when its parent was killed, because a next run may write the same files."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _prepared(number: int) -> Outcome | str:
    assert _task is not None
    return attempted(*_task, number)


@lru_cache(maxsize=1)
def _fetched(reference: object) -> Job:
    """Fetch the job once for each worker: a job may have many files."""
    job: Job = import_module("ray").get(reference)
    return job


def _attempted_on_ray(
    work: Work, job: Sequence[object], folder: Path, number: int
) -> Outcome | str:
    return attempted(work, _fetched(*job), folder, number)


def _check_listening(address: str) -> None:
    """Raise OSError if nothing listens at an address with a port. Ray would try for ten minutes."""
    url = urlsplit(address if "://" in address else f"//{address}")
    if url.port is not None:
        socket.create_connection((url.hostname, url.port), _CONNECT_S).close()


class RayCluster:
    """The workers of a Ray cluster, on which this distribution must be installed.

    Args:
        address: The address of the cluster for Ray; LOCAL to start one on this machine.
        workers: Number of processors of a cluster that is started.
        retries: Number of retries of a task if a worker dies.
    """

    def __init__(self, address: str, *, workers: int, retries: int) -> None:
        if find_spec("ray") is None:
            raise Failure("--ray needs Ray: pip install bytepair-tools[ray]")
        self._address = address
        self._workers = workers
        self._retries = retries

    def run(
        self, work: Work, folder: Path, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Outcome]]:
        """See `Runner`."""
        ray = self._connected()
        try:
            task = ray.remote(_attempted_on_ray).options(num_cpus=1, max_retries=self._retries)
            # In a list, because Ray would load a job that is an argument for every number.
            job = [ray.put(Job.of_folder(folder))]
            max_running = _TASKS_PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))
            waiting = list(reversed(numbers))
            running: dict[object, int] = {}
            while waiting or running:
                while waiting and len(running) < max_running:
                    number = waiting.pop()
                    running[task.remote(work, job, folder, number)] = number
                done, _ = ray.wait(list(running))
                for reference in done:
                    yield running.pop(reference), _checked(ray.get(reference))
        except ray.exceptions.RayError as error:
            # The cause is one of Ray itself if a task could not fetch the job.
            cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
            if not isinstance(cause, ray.exceptions.RayError):
                raise  # a bug
            raise Failure(f"{_WORKER_DIED} ({type(cause).__name__})") from None

    def _connected(self) -> Any:
        """Return the module `ray`, connected to the cluster until the process ends."""
        is_local = self._address == LOCAL
        # Ray reads these when it is imported.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if is_local:
            # Its ports are open on every interface, but need the token.
            os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        ray = import_module("ray")
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if is_local:
            options |= {"num_cpus": self._workers, "include_dashboard": False}
            options["_node_ip_address"] = "127.0.0.1"
        try:
            _check_listening(self._address)
            ray.init(self._address, ignore_reinit_error=True, **options)
        except Exception as error:  # Ray raises plain `Exception` if a cluster does not start
            raise Failure(f"the Ray cluster at {self._address}: {error}") from None
        return ray
