"""Reverse Polish notation with a stack; what goes wrong is caught: a stack that is empty, a division by zero."""

from __future__ import annotations

import numpy as np

import pcbatch
from examples.in_python import check

ADD, SUBTRACT, MULTIPLY, DIVIDE = -1, -2, -3, -4


@pcbatch.batch
def calculate(tokens):
    """The value of an expression whose operators are negative numbers; None if it is wrong."""
    stack = []
    try:
        for token in tokens:
            if token >= 0:
                stack.append(token)
                continue
            b, a = stack.pop(), stack.pop()
            match token:
                case -1:
                    stack.append(a + b)
                case -2:
                    stack.append(a - b)
                case -3:
                    stack.append(a * b)
                case _:
                    stack.append(a // b)
    except (IndexError, ZeroDivisionError):
        return None
    return stack.pop() if len(stack) == 1 else None


def main(lanes: int = 200) -> None:
    """Calculate random expressions, of which many are wrong."""
    rng = np.random.default_rng(0)
    expressions = [expression(rng, rng.integers(1, 5)) for _ in range(lanes)]
    for tokens in expressions[::3]:
        tokens[rng.integers(len(tokens))] = int(rng.integers(-4, 4))
    found = check(calculate, expressions)
    right = sum(value is not None for value in found)
    print(f"rpn: {right} of {lanes} expressions have a value, all as in plain Python")


def expression(rng: np.random.Generator, depth: int) -> list[int]:
    """A random expression."""
    if depth == 0 or rng.random() < 0.2:
        return [int(rng.integers(0, 10))]
    return [*expression(rng, depth - 1), *expression(rng, depth - 1), int(rng.integers(DIVIDE, 0))]


if __name__ == "__main__":
    main()
