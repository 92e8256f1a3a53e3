"""The tangents of an operation, by JAX's forward mode of the operations that it consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import UsageError
from pcbatch.ir.stack import StackProgram
from pcbatch.transforms.primitive.batching import Axis, BatchedOperation, at_once
from pcbatch.transforms.primitive.jitted import jitted
from pcbatch.transforms.primitive.operation import Operation, bind


@dataclass(frozen=True, repr=False)
class Jvp:
    """Operands of an operation, then tangents of those that are `moved`; gives tangents of its floating results."""

    of: Operation
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
        primals, given = args[: len(self.moved)], iter(args[len(self.moved) :])
        places = [k for k, here in enumerate(self.moved) if here]

        def function(*values: Any) -> list[Any]:
            new = dict(zip(places, values, strict=True))
            return list(self.of.lower(*(new.get(k, x) for k, x in enumerate(primals))))

        outs, tangents = jax.jvp(function, [primals[k] for k in places], list(given))
        return [t for x, t in zip(outs, tangents, strict=True) if is_inexact(x)]

    def impl(self, *args: Any) -> Sequence[Any]:
        return list(jitted(self)(*args))

    def abstract_eval(self, avals: Sequence[Any]) -> None:
        """As traced."""

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        if all(axis is None for axis in axes[: len(self.moved)]):
            return at_once(self, size, axes)
        return lifted(lambda of: Jvp(of, self.moved), self.of, self.moved, size, axes)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(self, *primals)
        return outs, jvp_of(self, primals, tangents, outs)

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        raise refuse()


def lifted(
    tangents_of: Callable[[Operation], Operation],
    of: Operation,
    moved: Sequence[bool],
    size: int,
    axes: Sequence[Axis],
) -> BatchedOperation:
    """Tangents for many elements: those of what does for many what `of` does for one."""
    count = len(moved)
    places = [k for k, here in enumerate(moved) if here]
    joint = list(axes[:count])
    for k, axis in zip(places, axes[count:], strict=True):
        joint[k] = axis if joint[k] is None else joint[k]
    inner = of.batch(size, joint)

    def operand(k: int, x: Any, axis: Axis) -> Any:
        return inner.operand(k if k < count else places[k - count], x, axis)

    return BatchedOperation(tangents_of(inner.operation), operand, inner.floats, inner.floats)


def jvp_of(operation: Operation, primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
    """The tangents of all results of an operation."""
    moved = tuple(t is not None for t in tangents)
    found = iter(bind(Jvp(operation, moved), *primals, *(t for t in tangents if t is not None)))
    return [next(found) if is_inexact(x) else None for x in outs]


def pushed_linear(
    operation: Operation, first: int, primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]
) -> list[Any]:
    """The same of one that is linear in its operands from the `first` on: of these alone, it is its own derivative."""
    if any(t is not None for t in tangents[:first]):
        return jvp_of(operation, primals, tangents, outs)
    pairs = zip(primals[first:], tangents[first:], strict=True)
    return bind(operation, *primals[:first], *(jnp.zeros_like(x) if t is None else t for x, t in pairs))


def is_inexact(x: Any) -> bool:
    """Has this a tangent?"""
    return bool(jnp.issubdtype(x.dtype, jnp.inexact))


def refuse() -> UsageError:
    """Reverse mode of what is itself a derivative."""
    title = "reverse mode of a derivative of a batched function"
    note = "its gradient undoes a run of the machine; that cannot be undone once more"
    help = "take the outer derivative in forward mode: `jax.jacfwd(jax.grad(f))`, `jax.jvp(jax.grad(f), ...)`"
    return UsageError(Diagnostic("PCB422", title, notes=(note,), helps=(help,)))


def not_linear() -> UsageError:
    """The transpose of a run, or of what records one."""
    title = "a batched function is transposed"
    note = "only linear functions can be, and nobody knows whether it is one"
    help = "write `jax.vjp(f, x)[1]`, with any `x`: if `f` is linear, that is its transpose"
    return UsageError(Diagnostic("PCB425", title, notes=(note,), helps=(help,)))
