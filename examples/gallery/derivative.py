"""The value and the derivative of an expression, a tree of Python objects that is another one in every lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import pcbatch


class Number(NamedTuple):
    """A constant."""

    value: float


class Variable(NamedTuple):
    """The variable."""


class Sum(NamedTuple):
    """The sum of two expressions."""

    left: Number | Variable | Sum | Product
    right: Number | Variable | Sum | Product


class Product(NamedTuple):
    """The product of two expressions."""

    left: Number | Variable | Sum | Product
    right: Number | Variable | Sum | Product


@pcbatch.batch
def derivative(e, x):
    """The value of an expression at `x`, and its derivative there."""
    match e:
        case Number(value):
            return value, 0.0
        case Variable():
            return x, 1.0
        case Sum(left, right):
            (u, du), (v, dv) = derivative(left, x), derivative(right, x)
            return u + v, du + dv
        case _:
            (u, du), (v, dv) = derivative(e.left, x), derivative(e.right, x)
            return u * v, du * v + u * dv


def main(lanes: int = 200) -> None:
    """Differentiate random expressions; numbers are small integers, so that all is exact."""
    rng = np.random.default_rng(0)
    trees, xs = [tree(rng, 4) for _ in range(lanes)], rng.integers(-2, 3, lanes).astype(np.float32)
    found = np.stack(derivative(pcbatch.pack(trees), xs), axis=1)
    expected = [derivative.plain(e, x) for e, x in zip(trees, xs.tolist(), strict=True)]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))
    print(f"derivative: {lanes} expressions, derivatives up to {found[:, 1].max():.0f}, all as in plain Python")


def tree(rng: np.random.Generator, depth: int) -> Number | Variable | Sum | Product:
    """A random expression."""
    if depth == 0 or rng.random() < 0.2:
        return Variable() if rng.random() < 0.5 else Number(float(rng.integers(-2, 3)))
    return (Sum, Product)[rng.integers(2)](tree(rng, depth - 1), tree(rng, depth - 1))


if __name__ == "__main__":
    main()
