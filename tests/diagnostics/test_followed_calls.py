"""Helps for calls of helpers, tables and batched functions, followed to the letter."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.diagnostics.following import load, refused, same

pytestmark = pytest.mark.promotion("standard")

HEAD = "import math\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\nimport pcbatch\n"
X = np.array([0.5, 2.0, 3.0], np.float32)
K = np.array([0, 1, 2], np.int32)
XS = np.array([[1, 2.5, 0.2], [0.1, 0.7, 0.3], [3, 1, 2]], np.float32)

HELPERS = """
def half(x):
    return x / 2


def square(x):
    return x * x


def check(x):
    if x > 2.5:
        raise ValueError(f"{x} is large")


OPS = [half, square, abs]
NAMES = ["a", "b", "c"]
RAGGED = [[1.0], [2.0, 3.0], [4.0]]


@pcbatch.batch
def doubled(x):
    return 2 * x


@pcbatch.batch
def halved(x):
    while x > 1:
        x = x / 2
    return x

"""


ENDED = ('raise ValueError(f"{x} is large")', 'raise ValueError(f"{x} is large")\n    return 0')


def batched(body: str, helpers: str = HELPERS) -> Any:
    """A program with this body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return load(f"{HEAD}{helpers}\n@pcbatch.batch\ndef f(x, k, xs):\n{lines}\n")


def helps(body: str, helpers: str = HELPERS) -> tuple[str, ...]:
    """What is told to write."""
    (fault,) = refused(batched(body, helpers), (X, K, XS))
    return fault.helps


def test_a_check_that_is_called_for_its_effect() -> None:
    """It is compiled along, so nothing has to be followed: its exceptions end lanes."""
    inside = "def check(v):\n    if v > 2.5:\n        raise ValueError(v)\ncheck(x)\nreturn x"
    for body in ("check(x)\nreturn x", inside):
        assert batched(body).f.run(X, K, XS).status.tolist() == [0, 0, pcbatch.Status.ERROR]


def test_a_check_of_another_file() -> None:
    names = load(f"{HEAD}{HELPERS}".replace(*ENDED)).names
    module = load(f"{HEAD}\n@pcbatch.batch\ndef f(x):\n    check(x)\n    return x\n")
    module.names["check"] = names["check"]
    assert module.f.run(X).status.tolist() == [0, 0, pcbatch.Status.ERROR]


def test_other_statements() -> None:
    assert helps("jnp.sin(x)\nreturn x") == ("assign its value to a variable, or leave it out",)
    assert helps("np.add(xs, 1.0, out=xs)\nreturn x") == ("assign what it gives: `xs = np.add(xs, 1.0)`",)
    assert helps("x.check()\nreturn x")[0] == "if it changes `x`, make a new value and assign it: `x = ...`"


def test_a_table_of_functions() -> None:
    help = helps("ops = list(OPS)\nreturn ops[k](x)")[0]
    (code,) = re.findall(r"`([^`]+)`", help)
    assert code == "ops[0](...) if k == 0 else ops[1](...) if k == 1 else ops[2](...)"
    got = batched(f"ops = list(OPS)\nreturn {code.replace('...', 'x')}").f(X, K, XS)
    assert same(got, [0.25, 4.0, 3.0])
    assert same(batched("return OPS[k](x)").f(X, K, XS), got)


def test_empty_or_not() -> None:
    """`jnp.any` is not what Python asks of a sequence."""
    for condition in ("xs", "not xs"):
        found = helps(f"if {condition}:\n    return x\nreturn 2 * x")
        assert "`len(xs) == 0`" in found[0]
        assert "`len(xs) > 0`" in found[0]
    (compared, _) = helps("if xs > 1:\n    return x\nreturn 2 * x")
    assert compared == "`jnp.all(xs > 1)` asks for all elements, `jnp.any(xs > 1)` for one of them"
    got = batched("if len(xs) == 0:\n    return x\nif jnp.all(xs > 1):\n    return 3 * x\nreturn 2 * x").f(X, K, XS)
    assert same(got, 2 * X)


def test_a_batched_function_that_is_mapped() -> None:
    (help,) = helps("return jax.lax.map(halved, xs)")
    assert help.startswith("call it in a loop, `for k in range(len(xs)):` with `ys = ys.at[k].set(halved(xs[k]))`")
    assert "halved.plain" not in help
    loop = "ys = jnp.zeros(len(xs))\nfor k in range(len(xs)):\n    ys = ys.at[k].set(halved(xs[k]))\nreturn ys"
    module = batched(loop)
    assert same(module.f(X, K, XS), [[module.names["halved"].plain(v) for v in row] for row in XS])
    assert "write `doubled.plain`" in helps("return jax.lax.map(doubled, xs)")[1]
    assert same(batched("return jax.lax.map(doubled.plain, xs)").f(X, K, XS), 2 * XS)


def test_masks() -> None:
    (help,) = helps("mask = xs > 1\nys = xs.at[mask].add(x)\nreturn ys")
    assert help == "write `jnp.where(mask, xs + (x), xs)`"
    got = batched("mask = xs > 1\nys = jnp.where(mask, xs + (x), xs)\nreturn ys").f(X, K, XS)
    assert same(got, np.where(XS > 1, XS + X[:, None], XS))


@pytest.mark.parametrize("ends", ["n:", ":n", "-n:", ":-n", "1:n", "n::2", "n:-1"])
def test_masks_of_slices(ends: str) -> None:
    """What is outside of the slice is zero."""
    module = load(f"{HEAD}@pcbatch.batch\ndef f(xs, n):\n    return xs[{ends}]\n")
    (fault,) = refused(module, (XS, K))
    code = re.findall(r"`(jnp\.where[^`]+)`", fault.helps[-1])[0]
    rows = load(f"{HEAD}def f(xs, n):\n    k = jnp.arange(len(xs))\n    return {code}\n").f
    for n in range(4):
        want = np.zeros(3, np.float32)
        part = eval(f"np.s_[{ends}]", {"np": np, "n": n})
        want[part] = XS[0][part]
        assert np.asarray(rows(XS[0], n)).tolist() == want.tolist(), (code, n)
