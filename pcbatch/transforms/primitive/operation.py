"""The one primitive of JAX that pcbatch adds: an operation that knows how it is run, batched and differentiated.

JAX's own rules would batch and differentiate the `while_loop` of a machine: `vmap` would run every block for all lanes,
and reverse mode is refused. An `Operation` has a rule of its own for each transformation instead. A `vmap` of an
operation is the operation for all elements, and those of a run become lanes: [lanes, elements, ...] is folded into
[lanes * elements, ...]. Lane `l` of element `e` is lane `l * elements + e` of the one machine that runs them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial, singledispatch
from typing import Any, Protocol, runtime_checkable

import jax
import jax.extend.core as jex
import jax.numpy as jnp
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding

from pcbatch.ir.stack import StackProgram
from pcbatch.runtime.lowering_platform import PLATFORMS, lowered_for, lowering_platform
from pcbatch.runtime.sharding.custom_partitioning import asking, is_spread
from pcbatch.runtime.sharding.lane_sharding import partition_spec, run_without_mesh, varied, without_mesh
from pcbatch.runtime.vm.raw_result import unsought
from pcbatch.transforms.primitive.errors import blaming, not_linear

Axis = int | None  # of the elements of a `vmap`; None: the same for all of them
ReadResults = Callable[[Sequence[Any]], tuple[list[Any], list[Axis]]]


@runtime_checkable
class Operation(Protocol):
    """A function of arrays as data, with a rule for each of JAX's transformations. Equal operations are the same
    function."""

    @property
    def name(self) -> str:
        """The name of the operation in jaxprs."""

    @property
    def steps(self) -> StackProgram | None:
        """The program that lanes run, if it is known here."""

    @property
    def differentiates(self) -> bool:
        """Whether the operation differentiates `steps`."""

    def __hash__(self) -> int:
        return super().__hash__()

    def lower(self, *args: Any) -> Sequence[Any]:
        """Compute the results by JAX's operations."""

    def over_devices(self) -> Operation:
        """Return the operation whose operations of JAX XLA may spread over devices as it likes."""
        return self

    def impl(self, *args: Any) -> Sequence[Any]:
        """Compute the results for concrete arrays, outside traces."""

    def abstract_eval(self, avals: Sequence[Any]) -> Sequence[Any] | None:
        """Return the types of the results, or None if only tracing tells."""
        return None

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        """Return the operation for `size` elements of a `vmap`, which are along these axes of the operands."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the results and their tangents. A tangent is None where it is zero by its type or its origin."""
        return jvp_rule(self, primals, tangents)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        """Return the cotangents of the arguments that are None, in which the operation is linear; None for the others.
        A cotangent is None where it is zero."""
        return transpose_rule(self, cotangents, args)


class Differentiable(Operation, Protocol):
    """An operation whose tangents may be transposed (see `Jvp` in `derived.py`)."""

    def for_tangents(self) -> Differentiable:
        """Return the same function in the form that JAX's forward mode differentiates right."""

    def pullback(self, cotangents: Sequence[Any], args: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        """Return the cotangents of the arguments that are `wanted`, None for the others, by operations that JAX may
        differentiate. A cotangent is None where it is zero. The parts of a tape have none: the tape is a function of
        the arguments of its run, and the derivative through it is in theirs."""
        return pullback_rule(self, cotangents, args, wanted)


# The rules of operations whose derivatives are operations that are made of them, such as that of a run which records.
# Such a rule is entered for its class where both are known.


@singledispatch
def jvp_rule(
    operation: Operation, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The rule `jvp` of an operation."""
    raise NotImplementedError(operation)


@singledispatch
def transpose_rule(operation: Operation, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
    """The rule `transpose` of an operation: most are not linear in any operand."""
    raise not_linear()


@singledispatch
def pullback_rule(
    operation: Differentiable, cotangents: Sequence[Any], args: Sequence[Any], wanted: Sequence[bool]
) -> Sequence[Any]:
    """The rule `pullback` of an operation."""
    raise NotImplementedError(operation)


@dataclass(frozen=True)
class BatchedOperation:
    """An operation that does for all elements of a `vmap` what another does for one.

    `operand` makes its operands, by position, from those of the other with the elements along an axis; it is linear in
    them, so it serves tangents too. `results` gives the results and their axes, `floats` those of the floating results
    alone.
    """

    operation: Operation
    operand: Callable[[int, Any, Axis], Any]
    results: ReadResults
    floats: ReadResults


def jitted(operation: Operation, options: tuple[tuple[str, Any], ...] | None = None) -> Any:
    """Compile an operation with `jax.jit`, once for each platform: machines are traced once for each type of the
    operands."""
    return _jitted(operation, options, lowering_platform())


@lru_cache(maxsize=512)
def _jitted(operation: Operation, options: tuple[tuple[str, Any], ...] | None, platform: str) -> Any:
    def run(*args: Any) -> list[Any]:
        with lowered_for(platform):  # JAX may trace it again
            return list(operation.lower(*args))

    return jax.jit(run, compiler_options=None if options is None else dict(options))


# Parts of JAX that have no types.
run_p: Any = jex.Primitive("pcbatch")
_struct: Any = jax.ShapeDtypeStruct
_is_unknown: Any = ad.is_undefined_primal

run_p.multiple_results = True


def bind(operation: Operation, *args: Any) -> list[Any]:
    """Apply an operation, inside any transformations of JAX."""
    # All operands are made to vary over the same axes of a `shard_map`. Then their cotangents do so too, and JAX sums
    # those of operands that did not.
    results: list[Any] = run_p.bind(*varied(args), operation=operation, asking=_asking(operation))
    return results


def _asking(operation: Operation) -> Any:
    """A jaxpr parameter that makes JAX require concrete devices at lowering, for operations that XLA may split by
    lanes."""
    return asking() if getattr(operation, "splits", False) else None


def types_of(operation: Operation, avals: Sequence[Any]) -> list[Any]:
    """The types of an operation's results."""
    known = operation.abstract_eval(avals)
    return _placed(_traced(operation, avals).out_avals if known is None else known, avals)


def _traced(operation: Operation, avals: Sequence[Any]) -> jex.ClosedJaxpr:
    """Trace an operation without the mesh of the surrounding program: the machine is written for one device (see
    `trace_without_mesh`)."""
    with without_mesh():
        shapes = [_struct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in avals]
        closed: jex.ClosedJaxpr = jitted(operation).trace(*shapes).jaxpr
        return closed


def _placed(types: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """The types of results, which vary over the axes of a `shard_map` that the operands, `avals`, vary over."""
    axes = max((aval.manual_axis_type for aval in avals), key=lambda type_: len(type_.varying), default=None)
    mesh = next((aval.sharding.mesh for aval in avals if not aval.sharding.mesh.empty), None)
    if mesh is None:
        return list(types)
    return [
        type_.update(manual_axis_type=axes, sharding=NamedSharding(mesh, partition_spec(*[None] * len(type_.shape))))
        for type_ in types
    ]


def _blaming(operation: Operation) -> AbstractContextManager[None]:
    steps = operation.steps if operation.differentiates else None
    return nullcontext() if steps is None else blaming(steps)


def _impl(*args: Any, operation: Operation, asking: Any) -> list[Any]:
    with run_without_mesh(), _blaming(operation):
        return list(operation.impl(*args))


run_p.def_impl(_impl)


def _abstract(*avals: Any, operation: Operation, asking: Any) -> list[Any]:
    with _blaming(operation):
        return types_of(operation, avals)


run_p.def_abstract_eval(_abstract)


def _lowered(ctx: Any, *operands: Any, operation: Operation, asking: Any, platform: str | None = None) -> Any:
    operation = operation.over_devices() if is_spread(ctx.module_context) else operation
    with _blaming(operation), without_mesh(), nullcontext() if platform is None else lowered_for(platform):
        closed = _traced(operation, ctx.avals_in)
        plain = ctx.replace(avals_in=list(closed.in_avals), avals_out=list(closed.out_avals))
        return mlir.lower_fun(jitted(operation), multiple_results=True)(plain, *operands)


mlir.register_lowering(run_p, _lowered)  # for platforms of plug-ins
for _platform in PLATFORMS:
    mlir.register_lowering(run_p, partial(_lowered, platform=_platform), platform=_platform)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, operation: Operation, asking: Any) -> Any:
    outs, of_outs = operation.jvp(primals, [None if isinstance(t, ad.Zero) else t for t in tangents])
    return list(outs), [_zero(out) if t is None else t for out, t in zip(outs, of_outs, strict=True)]


def _zero(primal: Any) -> Any:
    return ad.Zero(jax.typeof(primal).to_tangent_aval())


ad.primitive_jvps[run_p] = _jvp


def _transpose(cotangents: Sequence[Any], *args: Any, operation: Operation, asking: Any) -> list[Any]:
    of_outs = [None if isinstance(ct, ad.Zero) else ct for ct in cotangents]
    known = [None if _is_unknown(x) else x for x in args]
    of_args = operation.transpose(of_outs, known)
    return [ad.Zero(x.aval) if ct is None and _is_unknown(x) else ct for ct, x in zip(of_args, args, strict=True)]


ad.primitive_transposes[run_p] = _transpose


def _batch(args: Sequence[Any], axes: Sequence[Axis], *, operation: Operation, asking: Any) -> Any:
    size = next(x.shape[axis] for x, axis in zip(args, axes, strict=True) if axis is not None)
    if size == 0:
        return _batch_of_none(operation, args, axes)
    batched = operation.batch(size, axes)
    operands = [batched.operand(k, x, axis) for k, (x, axis) in enumerate(zip(args, axes, strict=True))]
    outs = bind(batched.operation, *operands)
    with unsought():  # results are only moved here: NaN in them was looked for where they were computed
        return batched.results(outs)


def _batch_of_none(operation: Operation, args: Sequence[Any], axes: Sequence[Axis]) -> tuple[list[Any], list[Axis]]:
    """The results of a `vmap` over no elements. A folded run could not tell how many of its zero lanes belong to one
    element."""

    def element(x: Any, axis: Axis) -> Any:
        return _struct(x.shape if axis is None else (*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)

    types = jax.eval_shape(lambda *xs: bind(operation, *xs), *map(element, args, axes))
    return [jnp.zeros((0, *type_.shape), type_.dtype) for type_ in types], [0] * len(types)


batching.primitive_batchers[run_p] = _batch


def fold_lanes(array: Any, axis: int | None, size: int) -> Any:
    """Fold the elements along `axis` of an array [lanes, ...] into lanes: [lanes * size, ...]. None: each element has
    the same array."""
    if axis is None:
        return jnp.repeat(array, size, axis=0)
    second = jnp.moveaxis(array, axis, 1)
    return second.reshape(second.shape[0] * size, *second.shape[2:])


def repeat_lanes(array: Any, axis: int | None, lanes: int, size: int) -> Any:
    """Repeat a shared value for the lanes of a folded run: [lanes * size, ...]. It has the elements along `axis`; None:
    each element has the same value."""
    if axis is None:
        return jnp.broadcast_to(array, (lanes * size, *array.shape))
    first = jnp.moveaxis(array, axis, 0)
    return jnp.broadcast_to(first, (lanes, *first.shape)).reshape(lanes * size, *first.shape[1:])


def batched_per_lane(operation: Operation, operand: Callable[[int, Any, Axis], Any], size: int) -> BatchedOperation:
    """The batched operation, of elements folded into lanes, whose results all have a value for each lane."""

    def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
        return unfolded_outs(outs, [True] * len(outs), size)

    return BatchedOperation(operation, operand, results, results)


def unfolded(array: Any, size: int) -> Any:
    """Undo `fold_lanes`: [lanes, size, ...], with the elements along axis 1."""
    return array.reshape(array.shape[0] // size, size, *array.shape[1:])


def unfolded_outs(outs: Sequence[Any], per_lane: Sequence[bool], size: int) -> tuple[list[Any], list[int | None]]:
    """Unfold those results of a folded run that are `per_lane`; gives all results, and the axes of the elements."""
    results = [unfolded(x, size) if by_lane else x for x, by_lane in zip(outs, per_lane, strict=True)]
    return results, [1 if by_lane else None for by_lane in per_lane]
