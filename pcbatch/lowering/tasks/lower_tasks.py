"""Lower the CFG to the task IR: a call becomes a `spawn`, and a `sync` where its result is needed.

before:  left = call @fib(t1)                  after:       frame
         right = call @fib(t2)                              spawn left = fib.bb0(n=t1)
         r = { left + right }                               spawn right = fib.bb0(n=t2)
         return                                             sync fib.bb2.4()
                                               fib.bb2.4(left, right) after sync:
                                                            r = { left + right }
                                                            return r

Calls whose results a loop appends to a list become its rows (`stored_results.py`).

A call whose result is a term of the caller's own is `spawn return +=` (`linear_results.py`), one in tail position a
jump. What is live where a block begins are its parameters, without the constants of the example (`analysis.constants`).

A task that fails tells only that its example has failed: which failure Python meets first, lanes find out, which run
such examples again. So messages are left out, and a failure overtakes what is pending.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.analysis.dataflow import block_edges, reachable
from pcbatch.ir.analysis.liveness import live_after, live_in
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.forks import Fork
from pcbatch.ir.names import Fresh
from pcbatch.ir.ops import RETURN, Branch, Fail, Jump, Prim, PureOp, Return
from pcbatch.ir.roles import rename_reads, rename_writes, writes
from pcbatch.ir.tasks import (
    Finish,
    Give,
    OpenFrame,
    Spawn,
    SpawnInto,
    Start,
    Sync,
    TaskBlock,
    TaskEdge,
    TaskJump,
    TaskOp,
    TaskProgram,
)
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.constants import Local, constants, shared_values
from pcbatch.lowering.cfg_passes.inline import identifier
from pcbatch.lowering.left_out import runs
from pcbatch.lowering.tasks.alike_failures import without_messages
from pcbatch.lowering.tasks.linear_results import has_checked_sums, linear_calls
from pcbatch.lowering.tasks.pending_calls import CLOSED, Pending, Site, Waits, tails, waits
from pcbatch.lowering.tasks.stored_results import Store, known_values, stored_results
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.lowering.typing.leaves import constant, no_value


def run(program: CfgProgram, shared: frozenset[str] = frozenset()) -> TaskProgram | None:
    """Return the program of tasks; None if no two calls could ever run side by side.

    Args:
        program: A typed program without prints and checks.
        shared: The parameters of the entry that all examples share.
    """
    lowering = _Lowering(without_messages(program), shared)
    return lowering.program() if lowering.forks else None


@dataclass(slots=True)
class _Body:
    """A block under construction: variables of the function by their names in it, and the calls that are pending."""

    label: str
    params: tuple[str, ...]
    names: dict[str, str]
    state: Pending
    joins: bool = False
    opens: bool = False  # a frame is open where it begins
    steps: int = 0  # blocks of lanes
    ops: list[TaskOp] = field(default_factory=list)


class _Lowering:
    def __init__(self, program: CfgProgram, shared: frozenset[str]) -> None:
        self.source = program
        self.functions = {f.name: f for f in program.functions}
        single = len(program.functions) == 1
        self.names: dict[Local, str] = {
            (f.name, v): v if single else f"{identifier(f.name)}.{v}"
            for f in program.functions
            for v in (*f.types, *f.params, *f.results)
        }
        of_all, self.ahead = shared_values(program, shared) if runs("shared_values") else ({}, [])
        self.roots = {local: self.names[root] for local, root in (constants(program) | of_all).items()}
        self.shared = frozenset(self.names[program.entry, p] for p in shared)
        self.tails = {f.name: frozenset(tails(f, self.functions)) for f in program.functions}
        linear = linear_calls(program)
        self.linear = {name: sites - self.tails[name] for name, sites in linear.items()}
        self.sums = self.summed()
        self.stores = {
            f.name: {
                site: store
                for site, store in stored_results(f).items()
                if site not in self.tails[f.name] | self.linear[f.name]
            }
            for f in program.functions
        }
        self.appends = {f.name: known_values(f, self.stores[f.name]) for f in program.functions}
        self.waits = {
            f.name: waits(f, self.linear[f.name], self.tails[f.name], self.stores[f.name], self.appends[f.name])
            for f in program.functions
        }
        self.fresh = Fresh(set(self.names.values()))

    @property
    def forks(self) -> bool:
        """Whether two tasks of one example may ever be ready together."""
        calls_more = any(_calls_after(self.functions[name], sites) for name, sites in self.linear.items())
        return calls_more or any(w.together for w in self.waits.values())

    def summed(self) -> frozenset[str]:
        """The functions that add their results to their destination: all that may share one."""
        sums = {name for name, sites in self.linear.items() if sites}
        shares: dict[str, set[str]] = {name: set() for name in self.functions}
        for f in self.source.functions:
            for label, k in self.linear[f.name] | self.tails[f.name]:
                call = f.block(label).ops[k]
                assert isinstance(call, Call)
                shares[f.name].add(call.func)
                if (label, k) in self.tails[f.name]:
                    shares[call.func].add(f.name)
        return reachable(sums, shares)

    def program(self) -> TaskProgram:
        entry = self.functions[self.source.entry]
        blocks = tuple(block for f in self.source.functions for block in _FunctionLowering(self, f).blocks())
        types: dict[str, ArrayType | None] = {
            name: self.functions[f].types.get(v) for (f, v), name in self.names.items()
        }
        types |= {new: types.get(origin) for new, origin in self.fresh.origins.items()}
        params = tuple(self.names[entry.name, p] for p in entry.params)
        rooted = set(self.roots.values())
        ahead = tuple(self._ahead(f, op) for f, op in self.ahead)
        return TaskProgram(
            entry=f"{entry.name}.{entry.blocks[0].label}",
            params=params,
            results=tuple(self.names[entry.name, r] for r in entry.results),
            types=types,
            constants=tuple(p for p in params if p in rooted and p not in self.shared),
            shared=(*(p for p in params if p in rooted and p in self.shared), *(v for op in ahead for v in op.dsts)),
            blocks=blocks,
            prologue=ahead,
            sums=self.sums,
            exact=any(has_checked_sums(self.functions[name]) for name in self.sums),
        )

    def _ahead(self, function: str, op: Prim) -> Prim:
        """An operation of the prologue, by the names of the program."""
        read = rename_reads(op, lambda v: self.roots[function, v])
        return rename_writes(read, lambda v: self.names[function, v])


def _calls_after(function: Function, sites: Iterable[Site]) -> bool:
    """Whether another call may follow one of these calls in an activation of the function."""
    calling = {block.label for block in function.blocks if any(isinstance(op, Call) for op in block.ops)}
    blocks = {block.label: block for block in function.blocks}
    after = block_edges(function.blocks)
    following = {label: reachable(after[label], after) for label, _ in sites}
    return any(
        any(isinstance(op, Call) for op in blocks[label].ops[k + 1 :]) or not calling.isdisjoint(following[label])
        for label, k in sites
    )


class _FunctionLowering:
    def __init__(self, lowering: _Lowering, function: Function) -> None:
        self.whole, self.function = lowering, function
        self.live_in, self.live_after = live_in(function), live_after(function)
        self.waits: Waits = lowering.waits[function.name]
        self.stores, self.appends = lowering.stores[function.name], lowering.appends[function.name]
        self.done: list[TaskBlock] = []

    def blocks(self) -> list[TaskBlock]:
        """All blocks of the function that control may reach."""
        for block in self.function.blocks:
            if block.label in self.waits.entering:
                self.block(block)
        return self.done

    def name(self, v: str) -> str:
        return self.whole.names[self.function.name, v]

    def known(self, v: str) -> str | None:
        """The constant of the example that a variable stands for."""
        return self.whole.roots.get((self.function.name, v))

    def read(self, body: _Body, v: str) -> str:
        return self.known(v) or body.names[v]

    def carried(self, live: Iterable[str], state: Pending) -> list[str]:
        """The variables that a record needs at a point, in order of declaration."""
        live = frozenset(live) - state.results
        order = dict.fromkeys((*self.function.params, *self.function.results, *self.function.types))
        return [v for v in order if v in live and self.known(v) is None]

    def label(self, block: str) -> str:
        return f"{self.function.name}.{block}"

    def block(self, block: Block) -> None:
        state = self.waits.entering[block.label]
        carried = self.carried(self.live_in[block.label], state)
        body = self.begin(self.label(block.label), carried, state)
        body.steps = 1
        waits = self.waits.before[block.label]
        for k, op in enumerate(block.ops):
            if k in waits:
                body = self.sync(body, f"{body.label}.{k}", self.live(block, k))
            if isinstance(op, Call) and (block.label, k) in self.whole.tails[self.function.name]:
                self.end(body, TaskJump(self.entry(op.func), self.arguments(body, op)))
                return
            self.operation(body, op, (block.label, k), self.live(block, k + 1))
        if len(block.ops) in waits:
            body = self.sync(body, f"{body.label}.{len(block.ops)}", self.live(block, len(block.ops)))
        self.terminate(body, block)

    def live(self, block: Block, k: int) -> frozenset[str]:
        """The variables live before operation `k` of a block."""
        return self.live_in[block.label] if k == 0 else self.live_after[block.label][k - 1]

    def begin(self, label: str, carried: Sequence[str], state: Pending) -> _Body:
        params = tuple(map(self.name, carried))
        return _Body(label, params, dict(zip(carried, params, strict=True)), state, opens=state.open)

    def end(self, body: _Body, terminator: TaskEdge | Fail) -> None:
        name = self.function.name
        ops = tuple(body.ops)
        self.done.append(TaskBlock(body.label, body.params, ops, terminator, body.joins, body.opens, name, body.steps))

    def sync(self, body: _Body, label: str, live: frozenset[str]) -> _Body:
        """Wait for all pending calls, and go on in a new block."""
        saved = self.carried(live, body.state)
        results = [v for v in self.carried(live, CLOSED) if v in body.state.results]
        self.end(body, Sync(label, tuple((self.name(v), self.read(body, v)) for v in saved)))
        joined = self.begin(label, [*saved, *results], CLOSED)
        joined.joins = True
        return joined

    def entry(self, function: str) -> str:
        return f"{function}.{self.whole.functions[function].blocks[0].label}"

    def arguments(self, body: _Body, call: Call) -> tuple[tuple[str, str], ...]:
        """The parameters of the callee's first block, with the variables that they are bound to."""
        callee = self.whole.functions[call.func]
        needed = live_in(callee)[callee.blocks[0].label]
        return tuple(
            (self.whole.names[callee.name, p], self.read(body, a))
            for p, a in zip(callee.params, call.args, strict=True)
            if p in needed and (callee.name, p) not in self.whole.roots
        )

    def operation(self, body: _Body, op: Op, site: Site, live: frozenset[str]) -> None:
        match op:
            case Call():
                body.steps += 1  # lanes come back to a block of its own
                way = Start(self.entry(op.func), self.arguments(body, op))
                if site in self.whole.linear[self.function.name]:
                    body.ops.append(SpawnInto(way, op.loc))
                    if op.dsts[0] in live:  # the rest of the sum is that of the other terms
                        type_ = self.function.types[op.dsts[0]]
                        assert type_ is not None
                        self.define(body, constant(op.dsts[0], Known(0), type_, op.loc))
                    return
                if not body.state.open:
                    body.ops.append(OpenFrame(op.loc))
                store = self.stores.get(site)
                if store is not None:
                    self.store(body, store, way, op.loc)
                    return
                body.ops.append(Spawn(tuple(map(self.name, op.dsts)), way, False, op.loc))
                body.state = Pending(True, body.state.calls | {op.dsts})
            case _ if isinstance(op, PureOp):
                behind = self.stores.get((site[0], site[1] - 1))
                append = self.appends.get(site)
                if append is not None and append.arrays in body.state.calls:
                    values, dsts = (
                        tuple(self.read(body, v) for v in append.values),
                        tuple(map(self.name, append.arrays)),
                    )
                    body.ops.append(Spawn(dsts, Give(values), False, op.loc, self.read(body, append.row)))
                    behind = append
                op = op if behind is None else behind.rest
                if any(self.known(v) is None for v in writes(op)) or not writes(op):
                    self.define(body, op)
            case _:
                raise AssertionError("programs with prints and checks are not lowered to tasks")

    def store(self, body: _Body, store: Store, way: Start, loc: Loc | None) -> None:
        """Spawn a task whose results become rows of arrays, which the frame holds until the sync."""
        dsts = tuple(map(self.name, store.arrays))
        if store.arrays not in body.state.calls:
            body.ops.append(Spawn(dsts, Give(tuple(self.read(body, v) for v in store.arrays)), False, loc))
        body.ops.append(Spawn(dsts, way, False, loc, self.read(body, store.row)))
        body.state = Pending(True, body.state.calls | {store.arrays})

    def define(self, body: _Body, op: PureOp) -> None:
        """Add an operation; within a block each name gets one value."""
        op = rename_reads(op, lambda v: self.read(body, v))
        used = {*body.params, *(v for done in body.ops if isinstance(done, PureOp) for v in writes(done))}
        new = {v: self.whole.fresh(self.name(v)) if self.name(v) in used else self.name(v) for v in writes(op)}
        body.names |= new
        body.ops.append(rename_writes(op, lambda v: new[v]))

    def terminate(self, body: _Body, block: Block) -> None:
        match block.terminator:
            case Jump(target=target):
                self.prepare(body, target)
                self.end(body, self.edge(body, target))
            case Branch(cond=cond):
                on_true, on_false = (
                    self.edge(body, block.terminator.on_true),
                    self.edge(body, block.terminator.on_false),
                )
                self.end(body, Fork(self.read(body, cond), on_true, on_false, block.terminator.loc))
            case Return():
                self.end(body, self.edge(body, RETURN))
            case Fail():
                self.end(body, block.terminator)

    def prepare(self, body: _Body, target: str) -> None:
        """Bring the frame of a block into the state in which its only successor begins."""
        want = self.waits.entering[target]
        if not want.open:
            return
        if not body.state.open:
            body.ops.append(OpenFrame())
        for dsts in sorted(want.calls - body.state.calls):
            if self.live_in[target].isdisjoint(dsts):
                continue
            for v in dsts:
                if self.known(v) is None and v not in body.names:
                    self.define(body, _zero(v, self.function.types[v]))
            values = tuple(self.read(body, v) for v in dsts)
            body.ops.append(Spawn(tuple(map(self.name, dsts)), Give(values)))
        body.state = want

    def edge(self, body: _Body, target: str) -> TaskEdge:
        """The leaf that leads to a block, or to the end of the function."""
        if target == RETURN:
            return Finish(tuple(self.read(body, r) for r in self.function.results))
        want, have = self.waits.entering[target], body.state
        if have.open and not want.open:
            stub = f"{body.label}.{target}"
            saved = self.carried(self.live_in[target], have)
            results = [v for v in self.carried(self.live_in[target], CLOSED) if v in have.results]
            joined = self.begin(stub, [*saved, *results], CLOSED)
            joined.joins = True
            self.end(joined, self.edge(joined, target))
            return Sync(stub, tuple((self.name(v), self.read(body, v)) for v in saved))
        if want.open and (not have.open or want.calls != have.calls):
            between = f"{body.label}.{target}"
            needed = self.carried(self.live_in[target], have)
            opening = self.begin(between, needed, have)
            self.prepare(opening, target)
            self.end(opening, self.edge(opening, target))
            return TaskJump(between, tuple((self.name(v), self.read(body, v)) for v in needed))
        needed = self.carried(self.live_in[target], want)
        return TaskJump(self.label(target), tuple((self.name(v), self.read(body, v)) for v in needed))


def _zero(v: str, type_: ArrayType | None) -> Prim:
    assert type_ is not None, v
    return no_value(v, type_, None)
