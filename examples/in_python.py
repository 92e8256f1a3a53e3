"""Compares a batch with plain Python: each lane with the function itself, given numbers and lists of Python."""

from __future__ import annotations

from typing import Any

import pcbatch


def check(batched: Any, *args: Any) -> list[Any]:
    """Run a batch, and the plain function once for each lane; raise if a lane differs, else return the results.

    Args:
        batched: a batched function.
        args: arrays with an axis of lanes at the front, `Ragged` lists, or lists of one example for each lane.
    """
    found = lanes(batched(*(pcbatch.ragged(arg) if isinstance(arg, list) else arg for arg in args)))
    examples = zip(*(arg if isinstance(arg, list) else arg.tolist() for arg in args), strict=True)
    expected = [batched.plain(*example) for example in examples]
    for lane, (have, want) in enumerate(zip(found, expected, strict=True)):
        if have != want:
            raise AssertionError(f"lane {lane}: {have}, where plain Python gives {want}")
    return expected


def lanes(result: Any) -> list[Any]:
    """Return the results of all lanes as values of Python."""
    if isinstance(result, tuple):
        return list(zip(*map(lanes, result), strict=True))
    return list(result.tolist())
