"""Where the values of a primitive come from: is a value of a lane a number of Python in the plain function?

While a primitive is traced all values of lanes are tracers. In the plain function of one example some of them are
Python's own numbers (arguments, what operators make of them) and others are arrays (what functions of JAX give,
elements of arrays). Python treats these differently: `True + True` is 2, and for arrays of bools it is a logical or.
So the tracers that stand for numbers are noted here, by identity, as long as one primitive is traced.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Tracer = jax.core.Tracer


class Origin(Enum):
    """A number of Python, an array (or a scalar of NumPy), or one of them, which is not known."""

    NUMBER = "number"
    ARRAY = "array"
    UNKNOWN = "unknown"


class Notes(dict[int, tuple[Any, Origin]]):
    """By identity, with the tracer itself, so that no other can get its identity.

    `asked`: something was decided by an origin; `firm`: numbers whatever the values that they are made of come from.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked = False
        self.firm: set[int] = set()


_notes: ContextVar[Notes | None] = ContextVar("pcbatch_origins", default=None)

KINDS = (bool, int, float, complex)
"""The types of Python's numbers, each before those that may hold its values."""


@contextlib.contextmanager
def noting() -> Iterator[Notes]:
    """Begin anew with the values of one primitive."""
    notes = Notes()
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def is_noting() -> bool:
    """Is a primitive being traced?"""
    return _notes.get() is not None


def is_noted(value: Any) -> bool:
    """Is it known of a tracer where it comes from?"""
    return id(value) in (_notes.get() or {})


def note(value: Any, origin: Origin) -> Any:
    """The value, known to come from there. One tracer that stands for two values of different origins is unknown."""
    notes = _notes.get()
    if notes is not None and isinstance(value, Tracer) and value.shape == ():
        before = notes.get(id(value), (value, origin))[1]
        notes[id(value)] = (value, origin if origin is before else Origin.UNKNOWN)
    return value


def number(value: Any, *sources: Any) -> Any:
    """The number of Python that a builtin gives; a copy where it is its own argument and that may be an array."""
    own = any(value is source for source in sources)
    if not isinstance(value, Tracer) or (origin_of if own else source_of)(value) is Origin.NUMBER:
        return value
    made = note(jnp.copy(value) if own else value, Origin.NUMBER)
    notes = _notes.get()
    if notes is not None and not own:
        notes.firm.add(id(made))
    return made


def leaves(value: Any) -> list[Any]:
    """The leaves of what a function gives, which may be any object."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of views and iterators JAX says that they are leaves
        try:
            return jax.tree.leaves(value)
        except Exception:  # no leaves: what is in there comes from elsewhere
            return []


def array(value: Any) -> Any:
    """What a function of JAX gives: arrays, also where it gives its argument back."""
    if not is_noting() or not any(map(_may_be_number, leaves(value))):
        return value
    return jax.tree.map(lambda leaf: jnp.copy(leaf) if _may_be_number(leaf) else leaf, value)


def _may_be_number(leaf: Any) -> bool:
    return isinstance(leaf, Tracer) and leaf.shape == () and is_noted(leaf) and origin_of(leaf) is not Origin.ARRAY


def is_firm(value: Any) -> bool:
    """Is the origin of a tracer the same whatever its primitive is given?"""
    notes = _notes.get()
    return notes is None or id(value) in notes.firm or id(value) not in notes


def origin_of(value: Any) -> Origin | None:
    """Where a value comes from, to decide by it; None for what is neither a number nor an array."""
    notes = _notes.get()
    if notes is not None and isinstance(value, Tracer):
        notes.asked = True
    return source_of(value)


def source_of(value: Any) -> Origin | None:
    """As `origin_of`, to pass it on and no more."""
    if isinstance(value, Tracer):
        notes = _notes.get()
        found = None if notes is None else notes.get(id(value))
        return Origin.ARRAY if found is None else found[1]
    if type(value) in KINDS:
        return Origin.NUMBER
    return Origin.ARRAY if isinstance(value, jax.Array | np.ndarray | np.generic) else None


def kind_of(dtype: Any) -> type | None:
    """The type of Python's numbers that a dtype stands for; None for PRNG keys."""
    if jnp.issubdtype(dtype, jnp.bool_):
        return bool
    if jnp.issubdtype(dtype, jnp.integer):
        return int
    if jnp.issubdtype(dtype, jnp.floating):
        return float
    return complex if jnp.issubdtype(dtype, jnp.complexfloating) else None


def both(a: Origin | None, b: Origin | None) -> Origin:
    """The origin of what an operator makes of two values: an array if one of them is."""
    if Origin.ARRAY in (a, b):
        return Origin.ARRAY
    return Origin.NUMBER if a is b is Origin.NUMBER else Origin.UNKNOWN


def either(a: Any, b: Any) -> Origin:
    """The origin of a value that is one of two."""
    one, other = source_of(a), source_of(b)
    if one is not other:
        return Origin.UNKNOWN
    if one is Origin.NUMBER and _kind(a) is not _kind(b):
        return Origin.UNKNOWN
    return one or Origin.UNKNOWN


def _kind(value: Any) -> type | None:
    return kind_of(value.dtype) if isinstance(value, Tracer) else type(value)
