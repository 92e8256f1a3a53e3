"""Infer the type of every variable by tracing primitives for one lane, to a fixpoint over loops and calls.

before:  n: ?   t0: ?   r: ?           after:  n: i32[]   t0: bool[]   r: i32[]   (as `Inferred`, a table)

Only what control can reach is looked at: a branch on a value that is known while compiling (`if x.ndim == 1`)
leaves the other arm out. Types are per variable, not per point: `split_live_ranges` has made that precise enough. The
iteration ends because a leaf only climbs: known value, array, wider array. A container that gets more room or one more
level in each round has no end: after `ROUNDS`, or `LEVELS`, it is a conflict.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from pcbatch.data.objects.made_classes import classes_in, classes_of_objects
from pcbatch.data.objects.packed import mentions, packed_in
from pcbatch.data.objects.tables import TABLES, with_tables
from pcbatch.data.origins import Origin
from pcbatch.data.stored import OfObjects
from pcbatch.decisions import Decisions
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.errors import Refusal
from pcbatch.ir.analysis.def_use import terminator_reads
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.ops import RETURN, Branch, Check, Fail, Jump, Move, Prim, Print, Return, Select, unset
from pcbatch.ir.roles import reads
from pcbatch.lowering.typing import traced_draws
from pcbatch.lowering.typing.abstract_values import Abstract, JoinError, join_leaves, known, materialise, of_example
from pcbatch.lowering.typing.inferred import NOTHING, Conflict, Inferred, OpKey, VariableKey, branch_targets
from pcbatch.lowering.typing.instances import Instances, TooManyError, any_instance, base_of
from pcbatch.lowering.typing.join_types import differs, join, with_texts
from pcbatch.lowering.typing.kept_traces import KeptTraces, forget_traces
from pcbatch.lowering.typing.made_records import MadeRecords, packed_among, reading_tables, wanted
from pcbatch.lowering.typing.objects import on_cycle
from pcbatch.lowering.typing.outer_state import OuterState, refusal, unlike, watching
from pcbatch.lowering.typing.trace import Traced, trace

Tracer = Callable[..., Traced]
ROUNDS = 100  # and four for each operation: more than types take that come to an end
LEVELS = 16  # by which a structure may become deeper: a dict of dicts of lists has seven


GROWS, NESTS = (
    "it gets more room in each iteration, without end",
    "it gets one more level in each iteration, without end",
)


def run(program: CfgProgram, args: Mapping[str, Abstract], widen: bool = True) -> Inferred:
    """Infer the types of all variables; `args` gives the entry's parameters, for one lane.

    With `widen` structures that differ are joined to a container of the lane, else they are conflicts.
    Errors of the user's program are part of the result; nothing is raised for them.
    """
    before, outside = traced_draws.states(program), OuterState(program, args)
    inference = _infer(program, args, trace, widen)
    if names := outside.changes():
        # A counter, or a table that is filled once: the second time tells, and the table is as it stays.
        forget_traces()
        first, inference = inference, _infer(program, args, watching(outside), widen)
        if not inference.inferred.errors:
            inference.inferred.errors |= {key: refusal(names[0]) for key in unlike(first.traces, inference.traces)}
    # Some function drew random numbers while it was traced: infer again, slowly, to learn which.
    if traced_draws.states(program) != before:
        forget_traces()
        inference = _infer(program, args, traced_draws.watching(program), widen)
    return inference.inferred


def instances(program: CfgProgram, args: Mapping[str, Abstract], functions: frozenset[str]) -> Instances | None:
    """Infer types with a function for each tuple of shapes of the arguments of some functions; None for too many."""
    found = Instances(functions, args if program.entry in functions else None, program)
    try:
        _infer(program, args, trace, True, found)
    except TooManyError:
        return None
    return found


def _infer(
    program: CfgProgram, args: Mapping[str, Abstract], tracer: Tracer, widen: bool, instances: Instances | None = None
) -> _Inference:
    inference = _Inference(program, tracer, widen, instances)
    inference.inferred.args = args
    for name, value in args.items():
        inference.assign((program.entry, name), of_example(value), program.function(program.entry).loc)
    inference.reach(program.entry, program.function(program.entry).blocks[0].label)
    inference.settle()
    if inference.inferred.errors:
        # Types that depend on an error stay unknown, but code after it is still checked, for errors of its own.
        inference.both_arms = True
        inference.settle()
        _leave_out_what_follows(inference.inferred, inference.functions)
    return inference


def _leave_out_what_follows(inferred: Inferred, functions: Mapping[str, Function]) -> None:
    """Leave out errors about elements of containers into which only operations with other errors would store."""
    follow = {
        key
        for key in inferred.errors
        if NOTHING in (inferred.types.get((key[0], v)) for v in reads(functions[key[0]].block(key[1]).ops[key[2]]))
    }
    if inferred.conflicts or follow != inferred.errors.keys():
        for key in follow:
            del inferred.errors[key]


"""The value of what has none: an attempt that is known to raise, an element of a list that is always empty."""
NOUGHT = known(0)


class _Inference:
    def __init__(self, program: CfgProgram, tracer: Tracer, widen: bool, instances: Instances | None = None) -> None:
        self.instances = instances
        self.join = join if widen else join_leaves
        self.program = program
        self.tracer = tracer
        self.functions = {f.name: f for f in program.functions}
        self.inferred = Inferred(results={f.name: f.results for f in program.functions})
        self.users = _users(program.functions, self.inferred.results)
        self.order = [(f.name, block) for f in program.functions for block in f.blocks]
        self.position = {(name, block.label): k for k, (name, block) in enumerate(self.order)}
        # Blocks to look at (again), and from which operation on; those that wait for a call to return, and where.
        self.stale: dict[tuple[str, str], int] = {}
        self.waiting: dict[tuple[str, str], int] = {}
        # Rounds go through the program in its order (`dataflow.Worklist` would return to the smallest position, so
        # that a loop is traced again before the code after it is traced once). A change for later ones counts at once.
        self.due: list[tuple[int, int]] = []  # a heap of rounds and positions
        self.current = (0, -1)  # the round and position of the block that is looked at
        self.growth: Conflict | None = None  # the last one of a type, as the conflict that it is if it has no end
        self.deepened: dict[VariableKey, int] = {}  # by how many levels
        # Primitives that read a value of which nothing is known yet: they wait until nothing else tells (`NOUGHT`).
        self.left: dict[OpKey, None] | None = {}
        self.both_arms = False  # follow both arms of a branch whose condition could not be typed
        self.traces: dict[OpKey, list[tuple[tuple[Abstract, ...], Traced]]] = {}
        self._kept = KeptTraces()
        self.made = MadeRecords(tracer, self._kept if tracer is trace else None)
        self.inferred.heap = self.made.heap

    def settle(self) -> None:
        """Look at every reachable block once, and then at what changes, until nothing does."""
        self.current = (self.current[0] + 1, -1)
        for name, labels in self.inferred.reachable.items():
            for label in labels:
                self.look((name, label), 0)
        last = self.current[0] + ROUNDS + 4 * sum(len(block.ops) for _, block in self.order)
        self._work(last)
        left, self.left = self.left, None
        for function, label, k in left or ():
            self.look((function, label), k)
        self._work(last)

    def _work(self, last: int) -> None:
        """Look at what is due, in rounds up to the last."""
        while self.due:
            self.current = heapq.heappop(self.due)
            if self.current[0] > last and self.growth is not None:
                self.inferred.conflicts.setdefault(self.growth.place, self.growth)
                self.due.clear()
                return
            name, block = self.order[self.current[1]]
            start = self.stale.pop((name, block.label))
            self._block(name, block, min(start, self.waiting.pop((name, block.label), start)))

    def look(self, place: tuple[str, str], start: int) -> None:
        """Schedule a block from operation `start` on: in this round if it comes later in the program, or the next."""
        if place not in self.stale:
            this_round, current = self.current
            position = self.position[place]
            heapq.heappush(self.due, (this_round + (position <= current), position))
        self.stale[place] = min(start, self.stale.get(place, start))

    def reach(self, function: str, label: str) -> None:
        labels = self.inferred.reachable.setdefault(function, set())
        if label != RETURN and label not in labels:
            labels.add(label)
            self.look((function, label), 0)

    def assign(self, place: VariableKey, value: Abstract, loc: Loc | None) -> None:
        """Join a value into the type of a variable, and have its users looked at if that changes."""
        if place[0] == self.program.entry and place[1] in self.inferred.results[place[0]]:
            given, value = value, _as_result(with_texts(value))  # what a batch returns is arrays and texts
            if value.tree != given.tree:
                self.inferred.widened.add(place)
        old = self.inferred.types.get(place)
        if old is None:
            new = value
            self.inferred.sources[place] = loc
        else:
            try:
                new = self.join(old, value)
            except JoinError as error:
                source = self.inferred.sources.get(place)
                conflict = Conflict(place, old, source, value, loc, str(error), error.kind)
                self.inferred.conflicts.setdefault(place, conflict)
                self.inferred.unlike.setdefault(place, {})[old, value] = None
                self.inferred.wants |= Decisions(made=wanted(old, value, error), tables=packed_among(old, value))
                return
        if new != old:
            if old is not None and differs(old, new):
                self.inferred.widened.add(place)
            if old is not None:
                self.growth = Conflict(place, old, self.inferred.sources.get(place), new, loc, GROWS, "room")
                if (deeper := depth(new.tree) - depth(old.tree)) > 0:
                    self.deepened[place] = self.deepened.get(place, 0) + deeper
                    if self.deepened[place] > LEVELS:
                        self.inferred.conflicts.setdefault(place, replace(self.growth, cause=NESTS, kind="levels"))
                        self.inferred.wants |= Decisions(made=wanted(old, new, JoinError(NESTS, "levels")))
                        return
            self.inferred.types[place] = new
            for (user, label), k in self.users.get(place, {}).items():
                if label in self.inferred.reachable.get(user, ()):
                    self.look((user, label), k)

    def _block(self, function: str, block: Block, start: int) -> None:
        for k, op in enumerate(block.ops[start:], start):
            match op:
                case Prim():
                    self._prim(function, (function, block.label, k), op)
                case Move():
                    value = self.inferred.types.get((function, op.src))
                    if value is not None:
                        self.assign((function, op.dst), value, op.loc)
                case Call():
                    callee = self._callee((function, block.label, k), op)
                    if callee is None or not self._call(function, op, callee):
                        self.waiting[function, block.label] = k
                        return  # what follows is not reached, or looked at when more is known
                case Print():
                    pass
                case Select() | Check():
                    raise NotImplementedError("selections and checks are made after type inference")
                case _:
                    assert_never(op)
        self._terminator(function, block)

    def _prim(self, function: str, key: OpKey, op: Prim) -> None:
        if op.expr.fn is unset:
            return  # its other definitions tell the type
        ins = tuple(self.inferred.types.get((function, v)) for v in op.expr.ins)
        self.inferred.errors.pop(key, None)
        if any(value is None for value in ins):
            return
        if NOTHING in ins and self.left is not None:
            self.left[key] = None
            return
        ins = tuple(NOUGHT if value == NOTHING else value for value in ins)
        try:
            traced = self._trace(key, op, self._with_tables(tuple(value for value in ins if value is not None)))
            self._let_heap_grow(key, traced)
        except Exception as error:  # the user's own, or JAX's: shown at the line if it stays to the end
            if isinstance(error, OfObjects) and (objects := on_cycle(error.values)):  # which JAX cannot flatten
                self.inferred.wants |= Decisions(made=classes_of_objects(objects))
            elif isinstance(error, OfObjects) and (classes := classes_in(error.values) or classes_in(error.whole)):
                self.inferred.wants |= Decisions(made=classes, tables=packed_in(error.values))
            elif isinstance(error, Refusal):
                self.inferred.wants |= error.wants
            self.inferred.errors[key] = error
            return
        self.inferred.traced[key] = traced
        for dst, value in zip(op.dsts, traced.outs, strict=True):
            self.assign((function, dst), value, op.loc)

    def _with_tables(self, ins: tuple[Abstract, ...]) -> tuple[Abstract, ...]:
        """The operands of a primitive, and the tables of records if one of them refers to a record."""
        tables = self.inferred.args.get(TABLES)
        return ins if tables is None or not any(mentions(value.tree) for value in ins) else (*ins, tables)

    def _trace(self, key: OpKey, op: Prim, ins: tuple[Abstract, ...]) -> Traced:
        cache = self.traces.setdefault(key, [])
        for seen, traced in cache:
            if seen == ins:
                return traced
            asked = traced.asked or any(Origin.MIXED in one.origins for one in ins)
            if not asked and [(one.tree, one.leaves) for one in seen] == [(one.tree, one.leaves) for one in ins]:
                # The types are as before, only origins differ, and no origin has decided anything in the trace.
                return replace(traced, outs=traced.weak)
        fn = op.expr.fn
        assert fn is not None, "a parsed program has no functions to trace"
        tables = len(ins) > len(op.expr.ins)
        run = with_tables(fn) if tables else fn
        if self.made.heap is not None:
            return self.made.trace(key, op, run, ins)
        count = len(op.dsts)
        if self.tracer is trace:
            kept = self._kept.once(fn, key, ins, count, lambda: trace(run, ins, count, fn))
        else:
            kept = self.tracer(run, ins, count, fn)
        traced = reading_tables(kept, ins) if tables else kept
        cache.append((ins, traced))
        return traced

    def _let_heap_grow(self, key: OpKey, traced: Traced) -> None:
        """Join the heap after a primitive with that of the program; all who read it are looked at if that changes."""
        if traced.heap is not None and self.made.joined(traced.heap):
            self.inferred.heap = self.made.heap
            for function, label, k in self.made.keys:
                self.look((function, label), k)

    def _callee(self, key: OpKey, op: Call) -> Function | None:
        """The function of a call: one for the shapes of its arguments, where there are several; None if those are not
        known yet."""
        base = base_of(op.func)
        if self.instances is None or base not in self.instances.functions:
            return self.functions[op.func]
        values = [self.inferred.types.get((key[0], arg)) for arg in op.args]
        if any(value is None for value in values):
            return None
        template = replace(any_instance(self.functions, base), name=base)
        callee = self.instances.target(key, template, [value for value in values if value is not None])
        if callee.name not in self.functions:
            self.functions[callee.name], self.inferred.results[callee.name] = callee, callee.results
            for block in callee.blocks:
                self.position[callee.name, block.label] = len(self.order)
                self.order.append((callee.name, block))
            for place, users in _users((callee,), self.inferred.results).items():
                self.users.setdefault(place, {}).update(users)
        for result in callee.results:
            users = self.users.setdefault((callee.name, result), {})
            users[key[:2]] = min(key[2], users.get(key[:2], key[2]))
        return callee

    def _call(self, function: str, op: Call, callee: Function) -> bool:
        """Look at a call; return whether it is known to return."""
        ready = True
        for param, arg in zip(callee.params, op.args, strict=True):
            value = self.inferred.types.get((function, arg))
            if value is None:
                ready = False
            else:
                self.assign((callee.name, param), value, op.loc)
        if ready:
            self.reach(callee.name, callee.blocks[0].label)
        for dst, result in zip(op.dsts, callee.results, strict=True):
            value = self.inferred.types.get((callee.name, result))
            if value is not None:
                self.assign((function, dst), value, op.loc)
        return all((callee.name, result) in self.inferred.types for result in callee.results)

    def _terminator(self, function: str, block: Block) -> None:
        match block.terminator:
            case Jump(target=target):
                self.reach(function, target)
            case Branch() as branch:
                cond = self.inferred.types.get((function, branch.cond))
                both = (branch.on_true, branch.on_false) if self.both_arms and cond is None else ()
                for target in both or branch_targets(branch, cond):
                    self.reach(function, target)
            case Return() | Fail():
                pass


def depth(tree: Any) -> int:
    """Return the number of levels of a structure."""
    return 1 + max(map(depth, tree.children()), default=0)


def _users(
    functions: Sequence[Function], results: Mapping[str, tuple[str, ...]]
) -> dict[VariableKey, dict[tuple[str, str], int]]:
    """The blocks that depend on the type of each variable, with the first operation that does.

    A call depends on its arguments and on the results of its callee.
    """
    users_of: dict[VariableKey, dict[tuple[str, str], int]] = {}
    for f in functions:
        for block in f.blocks:
            places = [((f.name, v), k) for k, op in enumerate(block.ops) for v in reads(op)]
            places += [((f.name, v), len(block.ops)) for v in terminator_reads(block.terminator)]
            calls = [(k, op.func) for k, op in enumerate(block.ops) if isinstance(op, Call)]
            places += [((callee, v), k) for k, callee in calls for v in results[callee]]
            for place, k in places:
                users = users_of.setdefault(place, {})
                users[f.name, block.label] = min(k, users.get((f.name, block.label), k))
    return users_of


def _as_result(value: Abstract) -> Abstract:
    try:
        return materialise(value)
    except JoinError:
        return value  # reported by the checks
