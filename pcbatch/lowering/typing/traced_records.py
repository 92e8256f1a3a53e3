"""Traces of primitives that read the tables of packed objects, or the heap of records made in lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pcbatch.containers.aliasing import CAPTURED
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.trace import Traced
from pcbatch.records.made_fields import HeapUse


def reading_tables(traced: Traced, ins: Sequence[Abstract]) -> Traced:
    """Return a primitive whose last operand are the tables of records: what is read of these existed before."""
    last = len(ins) - 1
    aliases = {one._replace(source=CAPTURED) if one.source == last else one for one in traced.aliases}
    return replace(traced, tables=True, aliases=frozenset(aliases))


def using_heap(traced: Traced, operands: int, fields: HeapUse, *, tables: bool) -> Traced:
    """Return a primitive whose last operand and last result is the heap of records that lanes make; `operands` is the
    number of the others that are variables of the user's; with `tables` those of packed objects stand between."""
    last = len(traced.outs) - 1
    aliases = {
        one._replace(source=CAPTURED) if one.source >= operands else one
        for one in traced.aliases
        if one.result != last and one.source < operands + tables  # `fields` tells of the heap
    }
    return replace(
        traced,
        outs=traced.outs[:-1],
        weak=traced.weak[:-1],
        heap=traced.outs[-1],
        fields=fields,
        aliases=frozenset(aliases),
        repeated=traced.repeated - {last},
    )
