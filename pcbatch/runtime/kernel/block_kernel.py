"""A block of the machine as a jaxpr for one tile of lanes, all of whose axes are known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.def_use import calls, may_return
from pcbatch.ir.ops import Fail
from pcbatch.lowering.typing.jax_types import storage_type
from pcbatch.runtime.kernel.rules import hoisted
from pcbatch.runtime.kernel.rules.evaluation import apply, literal
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.lane_window import everyone
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.status import reached
from pcbatch.runtime.vm.step import Jumps, resolved

make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX


Read = Callable[[str, str], jax.Array]  # the kind and the name of an operand -> its value
REGISTER, POPPED, SHARED, CONSTANT, MASK, BACK = "register", "popped", "shared", "constant", "mask", "back"


class BlockRun:
    """One evaluation of a block inside a kernel.

    Operands are loaded where they are first used, and results computed when they are asked for: what is loaded early
    holds registers of threads.
    """

    def __init__(self, block: BlockKernel, read: Read) -> None:
        self._block, self._read = block, read
        self._env: dict[Any, Any] = {}
        names = [*((CONSTANT, str(k)) for k in range(len(block.constants))), *block.operands]
        self._operands = dict(zip((*block.jaxpr.constvars, *block.jaxpr.invars), names, strict=True))
        for eqn in block.jaxpr.eqns:
            self._env.update(zip(eqn.outvars, apply(eqn, [self._value(v) for v in eqn.invars]), strict=True))

    @property
    def jumps(self) -> Jumps:
        """The control flow out of the block; program counters are int32."""
        return Jumps(*(None if v is None else self._value(v) for v in self._block.jumps))

    @property
    def updates(self) -> tuple[str, ...]:
        """The registers that get a new value."""
        return tuple(self._block.updates)

    @property
    def saved(self) -> tuple[str, ...]:
        """The slots that get a value."""
        return tuple(self._block.saved)

    def update(self, name: str) -> jax.Array:
        """Return the new value of a register, [tile, ...] padded, in storage form; junk for inactive lanes."""
        return self._value(self._block.updates[name])

    def save(self, name: str) -> jax.Array:
        """Return the value of a slot, likewise."""
        return self._value(self._block.saved[name])

    def load(self, operands: Collection[tuple[str, str]]) -> None:
        """Load these operands now, as far as a result is one of them: their places are written next."""
        results = (*self._block.updates.values(), *self._block.saved.values())
        for v in results:
            if not isinstance(v, jex.Literal) and self._operands.get(v) in operands:
                self._value(v)

    def _value(self, v: Any) -> Any:
        if isinstance(v, jex.Literal):
            return literal(v)
        if v not in self._env:
            self._env[v] = self._read(*self._operands[v])
        return self._env[v]


@dataclass(frozen=True, slots=True)
class BlockKernel:
    """One block, traced for a tile.

    Attributes:
        code: The block.
        jaxpr: The body, and what its terminator decides.
        constants: Arrays that it closes over, its `constvars`.
        operands: The kind and the name of each of its `invars`.
        updates: The variable of the jaxpr that is the new value of each register.
        saved: That of each slot.
        jumps: Those of `Jumps`, None where there is none.
    """

    code: BlockCode
    jaxpr: jex.Jaxpr
    constants: tuple[Any, ...]
    operands: tuple[tuple[str, str], ...]
    updates: Mapping[str, Any]
    saved: Mapping[str, Any]
    jumps: tuple[Any, ...]

    @property
    def calls(self) -> bool:
        """Whether a lane may call at the end of the block."""
        return bool(calls(self.code.block.terminator))

    @property
    def may_return(self) -> bool:
        """Whether a lane may return at the end of the block."""
        return may_return(self.code.block.terminator)

    def run(self, read: Read) -> BlockRun:
        """Evaluate the block inside a kernel, on padded arrays; `read` loads operands."""
        return BlockRun(self, read)


def trace_block(layout: Layout, code: BlockCode, tile: int) -> BlockKernel:
    """Trace a block for tiles of so many lanes."""
    # Registers come as whole arrays with the lanes first: a tile has few of them.
    code = replace(code, lanes_last=frozenset(), by_lanes_last=frozenset(), cuts={}, parted=frozenset())

    def spec(name: str, *lead: int) -> Any:
        type_ = storage_type(code.type(name))
        return make((*lead, *type_.shape), type_.dtype)

    registers, popped = ({v: spec(v, tile) for v in names} for names in (code.reads, code.pops))
    shared = {v: spec(v) for v in code.shared}
    args = registers, popped, shared, make((tile,), jnp.bool_), make((tile,), jnp.int32)
    run = partial(_visit, layout, code)
    closed, shapes = jax.make_jaxpr(run, return_shape=True)(*args)
    jaxpr, constants = hoisted(closed)
    kinds = (REGISTER, POPPED, SHARED)
    operands = [(kind, v) for kind, part in zip(kinds, args[:3], strict=True) for v in sorted(part)]
    outs = jax.tree.unflatten(jax.tree.structure(shapes), jaxpr.outvars)
    operands += [(MASK, ""), (BACK, "")]
    return BlockKernel(code, jaxpr, tuple(map(np.asarray, constants)), tuple(operands), *outs)


def _visit(
    layout: Layout, code: BlockCode, registers: Values, popped: Values, shared: Values, mask: jax.Array, back: jax.Array
) -> tuple[Values, Values, tuple[Any, ...]]:
    window = everyone(mask)
    done = code.run(window, registers, popped, shared, mask)
    terminator = code.block.terminator
    if isinstance(terminator, Fail):
        jumps = Jumps(jnp.full(mask.shape, reached(terminator, code.index, layout.exit), jnp.int32))
    else:
        known = back.astype(layout.pc_type) if may_return(terminator) and layout.frames is not None else None
        jumps = resolved(layout, window, terminator, known, done.conditions)
    addresses = None if jumps.back is None else jumps.back.astype(jnp.int32)
    return done.updates, done.saved, tuple(jumps._replace(pc=jumps.pc.astype(jnp.int32), back=addresses))
