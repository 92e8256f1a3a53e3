"""Questions that Python answers from the object, and bools as numbers: as in plain Python on an example, or refused."""

from __future__ import annotations

import collections
import collections.abc
import functools
import linecache
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError
from tests.oracles.interpret_cfg import interpret_cfg

pytestmark = pytest.mark.promotion("standard")

PARAMETERS = "n, x, c, z, xs, flags"
EXAMPLES: list[tuple[Any, ...]] = [
    (3, 2.5, True, 1 + 2j, [1.0, -2.0], [True, False]),
    (-4, -0.5, False, -1j, [0.0, 3.0], [True, True]),
]
COLUMNS = tuple(jnp.array(column) for column in zip(*EXAMPLES, strict=True))


def helper_type(n):
    return type(n).__name__ == "int"


def guarded(n):
    if not isinstance(n, int):
        raise TypeError("an int is needed")
    return n + 1


def near(n):
    return n == 3


def counted(n):
    return near(n) + near(n) + (n > 0)


def nested(n):
    def inner(v):
        return isinstance(v, int)

    return inner(n) + sum(isinstance(v, int) for v in [n, n])


def by_default(n, k=2, *, scale=3):
    return n * k * scale if isinstance(n, int) else 0


@functools.singledispatch
def kind(value):
    return 0


@kind.register(int)
def _(value):
    return 1


@kind.register(float)
def _(value):
    return 2


class Asker:
    """Methods and calls of objects are helpers too."""

    def asks(self, n):
        return type(n) is int

    def __call__(self, n):
        return isinstance(n, float)


ASKER = Asker()

NAMES = {"collections": collections, "numbers": numbers, "operator": operator, "functools": functools, "jax": jax}
TYPES = "int float bool complex str tuple numbers.Number numbers.Integral numbers.Real np.integer np.generic".split()
TYPE_TESTS = ("is int", "== float", "is not bool", "in (int, complex)")
TYPES += "collections.abc.Iterable collections.abc.Hashable collections.abc.Sized list object".split()
SCALARS = "n x c z".split()
ACCEPTED = [
    *(f"isinstance({name}, {cls})" for name in SCALARS for cls in (*TYPES, "np.ndarray", "jax.Array")),
    *(f"isinstance(xs, {cls})" for cls in TYPES),
    *(f"type({name}) {test}" for name in SCALARS for test in TYPE_TESTS),
    *(f"len(type({name}).__name__)" for name in SCALARS),
    *(f"{{int: 1, float: 2, bool: 3}}.get(type({name}), 0)" for name in SCALARS),
    *(f"issubclass(type({name}), int)" for name in SCALARS),
    *(f"{name}.__class__ is int" for name in SCALARS),
    *(f"np.isscalar({name})" for name in SCALARS),
    *(f"callable({name})" for name in (*SCALARS, "xs")),
    *(f"hasattr({name}, {attr!r})" for name in SCALARS for attr in ("shape", "bit_length", "__len__", "is_integer")),
    *(f"getattr({name}, 'shape', 7) == 7" for name in SCALARS),
    "hasattr(xs, 'shape')",
    "hasattr(xs, '__len__')",
    "hasattr(xs, 'bit_length')",
    "getattr(xs, 'nothing', 5)",
    "np.issubdtype(type(n), np.integer)",
    "np.issubdtype(type(x), np.integer)",
    "isinstance(xs, (np.ndarray, jax.Array))",
    "isinstance(xs, int | float)",
    "isinstance(n, (float, np.integer, numbers.Integral))",
    "type(xs) is int",
    "type(n + 1) is int",
    "type(n / 2) is float",
    "type(n // 2) is int",
    "type(n * x) is float",
    "type(n > 2) is bool",
    "type(-c) is int",
    "type(abs(c)) is int",
    "type(round(x)) is int",
    "type(int(x)) is int",
    "type(float(n)) is float",
    "type(int(xs[0])) is int",
    "type(bool(xs[0])) is bool",
    "type(max(n, 2)) is int",
    "type(n in (1, 3)) is bool",
    "type(not xs[0]) is bool",
    "type(n.real) is int",
    "type(x.imag) is float",
    "type(z.real) is float",
    "type(n if x > 0 else 2) is int",
    "(lambda v: type(v) is int)(n)",
    "[type(v) is float for v in (n, x)][1]",
    "type((n, x)[1]) is float",
    # bools count
    "(n == 3) + (n == 3)",
    "True + (n == 3)",
    "(n == 3) + True",
    "(n == 3) - (n < 9)",
    "(n == 3) * (x > 0)",
    "-(n == 3)",
    "+(n == 3)",
    "c + c",
    "c - c",
    "c * c",
    "(n == 3) // (n < 9)",
    "(n == 3) % (n < 9)",
    "(n == 3) ** (n < 9)",
    "(n == 3) << (n < 9)",
    "(n == 3) / (n < 9)",
    "abs(n == 3)",
    "divmod(n == 3, n < 9)[0]",
    "sum([n == 3, n == 3])",
    "sum([c, c], start=c)",
    "sum(v > 0 for v in (n, x, n))",
    "operator.add(n == 3, n == 3)",
    "functools.reduce(operator.add, [n == 3, x > 0, c])",
    "(n == 3) & (x > 0)",
    "(n == 3) | c",
    "(n == 3) ^ True",
    "(not c) + (not c)",
    "(n in (3, 4)) + (n in (3, 4))",
    "(n > 2 and x > 0) + c",
    "(0 < n < 5) + c",
    "bool(n) + bool(n)",
    "any(v > 0 for v in (n, x)) + all(v > 0 for v in (n, x))",
    "(lambda v: v + v)(n == 3)",
    "(n == 3) + n",
    "(n == 3) + 0.5",
    "(n == 3).real + c",
    # bools of arrays do not
    "jnp.any(xs > 0) + jnp.any(xs > 0)",
    "jnp.any(xs > 0) + c",
    "flags + flags",
    "flags + c",
    "flags[0] + flags[1]",
    "~jnp.any(xs > 0)",
    "~(xs[0] > 0)",
    "~flags",
    "jnp.asarray(c) + jnp.asarray(c)",
    "~jnp.asarray(c)",
    "jnp.bool_(c) + c",
    "jax.vmap(near)(xs) + jax.vmap(near)(xs)",
    "~n",
    # powers
    "n ** 2",
    "x ** n",
    "2 ** (n + 4)",
    "2.0 ** n",
    "n ** -1",
    "n ** -2",
    "pow(2, n + 4)",
    "xs ** 2",
    # helpers without a decorator
    "helper_type(n)",
    "helper_type(x)",
    "guarded(n)",
    "counted(n)",
    "near(n) + near(n)",
    "nested(n)",
    "by_default(n, scale=2)",
    "by_default(x)",
    "kind(n)",
    "kind(x)",
    "kind(c)",
    "ASKER.asks(n)",
    "ASKER.asks(x)",
    "ASKER(x)",
    "functools.partial(by_default, k=5)(n)",
    "sum(map(near, [n, n]))",
    "jax.tree.map(near, (n, n))[0] + near(n)",
]
REFUSED = [
    *((f"isinstance(xs, {cls})", "PCB305") for cls in ("np.ndarray", "jax.Array")),
    ("type(xs)", "PCB305"),
    ("np.isscalar(xs[0])", "PCB305"),
    ("isinstance(max(n, x), int)", "PCB305"),
    ("isinstance(n if c else x, int)", "PCB305"),
    ("isinstance(n if c else xs[0], int)", "PCB305"),
    ("id(n)", "PCB305"),
    ("hash(n)", "PCB305"),
    ("~(n == 3)", "PCB303"),
    ("~c", "PCB303"),
    ("(c if n > 0 else flags[0]) + c", "PCB303"),
    ("guarded(x)", "PCB303"),
    ("jax.lax.stop_gradient(c) + c", "PCB303"),
]


def function(expressions: Sequence[str]) -> Callable[..., Any]:
    """A function of one example that gives the values of all expressions."""
    text = f"def f({PARAMETERS}):\n    return (\n" + "".join(f"        {each},\n" for each in expressions) + "    )\n"
    name = f"<questions {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = globals() | NAMES
    exec(compile(text, name, "exec"), space)
    found: Callable[..., Any] = space["f"]
    return found


def test_what_is_accepted_equals_plain_python() -> None:
    fn = function(ACCEPTED)
    stages = pcbatch.batch(fn).lower(*COLUMNS).stages
    assert stages.result is not None
    wrong = []
    for k, example in enumerate(EXAMPLES):
        arrays = (jnp.array(part) if isinstance(part, list) else part for part in example)
        leaves, _ = interpret_cfg(stages.optimised_cfg, [column[k] for column in COLUMNS])
        found = jax.tree.unflatten(stages.result.tree, leaves)
        for text, got, want in zip(ACCEPTED, found, fn(*arrays), strict=True):
            same = np.asarray(got).dtype.kind == np.asarray(want).dtype.kind
            if not same or not np.allclose(np.asarray(got), np.asarray(want)):
                wrong.append((text, example[:4], got, want))
    assert not wrong


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_what_is_refused(text: str, code: str) -> None:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(function([text])).lower(*COLUMNS)
    (found,) = info.value.diagnostics
    assert found.code == code and found.helps


def test_a_guard_compiles_away() -> None:
    def guarded_lane(n):
        if not isinstance(n, int):
            raise TypeError("an int is needed")
        return n + 1

    batched = pcbatch.batch(guarded_lane)
    assert batched(jnp.array([1, 2])).tolist() == [2, 3]
    assert "fail error" not in batched.lower(jnp.array([1, 2])).as_text("opt")
    with pytest.raises(CompileError, match="PCB317"):
        batched(jnp.array([1.0, 2.0]))


def test_a_variable_of_two_types_is_not_one_of_them() -> None:
    def mixed(n):
        total = 0
        while n > 0:
            total = total + 0.5
            n -= 1
        return isinstance(total, float)

    with pytest.raises(CompileError, match="PCB305"):
        pcbatch.batch(mixed)(jnp.array([0, 2]))


def test_classes_of_match() -> None:
    def matched(n, x):
        found = 0
        for value in (n, x, n > 0):
            match value:
                case bool():
                    found = found * 10 + 3
                case int(k):
                    found = found * 10 + 1 + 0 * k
                case float():
                    found = found * 10 + 2
        return found

    assert pcbatch.batch(matched)(jnp.array([5]), jnp.array([0.5])).tolist() == [matched(5, 0.5)] == [123]


def test_match_of_containers_of_the_lane() -> None:
    def of_dicts(n):
        d = {k: k + 1 for k in range(n)}
        match d:
            case {1: v, 2: w, **rest}:
                return v + w * 10 + 100 * len(rest) + 1000 * sum(rest.values()) + 10_000 * len(d)
            case {1: v}:
                return v
            case {}:
                return -1

    def that_may_be_none(n):
        pair = (n, 2) if n > 2 else None
        xs, d = None, None
        if n > 3:
            xs, d = list(range(n)), {n: 5}
        found = 0
        match pair:
            case (a, b):
                found += a * 10 + b
            case None:
                found -= 5
        match xs:
            case [a, b, c, *rest]:
                found += a + b + c + 1000 * len(rest)
        match d:
            case {4: x}:
                found += 100_000 * x
            case None:
                found -= 50_000
        return found

    def of_others(n):
        found = 0
        match range(n):
            case (a, b):
                found += a + 10 * b
        match str(n).encode():
            case (_, _):
                found += 1000
        return found

    for f in (of_dicts, that_may_be_none, of_others):
        assert pcbatch.batch(f)(jnp.array([0, 2, 3, 4, 15])).tolist() == [f(n) for n in (0, 2, 3, 4, 15)]


def test_a_count_of_bools_in_a_loop() -> None:
    def hits(n):
        found = n == 3
        for k in range(n):
            found = found + (k == 1)
        return found * 1

    def many(n):
        count = 0
        for k in range(n):
            count += (k == 1) + (k % 2 == 1)
        return count

    for fn in (hits, many):
        assert pcbatch.batch(fn)(jnp.array([0, 3, 5])).tolist() == [fn(n) for n in (0, 3, 5)]


def test_a_lane_with_a_negative_exponent_fails() -> None:
    def power(n):
        return 2**n

    result = pcbatch.batch(power).run(jnp.array([3, -1, 0]))
    assert result.status.tolist() == [0, int(pcbatch.Status.LIMIT), 0]
    assert result.value.tolist()[::2] == [8, 1]


def test_an_unsigned_exponent_is_not_checked() -> None:
    def power(n):
        return 2**n

    batched = pcbatch.batch(power, numbers="jax")
    assert "fail" not in batched.lower(jnp.array([3, 4], jnp.uint32)).as_text("opt")
    assert "fail" in batched.lower(jnp.array([3, 4])).as_text("opt")
