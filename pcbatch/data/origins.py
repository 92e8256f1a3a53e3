"""The origins of a primitive's values: for each, whether it is a number of Python in the plain function.

While a primitive is traced all values of lanes are tracers. In the plain function of one example some of them are
Python's own numbers (arguments, what operators make of them) and others are arrays (what functions of JAX give,
elements of arrays). Python treats these differently: `True + True` is 2, and for arrays of bools it is a logical or.
So the origins of tracers are recorded here, by identity, while one primitive is traced. Operators and builtins of the
front end record and read them, type inference passes them from primitive to primitive.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Iterator
from contextvars import ContextVar
from enum import Enum
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.contexts import setting
from pcbatch.data.values import Value
from pcbatch.decisions import Cure
from pcbatch.errors import Refusal

Tracer = jax.core.Tracer
MOST_CALLS = 10_000  # of functions of the user's, while one expression is traced


class Origin(Enum):
    """The origin of a value: a number of Python, an array (or a scalar of NumPy), not known which, or mixed.

    A mixed value is a bool on some paths and another number on others, so that it has no text of its own.
    """

    NUMBER = "number"
    ARRAY = "array"
    UNKNOWN = "unknown"
    MIXED = "mixed"


class Notes(dict[int, tuple[Any, Origin]]):
    """The recorded origins by the identity of the tracer, with the tracer, so that its identity is not reused.

    `asked`: whether tracing has depended on an origin. `firm`: identities of numbers that are numbers whatever the
    origins of the primitive's inputs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked = False
        self.firm: set[int] = set()
        self.outside: set[int] = set()  # identities of objects that existed before, and whose methods are called
        self.called: list[CodeType] = []  # functions of the user that were called


_notes: ContextVar[Notes | None] = ContextVar("pcbatch_origins", default=None)

KINDS = (bool, int, float, complex)
"""The types of Python's numbers, each before those that may hold its values."""


@contextlib.contextmanager
def noting() -> Iterator[Notes]:
    """Record the origins of one primitive's values within the context, starting with none."""
    notes = Notes()
    with setting(_notes, notes):
        yield notes


@contextlib.contextmanager
def noting_more() -> Iterator[Notes]:
    """Record the origins of further values within the context, and tell apart whether tracing depends on one there."""
    notes = _notes.get()
    if notes is None:
        notes = Notes()  # which nothing reads
    before, notes.asked = notes.asked, False
    try:
        yield notes
    finally:
        notes.asked |= before


def is_noting() -> bool:
    """Whether a primitive is being traced."""
    return _notes.get() is not None


def note_call(code: CodeType) -> None:
    """Record that a function of the user is called.

    Raises:
        Refusal: functions were called very often in one expression, which runs while the program is compiled, as a
            recursion over values that are known there does: they are compiled along.
    """
    notes = _notes.get()
    if notes is None:
        return
    notes.called.append(code)
    if len(notes.called) > MOST_CALLS:
        often = tuple(one for one, count in Counter(notes.called).items() if count > MOST_CALLS // 50)
        title = f"functions are called more than {MOST_CALLS:,} times while one expression is compiled"
        help = f"decorate `{often[0].co_name}` with `@pcbatch.batch`, so that it is compiled by itself"
        why = "it is called very often while the program is compiled"
        raise Refusal("PCB305", title, helps=(help,), cures=Cure.ALONG, functions=often, why=why)


def note_outside(value: Value) -> Value:
    """Record that an object existed before the primitive was traced, and return it."""
    notes = _notes.get()
    if notes is not None:
        notes.outside.add(id(value))
    return value


def is_outside(value: Value) -> bool:
    """Whether an object is recorded as one that existed before."""
    notes = _notes.get()
    return notes is not None and id(value) in notes.outside


def is_noted(value: Value) -> bool:
    """Whether the origin of a value is recorded."""
    return id(value) in (_notes.get() or {})


def note(value: Value, origin: Origin) -> Value:
    """Record the origin of a value, and return the value; a tracer recorded with two different origins is unknown."""
    notes = _notes.get()
    if notes is not None and isinstance(value, Tracer) and value.shape == ():
        before = notes.get(id(value), (value, origin))[1]
        mixed = Origin.MIXED in (origin, before)
        notes[id(value)] = (value, origin if origin is before else Origin.MIXED if mixed else Origin.UNKNOWN)
    return value


def number(value: Value, *sources: Value) -> Value:
    """Record the result of a builtin as a number of Python, and return it.

    An integer gets JAX's default type for integers where it has fewer bits, as lengths have with `jax_enable_x64`. The
    result is copied where it is one of `sources`, the arguments, and that is not known to be a number.
    """
    is_source = any(value is source for source in sources)
    if isinstance(value, Tracer) and not is_source and value.dtype == np.int32 and jnp.result_type(int) != np.int32:
        value = value.astype(int)
    if not isinstance(value, Tracer) or (origin_of if is_source else source_of)(value) is Origin.NUMBER:
        return value
    result = note(jnp.copy(value) if is_source else value, Origin.NUMBER)
    notes = _notes.get()
    if notes is not None and not is_source:
        notes.firm.add(id(result))
    return result


def of_lane(value: Value) -> bool:
    """Return whether a value, or a leaf of it, is one of a lane."""
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value))


def leaves(value: Value) -> list[Value]:
    """Return the leaves of a function's result, which may be any object; none where JAX cannot flatten it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns that it takes views and iterators for leaves
        try:
            return jax.tree.leaves(value)
        except Exception:  # an object of another library, whose nodes cannot be flattened
            return []


def array(value: Value) -> Value:
    """Return the result of a function of JAX, which is arrays: leaves that may be numbers of Python are copied."""
    if not is_noting() or not any(map(_may_be_number, leaves(value))):
        return value
    return jax.tree.map(lambda leaf: jnp.copy(leaf) if _may_be_number(leaf) else leaf, value)


def _may_be_number(leaf: Value) -> bool:
    return isinstance(leaf, Tracer) and leaf.shape == () and is_noted(leaf) and origin_of(leaf) is not Origin.ARRAY


def is_firm(value: Value) -> bool:
    """Whether the origin of a value does not depend on the origins of the primitive's inputs."""
    notes = _notes.get()
    return notes is None or id(value) in notes.firm or id(value) not in notes


def origin_of(value: Value) -> Origin | None:
    """Return the origin of a value, for a decision that depends on it; None unless it is a number or an array."""
    notes = _notes.get()
    if notes is not None and isinstance(value, Tracer):
        notes.asked = True
    return source_of(value)


def source_of(value: Value) -> Origin | None:
    """Return the origin of a value, only to record it for another one; None as for `origin_of`."""
    if isinstance(value, Tracer):
        notes = _notes.get()
        recorded = None if notes is None else notes.get(id(value))
        return Origin.ARRAY if recorded is None else recorded[1]
    if type(value) in KINDS:
        return Origin.NUMBER
    return Origin.ARRAY if isinstance(value, jax.Array | np.ndarray | np.generic) else None


def kind_of(dtype: Any) -> type | None:
    """Return the type of Python's numbers that a dtype corresponds to; None for PRNG keys."""
    if jnp.issubdtype(dtype, jnp.bool_):
        return bool
    if jnp.issubdtype(dtype, jnp.integer):
        return int
    if jnp.issubdtype(dtype, jnp.floating):
        return float
    return complex if jnp.issubdtype(dtype, jnp.complexfloating) else None


def both(a: Origin | None, b: Origin | None) -> Origin:
    """Return the origin of an operator's result from those of its operands: an array if one of them is."""
    if Origin.ARRAY in (a, b):
        return Origin.ARRAY
    return Origin.NUMBER if a is b is Origin.NUMBER else Origin.UNKNOWN


def either(a: Value, b: Value) -> Origin:
    """Return the origin of a value that is one of two."""
    return met(source_of(a), _kind(a), source_of(b), _kind(b))


def met(a: Origin | None, a_kind: type | None, b: Origin | None, b_kind: type | None) -> Origin:
    """Return the origin of a value that is one of two, given the origins and the types of both."""
    arrays = a is b is Origin.ARRAY
    if Origin.MIXED in (a, b) or (bool in (a_kind, b_kind) and a_kind is not b_kind and not arrays):
        return Origin.MIXED
    if a is not b or (a is Origin.NUMBER and a_kind is not b_kind):
        return Origin.UNKNOWN
    return a or Origin.UNKNOWN


def _kind(value: Value) -> type | None:
    return kind_of(value.dtype) if isinstance(value, Tracer) else type(value)
