"""The tape: what a run leaves behind for its gradient.

Every block that floating numbers go through has buffers of its own. A visit appends a record for each of its active
lanes: the values that the block's pullback reads, and a link to the lane's record before it (one number, see
`Tape.code`), so no trace of program counters and no masks are kept, and lanes may be undone in any order. Counters go
on beyond the room that there is: a tape that was too short says how long it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters.partial_eval import dce_jaxpr

from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import storage_type
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.lane_window import Window
from pcbatch.runtime.vm.layout import Layout, reg
from pcbatch.runtime.vm.step import Computed, StepContext, step_block
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.block_ssa import LOADED, MADE, POP, READ, SHARED, Body, Load, Source, Store, body_of
from pcbatch.transforms.tape.block_vjp import Env, pull, pull_shared, replay, spread_over, taken_in
from pcbatch.transforms.tape.record_layout import Rows, append, ordered, together
from pcbatch.transforms.tape.record_layout import plan as plan_rows

SMALL = 32  # elements of a shared value of whose cotangent each lane keeps a sum of its own
MOST = 2**30  # records that are counted
STATUS = "tape:status"  # int32[lanes]
HEAD = "tape:head"  # state key: the lane's last record


@dataclass(frozen=True, slots=True)
class BlockTape:
    """What is recorded of a block. `index`: its program counter."""

    index: int
    code: BlockCode
    body: Body
    saved: tuple[Source, ...]  # what goes into a record
    constants: tuple[Source, ...]  # registers that never change: arguments of the run
    frames: tuple[str, ...]  # floating slots that it pops or pushes
    owned: tuple[str, ...]  # small shared values: each lane sums up its own cotangent
    deferred: tuple[str, ...]  # other shared values, whose cotangents are made of many records at once
    kept: tuple[int, ...]  # numbers of the values whose cotangents those are made of
    same: Mapping[int, int]  # others, with the same cotangent as one of `kept`

    @property
    def rows(self) -> Rows:
        """What a record is."""
        found: dict[str, tuple[tuple[int, ...], Any]] = {s.key: _stored(s.type) for s in self.saved}
        found["link"] = (), np.int32
        if self.frames:
            found["depth"] = (), np.int32
        if self.deferred and self.constants:
            found["lane"] = (), np.int32
        return plan_rows(found)

    @property
    def kept_rows(self) -> Rows:
        """What the backward machine keeps for the cotangents of shared values."""
        types = {**self.body.leaving, **self.body.edge}
        found = {str(number): _stored(types[number]) for number in self.kept}
        return plan_rows({**found, "record": ((), np.int32)}) if found else Rows({}, {})

    def key(self, name: str) -> str:
        """The state key of a part of the records."""
        return f"tape:{self.index}:{name}"

    @property
    def count(self) -> str:
        """The state key of the number of records."""
        return self.key("n")

    @property
    def buffers(self) -> dict[str, str]:
        """State keys of the records' buffers."""
        return {name: self.key(name) for name in self.rows.buffers}

    def read(self, known: Mapping[str, Any], record: jax.Array) -> dict[str, Any]:
        """The values of some records."""
        return self.rows.read({name: known[key] for name, key in self.buffers.items()}, record)

    def bytes(self) -> int:
        """Of one record."""
        return sum(width * np.dtype(dtype).itemsize for width, dtype in self.rows.buffers.values())


def _stored(type_: ArrayType) -> tuple[tuple[int, ...], Any]:
    stored = storage_type(type_)
    return stored.shape, jnp.dtype(stored.dtype)


@dataclass(frozen=True, eq=False)
class Tape:
    """The plan of a program's tape, for gradients of some of what lanes share (`shared`: variables)."""

    blocks: tuple[BlockTape, ...]
    shared: frozenset[str] = frozenset()

    def block(self, index: int) -> BlockTape | None:
        """That of a program counter, if it is recorded."""
        return next((block for block in self.blocks if block.index == index), None)

    def code(self, slot: Any, block: BlockTape) -> Any:
        """One number for a record."""
        return slot * len(self.blocks) + self.blocks.index(block)

    def keys(self) -> tuple[str, ...]:
        """All state keys."""
        return (HEAD, *(key for block in self.blocks for key in (block.count, *block.buffers.values())))

    def empty(self, lanes: int, rows: Sequence[int]) -> Values:
        """Before the first trip; `rows` of each block's buffers: `lanes` more than there is room for."""
        made: Values = {HEAD: jnp.full((lanes,), -1, jnp.int32)}
        for block, count in zip(self.blocks, rows, strict=True):
            made[block.count] = jnp.zeros((), jnp.int32)
            made |= {block.key(name): array for name, array in block.rows.empty(count).items()}
        return made


def plan(layout: Layout, shared: frozenset[str]) -> Tape:
    """What to record for gradients that go through these shared variables; those of arguments per lane are always
    possible."""
    wanted = {v for v in shared if is_float(_type(layout, v))}
    changed = {v for code in layout.codes for v in code.updates}
    fixed = {v for v in layout.registers if v not in changed and v in layout.program.params}
    found = (_block(layout, code, wanted, fixed) for code in layout.codes)
    return Tape(tuple(block for block in found if block is not None), shared)


def _type(layout: Layout, name: str) -> Any:
    return layout.program.vars[name].type


def _block(layout: Layout, code: BlockCode, wanted: set[str], fixed: set[str]) -> BlockTape | None:
    body = body_of(code)
    pops = [s.name for s in body.sources if s.kind == POP and is_float(s.type)]
    frames = tuple(dict.fromkeys([*pops, *body.saves]))
    loads = [s for s in body.sources if s.kind == LOADED and is_float(s.type)]
    if not (body.updates or frames or loads or any(is_float(_type(layout, s.register)) for s in body.stores())):
        return None
    shared = [s for s in body.sources if s.kind == SHARED and s.name in wanted]
    owned = tuple(s.name for s in shared if s.type.size <= SMALL)
    deferred = tuple(s.name for s in shared if s.type.size > SMALL)
    if deferred:
        body = body_of(code, frozenset(deferred))
    used, kept, same = _read_by_trips(body, owned)
    if kept:
        used |= _read_at_the_end(body, owned, (*kept, *same), used)
    sources = [s for s in (*body.sources, *body.dear) if s.kind != SHARED and s.key in used]
    constants = tuple(s for s in sources if s.kind == READ and s.name in fixed)
    saved = tuple(s for s in sources if s not in constants)
    return BlockTape(code.index, code, body, saved, constants, frames, owned, deferred if kept else (), kept, same)


class _Nothing:
    """The registers' cotangents, while it is asked what a pullback reads."""

    def __init__(self) -> None:
        self.read: list[Any] = []

    def loaded(self, step: Load, indices: Sequence[Any], cotangent: Any) -> None:
        self.read += [*indices, cotangent]

    def stored(self, step: Store, indices: Sequence[Any]) -> Any:
        self.read += indices
        return jnp.zeros((2, *step.eqn.invars[2].aval.shape), step.eqn.invars[2].aval.dtype)


def _read_by_trips(body: Body, owned: Sequence[str]) -> tuple[set[str], tuple[int, ...], dict[int, int]]:
    """The sources that the backward machine reads, by key; the values whose cotangents it keeps, and others whose
    cotangents are the same."""
    cotangents: dict[int, Any] = {}

    def pullback(env: Env, cts: Mapping[int, Any]) -> Any:
        memory = _Nothing()
        found = pull(body, env, cts, 2, memory)
        cotangents.update({n: ct for n in body.edge if (ct := found.get(n, cts.get(n))) is not None})
        mine = [s for s in body.sources if s.kind != SHARED or s.name in owned]
        return [found[s.number] for s in mine if s.number in found], memory.read, list(cotangents.values())

    used = _read(body, owned, pullback, tuple(body.leaving), body.dear)
    first = {id(ct): n for n, ct in reversed(cotangents.items())}
    kept = tuple(n for n, ct in cotangents.items() if first[id(ct)] == n)
    return used, kept, {n: first[id(ct)] for n, ct in cotangents.items() if n not in kept}


def _read_at_the_end(body: Body, owned: Sequence[str], kept: Sequence[int], used: set[str]) -> set[str]:
    """The sources that cotangents of shared values are made of, by key; results only if they are recorded anyway."""

    def pullback(env: Env, cts: Mapping[int, Any]) -> Any:
        found = pull_shared(body, env, cts, 2)
        return [found[s.number] for s in body.sources if s.kind == SHARED and s.number in found]

    return _read(body, owned, pullback, kept, [s for s in body.dear if s.key in used])


def _read(
    body: Body,
    owned: Sequence[str],
    pullback: Callable[[Env, Mapping[int, Any]], Any],
    numbers: Sequence[int],
    dear: Sequence[Source],
) -> set[str]:
    """The keys of sources that a pullback reads, given the cotangents of some values."""
    sources = (*body.sources, *dear)
    per_record = [s for s in sources if s.kind != SHARED or s.name in owned]
    common = [s for s in sources if s.kind == SHARED and s.name not in owned]
    types = {**body.leaving, **body.edge}

    def function(values: list[Any], shared: list[Any], cts: list[Any]) -> Any:
        records = {s.key: x for s, x in zip(per_record, values, strict=True)}
        env = taken_in(body, records, {s.name: x for s, x in zip(common, shared, strict=True)}, 2)
        return pullback(replay(body, env, 2), dict(zip(numbers, cts, strict=True)))

    structs = [_struct(s.type, (2,)) for s in per_record], [_struct(s.type, ()) for s in common]
    closed = jax.make_jaxpr(function)(*structs, [_struct(types[n], (2,)) for n in numbers])
    read = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))[1]
    return {s.key for s, here in zip((*per_record, *common), read, strict=False) if here}


def _struct(type_: ArrayType, width: tuple[int, ...]) -> Any:
    stored = storage_type(type_)
    make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
    return make((*width, *stored.shape), jnp.dtype(stored.dtype))


# Recording


@dataclass(frozen=True, slots=True)
class RecordingContext(StepContext):
    """A stage that records."""

    def step(
        self,
        code: BlockCode,
        carry: Values,
        window: Window,
        chosen: bool | jax.Array = True,
        goes_on: bool | jax.Array = False,
    ) -> Values:
        out, computed = step_block(self, code, carry, window, chosen, goes_on)
        assert isinstance(self.layout, TapedLayout)
        block = self.layout.tape.block(code.index)
        return out if block is None else out | _recorded(self.layout, block, carry, window, computed)

    def extra(self, code: BlockCode, carry: Values, window: Window, popped: Values, computed: Computed) -> Values:
        """The records of the window, as rows of each buffer: read before anything is written."""
        assert isinstance(self.layout, TapedLayout)
        block = self.layout.tape.block(code.index)
        if block is None:
            return {}
        values = _seen(block, carry, window, popped, computed)
        if made := [s for s in block.saved if s.kind == MADE]:  # XLA finds that they are computed already
            env = replay(block.body, taken_in(block.body, values, self.shared, window.width), window.width)
            values |= {s.key: spread_over(env[s.number], window.width) for s in made}
        values |= {"link": window.read(carry[HEAD]), "depth": computed.depth, "lane": window.source}
        order = together(window, computed.mask)
        return {name: ordered(rows, order) for name, rows in block.rows.packed(values).items()}

    def written(self, code: BlockCode) -> tuple[str, ...]:
        names = StepContext.written(self, code)
        assert isinstance(self.layout, TapedLayout)
        block = self.layout.tape.block(code.index)
        return names if block is None else (*names, HEAD, block.count, *block.buffers.values())


@dataclass(frozen=True, slots=True)
class TapedLayout(Layout):
    """The layout of a machine that records."""

    tape: Tape = Tape(())
    rows_of_blocks: tuple[int, ...] = ()

    def extra(self, lanes: int) -> Values:
        """What is carried besides."""
        return self.tape.empty(lanes, self.rows_of_blocks)


def recording(layout: Layout, tape: Tape, rows: Sequence[int]) -> TapedLayout:
    """The layout of a machine that records, with so many rows for each block."""
    parts = {f.name: getattr(layout, f.name) for f in fields(layout)}
    codes = tuple(replace(code, keeps_loads=True) for code in layout.codes)
    return TapedLayout(**{**parts, "codes": codes}, tape=tape, rows_of_blocks=tuple(rows))


def _seen(block: BlockTape, carry: Values, window: Window, popped: Values, computed: Computed) -> Values:
    """The sources of a block for each lane, in storage form, by key."""
    found: Values = {}
    for source in block.body.sources:
        match source.kind:
            case "read":
                found[source.key] = window.read(carry[reg(source.name)], source.name in block.code.lanes_last)
            case "pop":
                found[source.key] = popped[source.name]
            case "loaded":
                found[source.key] = computed.done.loaded[source.name]
    return found


def _recorded(layout: TapedLayout, block: BlockTape, carry: Values, window: Window, computed: Computed) -> Values:
    mask, before = computed.mask, carry[block.count]
    out = {block.key(name): append(carry[block.key(name)], before, rows) for name, rows in computed.extra.items()}
    rank = jnp.cumsum(mask, dtype=jnp.int32)
    out[block.count] = jnp.minimum(before, MOST) + rank[-1]
    out[HEAD] = window.write(carry[HEAD], layout.tape.code(before + rank - 1, block), mask)
    return out


def rounded(n: int) -> int:
    """At least so many records: a power of two, or one and a half of one: few sizes to compile for."""
    size = 16
    while size < n:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size
