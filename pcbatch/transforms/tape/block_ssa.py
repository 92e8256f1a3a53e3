"""A block as straight-line code in single assignment: what its pullback is made of.

    bb2:  pop n; t = left[n]; r = tanh(w @ x)        sources: pop n (0), read x (2), shared w (3)
                                                     steps:   load 1 = left at 0; node 4 = tanh(w @ x) of 3, 2
                                                     updates: r = 4, t = 1

Numbers stand for values. What a block takes in are its sources: registers, slots, shared values, and what it loads of
large registers (see `runtime/vm/indexed_access.py`). What it gives are updates of registers, values that it saves in
its frame, and stores into large registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.ir.ops import Move, Prim, Print, Select
from pcbatch.ir.stack import Pop, Push
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.vm.block_body import BlockCode
from pcbatch.runtime.vm.indexed_access import Cut, Segment, Touch, load_key
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.jaxpr_pieces import inlined, only_linear, pieces

READ, POP, SHARED, LOADED, MADE = "read", "pop", "shared", "loaded", "made"


@dataclass(frozen=True, slots=True)
class Source:
    """A value that a block takes in; records and registers hold it in storage form."""

    kind: str  # READ, POP, SHARED, LOADED, or MADE: a result that was dear
    name: str  # of the variable; of a load or a result its key
    number: int
    type: ArrayType

    @property
    def key(self) -> str:
        """What a record calls it."""
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class Node:
    """outs = fn(*ins), for one lane; `fn` gives a list."""

    fn: Callable[..., Any]
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    linear: bool  # is its pullback harmless whatever the values are?
    chooses: bool = False  # the second or third of `ins` by the first: a lane needs only the one that it gets


@dataclass(frozen=True, slots=True)
class Load:
    """`out` = a part of a register, at the indices `ins`."""

    register: str
    eqn: Any
    ins: tuple[int, ...]
    out: int


@dataclass(frozen=True, slots=True)
class Store:
    """Indices and what is stored into a register there (`ins`)."""

    register: str
    eqn: Any
    ins: tuple[int, ...]


Step = Node | Load | Store


@dataclass(frozen=True, slots=True)
class Body:
    """A block in single assignment."""

    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    updates: Mapping[str, int]  # floating registers that get a new value
    saves: Mapping[str, int]  # floating slots
    leaving: Mapping[int, ArrayType]  # what leaves: new values of registers, saved ones, and stored ones
    later: frozenset[int]  # values that depend on deferred variables, and on nothing else that has cotangents
    edge: Mapping[int, ArrayType]  # values whose cotangents the trips know, and those of `later` are made of
    dear: tuple[Source, ...]  # results that may be recorded

    def stores(self) -> Iterator[Store]:
        """What it stores into registers."""
        yield from (step for step in self.steps if isinstance(step, Store))


def body_of(code: BlockCode, deferred: frozenset[str] = frozenset()) -> Body:
    """A block of a program in single assignment, cut where it meets `deferred` variables: large ones that lanes share,
    whose cotangents are not made trip by trip."""
    whole: set[str] = set()
    while True:  # a register that is used in part and as a whole is used as a whole
        found = _Builder(code, frozenset(whole), deferred).build()
        if not found.mixed:
            return found.body()
        whole |= found.mixed


@dataclass
class _Builder:
    code: BlockCode
    whole: frozenset[str]  # registers that are not touched in part here
    deferred: frozenset[str]
    common: set[int] = field(default_factory=set)  # values that depend on nothing but what lanes share
    follows: set[int] = field(default_factory=set)  # those of them that have cotangents
    mine: set[int] = field(default_factory=set)  # values that depend on floating numbers of each lane
    later: set[int] = field(default_factory=set)
    edge: dict[int, ArrayType] = field(default_factory=dict)
    dear: list[Source] = field(default_factory=list)
    env: dict[str, int] = field(default_factory=dict)
    touched: dict[str, str] = field(default_factory=dict)  # name -> itself, while it stands for its register in place
    sources: list[Source] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    saves: dict[str, int] = field(default_factory=dict)
    mixed: set[str] = field(default_factory=set)
    count: int = 0

    def build(self) -> _Builder:
        for v in self.code.shared:
            self._source(SHARED, v, v)
        for v in self.code.reads:
            if self._in_part(v):
                self.touched[v] = v
            else:
                self._source(READ, v, v)
        for position, op in enumerate(self.code.block.ops):
            match op:
                case Push(dst=dst, src=src):
                    self.saves[dst] = self._value(src)
                case Pop(dst=dst):
                    self._source(POP, dst, dst)
                case Print():
                    pass
                case Move(dst=dst, src=src):
                    self._set(dst, self._value(src))
                case Select():
                    ins = tuple(map(self._value, (op.cond, op.on_true, op.on_false)))
                    self._node(lambda c, a, b: [jnp.where(c, a, b)], ins, (op.dst,), linear=True, chooses=True)
                case Prim():
                    self._prim(position, op)
        return self

    def body(self) -> Body:
        updates = {v: self.env[v] for v in self.code.updates if v not in self.touched and self._is_float(v)}
        saves = {v: number for v, number in self.saves.items() if self._is_float(v)}
        leaving = {number: self.code.type(v) for v, number in (*updates.items(), *saves.items())}
        for step in self.steps:
            if isinstance(step, Store) and jnp.issubdtype((aval := step.eqn.invars[2].aval).dtype, jnp.inexact):
                leaving.setdefault(step.ins[1], ArrayType(str(aval.dtype), tuple(aval.shape)))
        later = frozenset((self.later | self.follows) - self.mine)
        edge = {**self.edge, **{n: type_ for n, type_ in leaving.items() if n in later}}
        return Body(tuple(self.sources), tuple(self.steps), updates, saves, leaving, later, edge, tuple(self.dear))

    def _is_float(self, v: str) -> bool:
        return is_float(self.code.type(v))

    def _in_part(self, v: str) -> bool:
        """Is every use of this register, until it is given another value, one in part?"""
        return v in self.code.parted and v not in self.whole

    def _new(self) -> int:
        self.count += 1
        return self.count - 1

    def _set(self, name: str, number: int) -> None:
        self.touched.pop(name, None)
        self.env[name] = number

    def _source(self, kind: str, name: str, variable: str) -> None:
        number = self._new()
        self.sources.append(Source(kind, name, number, self.code.type(variable)))
        if kind == SHARED:
            self.common.add(number)
            self.follows |= {number} if name in self.deferred else set()
        elif is_float(self.code.type(variable)):
            self.mine.add(number)
        self._set(variable, number)

    def _value(self, name: str) -> int:
        if name in self.touched:
            self.mixed.add(name)
            return self.env.setdefault(name, self._new())
        return self.env[name]

    def _node(
        self, fn: Callable[..., Any], ins: tuple[int, ...], dsts: Sequence[str], linear: bool, chooses: bool = False
    ) -> None:
        outs = tuple(self._new() for _ in dsts)
        self._step(Node(fn, ins, outs, linear, chooses), [self.code.type(dst) for dst in dsts])
        for dst, out in zip(dsts, outs, strict=True):
            self._set(dst, out)

    def _prim(self, position: int, op: Prim) -> None:
        found = self.code.cuts.get(position)
        registers = [] if found is None else [op.expr.ins[k] for k in found.registers]
        if found is not None and all(v in self.touched for v in registers) and _reversible(found):
            self._cut(position, op, found)
            return
        ins = tuple(map(self._value, op.expr.ins))
        if isinstance(op.expr.fn, JaxprFn) and not any(cast is not None for cast in op.expr.fn.casts):
            outs = self._jaxpr(op.expr.fn.closed, ins)
            for dst, out in zip(op.dsts, outs, strict=True):
                self._set(dst, out)
            return
        many = op.expr.fn if len(op.dsts) != 1 else (lambda *args, fn=op.expr.fn: [fn(*args)])
        assert many is not None
        self._node(many, ins, op.dsts, linear=is_linear(op.expr.fn))

    def _step(self, step: Node, types: Sequence[ArrayType]) -> None:
        self.steps.append(step)
        ins, outs = step.ins, step.outs
        floats = {n: type_ for n, type_ in zip(outs, types, strict=True) if is_float(type_)}
        follows = any(i in self.follows or i in self.later for i in ins)
        if all(i in self.common for i in ins):
            self.common |= set(outs)
            self.follows |= set(floats) if follows else set()
        elif any(i in self.mine for i in ins):
            self.mine |= set(floats)
            self.edge |= floats if follows else {}
        elif follows:
            self.later |= set(floats)

    def _jaxpr(self, closed: jex.ClosedJaxpr, ins: Sequence[int]) -> list[int]:
        """The values of a jaxpr, cut where it meets what lanes share, and around what is dear."""
        plain = inlined(closed)
        env: dict[Any, int] = dict(zip(plain.jaxpr.invars, ins, strict=True))
        common = {v for v, n in env.items() if n in self.common}
        for part in pieces(plain, common, {v for v in common if env[v] in self.follows}):
            names = tuple(env[v] for v in part.ins)
            outs = tuple(self._new() for _ in part.outs)
            types = [ArrayType(str(v.aval.dtype), tuple(v.aval.shape)) for v in part.outs]
            self._step(Node(jex.jaxpr_as_fun(part.closed), names, outs, only_linear(part.closed.jaxpr)), types)
            env.update(zip(part.outs, outs, strict=True))
            if part.dear and not set(outs) & self.common:
                self.dear += [Source(MADE, str(n), n, type_) for n, type_ in zip(outs, types, strict=True)]
        return [self._constant(v) if isinstance(v, jex.Literal) else env[v] for v in plain.jaxpr.outvars]

    def _constant(self, literal: Any) -> int:
        number = self._new()
        type_ = ArrayType(str(literal.aval.dtype), tuple(literal.aval.shape))
        self._step(Node(lambda: [jnp.asarray(literal.val, literal.aval.dtype)], (), (number,), linear=True), [type_])
        return number

    def _cut(self, position: int, op: Prim, found: Cut) -> None:
        env: dict[Any, int] = {}
        place: dict[Any, str] = {}  # variables of the jaxpr that stand for a register
        for k, (var, name) in enumerate(zip(found.invars, op.expr.ins, strict=True)):
            if k in found.registers:
                place[var] = name
            else:
                env[var] = self._value(name)

        def look(v: Any) -> int:
            if not isinstance(v, jex.Literal):
                return env[v]
            return self._constant(v)

        for k, step in enumerate(found.steps):
            match step:
                case Segment():
                    made = self._jaxpr(step.closed, tuple(look(v) for v in step.ins))
                    env.update(zip(step.outs, made, strict=True))
                case Touch(eqn=eqn):
                    register, ins = place[eqn.invars[0]], tuple(look(v) for v in eqn.invars[1:])
                    if step.stores:
                        self.steps.append(Store(register, eqn, ins))
                        place[eqn.outvars[0]] = register
                    else:
                        env[eqn.outvars[0]] = self._loaded(load_key(position, k), register, eqn, ins)
        stored = {k for k, _ in found.stored}
        for k, (dst, var) in enumerate(zip(op.dsts, found.outvars, strict=True)):
            if k not in stored:
                if not isinstance(var, jex.Literal) and var in place:
                    self.mixed.add(place[var])
                    env[var] = self._new()
                self._set(dst, look(var))

    def _loaded(self, key: str, register: str, eqn: Any, ins: tuple[int, ...]) -> int:
        number, aval = self._new(), eqn.outvars[0].aval
        type_ = ArrayType(str(aval.dtype), tuple(aval.shape))
        self.sources.append(Source(LOADED, key, number, type_))
        self.mine |= {number} if is_float(type_) else set()
        self.steps.append(Load(register, eqn, ins, number))
        return number


def _reversible(found: Cut) -> bool:
    """Can its stores into floating registers be undone one element at a time?"""
    stores = [step.eqn for step in found.steps if isinstance(step, Touch) and step.stores]
    return all(_undoable(eqn) for eqn in stores if jnp.issubdtype(eqn.invars[0].aval.dtype, jnp.inexact))


def _undoable(eqn: Any) -> bool:
    if eqn.primitive.name == "scatter-add":
        return True
    once = all(size == 1 for size in eqn.invars[1].aval.shape[:-1])
    return eqn.primitive.name == "scatter" and (once or bool(eqn.params["unique_indices"]))


def is_linear(fn: Any) -> bool:
    """Does the pullback of a primitive only move and add cotangents?"""
    closed = getattr(fn, "closed", None)
    return closed is not None and only_linear(closed.jaxpr)
