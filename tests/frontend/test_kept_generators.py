"""Bodies of kept generators: an object of the class goes on as the generator does, also behind its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.rewrites.kept.counted_elements import CannotResume
from pcbatch.frontend.source.rewrites.kept.generator_classes import class_of_generator


def counted(n):
    for i in range(n):
        yield i * i


def leaves(n):
    k = 0
    while k < n:
        yield k
        k += 1
        if k == 3:
            continue
        if k == 6:
            break
        yield -k
    else:
        yield 100
    yield 200


def nested_loops(xs):
    "doc"
    for i, x in enumerate(xs, 1):
        if x % 2:
            yield i, x
            if x > 6:
                return
        else:
            for y in reversed(xs):
                if y > x:
                    continue
                yield x * y
                if y == 2:
                    break
            else:
                yield "none"
    yield "end"


def together(a, b=3, *rest, c=2):
    for x, y in zip(range(a), range(10, 10 + b)):
        yield x + y * c
        for r in rest:
            yield r
            yield r


def tries(n):
    try:
        for i in range(n):
            yield 10 // (i - 2)
            yield i
    except ZeroDivisionError:
        yield "zero"
    else:
        yield "fine"
    yield "after"


def delegates(n):
    yield from range(n, 0, -1)
    yield from [1, 2]
    x = summed(n)
    yield x
    yield from counted(n)
    yield n


def summed(n):
    return n * (n + 1) // 2


def recursive(n):
    if n == 0:
        return
    yield n
    if n > 1:
        for x in recursive(n - 1):
            yield x + 0.5
        yield from recursive(n - 2)


def ends_inside(n):
    a, b = 0, 1
    while True:
        yield a
        a, b = b, a + b
        if a > n:
            return


def drains(n):
    total = 0
    seen = []
    for i in range(n):
        for j in range(i):
            total += i * j
            seen.append(total)
            if total % 3 == 0:
                yield total, list(seen)
                while seen:
                    yield seen.pop()


def branches(n):
    if n % 2:
        yield "odd"
    elif n % 3:
        yield "three"
        yield n
    else:
        pass
    yield 1 // (n - 4)
    yield 5


def stops_by_another(n):
    it = iter([1, 2, 3])
    while True:
        yield next(it)


def goes_on(n):
    i = 0
    while True:
        i += 1
        if i % 3 == 0:
            continue
        j = i
        while j > 0:
            j -= 1
            if j == 2:
                break
            yield (i, j)
            if j == 5:
                break
        else:
            yield "else"
            continue
        if i > 3 * n:
            break
        yield "bottom"


def matches(n):
    match n % 3:
        case 0:
            yield "zero"
        case 1:
            yield from range(n)
            yield "one"
        case r:
            yield r
    yield "done"


def begins_with_assignments(n):
    state = n & 255
    mask = -1
    for c in "abc":
        state = state * 31 % 257
        yield c * (state % 3)


def is_empty(n):
    return
    yield 1


def yields_nothing(n):
    yield
    yield None


def continues_in_a_handler(n):
    for i in range(n):
        try:
            if i == 1:
                raise KeyError(i)
            yield i
            if i == 2:
                raise ValueError(i)
        except KeyError:
            continue
        yield "ok"


def counts_down(n):
    while n:
        n -= 1
        if n == 1:
            yield "a"
            continue
        yield n


def unset(n):
    for i in range(n):
        if i > 0:
            yield prev  # noqa: F821 - it has a value by then
        prev = i


def cleans_up(n):
    try:
        yield n
    finally:
        n += 1


def receives(n):
    return (yield n)


def in_a_block(n):
    with nullcontext(n):
        yield 1


CASES = [
    (counted, (4,)),
    (counted, (0,)),
    *((leaves, (n,)) for n in (0, 2, 4, 9)),
    (nested_loops, ([1, 2, 3, 4, 9, 5],)),
    (nested_loops, ([2, 4],)),
    (together, (3,)),
    (together, (5, 2, 7, 8)),
    (tries, (5,)),
    (tries, (1,)),
    (delegates, (4,)),
    (recursive, (4,)),
    (ends_inside, (20,)),
    (drains, (6,)),
    *((branches, (n,)) for n in range(7)),
    (stops_by_another, (1,)),
    (goes_on, (2,)),
    (goes_on, (4,)),
    *((matches, (n,)) for n in range(4)),
    (begins_with_assignments, (300,)),
    (is_empty, (1,)),
    (yields_nothing, (1,)),
    (continues_in_a_handler, (5,)),
    (continues_in_a_handler, (2,)),
    (counts_down, (4,)),
]


def _steps(iterator: Iterator[Any]) -> list[Any]:
    """What forty requests give: elements, and exceptions in words."""
    found = list[Any]()
    for _ in range(40):
        try:
            found.append(next(iterator))
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found


def _class(function: Callable[..., Any]) -> Any:
    return class_of_generator(Target(function), Helpers(lambda obj: None))  # type: ignore[arg-type]


@pytest.mark.parametrize(("function", "args"), CASES)
def test_it_goes_on_as_the_generator(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    assert _steps(_class(function)(*args)) == _steps(function(*args))


def test_nothing_runs_before_the_first_element() -> None:
    made = _class(branches)("text")  # whose `%` would raise
    with pytest.raises(TypeError):
        next(made)
    with pytest.raises(StopIteration):
        next(made)


@pytest.mark.parametrize("function", [unset, cleans_up, receives, in_a_block])
def test_what_cannot_go_on_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(CannotResume):
        _class(function)
