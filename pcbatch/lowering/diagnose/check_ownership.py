"""Refuse a change in place that another variable would show, since lanes hold values and no references.

    b = a
    b.append(1)        # in Python `a` changes as well: refused where `a` is used afterwards

A change is also refused where it would be seen by the caller or in an object that existed before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc, in_order
from pcbatch.errors import CompileError
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.def_use import may_return, reads, writes
from pcbatch.ir.liveness import live_after
from pcbatch.ir.ops import Move, Prim
from pcbatch.lowering.analysis.ownership import (
    FIELD,
    INNER,
    NOTHING,
    OUTSIDE,
    OWN,
    TWICE,
    Marks,
    Ownership,
    State,
    field_mark,
    heap_name,
    is_array,
)
from pcbatch.lowering.cfg_passes.split_live_ranges import original_name
from pcbatch.lowering.cfg_passes.wrap_entry import ENTRY
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.infer import Inferred
from pcbatch.lowering.typing.made_records import classes_of
from pcbatch.records.made import HEAP, MadeClass, is_mutable, made_schema
from pcbatch.records.made_fields import Place

PART = re.compile(r"[\w.]+(\[[^\[\]]*\])*(\.T)?")  # a variable, or a part of one
TEMPORARY = re.compile(r"t\d+")
NOTE = "Python changes the object, so every name of it shows the change; a lane's variables are values"
CODE = "PCB330"


def run(program: CfgProgram, inferred: Inferred) -> None:
    """Raise CompileError for all changes that another name would show; programs without changes are not looked at."""
    if not any(_changes(op) for function in program.functions for block in function.blocks for op in block.ops):
        return
    ownership = Ownership(program, inferred)
    entries = _entries(program)
    found: list[Diagnostic] = []
    classes: frozenset[MadeClass] = frozenset()
    for name, function in ownership.functions.items():
        checker = _Checker(ownership, function, name in entries)
        for diagnostic in checker.run():
            found.append(diagnostic)
            classes |= checker.changed
            checker.changed = frozenset()
    inferred.wanted |= classes  # as records made in lanes, their objects have identities
    if found:
        raise CompileError(in_order(list(dict.fromkeys(found))))


def user_classes(value: Abstract | None) -> frozenset[MadeClass]:
    """Return the classes of the user's whose objects a type is or holds, and Python can change."""
    return frozenset() if value is None else frozenset(one for one in classes_of(value) if is_mutable(one.cls))


def _place(name: str) -> Place:
    _, cls, field = name.rsplit(".", 2)
    return int(cls), int(field)


def _entries(program: CfgProgram) -> frozenset[str]:
    """The functions that are called with the arguments of the batch alone: the entry, and what `wrap_entry` has put an
    entry before."""
    calls = [op.func for f in program.functions for block in f.blocks for op in block.ops if isinstance(op, Call)]
    wrapped = program.entry.removesuffix(ENTRY)
    wrapped = wrapped if any(f.name == wrapped for f in program.functions) else program.entry
    alone = calls.count(wrapped) == (wrapped != program.entry)
    return frozenset({program.entry, wrapped} if alone else {program.entry} - {wrapped})


def _changes(op: Op) -> bool:
    return isinstance(op, Prim) and bool(op.expr.changes)


class _Checker:
    """The check of one function; parameters of an `entry` are copies, which no caller looks at."""

    def __init__(self, ownership: Ownership, function: Function, entry: bool) -> None:
        self.ownership, self.function, self.entry = ownership, function, entry
        self.live = live_after(function)
        self.changed: frozenset[MadeClass] = frozenset()

    def run(self) -> Iterator[Diagnostic]:
        """Yield what is wrong in the function."""
        states = self.ownership.states[self.function.name]
        for block in self.function.blocks:
            if block.label not in states:
                continue
            state = states[block.label]
            for k, op in enumerate(block.ops):
                if isinstance(op, Prim):
                    yield from self._prim(block, k, op, state)
                elif isinstance(op, Call):
                    yield from self._call(block, k, op, state)
                state = self.ownership.step(self.function.name, block.label, k, op, state)
            if may_return(block.terminator):
                yield from self._returned(state)

    def _prim(self, block: Block, k: int, op: Prim, state: State) -> Iterator[Diagnostic]:
        for change in self.ownership.changes(self.function.name, block.label, k, op):
            root = op.expr.ins[change.position]
            holds = state.get(root, NOTHING)
            value = self.ownership.type(self.function.name, root)
            inside = change.inner and not (value is not None and is_array(value))
            self.changed = user_classes(value)
            marks = holds.inner if inside else holds.own
            if inside and TWICE in marks:
                yield self._repeated(op, root)
            yield from self._shown(block, k, op, root, marks, state)
        traced = self.ownership.inferred.traced.get((self.function.name, block.label, k))
        if traced is not None:
            stored = [
                (place, state.get(op.expr.ins[j], NOTHING).all, op.expr.ins[j]) for j, place in traced.fields.stored
            ]
            yield from self._stored(block, k, op, stored, state)
            yield from self._fields(block, k, op, traced.fields.changed, state)

    def _stored(
        self, block: Block, k: int, op: Prim | Call, stored: list[tuple[Place, Marks, str]], state: State
    ) -> Iterator[Diagnostic]:
        """Yield the diagnostics for objects that become parts of fields of records."""
        back = {dst for call in block.ops[:k] if isinstance(call, Call) for dst in call.dsts[1:]}
        for place, marks, name in stored:
            known = {mark for key, holds in state.items() if key.startswith(HEAP) for mark in holds.all}
            if name not in back and (any(mark[0] == FIELD for mark in marks) or not marks.isdisjoint(known)):
                title = f"`{self._field(place)}` gets a list or an array that a record has already"
                helps = ("give it one of its own: `Node(list(xs))`, `Node(xs.copy())`",)
                yield Diagnostic(CODE, title, _label(op.loc, "stored here"), (), (NOTE,), helps)

    def _fields(
        self, block: Block, k: int, op: Prim | Call, changed: frozenset[Place], state: State
    ) -> Iterator[Diagnostic]:
        """Yield the diagnostics for changes of fields of which other variables hold a part."""
        for place in sorted(changed):
            marks = {field_mark(place)} | state.get(heap_name(place), NOTHING).all
            names = [*self.live[block.label][k], *(op.args if isinstance(op, Call) else ())]
            for name in sorted(set(names).difference(writes(op))):
                if not state.get(name, NOTHING).all.isdisjoint(marks):
                    title = (
                        f"this may change `{self._field(place)}`, and `{original_name(name)}` may be the same object"
                    )
                    if TEMPORARY.fullmatch(original_name(name)):
                        title = f"this may change `{self._field(place)}` while a value taken from it is still used"
                    helps = ("take a copy there: `list(xs)` of a list, `xs.copy()` of an array",)
                    yield Diagnostic(CODE, title, _label(op.loc, "changed here"), self._made(name, op), (NOTE,), helps)
                    return

    def _field(self, place: Place) -> str:
        cls = made_schema().classes[place[0]]
        return f"{cls.cls.__name__}.{cls.fields[place[1]]}"

    def _call(self, block: Block, k: int, op: Call, state: State) -> Iterator[Diagnostic]:
        callee = self.ownership.functions.get(op.func)
        if callee is None:
            return
        before = {key: holds for key, holds in state.items() if key.startswith(HEAP)}
        after = self.ownership.step(
            self.function.name, block.label, k, op, {n: h for n, h in state.items() if n not in before}
        )
        stored = [(_place(key), holds.all, "") for key, holds in after.items() if key.startswith(HEAP)]
        yield from self._stored(block, k, op, stored, state)
        yield from self._fields(block, k, op, self.ownership.changed_fields[op.func], state)
        for j, result in enumerate(callee.results):
            if j == 0 or result not in callee.params:
                continue
            position = callee.params.index(result)
            root = op.args[position]
            marks = state.get(root, NOTHING).all
            self.changed = user_classes(self.ownership.type(self.function.name, root))
            yield from self._shown(block, k, op, root, marks, state, _stored_in(block, k, op.dsts[j]))
            for other, arg in enumerate(op.args):
                if other != position and not state.get(arg, NOTHING).all.isdisjoint(marks - {TWICE}):
                    yield self._conflict(op, root, arg)

    def _shown(
        self, block: Block, k: int, op: Prim | Call, root: str, marks: Marks, state: State, kept: str = ""
    ) -> Iterator[Diagnostic]:
        """Yield the diagnostics for a change of objects with these marks, made through the variable `root`; `kept` is a
        variable that receives the change next."""
        marks -= {TWICE}
        if OUTSIDE in marks:
            yield self._outside(op, root)
        written = writes(op)
        if not kept and any(mark[0] == FIELD for mark in marks):
            yield self._of_field(op, root)
            return
        if any(not holds.all.isdisjoint(marks) for name, holds in state.items() if name.startswith(HEAP)):
            yield self._of_field(op, root)
            return
        for name in sorted(self.live[block.label][k]):
            if name not in (*written, kept) and not state.get(name, NOTHING).all.isdisjoint(marks):
                yield self._conflict(op, root, name)
                return
        params = {mark[1] for mark in marks if len(mark) == 2 and mark[0] in (OWN, INNER)}
        for param in sorted(params.difference(self.function.results[1:])):
            if not self.entry:
                yield self._callers(op, root, param)

    def _of_field(self, op: Prim | Call, root: str) -> Diagnostic:
        name = original_name(root)
        name = "a value" if TEMPORARY.fullmatch(name) else f"`{name}`"
        title = f"this changes {name}, which may be a part of a record that is made in a lane"
        helps = ("change it by its place in the record, `node.items.append(x)`, or work on a copy",)
        return Diagnostic(CODE, title, _label(op.loc, "changed here"), self._made(root, op), (NOTE,), helps)

    def _returned(self, state: State) -> Iterator[Diagnostic]:
        for param in self.function.changed:
            marks = state.get(param, NOTHING).own
            if marks and marks != {(OWN, param)}:
                title = f"`{param}` is changed in place for the caller, and is another object in the end"
                helps = (f"give the other object a name of its own, and leave `{param}` what it was",)
                yield Diagnostic(CODE, title, _label(self.function.loc), notes=(NOTE,), helps=helps)

    def _conflict(self, op: Prim | Call, root: str, other: str) -> Diagnostic:
        changed, shown = original_name(root), original_name(other)
        dst, place, tie = self._tie(op, root, other)
        secondary = () if place is None or place == op.loc else (Label(place, "both may be one object from here on"),)
        if TEMPORARY.fullmatch(shown) or TEMPORARY.fullmatch(changed):
            name = shown if TEMPORARY.fullmatch(changed) else changed
            title = f"`{name}` changes here while a value taken from it is still used"
            if TEMPORARY.fullmatch(name):
                title = "an object changes here while a value taken from it is still used"
            help = (
                "take a copy there: `list(xs)` of a list, `xs.copy()` of an array; a loop may go over `range(len(xs))`"
            )
        elif shown == changed:
            title = f"`{changed}` changes here while its value from before is still used"
            help = f"make a copy before: `old = {changed}.copy()`"
        else:
            title = f"this changes `{changed}`, and `{shown}` may be the same object or hold it"
            source = shown if dst == changed else changed
            help = f"make `{dst}` of a copy: `{source}.copy()` in place of `{source}`"
            if isinstance(tie, Move):
                help = f"make a copy: `{dst} = {source}.copy()`"
            elif isinstance(tie, Prim) and PART.fullmatch(tie.expr.text):
                help = f"make a copy: `{dst} = {tie.expr.text}.copy()`"
        return Diagnostic(CODE, title, _label(op.loc, "changed here"), secondary, (NOTE,), (help,))

    def _repeated(self, op: Prim, root: str) -> Diagnostic:
        name = original_name(root)
        title = f"this changes an object that may stand at several places of `{name}`"
        help = "make an object for each place: `[[0] * m for _ in range(n)]` in place of `[[0] * m] * n`"
        return Diagnostic(CODE, title, _label(op.loc, "changed here"), self._made(root, op), (NOTE,), (help,))

    def _outside(self, op: Prim | Call, root: str) -> Diagnostic:
        name = original_name(root)
        title = f"`{name}` may be an object from outside of the function, which all lanes would share"
        help = f"work on a copy: `{name} = {name}.copy()`"
        return Diagnostic(CODE, title, _label(op.loc, "changed here"), self._made(root, op), (NOTE,), (help,))

    def _callers(self, op: Prim | Call, root: str, param: str) -> Diagnostic:
        name = original_name(root)
        if name == param and isinstance(op, Prim) and not all(change.sure for change in op.expr.changes):
            title = f"this changes the caller's `{param}` in place, if it is a list, a dict or an array"
            help = f"make a new one, `{param} = {param} + ...`, or call a method that changes it: `{param}.extend(...)`"
        else:
            title = f"this changes `{name}`, and the caller's `{param}` may be the same object or hold it"
            help = f"change it by its name `{param}`, or work on a copy: `{name} = {name}.copy()`"
        return Diagnostic(CODE, title, _label(op.loc, "changed here"), self._made(root, op), (NOTE,), (help,))

    def _made(self, name: str, op: Prim | Call) -> tuple[Label, ...]:
        places = [loc for loc, other in self._definitions(name) if other is not op and loc != op.loc]
        return (Label(places[0], "comes from here"),) if places else ()

    def _definitions(self, name: str) -> list[tuple[Loc, Op]]:
        ops = (op for block in self.function.blocks for op in block.ops if name in writes(op) and op.loc is not None)
        return [(op.loc, op) for op in ops if op.loc is not None]

    def _tie(self, op: Prim | Call, root: str, other: str) -> tuple[str, Loc | None, Op | None]:
        """The operation by which one of two variables got what the other holds: the name of that one, place, itself."""
        found = [(name, loc, each) for name in (other, root) for loc, each in self._definitions(name) if each is not op]
        direct = [tie for tie in found if (root if tie[0] == other else other) in reads(tie[2])]
        name, loc, each = next(iter([*direct, *found]), (other, None, None))
        return original_name(name), loc, each


def _stored_in(block: Block, k: int, name: str) -> str:
    """The variable in a part of which the operations after number k store a variable, `sort(grid[i])`; else empty."""
    for op in block.ops[k + 1 :]:
        if isinstance(op, Prim) and name in op.expr.ins:
            return op.expr.ins[op.expr.changes[0].position] if op.expr.changes else ""
    return ""


def _label(loc: Loc | None, text: str = "") -> Label | None:
    return None if loc is None else Label(loc, text)
