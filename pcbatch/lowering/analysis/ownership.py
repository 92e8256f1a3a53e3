"""The variables that may hold one object in the plain function: which of them show a change made through another.

The states are relations between variables (`common_objects`), found by a forward analysis of each function. What
callers and the results of a call have in common is known by a summary, found by a fixpoint over calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from pcbatch.data.aliasing import CAPTURED, of_result
from pcbatch.data.objects.made_fields import FieldLevel
from pcbatch.ir.analysis.dataflow import solve
from pcbatch.ir.analysis.def_use import may_return, predecessors
from pcbatch.ir.analysis.liveness import live_in
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.effects import Change
from pcbatch.ir.ops import Move, Prim
from pcbatch.ir.roles import writes
from pcbatch.lowering.analysis.changed_objects import Objects, parts_at
from pcbatch.lowering.analysis.common_objects import (
    CALLERS,
    EMPTY,
    INNER,
    NONE,
    OUTSIDE,
    OWN,
    REPEATED,
    ObjectSource,
    Part,
    Sources,
    State,
    assigned,
    field_part,
    is_field,
    is_stored,
    joined,
    related,
)
from pcbatch.lowering.analysis.object_levels import is_builtin, levels
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.trace import Traced

Summary = frozenset[tuple[tuple[int, str], Part | tuple[int, str]]]
"""Pairs between results of a function, by number and level, and with its callers' parts."""


class Ownership:
    """The states of all functions of a typed program.

    `states[function][label]` is the state at the top of a block; `step` gives the one after an operation.
    """

    def __init__(self, program: CfgProgram, inferred: Inferred) -> None:
        self.program, self.inferred = program, inferred
        self.functions = {f.name: f for f in program.functions if inferred.reachable.get(f.name)}
        self.summaries: dict[str, Summary] = dict.fromkeys(self.functions, frozenset())
        self.objects = Objects(inferred, self.functions)
        self.states: dict[str, Mapping[str, State]] = {}
        self.stored: dict[str, frozenset[tuple[Part, Part]]] = dict.fromkeys(self.functions, frozenset())
        self.changed_fields = self._with_called(lambda traced: traced.fields.changed)
        self.written_fields = self._with_called(lambda traced: traced.fields.written)
        while True:
            before = dict(self.summaries), dict(self.stored)
            for name, function in self.functions.items():
                self._solve(name, function)
            if (self.summaries, self.stored) == before:
                return

    def _with_called(self, fields: Callable[[Traced], frozenset[FieldLevel]]) -> Mapping[str, frozenset[FieldLevel]]:
        """The fields of records, by level, of the primitives of each function, and of those that it calls."""
        found = {
            name: frozenset[FieldLevel]().union(
                *(fields(traced) for key, traced in self.inferred.traced.items() if key[0] == name)
            )
            for name in self.functions
        }
        called = {
            name: {op.func for op in function.ops if isinstance(op, Call)} & found.keys()
            for name, function in self.functions.items()
        }
        while True:
            more = {name: found[name].union(*(found[callee] for callee in called[name])) for name in found}
            if more == found:
                return found
            found = more

    def _solve(self, name: str, function: Function) -> None:
        reachable = self.inferred.reachable[name]
        blocks = {block.label: block for block in function.blocks if block.label in reachable}
        sources = {label: [p for p in of if p in reachable] for label, of in predecessors(function.blocks).items()}
        sources = {label: sources[label] for label in blocks}
        entry = function.blocks[0].label
        live = live_in(function)
        start = related(
            {}, ((part, (CALLERS + part[0], part[1])) for p in function.params for part in self.objects.parts(name, p))
        )
        solution = solve(
            sources,
            join=lambda label, states: joined([*([start] if label == entry else []), *states], live[label]),
            transfer=lambda label, state: self.after(name, blocks[label], state),
            start=EMPTY,
        )
        self.states[name] = solution.entering
        ends = [solution.leaving[label] for label, block in blocks.items() if may_return(block.terminator)]
        state = joined(ends, frozenset(function.results))
        self.summaries[name] = _summary(function, state)
        self.stored[name] = _stored_fields(state)

    def after(self, function: str, block: Block, state: State) -> State:
        """Return the state at the end of a block."""
        for k, op in enumerate(block.ops):
            state = self.step(function, block.label, k, op, state)
        return state

    def step(self, function: str, label: str, k: int, op: Op, state: State) -> State:
        """Return the state after an operation."""
        match op:
            case Move(dst=dst, src=src):
                if dst == src:
                    return state
                sources: Sources = {(dst, part[1]): [ObjectSource(part)] for part in self.objects.parts(function, src)}
                return assigned(state, [dst], sources)
            case Prim():
                traced = self.inferred.traced.get((function, label, k))
                if traced is None:
                    return assigned(state, op.dsts, {})
                new = assigned(state, op.dsts, self._prim(function, label, k, op, traced))
                return related(related(new, self._stores(function, op, traced, state)), _shared(op, traced))
            case Call():
                return self._call(function, op, state)
            case _:
                return assigned(state, list(writes(op)), {}) if writes(op) else state

    def _prim(self, function: str, label: str, k: int, op: Prim, traced: Traced) -> Sources:
        real = self.objects.changes(function, label, k, op)
        # What is stored may equal what was there: nothing shows then, but it is another object.
        stored = real or tuple(change for change in op.expr.effects.changes if change.sure)
        sources: dict[Part, list[ObjectSource]] = {}
        for j, (dst, value) in enumerate(zip(op.dsts, traced.outs, strict=True)):
            for part in parts_at(dst, levels(value)):
                if stored and j == len(op.dsts) - 1:
                    sources[part] = self._changed(function, op, stored[0], part[1], traced)
                elif real:
                    sources[part] = self._value(function, op, real[0], traced)
                else:
                    sources[part] = self._ties(function, op, traced, j, part[1])
                    if stored and is_builtin(self.objects.type(function, op.expr.ins[stored[0].position])):
                        sources[part] += self._value(function, op, stored[0], traced)
        for j, own, level in traced.fields.held:
            part = (op.dsts[j], OWN if own else INNER)
            if part in sources and not (real and j == len(op.dsts) - 1):  # a list that changes is none of the field
                sources[part].append(ObjectSource(field_part(level)))
        return sources

    def _stores(self, function: str, op: Prim, traced: Traced, state: State) -> Iterator[tuple[Part, Part]]:
        """Yield the pairs of fields of records with what a primitive stores in them."""
        for j, own, level in traced.fields.stored:
            part = (op.expr.ins[j], OWN if own else INNER)
            if part in self.objects.parts(function, part[0]):
                new = not op.expr.effects.syncs  # else it is stored where it was read
                yield from _stored_pairs(state, field_part(level, new), part, op.dsts)
        for place, level in traced.fields.shared:
            yield field_part((place, False), True), field_part(level)

    def _ties(self, function: str, op: Prim, traced: Traced, j: int, level: str) -> list[ObjectSource]:
        """The sources of result j of a primitive, by what was found while it was traced."""
        found: list[ObjectSource] = []
        for alias in traced.aliases:
            if alias.result != j or alias.own_result is not (level == OWN) or alias.source < CAPTURED:
                continue
            if alias.source == CAPTURED:
                found.append(ObjectSource(OUTSIDE))
                continue
            source = op.expr.ins[alias.source]
            part = (source, OWN if alias.own_source else INNER)
            if part in self.objects.parts(function, source):
                taken = alias.source in op.expr.effects.takes and not alias.own_source
                found.append(ObjectSource(part, taken, apart=op.expr.effects.apart))
        if level == INNER and j in traced.repeated:
            found += [ObjectSource(REPEATED), ObjectSource(REPEATED)]
        return found

    def _changed(self, function: str, op: Prim, change: Change, level: str, traced: Traced) -> list[ObjectSource]:
        """The sources of a variable after a change in place of its object."""
        root = op.expr.ins[change.position]
        mine = [ObjectSource(part) for part in self.objects.parts(function, root) if part[1] == level]
        if op.expr.effects.syncs:
            return [*mine, *self._put_back(function, op, level)]
        if op.expr.effects.back:
            return mine if level == OWN else [*mine, *self._given_back(function, op, change)]
        if level == OWN:
            return mine
        itself = any(one.source == change.position and one.own_source and not one.own_result for one in traced.aliases)
        several = itself or len(op.dsts) - 1 in traced.repeated
        return [*mine, *self._stored(function, op, change, traced), *[ObjectSource(REPEATED)] * (2 * several)]

    def _put_back(self, function: str, op: Prim, level: str) -> list[ObjectSource]:
        """The sources of a variable of which a part, or which itself, has changed by the name of another one."""
        parts = self.objects.parts(function, op.expr.ins[-1])
        if len(op.expr.ins) == 2:
            return [ObjectSource(part, stays=True) for part in parts if part[1] == level]
        return [] if level == OWN else [ObjectSource(part, stays=part[1] == OWN) for part in parts]

    def _given_back(self, function: str, op: Prim, change: Change) -> list[ObjectSource]:
        """The sources of the inside of a variable of which a call has changed a part, which stays at its place."""
        others = [name for k, name in enumerate(op.expr.ins) if k != change.position]
        parts = [part for name in others for part in self.objects.parts(function, name)]
        return [ObjectSource(part, stays=op.expr.effects.alone or part[1] == OWN) for part in parts]

    def _stored(self, function: str, op: Prim, change: Change, traced: Traced) -> list[ObjectSource]:
        """The sources that a change in place may store in the object; one that `spreads` stores elements of others, and
        these themselves only where tracing has found that it does."""
        tied = {alias.source for alias in traced.aliases if alias.own_source}
        others = [(k, name) for k, name in enumerate(op.expr.ins) if k != change.position]
        parts = [(k, part) for k, name in others for part in self.objects.parts(function, name)]
        return [ObjectSource(part) for k, part in parts if k in tied or part[1] == INNER or not change.spreads]

    def _value(self, function: str, op: Prim, change: Change, traced: Traced) -> list[ObjectSource]:
        """The sources of what a method returns that changes its object."""
        root = op.expr.ins[change.position]
        found = [ObjectSource((root, INNER), change.removes)] if self.objects.levels(function, root).inner else []
        if not is_builtin(self.objects.type(function, root)):  # a method of a class may return the object itself
            found.append(ObjectSource((root, OWN)))
        return [*found, *self._stored(function, op, change, traced)]

    def _call(self, function: str, op: Call, state: State) -> State:
        callee = self.functions.get(op.func)
        if callee is None:
            return assigned(state, op.dsts, {})
        bound = dict(zip(callee.params, op.args, strict=True))
        summary = self.summaries[op.func]
        sources: dict[Part, list[ObjectSource]] = {}
        for j, (dst, result) in enumerate(zip(op.dsts, callee.results, strict=True)):
            for part in parts_at(dst, self.objects.levels(op.func, result)):
                given_back = result if j and result in callee.given_back else None
                if given_back is not None and part[1] == OWN:
                    sources[part] = [ObjectSource((bound[given_back], OWN))]
                    continue
                parts = [other for one, other in summary if one == (j, part[1]) and isinstance(other[0], str)]
                caller_parts = {self.in_caller(bound, other) for other in parts}
                if given_back is not None:
                    caller_parts.add((bound[given_back], INNER))
                sources[part] = [ObjectSource(each) for each in sorted(caller_parts) if self._has(function, each)]
        new = assigned(state, op.dsts, sources)
        between = (
            ((op.dsts[one[0]], one[1]), (op.dsts[other[0]], other[1]))
            for one, other in summary
            if isinstance(other[0], int) and (one == other or op.dsts[one[0]] != op.dsts[other[0]])
        )
        new = related(new, between)
        for part, field in self.stored[op.func]:
            new = related(new, _stored_pairs(state, field, self.in_caller(bound, part), op.dsts))
        return new

    def in_caller(self, bound: Mapping[str, str], part: Part) -> Part:
        """Return the caller's part for one of a callee's callers."""
        if part == OUTSIDE or is_field(part):
            return part
        return (bound[part[0].removeprefix(CALLERS)], part[1])

    def _has(self, function: str, part: Part) -> bool:
        return part == OUTSIDE or is_field(part) or part in self.objects.parts(function, part[0])


def _stored_pairs(state: State, field: Part, part: Part, gone: Collection[str]) -> Iterator[tuple[Part, Part]]:
    """The pairs of a field of records with a part that is stored in it, and with what has objects of that part."""
    for each in (part, *state.get(part, NONE)):
        if each[0] not in gone:
            yield field, each


def _stored_fields(state: State) -> frozenset[tuple[Part, Part]]:
    """The parts of the callers, and of fields, that a function stores in fields of records, each with the field."""
    return frozenset(
        (other, part)
        for part, others in state.items()
        if is_stored(part)
        for other in others
        if other[0].startswith(CALLERS) and other != OUTSIDE
    )


def _shared(op: Prim, traced: Traced) -> Iterator[tuple[Part, Part]]:
    """Yield the parts of results of a primitive that hold one object which it has made."""
    for alias in traced.aliases:
        if alias.source < CAPTURED:
            other = op.dsts[of_result(alias.source)]
            mine = (op.dsts[alias.result], OWN if alias.own_result else INNER)
            yield mine, (other, OWN if alias.own_source else INNER)


def _summary(function: Function, state: State) -> Summary:
    numbers = {name: [j for j, other in enumerate(function.results) if other == name] for name in function.results}
    pairs: set[tuple[tuple[int, str], Part | tuple[int, str]]] = set()
    for part, others in state.items():
        for j in numbers.get(part[0], ()):
            for other in others:
                if other[0].startswith(CALLERS):
                    pairs.add(((j, part[1]), other))
                pairs |= {((j, part[1]), (k, other[1])) for k in numbers.get(other[0], ())}
    return frozenset(pairs)
