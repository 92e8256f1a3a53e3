"""The errors of primitives that lanes cannot compute, and the questions whether one is such a primitive."""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import BuiltinMethodType, CellType, FrameType, FunctionType, GeneratorType, MethodType, TracebackType
from typing import Any

import jax
import jax.extend.core as jex

from pcbatch.data.aliasing import Key, Parts
from pcbatch.data.object_parts import is_plain_object, is_user_code, is_users, parts_of
from pcbatch.data.sequences.lane_iterator import LaneIterator
from pcbatch.decisions import NONE, Cure, Decisions, key_of_library
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import Refusal
from pcbatch.lowering.typing.pytree import flatten

BOUND = (BuiltinMethodType, MethodType, functools.partial)
COLLECTIVE = (
    "this is a collective of devices, and each lane runs at its own pace",
    "call it on the results of all lanes: `jax.lax.psum(f(xs), axis)`",
)


class TraceError(Refusal):
    """Error of a primitive that lanes cannot compute; `cause` is the text, `helps` say what to write instead."""

    def __init__(
        self, cause: str, *helps: str, cures: Cure | None = None, why: str = "", wants: Decisions = NONE
    ) -> None:
        super().__init__("PCB304", cause, helps=helps, cures=cures, why=why, wants=wants)


class ChangedArgument(TraceError):
    """Error of a primitive that changes one of its arguments; as a function of the program it may do so."""

    def __init__(self, cause: str, *helps: str) -> None:
        cures = Cure.ALONG | Cure.LOOP | Cure.STORE
        super().__init__(cause, *helps, cures=cures, why="it changes an argument in place")


class KeptFunction(TraceError):
    """Error of a primitive whose result is a function, which no variable of a lane can hold."""


def check_not_bound(values: Sequence[Any], args: Sequence[Any]) -> None:
    """Refuse a method of an argument that can be changed, or a `partial` with one: it would not see the changes."""
    leaves = [leaf for value in values for leaf in flatten(value)[0]]
    for bound in (leaf for leaf in leaves if isinstance(leaf, BOUND)):
        held = {key for key in Parts(bound).inner if key[0] == "object"}
        if held.isdisjoint(set[Key]().union(*(Parts(arg).own | Parts(arg).inner for arg in args))):
            continue
        title = f"a value of type {type_name(bound)} cannot be kept in a variable of a lane"
        raise KeptFunction(title, "call it where it is made, or define a function with `def` that calls it")
    taken = _mutable(captured(leaves))
    if taken and not taken.isdisjoint(_mutable(values)):
        title = "a function has captured what is handed on beside it, and a lane keeps both apart"
        raise KeptFunction(title, "hand on functions that read and change it, in place of the object itself")


def _mutable(values: Sequence[Any]) -> set[Key]:
    """The mutable objects in values, by keys."""
    found = set[Key]().union(*(Parts(value).own | Parts(value).inner for value in values))
    return {key for key in found if key[0] == "object"}


def captured(leaves: Iterable[Any]) -> list[Any]:
    """Return the values that functions of the user's among some leaves have captured."""
    found = []
    for leaf in leaves:
        fn = inspect.unwrap(leaf) if callable(leaf) and not is_users(type(leaf).__module__) else None
        if isinstance(fn, FunctionType) and is_user_code(fn.__code__):
            cells = [cell for cell in fn.__closure__ or () if cell != CellType()]
            found += [cell.cell_contents for cell in cells]
    return found


def refuse_effects(closed: jex.ClosedJaxpr) -> None:
    """Refuse a primitive that has effects, asks other devices, or sorts as JAX cannot lower it."""
    # The class of this effect is not public in JAX.
    if any(type(effect).__name__ == "NamedAxisEffect" for effect in closed.effects):
        raise TraceError(*COLLECTIVE).with_traceback(_origin(closed))
    if closed.effects:
        error = TraceError(
            "this has a side effect, which would also run for lanes that are elsewhere",
            "print in a statement of the batched function itself; return what is to be saved",
        )
        raise error.with_traceback(_origin(closed))
    # JAX traces a sort as `np.argsort` asks for it, and fails only when it lowers it, by a raw TypeError.
    unsorted = next((eqn for eqn in _equations(closed.jaxpr) if eqn.params.get("is_stable", False) is None), None)
    if unsorted is not None:
        title = "`argsort` of NumPy hands on to JAX what JAX does not know"
        help = "write `jnp.argsort` in place of `np.argsort`, also in what is called here"
        raise Refusal("PCB306", title, helps=(help,)).with_traceback(_traceback(unsorted))


def _equations(jaxpr: jex.Jaxpr) -> Iterator[Any]:
    """Yield the equations of a jaxpr, and those of the jaxprs in their parameters."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax.tree.leaves(list(eqn.params.values())):
            if isinstance(inner, jex.ClosedJaxpr | jex.Jaxpr):
                yield from _equations(inner.jaxpr if isinstance(inner, jex.ClosedJaxpr) else inner)


def _origin(closed: jex.ClosedJaxpr) -> TracebackType | None:
    """The traceback of the first operation with a side effect."""
    eqn = next((eqn for eqn in closed.jaxpr.eqns if eqn.effects), None)
    return None if eqn is None else _traceback(eqn)


def _traceback(eqn: Any) -> TracebackType | None:
    """The traceback of the call that recorded an equation."""
    recorded = eqn.source_info.traceback
    traceback: TracebackType | None = None if recorded is None else recorded.as_python_traceback()
    return traceback


def check_not_iterator(value: Any) -> None:
    """Refuse an iterator among the results of a primitive, also in lists and objects, where JAX makes a leaf of it."""
    waiting, seen = [value], set[int]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Iterator) and not isinstance(part, LaneIterator) and not is_users(type(part).__module__):
            raise TraceError(
                f"an iterator ({type(part).__name__}) cannot be kept in a variable of a lane",
                "if it ends, keep one over the list of its elements, `iter(list(...))`, "
                "or use it in the expression that makes it",
                wants=_kept(part),
            )
        held = parts_of(part) if isinstance(part, list | tuple | dict) or is_plain_object(part) else None
        if held is not None and id(part) not in seen:
            seen.add(id(part))
            waiting += held[1]


def _kept(value: Any) -> Decisions:
    """The decision to keep such iterators: those of the user's generator functions, and some of `itertools`."""
    match value:
        case GeneratorType(gi_code=code):
            return Decisions(kept=frozenset({(code.co_filename, code.co_firstlineno, code.co_name)}))
        case itertools.count() | itertools.cycle():
            return Decisions(kept=frozenset({key_of_library(type(value).__name__)}))
    return NONE


def state_of(args: Sequence[Any]) -> list[tuple[list[Any], Any]]:
    """Return the leaves and the structure of each argument, and those of what functions among them have captured."""
    parts = [flatten(arg) for arg in args]
    return [*parts, flatten(captured(leaf for leaves, _ in parts for leaf in leaves))]


def check_not_mutated(before: list[tuple[list[Any], Any]], after: list[tuple[list[Any], Any]]) -> None:
    """Refuse a change of an argument, whose leaves and structure are given before and after a primitive."""
    for (old, old_tree), (new, new_tree) in zip(before, after, strict=True):
        if old_tree != new_tree or any(a is not b for a, b in zip(old, new, strict=True)):
            raise ChangedArgument(
                "a list, a dict or an object of this lane is changed in place where it is traced",
                "change it in a statement of its own, or in a function that is called there; a `defaultdict` is "
                "changed by `d[k]`, too: read it by `d.get(k, 0)`, with its default",
            )


# Detection of errors of JAX that NumPy or the standard library swallows while a primitive is traced.
#
#     np.array_equal(x, y)      its code is    try: a, b = asarray(x), asarray(y)   except Exception: return False
#
# The example above would give False for every lane. JAX raises an error of its own wherever a traced value is asked for
# its number. While a primitive is traced, the first such error that is made on behalf of a library is recorded; if it
# does not come out of the primitive by itself, it is raised at the end.

ERRORS: tuple[type[Exception], ...] = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
)
JAX = frozenset({"jax", "jaxlib"})
LIBRARIES = sys.stdlib_module_names | {"numpy"}

_seen: ContextVar[list[tuple[Exception, TracebackType]] | None] = ContextVar("pcbatch_conversions", default=None)


@contextmanager
def noticed() -> Iterator[None]:
    """Raise, at the end of the block, the first error of JAX that a library swallowed inside.

    An error that leaves the block gives way to it, because it may be a consequence.
    """
    _patch_errors()
    seen: list[tuple[Exception, TracebackType]] = []
    token = _seen.set(seen)  # other threads trace with a list of their own
    failed: Exception | None = None
    try:
        yield
    except Exception as error:
        failed = error
    finally:
        _seen.reset(token)
    if seen and failed is not seen[0][0]:
        first, traceback = seen[0]
        raise first.with_traceback(traceback) from None
    if failed is not None:
        raise failed


@functools.cache
def _patch_errors() -> None:
    """Patch the error classes of JAX, once, to report when one is made.

    A profiling function would see as much without a patch, but makes tracing take twice as long.
    """
    for kind in ERRORS:
        setattr(kind, "__init__", _reporting(kind.__init__))  # noqa: B010


def _reporting(original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def init(self: Any, *args: Any, **options: Any) -> None:
        original(self, *args, **options)
        seen = _seen.get()
        if seen is not None and not seen and (traceback := _library_traceback(sys._getframe(1))) is not None:
            seen.append((self, traceback))

    return init


def _library_traceback(frame: FrameType | None) -> TracebackType | None:
    """The traceback of an error made at `frame`, if NumPy or the standard library asked for the value; None if the
    user's code did, or JAX itself through such a library."""
    frame = _outside(frame, JAX)
    caller = _outside(frame, LIBRARIES)
    if caller is frame or caller is None or _root(caller) in JAX:
        return None
    trace: TracebackType | None = None
    while frame is not None:
        trace = TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return trace


def _outside(frame: FrameType | None, roots: frozenset[str]) -> FrameType | None:
    """The innermost frame from here outwards that belongs to none of these packages."""
    while frame is not None and _root(frame) in roots:
        frame = frame.f_back
    return frame


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
