"""Calls that NumPy or a table cannot take a value of a lane for: the help, followed to the letter, works."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.diagnostics.following import followed, lanes_of, load, program, refused, same

pytestmark = pytest.mark.promotion("standard")

X = np.array([0.75, 1.25, 2.5], np.float32)
Y = np.array([1.5, 0.4, 2.0], np.float32)
N = np.array([16785408, 2147483647, 0], np.int32)
K = np.array([0, 5, 8], np.int32)
Z = np.array([1 + 2j, -0.5 + 0.25j, 0.25 - 1j], np.complex64)
XS = np.array([[1, 2.5, 0.2], [0.1, 0.7, 0.3], [3, 1, 2]], np.float32)
IMPORTS = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nimport pcbatch\n"
TABLES = "TABLE = np.array([1.0, 2.0, 4.0])\nROWS = [[1.0, 2.0], [3.0, 4.0]]\n"

NUMPY = [
    "np.nanstd(xs, ddof=1)",
    "np.sort(xs)",
    'np.sort(xs, axis=0, kind="stable")',
    'np.sort(xs, 0, "stable")',
    "np.sort([x, y, 1.0])",
    'np.argsort(xs, kind="stable")',
    "np.clip(xs, 0.5, 1.5)",
    "np.clip(xs, a_min=0.5, a_max=1.5)",
    "np.clip(x, min=0.5, max=None)",
    "np.clip(z, 0, 1 + 1j)",
    "np.clip(2 * z, a_min=0, a_max=1)",
    "np.percentile(xs, 30)",
    'np.percentile(xs, q=[25, 75], method="lower")',
    'np.percentile(xs, 30, None, None, False, "higher")',
    "np.median(xs, axis=0)",
    "np.concatenate((xs, xs), axis=0)",
    "np.concatenate([xs, [x]], 0)",
    "np.concatenate((xs, xs), axis=0, dtype=np.float64)",
    "np.stack([xs, xs], axis=1)",
    "np.hstack((xs, x))",
    "np.where(x > y, x, y)",
    "np.where(xs > 1, xs, 0.0)",
    "np.maximum(x, y)",
    "np.maximum.reduce(xs)",
    "np.add.accumulate(xs)",
    "np.sum([x, y])",
    "np.linalg.norm(xs, ord=1)",
    "np.linalg.norm([x, y])",
    "np.linspace(0.0, x, 4)",
    "np.linspace(0.0, x, num=4, endpoint=False)",
    "np.full(3, x)",
    "np.full((2, 2), x, dtype=np.float64)",
    "np.array([x, y])",
    "np.array([x, y], dtype=np.float64)",
    "np.asarray([x, 1.0], np.float64)",
    "np.asanyarray(xs)",
    "np.ascontiguousarray(xs)",
    "np.float64(x)",
    "np.float32(x)",
    "np.int32(x)",
    "np.int64(x)",
    "np.bool_(x)",
    "np.sqrt(x)",
    "np.abs(xs)",
    "np.power(x, 2)",
    "np.arctan2(x, y)",
    "np.diff(xs, n=1, prepend=0.0)",
    "np.dot(xs, [1.0, 2.0, 3.0])",
    "np.inner(xs, xs)",
    'np.einsum("i,i->", xs, xs)',
    "np.interp(x, [0.0, 1.0, 2.0], [3.0, 4.0, 6.0], left=-1.0)",
    'np.searchsorted(np.array([0.5, 1.0, 2.0]), x, side="right")',
    "np.roll(xs, 1)",
    "np.tile(xs, 2)",
    "np.isclose(x, y, rtol=0.1)",
    "np.allclose(xs, xs, atol=0.1)",
    "np.fix(x)",
    "np.histogram(xs, 3, (0.0, 3.0))[0] * 1.0",
    "np.histogram(xs, bins=3, range=(0.0, 3.0), density=True)",
    'np.quantile(xs, 0.3, method="nearest")',
    "np.nan_to_num(xs, nan=1.0)",
    "np.outer(xs, [1.0, 2.0])",
    "np.average(xs, weights=[1.0, 2.0, 1.0])",
    'np.convolve(xs, [1.0, 0.5], mode="same")',
    "np.polyval([1.0, 2.0], x)",
    "np.prod([x, y])",
    "np.cov(xs, bias=True)",
    "np.digitize(x, [0.5, 1.0, 2.0], right=True)",
    "np.fft.rfft(xs)",
    "np.take(xs, [0, 2])",
    'np.take([1.0, 2.0, 3.0], k, mode="wrap")',
    "np.nanmax(xs)",
    "np.ptp(xs)",
    "np.isin(k, [1, 2, 3])",
    "np.trapezoid(xs, dx=0.5)",
    "np.copy(xs)",
    "np.zeros_like(xs)",
    "np.full_like(xs, x)",
    "np.expand_dims(x, 0)",
    "np.select([x > 1, x > 0], [x, y], 0.0)",
    "np.piecewise(x, [x > 1], [1.0, 0.0])",
    "np.logical_and(x > 1, y > 0)",
    "np.floor_divide(x, y)",
    "np.divmod(x, y)",
    "TABLE.dot(xs)",
    'TABLE.take(k, mode="wrap")',
    "TABLE[k % 3]",
    "np.linalg.solve([[x, 1.0], [1.0, 5.0]], [1.0, 2.0])",
    "np.count_nonzero(xs)",
    "np.nanpercentile(xs, 50)",
    "np.triu([[x, y], [y, x]])",
    "np.minimum(x, y, out=None)",
]
ARGUMENTS = {"x": X, "y": Y, "n": N, "k": K, "xs": XS, "z": Z}


def text_of(head: str, expressions: Sequence[str]) -> str:
    """A program with these expressions."""
    return program(head, ", ".join(ARGUMENTS), expressions)


def follow(head: str, expressions: Sequence[str]) -> str:
    """The program that the helps make of it; every line must have one."""
    text = text_of(head, expressions)
    found = refused(load(text), tuple(ARGUMENTS.values()))
    first = text.splitlines().index("@pcbatch.batch") + 2
    missing = set(range(len(expressions))) - {d.primary.loc.line - first - 1 for d in found if d.primary}
    assert not missing, [expressions[k] for k in missing]
    return followed(text, found)


def check_lanes(head: str, expressions: Sequence[str], text: str) -> None:
    """Every expression of the program that was followed is in every lane what Python gives, where it gives one."""
    names = load(head).names
    found = load(text).f(*ARGUMENTS.values())
    wrong = []
    for lane in range(3):
        example = {name: value[lane] if value.ndim > 1 else value[lane].item() for name, value in ARGUMENTS.items()}
        for got, expression in zip(found, expressions, strict=True):
            want = value_of(expression, names | example)
            if not isinstance(want, Exception) and not same(lanes_of(got, lane), want):
                wrong.append((expression, lane, lanes_of(got, lane), want))
    assert not wrong


def value_of(expression: str, names: dict[str, Any]) -> Any:
    """The value of an expression in plain Python."""
    try:
        return eval(expression, dict(names))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        return error


def body(text: str) -> list[str]:
    """The lines of a program from the batched function on."""
    lines = text.splitlines()
    return lines[lines.index("@pcbatch.batch") :]


def test_numpy() -> None:
    head = IMPORTS + TABLES
    check_lanes(head, NUMPY, follow(head, NUMPY))


@pytest.mark.full_only
def test_numpy_by_another_name() -> None:
    calls = [text for text in NUMPY if re.match(r"np\.[a-z]+\(", text) and "np." not in text[3:]]
    want = body(follow(IMPORTS, calls))
    assert (
        body(follow(f"{IMPORTS}import numpy as other\n", [text.replace("np.", "other.", 1) for text in calls])) == want
    )
    taken = ["abs", "round", "sum", "any", "all", "max", "min"]
    calls = [text for text in calls if text[3:].partition("(")[0] not in taken]
    want = body(follow(IMPORTS, calls))
    assert body(follow(f"{IMPORTS}from numpy import *\nimport jax.numpy as jnp\n", [c[3:] for c in calls])) == want


def test_jax_numpy_by_another_name() -> None:
    """The help is in the user's own names, and says what is not imported."""
    head = "import numpy\nimport pcbatch\n"
    text = follow(head, ["numpy.sin(x)", "numpy.sort(xs)"])
    assert "import jax.numpy as jnp" in text
    check_lanes(head, ["numpy.sin(x)", "numpy.sort(xs)"], text)
    text = follow("import numpy\nimport jax.numpy as np\nimport pcbatch\n", ["numpy.sin(x)"])
    assert "r0 = np.sin(x)" in text
