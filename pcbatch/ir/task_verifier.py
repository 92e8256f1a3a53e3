"""The rules that hold for task programs; `verifier.verify` lists the breaches.

A result is *pending* between the `spawn` that names it and the next `sync`. Types are checked where they are known,
without the weak flag.

  label     Labels are unique; `return` and `prologue` are reserved.
  target    All jumps, syncs and starts lead to blocks that exist, a sync to one `after sync`, the others to one that is
            not; so does the entry. The parameters of the entry are parameters of the program.
  declared  Every variable that is mentioned is declared.
  distinct  Parameters are distinct, and so are the destinations of one operation.
  cond      Conditions are `bool[]`.
  kind      A failure is an "assertion", an "error", a "capacity" or a "limit".
  types     Source and destination of a move agree; so do the three of a select.
  known     Constants are parameters of the program; shared variables are, or the prologue writes them, which writes
            nothing else and reads only shared ones that have a value. Blocks neither write nor bind either.
  once      A block gives each variable one value, so that it does not matter where in the block it is read.
  read      A block reads its parameters, what it has computed, constants and shared variables, and nothing pending.
  bind      A jump or a start binds each parameter of its target once and nothing else, with equal types. A sync binds
            those that are no results; the others are pending on all paths to it, and no bound one is on any.
  open      `spawn`, `sync` and jumps to blocks `in frame` stand where a frame is open; `frame`, `return` and other
            jumps where none is; `fail` anywhere. Tasks begin without one, and so do blocks `after sync`.
  pending   What is pending on some path is neither spawned again, nor written, nor a parameter.
  adds      `spawn r += ...`: r is one integer, which `give` has set on all paths since `frame`.
  row       `spawn r at k = ...`: r are arrays, which `give` has set on all paths since `frame`; k is one integer.
  give      The values of a `give` are as many as the destinations, with equal types; of rows, those of a row.
  finish    So are the values of every `return` that a task may end with: by jumps, syncs and `spawn return +=`, from
            where it starts. For the task of the entry, the destinations are the results of the program.
  sums      `spawn return +=` stands only in functions of `sums` and starts only such; their tasks go on only in such,
            and return one integer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.analysis.task_paths import Point, entering, terminator_reads, walk
from pcbatch.ir.forks import conditions, leaves
from pcbatch.ir.ops import Fail
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.rules import RESERVED_LABELS, Fault, agree, all_declared, distinct, is_bool, known_kind, op_types
from pcbatch.ir.tasks import (
    Finish,
    Give,
    OpenFrame,
    Spawn,
    SpawnInto,
    Start,
    Sync,
    TaskBlock,
    TaskJump,
    TaskLeaf,
    TaskOp,
    TaskProgram,
    heirs,
    row_type,
    spawns,
)
from pcbatch.ir.types import ArrayType

Args = Iterable[tuple[str, str]]


def verify_tasks(program: TaskProgram) -> Iterator[Fault]:
    """Find all breaches of the rules above; the rules about paths are checked only where labels are sound."""
    yield from distinct(program.params, "program", "parameters")
    yield from all_declared(_mentions(program), program.types)
    yield from op_types(program.prologue, program.types, "prologue")
    yield from _known(program)
    for block in program.blocks:
        yield from distinct(block.params, block.label, "parameters")
        yield from _block_types(program, block)
    broken = tuple(_targets(program))
    yield from broken
    if broken:
        return
    blocks = {block.label: block for block in program.blocks}
    points = entering(program)
    for block in program.blocks:
        if (point := points[block.label]) is not None:
            yield from _Walk(program, blocks, block, point).faults()
    yield from _finishes(program, blocks)
    yield from _sums(program, blocks)


def _mentions(program: TaskProgram) -> Iterator[tuple[str, str]]:
    for name in (*program.params, *program.results, *program.constants, *program.shared):
        yield "program", name
    for pure in program.prologue:
        yield from (("prologue", name) for name in (*reads(pure), *writes(pure)))
    for block in program.blocks:
        names = [*block.params]
        for op in block.ops:
            names += [*reads(op), *writes(op)]
        names += terminator_reads(block.terminator)
        yield from ((block.label, name) for name in names)


def _known(program: TaskProgram) -> Iterator[Fault]:
    written = {name for op in program.prologue for name in writes(op)}
    for name in program.constants:
        if name not in program.params or name in program.shared:
            yield Fault("known", "program", f"the constant {name} is no parameter, or is shared")
    for name in program.shared:
        if name not in written.union(program.params):
            yield Fault("known", "program", f"the shared variable {name} has no value")
    ready = set(program.params).intersection(program.shared)
    for op in program.prologue:
        for name in reads(op):
            if name not in ready:
                yield Fault("known", "prologue", f"{name} is read, but is not a shared variable with a value")
        for name in writes(op):
            if name not in program.shared:
                yield Fault("known", "prologue", f"{name} is written, but is not shared")
        ready.update(writes(op))
    for block in program.blocks:
        for name in dict.fromkeys((*block.params, *(v for op in block.ops for v in writes(op)))):
            if name in program.known_everywhere:
                yield Fault("known", block.label, f"{name} is a constant or shared, but the block gives it a value")


def _block_types(program: TaskProgram, block: TaskBlock) -> Iterator[Fault]:
    types = program.types
    for op in block.ops:
        if isinstance(op, Spawn):
            yield from distinct(op.dsts, block.label, "destinations")
        elif not isinstance(op, OpenFrame | SpawnInto):
            yield from op_types((op,), types, block.label)
    forks = (cond for op in spawns(block) for cond in conditions(op.way))
    for cond in dict.fromkeys((*forks, *conditions(block.terminator))):
        yield from is_bool(cond, types, block.label)
    if isinstance(block.terminator, Fail):
        yield from known_kind(block.terminator.kind, block.label)


def _targets(program: TaskProgram) -> Iterator[Fault]:
    """The rules `label` and `target`, and the part of `open` about where tasks begin."""
    for label, count in Counter(block.label for block in program.blocks).items():
        if count > 1:
            yield Fault("label", "program", f"{count} blocks are called {label}")
        if label in RESERVED_LABELS:
            yield Fault("label", "program", f"no block may be called {label}")
    blocks = {block.label: block for block in program.blocks}

    def lead(where: str, target: str, joins: bool, begins: bool = False) -> Iterator[Fault]:
        if target not in blocks:
            yield Fault("target", where, f"{target} does not exist")
        elif blocks[target].joins != joins:
            what = "a sync leads to it" if joins else "it is no target of a sync"
            yield Fault("target", where, f"{target} must {'' if joins else 'not '}be `after sync`, since {what}")
        elif begins and blocks[target].open:
            yield Fault("open", where, f"a task begins at {target}, which is `in frame`")

    yield from lead("program", program.entry, False, True)
    entry = blocks.get(program.entry)
    for name in entry.params if entry else ():
        if name not in program.params:
            yield Fault("target", "program", f"{name} is a parameter of the entry, but not of the program")
    for block in program.blocks:
        if block.joins and block.open:
            yield Fault("open", block.label, "no frame is open after a sync")
        for op in spawns(block):
            for way in leaves(op.way):
                if isinstance(way, Start):
                    yield from lead(block.label, way.label, False, True)
        for leaf in leaves(block.terminator):
            if isinstance(leaf, TaskJump | Sync):
                yield from lead(block.label, leaf.target, isinstance(leaf, Sync))


class _Walk:
    """The rules about one block, operation by operation."""

    def __init__(self, program: TaskProgram, blocks: dict[str, TaskBlock], block: TaskBlock, point: Point) -> None:
        self.program, self.blocks, self.block, self.point = program, blocks, block, point
        self.where = block.label
        self.own = set(block.params)
        self.found: list[Fault] = []

    def faults(self) -> list[Fault]:
        for name in self.block.params:
            if name in self.point.may:
                self.fault("pending", f"the parameter {name} is pending")
        for op, before in walk(self.block, self.point):
            self.point = before
            if op is not None:
                self.operation(op)
        self.read(terminator_reads(self.block.terminator, leaves_too=False))
        ends: tuple[TaskLeaf | Fail, ...] = leaves(self.block.terminator)
        for leaf in ends:
            self.leaf(leaf)
        return list(dict.fromkeys(self.found))

    def fault(self, rule: str, message: str) -> None:
        self.found.append(Fault(rule, self.where, message))

    def read(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self.point.may:
                self.fault("read", f"{name} is read before the sync that waits for it")
            elif name not in self.own and name not in self.program.known_everywhere:
                self.fault("read", f"{name} is read, but is neither a parameter nor computed before")

    def operation(self, op: TaskOp) -> None:
        self.read(reads(op))
        match op:
            case OpenFrame():
                if self.point.open:
                    self.fault("open", "a frame is open already")
            case Spawn():
                self.spawn(op)
            case SpawnInto(way=way):
                for start in leaves(way):
                    if isinstance(start, Start):
                        self.bind(start.label, start.args)
            case _:
                for name in writes(op):
                    if name in self.own:
                        self.fault("once", f"{name} has a value already")
                    if name in self.point.may:
                        self.fault("pending", f"{name} is written, but pending")
                self.own.update(writes(op))

    def spawn(self, op: Spawn) -> None:
        if not self.point.open:
            self.fault("open", "spawn without a frame")
        for name in op.dsts:
            if op.adds and name not in self.point.given:
                self.fault("adds", f"{name} is added to, but no `give` has set it on all paths")
            if op.row is not None and name not in self.point.given:
                self.fault("row", f"a row of {name} is spawned, but no `give` has set it on all paths")
            if not op.adds and op.row is None and name in self.point.may:
                self.fault("pending", f"{name} is spawned, but pending already")
        if op.row is not None:
            self.row(op, op.row)
        if op.adds and not (len(op.dsts) == 1 and _is_integer(self.program, op.dsts[0])):
            self.fault("adds", f"{', '.join(op.dsts)} is not one integer")
        for way in leaves(op.way):
            if isinstance(way, Start):
                self.bind(way.label, way.args)
            elif isinstance(way, Give):
                self.found += _same(self.program, way.values, op, "give", self.where, "given")

    def row(self, op: Spawn, row: str) -> None:
        if op.adds:
            self.fault("row", f"a row of {', '.join(op.dsts)} is added to")
        if not _is_integer(self.program, row):
            self.fault("row", f"{row} is not one integer")
        for name in op.dsts:
            type_ = self.program.types.get(name)
            if type_ is not None and not type_.shape:
                self.fault("row", f"{name} has no rows")

    def bind(self, target: str, args: Args, rest: frozenset[str] = frozenset()) -> None:
        """Check that arguments bind the parameters of a block, but for those in `rest`."""
        params = self.blocks[target].params
        counts = Counter(param for param, _ in args)
        for name in params:
            if counts[name] != 1 and name not in rest:
                self.fault("bind", f"the parameter {name} of {target} is bound {counts[name]} times")
        for name in counts:
            if name not in params:
                self.fault("bind", f"{target} has no parameter {name}")
        for param, source in args:
            self.found += agree(param, source, self.program.types, self.program.types, self.where, "bind")

    def leaf(self, leaf: TaskJump | Sync | Finish | Fail) -> None:
        match leaf:
            case TaskJump(target=target, args=args):
                self.read(source for _, source in args)
                self.bind(target, args)
                if self.blocks[target].open != self.point.open:
                    is_open = "a frame is open" if self.point.open else "no frame is open"
                    self.fault("open", f"{is_open} at the jump to {target}")
            case Sync(target=target, args=args):
                self.read(source for _, source in args)
                bound = frozenset(param for param, _ in args)
                self.bind(target, args, self.point.must - bound)
                for name in sorted(bound & self.point.may):
                    self.fault("bind", f"the parameter {name} of {target} is bound, but is a result")
                if not self.point.open:
                    self.fault("open", "sync without a frame")
            case Finish(values=values):
                self.read(values)
                if self.point.open:
                    self.fault("open", "return with an open frame")
            case Fail():  # with a frame open or not: the whole example ends
                pass


def _same(
    program: TaskProgram, values: Sequence[str], op: Spawn | Sequence[str], rule: str, where: str, what: str
) -> list[Fault]:
    """Check that values fit their destinations, those of an operation or variables."""
    dsts, wanted = (op.dsts, _types(program, op)) if isinstance(op, Spawn) else (op, program.types)
    if len(values) != len(dsts):
        return [Fault(rule, where, f"{len(values)} values are {what}, not {len(dsts)}")]
    return [f for a, b in zip(values, dsts, strict=True) for f in agree(b, a, wanted, program.types, where, rule)]


def _types(program: TaskProgram, op: Spawn) -> Mapping[str, ArrayType | None]:
    """The types of the values that an operation puts to its destinations: of arrays, or of their rows."""
    if op.row is None:
        return program.types
    return {v: row_type(t) if (t := program.types.get(v)) is not None and t.shape else None for v in op.dsts}


def _finishes(program: TaskProgram, blocks: dict[str, TaskBlock]) -> Iterator[Fault]:
    goes = {label: tuple(heirs(block)) for label, block in blocks.items()}
    found: dict[Fault, None] = {}
    seen: set[tuple[str, tuple[str, ...], bool]] = set()

    def check(start: str, op: Spawn | tuple[str, ...]) -> None:
        key = (start, op.dsts, op.row is not None) if isinstance(op, Spawn) else (start, op, False)
        if key in seen:
            return
        seen.add(key)
        for label in sorted(reachable([start], goes)):
            for values in _delivered(blocks[label]):
                found.update(dict.fromkeys(_same(program, values, op, "finish", label, "returned")))

    check(program.entry, program.results)
    for block in program.blocks:
        for op in spawns(block):
            if isinstance(op, Spawn):
                for way in leaves(op.way):
                    if isinstance(way, Start):
                        check(way.label, op)
    yield from found


def _delivered(block: TaskBlock) -> Iterator[tuple[str, ...]]:
    """The values that go to the destination of a block's task."""
    for leaf in leaves(block.terminator):
        if isinstance(leaf, Finish):
            yield leaf.values
    for op in spawns(block):
        if isinstance(op, SpawnInto):
            yield from (way.values for way in leaves(op.way) if isinstance(way, Give))


def _sums(program: TaskProgram, blocks: dict[str, TaskBlock]) -> Iterator[Fault]:
    for block in program.blocks:
        if block.function not in program.sums:
            if any(isinstance(op, SpawnInto) for op in block.ops):
                yield Fault("sums", block.label, f"@{block.function} is no sum, but has `spawn return +=`")
            continue
        for target in dict.fromkeys(heirs(block)):
            if blocks[target].function not in program.sums:
                yield Fault("sums", block.label, f"{target} is in no sum, but goes to the destination of one")
        for values in _delivered(block):
            if not (len(values) == 1 and _is_integer(program, values[0])):
                yield Fault("sums", block.label, f"({', '.join(values)}) is not one integer")


def _is_integer(program: TaskProgram, name: str) -> bool:
    """Whether a variable is a single integer, or of a type that is not known."""
    type_: ArrayType | None = program.types.get(name)
    return type_ is None or (type_.dtype.startswith(("int", "uint")) and type_.shape == ())
