"""Refuse a change in place that another variable would show, since lanes hold values and no references.

    b = a
    b.append(1)        # in Python `a` changes as well: refused where `a` is used afterwards

A change is also refused where it would be seen by the caller or in an object that existed before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import jax

from pcbatch.data.objects.made_classes import MadeClass, is_mutable
from pcbatch.data.objects.made_fields import FieldLevel
from pcbatch.decisions import Decisions
from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc, in_order
from pcbatch.errors import CompileError, Restart
from pcbatch.ir.analysis.liveness import live_after
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.names import MEMO
from pcbatch.ir.ops import Move, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.analysis.common_objects import (
    CALLERS,
    INNER,
    NONE,
    OUTSIDE,
    OWN,
    Part,
    Parts,
    State,
    field_part,
    is_field,
    is_stored,
    level_of,
)
from pcbatch.lowering.analysis.ownership import Ownership
from pcbatch.lowering.analysis.same_objects import callers_objects, changed_for_callers
from pcbatch.lowering.analysis.stored_objects import closes_cycle, stored_back
from pcbatch.lowering.cfg_passes.split_live_ranges import original_name
from pcbatch.lowering.cfg_passes.wrap_entry import ENTRY
from pcbatch.lowering.diagnose.ownership_helps import (
    APART,
    CODE,
    COPY_THERE,
    KEY_LOOP,
    NOTE,
    RETURN_LATER,
    TEMPORARY,
    VIEW,
    copy_help,
    field_name,
    given_twice,
    in_itself,
    label,
    of_some_types,
    of_view,
)
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.format_messages import is_text
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.made_records import classes_of


def run(program: CfgProgram, inferred: Inferred) -> None:
    """Raise Restart for all changes that another name would show; programs without changes are not looked at.

    What would cure them: where one of the names is assigned, it may be a part of the other one; and statements
    `x += ...` may change the object of a caller.
    """
    if not any(_changes(op) for function in program.functions for op in function.ops):
        return
    ownership = Ownership(program, inferred)
    entries, changed = _entries(program), changed_for_callers(ownership)
    checkers = [
        _Checker(ownership, function, name in entries, changed) for name, function in ownership.functions.items()
    ]
    found: list[Diagnostic] = []
    for checker in checkers:
        for diagnostic in checker.run():
            found.append(diagnostic)
            inferred.wants |= Decisions(made=checker.classes)  # as records made in lanes, their objects have identities
            checker.classes = frozenset()
    if found:
        linked = frozenset[Loc]().union(*(checker.linked for checker in checkers))
        in_place = frozenset[Loc]().union(*(checker.in_place for checker in checkers))
        wants = Decisions(linked=linked, in_place=in_place)
        raise Restart(wants, CompileError(in_order(list(dict.fromkeys(found)))))


def user_classes(value: Abstract | None) -> frozenset[MadeClass]:
    """Return the classes of the user's whose objects a type is or holds, and Python can change."""
    return frozenset() if value is None else frozenset(one for one in classes_of(value) if is_mutable(one.cls))


def _entries(program: CfgProgram) -> frozenset[str]:
    """The functions that are called with the arguments of the batch alone: the entry, and what `wrap_entry` has put an
    entry before."""
    calls = [op.func for f in program.functions for op in f.ops if isinstance(op, Call)]
    wrapped = program.entry.removesuffix(ENTRY)
    wrapped = wrapped if any(f.name == wrapped for f in program.functions) else program.entry
    alone = calls.count(wrapped) == (wrapped != program.entry)
    return frozenset({program.entry, wrapped} if alone else {program.entry} - {wrapped})


def _changes(op: Op) -> bool:
    return isinstance(op, Prim) and bool(op.expr.effects.changes)


def _augments(op: Prim | Call) -> bool:
    """Whether an operation is `x += v`, which changes an object of some types only."""
    return isinstance(op, Prim) and not all(change.sure for change in op.expr.effects.changes)


class _Checker:
    """The check of one function; parameters of an `entry` are copies, which no caller looks at."""

    def __init__(
        self, ownership: Ownership, function: Function, entry: bool, by_calls: frozenset[tuple[str, Part]]
    ) -> None:
        self.ownership, self.function, self.entry, self.by_calls = ownership, function, entry, by_calls
        self.objects = ownership.objects
        self.live = live_after(function)
        self.linked, self.in_place = set[Loc](), set[Loc]()
        self.classes: frozenset[MadeClass] = frozenset()  # of what the operation that is looked at changes

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
        yield from self._returned()

    def _prim(self, block: Block, k: int, op: Prim, state: State) -> Iterator[Diagnostic]:
        real = self.objects.changes(self.function.name, block.label, k, op)
        if any(change.decided and change not in real for change in op.expr.effects.changes):
            yield of_some_types(op)
        for change in real:
            root = op.expr.ins[change.position]
            parts = self.objects.changed_parts(self.function.name, block.label, k, op, change)
            self.classes = user_classes(self.objects.type(self.function.name, root))
            whole = [*parts, (root, INNER)] if op.expr.effects.back else parts
            if any(part in state.get(part, NONE) for part in whole):
                yield self._repeated(op, root)
            if closes_cycle(self.ownership, self.function.name, block.label, k, op, change, state):
                types = (self.objects.type(self.function.name, name) for name in op.expr.ins)
                self.classes = self.classes.union(*map(user_classes, types))
                yield in_itself(op, root)
            if op.expr.effects.syncs:  # what else may show the change was looked at where it was made
                continue
            yield from self._shown(block, k, op, root, parts, state)
        traced = self.ownership.inferred.traced.get((self.function.name, block.label, k))
        if traced is not None:
            for j, own, level in () if op.expr.effects.syncs else traced.fields.stored:
                part = (op.expr.ins[j], OWN if own else INNER)
                if part in self.objects.parts(self.function.name, part[0]):
                    yield from self._stored(block, k, op, level, part, state)
            yield from self._fields(block, k, op, traced.fields.changed, state)

    def _stored(
        self, block: Block, k: int, op: Prim | Call, level: FieldLevel, part: Part, state: State
    ) -> Iterator[Diagnostic]:
        """Yield the diagnostic for an object that becomes the one of a field of records; elements of that may be those
        of others as well, until they change."""
        back = {dst for call in block.ops[:k] if isinstance(call, Call) for dst in call.dsts[1:]}
        if level[1] and any(map(is_field, state.get(part, NONE))) and part[0] not in back:
            title = f"`{field_name(level[0])}` gets a list or an array that a record has already"
            helps = ("give it one of its own: `Node(list(xs))`, of lists in lists `Node([list(row) for row in xs])`",)
            yield Diagnostic(CODE, title, label(op.loc, "stored here"), (), (NOTE,), helps)

    def _fields(
        self, block: Block, k: int, op: Prim | Call, changed: frozenset[FieldLevel], state: State
    ) -> Iterator[Diagnostic]:
        """Yield the diagnostic for changes of fields of which other variables, or fields, hold the objects."""
        for level in sorted(changed):
            shown = NONE.union(*(state.get(field_part(level, stored), NONE) for stored in (False, True)))
            names = {*self.live[block.label][k], *(op.args if isinstance(op, Call) else ())}
            showing = {name for name, _ in shown} & names.difference(writes(op))
            if any(map(is_field, shown)):
                title = f"this may change an object that stands at several places of `{field_name(level[0])}`"
                yield Diagnostic(CODE, title, label(op.loc, "changed here"), (), (NOTE,), APART)
                return
            for name in sorted(showing):
                title = f"this may change `{field_name(level[0])}`, and `{original_name(name)}` may be the same object"
                if TEMPORARY.fullmatch(original_name(name)):
                    title = f"this may change `{field_name(level[0])}` while a value taken from it is still used"
                helps = (COPY_THERE,)
                yield Diagnostic(CODE, title, label(op.loc, "changed here"), self._made(name, op), (NOTE,), helps)
                return

    def _call(self, block: Block, k: int, op: Call, state: State) -> Iterator[Diagnostic]:
        callee = self.ownership.functions.get(op.func)
        if callee is None:
            return
        given = dict(zip(callee.params, op.args, strict=True))
        for part, field in sorted(self.ownership.stored[op.func]):
            stored = self.ownership.in_caller(given, part)
            yield from self._stored(block, k, op, level_of(field), stored, state)
        yield from self._fields(block, k, op, self.ownership.changed_fields[op.func], state)
        for j, result in enumerate(callee.results):
            if j == 0 or result not in callee.params:
                continue
            position = callee.params.index(result)
            root = op.args[position]
            levels = {level for level in (OWN, INNER) if (op.func, (result, level)) in self.by_calls}
            levels |= {OWN} if result in callee.given_back else set()
            parts = [part for part in self.objects.parts(self.function.name, root) if part[1] in levels]
            if not parts:  # a nested function has assigned the variable, and changed no object of it
                continue
            self.classes = user_classes(self.objects.type(self.function.name, root))
            if INNER in levels and (root, INNER) in state.get((root, INNER), NONE):
                yield self._repeated(op, root)
            held = frozenset(parts).union(*(state.get(part, NONE) for part in parts))
            others = (arg for other, arg in enumerate(op.args) if other != position)
            again = [arg for arg in others if not held.isdisjoint(self.objects.parts(self.function.name, arg))]
            if again:
                self.linked |= _places(self.function, root, again[0]) | ({op.loc} if op.loc is not None else set())
                yield given_twice(op, root, again[0])
            else:
                yield from self._shown(block, k, op, root, parts, state, self._stored_in(block, k, op.dsts[j]))

    def _shown(
        self, block: Block, k: int, op: Prim | Call, root: str, parts: list[Part], state: State, kept: str = ""
    ) -> Iterator[Diagnostic]:
        """Yield the diagnostics for a change of the objects of `parts`, made through the variable `root`; `kept` is a
        variable that receives the change next."""
        shown: Parts = NONE.union(*(state.get(part, NONE) for part in parts))
        if OUTSIDE in shown:
            yield self._outside(op, root)
        # What was read from a field and is stored back next is right; what was stored in a field has two names.
        fields, name = frozenset(filter(is_field, shown)), self.function.name
        if any(map(is_stored, fields)) or not (kept or stored_back(self.ownership, name, block, k, fields)):
            self.linked |= _places(self.function, root)
            yield self._of_field(op, root)
            return
        unchanged = {root, *writes(op), kept} if root in writes(op) else {*writes(op), kept}
        showing = {name for name, _ in (*shown, *parts)} - unchanged
        for name in sorted(showing & self._left(block, k)):
            self.linked |= _places(self.function, root, name)
            yield self._conflict(op, root, name)
            return
        callers = (part[0].removeprefix(CALLERS) for part in shown - fields if part[0].startswith(CALLERS))
        params = {name for name in callers if name}
        for param in sorted(params.difference(self.function.results[1:])):
            if not self.entry:
                self.linked |= _places(self.function, root)
                if op.loc is not None and _augments(op):
                    self.in_place.add(op.loc)
                yield self._callers(op, root, param)

    def _stored_in(self, block: Block, k: int, name: str) -> str:
        """The variable in a part of which the operations after number k store a variable, `sort(grid[i])`; empty if
        there is none, as for a slice of a list, which is a new list."""
        for later in range(k + 1, len(block.ops)):
            op = block.ops[later]
            if isinstance(op, Prim) and name in op.expr.ins and not op.expr.effects.syncs:
                real = self.objects.changes(self.function.name, block.label, later, op)
                return op.expr.ins[real[0].position] if real else ""
        return ""

    def _left(self, block: Block, k: int) -> frozenset[str]:
        """The variables that have the values of operation k still after those that bring others up to date."""
        name, label, later = self.function.name, block.label, enumerate(block.ops[k + 1 :], k + 1)
        brought = [op for _, op in takewhile(lambda at: self.objects.brings_up_to_date(name, label, *at), later)]
        return self.live[label][k + len(brought)].difference(*map(writes, brought))

    def _of_field(self, op: Prim | Call, root: str) -> Diagnostic:
        name = original_name(root)
        name = "a value" if TEMPORARY.fullmatch(name) else f"`{name}`"
        title = f"this changes {name}, which may be a part of a record that is made in a lane"
        helps = ("change it by its place in the record, `node.items.append(x)`, or work on a copy",)
        return Diagnostic(CODE, title, label(op.loc, "changed here"), self._made(root, op), (NOTE,), helps)

    def _returned(self) -> Iterator[Diagnostic]:
        same = callers_objects(self.ownership, self.function)
        for param in self.function.given_back:
            value = self.objects.type(self.function.name, param)
            if param not in same and (self.objects.levels(self.function.name, param).own or _is_value(value)):
                title = f"`{param}` is changed in place for the caller, and is another object in the end"
                helps = (f"give the other object a name of its own, and leave `{param}` what it was",)
                yield Diagnostic(CODE, title, label(self.function.loc), notes=(NOTE,), helps=helps)

    def _conflict(self, op: Prim | Call, root: str, other: str) -> Diagnostic:
        changed, shown = original_name(root), original_name(other)
        dst, place, tie = self._tie(op, root, other)
        secondary = () if place is None or place == op.loc else (Label(place, "both may be one object from here on"),)
        helps: tuple[str, ...]
        if isinstance(tie, Move) and tie.src in self.function.given_back and TEMPORARY.fullmatch(dst):
            # By the temporary the caller's object is kept (`builder.keep_parameters`).
            title, helps = (
                f"`{tie.src}` is changed in place for the caller, and may be another object by then",
                (f"give the other object a name of its own, and leave `{tie.src}` what it was",),
            )
        elif shown.startswith(MEMO):
            cached = shown.rpartition(".")[2]
            title = f"this changes what `{cached}` has returned, which Python keeps in its cache"
            helps = (f"change a copy: `list({cached}(...))`, of a dict `dict({cached}(...))`",)
        elif TEMPORARY.fullmatch(shown) or TEMPORARY.fullmatch(changed):
            name = shown if TEMPORARY.fullmatch(changed) else changed
            title = f"`{name}` changes here while a value taken from it is still used"
            if TEMPORARY.fullmatch(name):
                title = "an object changes here while a value taken from it is still used"
            helps = (KEY_LOOP, f"where nothing need see the change, {COPY_THERE}")
        elif shown == original_name(self.function.results[0]):
            title = f"this changes `{changed}` after a `return` has given it away, in a `finally`"
            helps = (RETURN_LATER, f"where it is not to show it, return a copy: `{changed}.copy()`")
        elif shown == changed:
            title = f"`{changed}` changes here while its value from before is still used"
            helps = (f"make a copy before: `old = {changed}.copy()`",)
        else:
            title = f"this changes `{changed}`, and `{shown}` may be the same object or hold it"
            copy = KEY_LOOP if _is_of_loop(self.function, root) else copy_help(changed, shown, dst, tie)
            helps = (copy, f"where `{shown}` is to change as well, use one name for both")
            if isinstance(tie, Prim) and VIEW.fullmatch(tie.expr.text):
                helps = of_view(dst, tie.expr.text)
            if isinstance(tie, Prim) and "kept_iterator(" in tie.expr.text:
                helps = (f"if it is not to show it, take all before this line: `{shown} = list({shown})`",)
        return Diagnostic(CODE, title, label(op.loc, "changed here"), secondary, (NOTE,), helps)

    def _repeated(self, op: Prim | Call, root: str) -> Diagnostic:
        title = f"this changes an object that may stand at several places of `{original_name(root)}`"
        return Diagnostic(CODE, title, label(op.loc, "changed here"), self._made(root, op), (NOTE,), APART)

    def _outside(self, op: Prim | Call, root: str) -> Diagnostic:
        name = original_name(root)
        title = f"`{name}` may be an object from outside of the function, which all lanes would share"
        help = f"work on a copy: `{name} = {name}.copy()`"
        return Diagnostic(CODE, title, label(op.loc, "changed here"), self._made(root, op), (NOTE,), (help,))

    def _callers(self, op: Prim | Call, root: str, param: str) -> Diagnostic:
        name = original_name(root)
        if name == param and _augments(op):
            title = f"this changes the caller's `{param}` in place, if it is a list, a dict or an array"
            help = (
                f"call the method that changes it, `{param}.extend(...)`, or make a new one, `{param} = {param} + ...`"
            )
        else:
            title = f"this changes `{name}`, and the caller's `{param}` may be the same object or hold it"
            help = f"change it by its name `{param}`, or work on a copy: `{name} = {name}.copy()`"
            if name == param:
                help = f"assign nothing to `{param}`: where it is to be a new object, make that at the call"
        return Diagnostic(CODE, title, label(op.loc, "changed here"), self._made(root, op), (NOTE,), (help,))

    def _made(self, name: str, op: Prim | Call) -> tuple[Label, ...]:
        places = [loc for loc, other in _definitions(self.function, name) if other is not op and loc != op.loc]
        return (Label(places[0], "comes from here"),) if places else ()

    def _tie(self, op: Prim | Call, root: str, other: str) -> tuple[str, Loc | None, Op | None]:
        """The operation by which one of two variables got what the other holds: the name of that one, place, itself."""
        made = [(name, *each) for name in (other, root) for each in _definitions(self.function, name)]
        found = [one for one in made if one[2] is not op]
        direct = [tie for tie in found if (root if tie[0] == other else other) in reads(tie[2])]
        name, loc, each = next(iter([*direct, *found]), (other, None, None))
        return original_name(name), loc, each


def _definitions(function: Function, name: str) -> list[tuple[Loc, Op]]:
    """The operations that write a variable, each with its place."""
    return [(op.loc, op) for op in function.ops if name in writes(op) and op.loc is not None]


def _places(function: Function, *names: str) -> set[Loc]:
    """The places where variables are assigned, or what is unpacked there."""
    made = [each for name in names for each in _definitions(function, name)]
    unpacked = [part for _, op in made if len(writes(op)) > 1 for part in reads(op)]
    return {loc for loc, _ in made} | {loc for part in unpacked for loc, _ in _definitions(function, part)}


def _is_value(value: Abstract | None) -> bool:
    """Whether a type is that of a number or a text, which nothing changes in place."""
    return value is not None and (value.tree == jax.tree.structure(0) or is_text(value))


def _is_of_loop(function: Function, name: str) -> bool:
    """Whether a variable is an element of what a loop goes over, or a part of one."""
    made = [op for _, op in _definitions(function, name) if isinstance(op, Prim)]
    inside = {part for op in made for part in reads(op) if TEMPORARY.fullmatch(original_name(part))} - {name}
    return any(op.expr.effects.takes for op in made) or any(_is_of_loop(function, part) for part in inside)
