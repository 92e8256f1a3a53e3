"""Traces and joins of types, kept while one function is compiled: inference goes over the same program many times.

Compilation starts again with each new decision, and inference runs again after loops are unrolled, branches cut out or
entries wrapped. Most primitives are the same then, and so are the types of their operands. A trace is used again where
nothing that it may have read differs: the function object and its operands, the settings that traces depend on, and the
classes that are registered with JAX. Known values count as equal only where no program can tell them apart by `is`.
Two operations of one program never share a trace, so that each makes objects of its own, as without keeping. Joins of
structures that differ may trace as well, and are kept by the two types.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from pcbatch.contexts import setting
from pcbatch.data.capacity import capacities
from pcbatch.data.checks import rules
from pcbatch.data.object_parts import registered_classes
from pcbatch.data.objects.made import made_schema
from pcbatch.jax_settings import settings
from pcbatch.lowering.typing.abstract_values import Abstract, Known, Leaf
from pcbatch.lowering.typing.trace import Traced, inside_primitive

PLAIN = (bool, int, float, complex, str, bytes, type(None))
"""Types whose values are told apart by `==` and their type alone."""

Function = Callable[..., Any]
OpPlace = Hashable  # of an operation in its program
Entry = tuple[Hashable, tuple[Abstract, ...], Traced]
Store = dict[tuple[Function, int, int], list[Entry]]
Pair = tuple[Abstract, Abstract]

_joins: ContextVar[dict[Hashable, tuple[Pair, Abstract]] | None] = ContextVar("pcbatch_kept_joins", default=None)
_store: ContextVar[Store | None] = ContextVar("pcbatch_kept_traces", default=None)


@contextlib.contextmanager
def keeping_traces() -> Iterator[None]:
    """Keep the traces and joins that type inference makes within the context, for its later runs there.

    One context inside of another changes nothing, but where a primitive is traced: traces there may hold its values.
    """
    if _store.get() is not None and not inside_primitive():
        yield
        return
    with setting(_store, {}), setting(_joins, {}):
        yield


def forget_traces() -> None:
    """Forget what is kept: tracing has had an effect that later runs have to find again."""
    store = _store.get()
    if store is not None:
        store.clear()


def kept_join(a: Abstract, b: Abstract, make: Callable[[], Abstract]) -> Abstract:
    """Return the join of two types that is kept, or what `make` gives, which is kept then."""
    joins = _joins.get()
    if joins is None:
        return make()
    try:
        key = (a, b, *_circumstances())
        found = joins.get(key)
    except Exception:  # the static fields of a registered class have no hash, or an exotic __eq__
        return make()
    if found is None or not _indistinguishable(found[0], (a, b)):
        found = joins[key] = (a, b), make()
    return found[1]


class KeptTraces:
    """The view that one run of type inference has of the kept traces; without a context it keeps nothing."""

    def __init__(self) -> None:
        self._store = _store.get()
        self._places: dict[Function, dict[OpPlace, int]] = {}

    def get(self, fn: Function, place: OpPlace, ins: Sequence[Abstract], results: int) -> Traced | None:
        """Return the trace of a function for these operands that is kept for the operation at `place`, if any."""
        if self._store is None:
            return None
        found = self._store.get((fn, self._number(fn, place), results), ())
        if not found:
            return None
        now = _circumstances()
        return next((t for then, seen, t in found if then == now and _indistinguishable(seen, ins)), None)

    def put(self, fn: Function, place: OpPlace, ins: Sequence[Abstract], results: int, traced: Traced) -> None:
        """Keep a trace that was just made."""
        if self._store is not None:
            entry = (_circumstances(), tuple(ins), traced)
            self._store.setdefault((fn, self._number(fn, place), results), []).append(entry)

    def once(
        self, fn: Function, place: OpPlace, ins: Sequence[Abstract], results: int, trace: Callable[[], Traced]
    ) -> Traced:
        """Return the trace that is kept for these operands, or else what `trace` gives, which is kept."""
        found = self.get(fn, place, ins, results)
        if found is None:
            found = trace()
            self.put(fn, place, ins, results, found)
        return found

    def _number(self, fn: Function, place: OpPlace) -> int:
        """The number of an operation among those of the program that have one and the same function."""
        places = self._places.setdefault(fn, {})
        return places.setdefault(place, len(places))


def _circumstances() -> tuple[Hashable, ...]:
    """All that a trace may read beside its function and operands."""
    return capacities(), rules(), made_schema(), settings(), registered_classes()


def _indistinguishable(old: Sequence[Abstract], new: Sequence[Abstract]) -> bool:
    try:
        return len(old) == len(new) and all(
            a is b or (a == b and all(map(_same_leaf, a.leaves, b.leaves))) for a, b in zip(old, new, strict=True)
        )
    except Exception:  # the static fields of a registered class have an exotic __eq__, as arrays have
        return False


def _same_leaf(a: Leaf, b: Leaf) -> bool:
    return not isinstance(a, Known) or (isinstance(b, Known) and _same_object(a.value, b.value))


def _same_object(a: Any, b: Any) -> bool:
    """Whether no program can tell two values apart that are equal."""
    if a is b or type(a) in PLAIN:
        return True
    return type(a) is tuple and all(map(_same_object, a, b))
