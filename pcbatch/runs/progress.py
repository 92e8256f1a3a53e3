"""How a run tells how far it is: a function of the user, or a bar of tqdm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from pcbatch.call.arguments import usage
from pcbatch.diagnostics.short_repr import short
from pcbatch.runtime.execute.host_loop import Report, RunCounts

Progress = Callable[[int, int | None], object]


@contextmanager
def reporting(progress: Any, unit: str) -> Iterator[Report | None]:
    """What is called with how a run stands: for a function, with what is done of how many; for True, a bar."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        with _bar(unit) as bar:

            def show(standing: RunCounts) -> None:
                bar.total = standing.total
                bar.set_postfix(trips=standing.trips, refresh=False)
                bar.update(standing.finished - bar.n)

            yield show
            bar.refresh()
    elif callable(progress):
        yield lambda standing: progress(standing.finished, standing.total)
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
