"""A block as straight-line code in single assignment, of which its pullback is made.

    bb2:  pop n; t = left[n]; r = tanh(w @ x)        sources: pop n (0), read x (2), shared w (3)
                                                     steps:   load 1 = left at 0; node 4 = tanh(w @ x) of 3, 2
                                                     updates: r = 4, t = 1

Numbers are values. The inputs of a block are its sources: registers, slots, shared values, and parts that it
loads of large registers (see `runtime/vm/indexed_access.py`). Its outputs are updates of registers, values that it
pushes, and stores into large registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.ir.ops import Move, Prim, Print, Select
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.stack import Pop, Push
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.vm.block_body import BlockCode, function_of
from pcbatch.runtime.vm.indexed_access import Cut, Segment, Touch, load_key
from pcbatch.runtime.vm.word_packing import is_float
from pcbatch.transforms.tape.jaxpr_pieces import COSTLY, SHIFTS, any_of, inlined, only_linear, pieces


@dataclass(frozen=True, slots=True)
class _Source:
    """A value that a pullback may start from; records and registers hold it in storage form."""

    name: str
    number: int
    type: ArrayType
    prefix: ClassVar[str]

    @property
    def key(self) -> str:
        """The name of the value in a record, unique in its block."""
        return f"{self.prefix}:{self.name}"


@dataclass(frozen=True, slots=True)
class ReadRegister(_Source):
    """The value of a register when the block begins; `name` is its variable."""

    prefix: ClassVar[str] = "read"


@dataclass(frozen=True, slots=True)
class PoppedSlot(_Source):
    """The value of a slot of the lane's frame; `name` is its variable."""

    prefix: ClassVar[str] = "pop"


@dataclass(frozen=True, slots=True)
class SharedValue(_Source):
    """A value that is uniform by construction; `name` is its variable."""

    prefix: ClassVar[str] = "shared"


@dataclass(frozen=True, slots=True)
class LoadedPart(_Source):
    """The result of a `Load`, which is recorded and not loaded again; `name` is its `load_key`."""

    prefix: ClassVar[str] = "loaded"


@dataclass(frozen=True, slots=True)
class ExpensiveResult(_Source):
    """A result that may be recorded, because it is expensive to compute again; `name` is its number."""

    prefix: ClassVar[str] = "made"


PullbackSource = ReadRegister | PoppedSlot | SharedValue | LoadedPart
Recordable = PullbackSource | ExpensiveResult


@dataclass(frozen=True, slots=True)
class Node:
    """outs = fn(*ins), for one lane; `fn` gives a list."""

    fn: Callable[..., Any]
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    linear: bool  # the pullback gives zero for zero, whatever the values are (see `only_linear`)
    selects: bool = False  # the second or third of `ins` by the first: a lane needs only the one that it gets
    costly: bool = False  # it computes exponentials or the like of each element
    shifts: bool = False  # it moves elements to other places (see `lane_pieces.py`)


@dataclass(frozen=True, slots=True)
class Load:
    """`out` = a part of a register, at the indices `ins`."""

    register: str
    eqn: Any
    ins: tuple[int, ...]
    out: int


@dataclass(frozen=True, slots=True)
class Store:
    """A write of a part of a register; `ins` are the indices and the stored value."""

    register: str
    eqn: Any
    ins: tuple[int, ...]


Step = Node | Load | Store


@dataclass(frozen=True, slots=True)
class Body:
    """A block in single assignment.

    `deferred` are values that depend on deferred variables and on nothing else that has cotangents. Trips of the
    backward machine do not compute their cotangents. They stop at the `edge`: values whose cotangents the trips compute
    anyway, and from which those of `deferred` values are computed later.
    """

    sources: tuple[PullbackSource, ...]
    steps: tuple[Step, ...]
    updates: Mapping[str, int]  # floating registers that get a new value
    pushes: Mapping[str, int]  # floating slots
    outputs: Mapping[int, ArrayType]  # floating values in `updates`, in `pushes`, and of stores
    deferred: frozenset[int]
    edge: Mapping[int, ArrayType]
    expensive: tuple[ExpensiveResult, ...]  # results that may be recorded

    def stores(self) -> Iterator[Store]:
        """The steps that write a part of a register."""
        yield from (step for step in self.steps if isinstance(step, Store))


def body_of(code: BlockCode, deferred: frozenset[str] = frozenset()) -> Body:
    """Translate a block into single assignment, cut where it meets `deferred` variables: large shared ones, whose
    cotangents are not summed trip by trip."""
    whole: set[str] = set()
    while True:  # a register that is used in part and as a whole is used as a whole
        builder = _Builder(code, frozenset(whole), deferred).build()
        if not builder.mixed:
            return builder.body()
        whole |= builder.mixed


@dataclass
class _Builder:
    code: BlockCode
    whole: frozenset[str]  # registers that are not accessed by index in this block
    deferred: frozenset[str]  # variables
    # Numbers of values, by what they depend on:
    uniform: set[int] = field(default_factory=set)  # on nothing but shared values
    uniform_deferred: set[int] = field(default_factory=set)  # those of them that depend on deferred variables
    of_lanes: set[int] = field(default_factory=set)  # on floating numbers of each lane
    of_deferred: set[int] = field(default_factory=set)  # on deferred variables, and on integers of each lane
    edge: dict[int, ArrayType] = field(default_factory=dict)
    expensive: list[ExpensiveResult] = field(default_factory=list)
    env: dict[str, int] = field(default_factory=dict)
    in_place: set[str] = field(default_factory=set)  # registers accessed by index, and not replaced as a whole so far
    sources: list[PullbackSource] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    pushes: dict[str, int] = field(default_factory=dict)
    mixed: set[str] = field(default_factory=set)  # registers accessed by index and as a whole
    count: int = 0

    def build(self) -> _Builder:
        for v in self.code.shared:
            self._source(SharedValue, v)
        for v in self.code.reads:
            if self._accessed_by_index(v):
                self.in_place.add(v)
            else:
                self._source(ReadRegister, v)
        for position, op in enumerate(self.code.block.ops):
            match op:
                case Push(dst=dst, src=src):
                    self.pushes[dst] = self._value(src)
                case Pop(dst=dst):
                    self._source(PoppedSlot, dst)
                case Print():
                    pass
                case Move(dst=dst, src=src):
                    self._set(dst, self._value(src))
                case Prim():
                    self._prim(position, op)
                case _:
                    is_select = isinstance(op, Select)  # linear in the values that it chooses from
                    ins = tuple(map(self._value, reads(op)))
                    self._node(function_of(op), ins, writes(op), linear=is_select, selects=is_select)
        return self

    def body(self) -> Body:
        updates = {v: self.env[v] for v in self.code.updates if v not in self.in_place and self._is_float(v)}
        pushes = {v: number for v, number in self.pushes.items() if self._is_float(v)}
        outputs = {number: self.code.type(v) for v, number in (*updates.items(), *pushes.items())}
        for step in self.steps:
            if isinstance(step, Store) and jnp.issubdtype((aval := step.eqn.invars[2].aval).dtype, jnp.inexact):
                outputs.setdefault(step.ins[1], ArrayType(str(aval.dtype), tuple(aval.shape)))
        deferred = frozenset((self.of_deferred | self.uniform_deferred) - self.of_lanes)
        # The cotangents of outputs are known before a trip undoes any step.
        edge = {**self.edge, **{n: type_ for n, type_ in outputs.items() if n in deferred}}
        sources, steps = tuple(self.sources), tuple(self.steps)
        return Body(sources, steps, updates, pushes, outputs, deferred, edge, tuple(self.expensive))

    def _is_float(self, v: str) -> bool:
        return is_float(self.code.type(v))

    def _accessed_by_index(self, v: str) -> bool:
        """Whether every use of this register, until it gets another value, reads or writes a part of it."""
        return v in self.code.parted and v not in self.whole

    def _new(self) -> int:
        self.count += 1
        return self.count - 1

    def _set(self, name: str, number: int) -> None:
        self.in_place.discard(name)
        self.env[name] = number

    def _source(self, kind: type[ReadRegister | PoppedSlot | SharedValue], name: str) -> None:
        number, type_ = self._new(), self.code.type(name)
        self.sources.append(kind(name, number, type_))
        if kind is SharedValue:
            self.uniform.add(number)
            self.uniform_deferred |= {number} if name in self.deferred else set()
        elif is_float(type_):
            self.of_lanes.add(number)
        self._set(name, number)

    def _value(self, name: str) -> int:
        if name in self.in_place:
            # `body_of` starts again without it; until then any number will do.
            self.mixed.add(name)
            return self.env.setdefault(name, self._new())
        return self.env[name]

    def _node(
        self, fn: Callable[..., Any], ins: tuple[int, ...], dsts: Sequence[str], linear: bool, selects: bool = False
    ) -> None:
        outs = tuple(self._new() for _ in dsts)
        self._step(Node(fn, ins, outs, linear, selects), [self.code.type(dst) for dst in dsts])
        for dst, out in zip(dsts, outs, strict=True):
            self._set(dst, out)

    def _prim(self, position: int, op: Prim) -> None:
        cut = self.code.cuts.get(position)
        registers = [] if cut is None else [op.expr.ins[k] for k in cut.registers]
        if cut is not None and all(v in self.in_place for v in registers) and _reversible(cut):
            self._cut(position, op, cut)
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
        meets_deferred = any(i in self.uniform_deferred or i in self.of_deferred for i in ins)
        if all(i in self.uniform for i in ins):
            self.uniform |= set(outs)
            self.uniform_deferred |= set(floats) if meets_deferred else set()
        elif any(i in self.of_lanes for i in ins):
            # Trips need the cotangents of these results for the lanes' own numbers, so they stop here.
            self.of_lanes |= set(floats)
            self.edge |= floats if meets_deferred else {}
        elif meets_deferred:
            self.of_deferred |= set(floats)

    def _jaxpr(self, closed: jex.ClosedJaxpr, ins: Sequence[int]) -> list[int]:
        """The values of a jaxpr, cut where it meets shared values, and around expensive equations."""
        plain = inlined(closed)
        env: dict[Any, int] = dict(zip(plain.jaxpr.invars, ins, strict=True))
        uniform = {v for v, n in env.items() if n in self.uniform}
        for part in pieces(plain, uniform, {v for v in uniform if env[v] in self.uniform_deferred}):
            names = tuple(env[v] for v in part.ins)
            outs = tuple(self._new() for _ in part.outs)
            types = [ArrayType(str(v.aval.dtype), tuple(v.aval.shape)) for v in part.outs]
            fn, linear = jex.jaxpr_as_fun(part.closed), only_linear(part.closed.jaxpr)
            costly, shifts = (any(any_of(e, kind) for e in part.closed.jaxpr.eqns) for kind in (COSTLY, SHIFTS))
            self._step(Node(fn, names, outs, linear, costly=costly, shifts=shifts), types)
            env.update(zip(part.outs, outs, strict=True))
            if part.expensive and not set(outs) & self.uniform:
                self.expensive += [ExpensiveResult(str(n), n, type_) for n, type_ in zip(outs, types, strict=True)]
        held = dict(zip(plain.jaxpr.constvars, plain.consts, strict=True))
        return [
            self._constant(v.val, v.aval)
            if isinstance(v, jex.Literal)
            else self._constant(held[v], v.aval)
            if v in held
            else env[v]
            for v in plain.jaxpr.outvars
        ]

    def _constant(self, value: Any, aval: Any) -> int:
        number = self._new()
        type_ = ArrayType(str(aval.dtype), tuple(aval.shape))
        self._step(Node(lambda: [jnp.asarray(value, aval.dtype)], (), (number,), linear=True), [type_])
        return number

    def _cut(self, position: int, op: Prim, cut: Cut) -> None:
        env: dict[Any, int] = {}
        register_of: dict[Any, str] = {}  # variables of the jaxpr that are a register in place
        for k, (var, name) in enumerate(zip(cut.invars, op.expr.ins, strict=True)):
            if k in cut.registers:
                register_of[var] = name
            else:
                env[var] = self._value(name)

        def look(v: Any) -> int:
            return self._constant(v.val, v.aval) if isinstance(v, jex.Literal) else env[v]

        for k, step in enumerate(cut.steps):
            match step:
                case Segment():
                    results = self._jaxpr(step.closed, tuple(look(v) for v in step.ins))
                    env.update(zip(step.outs, results, strict=True))
                case Touch(eqn=eqn):
                    register, ins = register_of[eqn.invars[0]], tuple(look(v) for v in eqn.invars[1:])
                    if step.stores:
                        self.steps.append(Store(register, eqn, ins))
                        register_of[eqn.outvars[0]] = register  # the version after the store is the register too
                    else:
                        env[eqn.outvars[0]] = self._loaded(load_key(position, k), register, eqn, ins)
        stored = {k for k, _ in cut.stored}
        for k, (dst, var) in enumerate(zip(op.dsts, cut.outvars, strict=True)):
            if k not in stored:  # a register that was stored into is in its place already
                if not isinstance(var, jex.Literal) and var in register_of:
                    self.mixed.add(register_of[var])
                    env[var] = self._new()
                self._set(dst, look(var))

    def _loaded(self, key: str, register: str, eqn: Any, ins: tuple[int, ...]) -> int:
        number, aval = self._new(), eqn.outvars[0].aval
        type_ = ArrayType(str(aval.dtype), tuple(aval.shape))
        self.sources.append(LoadedPart(key, number, type_))
        self.of_lanes |= {number} if is_float(type_) else set()
        self.steps.append(Load(register, eqn, ins, number))
        return number


def _reversible(cut: Cut) -> bool:
    """Whether its stores into floating registers can be undone one element at a time."""
    stores = [step.eqn for step in cut.steps if isinstance(step, Touch) and step.stores]
    return all(_undoable(eqn) for eqn in stores if jnp.issubdtype(eqn.invars[0].aval.dtype, jnp.inexact))


def _undoable(eqn: Any) -> bool:
    if eqn.primitive.name == "scatter-add":
        return True
    # A scatter that may hit an element twice leaves the last value: the pullback of the others would have to know.
    once = all(size == 1 for size in eqn.invars[1].aval.shape[:-1])
    return eqn.primitive.name == "scatter" and (once or bool(eqn.params["unique_indices"]))


def is_linear(fn: Any) -> bool:
    """Whether the pullback of a primitive only moves and adds cotangents."""
    closed = getattr(fn, "closed", None)
    return closed is not None and only_linear(closed.jaxpr)
