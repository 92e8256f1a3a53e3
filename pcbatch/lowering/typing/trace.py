"""Tracing one primitive: its Python function becomes a jaxpr, once per combination of input types.

The jaxpr is kept and evaluated from then on, so a user's helper runs exactly once per signature.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Sequence, ValuesView
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from types import FunctionType
from typing import Any

import jax
import jax.extend.core as jex
import numpy as np

from pcbatch.contexts import setting
from pcbatch.data.aliasing import Alias, Parts, aliases, changed_copy, noting_choices, noting_copies
from pcbatch.data.checks import LIMIT, PrimitiveCheck, collecting
from pcbatch.data.functions.mappings import of_objects
from pcbatch.data.object_parts import is_plain_object
from pcbatch.data.objects.made import WantsRecords
from pcbatch.data.objects.made_classes import classes_of_objects
from pcbatch.data.objects.made_fields import NO_USE, HeapUse
from pcbatch.data.origins import Origin, is_firm, note, noting, source_of
from pcbatch.data.texts.known_texts import refuse_shown
from pcbatch.diagnostics.impure_calls import GENERATORS, key_helps
from pcbatch.diagnostics.lane_words import type_name
from pcbatch.errors import NeedsUnrolling, Refusal
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing import trace_errors
from pcbatch.lowering.typing.abstract_values import Abstract, Known, Leaf, is_array, with_origins
from pcbatch.lowering.typing.jax_types import from_aval, to_aval
from pcbatch.lowering.typing.objects import constructors, on_cycle, register_made
from pcbatch.lowering.typing.pytree import flatten
from pcbatch.lowering.typing.trace_errors import (
    COLLECTIVE,
    ChangedArgument,
    KeptFunction,
    TraceError,
    check_not_bound,
    check_not_iterator,
    check_not_mutated,
    refuse_effects,
    state_of,
)
from pcbatch.lowering.typing.traced_aliases import array_aliases, existing_objects, repeated_arrays

FUNCTION_MODULES = ("builtins", "functools", "jax", "jaxlib", "numpy")  # of the types of functions
PLAIN = (str, bytes, type, np.dtype, type(Ellipsis))  # they hold no arrays

_tracing: ContextVar[bool] = ContextVar("pcbatch_tracing_primitive", default=False)


def inside_primitive() -> bool:
    """Return whether a primitive is being traced: the compiler has not seen what is called there."""
    return _tracing.get()


@dataclass(frozen=True, slots=True)
class TracedCheck:
    """A check that a primitive makes (see `pcbatch.data.checks`).

    `failed` is the number of the jaxpr's output that says whether the lane fails; in `message`, numbers stand for the
    outputs that are shown.
    """

    failed: int
    exception: str
    message: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Traced:
    """A primitive at given types. Output leaf k of all results is `jaxpr.outvars[k]` unless it is known.

    Attributes:
        asked: whether the origin of a value has decided something.
        weak: the outputs if no origin of an input is known.
        checks: what the lane fails for, in order; their outputs come after those of the results.
        aliases: the results and inputs that may hold one and the same mutable object.
        repeated: the results in which one mutable object stands at several places.
        tables: whether it reads the tables of records, which are a last operand.
        heap: the heap of records made in lanes after it, if it has that as the operand behind all others.
        fields: what it does to lists and arrays in the fields of these records.
        changed: the structures of the objects that it changes in place, as they were before.
    """

    closed: jex.ClosedJaxpr
    outs: tuple[Abstract, ...]
    asked: bool = True
    weak: tuple[Abstract, ...] = ()
    checks: tuple[TracedCheck, ...] = ()
    aliases: frozenset[Alias] = frozenset()
    repeated: frozenset[int] = frozenset()
    tables: bool = False
    heap: Abstract | None = None
    fields: HeapUse = NO_USE
    changed: frozenset[Any] = frozenset()


class JaxprFn:
    """A jaxpr as the `fn` of an `Expr`: takes leaves, gives one value or a tuple of values.

    `casts` gives the type of each result when it differs from what the jaxpr gives. `beside_product`: whether it is a
    part of a primitive whose matrix products are others now, so that its operands lie as theirs do.
    """

    def __init__(
        self, closed: jex.ClosedJaxpr, casts: Sequence[ArrayType | None], beside_product: bool = False
    ) -> None:
        self.closed = closed
        self.beside_product = beside_product
        self.casts = tuple(casts)
        self._run = jex.jaxpr_as_fun(closed)

    def __call__(self, *leaves: Any) -> Any:
        args = [
            jax.numpy.asarray(leaf, var.aval.dtype) if not is_key_array(leaf) else leaf
            for leaf, var in zip(leaves, self.closed.jaxpr.invars, strict=True)
        ]
        outs = [
            out if cast is None else jax.lax.convert_element_type(out, jax.numpy.dtype(cast.dtype))
            for out, cast in zip(self._run(*args), self.casts, strict=True)
        ]
        return outs[0] if len(outs) == 1 else tuple(outs)


def is_key_array(value: Any) -> bool:
    """Return whether a value is an array of typed PRNG keys."""
    # `issubdtype` takes the host longer, and calls come by here.
    return (
        is_array(value)
        and not isinstance(value.dtype, np.dtype)
        and bool(jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key))
    )


def trace(
    fn: Callable[..., Any], ins: Sequence[Abstract], results: int, written: Callable[..., Any] | None = None
) -> Traced:
    """Trace a primitive for one lane.

    `fn` takes a value for each of `ins` and returns `results` values; it stands for the function `written` of the
    primitive where that is given. Raises TraceError, or the error of `fn` itself.
    """
    written = fn if written is None else written
    if any(value.arrays for value in ins):
        return _trace(fn, ins, results, written)
    # No value of a lane goes in. Where a number is asked for, or an object holds arrays, their values are needed.
    try:
        traced = _trace(fn, ins, results, written)
    except (TraceError, NeedsUnrolling):
        raise
    except Exception as error:
        return _evaluated(fn, ins, results, error, written)
    opaque = any(_may_hold_arrays(leaf) for out in traced.outs for leaf in out.leaves)
    return _evaluated(fn, ins, results, traced, written) if opaque else traced


def _evaluated(
    fn: Callable[..., Any],
    ins: Sequence[Abstract],
    results: int,
    otherwise: Traced | Exception,
    written: Callable[..., Any],
) -> Traced:
    """Trace a function that no value of a lane enters, with its operations evaluated at once instead of recorded.

    `otherwise` is what recording gave: its result, returned if it holds no arrays after all, or its error.
    """

    def run(*args: Any) -> Any:
        with jax.ensure_compile_time_eval():
            return fn(*args)

    try:
        traced = _trace(run, ins, results, written)
        if not traced.closed.jaxpr.eqns:  # an equation is left if it reads a value of an outer trace
            return traced
        raise otherwise if isinstance(otherwise, Exception) else LookupError
    except Exception:  # the function itself may fail, too
        if not isinstance(otherwise, Traced):
            raise otherwise from None
        opaque = [leaf for out in otherwise.outs for leaf in out.leaves if _may_hold_arrays(leaf)]
        if all(isinstance(leaf, Known) and isinstance(leaf.value, PLAIN) for leaf in opaque):
            return otherwise
        raise TraceError(
            "this keeps an object that may hold a value of an outer trace",
            "keep the arrays themselves, and make the object in the expression that uses it",
        ) from None


def _may_hold_arrays(leaf: Leaf) -> bool:
    return isinstance(leaf, Known) and not isinstance(leaf.value, bool | int | float | complex | None)


@dataclass(slots=True)
class _Results:
    """The results of a primitive, as far as their arrays do not tell them, noted while it is traced.

    Attributes:
        parts: of each result, structure, leaves (None for an array), their origins, and these if no origin goes in.
        checks: the checks that it makes.
        ties: the results and arguments that may hold one object.
        repeated: the results in which one object stands at several places.
    """

    parts: list[tuple[Any, list[Leaf | None], list[Origin], list[Origin]]] = field(default_factory=list)
    checks: list[TracedCheck] = field(default_factory=list)
    ties: set[Alias] = field(default_factory=set)
    repeated: set[int] = field(default_factory=set)

    def arrays(self, values: Sequence[Any], dynamic: bool) -> list[Any]:
        """Note the parts of all results; return their arrays."""
        arrays: list[Any] = []
        for value in values:
            leaves, tree = flatten(value)
            sources = [source_of(leaf) or Origin.ARRAY for leaf in leaves]
            firm = [one if is_firm(leaf) else Origin.UNKNOWN for one, leaf in zip(sources, leaves, strict=True)]
            self.parts.append((tree, [_static_leaf(leaf, dynamic) for leaf in leaves], sources, firm))
            arrays.extend(leaf for leaf in leaves if is_array(leaf))
        return arrays

    def types(self, avals: Iterator[Any]) -> tuple[list[Abstract], list[Abstract]]:
        """Return the types of the results, and those that they have if no origin goes in."""
        outs, weak = [], []
        for tree, static, sources, firm in self.parts:
            leaves = tuple(leaf if leaf is not None else from_aval(next(avals)) for leaf in static)
            outs.append(with_origins(tree, leaves, sources))
            weak.append(with_origins(tree, leaves, firm))
        return outs, weak


def _trace(fn: Callable[..., Any], ins: Sequence[Abstract], results: int, written: Callable[..., Any]) -> Traced:
    """Trace `fn`, which stands for the function `written` of the primitive."""
    collected = _Results()
    dynamic = any(value.arrays for value in ins)
    origins = [v.origin(k) for v in ins for k, leaf in enumerate(v.leaves) if isinstance(leaf, ArrayType)]

    def run(*arrays: Any) -> list[Any]:
        for array, origin in zip(arrays, origins, strict=True):
            note(array, origin)
        pool = list(arrays)
        args = [value.rebuild(pool) for value in ins]
        values = _called(fn, args, results)
        if any(is_plain_object(leaf) for leaf in jax.tree.leaves(values)):
            register_made(values, existing_objects(written, ins))
        try:
            outputs = collected.arrays(values, dynamic)
        except TraceError as kept:  # a constructor that is compiled along may keep functions
            kept.functions = constructors(values)
            raise
        collected.ties.update(aliases(list(values), args, written))
        collected.repeated.update(k for k, value in enumerate(values) if Parts(value).repeated)
        return outputs + check_outputs(made_checks, collected.checks, len(outputs))

    try:
        with (
            setting(_tracing, True),
            trace_errors.noticed(),
            noting() as notes,
            collecting() as made_checks,
            noting_copies() as changed,
            noting_choices(),
        ):
            closed = make_jaxpr(run, [to_aval(leaf) for value in ins for leaf in value.arrays])
    except Refusal as refused:
        refused.called = tuple(notes.called)
        raise
    except AssertionError as failed:
        if "ManualAxisType" in str(failed):  # what JAX says inside a `shard_map` that keeps track of what varies
            raise TraceError(*COLLECTIVE).with_traceback(failed.__traceback__) from None
        raise
    refuse_effects(closed)
    outs, weak = collected.types(iter(closed.out_avals))
    checks = tuple(check for check in collected.checks if not _never_fails(closed.jaxpr.outvars[check.failed]))
    shared = frozenset(collected.ties) | array_aliases(closed, ins, outs)
    several = frozenset(collected.repeated) | repeated_arrays(closed, outs)
    return Traced(closed, tuple(outs), notes.asked, tuple(weak), checks, shared, several, changed=frozenset(changed))


def _called(fn: Callable[..., Any], args: list[Any], results: int) -> tuple[Any, ...]:
    """The results of a call; refuses one that changes an argument, or gives what cannot be kept."""
    before = state_of(args)  # a list or dict that the function changes would be lost
    out = of_objects(fn(*args))
    if changed_copy() is not None:
        raise ChangedArgument(
            "an object in a list or a dict of this lane is changed in place where it is traced",
            "change it in a statement of its own, or in a function that is called there",
        )
    if objects := on_cycle((out, args)):  # which JAX cannot flatten
        raise WantsRecords(classes_of_objects(objects))
    check_not_mutated(before, state_of(args))
    for value in (values := (out,) if results == 1 else tuple(out)):
        check_not_iterator(value)
    check_not_bound(values, args)
    return values


def check_outputs(checks: list[PrimitiveCheck], traced: list[TracedCheck], position: int) -> list[Any]:
    """Return the values of the checks of a primitive, as further outputs from `position` on; fills `traced`."""
    outputs: list[Any] = []
    for check in checks:
        failed = check.failed
        # A limit is looked at by itself: that of each sum may be shown to hold.
        constant = check.exception != LIMIT and all(isinstance(part, str) for part in check.message)
        if constant and traced and (traced[-1].exception, traced[-1].message) == (check.exception, check.message):
            outputs[traced[-1].failed - position] |= failed
            continue
        outputs.append(failed)
        place, message = position + len(outputs) - 1, list[str | int]()
        for part in check.message:
            if is_array(part):
                outputs.append(part)
                message.append(position + len(outputs) - 1)
            else:
                message.append(str(part))
        traced.append(TracedCheck(place, check.exception, tuple(message)))
    return outputs


def _never_fails(out: Any) -> bool:
    return isinstance(out, jex.Literal) and not bool(out.val)


def _static_leaf(leaf: Any, dynamic: bool) -> Known | None:
    """The known value of a leaf; None if it is an array, which lanes hold. Raises TraceError for other objects."""
    if is_array(leaf):
        return None
    if dynamic and isinstance(leaf, str):
        refuse_shown(leaf)
    if isinstance(leaf, GENERATORS):
        title = f"a random generator ({type(leaf).__name__}) cannot be kept in a variable of a lane"
        note = "it would draw once, while compiling, for all lanes and iterations"
        raise Refusal("PCB318", title, note, helps=key_helps(""))
    if isinstance(leaf, bool | int | float | complex | str | bytes | type | Enum) or leaf is None or leaf is Ellipsis:
        return Known(leaf)
    if dynamic and isinstance(leaf, FunctionType) and leaf.__name__ == "<lambda>" and not hasattr(leaf, "__wrapped__"):
        title = "a function cannot be kept in a list or another variable of a lane that changes"
        raise TraceError(title, "keep the values that it reads there, and call the function with them")
    if dynamic and callable(leaf) and type(leaf).__module__.partition(".")[0] in FUNCTION_MODULES:
        raise KeptFunction(
            f"a value of type {type_name(leaf)} cannot be kept in a variable of a lane",
            "define the function with `def`, `def g(z): return jax.grad(...)(z)` in place of `g = jax.grad(...)`, "
            "or call it where it is made, `jax.grad(...)(x)`",
        )
    if dynamic and isinstance(leaf, KeysView | ValuesView | ItemsView):
        title = f"a value of type {type_name(leaf)} cannot be kept in a variable of a lane"
        raise TraceError(title, "keep a list of its elements, `list(d.keys())`, or ask for it where it is used")
    check_not_iterator(leaf)
    if dynamic:  # it may hold tracers
        raise TraceError(
            f"a value of type {type_name(leaf)} cannot be kept in a variable of a lane",
            "keep arrays, numbers and pytrees of them: make the class a `typing.NamedTuple`, or register it with JAX",
        )
    return Known(leaf)


def restrict(closed: jex.ClosedJaxpr, outs: Sequence[int]) -> tuple[jex.ClosedJaxpr, tuple[int, ...]]:
    """Return the part of a jaxpr that computes the outputs `outs`, and the indices of the inputs that it reads."""
    jaxpr = closed.jaxpr
    outvars = [jaxpr.outvars[k] for k in outs]
    needed = {v for v in outvars if isinstance(v, jex.Var)}
    eqns = []  # no equation has a side effect, so what is not needed can go
    for eqn in reversed(jaxpr.eqns):
        if any(v in needed for v in eqn.outvars):
            eqns.append(eqn)
            needed.update(v for v in eqn.invars if isinstance(v, jex.Var))
    used = tuple(k for k, v in enumerate(jaxpr.invars) if v in needed)
    consts = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True) if v in needed]
    part = jaxpr.replace(
        constvars=[v for v, _ in consts], invars=[jaxpr.invars[k] for k in used], outvars=outvars, eqns=eqns[::-1]
    )
    return jex.ClosedJaxpr(part, [c for _, c in consts]), used


def make_jaxpr(fn: Callable[..., list[Any]], avals: Sequence[Any]) -> jex.ClosedJaxpr:
    """Return the jaxpr of a function of arrays that gives a list of arrays; raises the error of the function.

    The error is carried over the border of JAX as a value: there JAX looks at the file of every frame to hide its own,
    which takes several milliseconds, and most errors of primitives are only read to decide how to compile.
    """
    errors: list[Exception] = []

    def run(*arrays: Any) -> list[Any]:
        try:
            return fn(*arrays)
        except Exception as error:
            if getattr(jax.config, "jax_check_tracer_leaks", False):
                raise  # a traceback holds tracers, which JAX would find
            errors.append(error)
            return []

    closed = jax.make_jaxpr(run)(*avals)
    if errors:
        raise errors[0]
    return closed
