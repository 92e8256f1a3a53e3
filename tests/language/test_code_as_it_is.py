"""Code that Python runs for an expression without a call of its own, and code that is not compiled at all.

Properties, constructors and operators of the user's classes give what plain Python gives; in functions whose source is
not found, and in other methods that Python calls, bools that would count and questions about types are refused.
"""

from __future__ import annotations

import dataclasses
import functools
import linecache
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError
from pcbatch.diagnostics.diagnostic import Diagnostic

pytestmark = pytest.mark.promotion("standard")

EXAMPLES = [(0.5, 2.0), (-1.5, 1.0), (2.0, -0.5)]
COLUMNS = tuple(np.array(column, np.float32) for column in zip(*EXAMPLES, strict=True))


class Vector:
    """Asks for types, and counts bools, wherever a class can."""

    def __init__(self, x, y):
        self.kind = 1 if isinstance(x, float) else 2
        self.x, self.y = x, y

    def __mul__(self, other):
        if isinstance(other, (int, float)):
            return Vector(self.x * other, self.y * other)
        return self.x * other.x + self.y * other.y

    __rmul__ = __mul__

    def __add__(self, other):
        return Vector(self.x + other.x, self.y) if isinstance(other, Vector) else NotImplemented

    def __radd__(self, other):
        return Vector(self.x + other, self.y) if type(other) is float else Vector(self.x - other, self.y)

    def __neg__(self):
        return (self.x > 0) + (self.y > 0)

    def __lt__(self, other):
        return (self.x < other.x) + (self.y < other.y)

    def __getitem__(self, index):
        return (self.x > 0) + (self.y > 0)

    def __iter__(self):
        yield self.x > 0
        yield self.y > 0

    @property
    def positive(self):
        return self.x > 0

    @property
    def count(self):
        return (self.x > 0) + (self.y > 0)

    @functools.cached_property
    def cached(self):
        return (self.x > 0) + (self.y > 0)

    def __sign(self, x):
        return 1 if isinstance(x, float) and x is not None else 0

    def signs(self):
        return self.__sign(self.x) + self.__sign(self.y)


class Flagged(Vector):
    """Makes its own through `super()`."""

    def __init__(self, x, y):
        super().__init__(x, y)
        self.flag = x > 0


class Pair(NamedTuple):
    """A pytree with properties."""

    a: Any
    b: Any

    @property
    def count(self):
        return (self.a > 0) + (self.b > 0)

    @property
    def is_float(self):
        return isinstance(self.a, float)

    def __mul__(self, other):
        return Pair(self.a * other, self.b) if isinstance(other, (int, float)) else Pair(self.a * 100, self.b)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Record:
    """A dataclass that is a pytree."""

    a: Any
    b: Any

    @property
    def count(self):
        return (self.a > 0) + (self.b > 0)

    def __add__(self, other):
        return Record(self.a + other.a, self.b) if isinstance(other, Record) else Record(self.a + other, self.b)


@dataclasses.dataclass
class Checked:
    """Asks while Python makes it."""

    x: Any

    def __post_init__(self):
        self.kind = 1 if type(self.x) is float else 2


class Total:
    """An attribute that grows."""

    def __init__(self):
        self.n = False

    def add(self, value):
        self.n += value > 0
        return self


def grown(x, y):
    n = x > 0
    n += y > 0
    return n


def counted(*values):
    n = False
    for value in values:
        n += value > 0
    return n


def in_a_list(*values):
    n = [False]
    for value in values:
        n[0] += value > 0
    return n[0]


def ordered(xs):
    return np.argsort(xs)


def blocks(xs):
    return np.bmat([[xs]])


WITHOUT_SOURCE: dict[str, Any] = {}
exec(
    "def positive(x): return x > 0\n"
    "def both(x, y): return (x > 0) + (y > 0)\n"
    "def kind(x): return 1 if isinstance(x, float) else 0\n"
    "def scaled(x): return 2 * x + 1\n",
    WITHOUT_SOURCE,
)
positive, both, kind, scaled = (WITHOUT_SOURCE[name] for name in ("positive", "both", "kind", "scaled"))

ACCEPTED = [
    "Vector(x, y).positive + Vector(y, x).positive",
    "Vector(x, y).count",
    "Vector(x, y).cached",
    "Vector(x, y).kind + 10 * Vector(1, y).kind",
    "Vector(x, y).signs()",
    "(Vector(x, y) * 2.0).x + (2 * Vector(x, y)).y + Vector(x, y) * Vector(y, x)",
    "(Vector(x, y) * x).x + (y * Vector(x, y)).x",
    "(Vector(x, y) + Vector(y, x)).x",
    "(x + Vector(x, y)).x",
    "-Vector(x, y)",
    "Vector(x, y) < Vector(y, x)",
    "sum(Vector(x, y))",
    "Flagged(x, y).flag + Flagged(x, y).flag",
    "Flagged(x, y).kind + Flagged(x, y).count",
    "Pair(x, y).count + 10 * Pair(x, y).is_float",
    "(Pair(x, y) * y).a",
    "Record(x, y).count + (Record(x, y) + Record(y, x)).a + (Record(x, y) + y).a",
    "Total().add(x).add(y).n",
    "grown(x, y) + counted(x, y) + in_a_list(x, y)",
    "(x > 0).__add__(y > 0)",
    "scaled(x)",
    "Vector(x, y)[0]",
    "operator.add(*Vector(x, y))",
    "1 if eqx.is_array(jnp.asarray(x)) else 2",
    "functools.reduce(operator.add, [x > 0, y > 0, x > y])",
]
REFUSED = [
    ("both(x, y)", "PCB303"),
    ("positive(x) + positive(y)", "PCB303"),
    ("kind(x)", "PCB305"),
    ("Checked(x).kind", "PCB305"),
    ("1 if eqx.is_array(x) else 2", "PCB305"),
    ("np.array_equal(jnp.stack([x, y]), jnp.stack([y, x]))", "PCB306"),
    ("np.array_equiv(jnp.stack([x, y]), jnp.stack([y, x]))", "PCB306"),
    ("np.bmat([[jnp.stack([x, y])[None]]]) is None", "PCB306"),
    ("np.argsort(jnp.stack([x, y]))[0]", "PCB306"),
    ("blocks(jnp.stack([x, y])[None]) is None", "PCB306"),
    ("ordered(jnp.stack([x, y]))[0]", "PCB306"),
    ("jax.jit(ordered)(jnp.stack([x, y]))[0]", "PCB306"),
]
NAMES = dict(globals()) | {"operator": operator, "jnp": jnp, "eqx": eqx}


def function(expression: str) -> Callable[..., Any]:
    """A function of `x` and `y` that returns this."""
    text = f"def f(x, y):\n    return {expression}\n"
    file = f"<as it is: {expression}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = dict(NAMES)
    exec(compile(text, file, "exec"), names)
    made: Callable[..., Any] = names["f"]
    return made


def diagnostics(call: Callable[[], object]) -> tuple[Diagnostic, ...]:
    """What is refused."""
    with pytest.raises(CompileError) as info:
        call()
    return tuple(info.value.diagnostics)


def test_classes_of_the_user() -> None:
    expressions = "(" + ",\n    ".join(ACCEPTED) + ",)"
    plain = function(expressions)
    values = pcbatch.batch(plain)(*COLUMNS)
    for lane, example in enumerate(EXAMPLES):
        for text, value, want in zip(ACCEPTED, values, plain(*example), strict=True):
            assert float(value[lane]) == pytest.approx(float(want)), text
            assert (value.dtype == np.bool_) == isinstance(want, bool), text


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_what_is_refused(text: str, code: str) -> None:
    (diagnostic,) = diagnostics(lambda: pcbatch.batch(function(text)).lower(*COLUMNS))
    assert diagnostic.code == code
    assert diagnostic.helps


def test_argsort_under_a_jit_of_the_users_has_a_code() -> None:
    batched = pcbatch.batch(function("ordered(jnp.stack([x, y]))[0]"))
    (diagnostic,) = diagnostics(lambda: jax.jit(batched)(*COLUMNS))
    assert diagnostic.helps == ("write `jnp.argsort` in place of `np.argsort`, also in what is called here",)


def test_operators_of_tracers_are_those_of_jax_elsewhere() -> None:
    def both_of(x: Any, y: Any) -> Any:
        return (x > 0) + (y > 0)

    assert jax.jit(both_of)(1.0, 1.0).dtype == np.bool_
    assert pcbatch.batch(function("jax.vmap(both)(jnp.stack([x]), jnp.stack([y]))[0]"))(*COLUMNS).dtype == np.bool_
    assert pcbatch.batch(function("jax.jit(both)(x, y)"))(*COLUMNS).tolist() == [True, True, True]
