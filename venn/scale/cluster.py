"""Where work is done: in processes of this machine, or on a Dask cluster that is already running."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from venn.parameters import integer

if TYPE_CHECKING:
    from distributed import Client
else:  # for those who ask for hints while running, as dataclass tools do
    Client = Any

MISSING = "venn.scale needs Dask: pip install 'dask[array,dataframe]' distributed"

#: One thread per process: with as many processes as cores, threads of BLAS or of numba would only compete for them.
THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)

PATIENCE = 10  # seconds for a scheduler to answer

Cluster: TypeAlias = "str | Client | None"


@contextmanager
def client_of(cluster: Cluster = None, workers: int | None = None) -> Iterator[Client]:
    """Give a client of a cluster, and restore the former state afterwards.

    Parameters
    ----------
    cluster : str or distributed.Client, optional
        Address of a scheduler, such as "tcp://10.0.0.1:8786": it is left running. A client: it is left open. By default
        a cluster of processes on this machine, one thread each, which listen on 127.0.0.1 only, show no dashboard and
        end with the block.
    workers : int >= 1, optional
        Processes of the local cluster; by default one for each core that this process may use.

    Yields
    ------
    distributed.Client

    Raises
    ------
    ImportError
        Without Dask: pip install 'dask[array,dataframe]' distributed.
    TypeError, ValueError
        A parameter is not as described, or `workers` is given for a cluster that is already there.
    OSError
        No scheduler answers at the address.
    RuntimeError
        The processes of the local cluster did not start: see the notes.

    Notes
    -----
    The processes are started afresh and import the main module: a script that uses a local cluster must put its
    work under ``if __name__ == "__main__":``.

    Examples
    --------
    >>> with client_of(workers=1) as client:
    ...     client.submit(abs, -3).result()
    3
    """
    try:
        import distributed
    except ImportError as error:
        raise ImportError(MISSING) from error
    if workers is not None:
        integer("workers", workers, 1)
    if workers is not None and cluster is not None:
        raise ValueError(f"workers must be left out if a cluster is given, which has its own, got {workers!r}")
    if isinstance(cluster, distributed.Client):
        yield cluster
    elif isinstance(cluster, str):
        with _connected(cluster) as client:
            yield client
    elif cluster is None:
        with _local(workers or _cores()) as client:
            yield client
    else:
        raise TypeError(f"cluster must be the address of a scheduler, a distributed.Client or None, got {cluster!r}")


def _cores() -> int:
    """Return how many cores this process may use, or, if the system does not say, how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    import distributed

    try:
        with ThreadPoolExecutor(1) as thread:  # a loop may be running in this thread, as in a notebook
            thread.submit(asyncio.run, _greeted(address)).result()
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        why = str(error) or f"there was no answer in {PATIENCE} s"
        raise OSError(f"no Dask scheduler answers at {address!r}: {why}") from error
    with client:
        yield client


async def _greeted(address: str) -> None:
    """Connect, and raise a TimeoutError if nobody answers: a `Client` would wait for ever."""
    import distributed

    arguments = distributed.Security().get_connection_args("client")
    # Dask's own timeout covers refused connections, with a better message.
    comm = await asyncio.wait_for(distributed.comm.connect(address, timeout=PATIENCE, **arguments), PATIENCE + 1)
    comm.abort()


@contextmanager
def _local(workers: int) -> Iterator[Client]:
    import dask
    import distributed

    # A process that replaces a dead one has the variables from the configuration.
    settings = {f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in THREADS.items()}
    with _environment(THREADS), dask.config.set(settings):
        try:
            cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                # The scheduler's health page: at any port, as another cluster may use the default one.
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            )
        except RuntimeError as error:
            raise RuntimeError(
                f"the processes of the local cluster did not start: {error} Each of them imports the main module: in a "
                'script, what uses a cluster must stand under `if __name__ == "__main__":`'
            ) from error
        with cluster, distributed.Client(cluster, set_as_default=False) as client:
            yield client


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment for a while; processes started meanwhile have them from the beginning."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
