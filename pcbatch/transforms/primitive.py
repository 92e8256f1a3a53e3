"""The one primitive of JAX that pcbatch adds: an operation that knows how it is run, batched and differentiated.

JAX's own rules would batch and differentiate the `while_loop` of a machine: `vmap` would run every block for everyone,
and reverse mode is refused. An `Operation` says instead what each transformation makes of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import jax
import jax.extend.core as jex
from jax.interpreters import ad, batching, mlir

from pcbatch.transforms.lifted import Axis, Lifted


@runtime_checkable
class Operation(Hashable, Protocol):
    """A function of arrays, as data: equal operations are the same function."""

    @property
    def name(self) -> str:
        """What jaxprs call it."""

    def traced(self, *args: Any) -> Sequence[Any]:
        """Its result in JAX's operations."""

    def now(self, *args: Any) -> Sequence[Any]:
        """Its result for arrays that are known, outside traces."""

    def types(self, avals: Sequence[Any]) -> Sequence[Any] | None:
        """The types of the results, if they are known without tracing."""

    def lifted(self, size: int, axes: Sequence[Axis]) -> Lifted:
        """What does the same for `size` elements of a `vmap`, with these axes of the operands."""

    def push(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The results and their tangents. A tangent is None where it is zero by its type or its origin."""

    def pull(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        """Of an operation that is linear in the arguments given as None: their cotangents, None for the others. A
        cotangent is None where it is zero."""


# What of JAX has no types.
_run: Any = jex.Primitive("pcbatch")
_struct: Any = jax.ShapeDtypeStruct
_is_unknown: Any = ad.is_undefined_primal

_run.multiple_results = True


def bind(operation: Operation, *args: Any) -> list[Any]:
    """Apply an operation, under whatever transformation is at work."""
    results: list[Any] = _run.bind(*args, operation=operation)
    return results


@lru_cache(maxsize=512)
def _jitted(operation: Operation) -> Any:
    """The operation as a function of JAX, which keeps what it has traced: machines are traced once per type."""
    return jax.jit(lambda *args: list(operation.traced(*args)))


def types_of(operation: Operation, avals: Sequence[Any]) -> list[Any]:
    """The types of an operation's results."""
    known = operation.types(avals)
    if known is not None:
        return list(known)
    return list(_jitted(operation).trace(*map(_described, avals)).jaxpr.out_avals)


def _described(aval: Any) -> Any:
    more = {name: found for name in ("weak_type", "vma") if (found := getattr(aval, name, None))}
    return _struct(aval.shape, aval.dtype, **more)


def _impl(*args: Any, operation: Operation) -> list[Any]:
    return list(operation.now(*args))


_run.def_impl(_impl)


def _abstract(*avals: Any, operation: Operation) -> list[Any]:
    return types_of(operation, avals)


_run.def_abstract_eval(_abstract)


def _lowered(*args: Any, operation: Operation) -> list[Any]:
    return list(_jitted(operation)(*args))


mlir.register_lowering(_run, mlir.lower_fun(_lowered, multiple_results=True))


def _batch(args: Sequence[Any], axes: Sequence[Axis], *, operation: Operation) -> Any:
    size = next(x.shape[axis] for x, axis in zip(args, axes, strict=True) if axis is not None)
    found = operation.lifted(size, axes)
    operands = [found.operand(k, x, axis) for k, (x, axis) in enumerate(zip(args, axes, strict=True))]
    return found.results(bind(found.operation, *operands))


batching.primitive_batchers[_run] = _batch


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, operation: Operation) -> Any:
    outs, pushed = operation.push(primals, [None if isinstance(t, ad.Zero) else t for t in tangents])
    return list(outs), [_zero(out) if t is None else t for out, t in zip(outs, pushed, strict=True)]


def _zero(primal: Any) -> Any:
    return ad.Zero(jax.typeof(primal).to_tangent_aval())


ad.primitive_jvps[_run] = _jvp


def _transpose(cotangents: Sequence[Any], *args: Any, operation: Operation) -> list[Any]:
    given = [None if isinstance(ct, ad.Zero) else ct for ct in cotangents]
    known = [None if _is_unknown(x) else x for x in args]
    pulled = operation.pull(given, known)
    return [ad.Zero(x.aval) if ct is None and _is_unknown(x) else ct for ct, x in zip(pulled, args, strict=True)]


ad.primitive_transposes[_run] = _transpose
