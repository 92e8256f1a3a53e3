"""Results that JAX can push tangents to, and pull no cotangents from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from pcbatch.runtime.local_strategy.executor import needs_pc
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.transforms.primitive.batching import Axis, BatchedOperation
from pcbatch.transforms.primitive.jvp import is_inexact
from pcbatch.transforms.primitive.operation import bind


@dataclass(frozen=True, repr=False)
class ForwardOnly:
    """The identity, whose transpose is refused. It stands behind the loops of the strategy "local", so JAX meets it
    before them when it goes backwards, and says more than that a `while_loop` has no reverse mode."""

    name: str = "forward mode only"
    steps: None = None
    differentiates: bool = False

    def __repr__(self) -> str:
        return self.name

    def lower(self, *args: Any) -> Sequence[Any]:
        return args

    def impl(self, *args: Any) -> Sequence[Any]:
        return args

    def abstract_eval(self, avals: Sequence[Any]) -> Sequence[Any]:
        return avals

    def batch(self, size: int, axes: Sequence[Axis]) -> BatchedOperation:
        def results(outs: Sequence[Any]) -> tuple[list[Any], list[Axis]]:
            return list(outs), list(axes)

        return BatchedOperation(self, lambda k, x, axis: x, results, results)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        moved = iter(bind(self, *(t for t in tangents if t is not None)))
        return bind(self, *primals), [None if t is None else next(moved) for t in tangents]

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        works = "or use forward mode: `jax.jvp(f, ...)`, `jax.jacfwd(f)`"
        raise needs_pc("reverse mode (`jax.grad`, `jax.vjp`, `jax.jacrev`)", works)


def forward_only(outcome: RawResult) -> RawResult:
    """The outcome of a run inside a trace. Whether a function is a straight line, which JAX could reverse, hangs on
    what the compiler makes of its branches: so none of them is."""
    leaves, tree = jax.tree.flatten(outcome)
    smooth = [k for k, x in enumerate(leaves) if isinstance(x, jax.core.Tracer) and is_inexact(x)]
    if not smooth:
        return outcome
    for k, x in zip(smooth, bind(ForwardOnly(), *(leaves[k] for k in smooth)), strict=True):
        leaves[k] = x
    found: RawResult = jax.tree.unflatten(tree, leaves)
    return found
