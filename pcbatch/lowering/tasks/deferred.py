"""Defer what a loop does with the result of a call, so that the next call need not wait for it.

before:  bb4: t5 = call @f(c)                    after:  bb4: t5 = call @f(c)
              t = { t + t5 }                                  rows, n, full = { append } reads (rows, n, t5)
              jump bb3                                        branch full, bb8, bb7
                                                         bb7: jump bb3
                                                         bb8: t, n = { for each row: t + row } reads (t, rows, n)
                                                              jump bb7

A sum of floats must be made in the order of Python. So results are stored in rows, which tasks fill in any order
(`stored_results.py`), and the operation is done for all rows, one after the other, where they are full and on the ways
out of the loop. Nothing else in the loop may touch what it changes, and what else it reads must stay the same. It may
be any operation on the values of some variables and the result of a call, such as `best = max(best, f(c))`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.data.rounding import rounded_p
from pcbatch.ir.analysis.def_use import jump_to, may_return, retarget, successors, terminator_reads
from pcbatch.ir.analysis.liveness import live_after, live_in
from pcbatch.ir.analysis.loops import Loop, loops
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Terminator
from pcbatch.ir.names import Fresh
from pcbatch.ir.ops import RETURN, Branch, Expr, Jump, Prim, PureOp
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.types import BOOL, ArrayType
from pcbatch.lowering.analysis.cost import inner_jaxprs, op_cost
from pcbatch.lowering.cfg_passes.if_conversion import is_speculable
from pcbatch.lowering.tasks.linear_results import linear_calls
from pcbatch.lowering.tasks.pending_calls import Site, tails
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.lowering.typing.jax_types import to_aval
from pcbatch.lowering.typing.leaves import constant, no_value
from pcbatch.lowering.typing.trace import JaxprFn

MOST, LEAST = 16, 4  # rows
ELEMENTS = 256  # of all rows, from which on there are fewer
COST = 512.0  # of an operation for as many rows, in about one arithmetic operation each
NUMBER = ArrayType("int32", ())
# The operation is computed for rows that hold nothing, too. It must have a finite derivative there: a gradient of what
# is not selected would be zero times infinity.
SMOOTH = frozenset(
    (
        *("add", "add_any", "sub", "mul", "neg", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not"),
        *("broadcast_in_dim", "convert_element_type", "copy", "reshape", "select_n", "squeeze", "jit", "pjit"),
        rounded_p.name,
    )
)


@dataclass(frozen=True, slots=True)
class Deferred:
    """An operation that can be deferred.

    Attributes:
        site: the call.
        position: the index of the operation in the same block.
        loop: the loop until whose end it is deferred, at most.
    """

    site: Site
    position: int
    loop: Loop


def run(program: CfgProgram) -> CfgProgram:
    """Return the program in which operations on results of calls are deferred.

    `program`: a typed one without prints, checks and messages.
    """
    for name in [function.name for function in program.functions]:
        while (found := _find(program, program.function(name))) is not None:
            new = _Deferring(program.function(name), found).function_after()
            program = replace(program, functions=tuple(new if f.name == name else f for f in program.functions))
    return program


def _find(program: CfgProgram, function: Function) -> Deferred | None:
    """The first operation that can be deferred. One that was deferred reads no result of a call any more."""
    if not any(isinstance(op, Call) for op in function.ops):
        return None
    # Calls that are not waited for anyway: they add to the result of their caller, or take its place.
    apart = linear_calls(program)[function.name] | {*tails(function, {f.name: f for f in program.functions})}
    around = loops(function)
    after = live_after(function)
    for block in function.blocks:
        for k, call in enumerate(block.ops):
            if not isinstance(call, Call) or not call.dsts or (block.label, k) in apart:
                continue
            position = next((j for j in range(k + 1, len(block.ops)) if {*call.dsts} & {*reads(block.ops[j])}), None)
            if position is None or {*call.dsts} & after[block.label][position]:
                continue
            op = block.ops[position]
            if not isinstance(op, Prim) or not _may_wait(op, call, function.types):
                continue
            if {*call.dsts} & {v for other in block.ops[k + 1 : position] for v in writes(other)}:
                continue
            fitting = [loop for loop in around if block.label in loop.body and _is_apart(function, loop, op, call.dsts)]
            if fitting:
                return Deferred((block.label, k), position, fitting[-1])
    return None


def _may_wait(op: Prim, call: Call, types: Mapping[str, ArrayType | None]) -> bool:
    """Whether an operation takes variables and results of a call, and gives such variables, at little cost."""
    names = [*op.dsts, *op.expr.ins]
    given = [types.get(v) for v in names]
    if not isinstance(op.expr.fn, JaxprFn) or len({*op.expr.ins}) < len(op.expr.ins) or {*call.dsts} & {*op.dsts}:
        return False
    if any(t is None or t.dtype.startswith("key") for t in given) or not {*op.dsts} <= {*op.expr.ins}:
        return False
    return (
        is_speculable(op)
        and _is_smooth(op.expr.fn.closed.jaxpr)
        and op_cost(op) * LEAST <= COST
        and {*call.dsts} <= {*op.expr.ins}
    )


def _is_smooth(jaxpr: Any) -> bool:
    return all(eqn.primitive.name in SMOOTH and all(map(_is_smooth, inner_jaxprs(eqn))) for eqn in jaxpr.eqns)


def _is_apart(function: Function, loop: Loop, op: Prim, results: Collection[str]) -> bool:
    """Whether nothing else in a loop touches what an operation changes, nor changes what else it reads."""
    same = {*op.expr.ins} - {*op.dsts, *results}
    for label in loop.body:
        block = function.block(label)
        others = [other for other in block.ops if other is not op]
        if any({*op.dsts} & {*reads(other), *writes(other)} or same & {*writes(other)} for other in others):
            return False
        if {*op.dsts} & {*terminator_reads(block.terminator)}:
            return False
    return True


def _other(ways: Mapping[str, str], target: str) -> str:
    return ways.get(target, target)


def with_row(rows: Any, count: Any, value: Any) -> Any:
    """Return rows with a value at the number `count`, in the form that `stored_results` knows."""
    return rows.at[count].set(value.astype(rows.dtype), mode="drop", wrap_negative_indices=False)


def _targets(terminator: Terminator) -> tuple[str, ...]:
    """The labels to which control may go, and `RETURN`."""
    return (*successors(terminator), *((RETURN,) if may_return(terminator) else ()))


class _Deferring:
    """One operation of a function while it is deferred."""

    def __init__(self, function: Function, found: Deferred) -> None:
        self.function, self.found = function, found
        self.block = function.block(found.site[0])
        call, op = self.block.ops[found.site[1]], self.block.ops[found.position]
        assert isinstance(call, Call) and isinstance(op, Prim)
        self.call, self.op = call, op
        self.types: dict[str, ArrayType | None] = dict(function.types)
        self.fresh = Fresh({*function.types, *function.params, *function.results})
        self.last = function.last_label
        self.count = self.new("n", NUMBER)
        self.full = self.new("full", BOOL)
        self.rows = {v: self.new(f"{v}.rows", self._rows_of(v)) for v in call.dsts}

    def new(self, name: str, type_: ArrayType) -> str:
        made = self.fresh(name)
        self.types[made] = type_
        return made

    def label(self) -> str:
        self.last += 1
        return f"bb{self.last}"

    def type_of(self, v: str) -> ArrayType:
        type_ = self.types[v]
        assert type_ is not None
        return type_

    @property
    def room(self) -> int:
        """The number of rows that hold results for a deferred operation."""
        elements = sum(math.prod(self.type_of(v).shape) for v in self.call.dsts)
        most = min(ELEMENTS // max(1, elements), int(COST / max(1.0, op_cost(self.op))))
        return max(LEAST, min(MOST, most))

    def _rows_of(self, v: str) -> ArrayType:
        type_ = self.type_of(v)
        return replace(type_, shape=(self.room, *type_.shape), weak=False)

    def function_after(self) -> Function:
        """The function after the change."""
        live, loop = live_in(self.function), self.found.loop
        begin = self.label()
        blocks: list[Block] = []
        for block in self.function.blocks:
            inside = block.label in loop.body
            if block.label == loop.head:
                blocks.append(Block(begin, self.beginning(), Jump(loop.head)))
            ways: dict[str, str] = {}
            for target in _targets(block.terminator):
                if not inside and target == loop.head:
                    ways[target] = begin
                elif inside and target not in loop.body and self.is_read(target, live):
                    ways[target] = self.label()
            block = replace(block, terminator=retarget(block.terminator, partial(_other, ways)))
            blocks += self.stored(block) if block.label == self.block.label else [block]
            blocks += [
                Block(label, (self.fold(),), jump_to(target)) for target, label in ways.items() if label != begin
            ]
        if self.function.blocks[0].label == loop.head:
            first = next(block for block in blocks if block.label == begin)
            blocks = [first, *(block for block in blocks if block is not first)]
        return replace(self.function, blocks=tuple(blocks), types=self.types)

    def is_read(self, target: str, live: Mapping[str, Collection[str]]) -> bool:
        """Whether what the operation changes is used on the way to a block."""
        wanted = self.function.results if target == RETURN else live[target]
        return not {*self.op.dsts}.isdisjoint(wanted)

    def beginning(self) -> tuple[PureOp, ...]:
        """No row is full before the loop."""
        loc = self.call.loc
        empty = [no_value(rows, self.type_of(rows), loc) for rows in self.rows.values()]
        return (*empty, constant(self.count, Known(0), NUMBER, loc))

    def stored(self, block: Block) -> list[Block]:
        """The block of the call, which stores the result, and does the operation only where all rows are full."""
        k, position = self.found.site[1], self.found.position
        rest, full = self.label(), self.label()
        others = (*block.ops[k + 1 : position], *block.ops[position + 1 :])
        return [
            Block(block.label, (*block.ops[: k + 1], self.append()), Branch(self.full, full, rest, self.call.loc)),
            Block(full, (self.fold(),), Jump(rest)),
            Block(rest, others, block.terminator),
        ]

    def append(self) -> Prim:
        room, dsts = self.room, self.call.dsts

        def append(count: Any, *values: Any) -> tuple[Any, ...]:
            rows, results = values[: len(dsts)], values[len(dsts) :]
            stored = [with_row(r, count, v) for r, v in zip(rows, results, strict=True)]
            return (*stored, count + 1, count + 1 >= room)

        names = tuple(self.rows[v] for v in dsts)
        return self.prim((*names, self.count, self.full), (self.count, *names, *dsts), "store", append)

    def fold(self) -> Prim:
        """The operation for all rows that are full, in order; none is full afterwards."""
        op, room, dsts = self.op, self.room, self.call.dsts
        fn = op.expr.fn
        assert fn is not None
        others = tuple(v for v in op.expr.ins if v not in dsts)

        def fold(count: Any, *values: Any) -> tuple[Any, ...]:
            rows = dict(zip(dsts, values[: len(dsts)], strict=True))
            known = dict(zip(others, values[len(dsts) :], strict=True))
            for k in range(room):
                row = {v: jax.lax.index_in_dim(x, k, keepdims=False) for v, x in rows.items()}
                found = fn(*(row[v] if v in row else known[v] for v in op.expr.ins))
                results = found if len(op.dsts) != 1 else (found,)
                for v, new in zip(op.dsts, results, strict=True):
                    known[v] = jnp.where(k < count, new, known[v]).astype(known[v].dtype)
            return (*(known[v] for v in op.dsts), jnp.zeros_like(count))

        ins = (self.count, *(self.rows[v] for v in dsts), *others)
        return self.prim((*op.dsts, self.count), ins, op.expr.text, fold)

    def prim(self, outs: tuple[str, ...], ins: tuple[str, ...], text: str, compute: Callable[..., Any]) -> Prim:
        closed = jax.make_jaxpr(compute)(*(to_aval(replace(self.type_of(v), weak=False)) for v in ins))
        return Prim(outs, Expr(text, ins, JaxprFn(closed, [None] * len(outs))), self.call.loc)
