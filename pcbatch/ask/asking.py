"""`f.ask`, `pcbatch.gather` and `pcbatch.serving`: the door of this folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pcbatch.ask.fibers import current_fiber, gathered, running_loop
from pcbatch.ask.leaves import traced
from pcbatch.ask.request import Answer, Asked, request_of
from pcbatch.ask.scheduler import Scheduler, checked_settings
from pcbatch.ask.server import Server, awaited, server_of
from pcbatch.call.usage import usage
from pcbatch.diagnostics.deprecated import frames_of_ours
from pcbatch.runtime.vm.raw_result import is_staged

T = TypeVar("T")
R = TypeVar("R")

_told: set[str] = set()  # functions that were asked outside of everything


def asked(function: Asked, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool) -> Any:
    """Ask a batched function; see `Batched.ask`."""
    if is_staged():
        raise traced(f"`{function.__name__}.ask` is called")
    request = request_of(function, args, kwargs, keep)
    if (fiber := current_fiber()) is not None:
        return fiber.wait(request)
    if (loop := running_loop()) is not None:
        return awaited(request, loop)
    if (server := server_of(function)) is not None:
        return server.wait(request)
    _tell(function.__name__)
    answers: list[Answer] = []
    request.deliver = answers.append
    Scheduler().begin([request])()
    return answers[0].get()


def _tell(name: str) -> None:
    if name not in _told:
        _told.add(name)
        text = (
            f"`{name}.ask` is called outside of `pcbatch.gather`, `pcbatch.serving` and coroutines: its batch has one "
        )
        text += "example, and nobody else's. Run the code that asks by `pcbatch.gather(function, items)`"
        warnings.warn(text, stacklevel=frames_of_ours())


def gather(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    limit: int | None = None,
    progress: Any = None,
    timeout: float | None = None,
    return_exceptions: bool = False,
) -> list[R]:
    """Run plain Python for many items at once, so that what it asks batched functions is answered in batches.

    Each call runs in a fiber: when it asks (`f.ask`), the others go on; when all wait, the largest set of requests that
    one call can answer makes a batch. Nothing runs in parallel but the batches: there are no locks to think of. Needs
    the extra `serving` (greenlet).

    Args:
        function: plain Python of one item; it may call anything.
        items: an iterable.
        limit: how many calls may be under way; None: all. An iterator of many items is read as they end.
        progress: True for a bar of tqdm, or a function that is called with the numbers of calls that have ended, and of
            all.
        timeout: seconds after which it raises.
        return_exceptions: whether an exception of a call is its result; else the first one ends all and is raised.

    Returns:
        What the calls return, in the order of the items.

    Raises:
        TimeoutError: the time is over; it says where calls wait, and `results` has those of calls that have ended.

    Example:
        >>> import jax.numpy as jnp, pcbatch
        >>> @pcbatch.batch
        ... def half(x):
        ...     return x / 2
        >>> def halvings(x):
        ...     count = 0
        ...     while x > 1:
        ...         x = half.ask(x)
        ...         count += 1
        ...     return count
        >>> pcbatch.gather(halvings, [8.0, 3.0, 100.0])
        [3, 2, 7]
    """
    return gathered(
        function,
        items,
        limit=limit,
        progress=progress,
        timeout=timeout,
        return_exceptions=return_exceptions,
    )


def serving(
    *functions: Any,
    min_batch: int | None = None,
    max_wait: float | None = None,
    buckets: Iterable[int] | None = None,
    timeout: float | None = None,
    continuous: bool = True,
) -> Server:
    """Answer what threads and coroutines ask of batched functions, in batches, by a thread.

    Args:
        functions: those that are served; none: all.
        min_batch: how many requests a batch waits for. None: what there is when the thread is free.
        max_wait: seconds after which a request waits for no others. (0.002 with `min_batch`.)
        buckets: the sizes of batches, which are filled up, so that there are few programs. None: powers of two.
        timeout: seconds after which an example that still runs fails.
        continuous: whether a request of a function that loops or recurses takes a free lane of the running machine, and
            is answered when that lane has ended; if not, all requests make batches.

    Returns:
        A context manager; inside, any thread may ask, and `server.report()` counts.

    Raises:
        UsageError: an option that is none.
    """
    for function in functions:
        if not hasattr(function, "ask"):
            raise usage("PCB470", f"`serving` takes batched functions, not {function!r}", help="use `@pcbatch.batch`")
    return Server(functions, checked_settings(min_batch, max_wait, buckets, timeout, continuous))
