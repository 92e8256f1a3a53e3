"""A block of the machine as a jaxpr for one tile of lanes, all of whose axes are known."""

from __future__ import annotations

from collections.abc import Sequence
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
from pcbatch.runtime.kernel.rules import evaluate, hoisted
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.lane_window import everyone
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.status import reached
from pcbatch.runtime.vm.step import Jumps, resolved

make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX


@dataclass(frozen=True, slots=True)
class BlockOutcome:
    """The results of a visit of a block before any mask is applied; arrays [tile, ...] in storage form."""

    updates: Values  # register -> new value
    saved: Values  # slot -> value
    jumps: Jumps  # program counters are int32


@dataclass(frozen=True, slots=True)
class BlockKernel:
    """One block, traced for a tile.

    Attributes:
        code: The block.
        jaxpr: From the leaves of registers, popped values, shared values, the mask and the return addresses, to those
            of a `BlockOutcome`.
        constants: Arrays that it closes over, its `constvars`.
        outcome: The structure of the results.
    """

    code: BlockCode
    jaxpr: jex.Jaxpr
    constants: tuple[Any, ...]
    outcome: Any

    @property
    def calls(self) -> bool:
        """Whether a lane may call at the end of the block."""
        return bool(calls(self.code.block.terminator))

    @property
    def may_return(self) -> bool:
        """Whether a lane may return at the end of the block."""
        return may_return(self.code.block.terminator)

    def __call__(
        self,
        constants: Sequence[Any],
        registers: Values,
        popped: Values,
        shared: Values,
        mask: jax.Array,
        back: jax.Array,
    ) -> BlockOutcome:
        """Evaluate the block inside a kernel, on padded arrays."""
        leaves = jax.tree.leaves((registers, popped, shared, mask, back))
        updates, saved, jumps = jax.tree.unflatten(self.outcome, evaluate(self.jaxpr, constants, leaves))
        return BlockOutcome(updates, saved, Jumps(*jumps))


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
    return BlockKernel(code, jaxpr, tuple(map(np.asarray, constants)), jax.tree.structure(shapes))


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
