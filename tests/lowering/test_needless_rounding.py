"""What hides floats from compilers goes where they would compute nothing otherwise, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.extend.core as jex
import numpy as np
import pytest

import pcbatch
from pcbatch.data.rounding import rounded_p
from pcbatch.lowering.jaxpr_passes.needless_rounding import without_needless

pytestmark = pytest.mark.promotion("standard")

X, Y = np.array([1.5, 2.0], np.float32), np.array([0.5, 3.0], np.float32)


def chain(x, y):
    return x * y * (x + 0.1)


def compared(x, y):
    return x * y > 0.3


def quotient_of_sums(x, y):
    return (x + 0.1) / (y + 0.3)


def summed(x, y):
    return x * y + x


def constants(x, y):
    return x * 0.3 * 0.7 + y


def sum_of_constants(x, y):
    return (x + 0.1) + 0.2


def quotients(x, y):
    return x / y / 3.0


def negated(x, y):
    return -(x * y) + x


def selected(x, y):
    return max(x * y, y)


COUNTS = [
    (chain, 3, 1),  # the last product is a result
    (compared, 1, 0),
    (quotient_of_sums, 4, 0),
    (summed, 1, 1),
    (constants, 2, 2),
    (sum_of_constants, 2, 2),
    (quotients, 4, 4),
    (negated, 1, 1),
    (selected, 1, 1),
]


@pytest.mark.parametrize(("fn", "before", "after"), COUNTS, ids=[fn.__name__ for fn, *_ in COUNTS])
def test_only_what_must_be_hidden_is(fn: Callable[..., Any], before: int, after: int) -> None:
    (closed,) = jaxprs(fn)
    assert (hidden(closed), hidden(without_needless(closed))) == (before, after)
    again = without_needless(without_needless(closed))
    assert hidden(again) == after
    args = (X[0], Y[0])[: len(closed.jaxpr.invars)]
    np.testing.assert_array_equal(*(jex.jaxpr_as_fun(c)(*args)[0] for c in (closed, again)))


def jaxprs(fn: Callable[..., Any]) -> list[Any]:
    """The jaxprs of the primitives of a function that hide floats."""
    program = pcbatch.batch(fn).lower(X, Y).stages.cfg
    fns = [op.expr.fn for block in program.functions[0].blocks for op in block.ops if hasattr(op, "expr")]
    return [fn.closed for fn in fns if hidden(fn.closed)]


def hidden(closed: Any) -> int:
    """How many equations hide a float."""
    return sum(eqn.primitive is rounded_p for eqn in closed.jaxpr.eqns)
