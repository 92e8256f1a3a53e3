"""One visit of one block: pop records, compute them, open frames, start tasks, go on, deliver results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, assert_never

import jax
import jax.numpy as jnp

from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Fail
from pcbatch.ir.tasks import Finish, Give, Spawn, SpawnInto, Start, Sync, TaskJump
from pcbatch.runtime.tasks import lists, pool, reading, steps
from pcbatch.runtime.tasks.lists import Entry
from pcbatch.runtime.tasks.pool import Mask, Tally, either, guarded, select, wide
from pcbatch.runtime.tasks.reading import Read, TaskMachine
from pcbatch.runtime.tasks.sites import opens
from pcbatch.runtime.tasks.task_plan import DEST, FRAME, FROM, ROOT, SERIAL, ListBlock, TaskPlan
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.layout import PER_BLOCK

I32 = jnp.int32
ROW = 8  # elements: a row of a frame's places that is so short is written at once
VISITS = "serial"  # state key: visits so far, int32[]
FAILED = "failed"  # state key: bool[examples]: some task of the example has failed


class KnownResult(NamedTuple):
    """A result that is known where a task would be started, for a place of the open frame."""

    key: str
    slot: int
    mask: jax.Array
    value: Any
    adds: bool
    row: jax.Array | None = None  # int32[width]: the slot, if records differ in it
    rows: bool = False  # whether it is all rows of an array, from the slot on

    @property
    def is_fixed(self) -> bool:
        """Whether it is written to one place, the same of each frame."""
        return not self.adds and self.row is None and not self.rows


def fill_new_frame(
    s: Values, slots: int, frame: jax.Array, ok: jax.Array, known: list[KnownResult]
) -> list[KnownResult]:
    """Write results of one array to frames in which nothing is yet, as one row each; return the others."""
    array = s[known[0].key]
    row = [jnp.zeros((len(ok), *array.shape[1:]), array.dtype)] * slots
    for one in known:
        if one.is_fixed:
            row[one.slot] = jnp.where(wide(one.mask, one.value), one.value.astype(array.dtype), row[one.slot])
    filled = pool.put(pool.rows(array, slots), frame, ok, jnp.stack(row, axis=1))
    s[known[0].key] = filled.reshape(array.shape)
    return [one for one in known if not one.is_fixed]


def fill_open_frame(s: Values, slots: int, frame: jax.Array, one: KnownResult) -> jax.Array | None:
    """Write a result to its place in frames, or add it to what is there; return the place, if it is one."""
    if one.rows:
        filled = pool.put_rows(pool.rows(s[one.key], slots), frame, one.slot, one.mask, one.value)
        s[one.key] = filled.reshape(s[one.key].shape)
        return None
    write = pool.add_result if one.adds else pool.put_result
    dest: jax.Array = frame * I32(slots) + (I32(one.slot) if one.row is None else one.row)
    write(s, one.key, dest, one.mask, one.value)
    return dest


@dataclass
class _Records:
    """The records that a visit pushes, by list and rank: those of one rank in one go, as no place has two of them."""

    entries: dict[str, dict[int, Entry]] = field(default_factory=dict)

    def add(self, target: str, rank: int, mask: Mask, columns: Values) -> None:
        """Note records for a list."""
        entries = self.entries.setdefault(target, {})
        if (old := entries.get(rank)) is None:
            entries[rank] = Entry(mask, columns)
            return
        assert mask is not None and old.mask is not None
        merged = {name: select(old.mask, old.columns[name], x) for name, x in columns.items()}
        entries[rank] = Entry(old.mask | mask, merged)

    def add_frame(self, label: str, frame: jax.Array, ready: jax.Array) -> None:
        """Note the frames that go on with the block after a `sync`."""
        self.add(label, len(self.entries.get(label, ())), ready, {FRAME: frame})

    def add_ready(self, s: Values, joins: Sequence[str], frame: jax.Array, ready: jax.Array) -> None:
        """Note the frames that go on, each with the block that it waits for."""
        if len(joins) == 1:
            self.add_frame(joins[0], frame, ready)
            return
        after = s[pool.AFTER].at[frame].get(mode="promise_in_bounds")
        for k, label in enumerate(joins):
            self.add_frame(label, frame, ready & (after == k))

    def ordered(self, plan: TaskPlan) -> list[tuple[ListBlock, list[Entry]]]:
        """Return the records of each list, by rank."""
        ranks = {target: [entries[rank] for rank in sorted(entries)] for target, entries in self.entries.items()}
        return [(plan.block(target), entries) for target, entries in ranks.items()]


def visit(machine: TaskMachine, block: ListBlock, state: Values, k: jax.Array, width: int) -> Values:
    """Return the state after a visit of a block that pops k records, at most `width`."""
    with jax.named_scope(block.code.scope):
        return _Visit(machine, block, dict(state), k, width, jnp.arange(width, dtype=I32) < k).run()


@dataclass
class _Visit:
    """A visit while it is written; `s` is the state, of which entries are replaced."""

    machine: TaskMachine
    block: ListBlock
    s: Values
    k: jax.Array
    width: int
    ok: jax.Array  # bool[width]: the places that have popped a record: those in front
    pushed: _Records = field(default_factory=_Records)
    given: list[KnownResult] = field(default_factory=list)
    frame: jax.Array | None = None  # int32[width]: the open frame of each place

    def run(self) -> Values:
        self.s[VISITS] = self.s[VISITS] + 1
        read = reading.read(self.machine, self.block, self.s, self.k, self.ok)
        self.frame = _frame_of(self.machine, self.block, self.s, self.k, self.ok, read)
        self._end(read)
        # The jump first: what is started now comes to lie above the rest of the task.
        lists.push(self.s, self.pushed.ordered(self.machine.plan), self.k, self.ok)
        if self.machine.recorder is not None:
            self.machine.recorder.append(self.s, self.block, read.rows, self.k)
        _count(self.machine, self.block, self.s, self.k, self.ok, read)
        return self.s

    # The end of the block

    def _end(self, read: Read) -> None:
        block = self.block.block
        started = Tally(self.width)  # tasks that this one waits for
        inherited = Tally(self.width)  # tasks that have its destination
        added: list[tuple[jax.Array, tuple[Any, ...]]] = []  # sums to its destination
        spawned = [op for op in block.ops if isinstance(op, Spawn | SpawnInto)]
        for k, op in enumerate(spawned):
            rank = len(spawned) - k  # the call that Python makes first comes to lie on top
            self._spawn(op, rank, read, started if isinstance(op, Spawn) else inherited, added)
        self._fill(read)
        finished: Mask | bool = False
        synced = Tally(self.width)
        for mask, leaf in self._reached(block.terminator, None, read):
            match leaf:
                case TaskJump(target=target, args=args):
                    self._push(target, 0, mask, {p: read.values[v] for p, v in args}, read.dest, read)
                case Sync():
                    self._sync(leaf, mask, read)
                    synced.add(mask)
                case Finish(values=values):
                    results = tuple(read.values[v] for v in values)
                    if self.block.adds:
                        added.append((self._mask(mask), results))
                    else:
                        self._put_results(read.dest, mask, results)
                    finished = mask if finished is False else self._mask(either(mask, finished))
                case Fail():  # its results come nowhere, so that no frame above it ever goes on
                    self.s[FAILED] = self._failed(self.s[FAILED], self._mask(mask), read)
                case _:
                    assert_never(leaf)
        self._add_results(read, added)
        self._deliver(read, inherited, finished)
        self._wait(started, synced, read)

    def _reached(self, tree: Any, mask: Mask, read: Read) -> list[tuple[Mask, Any]]:
        """The leaves of a tree of forks, each with the places that take it."""
        if not isinstance(tree, Fork):
            return [(mask, tree)]
        cond = read.values[tree.cond]
        on_true = self._reached(tree.on_true, self._both(mask, cond), read)
        return on_true + self._reached(tree.on_false, self._both(mask, ~cond), read)

    def _both(self, mask: Mask, cond: jax.Array) -> jax.Array:
        return cond & self._mask(mask)

    def _mask(self, mask: Mask) -> jax.Array:
        return self.ok if mask is None else mask

    def _spawn(
        self, op: Spawn | SpawnInto, rank: int, read: Read, tally: Tally, added: list[tuple[jax.Array, tuple[Any, ...]]]
    ) -> None:
        for mask, way in self._reached(op.way, None, read):
            dest = read.dest
            if isinstance(op, Spawn):
                dest = self._place(op, mask, way, read)
            elif isinstance(way, Give):
                added.append((self._mask(mask), tuple(read.values[v] for v in way.values)))
            if isinstance(way, Start):
                tally.add(mask)
                self._push(way.label, rank, mask, {p: read.values[v] for p, v in way.args}, dest, read)

    def _place(self, op: Spawn, mask: Mask, way: Start | Give, read: Read) -> jax.Array:
        """Return the place of the open frame for what is spawned, and note what is to be written there at once."""
        plan = self.machine.plan
        assert self.frame is not None
        results, slot = plan.sites.of(plan.program, op.dsts), plan.sites.slots[op.dsts]
        row = None if op.row is None else self._row(op, read.values[op.row])
        if isinstance(way, Give):
            whole = op.dsts in plan.sites.rows and row is None
            for key, source in zip(results.keys, way.values, strict=True):
                self.given.append(KnownResult(key, slot, self._mask(mask), read.values[source], op.adds, row, whole))
        elif not op.adds and plan.block(way.label).adds:  # a sum begins at zero
            for key in results.keys:
                zero = jnp.zeros((self.width, *self.s[key].shape[1:]), self.s[key].dtype)
                self.given.append(KnownResult(key, slot, self._mask(mask), zero, False, row))
        dest: jax.Array = self.frame * I32(results.slots) + (I32(slot) if row is None else row)
        return dest

    def _row(self, op: Spawn, index: jax.Array) -> jax.Array:
        """int32[width]: the slot of a row; that behind the last for one that there is not."""
        sites = self.machine.plan.sites
        rows = sites.rows[op.dsts]
        inside = (index >= 0) & (index < rows)
        slot: jax.Array = jnp.where(inside, index.astype(I32), rows) + I32(sites.slots[op.dsts])
        return slot

    def _fill(self, read: Read) -> None:
        """Write the results that are known already to the open frame."""
        for key in dict.fromkeys(one.key for one in self.given):
            assert self.frame is not None
            known, slots = [one for one in self.given if one.key == key], self.machine.plan.sites.slots_of[key]
            # Nothing is in a new frame yet: one row, if it is short, is written sooner than several places.
            if opens(self.block.block) and slots > 1 and slots * math.prod(self.s[key].shape[1:]) <= ROW:
                known = fill_new_frame(self.s, slots, self.frame, self.ok, known)
            for one in sorted(known, key=lambda one: one.adds):
                dest = fill_open_frame(self.s, slots, self.frame, one)
                if one.adds and dest is not None:
                    self._check_sum(key, dest, one.mask, [one.value], read)

    def _push(self, target: str, rank: int, mask: Mask, values: Values, dest: jax.Array | None, read: Read) -> None:
        """Note records for a list, with the columns that it has."""
        extra = {DEST: dest, ROOT: read.root, FRAME: self.frame, SERIAL: None}
        columns: Values = {}
        for name in self.machine.plan.block(target).columns:
            if name == SERIAL:
                columns[name] = jnp.broadcast_to(self.s[VISITS], (self.width,))
            elif name == FROM:
                assert self.machine.recorder is not None
                columns[name] = self.machine.recorder.origin(self.s, self.block, target, rank, self.width)
            else:
                columns[name] = extra[name] if name in extra else values[name]
        self.pushed.add(target, rank, mask, columns)

    def _failed(self, failed: jax.Array, mask: jax.Array, read: Read) -> jax.Array:
        """The examples that have failed, with those of tasks that fail now."""
        if self.machine.plan.single:
            return failed | jnp.any(mask)
        assert read.root is not None
        at = jnp.where(mask, read.root, failed.shape[0])
        return failed.at[at].set(True, mode="drop")

    def _sync(self, leaf: Sync, mask: Mask, read: Read) -> None:
        """Save what the block after the `sync` finds in the frame, and note which block that is."""
        plan, frame = self.machine.plan, self.frame
        assert frame is not None
        for v, source in leaf.args:
            home = plan.sites.homes[leaf.target][v]
            if home.slot is None:
                self.s[home.key] = pool.put(self.s[home.key], frame, self._mask(mask), read.values[source])
            else:  # elsewhere it is a result of what is spawned
                dest = frame * I32(plan.sites.slots_of[home.key]) + I32(home.slot)
                pool.put_result(self.s, home.key, dest, self._mask(mask), read.values[source])
        if len(plan.joins) > 1:
            number = jnp.full(self.width, plan.joins.index(leaf.target), I32)
            self.s[pool.AFTER] = pool.put(self.s[pool.AFTER], frame, self._mask(mask), number)

    # Results

    def _put_results(self, dest: jax.Array | None, mask: Mask, values: tuple[Any, ...]) -> None:
        dest = jnp.zeros(self.width, I32) if dest is None else dest
        for key, value in zip(self.block.results.keys, values, strict=True):
            pool.put_result(self.s, key, dest, self._mask(mask), value)

    def _add_results(self, read: Read, added: list[tuple[jax.Array, tuple[Any, ...]]]) -> None:
        if not added:
            return
        dest = jnp.zeros(self.width, I32) if read.dest is None else read.dest
        anywhere = added[0][0]
        for mask, _ in added[1:]:
            anywhere = anywhere | mask
        for k, key in enumerate(self.block.results.keys):
            dtype = self.s[key].dtype
            terms = [jnp.where(wide(m, v[k]), v[k].astype(dtype), jnp.zeros((), dtype)) for m, v in added]
            total = terms[0]
            for term in terms[1:]:
                total = total | term if dtype == jnp.bool_ else total + term
            pool.add_result(self.s, key, dest, anywhere, total)
            self._check_sum(key, dest, anywhere, terms, read)

    def _check_sum(self, key: str, dest: jax.Array, mask: jax.Array, terms: Sequence[Any], read: Read) -> None:
        """Note the examples of sums at places that may have left their dtype."""
        if not self.machine.plan.program.exact:
            return
        size = sum((abs(term.astype(jnp.float32)) for term in terms), jnp.zeros(self.width, jnp.float32))
        some, which = pool.beyond(self.s, key, dest, mask, size)

        def note(s: Values) -> Values:
            return {FAILED: self._failed(s[FAILED], which(), read)}

        self.s |= guarded(some, note, {FAILED: self.s[FAILED]})

    def _deliver(self, read: Read, inherited: Tally, finished: Mask | bool) -> None:
        """Tell the frames of destinations what has returned and what was started, and push those that go on."""
        plan = self.machine.plan
        if not plan.framed or (finished is False and not inherited.some):
            return
        assert read.dest is not None
        frame = read.dest // I32(self.block.results.slots)
        done = jnp.zeros_like(self.ok) if isinstance(finished, bool) else self._mask(finished)
        delta = jnp.where(self.ok, inherited.total(self.ok), 0) - done.astype(I32)
        ready = pool.count_down(self.s, frame, delta, done, self.machine.sizes.lanes)
        if finished is not False:
            self.pushed.add_ready(self.s, plan.joins, frame, ready)

    def _wait(self, started: Tally, synced: Tally, read: Read) -> None:
        """Count what the open frame waits for; the task itself is one, until it stands at the `sync`."""
        if self.frame is None or not (opens(self.block.block) or started.some or synced.some):
            return
        waits = started.total(self.ok) - synced.total(self.ok)
        if opens(self.block.block):
            waits = waits + 1
            self.s[pool.NEED] = pool.put(self.s[pool.NEED], self.frame, self.ok, waits)
            missing = waits
        else:
            nowhere = self.s[pool.NEED].shape[0]
            at = jnp.where(self.ok, self.frame, nowhere)
            self.s[pool.NEED] = self.s[pool.NEED].at[at].add(waits, mode="drop")
            missing = self.s[pool.NEED].at[self.frame].get(mode="promise_in_bounds")
        if started.always and opens(self.block.block):
            return
        ready: dict[str, jax.Array] = {}
        for mask, leaf in self._reached(self.block.block.terminator, None, read):
            if isinstance(leaf, Sync):
                here = self._mask(mask) & (missing == 0)
                ready[leaf.target] = ready[leaf.target] | here if leaf.target in ready else here
        for target, here in ready.items():
            self.pushed.add_frame(target, self.frame, here)


def _frame_of(
    machine: TaskMachine, block: ListBlock, s: Values, k: jax.Array, ok: jax.Array, read: Read
) -> jax.Array | None:
    """Open a frame in each place, give its own back, or return the one that is open."""
    frame = read.frame  # of a block after a `sync` that opens a frame: the one that it has, whose destination stays
    if block.block.joins and not opens(block.block):
        assert frame is not None
        pool.give_back(s, frame, k)
        return None
    if block.takes:
        assert read.dest is not None
        frame = pool.take(s, k, len(ok))
        s[pool.DEST] = pool.put(s[pool.DEST], frame, ok, read.dest)
        if machine.plan.roots:
            assert read.root is not None
            s[pool.ROOT] = pool.put(s[pool.ROOT], frame, ok, read.root)
    if machine.recorder is not None and opens(block.block):
        assert frame is not None
        machine.recorder.opened(s, frame, k, ok)
    return frame


def _count(machine: TaskMachine, block: ListBlock, s: Values, k: jax.Array, ok: jax.Array, read: Read) -> None:
    """Count the blocks that examples have run, and visits."""
    if machine.plan.max_steps is not None and (each := block.block.steps):
        s[steps.STEPS] = steps.added(s[steps.STEPS], each, read.root, k, ok)
    if machine.stats:
        for key, n in zip(PER_BLOCK, (jnp.uint32(1), k.astype(jnp.uint32), jnp.uint32(len(ok))), strict=True):
            s[key] = wide_counters.added(s[key], block.number, n)
