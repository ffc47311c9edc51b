"""Work units through joblib: one thread each, processes outside, results in the order asked."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, TypeVar

import joblib
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types
from tqdm import tqdm

from predictive_credit.config import Execution
from predictive_credit.errors import BadConfig

J = TypeVar("J")
R = TypeVar("R")

CONNECT_SECONDS = 15
HERE = Execution(backend="sequential", n_jobs=1, address=None)


def run(task: Callable[[J], R], jobs: Sequence[J], execution: Execution, *, title: str) -> list[R]:
    """`task` of every job, in the jobs' order, whatever the backend; a progress bar goes to stderr.

    `task` is a module-level function and the jobs are plain data, so that they can travel. The bar
    shows on a terminal only. Raises BadConfig when the backend's package is not installed.
    """
    if len(jobs) <= 1:  # starting a process would take longer
        execution = HERE
    with _backend(execution):
        # Ray's backend cannot hand over results one by one, so its bar moves at the end.
        parallel = joblib.Parallel(
            return_as="list" if execution.backend == "ray" else "generator", max_nbytes=None
        )
        results = parallel(joblib.delayed(_alone)(task, job) for job in jobs)
        return list(tqdm(results, total=len(jobs), desc=title, file=sys.stderr, disable=None, leave=False))


def _alone(task: Callable[[J], R], job: J) -> R:
    """One thread a fit: for matrices this small, two threads are slower than one."""
    with threadpool_limits(limits=1):
        return task(job)


@contextlib.contextmanager
def _backend(execution: Execution) -> Iterator[None]:
    with contextlib.ExitStack() as cluster:
        if execution.backend == "dask":
            cluster.enter_context(_dask(execution))
        elif execution.backend == "ray":
            _join_ray(execution)
        with joblib.parallel_config(backend=execution.backend, n_jobs=execution.n_jobs):
            yield


def _dask(execution: Execution) -> Any:
    """A client of the running scheduler; joblib's dask backend uses the one that is open."""
    distributed = _needed("distributed", execution)
    try:
        return distributed.Client(execution.address, timeout=CONNECT_SECONDS)
    except OSError as error:
        raise BadConfig(_nobody(execution, error)) from None


def _join_ray(execution: Execution) -> None:
    ray = _needed("ray", execution)
    _needed("ray.util.joblib", execution).register_ray()
    try:
        ray.init(address=execution.address, ignore_reinit_error=True)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise BadConfig(_nobody(execution, error)) from None


def _nobody(execution: Execution, error: Exception) -> str:
    return (
        f"no {execution.backend} cluster answers at {execution.address} ({str(error).splitlines()[0]}); "
        "start it, correct execution.address, or set execution=local"
    )


def _needed(module: str, execution: Execution) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise BadConfig(
            f"execution.backend is {execution.backend}, which needs the package {package}, and it is not "
            "installed here; install it, or set execution=local"
        ) from None
