"""The function under construction: blocks, temporaries, and the finished `Function`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol

import gast

from pcbatch.data.exception_parts import part_of_python
from pcbatch.data.functions import exceptions
from pcbatch.data.functions.exceptions import code_of
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.frontend.build.primitives import default_expr, lane_reads, make_expr, used_imports, used_nested
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.tree import Node, attempted, constant, is_constant, load, supported
from pcbatch.frontend.symbols import Symbols
from pcbatch.ir.analysis.dataflow import postorder
from pcbatch.ir.analysis.def_use import retarget, successors, terminator_reads
from pcbatch.ir.cfg import Block, Function, Op, Terminator
from pcbatch.ir.effects import Change
from pcbatch.ir.message import Message, unbound_message
from pcbatch.ir.names import unused
from pcbatch.ir.ops import ASSERTION, ERROR, UNSET, Branch, Fail, Jump, Move, Prim, Return
from pcbatch.ir.roles import reads, writes


@dataclass(slots=True)
class BlockDraft:
    """A block under construction.

    `nested` are the definitions (None) and uses (the node) of nested functions, in order; `deleted` are variables, each
    with the number of operations before its `del` and the node of that.
    """

    ops: list[Op] = field(default_factory=list)
    deleted: list[tuple[int, str, Node]] = field(default_factory=list)
    nested: list[tuple[str, Node | None]] = field(default_factory=list)
    terminator: Terminator | None = None


class Loops(Protocol):
    """Builds what `source/streams.py` says becomes a loop; a module that uses the builder, hence given to it."""

    def expand(self, b: Builder, dst: str, node: Node) -> None:
        """Build `dst = node` for a comprehension, a stream (as a list) or a call of a consumer."""

    def collect(self, b: Builder, dst: str, node: Node) -> None:
        """Build the list of a stream's elements in a variable that nothing else reads, as it grows."""

    def build(self, b: Builder, body: Sequence[Node]) -> None:
        """Build statements in the current block."""

    def expand_condition(self, b: Builder, node: Node, on_true: str, on_false: str) -> bool:
        """Build `if any(...)` or `if all(...)`; False for other nodes, which build nothing."""


@dataclass(slots=True)
class Handlers:
    """The handlers of one `try` whose body is being built.

    Attributes:
        label: where lanes go that raise.
        code: the variable with the number of what they raise (see `support.exceptions`).
        parts: the variables with the parts of what they raise that handlers of the program read, by part.
        raised: the classes that `raise` statements of the body name.
        caught: the classes that the handlers name.
        unread: those that are caught by handlers which read no part.
    """

    label: str
    code: str
    parts: Mapping[str, str]
    raised: list[type[BaseException]] = field(default_factory=list)
    caught: tuple[type[BaseException], ...] = (BaseException,)
    unread: tuple[type[BaseException], ...] = ()


class Builder:
    """Appends operations to the current block. After a jump the current block is a new, unreachable one."""

    def __init__(self, unit: Unit, faults: Faults, symbol: Symbols, loops: Loops) -> None:
        self.unit = unit
        self.faults = faults
        self.symbol = symbol
        self.loops = loops
        self.drafts: dict[str, BlockDraft] = {}
        self.result = unused("r", "_", unit.names)
        self._next_temp = 0
        self._taken = unit.names | unit.fn.__globals__.keys()
        self.stands_for: dict[str, Node] = {}  # temporary -> the user's expression whose value it holds
        self.texts: dict[str, Message] = {}  # variables that hold text, as far as they are only shown
        self.variables = unit.variables | {self.result}
        self.consumer: Any = None  # of the generator that is written out here (see `generators.Consumer`)
        self.streams: list[tuple[Unit, Node]] = []  # the loops in whose heads this is, which go over streams
        self.rolls = False  # whether the loop that begins here stays one whatever it goes over
        self._generators = 0
        self.stored = frozenset[str]()  # of the loop that begins here: what its body stores items into
        # Of the loop that begins here: what its body may change (`changed_in_loops`), each with a variable that has the
        # object that the loop goes over, or None for the place itself.
        self.changed: dict[str, Node | None] = {}
        # By variable: for each loop around this place that goes over it, whether its order has changed since.
        self.flags: dict[str, tuple[str, ...]] = {}
        self.iterated: set[str] = set()  # temporaries that hold what `for` loops go over
        self.taking = False  # while the element of a loop is read, of which each trip has its own
        self.handlers: list[Handlers] = []  # of the `try` statements around, the innermost last
        self.caught: list[Handlers] = []  # those in whose handlers control is
        self.finals: list[tuple[Callable[[], None], int]] = []  # what builds each `finally`, and the handlers outside
        self.kept: dict[str, Move] = {}  # parameters that are results: what makes them the caller's objects in the end
        self.unbound = frozenset[str]()  # variables that some path may read without a value
        self.is_set: dict[str, str] = {}  # for some of them, the variable that says whether it has one
        self.raising: tuple[str, ...] = ()  # the results that say what the function raises, where that is caught
        self.fills = False  # whether it is an `__init__` whose object nobody has if it raises
        self.current = self.label()

    def number(self) -> int:
        """Return a number for a generator that is written out."""
        self._generators += 1
        return self._generators

    def build(self, body: Sequence[Node]) -> None:
        """Build statements in the current block."""
        self.loops.build(self, body)

    def label(self) -> str:
        """Make a new, empty block and return its label."""
        name = f"bb{len(self.drafts)}"
        self.drafts[name] = BlockDraft()
        return name

    def temp(self) -> str:
        """Return a new variable, different from every name of the user's function."""
        while (name := f"t{self._next_temp}") in self._taken:
            self._next_temp += 1
        self._next_temp += 1
        self.variables |= {name}
        return name

    def held(self, name: str, node: Node) -> Node:
        """Return a read of the variable `name`, which holds the value of `node` and is shown as `node` in messages."""
        self.stands_for[name] = node
        return load(name, node)

    def loc(self, node: Node) -> Loc:
        """Return the span of a node in the user's source."""
        return self.unit.source.loc(node)

    def emit(self, op: Op) -> None:
        """Append an operation to the current block."""
        self.drafts[self.current].ops.append(op)

    def prim(
        self,
        dsts: tuple[str, ...],
        node: Node,
        *,
        shown: Node | None = None,
        at: Node | None = None,
        changes: tuple[str, Change] | None = None,
    ) -> None:
        """Append `dsts = node`, in the body of a `try` as an attempt. The arguments are those of `plain_prim`."""
        self.require_bound(node)
        if not self.handlers or is_constant(node) or (isinstance(node, gast.Name) and len(dsts) == 1):
            self.plain_prim(dsts, node, shown=shown, at=at, changes=changes)
            return
        source, code = node if at is None else at, self.handlers[-1].code
        # What is changed in place has no other name, and is as it was when the operation raised.
        changed = dsts[-1:] if changes is not None else ()
        temps = tuple(dst if dst in changed else self.temp() for dst in dsts)
        objects = [load(changes[0], node)] if changes is not None else []
        expression = attempted(node, node)
        parts = self.handlers[-1].parts
        attempt = supported(
            exceptions.attempt, [constant(len(dsts), node), expression, _wanted(self, source), *objects], node
        )
        shown = node if shown is None else shown
        self.plain_prim((code, *parts.values(), *temps), attempt, shown=shown, at=source, changes=changes)
        self.catch(code, source)
        for dst, temp in zip(dsts, temps, strict=True):
            if dst != temp:
                self.emit(Move(dst, temp, self.loc(source)))

    def require_bound(self, node: Node) -> None:
        """In the body of a `try`, leave it for its handlers where an expression reads a variable without a value."""
        caught = (cls for tried in self.handlers for cls in tried.caught)
        if not self.is_set or not any(issubclass(UnboundLocalError, cls) for cls in caught):
            return
        for name in lane_reads(self.unit, node, self.variables):
            if name in self.is_set:
                bound, unbound = self.label(), self.label()
                self.end(Branch(self.is_set[name], bound, unbound, self.loc(node)))
                self.start(unbound)
                self.fail(UnboundLocalError, unbound_message(name), node)
                self.start(bound)

    def catch(self, code: str, at: Node) -> None:
        """Append a branch to the handlers for lanes that have raised, by the number of what they raise."""
        cond, following = self.temp(), self.label()
        self.plain_prim((cond,), supported(exceptions.raised, [load(code, at)], at), at=at)
        self.end(Branch(cond, self.handlers[-1].label, following, self.loc(at)))
        self.start(following)

    def fail(self, cls: type[BaseException], shown: Message, at: Node, parts: Sequence[str] = ()) -> None:
        """Close the current block with an exception, which the innermost `try` catches or which ends the lane.

        `parts` are those parts of it whose variables are assigned already; its text is not known otherwise.
        """
        if self.handlers:
            tried = self.handlers[-1]
            tried.raised.append(cls)
            _assign_parts(self, shown, parts, at)
            self.plain_prim((tried.code,), constant(code_of(cls), at), at=at)
            self.jump(tried.label)
            return
        kind = ASSERTION if issubclass(cls, AssertionError) else ERROR
        self.end(Fail(kind, cls.__name__, shown, self.loc(at)))

    def plain_prim(
        self,
        dsts: tuple[str, ...],
        node: Node,
        *,
        shown: Node | None = None,
        at: Node | None = None,
        changes: tuple[str, Change] | None = None,
    ) -> None:
        """Append `dsts = node`; errors point to `at`, or to the node itself if it is left out.

        `changes` is a variable whose object Python would change in place, and how; the last of `dsts` receives the
        changed object.
        """
        source = node if at is None else at
        used = (*used_nested(self.unit, node), *used_imports(self.unit, node))
        self.drafts[self.current].nested += [(name, source) for name in used]
        expr = make_expr(
            self.unit, node, self.variables, arity=len(dsts), shown=shown, parts=self.stands_for, changes=changes
        )
        if self.taking and not self.iterated.isdisjoint(expr.ins):
            takes = tuple(k for k, name in enumerate(expr.ins) if name in self.iterated)
            expr = replace(expr, effects=replace(expr.effects, takes=takes))
        self.emit(Prim(dsts, expr, self.loc(source)))

    def note(self, *, is_part: bool = False, same: bool = False, back: bool = False, alone: bool = False) -> None:
        """Note effects of the last operation (`Effects`)."""
        last = self.drafts[self.current].ops[-1]
        assert isinstance(last, Prim)
        effects = replace(last.expr.effects, is_part=is_part, same=same, back=back, alone=alone)
        self.drafts[self.current].ops[-1] = replace(last, expr=replace(last.expr, effects=effects))

    def uses(self, name: str, at: Node) -> None:
        """Record a call of a nested function that is a function of the program."""
        self.drafts[self.current].nested.append((name, at))

    def unset(self, name: str, at: Node) -> None:
        """Append that a variable has no value yet, whatever its type will be; nothing may read it then."""
        self.emit(Prim((name,), UNSET, self.loc(at)))

    def delete(self, target: Node) -> None:
        """Record `del target` of a name."""
        draft = self.drafts[self.current]
        draft.deleted.append((len(draft.ops), target.id, target))

    def define(self, name: str) -> None:
        """Record that control passes the definition of a nested function here."""
        self.drafts[self.current].nested.append((name, None))

    def keep(self, name: str, at: Node) -> None:
        """Keep the object of a parameter, whatever is assigned to it, until the function returns."""
        kept = self.temp()
        self.emit(Move(kept, name, self.loc(at)))
        self.kept[name] = Move(name, kept, self.loc(at))

    def end(self, terminator: Terminator) -> None:
        """Close the current block; code that follows without a new label is unreachable."""
        if isinstance(terminator, Return):
            self.drafts[self.current].ops += self.kept.values()
        self.drafts[self.current].terminator = terminator
        self.current = self.label()

    def jump(self, target: str) -> None:
        """Close the current block with a jump."""
        self.end(Jump(target))

    def start(self, label: str) -> None:
        """Continue in the block `label`."""
        self.current = label

    def begin(self, label: str) -> None:
        """Close the current block with a jump to the block `label`, and continue there."""
        self.jump(label)
        self.start(label)

    def reachable(self) -> list[str]:
        """The labels of the blocks that control can reach, in reverse postorder."""
        return postorder(["bb0"], {label: self.successors(label) for label in self.drafts})[::-1]

    def successors(self, label: str) -> tuple[str, ...]:
        """The successors of the block `label`."""
        # The false side first, so that in reverse postorder the true side (a loop's body) comes first.
        terminator = self.drafts[label].terminator
        return () if terminator is None else tuple(reversed(successors(terminator)))

    def finish(self, name: str, inline: bool, given_back: tuple[str, ...] = ()) -> Function:
        """Return the function with its reachable blocks, numbered from `bb0`; parameters `given_back` are results."""
        order = self.reachable()
        number = {label: f"bb{i}" for i, label in enumerate(order)}
        blocks = []
        for label in order:
            terminator = self.drafts[label].terminator
            new = Return() if terminator is None else retarget(terminator, number.__getitem__)
            blocks.append(Block(number[label], tuple(self.drafts[label].ops), new))
        names = [*self.unit.params, self.result, *self.unit.returned, *self.raising]
        for block in blocks:
            for op in block.ops:
                names += [*reads(op), *writes(op)]
            names += terminator_reads(block.terminator)
        return Function(
            name=name,
            params=self.unit.params,
            results=(self.result, *self.unit.returned, *given_back, *self.raising),
            blocks=tuple(blocks),
            types=MappingProxyType(dict.fromkeys(names)),
            loc=self.unit.header,
            inline=inline,
            given_back=given_back,
        )


def new_handlers(
    b: Builder, caught: tuple[type[BaseException], ...] = (BaseException,), unread: tuple[type[BaseException], ...] = ()
) -> Handlers:
    """Return the handlers of a `try` that catches these classes."""
    label, code = b.label(), b.temp()
    return Handlers(label, code, {part: b.temp() for part in b.symbol.parts}, [], caught, unread)


def _wanted(b: Builder, at: Node) -> Node:
    """Build the parts of exceptions that handlers read, as `attempt` takes them."""
    if not b.symbol.parts:
        return constant(None, at)
    known, unread = b.temp(), b.handlers[-1].unread
    wanted = exceptions.wanted(tuple((part, of, unread) for part, of in b.symbol.parts.items()))
    b.emit(Prim((known,), default_expr("wanted", wanted), b.loc(at)))
    return load(known, at)


def _assign_parts(b: Builder, shown: Message, known: Sequence[str], at: Node) -> None:
    """Build the parts of an exception that Python raises by itself, with this message, but for those that are known."""
    for part, variable in b.handlers[-1].parts.items():
        if part in known:
            continue
        if (value := part_of_python(part, shown)) is None:
            b.unset(variable, at)
        else:
            b.plain_prim((variable,), constant(value, at), at=at)


def keep_parameters(b: Builder, given_back: Sequence[str]) -> None:
    """Build copies of those of the parameters `given_back` that the body assigns; they are results of the function.

    def step(p):                       func @step(p) -> (r, p):
        p.n += 1                           t0 = p
        p = p.next              ==>        p = augment_item(p, ...); p = { p.next }; p = augment_item(p, ...)
        p.n += 1                           p = t0; return

    A list or a dict has two names meanwhile. Where it changes, the check of ownership asks for a link (`links.py`).
    """
    own = {name.id: name for name in gast.walk(b.unit.node.args) if isinstance(name, gast.Name)}
    for name in given_back:
        if name in own and name not in b.unit.returned and _is_assigned(b, name):
            b.keep(name, own[name])


def _is_assigned(b: Builder, name: str) -> bool:
    """Whether the body assigns a variable, other than by `x += v`, which changes a list in place."""
    parts = [part for statement in b.unit.body for part in gast.walk(statement)]
    augmented = {id(part.target) for part in parts if isinstance(part, gast.AugAssign)}
    names = (part for part in parts if isinstance(part, gast.Name) and id(part) not in augmented)
    return any(part.id == name and isinstance(part.ctx, gast.Store) for part in names)
