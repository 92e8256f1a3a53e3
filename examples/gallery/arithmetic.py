"""Arithmetic expressions by recursive descent: three functions that call each other, on the characters of a text."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import pcbatch


@pcbatch.batch
def expression(text, i):
    """Terms with + and - between them; like the functions below it returns a value and the position after it."""
    total, i = term(text, i)
    while text[i] in (ord("+"), ord("-")):
        sign = 1 if text[i] == ord("+") else -1
        value, i = term(text, i + 1)
        total += sign * value
    return total, i


@pcbatch.batch
def term(text, i):
    """Factors with * between them."""
    product, i = factor(text, i)
    while text[i] == ord("*"):
        value, i = factor(text, i + 1)
        product *= value
    return product, i


@pcbatch.batch
def factor(text, i):
    """A number, a negated factor, or an expression in parentheses."""
    if text[i] == ord("-"):
        value, i = factor(text, i + 1)
        return -value, i
    if text[i] == ord("("):
        value, i = expression(text, i + 1)
        return value, i + 1
    number = 0
    while ord("0") <= text[i] <= ord("9"):
        number = 10 * number + text[i] - ord("0")
        i += 1
    return number, i


def main(lanes: int = 1000) -> None:
    """Evaluate random expressions and compare with Python's `eval`."""
    rng = np.random.default_rng(0)
    texts = [random_expression(rng, 4) for _ in range(lanes)]
    longest = max(map(len, texts))
    codes = jnp.array([[ord(c) for c in text.ljust(longest + 1)] for text in texts])
    values, _ = expression.with_options(in_axes=(0, None))(codes, 0)
    np.testing.assert_array_equal(values, [eval(text) for text in texts])
    print(f"arithmetic: {lanes} expressions of up to {longest} characters, all as Python evaluates them")


def random_expression(rng: np.random.Generator, depth: int) -> str:
    """A random text of the grammar above."""
    kind = rng.integers(5) if depth else 4
    if kind < 3:
        return random_expression(rng, depth - 1) + "+-*"[kind] + random_expression(rng, depth - 1)
    return f"-({random_expression(rng, depth - 1)})" if kind == 3 else str(rng.integers(1, 13))


if __name__ == "__main__":
    main()
