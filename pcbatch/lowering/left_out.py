"""Passes that are left out, and phases, for a comparison of what each of them gains (`benchmarks/ablation.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from pcbatch.contexts import setting

PASSES = frozenset(
    (
        "clone_shared",
        "fuse_products",
        "hoist_uniform",
        "phases",
        "shared_values",
        "split_loops",
        "superblocks",
        "unroll_loops",
        "unroll_recursion",
    )
)

_left_out: ContextVar[frozenset[str]] = ContextVar("pcbatch_passes_left_out", default=frozenset())


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Compile without some of `PASSES`; programs that were compiled before stay as they are."""
    unknown = frozenset(names) - PASSES
    if unknown:
        raise ValueError(f"there is no pass {sorted(unknown)[0]!r} that can be left out")
    with setting(_left_out, frozenset(names)):
        yield


def runs(name: str) -> bool:
    """Return whether a pass runs."""
    return name not in _left_out.get()
