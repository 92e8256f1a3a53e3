"""A block of the machine as a jaxpr for one tile of lanes, all of whose axes are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
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


Operand = tuple[str, str]  # its kind and its name
Read = Callable[[str, str], jax.Array]  # the kind and the name of an operand -> its value
REGISTER, POPPED, SHARED, CONSTANT, MASK, BACK = "register", "popped", "shared", "constant", "mask", "back"


class BlockRun:
    """One evaluation of a block inside a kernel.

    Results are computed when they are asked for, and operands loaded where they are first used: values that are there
    long before they are needed, or long after, hold registers of threads.
    """

    def __init__(self, block: BlockKernel, read: Read) -> None:
        self._block, self._read = block, read
        self._env: dict[Any, Any] = {}

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
                self._value(v)

    def _value(self, v: Any) -> Any:
        if isinstance(v, jex.Literal):
            return literal(v)
        if v not in self._env:
            for k in self._block.slice_of(v):
                eqn = self._block.jaxpr.eqns[k]
                if eqn.outvars[0] not in self._env:
                    self._env.update(zip(eqn.outvars, apply(eqn, [self._operand(x) for x in eqn.invars]), strict=True))
        return self._operand(v)

    def _operand(self, v: Any) -> Any:
        if isinstance(v, jex.Literal):
            return literal(v)
        if v not in self._env:
            self._env[v] = self._read(*self._block.names[v])
        return self._env[v]


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
    """

    code: BlockCode
    jaxpr: jex.Jaxpr
    constants: tuple[Any, ...]
    operands: tuple[Operand, ...]
    results: Mapping[Operand, Any]
    jumps: tuple[Any, ...]

    @cached_property
    def names(self) -> dict[Any, Operand]:
        """The kind and the name of each variable that is an operand."""
        constants = [(CONSTANT, str(k)) for k in range(len(self.constants))]
        variables = (*self.jaxpr.constvars, *self.jaxpr.invars)
        return dict(zip(variables, (*constants, *self.operands), strict=True))

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
    operands += [(MASK, ""), (BACK, "")]
    updates, saved, jumps = jax.tree.unflatten(jax.tree.structure(shapes), jaxpr.outvars)
    results = {(POPPED, v): x for v, x in saved.items()} | {(REGISTER, v): x for v, x in updates.items()}
    return BlockKernel(code, jaxpr, tuple(map(np.asarray, constants)), tuple(operands), results, jumps)


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
