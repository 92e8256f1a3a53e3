"""Results that have tangents, and refuse reverse mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from pcbatch.runtime.local_strategy.executor import needs_pc
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.transforms.primitive.derived import is_inexact
from pcbatch.transforms.primitive.operation import Axis, BatchedOperation, Operation, bind


@dataclass(frozen=True, repr=False)
class ForwardOnly(Operation):
    """The identity, with a transpose that is refused.

    It follows the loops of the strategy "local", so reverse mode meets it before them, and the error says more than
    that a `while_loop` has no reverse mode.
    """

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
        passed = iter(bind(self, *(t for t in tangents if t is not None)))
        return bind(self, *primals), [None if t is None else next(passed) for t in tangents]

    def transpose(self, cotangents: Sequence[Any], args: Sequence[Any]) -> Sequence[Any]:
        works = "or use forward mode: `jax.jvp(f, ...)`, `jax.jacfwd(f)`"
        raise needs_pc("reverse mode (`jax.grad`, `jax.vjp`, `jax.jacrev`)", works)


def forward_only(raw: RawResult) -> RawResult:
    """Refuse reverse mode of a result inside a trace.

    JAX could reverse a function that is compiled to straight-line code. Whether one is depends on the compiler's
    choices for its branches, so reverse mode is refused for all.
    """
    leaves, tree = jax.tree.flatten(raw)
    smooth = [k for k, x in enumerate(leaves) if isinstance(x, jax.core.Tracer) and is_inexact(x)]
    if not smooth:
        return raw
    for k, x in zip(smooth, bind(ForwardOnly(), *(leaves[k] for k in smooth)), strict=True):
        leaves[k] = x
    refusing: RawResult = jax.tree.unflatten(tree, leaves)
    return refusing
