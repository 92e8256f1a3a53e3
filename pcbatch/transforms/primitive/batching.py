"""Operations for many elements of a `vmap`: what to apply instead, to which operands, and how to read its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from pcbatch.ir.stack import StackProgram
from pcbatch.transforms.primitive.jitted import jitted

if TYPE_CHECKING:
    from pcbatch.transforms.primitive.operation import Operation

Axis = int | None  # of the elements; None: the same for all of them
Results = Callable[[Sequence[Any]], tuple[list[Any], list[Axis]]]


@dataclass(frozen=True)
class BatchedOperation:
    """`operation` does for all elements what another does for one. `operand` makes its operands, by position, from
    those with the elements along an axis; it is linear in them, so it serves tangents too. `results` tells the axes of
    what it gives, `floats` of the floating ones alone."""

    operation: Operation
    operand: Callable[[int, Any, Axis], Any]
    results: Results
    floats: Results


@dataclass(frozen=True, repr=False)
class MappedOperation:
    """An operation for each element along the first axis of those operands that are `mapped`: all at once, which is for
    operations whose loops do not depend on them, or one after another."""

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
            axes = tuple(0 if here else None for here in self.mapped)
            return list(jax.vmap(lambda *xs: list(self.of.lower(*xs)), in_axes=axes, axis_size=self.size)(*args))

        def one(elements: Sequence[Any]) -> list[Any]:
            mine = iter(elements)
            return list(self.of.lower(*(next(mine) if here else x for x, here in zip(args, self.mapped, strict=True))))

        return list(jax.lax.map(one, [x for x, here in zip(args, self.mapped, strict=True) if here]))

    def impl(self, *args: Any) -> Sequence[Any]:
        return list(jitted(self)(*args))

    def abstract_eval(self, avals: Sequence[Any]) -> None:
        """As traced."""

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        if not self.at_once:
            return one_by_one(self, size, axes)
        # What runs in one loop is lifted itself: runs that are recorded together are differentiated together.
        behind = [0 if here and axis is not None else axis for here, axis in zip(self.mapped, axes, strict=True)]
        inner = self.of.batch(size, behind)

        def operand(k: int, x: Any, axis: Axis) -> Any:
            if not self.mapped[k]:
                return inner.operand(k, x, axis)
            x = x if axis is None else jnp.moveaxis(x, axis, 1)
            return jax.vmap(lambda element: inner.operand(k, element, behind[k]))(x)

        operation = replace(self, of=inner.operation)
        return BatchedOperation(operation, operand, _of_each(inner.results), _of_each(inner.floats))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        from pcbatch.transforms.primitive.jvp import jvp_of
        from pcbatch.transforms.primitive.operation import bind

        outs = bind(self, *primals)
        return outs, jvp_of(self, primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        from pcbatch.transforms.primitive.jvp import refuse

        raise refuse()


def _of_each(read: Results) -> Results:
    """The same for results that have the elements of another `vmap` in front."""

    def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
        axes: list[Axis] = []

        def one(*element: Any) -> list[Any]:
            found, axes[:] = read(element)
            return found

        found = jax.vmap(one)(*outs) if outs else []
        return list(found), [None if axis is None else axis + 1 for axis in axes]

    return results


def at_once(operation: Operation, size: int, axes: Sequence[Axis]) -> BatchedOperation:
    """All elements in one loop, whose course does not depend on them."""
    return _many(operation, size, axes, True)


def one_by_one(operation: Operation, size: int, axes: Sequence[Axis]) -> BatchedOperation:
    """One element after another."""
    return _many(operation, size, axes, False)


def _many(operation: Operation, size: int, axes: Sequence[Axis], at_once: bool) -> BatchedOperation:
    mapped = tuple(axis is not None for axis in axes)

    def operand(k: int, x: Any, axis: Axis) -> Any:
        if not mapped[k]:
            return x
        return jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)

    def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
        return list(outs), [0] * len(outs)

    return BatchedOperation(MappedOperation(operation, size, mapped, at_once), operand, results, results)
