"""The body of a block as a batched function: its operands and results, and its evaluation for the lanes of a window.

Every operation is evaluated for all places of a window at once, under `vmap`; values shared by all lanes enter it
unbatched, so a product with a shared matrix is one matrix product. Masks, frames and program counters belong to the
step (`step.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, assert_never

import jax
import jax.numpy as jnp

from pcbatch.ir.analysis.def_use import block_uses, block_writes, pops, pushes, terminator_reads
from pcbatch.ir.analysis.liveness import live_out
from pcbatch.ir.ops import Fail, Move, Prim, Print, PureOp, Select
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.stack import Pop, Push, StackBlock, StackProgram, Var
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.agreement import keys_of
from pcbatch.lowering.analysis.cost import op_may_not_end, wants_rows
from pcbatch.lowering.typing.jax_types import from_storage, is_key, storage_type, to_storage
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.vm import indexed_access, lanes_last, operands
from pcbatch.runtime.vm.indexed_access import Cut
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.named_scopes import scope
from pcbatch.runtime.vm.operands import Batch, Common, Operand, Whole
from pcbatch.runtime.vm.prints import Shown, prints_of

Values = dict[str, Any]


class BodyResults(NamedTuple):
    """The results of a body before any mask is applied: values in storage form, [width, ...] where nothing else is
    said; those of inactive lanes are junk."""

    updates: Values  # register -> new value
    placed: Values  # register -> the whole register [lanes, ...], into which active lanes have stored in place
    saved: Values  # variable -> value to push to its slot
    conditions: Values  # variable that the terminator reads -> bool[width]
    printed: Shown
    loaded: Values  # values read from parts of registers, by `indexed_access.load_key`


@dataclass(frozen=True, slots=True)
class BlockCode:
    """One block, ready for emission: the names of its operands and results, and its body."""

    index: int  # its program counter
    block: StackBlock
    vars: Mapping[str, Var]  # of the program
    reads: tuple[str, ...]  # registers
    pops: tuple[str, ...]  # slots of frames
    updates: tuple[str, ...]  # registers
    pushes: tuple[str, ...]  # slots of frames
    shared: tuple[str, ...]  # values shared by all lanes that it reads
    cuts: Mapping[int, Cut]  # position of an operation -> its reads and writes of parts of registers
    parted: frozenset[str]  # registers of which some operation reads or writes a part
    lanes_last: frozenset[str]  # registers of the program whose last axis are the lanes
    by_lanes_last: frozenset[int]  # positions of operations that are evaluated with the lanes last
    may_not_end: bool  # an operation must not run on the values of inactive lanes
    prints: tuple[Print, ...]
    scope: str  # its name in XLA's programs and profiles
    awaited: bool = True  # some lane may wait for it, see `layout.never_awaited`
    keys: tuple[str, ...] = ()  # registers in which the lanes of a visit agree (`agreement.py`)
    keeps_loads: bool = False  # `run` gives the values that it reads from parts of registers

    def run(
        self,
        window: Window,
        registers: Values,
        popped: Values,
        shared: Values,
        mask: jax.Array,
        agreed: Mapping[str, Any] = MappingProxyType({}),
    ) -> BodyResults:
        """Evaluate the body for the places of a window.

        Args:
            window: The lanes.
            registers: The registers of `reads`, [lanes, ...], or [..., lanes] of those in `lanes_last`.
            popped: The values of `pops`, [width, ...].
            shared: The values of `shared`, unbatched.
            mask: bool[width]: the active lanes. Values of other places are junk that the caller drops.
            agreed: The values of registers that are the same in all active lanes, unbatched.

        All values are in storage form.
        """
        env: dict[str, Operand] = {v: Common(from_storage(value, self.type(v))) for v, value in shared.items()}
        for v in self.reads:
            array = registers[v]
            if v in agreed:
                env[v] = Common(from_storage(agreed[v], self.type(v)))
                continue
            env[v] = Whole(array) if v in self.parted else self._batch(v, window.read(array, v in self.lanes_last))
        saved: Values = {}
        printed: list[Values] = []
        loaded: Values = {}
        for position, op in enumerate(self.block.ops):
            match op:
                case Push(dst=dst, src=src):
                    saved[dst] = self._stored(env[src], dst, window)
                case Pop(dst=dst):
                    env[dst] = self._batch(dst, popped[dst])
                case Print():
                    printed.append({v: self._stored(env[v], v, window) for v in reads(op)})
                case _:
                    env.update(self._pure(position, op, env, window, mask, loaded))
        placed = {v: operand.array for v in self.updates if isinstance(operand := env[v], Whole)}
        updates = {v: self._stored(env[v], v, window) for v in self.updates if v not in placed}
        conditions = {v: self._stored(env[v], v, window) for v in self.conditions}
        return BodyResults(updates, placed, saved, conditions, tuple(printed), loaded if self.keeps_loads else {})

    @property
    def stores(self) -> bool:
        """Whether the block writes a part of a register."""
        return any(cut.stored for cut in self.cuts.values())

    @property
    def needs_active_lane(self) -> bool:
        """Whether the block must not run when no lane is active.

        Its inner loops may end only on the values of active lanes; and a callback that prints nothing costs time.
        """
        return self.may_not_end or bool(self.prints)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The variables that the block's terminator reads to choose a successor."""
        terminator = self.block.terminator
        return () if isinstance(terminator, Fail) else tuple(dict.fromkeys(terminator_reads(terminator)))

    def _pure(
        self, position: int, op: PureOp, env: Mapping[str, Operand], window: Window, mask: jax.Array, loaded: Values
    ) -> dict[str, Operand]:
        if isinstance(op, Prim):
            given, fn = [env[v] for v in op.expr.ins], op.expr.fn
            cut = self.cuts.get(position)
            # A register that the block has given a new value is no longer `Whole`: then all of it is an operand.
            if cut is not None and all(isinstance(given[k], Whole) for k in cut.registers):
                outs, read = indexed_access.run(cut, given, window, mask, position in self.by_lanes_last)
                loaded.update({indexed_access.load_key(position, step): value for step, value in read.items()})
                return dict(zip(op.dsts, outs, strict=True))
            if position in self.by_lanes_last and isinstance(fn, JaxprFn):
                outs = operands.applied_lanes_last(fn.closed, given, window)
                cast = zip(outs, fn.casts, strict=True)
                return dict(zip(op.dsts, (operands.converted(x, c) for x, c in cast), strict=True))
        return evaluated(op, env, window)

    def _batch(self, name: str, stored: Any) -> Batch:
        return Batch(from_storage(stored, self.type(name)))

    def _stored(self, operand: Operand, name: str, window: Window) -> Any:
        return stored(operand, self.type(name), window)

    def type(self, name: str) -> ArrayType:
        """Return the type of a variable; programs are typed before they are emitted."""
        type_ = self.vars[name].type
        assert type_ is not None, name
        return type_


def stored(operand: Operand, type_: ArrayType, window: Window) -> Any:
    """Return the values of an operand at all places of a window, [width, ...], in storage form."""
    if isinstance(operand, Common) and is_key(type_):
        return operands.everywhere(Common(to_storage(operand.value, type_)), window)
    return to_storage(operands.everywhere(operand, window), type_)


def evaluated(op: PureOp, env: Mapping[str, Operand], window: Window) -> dict[str, Operand]:
    """Return the results of one pure operation for all places of a window, by variable."""
    if isinstance(op, Move):
        return {op.dst: operands.moved(env[op.src], window)}
    ins = [env[v] for v in reads(op)]
    return dict(zip(writes(op), operands.batched(function_of(op), ins, window), strict=True))


def function_of(op: PureOp) -> Callable[..., list[Any]]:
    """Return a pure operation as a function of what it reads, in order, which returns what it writes."""

    def compute(*values: Any) -> list[Any]:
        env = dict(zip(reads(op), values, strict=True))
        evaluate(op, env)
        return [env[v] for v in writes(op)]

    return compute


def evaluate(op: PureOp, env: Values, around: Callable[[Any], Any] = lambda fn: fn) -> None:
    """Run one pure operation for one lane: add its results to `env`, variable -> value (not in storage form).

    `around` wraps the function of a primitive.
    """
    match op:
        case Prim(dsts=dsts, expr=expr):
            assert expr.fn is not None
            value = around(expr.fn)(*(env[v] for v in expr.ins))
            env.update(zip(dsts, (value,) if len(dsts) == 1 else value, strict=True))
        case Move(dst=dst, src=src):
            env[dst] = env[src]
        case Select():
            env[op.dst] = jnp.where(env[op.cond], env[op.on_true], env[op.on_false])
        case _:
            assert_never(op)


def compile_blocks(program: StackProgram, rows: bool = False) -> tuple[BlockCode, ...]:
    """Return the body of every block of a typed program, in order of program counters.

    `rows`: the elements of a lane are neighbours in all registers, see `lanes_last_registers`.
    """
    after = live_out(program)
    place = _places(program)
    codes = [_compile(program, k, block, after[block.label], place) for k, block in enumerate(program.blocks)]
    codes = [replace(code, keys=keys) for code, keys in zip(codes, keys_of(program, place), strict=True)]
    if rows:
        return tuple(codes)
    last = lanes_last_registers(program)
    beside = {v for block in program.blocks for v in (*_of_products(block), *_parted(block))}
    return tuple(replace(code, lanes_last=last, by_lanes_last=_by_lanes_last(code.block, beside)) for code in codes)


def lanes_last_registers(program: StackProgram) -> frozenset[str]:
    """Return the registers of a program that are kept with the lanes last: small arrays, read as a whole, and not by
    kernels of libraries."""
    rows = {v for block in program.blocks for v in (*_parted(block), *_in_rows(block))}
    return frozenset(v for v in _places(program) if v not in rows and _is_small(program.vars[v]))


def _parted(block: StackBlock) -> set[str]:
    """Return the variables of which some operation reads or writes a part."""
    return {v for op in block.ops for v in indexed_access.in_part(op)}


def _places(program: StackProgram) -> dict[str, int]:
    """Return the registers of a program, in order, with their numbers."""
    return {v: k for k, (v, var) in enumerate(program.vars.items()) if var.has_register}


def _by_lanes_last(block: StackBlock, beside: Collection[str]) -> frozenset[int]:
    """Return the positions of the operations that are evaluated with the lanes last: those of small arrays.

    `beside`: variables that are kept with the lanes first, as parts of them are touched, or as kernels of libraries
    read or make them. An operation on one of them would be transposed, and the transpose copied.
    """
    return frozenset(
        k
        for k, op in enumerate(block.ops)
        if isinstance(op, Prim)
        and isinstance(op.expr.fn, JaxprFn)
        and lanes_last.pays(op.expr.fn.closed.jaxpr)
        and not any(v in beside for v in (*op.expr.ins, *op.dsts))
    )


def _of_products(block: StackBlock) -> set[str]:
    """Return the variables that kernels of libraries read or make."""
    made = {v for op in block.ops if isinstance(op, Prim) and _wants_rows(op) for v in op.dsts}
    return made | _in_rows(block)


def _in_rows(block: StackBlock) -> set[str]:
    """Return the variables that kernels of libraries read: those want each lane's elements to be neighbours."""
    return {v for op in block.ops if isinstance(op, Prim) and _wants_rows(op) for v in op.expr.ins}


def _wants_rows(op: Prim) -> bool:
    fn = op.expr.fn
    return isinstance(fn, JaxprFn) and (fn.beside_product or wants_rows(fn.closed.jaxpr))


def _is_small(var: Var) -> bool:
    """Whether a variable is an array of few elements, no scalar.

    Selecting between its new and its old value is many times faster with the lanes last: where one lane's elements are
    neighbours, XLA spends a few operations and a branch on each lane (docs/users/performance.md).
    """
    assert var.type is not None
    shape = storage_type(var.type).shape
    return bool(shape) and lanes_last.is_small(shape)


def _compile(
    program: StackProgram, index: int, block: StackBlock, live_out: Iterable[str], place: Mapping[str, int]
) -> BlockCode:
    def registers(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({v for v in names if v in place}, key=place.__getitem__))

    used = block_uses(block)
    cuts = {
        k: cut for k, op in enumerate(block.ops) if isinstance(op, Prim) and (cut := indexed_access.cut(op)) is not None
    }
    parted = {block.ops[k].expr.ins[j] for k, cut in cuts.items() for j in cut.registers}  # type: ignore[union-attr]
    shared = {v for v in used if v in program.vars and v not in place}
    return BlockCode(
        index=index,
        block=block,
        vars=program.vars,
        reads=registers(used),
        pops=tuple(dict.fromkeys(op.dst for op in pops(block))),
        updates=registers(block_writes(block) & set(live_out)),
        pushes=tuple(dict.fromkeys(op.dst for op in pushes(block))),
        shared=tuple(sorted(shared)),
        cuts=cuts,
        parted=frozenset(parted & set(registers(used))),
        lanes_last=frozenset(),  # known when all blocks are compiled
        by_lanes_last=frozenset(),
        may_not_end=any(op_may_not_end(op) for op in block.ops),
        prints=prints_of(block.ops),
        scope=scope(block),
    )
