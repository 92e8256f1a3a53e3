"""The work of compiling grows with the program, not with its square.

Work is counted, in calls of functions of the package: from K statements to twice as many it may not grow by much more
than it did in the step before. An analysis that starts again after each change, or that looks at the whole program
for each part of it, grows by twice that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch
from benchmarks.compile_time import KINDS, equations, program
from tests.oracles.plans import replanned

PACKAGE = str(Path(pcbatch.__file__).parent)
SIZES = (15, 30, 60)
LINEAR, SQUARE = 2.0, 4.0  # the growth of what is added, from step to step
MOST = 1.2 * LINEAR  # some passes stop at a certain size, which may lie between two steps
X = jnp.arange(4, dtype=jnp.int32)


def calls(run: Callable[[], Any]) -> int:
    """How many functions of the package are called."""
    own: dict[CodeType, bool] = {}
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if event == "call":
            code = frame.f_code
            if code not in own:
                own[code] = code.co_filename.startswith(PACKAGE)
            count += own[code]

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def growth(counts: list[int]) -> float:
    """What the last step added, relative to the step before."""
    small, middle, large = counts
    return (large - middle) / (middle - small)


def test_the_measure_tells_them_apart() -> None:
    assert growth([7 + 3 * k for k in SIZES]) == LINEAR
    assert growth([7 + k * k for k in SIZES]) == SQUARE


@pytest.mark.share(12)
@pytest.mark.parametrize("kind", KINDS)
def test_the_passes_are_linear(kind: str) -> None:
    program(kind, 5).lower(X)  # what only a first time needs
    counts = [calls(lambda f=program(kind, size): f.lower(X)) for size in SIZES]
    assert growth(counts) < MOST, counts


@pytest.mark.share(12, 6)
@pytest.mark.parametrize("kind", KINDS)
def test_what_xla_gets_is_linear(kind: str) -> None:
    options = {"max_depth": 8, "schedule": "earliest", "emitter": "guard"}
    sizes = [equations(replanned(program(kind, k), **options).lower(X).jaxpr().jaxpr) for k in SIZES]
    assert growth(sizes) < MOST, sizes
