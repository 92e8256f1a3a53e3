"""The one primitive of JAX that pcbatch adds: an operation that knows how it is run, batched and differentiated.

JAX's own rules would batch and differentiate the `while_loop` of a machine: `vmap` would run every block for everyone,
and reverse mode is refused. An `Operation` says instead what each transformation makes of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, runtime_checkable

import jax
import jax.extend.core as jex
import jax.numpy as jnp
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding

from pcbatch.ir.stack import StackProgram
from pcbatch.runtime.sharding.ambient_mesh import run_without_mesh, varied, without_mesh
from pcbatch.runtime.sharding.custom_partitioning import asking
from pcbatch.runtime.sharding.lane_sharding import partition_spec
from pcbatch.runtime.vm.raw_result import unsought
from pcbatch.transforms.primitive.batching import Axis, BatchedOperation
from pcbatch.transforms.primitive.errors import blaming
from pcbatch.transforms.primitive.jitted import jitted


@runtime_checkable
class Operation(Hashable, Protocol):
    """A function of arrays, as data: equal operations are the same function."""

    @property
    def name(self) -> str:
        """What jaxprs call it."""

    @property
    def steps(self) -> StackProgram | None:
        """What lanes run, if it is known here."""

    @property
    def differentiates(self) -> bool:
        """Does it differentiate these steps?"""

    def lower(self, *args: Any) -> Sequence[Any]:
        """Its result in JAX's operations."""

    def impl(self, *args: Any) -> Sequence[Any]:
        """Its result for arrays that are known, outside traces."""

    def abstract_eval(self, avals: Sequence[Any]) -> Sequence[Any] | None:
        """The types of the results, if they are known without tracing."""

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        """What does the same for `size` elements of a `vmap`, with these axes of the operands."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The results and their tangents. A tangent is None where it is zero by its type or its origin."""

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        """Of an operation that is linear in the arguments given as None: their cotangents, None for the others. A
        cotangent is None where it is zero."""


# What of JAX has no types.
_run: Any = jex.Primitive("pcbatch")
_struct: Any = jax.ShapeDtypeStruct
_is_unknown: Any = ad.is_undefined_primal

_run.multiple_results = True


def bind(operation: Operation, *args: Any) -> list[Any]:
    """Apply an operation, under whatever transformation is at work."""
    # Operands vary over the same axes of a `shard_map`: so do their cotangents, and JAX sums what has to be summed.
    results: list[Any] = _run.bind(*varied(args), operation=operation, asking=_asking(operation))
    return results


def _asking(operation: Operation) -> Any:
    """Something in which JAX sees that devices must be known when this is lowered, if XLA may split it by lanes."""
    return asking() if getattr(operation, "splits", False) else None


def types_of(operation: Operation, avals: Sequence[Any]) -> list[Any]:
    """The types of an operation's results."""
    known = operation.abstract_eval(avals)
    return _placed(_traced(operation, avals).out_avals if known is None else known, avals)


def _traced(operation: Operation, avals: Sequence[Any]) -> jex.ClosedJaxpr:
    """An operation as if nothing stood around it: the machine knows of one device (see `surroundings`)."""
    with without_mesh():
        shapes = [_struct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in avals]
        closed: jex.ClosedJaxpr = jitted(operation).trace(*shapes).jaxpr
        return closed


def _placed(types: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """The types of results for operands of these types: they vary over the axes that some operand varies over."""
    axes = max((aval.manual_axis_type for aval in avals), key=lambda found: len(found.varying), default=None)
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


_run.def_impl(_impl)


def _abstract(*avals: Any, operation: Operation, asking: Any) -> list[Any]:
    with _blaming(operation):
        return types_of(operation, avals)


_run.def_abstract_eval(_abstract)


def _lowered(ctx: Any, *operands: Any, operation: Operation, asking: Any) -> Any:
    with _blaming(operation), without_mesh():
        closed = _traced(operation, ctx.avals_in)
        plain = ctx.replace(avals_in=list(closed.in_avals), avals_out=list(closed.out_avals))
        return mlir.lower_fun(jitted(operation), multiple_results=True)(plain, *operands)


mlir.register_lowering(_run, _lowered)


def _batch(args: Sequence[Any], axes: Sequence[Axis], *, operation: Operation, asking: Any) -> Any:
    size = next(x.shape[axis] for x, axis in zip(args, axes, strict=True) if axis is not None)
    if size == 0:
        return _of_no_element(operation, args, axes)
    found = operation.batch(size, axes)
    operands = [found.operand(k, x, axis) for k, (x, axis) in enumerate(zip(args, axes, strict=True))]
    outs = bind(found.operation, *operands)
    with unsought():  # they are moved, no more
        return found.results(outs)


def _of_no_element(operation: Operation, args: Sequence[Any], axes: Sequence[Axis]) -> tuple[list[Any], list[Axis]]:
    """Of a `vmap` over nothing: when there are no lanes, nobody could tell how many belong to an element."""

    def element(x: Any, axis: Axis) -> Any:
        return _struct(x.shape if axis is None else (*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)

    types = jax.eval_shape(lambda *xs: bind(operation, *xs), *map(element, args, axes))
    return [jnp.zeros((0, *type_.shape), type_.dtype) for type_ in types], [0] * len(types)


batching.primitive_batchers[_run] = _batch


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, operation: Operation, asking: Any) -> Any:
    outs, pushed = operation.jvp(primals, [None if isinstance(t, ad.Zero) else t for t in tangents])
    return list(outs), [_zero(out) if t is None else t for out, t in zip(outs, pushed, strict=True)]


def _zero(primal: Any) -> Any:
    return ad.Zero(jax.typeof(primal).to_tangent_aval())


ad.primitive_jvps[_run] = _jvp


def _transpose(cotangents: Sequence[Any], *args: Any, operation: Operation, asking: Any) -> list[Any]:
    given = [None if isinstance(ct, ad.Zero) else ct for ct in cotangents]
    known = [None if _is_unknown(x) else x for x in args]
    pulled = operation.transpose(given, known)
    return [ad.Zero(x.aval) if ct is None and _is_unknown(x) else ct for ct, x in zip(pulled, args, strict=True)]


ad.primitive_transposes[_run] = _transpose
