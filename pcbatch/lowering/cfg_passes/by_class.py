"""Build what follows the definition of a variable once for each class of record that it may be.

before:  node = { nodes[k] }                    after:  node = { nodes[k] }
         t = { node[0] == "num" }                       c = { node is a ("num", ·) }
         branch t, bb1, bb2                             branch c, bb3, bb4
         bb1: x = { node[1] }; ...                      bb3: node = { node, a ("num", ·) }; t = { node[0] == "num" }
         bb2: y = { node[2] }; ...                           branch t, bb1.1, bb2.1
                                                        bb4: ...    (as many copies as there are classes)

Types cannot say that the part of a tuple at 1 is a number where its part at 0 is the text "num". Where a part is of
another kind in each class, type inference asks for this: in each copy the class is known, so that tests of literal
texts are, too, and inference leaves out what cannot be reached. A text or a number that is a record, as tuples stand in
the same places, is itself there. A copy ends where the variable is dead, with what is a part of it alone, or where it
is defined again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import count

from pcbatch.data.objects.ref_type import as_class, is_in, is_none
from pcbatch.data.objects.reference import Ref
from pcbatch.data.objects.tuples.classes import AtomValue, TupleValue
from pcbatch.data.values import Value
from pcbatch.ir.analysis.def_use import retarget
from pcbatch.ir.analysis.liveness import live_after, live_in
from pcbatch.ir.cfg import Block, CfgProgram, Function, Op
from pcbatch.ir.ops import RETURN, Branch, Expr, Jump, Move, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.cfg_passes.simplify_cfg import drop_unreachable
from pcbatch.lowering.typing.convert_types import objects_of
from pcbatch.lowering.typing.inferred import Inferred

MOST_BLOCKS = 2000  # of one function


def run(source: CfgProgram, split: CfgProgram, inferred: Inferred) -> CfgProgram:
    """Return `source` with such copies for one variable of each function that asks for it.

    `split` is the same program with live ranges split, for which types were inferred.
    """
    new: dict[str, Function] = {}
    for name, label, k in sorted(inferred.errors):
        if name not in new:
            function, typed = source.function(name), split.function(name)
            if (copied := _copied(function, typed, inferred, typed.block(label).ops[k])) is not function:
                new[name] = copied
    return replace(source, functions=tuple(new.get(f.name, f) for f in source.functions))


def _copied(function: Function, split: Function, inferred: Inferred, op: Op) -> Function:
    """The function with copies for a variable that an operation with an error reads; itself where there is none."""
    for name in reads(op):
        classes = _classes(inferred, function.name, name)
        if _differ(classes):
            web = _root(split, name)
            classes = _classes(inferred, function.name, web) or classes
            copies = _Copies(function, split, web, classes)
            return copies.run() if len(function.blocks) * (len(classes) + 1) <= MOST_BLOCKS else function
    return function


def _differ(classes: Sequence[type]) -> bool:
    """Whether values of some classes are read in different ways."""
    tuples = any(issubclass(cls, TupleValue) for cls in classes)
    return any(issubclass(cls, AtomValue) for cls in classes) or (tuples and len(classes) > 1)


def _classes(inferred: Inferred, function: str, name: str) -> list[type]:
    """The classes of the records that a variable may refer to, and that of None."""
    type_ = inferred.types.get((function, name))
    ref = None if type_ is None else objects_of(type_)
    if not isinstance(ref, Ref):
        return []
    return [*([type(None)] if ref.pcbatch_type.optional else []), *ref.pcbatch_type.types]


def _root(split: Function, name: str) -> str:
    """The variable of which this one is a copy."""
    while True:
        found = [op for op in split.ops if name in writes(op)]
        if len(found) != 1 or not isinstance(found[0], Move) or name in split.params:
            return name
        name = found[0].src


@dataclass(slots=True)
class _Copies:
    """The copies of the blocks of a function in which a variable is live; copy number 0 is that of other values."""

    function: Function
    split: Function
    web: str  # the variable, in the function whose live ranges are split
    classes: Sequence[type]
    blocks: list[Block] = field(default_factory=list)
    names: dict[tuple[str, int], str] = field(default_factory=dict)  # of copies of blocks
    tests: list[str] = field(default_factory=list)

    def run(self) -> Function:
        """Return the function with the copies."""
        live, fresh = live_in(self.split), count(self.function.last_label + 1)
        after = live_after(self.split)
        numbers = range(len(self.classes) + 1)
        kept = self.parts()
        inside = {block.label for block in self.split.blocks if not kept.isdisjoint(live[block.label])}
        self.names = {(label, k): f"bb{next(fresh)}" if k else label for label in inside for k in numbers}
        first = self.function.blocks[0].label
        if self.web in self.split.params and first in inside:
            start = f"bb{next(fresh)}"
            self.dispatch(start, self.variable_of_parameter(), [self.names[first, k] for k in numbers], fresh)
        for block, typed in zip(self.function.blocks, self.split.blocks, strict=True):
            places = [
                k
                for k, op in enumerate(typed.ops)
                if self.web in writes(op) and not kept.isdisjoint(after[block.label][k])
            ]
            self.copies(block, typed, places, numbers if block.label in inside else range(1), fresh)
        types = {**self.function.types, **dict.fromkeys(self.tests)}
        return replace(self.function, blocks=drop_unreachable(tuple(self.blocks)), types=types)

    def parts(self) -> set[str]:
        """Return the variable with those that are parts of it alone, whose types hang on its class."""
        found = {self.web}
        defined = Counter(name for op in self.split.ops for name in writes(op))
        prims = [op for op in self.split.ops if isinstance(op, Prim | Move)]
        while True:
            more = {
                name
                for op in prims
                if len(set(reads(op))) == 1 and not found.isdisjoint(reads(op))
                for name in writes(op)
                if defined[name] == 1 and name not in found and name not in self.split.results
            }
            if not more:
                return found
            found |= more

    def variable_of_parameter(self) -> str:
        return self.function.params[self.split.params.index(self.web)]

    def copies(self, block: Block, typed: Block, places: Sequence[int], numbers: range, fresh: Iterator[int]) -> None:
        """Make the copies of a block, which is cut at some places where the variable is defined."""
        starts, ends = [0, *(k + 1 for k in places)], [*(k + 1 for k in places), len(block.ops)]
        chains = {k: f"bb{next(fresh)}" for k in places}
        for part, (start, end) in enumerate(zip(starts, ends, strict=True)):
            each = numbers if part == 0 else range(len(self.classes) + 1)
            label = {k: self.names.get((block.label, k), block.label) for k in each}
            if part > 0:
                label = {k: f"bb{next(fresh)}" for k in each}
                place = places[part - 1]
                name = writes(block.ops[place])[writes(typed.ops[place]).index(self.web)]
                self.dispatch(chains[place], name, [label[k] for k in each], fresh)
            for k in each:
                to = partial(self.target, k)
                last = Jump(chains[end - 1]) if part < len(places) else retarget(block.terminator, to)
                self.blocks.append(Block(label[k], block.ops[start:end], last))

    def target(self, number: int, label: str) -> str:
        """The copy of a block that follows one of a copy."""
        return label if label == RETURN else self.names.get((label, number), label)

    def dispatch(self, label: str, name: str, copies: Sequence[str], fresh: Iterator[int]) -> None:
        """Make the blocks that go on with the copy of the class that a variable is of, and tell it there."""
        for k, cls in enumerate(self.classes, 1):
            then, otherwise = f"bb{next(fresh)}", f"bb{next(fresh)}"
            test = f"{name}.class{next(fresh)}"
            self.tests.append(test)
            self.blocks += [
                Block(label, (_prim(test, _test(cls), name),), Branch(test, then, otherwise)),
                Block(then, (_prim(name, _narrowed(cls), name),), Jump(copies[k])),
            ]
            label = f"bb{next(fresh)}"
            self.blocks.append(Block(otherwise, (_prim(name, _other(cls), name),), Jump(label)))
        self.blocks.append(Block(label, (), Jump(copies[0])))


def _prim(dst: str, fn: Callable[[Value], Value], name: str) -> Op:
    return Prim((dst,), Expr(name, (name,), fn))


@lru_cache(maxsize=1024)
def _test(cls: type) -> Callable[[Value], Value]:
    """The test whether a value is a record of a class, or None."""

    def test(value: Value) -> Value:
        if not isinstance(value, Ref):
            return False
        if cls is type(None):
            return is_none(value)
        numbers = [c for c, one in zip(value.pcbatch_type.classes, value.pcbatch_type.types, strict=True) if one is cls]
        return is_in(value, numbers)

    return test


@lru_cache(maxsize=1024)
def _narrowed(cls: type) -> Callable[[Value], Value]:
    """The value where it is a record of a class, or None."""

    def narrowed(value: Value) -> Value:
        if cls is type(None) or not isinstance(value, Ref):
            return None if cls is type(None) else value
        record = as_class(value, cls)
        return record.value if issubclass(cls, AtomValue) else record

    return narrowed


@lru_cache(maxsize=1024)
def _other(cls: type) -> Callable[[Value], Value]:
    """The value where it is no record of a class."""

    def other(value: Value) -> Value:
        if not isinstance(value, Ref):
            return value
        type_ = value.pcbatch_type
        if cls is type(None):
            return value.typed(replace(type_, optional=False))
        pairs = zip(type_.classes, type_.types, strict=True)
        return value.typed(replace(type_, classes=tuple(c for c, one in pairs if one is not cls)))

    return other
