"""The objects that each variable may hold in the plain function: which variables show a change made through another.

An object is named by the operation that makes it, or by the parameter that brings it (its *mark*). A value has two
levels, its own object and those inside it, as in `containers.aliasing`. An operation in a loop makes a new object each
time, so a mark means the latest one; earlier ones get a mark for all of them together ("recency abstraction",
Balakrishnan and Reps, SAS 2006). What a function returns is known to its callers by a summary, found by a fixpoint over
calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

import jax

from pcbatch.containers.aliasing import CAPTURED, IMMUTABLE, parts_of
from pcbatch.containers.container import Container
from pcbatch.containers.optional import Optional
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.dataflow import solve
from pcbatch.ir.def_use import may_return, predecessors, writes
from pcbatch.ir.ops import Change, Move, Prim
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.infer import Inferred
from pcbatch.lowering.typing.trace import Traced
from pcbatch.records.questions import RECORDS

Mark = tuple[str, ...]
Marks = frozenset[Mark]
NONE: Marks = frozenset()
OUTSIDE: Mark = ("outside",)
"""An object that existed before, such as a global list."""
TWICE: Mark = ("twice",)
"""Among inner objects: one of them may stand at several places."""
OWN, INNER = "own", "inner"  # of a parameter


@dataclass(frozen=True, slots=True)
class Holds:
    """The objects that a variable may hold: its own one, and those inside."""

    own: Marks = NONE
    inner: Marks = NONE

    @property
    def all(self) -> Marks:
        """The marks of both levels."""
        return self.own | self.inner

    def __or__(self, other: Holds) -> Holds:
        return Holds(self.own | other.own, self.inner | other.inner)


NOTHING = Holds()
State = Mapping[str, Holds]
EMPTY: State = MappingProxyType({})
Summary = tuple[Holds, ...]  # of the results of a function, in marks of its parameters


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a type that Python can change: the object itself, and objects inside."""

    own: bool
    inner: bool


def levels(value: Abstract) -> Levels:
    """Return which objects of a type can be changed in place; scalars and texts cannot."""
    return _levels(value.tree, tuple(_changeable(leaf) for leaf in value.leaves))


def is_array(value: Abstract) -> bool:
    """Return whether a value is one array with axes."""
    alone = len(value.leaves) == 1 and jax.tree_util.treedef_is_leaf(value.tree)
    return bool(alone) and isinstance(value.leaves[0], ArrayType)


def _changeable(leaf: ArrayType | Known) -> int:
    """The number of axes of an array; -1 for a known object that can be changed."""
    if isinstance(leaf, ArrayType):
        return len(leaf.shape)
    return (
        0
        if leaf.value is None or isinstance(leaf.value, (*IMMUTABLE, tuple, frozenset)) or callable(leaf.value)
        else -1
    )


class _Leaf:
    """Stands for a leaf while the structure of a type is looked at."""

    def __init__(self, axes: int) -> None:
        self.axes = axes


@cache
def _levels(tree: Any, axes: tuple[int, ...]) -> Levels:
    return _levels_of(jax.tree.unflatten(tree, [_Leaf(n) for n in axes]))


def _levels_of(value: Any) -> Levels:
    if isinstance(value, _Leaf):
        return Levels(value.axes != 0, False)
    if isinstance(value, RECORDS):
        return Levels(False, False)
    if isinstance(value, Container):
        # The elements of a list of the lane lie along the first axis; what has more axes are lists or arrays inside.
        leaves = [leaf for leaf in jax.tree.leaves(value) if isinstance(leaf, _Leaf)]
        return Levels(True, any(leaf.axes > 1 or leaf.axes < 0 for leaf in leaves))
    if isinstance(value, Optional):
        return _levels_of(value.value)
    found = parts_of(value)
    if found is None:
        leaves = jax.tree.leaves(value)  # a registered class without fields of its own
        return Levels(bool(leaves), any(isinstance(leaf, _Leaf) and leaf.axes != 0 for leaf in leaves))
    mutable, parts = found
    inside = [_levels_of(part) for part in parts if part is not None]
    return Levels(mutable, any(part.own or part.inner for part in inside))


class Ownership:
    """The states of all functions of a typed program.

    `states[function][label]` is the state at the top of a block; `step` gives the one after an operation.
    """

    def __init__(self, program: CfgProgram, inferred: Inferred) -> None:
        self.program, self.inferred = program, inferred
        self.functions = {f.name: f for f in program.functions if inferred.reachable.get(f.name)}
        self.summaries: dict[str, Summary] = {
            name: (NOTHING,) * len(function.results) for name, function in self.functions.items()
        }
        self.arrays_change = any(self._changes_array(name) for name in self.functions)
        self.states: dict[str, Mapping[str, State]] = {}
        while True:
            before = dict(self.summaries)
            for name, function in self.functions.items():
                self._solve(name, function)
            if self.summaries == before:
                return

    def type(self, function: str, name: str) -> Abstract | None:
        """Return the type of a variable; None if no reachable code assigns it."""
        return self.inferred.types.get((function, name))

    def _changes_array(self, name: str) -> bool:
        """Whether a function changes an element of an array: then its arrays are those of NumPy."""
        for block in self.functions[name].blocks:
            for op in block.ops:
                if isinstance(op, Prim) and any(change.sure for change in op.expr.changes):
                    types = [self.type(name, op.expr.ins[change.position]) for change in op.expr.changes]
                    if any(value is not None and _has_arrays(value) for value in types):
                        return True
        return False

    def changes(self, function: str, label: str, k: int, op: Prim) -> tuple[Change, ...]:
        """Return the changes in place that Python really makes at an operation."""
        traced = self.inferred.traced.get((function, label, k))
        if traced is None:
            return ()
        return tuple(change for change in op.expr.changes if self._is_real(function, op, change, traced))

    def _is_real(self, function: str, op: Prim, change: Change, traced: Traced) -> bool:
        value = self.type(function, op.expr.ins[change.position])
        if value is None or levels(value) == Levels(False, False):
            return False
        if not change.sure:
            return levels(value).own and (self.arrays_change or not is_array(value))
        return not self._passes_on(function, op, change, traced)

    def _passes_on(self, function: str, op: Prim, change: Change, traced: Traced) -> bool:
        """Whether the variable is after the operation what it was before: a method has changed nothing."""
        out = traced.outs[-1]
        ins = [self.type(function, name) for name in op.expr.ins]
        counts = [0 if value is None else len(value.arrays) for value in ins]
        first = sum(counts[: change.position])
        given = traced.closed.jaxpr.invars[first : first + counts[change.position]]
        before = sum(len(value.arrays) for value in traced.outs[:-1])
        new = traced.closed.jaxpr.outvars[before : before + len(out.arrays)]
        return ins[change.position] == out and list(given) == list(new)

    def _solve(self, name: str, function: Function) -> None:
        reachable = self.inferred.reachable[name]
        blocks = {block.label: block for block in function.blocks if block.label in reachable}
        sources = {label: [p for p in of if p in reachable] for label, of in predecessors(function.blocks).items()}
        sources = {label: sources[label] for label in blocks}
        entry = function.blocks[0].label
        start = {param: self._parameter(name, param) for param in function.params}
        solution = solve(
            sources,
            join=lambda label, states: _joined([*([start] if label == entry else []), *states]),
            transfer=lambda label, state: self.after(name, blocks[label], state),
            start=EMPTY,
        )
        self.states[name] = solution.entering
        ends = [solution.leaving[label] for label, block in blocks.items() if may_return(block.terminator)]
        state = _joined(ends)
        self.summaries[name] = tuple(_outer(state.get(result, NOTHING)) for result in function.results)

    def _parameter(self, function: str, param: str) -> Holds:
        value = self.type(function, param)
        if value is None:
            return NOTHING
        found = levels(value)
        return Holds(
            frozenset({(OWN, param)}) if found.own else NONE, frozenset({(INNER, param)}) if found.inner else NONE
        )

    def after(self, function: str, block: Block, state: State) -> State:
        """Return the state at the end of a block."""
        for k, op in enumerate(block.ops):
            state = self.step(function, block.label, k, op, state)
        return state

    def step(self, function: str, label: str, k: int, op: Op, state: State) -> State:
        """Return the state after an operation."""
        match op:
            case Move(dst=dst, src=src):
                return {**state, dst: state.get(src, NOTHING)}
            case Prim():
                traced = self.inferred.traced.get((function, label, k))
                if traced is None:
                    return {**state, **dict.fromkeys(op.dsts, NOTHING)}
                state = _aged(state, label, k)
                return {**state, **self._prim(function, label, k, op, traced, state)}
            case Call():
                state = _aged(state, label, k)
                return {**state, **self._call(function, label, k, op, state)}
            case _:
                return {**state, **dict.fromkeys(writes(op), NOTHING)}

    def _prim(self, function: str, label: str, k: int, op: Prim, traced: Traced, state: State) -> dict[str, Holds]:
        given = [state.get(name, NOTHING) for name in op.expr.ins]
        real = self.changes(function, label, k, op)
        made: list[Holds] = []
        for j, value in enumerate(traced.outs):
            fresh = _fresh(label, k, j, levels(value))
            if real:
                root = self.type(function, op.expr.ins[real[0].position])
                alone = self._exclusive(op, real[0], state)
                plain = root is not None and _is_builtin(root)
                made.append(_changed(given, real[0], j == len(op.dsts) - 1, fresh, exclusive=alone, plain=plain))
            else:
                made.append(_plain(traced, j, given, fresh))
        return {
            dst: _limited(holds, levels(value)) for dst, holds, value in zip(op.dsts, made, traced.outs, strict=True)
        }

    def _exclusive(self, op: Prim, change: Change, state: State) -> bool:
        """Whether an element taken out of a container is held by nothing else."""
        root = op.expr.ins[change.position]
        inner = state.get(root, NOTHING).inner
        others = (holds.all for name, holds in state.items() if name != root)
        return change.removes and TWICE not in inner and OUTSIDE not in inner and inner.isdisjoint(NONE.union(*others))

    def _call(self, function: str, label: str, k: int, op: Call, state: State) -> dict[str, Holds]:
        callee = self.functions.get(op.func)
        if callee is None:
            return dict.fromkeys(op.dsts, NOTHING)
        given = {param: state.get(arg, NOTHING) for param, arg in zip(callee.params, op.args, strict=True)}
        out: dict[str, Holds] = {}
        for j, (dst, result, summary) in enumerate(zip(op.dsts, callee.results, self.summaries[op.func], strict=True)):
            value = self.type(op.func, result)
            found = Levels(False, False) if value is None else levels(value)
            fresh = _fresh(label, k, j, found)
            holds = Holds(_mapped(summary.own, given), _mapped(summary.inner, given))
            if j and result in callee.changed:
                holds = Holds(given[result].own, holds.inner | given[result].inner | fresh.inner)
            else:
                holds |= fresh
            out[dst] = _limited(holds, found)
        return out


def _is_builtin(value: Abstract) -> bool:
    """Whether a value is an array or a container of Python's own."""
    node = value.tree.node_data()
    return node is None or issubclass(node[0], list | dict | Container)


def _has_arrays(value: Abstract) -> bool:
    return is_array(value) and levels(value).own


def _fresh(label: str, k: int, j: int, found: Levels) -> Holds:
    """The objects that an operation makes."""
    own = frozenset({(label, str(k), str(j), OWN)}) if found.own else NONE
    inner = frozenset({(label, str(k), str(j), INNER)}) if found.inner else NONE
    return Holds(own, inner)


def _plain(traced: Traced, j: int, given: list[Holds], fresh: Holds) -> Holds:
    """The objects that result j of a primitive may hold, by what was found while it was traced."""
    own, inner = NONE, fresh.inner
    tied = False
    for alias in traced.aliases:
        if alias.result != j:
            continue
        if alias.source == CAPTURED:
            source: Marks = frozenset({OUTSIDE})
        else:
            source = given[alias.source].own if alias.own_source else given[alias.source].inner
        if alias.own_result:
            own, tied = own | source, True
        else:
            inner |= source
    if j in traced.repeated:
        inner |= {TWICE}
    return Holds(own if tied else fresh.own, inner)


def _changed(given: list[Holds], change: Change, is_root: bool, fresh: Holds, *, exclusive: bool, plain: bool) -> Holds:
    """The objects that a result of a change in place may hold; the result is the variable, or a method's value."""
    root = given[change.position]
    others = [holds for k, holds in enumerate(given) if k != change.position]
    stored = NONE.union(*(holds.all for holds in others))
    if is_root:
        twice = {TWICE} if any(not holds.own.isdisjoint(root.inner) for holds in others) else set[Mark]()
        return Holds(root.own, root.inner | stored | fresh.inner | twice)
    if exclusive:
        return Holds(fresh.own, root.inner | fresh.inner)
    inner = root.inner | stored
    if not plain:
        inner |= root.own  # a method of a class may return the object itself
    return Holds(inner | fresh.own, inner | fresh.inner)


def _limited(holds: Holds, found: Levels) -> Holds:
    return Holds(holds.own if found.own else NONE, holds.inner if found.inner else NONE)


def _mapped(marks: Marks, given: Mapping[str, Holds]) -> Marks:
    """The marks of a callee's parameters, as those of the arguments."""
    out: set[Mark] = set()
    for mark in marks:
        match mark:
            case ("own", param):
                out |= given[param].own
            case ("inner", param):
                out |= given[param].inner
            case _:
                out.add(mark)
    return frozenset(out)


def _outer(holds: Holds) -> Holds:
    """The objects of a result that the caller knows; those that the function makes itself are new to it."""

    def known(marks: Marks) -> Marks:
        return frozenset(mark for mark in marks if len(mark) <= 2)

    return Holds(known(holds.own), known(holds.inner))


def _aged(state: State, label: str, k: int) -> State:
    """The state when an operation is about to make objects: those it has made before are old."""
    place = (label, str(k))

    def old(marks: Marks) -> Marks:
        if not any(mark[:2] == place and len(mark) == 4 for mark in marks):
            return marks
        return frozenset((*mark, "old") if mark[:2] == place and len(mark) == 4 else mark for mark in marks)

    return {name: Holds(old(holds.own), old(holds.inner)) for name, holds in state.items()}


def _joined(states: Iterable[State]) -> State:
    out: dict[str, Holds] = {}
    for state in states:
        for name, holds in state.items():
            out[name] = out[name] | holds if name in out else holds
    return out
