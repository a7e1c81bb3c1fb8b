"""How many threads numerical libraries take, calls that Ctrl-C can end, and processes that end with this one."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let sums run on the calling thread alone; also a decorator.

    Sums over queries are short. Split among threads each waits for the slowest: on a machine that is busy with other
    work the dot product of 100,000 numbers took 10 ms instead of 0.02. So also the last digit does not depend on how
    many processors there are.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back while joblib starts its processes, which never see it then; after that it comes through.

    A terminal sends it to all of them. They have nothing to do with it, since this process ends them, but one that is
    still loading its modules would write a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # not POSIX
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # joblib needs it, and its start would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def interruptible(call: Callable[[], T], interrupt: Callable[[], Any]) -> T:
    """Run a call of DuckDB in a thread: in this one it makes an error of its own of Ctrl-C and of what signals raise.

    Parameters
    ----------
    call : callable
        The call.
    interrupt : callable
        Ends the call early.

    Returns
    -------
    object
        What the call gives.
    """
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(call)
        try:
            return answer.result()
        except BaseException:
            while not answer.done():  # an interrupt that comes before the call has begun is forgotten
                interrupt()
                wait([answer], 0.1)
            raise


def in_processes(jobs: Iterable[Any], n_jobs: int, *, ordered: bool = False) -> Iterator[Any]:
    """Run calls that joblib's ``delayed`` made in several processes, which begin at once.

    Parameters
    ----------
    jobs : iterable
        The calls.
    n_jobs : int
        The number of processes; -1 is one per core.
    ordered : bool
        Give the results in the order of the calls, not as they come.

    Returns
    -------
    iterator
        The results.
    """
    from joblib import Parallel

    # Loky whatever the surroundings prefer: its workers are children of this process, as `_follow` takes for granted.
    run = Parallel(
        n_jobs=n_jobs,
        backend="loky",
        return_as="generator" if ordered else "generator_unordered",
        initializer=_follow,
        initargs=(os.getpid(),),
    )
    with held_interrupts():
        results: Iterator[Any] = run(jobs)
    return results


def _follow(parent: int) -> None:
    """End this worker soon after its parent: one that is killed cannot tell its workers to stop."""
    if os.getpid() == parent:  # a thread
        return

    def watch() -> None:
        while os.getppid() == parent:  # false from the start if the parent was killed while this process began
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
