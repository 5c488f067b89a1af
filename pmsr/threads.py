"""What the threads of a process share: libraries that take one at a time, BLAS, the screen."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, RLock

from threadpoolctl import ThreadpoolController

# Held by whoever does algebra, compiles, or changes the table of operators. SymPy sets mpmath's
# precision, and PyTensor its flags, for the whole process and not for one thread. It is one lock,
# so that no two can wait for each other, and it costs no time: all this is Python, of which one
# thread runs at a time anyway. Whoever holds it must not ask for a cached_property that needs it
# too: in Python 3.11 another thread may be inside that property, waiting for the lock.
ONE_AT_A_TIME = RLock()

# Held by whoever shows progress: a second live display would draw over the first, or raise.
SCREEN = Lock()

_counting = Lock()
_n_inside = 0
_before: list[int] = []


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread, because sums in another order would change the last digits.

    The number belongs to the process. The first who comes in sets it, and the last who goes out
    puts it back; if each did so for itself, the first to go would let the others loose, and the
    last might leave one thread behind for good.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with one_blas_thread():
    ...     {blas["num_threads"] for blas in threadpool_info() if blas["user_api"] == "blas"}
    {1}
    """
    global _n_inside, _before
    shared, own = _blas()
    with _counting:
        if _n_inside == 0:
            _before = [library.get_num_threads() for library in shared.lib_controllers]
            _set_threads(shared, [1] * len(_before), _before)
        _n_inside += 1
    try:
        with own.limit(limits=1):
            yield
    finally:
        with _counting:
            _n_inside -= 1
            if _n_inside == 0:
                _set_threads(shared, _before, [1] * len(_before))


def _set_threads(libraries: ThreadpoolController, numbers: list[int], now: list[int]) -> None:
    if numbers == now:
        return
    for library, number in zip(libraries.lib_controllers, numbers, strict=True):
        library.set_num_threads(number)
    # For threadpoolctl the thread that sets a number is in control of it until it leaves a limit;
    # another one, such as the last who goes out here, would be ignored.
    with libraries.limit(limits=None):
        pass


@cache
def _blas() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Find the BLAS libraries: those with a number for the process, and for each thread.

    OpenMP has one for each thread that calls it, and so has a BLAS that is built on it.
    """
    found = ThreadpoolController().select(user_api="blas")
    layers = {getattr(library, "threading_layer", None) for library in found.lib_controllers}
    layers.discard("openmp")
    return found.select(threading_layer=list(layers)), found.select(threading_layer="openmp")
