"""Calls in tail position: the callee takes the place of its caller, in lanes and as a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pcbatch.ir.cfg import Function
from pcbatch.lowering.stack_passes.lower_calls import tail_call

Site = tuple[str, int]  # label of a block, index of the call in it


def tails(function: Function, functions: Mapping[str, Function]) -> Iterator[Site]:
    """Yield the calls in tail position whose results have the types of the caller's."""
    for block in function.blocks:
        call = tail_call(function, block)
        if call is not None and _result_types(function) == _result_types(functions[call.func]):
            yield block.label, len(block.ops) - 1


def _result_types(function: Function) -> list[tuple[str, tuple[int, ...]]]:
    """The types of results, apart from whether they are weak."""
    types = [function.types[r] for r in function.results]
    return [(t.dtype, t.shape) for t in types if t is not None]
