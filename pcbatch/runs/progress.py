"""Progress of a monitored run, told to a function of the user or shown as a bar of tqdm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.runtime.execute.host_loop import Report, RunCounts

Progress = Callable[[int, int | None], object]


@contextmanager
def reporting(progress: Any, unit: str) -> Iterator[Report | None]:
    """Yield the function that is called with the counts of a run between two programs; None if there is none.

    Args:
        progress: the option: a function of the numbers of finished and of all inputs, or True for a bar.
        unit: what the bar counts, "lanes" or "inputs".

    Raises:
        UsageError: it is something else, or tqdm is not installed.
    """
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar(unit) as bar:

            def show(counts: RunCounts) -> None:
                bar.total = counts.total
                bar.set_postfix(trips=counts.trips, refresh=False)
                bar.update(counts.finished - bar.n)

            yield show
            bar.refresh()
    elif callable(progress):
        yield lambda counts: progress(counts.finished, counts.total)
    else:
        title = f"progress must be a function of two numbers, or True for a bar, not {short(progress)}"
        raise usage("PCB417", title, help="write `progress=lambda done, total: print(done, total)`")


def _bar(unit: str) -> AbstractContextManager[Any]:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        help = "install it with `pip install tqdm`, or give a function: `progress=lambda done, total: print(done)`"
        raise usage("PCB417", "`progress=True` needs the package tqdm, which is not installed", help=help) from None
    bar: AbstractContextManager[Any] = tqdm(unit=f" {unit}")
    return bar
