"""Helps that change how a program is built, a loop or a `def` in place of a call: the program that they tell works."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.diagnostics.following import Module, load, refused, same

pytestmark = pytest.mark.promotion("standard")

X = np.array([0.75, 1.25, 2.5], np.float32)
HEAD = "import functools\nimport jax\nimport jax.numpy as jnp\nimport pcbatch\n\n\n@pcbatch.batch\ndef f(x):\n"

# A program, the texts that its help has, and the program that follows it.
CASES = [
    (
        """
        def body(c, y):
            if c > 2:
                c = c - y
            return c + y, c
        return jax.lax.scan(body, x, jnp.arange(3.0))[0]
        """,
        ["write `jax.lax.scan` as a loop in the batched function, `for x in xs:`"],
        """
        c = x
        for y in jnp.arange(3.0):
            if c > 2:
                c = c - y
            c = c + y
        return c
        """,
    ),
    (
        """
        g = jax.grad(lambda z: z**2 - x)
        for _ in range(2):
            x = x + g(x)
        return x
        """,
        ["`def g(z): return jax.grad(lambda z: z ** 2 - x)(z)`"],
        """
        def g(z): return jax.grad(lambda z: z ** 2 - x)(z)
        for _ in range(2):
            x = x + g(x)
        return x
        """,
    ),
    (
        """
        for y in jnp.arange(3.0):
            g = jax.grad(lambda z: z**2 * y)
            x = x + g(x)
        return x
        """,
        ["`def g(z): return jax.grad(lambda z: z ** 2 * y)(z)`", "or call it where it is made: `jax.grad("],
        """
        for y in jnp.arange(3.0):
            def g(z): return jax.grad(lambda z: z ** 2 * y)(z)
            x = x + g(x)
        return x
        """,
    ),
    (
        """
        if x > 1:
            return tuple([x, 2 * x])
        return x
        """,
        ["return the same number of values on every path", "`jnp.zeros_like(x)`"],
        """
        if x > 1:
            return x, 2 * x
        return x, jnp.zeros_like(x)
        """,
    ),
]
WANT = [
    [3.75, 2.25, 2.5],
    [9 * x for x in X.tolist()],
    [15 * x for x in X.tolist()],
    None,
]


def written(body: str) -> Module:
    """The program with this body."""
    return load(HEAD + "\n".join(line[4:] for line in body.strip("\n").splitlines()) + "\n")


@pytest.mark.parametrize(("before", "texts", "after", "want"), [(*c, w) for c, w in zip(CASES, WANT, strict=True)])
def test_it_works(before: str, texts: Sequence[str], after: str, want: object) -> None:
    helps = "\n".join(refused(written(before), (X,))[0].helps)
    for text in texts:
        assert text in helps
    got = written(after).f(X)
    if want is None:
        assert same(got, (X, np.where(X > 1, 2 * X, 0)))
    else:
        assert same(got, np.array(want, np.float32))


def test_methods_that_a_number_of_a_lane_lacks() -> None:
    (fault,) = refused(load(HEAD + "    return x.hex()\n"), (X,))
    assert fault.helps == ("the value itself is compared and computed with; its text can only be shown",)
