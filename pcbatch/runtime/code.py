"""A block as a batched function: what it reads, writes, pushes and pops, and its body under one `vmap`.

The body is a maximal straight-line run evaluated for all lanes at once; values shared by all lanes enter it
unbatched, so a product with a shared matrix is one matrix product. Masks, frames and the program counter are the
emitter's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

import jax
import jax.numpy as jnp

from pcbatch.ir.liveness import stack_live_out
from pcbatch.ir.ops import Branch, Move, Prim, Print, Select
from pcbatch.ir.stack import Pop, Push, StackBlock, StackProgram, Var
from pcbatch.ir.types import ArrayType
from pcbatch.ir.walk import block_uses, block_writes, pops, pushes, reads, writes
from pcbatch.lowering.cost import minds_junk
from pcbatch.lowering.jax_types import from_storage, to_storage
from pcbatch.lowering.trace import JaxprFn
from pcbatch.runtime import stores
from pcbatch.runtime.prints import Shown, prints_of

Values = dict[str, Any]
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Effects:
    """What running a block gives, for all lanes and before any mask (values in storage form)."""

    updates: Values  # register -> new value
    saved: Values  # variable -> value to keep in its slot
    cond: Any  # bool[lanes] when the block branches, else None
    printed: Shown


@dataclass(frozen=True, slots=True)
class BlockCode:
    """One block, ready for emission. `index` is its program counter."""

    index: int
    block: StackBlock
    vars: Mapping[str, Var]
    reads: tuple[str, ...]
    pops: tuple[str, ...]
    updates: tuple[str, ...]
    pushes: tuple[str, ...]
    shared: tuple[str, ...]
    stores: Mapping[Prim, stores.Stores]  # primitives that write into a register in place
    placed: frozenset[str]  # registers that only such primitives write: their new value needs no mask
    risky: bool  # holds what must not run on values of lanes that are elsewhere
    prints: tuple[Print, ...]

    def run(
        self, lanes: int, registers: Values, popped: Values, shared: Values, active: jax.Array, here: jax.Array
    ) -> Effects:
        """Evaluate the body for all lanes; values of inactive lanes are junk that the caller drops. `here`: lanes that
        wait for the block, `active` or stopped by a limit; a risky block needs at least one."""
        inputs = {("reg", v): registers[v] for v in self.reads} | {("pop", v): popped[v] for v in self.pops}
        if self.risky:
            inputs = borrow(inputs, here)
        common = {v: shared[v] for v in self.shared}
        run: Any = jax.vmap(lambda given, on: self._one(given, on, common), axis_size=lanes)
        return Effects(*run(inputs, active))

    def _one(
        self, given: Mapping[tuple[str, str], Any], active: jax.Array, shared: Values
    ) -> tuple[Values, Values, Any, Shown]:
        env: Values = {v: from_storage(value, self.type(v)) for v, value in shared.items()}
        env |= {v: from_storage(given["reg", v], self.type(v)) for v in self.reads}
        saved: Values = {}
        printed: list[Values] = []
        for op in self.block.ops:
            match op:
                case Push(dst=dst, src=src):
                    saved[dst] = to_storage(env[src], self.type(dst))
                case Pop(dst=dst):
                    env[dst] = from_storage(given["pop", dst], self.type(dst))
                case Prim() if op in self.stores:
                    values, operands = [env[v] for v in op.expr.ins], {v: env[v] for v in op.dsts if v in env}
                    env |= self.stores[op].run(values, operands, active)
                case Print():
                    printed.append({v: to_storage(env[v], self.type(v)) for v in reads(op)})
                case _:
                    evaluate(op, env)
        terminator = self.block.terminator
        cond = jnp.asarray(env[terminator.cond]) if isinstance(terminator, Branch) else None
        return {v: to_storage(env[v], self.type(v)) for v in self.updates}, saved, cond, tuple(printed)

    def type(self, name: str) -> ArrayType:
        """The type of a variable; programs are typed before they are emitted."""
        type_ = self.vars[name].type
        assert type_ is not None, name
        return type_


def evaluate(op: Prim | Move | Select, env: Values) -> None:
    """Run one pure operation for one lane."""
    match op:
        case Prim(dsts=dsts, expr=expr):
            assert expr.fn is not None
            value = expr.fn(*(env[v] for v in expr.ins))
            env.update(zip(dsts, (value,) if len(dsts) == 1 else value, strict=True))
        case Move(dst=dst, src=src):
            env[dst] = env[src]
        case Select():
            env[op.dst] = jnp.where(env[op.cond], env[op.on_true], env[op.on_false])
        case _:
            assert_never(op)


def borrow(inputs: Mapping[Key, Any], here: jax.Array) -> dict[Key, Any]:
    """Give lanes that are elsewhere the inputs of one that is here, so that no inner loop runs on junk."""
    lender = jnp.argmax(here)
    return {k: jnp.where(lane_mask(here, v), v, v[lender]) for k, v in inputs.items()}


def lane_mask(mask: jax.Array, value: Any) -> jax.Array:
    """The mask with trailing axes, to select whole lanes of `value`."""
    return mask.reshape(mask.shape + (1,) * (value.ndim - 1))


def compile_blocks(program: StackProgram) -> tuple[BlockCode, ...]:
    """The code of every block, in order of program counters."""
    live_out = stack_live_out(program)
    place = {v: k for k, (v, var) in enumerate(program.vars.items()) if _has_register(var)}
    return tuple(_compile(program, k, block, live_out[block.label], place) for k, block in enumerate(program.blocks))


def _compile(
    program: StackProgram, index: int, block: StackBlock, live_out: Iterable[str], place: Mapping[str, int]
) -> BlockCode:
    def registers(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({v for v in names if v in place}, key=place.__getitem__))

    used = block_uses(block)
    risky = any(is_risky(op) for op in block.ops)
    # A risky block runs the other lanes on borrowed registers: what a store leaves alone is then not theirs.
    prims = [op for op in block.ops if isinstance(op, Prim) and not risky]
    found = {op: split for op in prims if (split := stores.find(op)) is not None}
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
        stores=found,
        placed=frozenset(registers(written_in_place(block, found))),
        risky=risky,
        prints=prints_of(block.ops),
    )


def written_in_place(block: StackBlock, found: Mapping[Prim, stores.Stores]) -> set[str]:
    """Variables that the block writes by stores alone."""
    stored = {dst for split in found.values() for dst, _ in split.scatters}
    otherwise = {v for op in block.ops for v in writes(op) if not (isinstance(op, Prim) and op in found)}
    otherwise |= {v for split in found.values() for v in split.plain}
    return stored - otherwise


def _has_register(var: Var) -> bool:
    return var.storage is not None and var.storage.has_register


def is_risky(op: object) -> bool:
    """Does this operation hold a loop that might not end on junk?"""
    return isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn) and minds_junk(op.expr.fn.closed.jaxpr)
