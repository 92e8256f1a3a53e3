"""Operations derived from others: one operation for each element of a `vmap`, and the tangents of an operation.

`MappedOperation` and `Jvp` are in one module because each becomes the other: the tangents of a `MappedOperation` are a
`Jvp`, and a `Jvp` for elements that differ in tangents alone is a `MappedOperation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import jax
import jax.numpy as jnp

from pcbatch.ir.stack import StackProgram
from pcbatch.transforms.primitive.errors import not_linear
from pcbatch.transforms.primitive.operation import (
    Axis,
    BatchedOperation,
    Differentiable,
    Operation,
    ReadResults,
    bind,
    jitted,
    types_of,
)

Pullback = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]

# For each element of a `vmap`


@dataclass(frozen=True, repr=False)
class MappedOperation(Operation):
    """An operation `of` for each element along the first axis of those operands that are `mapped`.

    All at once, which is for operations whose loops do not depend on these operands, or one after another.
    """

    of: Operation
    size: int
    mapped: tuple[bool, ...]
    at_once: bool

    def __repr__(self) -> str:
        return f"{self.name}[{self.size}]"

    @property
    def name(self) -> str:
        return f"many {self.of.name}s"

    @property
    def steps(self) -> StackProgram | None:
        return self.of.steps

    @property
    def differentiates(self) -> bool:
        return self.of.differentiates

    def lower(self, *args: Any) -> Sequence[Any]:
        if self.at_once:
            axes = tuple(0 if is_mapped else None for is_mapped in self.mapped)
            return list(jax.vmap(lambda *xs: list(self.of.lower(*xs)), in_axes=axes, axis_size=self.size)(*args))

        def one(element: Sequence[Any]) -> list[Any]:
            parts = iter(element)
            operands = (next(parts) if mapped else x for x, mapped in zip(args, self.mapped, strict=True))
            return list(self.of.lower(*operands))

        return list(jax.lax.map(one, [x for x, is_mapped in zip(args, self.mapped, strict=True) if is_mapped]))

    def impl(self, *args: Any) -> Sequence[Any]:
        return list(jitted(self)(*args))

    def for_tangents(self) -> MappedOperation:
        return replace(self, of=self._of.for_tangents())

    @property
    def _of(self) -> Differentiable:
        return cast("Differentiable", self.of)  # else it has no `Jvp`

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        if not self.at_once:
            return one_by_one(self, size, axes)
        # The operation inside is batched itself: elements that were recorded together are differentiated together.
        inner_axes = [
            0 if mapped and axis is not None else axis for mapped, axis in zip(self.mapped, axes, strict=True)
        ]
        inner = self.of.batch(size, inner_axes)

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if not self.mapped[k]:
                return inner.operand(k, x, axis)
            x = x if axis is None else jnp.moveaxis(x, axis, 1)
            return jax.vmap(lambda element: inner.operand(k, element, inner_axes[k]))(x)

        operation = replace(self, of=inner.operation)
        return BatchedOperation(operation, operand, _behind_first_axis(inner.results), _behind_first_axis(inner.floats))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        # By the rule of the operation inside, which may be another one than forward mode of what it consists of.
        each: Any = jax.vmap(self.of.jvp, in_axes=(self._axes, self._axes), axis_size=self.size)
        outs, of_outs = each(list(primals), list(tangents))
        return outs, of_outs

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        return self._of_elements(self.of.transpose, cotangents, args)

    def pullback(self, cotangents: Sequence[Any], args: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        return self._of_elements(lambda cts, xs: self._of.pullback(cts, xs, wanted), cotangents, args)

    @property
    def _axes(self) -> list[Axis]:
        return [0 if is_mapped else None for is_mapped in self.mapped]

    def _of_elements(self, pull: Pullback, cotangents: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The cotangents of the arguments, from those of each element's."""
        each: Any = jax.vmap(lambda cts, xs: list(pull(cts, xs)), in_axes=(0, self._axes), axis_size=self.size)
        pairs = zip(each(list(cotangents), list(args)), self.mapped, strict=True)
        return [ct if ct is None or is_mapped else ct.sum(0) for ct, is_mapped in pairs]


def _behind_first_axis(read: ReadResults) -> ReadResults:
    """Read results that have the elements of another `vmap` along their first axis."""

    def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
        axes: list[Axis] = []

        def one(*element: Any) -> list[Any]:
            parts, axes[:] = read(element)
            return parts

        stacked = jax.vmap(one)(*outs) if outs else []
        return list(stacked), [None if axis is None else axis + 1 for axis in axes]

    return results


def at_once(operation: Operation, size: int, axes: Sequence[Axis]) -> BatchedOperation:
    """Batch an operation whose loops do not depend on the operands that differ: all elements in one loop."""
    return _mapped(operation, size, axes, True)


def one_by_one(operation: Operation, size: int, axes: Sequence[Axis]) -> BatchedOperation:
    """Batch any operation: one element after another."""
    return _mapped(operation, size, axes, False)


def _mapped(operation: Operation, size: int, axes: Sequence[Axis], at_once: bool) -> BatchedOperation:
    mapped = tuple(axis is not None for axis in axes)

    def operand(k: int, x: Any, axis: Axis) -> Any:
        if not mapped[k]:
            return x
        return jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)

    def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
        return list(outs), [0] * len(outs)

    return BatchedOperation(MappedOperation(operation, size, mapped, at_once), operand, results, results)


# Tangents


@dataclass(frozen=True, repr=False)
class Jvp(Operation):
    """The tangents of an operation `of`, by JAX's forward mode of the operations that it consists of.

    Operands: those of the operation, then the tangents of those that are `moved`. Results: the tangents of its floating
    results.
    """

    of: Differentiable
    moved: tuple[bool, ...]
    differentiates = True

    def __repr__(self) -> str:
        return f"{self.name}[{self.of!r}]"

    @property
    def name(self) -> str:
        return f"tangents of {self.of.name}"

    @property
    def steps(self) -> StackProgram | None:
        return self.of.steps

    def lower(self, *args: Any) -> Sequence[Any]:
        primals, tangents = args[: len(self.moved)], args[len(self.moved) :]
        return tangents_of(self.of.for_tangents().lower, self.moved, primals, tangents)

    def impl(self, *args: Any) -> Sequence[Any]:
        return list(jitted(self)(*args))

    def for_tangents(self) -> Jvp:
        return replace(self, of=self.of.for_tangents())

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        if all(axis is None for axis in axes[: len(self.moved)]):
            return at_once(self, size, axes)
        return batch_tangents(lambda of: Jvp(cast("Differentiable", of), self.moved), self.of, self.moved, size, axes)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        return outs, jvp_of(self, primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        primals, tangents = args[: len(self.moved)], args[len(self.moved) :]
        if any(x is None for x in primals):
            raise not_linear()
        unknown = self._by_operand([t is None for t in tangents], False)
        of_primals = self.of.pullback(self._of_results(cotangents, primals), primals, unknown)
        return [*[None] * len(primals), *(ct for ct, moved in zip(of_primals, self.moved, strict=True) if moved)]

    def pullback(self, cotangents: Sequence[Any], args: Sequence[Any], wanted: Sequence[bool]) -> Sequence[Any]:
        # `D f(x) t` is linear in `t`: its pullback by `t` is that of `f`. In `x` it is the tangent of the pullback of
        # `f`, because derivatives may be taken in any order.
        count = len(self.moved)
        primals, tangents = args[:count], args[count:]
        positions = [k for k, is_moved in enumerate(self.moved) if is_moved]
        by_tangent = self._by_operand(wanted[count:], False)
        either = [a or b for a, b in zip(wanted, by_tangent, strict=False)]
        of_results = self._of_results(cotangents, primals)

        def of_primals_moved(*moved: Any) -> list[Any]:
            new = dict(zip(positions, moved, strict=True))
            return list(self.of.pullback(of_results, [new.get(k, x) for k, x in enumerate(primals)], either))

        of_tangents, of_primals = jax.jvp(of_primals_moved, [primals[k] for k in positions], list(tangents))
        return [
            *(ct if is_wanted else None for ct, is_wanted in zip(of_primals, wanted, strict=False)),
            *(of_tangents[k] if by_tangent[k] else None for k in positions),
        ]

    def _by_operand(self, of_tangents: Sequence[Any], of_others: Any) -> list[Any]:
        """A value for each operand of `of`: that of its tangent if it is moved."""
        values = iter(of_tangents)
        return [next(values) if is_moved else of_others for is_moved in self.moved]

    def _of_results(self, cotangents: Sequence[Any], primals: Sequence[Any]) -> list[Any]:
        """The cotangents of all results of `of`, from those of the floating ones."""
        floats = iter(cotangents)
        types = types_of(self.of, [jax.typeof(x) for x in primals])
        return [next(floats) if is_inexact(type_) else None for type_ in types]


def tangents_of(
    function: Callable[..., Sequence[Any]], moved: Sequence[bool], primals: Sequence[Any], tangents: Sequence[Any]
) -> list[Any]:
    """The tangents of the floating results of a function, from those of its arguments that are `moved`."""
    positions = [k for k, is_moved in enumerate(moved) if is_moved]

    def of_moved(*values: Any) -> list[Any]:
        new = dict(zip(positions, values, strict=True))
        return list(function(*(new.get(k, x) for k, x in enumerate(primals))))

    outs, of_outs = jax.jvp(of_moved, [primals[k] for k in positions], list(tangents))
    return [t for x, t in zip(outs, of_outs, strict=True) if is_inexact(x)]


def batch_tangents(
    make: Callable[[Operation], Operation], of: Operation, moved: Sequence[bool], size: int, axes: Sequence[Axis]
) -> BatchedOperation:
    """Batch the tangents of `of`: `make` makes them of its batched operation. `axes` are of primals and tangents."""
    count = len(moved)
    positions = [k for k, is_moved in enumerate(moved) if is_moved]
    # A primal is batched if it or its tangent is.
    joint = list(axes[:count])
    for k, axis in zip(positions, axes[count:], strict=True):
        joint[k] = axis if joint[k] is None else joint[k]
    inner = of.batch(size, joint)

    def operand(k: int, x: Any, axis: Axis) -> Any:
        return inner.operand(k if k < count else positions[k - count], x, axis)

    return BatchedOperation(make(inner.operation), operand, inner.floats, inner.floats)


def jvp_of(
    operation: Differentiable, primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]
) -> list[Any]:
    """The tangents of all results of an operation; None for those that have none."""
    moved = tuple(t is not None for t in tangents)
    of_outs = iter(bind(Jvp(operation, moved), *primals, *(t for t in tangents if t is not None)))
    return [next(of_outs) if is_inexact(x) else None for x in outs]


def linear_jvp(
    operation: Differentiable, first: int, primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]
) -> list[Any]:
    """The tangents of the results of an operation that is linear in its operands from the `first` on: in these alone,
    it is its own derivative."""
    if any(t is not None for t in tangents[:first]):
        return jvp_of(operation, primals, tangents, outs)
    pairs = zip(primals[first:], tangents[first:], strict=True)
    return bind(operation, *primals[:first], *(jnp.zeros_like(x) if t is None else t for x, t in pairs))


def is_inexact(x: Any) -> bool:
    """Whether an array or a type is of a floating or complex dtype, and so has a tangent."""
    return bool(jnp.issubdtype(x.dtype, jnp.inexact))
