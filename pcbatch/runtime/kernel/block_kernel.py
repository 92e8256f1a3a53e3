"""A block of the machine as a jaxpr for one tile of lanes, all of whose axes are known."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.analysis.def_use import calls, may_return
from pcbatch.ir.ops import Fail, Prim
from pcbatch.lowering.typing.jax_types import array_struct
from pcbatch.runtime.kernel import touches
from pcbatch.runtime.kernel.memory import KernelRows
from pcbatch.runtime.kernel.rules import hoisted
from pcbatch.runtime.kernel.rules.evaluation import apply, literal
from pcbatch.runtime.kernel.rules.padding import reshaped
from pcbatch.runtime.kernel.touches import Columns, load, puts_index_together, scatter
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.indexed_access import Cut
from pcbatch.runtime.vm.lane_window import everyone
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.status import reached
from pcbatch.runtime.vm.step import Jumps, resolved

Operand = tuple[str, str]  # its kind and its name
REGISTER, POPPED, SHARED, CONSTANT, MASK, BACK = "register", "popped", "shared", "constant", "mask", "back"


class Operands(Protocol):
    """The values that a block reads inside a kernel."""

    def value(self, kind: str, name: str) -> jax.Array:
        """Return an operand, padded, in its own dtype."""

    def rows(self, kind: str, name: str) -> KernelRows:
        """Return the array in memory that an operand is."""


class BlockRun:
    """One evaluation of a block inside a kernel.

    Results are computed when they are asked for, and operands loaded where they are first used: values that are there
    long before they are needed, or long after, hold registers of threads. A block that stores into parts of registers
    is computed in the order of its equations up to the last store: each load comes before the stores that follow it.
    """

    def __init__(self, block: BlockKernel, operands: Operands) -> None:
        self._block, self._operands = block, operands
        self._env: dict[Any, Any] = {}
        for k in range(max(block.stores, default=-1) + 1):
            self._compute(k)

    @property
    def jumps(self) -> Jumps:
        """The control flow out of the block; program counters are int32."""
        pc, *rest = self._block.jumps
        return Jumps(self._value(pc), *(None if v is None else self._value(v) for v in rest))

    def results(self) -> Iterator[tuple[str, str, jax.Array]]:
        """Yield the kind, the name and the value of each result, to be written before the next one is asked for.

        The values of registers and slots (`POPPED`) are [tile, ...] padded, in storage form; those of inactive lanes
        are junk. A result comes when no other one needs the old value at its place any more, or that has been loaded.
        """
        left = dict(self._block.results)
        while left:
            needed = {key: self._block.needs(v) for key, v in left.items()}
            waits = {key: any(_clobbers(key, n) for k in left if k != key for n in needed[k]) for key in left}
            key = next((key for key in left if not waits[key]), next(iter(left)))
            if waits[key]:  # they wait for each other, as in a swap
                self._load(key)
            yield *key, self._value(left.pop(key))

    def _load(self, written: Operand) -> None:
        for v, operand in self._block.names.items():
            if _clobbers(written, operand):
                for k in sorted(self._block.loads):
                    eqn = self._block.jaxpr.eqns[k]
                    if eqn.invars[0] is v:
                        self._value(eqn.outvars[0])
                if v in self._block.used_whole:
                    self._value(v)

    def _value(self, v: Any) -> Any:
        if isinstance(v, jex.Literal):
            return literal(v)
        if v not in self._env:
            for k in self._block.slice_of(v):
                if self._block.jaxpr.eqns[k].outvars[0] not in self._env:
                    self._compute(k)
        return self._operand(v)

    def _compute(self, k: int) -> None:
        """Compute an equation whose operands have been computed."""
        eqn = self._block.jaxpr.eqns[k]
        if k in self._block.stores:
            scatter(eqn, self._rows(eqn.invars[0]), [self._part(eqn.invars[1]), self._operand(eqn.invars[2])])
        elif k in self._block.loads:
            self._env[eqn.outvars[0]] = load(eqn, self._rows(eqn.invars[0]), [self._part(v) for v in eqn.invars[1:]])
        elif puts_index_together(eqn):
            parts = map(self._operand, eqn.invars)
            self._env[eqn.outvars[0]] = Columns(tuple(reshaped(x, x.shape[:-1]) for x in parts))
        else:
            self._env.update(zip(eqn.outvars, apply(eqn, [self._operand(x) for x in eqn.invars]), strict=True))

    def _operand(self, v: Any) -> Any:
        if isinstance(v, jex.Literal):
            return literal(v)
        if v not in self._env:
            in_memory = v in self._block.versions
            self._env[v] = self._rows(v).whole() if in_memory else self._operands.value(*self._block.names[v])
        x = self._env[v]
        return x.whole() if isinstance(x, Columns) else x

    def _part(self, v: Any) -> Any:
        """Return an operand, index vectors as their columns where they are known."""
        known = None if isinstance(v, jex.Literal) else self._env.get(v)
        return known if isinstance(known, Columns) else self._operand(v)

    def _rows(self, v: Any) -> KernelRows:
        """Return the array in memory that a variable stands for."""
        return self._operands.rows(*(self._block.versions.get(v) or self._block.names[v]))


def _clobbers(written: Operand, operand: Operand) -> bool:
    """Whether a write may be to the place of an operand: slots of frames share columns."""
    return written == operand or written[0] == operand[0] == POPPED


@dataclass(frozen=True)
class BlockKernel:
    """One block, traced for a tile.

    Attributes:
        code: The block.
        jaxpr: The body, and what its terminator decides.
        constants: Arrays that it closes over, its `constvars`.
        operands: The kind and the name of each of its `invars`.
        results: The variable of the jaxpr that is the new value of each register or slot.
        jumps: Those of `Jumps`, None where there is none.
        loads: The numbers of the equations that read a part of an operand in memory.
        stores: The numbers of those that store into a part of a register, in place.
        versions: The variables that are such a register after a store -> the register.
    """

    code: BlockCode
    jaxpr: jex.Jaxpr
    constants: tuple[Any, ...]
    operands: tuple[Operand, ...]
    results: Mapping[Operand, Any]
    jumps: tuple[Any, ...]
    loads: frozenset[int] = frozenset()
    stores: frozenset[int] = frozenset()
    versions: Mapping[Any, Operand] = field(default_factory=dict)

    @cached_property
    def names(self) -> dict[Any, Operand]:
        """The kind and the name of each variable that is an operand."""
        constants = [(CONSTANT, str(k)) for k in range(len(self.constants))]
        variables = (*self.jaxpr.constvars, *self.jaxpr.invars)
        return dict(zip(variables, (*constants, *self.operands), strict=True))

    @cached_property
    def by_rules(self) -> tuple[Any, ...]:
        """The equations that are computed by rules, and not as loads and stores."""
        touches = self.loads | self.stores
        return tuple(eqn for k, eqn in enumerate(self.jaxpr.eqns) if k not in touches)

    @cached_property
    def used_whole(self) -> frozenset[Any]:
        """The variables that equations use as values, or that are results."""
        used = [v for eqn in self.by_rules for v in eqn.invars]
        used += [v for k in self.loads | self.stores for v in self.jaxpr.eqns[k].invars[1:]]
        used += [v for v in (*self.results.values(), *self.jumps) if v is not None]
        return frozenset(v for v in used if not isinstance(v, jex.Literal))

    @cached_property
    def _made_by(self) -> dict[Any, int]:
        return {v: k for k, eqn in enumerate(self.jaxpr.eqns) for v in eqn.outvars}

    def slice_of(self, v: Any) -> list[int]:
        """Return the numbers of the equations that a variable depends on, in order."""
        found: set[int] = set()
        ahead = [v]
        while ahead:
            k = self._made_by.get(ahead.pop())
            if k is not None and k not in found:
                found.add(k)
                ahead += [x for x in self.jaxpr.eqns[k].invars if not isinstance(x, jex.Literal)]
        return sorted(found)

    def needs(self, v: Any) -> frozenset[Operand]:
        """Return the operands that a variable depends on."""
        if isinstance(v, jex.Literal):
            return frozenset()
        read = (x for k in self.slice_of(v) for x in self.jaxpr.eqns[k].invars if not isinstance(x, jex.Literal))
        return frozenset(self.names[x] for x in (v, *read) if x in self.names)

    @property
    def calls(self) -> bool:
        """Whether a lane may call at the end of the block."""
        return bool(calls(self.code.block.terminator))

    @property
    def may_return(self) -> bool:
        """Whether a lane may return at the end of the block."""
        return may_return(self.code.block.terminator)

    def run(self, operands: Operands) -> BlockRun:
        """Evaluate the block inside a kernel, on padded arrays."""
        return BlockRun(self, operands)


def trace_block(layout: Layout, code: BlockCode, tile: int, in_memory: Collection[str]) -> BlockKernel:
    """Trace a block for tiles of so many lanes.

    `in_memory`: the registers of which parts may be loaded and stored. If one would be stored into though its old value
    is read later, all registers of the block are read and written whole.
    """
    # Registers come as arrays of a tile with the lanes first.
    whole = replace(code, lanes_last=frozenset(), by_lanes_last=frozenset(), cuts={}, parted=frozenset())
    if not code.may_not_end:  # there inactive lanes borrow the values of an active one
        cuts = {k: cut for k, cut in code.cuts.items() if _registers(code, k, cut) <= set(in_memory)}
        parted = frozenset(v for k, cut in cuts.items() for v in _registers(code, k, cut)) & set(code.reads)
        in_parts = replace(whole, cuts=cuts, parted=parted)
        traced = _traced(layout, in_parts, tile, in_memory) if cuts else None
        if traced is not None:
            return traced
    traced = _traced(layout, whole, tile, () if code.may_not_end else in_memory)
    assert traced is not None
    return traced


def _registers(code: BlockCode, position: int, cut: Cut) -> set[str]:
    """Return the registers that a primitive touches."""
    op = code.block.ops[position]
    assert isinstance(op, Prim)
    return {op.expr.ins[j] for j in cut.registers}


def _traced(layout: Layout, code: BlockCode, tile: int, in_memory: Collection[str]) -> BlockKernel | None:
    """Trace a block whose primitives are cut or not; None if a store in place is impossible."""

    def spec(name: str, *lead: int) -> Any:
        type_ = layout.stored_type(name)
        return array_struct((*lead, *type_.shape), type_.dtype)

    registers, popped = ({v: spec(v, tile) for v in names} for names in (code.reads, code.pops))
    shared = {v: spec(v) for v in code.shared}
    args = registers, popped, shared, array_struct((tile,), jnp.bool_), array_struct((tile,), jnp.int32)
    run = partial(_visit, layout, code)
    closed, shapes = jax.make_jaxpr(run, return_shape=True)(*args)
    jaxpr, constants = hoisted(closed)
    kinds = (REGISTER, POPPED, SHARED)
    operands = [(kind, v) for kind, part in zip(kinds, args[:3], strict=True) for v in sorted(part)]
    operands += [(MASK, ""), (BACK, "")]
    updates, placed, saved, jumps = jax.tree.unflatten(jax.tree.structure(shapes), jaxpr.outvars)
    results = {(POPPED, v): x for v, x in saved.items()} | {(REGISTER, v): x for v, x in updates.items()}
    block = BlockKernel(code, jaxpr, tuple(map(np.asarray, constants)), tuple(operands), results, jumps)
    stores, versions = _stores(block, placed)
    if any(touches.refusal(jaxpr.eqns[k]) is not None for k in stores) or not _in_turn(block, stores):
        return None
    held = {v for v, operand in block.names.items() if _is_held(operand, in_memory)} | set(versions)
    first = [eqn.invars[0] if eqn.invars else None for eqn in jaxpr.eqns]
    loads = frozenset(
        k
        for k, eqn in enumerate(jaxpr.eqns)
        if touches.is_load(eqn) and isinstance(first[k], jex.Var) and first[k] in held and not touches.refusal(eqn)
    )
    found = replace(block, loads=loads, stores=frozenset(stores), versions=versions)
    # Of an array that is there as a whole, fixed parts need no other load.
    spared = {k for k in loads if jaxpr.eqns[k].primitive.name == "slice" and first[k] in found.used_whole}
    return replace(found, loads=loads - spared)


def _is_held(operand: Operand, in_memory: Collection[str]) -> bool:
    kind, name = operand
    return kind in (SHARED, CONSTANT) or (kind == REGISTER and name in in_memory)


def _stores(block: BlockKernel, placed: Mapping[str, Any]) -> tuple[list[int], dict[Any, Operand]]:
    """Return the equations that store into registers in place, in order, and the registers' versions that they make.

    Args:
        block: The block.
        placed: The last version of each register that is stored into.
    """
    made_by = {eqn.outvars[0]: k for k, eqn in enumerate(block.jaxpr.eqns) if touches.is_store(eqn)}
    stores, versions = [], {}
    for name, version in placed.items():
        while version in made_by:
            versions[version] = (REGISTER, name)
            stores.append(made_by[version])
            version = block.jaxpr.eqns[made_by[version]].invars[0]
        assert block.names[version] == (REGISTER, name), name
    return sorted(stores), versions


def _in_turn(block: BlockKernel, stores: Sequence[int]) -> bool:
    """Return whether no version of a register is used after it has been stored into."""
    eqns = block.jaxpr.eqns
    ends = [v for v in (*block.results.values(), *block.jumps) if v is not None]
    return not any(
        v is eqns[k].invars[0] for k in stores for v in (*(x for eqn in eqns[k + 1 :] for x in eqn.invars), *ends)
    )


def _visit(
    layout: Layout, code: BlockCode, registers: Values, popped: Values, shared: Values, mask: jax.Array, back: jax.Array
) -> tuple[Values, Values, Values, tuple[Any, ...]]:
    window = everyone(mask)
    done = code.run(window, registers, popped, shared, mask)
    terminator = code.block.terminator
    if isinstance(terminator, Fail):
        jumps = Jumps(jnp.full(mask.shape, reached(terminator, code.index, layout.exit), jnp.int32))
    else:
        known = back.astype(layout.pc_type) if may_return(terminator) and layout.frames is not None else None
        jumps = resolved(layout, window, terminator, known, done.conditions)
    addresses = None if jumps.back is None else jumps.back.astype(jnp.int32)
    return done.updates, done.placed, done.saved, tuple(jumps._replace(pc=jumps.pc.astype(jnp.int32), back=addresses))
