"""Split loops: what a round computes of one row of a shared array alone is computed ahead, for all rows at once.

before:  func @rnn(xs, w, u, h):                     after:  func @rnn(xs, w, u, h):
         bb0: i = { 0 }; jump bb1                            bb0: ahead = { jax.vmap(lambda x: w @ x)(xs) }
         bb1: t = { i < 10 }                                      i = { 0 }; jump bb1
              branch t, bb2, return                          bb1: t = { i < 10 }
         bb2: h = { jnp.tanh(w @ xs[i] + u @ h) }                 branch t, bb2, return
              i = { i + 1 }                                  bb2: at = { i }; row = { ahead[at] }
              jump bb1                                            h = { jnp.tanh(row + u @ h) }
                                                                  i = { i + 1 }; jump bb1

After ACRoBat (Fegade, Chen, Gibbons, Mowry, MLSys 2024), which takes products of inputs out of recursions. `xs`, `w`
and so `ahead` are the same for all lanes: `hoist_uniform`, and `shared_values` for tasks, compute `ahead` before the
machine starts, once for all lanes, where each lane would compute every row for itself.

A function of a row commutes with reading it, whatever the index, so no bounds need to be known: both reads clamp it
alike. What might not end, or asks the host, stays. Whether it pays depends on how many rows lanes read: the index must
be one that each round moves by one, of a loop that ends only by its own counters, and the read must be made in each
round. So one lane reads about as many rows as there are, and all lanes read the same ones. What is saved in a round
must be worth much more than to read its result, and results must not take much more room than rows.

Arrays that lanes have each for themselves are left alone. There the product ahead has as many rows as the products of
all rounds together, and more where loops end early: on CPU, from some 16 lanes on, that takes longer
(docs/users/performance.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.ir.analysis.loops import loops
from pcbatch.ir.cfg import Block, CfgProgram, Function, Op
from pcbatch.ir.names import Fresh
from pcbatch.ir.ops import Expr, Move, Prim
from pcbatch.ir.roles import writes
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.constants import assigned_again, shared_values
from pcbatch.lowering.analysis.cost import inner_jaxprs, jaxpr_cost, may_not_end
from pcbatch.lowering.analysis.counted_loops import moving_variables
from pcbatch.lowering.cfg_passes import dead_code
from pcbatch.lowering.jaxpr_passes.parts import part
from pcbatch.lowering.typing.jax_types import from_aval, to_aval
from pcbatch.lowering.typing.trace import JaxprFn

LEAST = 400.0  # cost of what a round saves, in about one arithmetic operation each
PER_ELEMENT = 8.0  # the same for each element of the result, which the round reads instead
WIDER, SMALL = 4, 2**16  # results have at most so many times the elements of their rows, or so many in all
MOST = 2**26  # elements of all results


def run(program: CfgProgram, shared: Collection[str]) -> CfgProgram:
    """Split the loops of a typed program; `shared` are the parameters of the entry that all lanes share."""
    if not shared or not any(loops(f) for f in program.functions):
        return program
    known, _ = shared_values(program, shared)
    functions = tuple(_Splitting(f, {v for g, v in known if g == f.name}).run() for f in program.functions)
    new = replace(program, functions=functions)
    return program if new == program else dead_code.run(new)


@dataclass(frozen=True, slots=True)
class _Row:
    """A value that is a row of a shared array, at an index that is a variable of the program."""

    array: str
    at: str


@dataclass(frozen=True, slots=True)
class _Read:
    """A value in the jaxpr of a primitive that is a row of a shared array.

    Attributes:
        array: the variable that holds the array.
        size: how many rows it has.
        at: the index: a variable of the jaxpr, or the name of one of the program.
        primitive: the primitive that reads it.
    """

    array: str
    size: int
    at: Any
    primitive: Any


@dataclass(slots=True)
class _Splitting:
    """The rewriting of one function.

    Attributes:
        function: the function.
        shared: its variables that have one value in all lanes and activations.
        types: the types of its variables, new ones included.
        ahead: the operations that compute what is split off.
    """

    function: Function
    shared: set[str]
    types: dict[str, ArrayType | None] = field(init=False)
    ahead: list[Prim] = field(default_factory=list)
    _fresh: Fresh = field(init=False)
    _indices: dict[str, _Read] = field(default_factory=dict)  # variables that hold the index of such a read

    def __post_init__(self) -> None:
        self.types = dict(self.function.types)
        self._fresh = Fresh({*self.types})

    def run(self) -> Function:
        """Return the function with its loops split."""
        first = self.function.blocks[0]
        moving = moving_variables(self.function)
        at_hand = self._at_hand()
        if not any(moving.values()) or not at_hand or any(first.label in loop.body for loop in loops(self.function)):
            return self.function
        blocks = [self._block(b, moving[b.label], at_hand) if moving[b.label] else b for b in self.function.blocks]
        if not self.ahead:
            return self.function
        blocks[0] = replace(first, ops=(*first.ops, *self.ahead))
        return replace(self.function, blocks=tuple(blocks), types=self.types)

    def _at_hand(self) -> set[str]:
        """The shared variables that have their only value at the end of the first block."""
        first = (v for op in self.function.blocks[0].ops for v in writes(op))
        return self.shared.intersection((*self.function.params, *first)).difference(assigned_again(self.function))

    def _block(self, block: Block, moving: Collection[str], at_hand: Collection[str]) -> Block:
        ops: list[Op] = []
        rows: dict[str, _Row] = {}
        same = {v: v for v in moving}  # variables with the value that a moving one has at the top of the block
        for op in block.ops:
            if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn):
                inside = _Inside(op, at_hand, rows, same, self._indices)
                while (value := inside.chosen()) is not None:
                    op, before = self._split(op, inside, value)
                    ops += before
                    inside = _Inside(op, at_hand, rows, same, self._indices)
                new_rows = self._rows(op, inside, ops)
            elif isinstance(op, Move):
                new_rows = {op.dst: rows[op.src]} if op.src in rows else {}
            else:
                new_rows = {}
            follows = {op.dst: same[op.src]} if isinstance(op, Move) and op.src in same else {}
            rows = {v: row for v, row in rows.items() if v not in writes(op)} | new_rows
            steps = isinstance(op, Prim) and op.dsts == op.expr.ins  # of a moving variable: still one
            same = same if steps else {v: w for v, w in same.items() if v not in writes(op)} | follows
            ops.append(op)
        return replace(block, ops=tuple(ops))

    def _rows(self, op: Prim, inside: _Inside, ops: list[Op]) -> dict[str, _Row]:
        """The results of a primitive that are rows as they stand; their index is kept before it."""
        found = {}
        for dst, var in inside.plain_rows():
            read = inside.reads[var]
            found[dst] = _Row(read.array, self._index(op, read, ops))
        return found

    def _index(self, op: Prim, read: _Read, ops: list[Op]) -> str:
        """The variable that holds the index of a read, which an operation computes if it is inside a primitive."""
        if isinstance(read.at, str):
            return read.at
        assert isinstance(op.expr.fn, JaxprFn)
        name = self._new("at", read.at.aval)
        ops.append(_computing(op, name, read.at, {}))
        self._indices[name] = read
        return name

    def _split(self, op: Prim, inside: _Inside, value: Any) -> tuple[Prim, list[Op]]:
        """The primitive that is left without the computation of a value, and what comes before it."""
        assert isinstance(op.expr.fn, JaxprFn)
        bases = inside.bases(value)
        read = inside.reads[bases[0]]
        before: list[Op] = []
        at = self._index(op, read, before)
        ahead = self._ahead(op, inside, value, bases)
        row = self._new("row", value.aval)
        type_, index = from_aval(value.aval), self.types[at]
        assert index is not None
        table = to_aval(ArrayType(type_.dtype, (read.size, *type_.shape)))

        def one_row(table: Any, at: Any) -> Any:
            # As the row is read: `dynamic_slice` of JAX would count negative numbers from the end.
            starts = (at, *[jnp.zeros((), at.dtype)] * len(type_.shape))
            return jnp.reshape(read.primitive.bind(table, *starts, slice_sizes=(1, *type_.shape)), type_.shape)

        closed = jax.make_jaxpr(one_row)(table, to_aval(index))
        before.append(Prim((row,), Expr(f"{ahead}[{at}]", (ahead, at), JaxprFn(closed, [None])), op.loc))
        closed, used = part(op.expr.fn.closed, op.expr.fn.closed.jaxpr.outvars, [value])
        names = dict(zip(op.expr.fn.closed.jaxpr.invars, op.expr.ins, strict=True)) | {value: row}
        fn = JaxprFn(closed, op.expr.fn.casts, op.expr.fn.beside_product)
        return replace(op, expr=replace(op.expr, ins=tuple(names[v] for v in used), fn=fn)), before

    def _ahead(self, op: Prim, inside: _Inside, value: Any, bases: Sequence[Any]) -> str:
        """The variable that holds a value for all rows."""
        assert isinstance(op.expr.fn, JaxprFn)
        operands = op.expr.fn.closed.jaxpr.invars
        closed, used = part(op.expr.fn.closed, [value], [base for base in bases if base not in operands])
        names = dict(zip(operands, op.expr.ins, strict=True))
        names |= {base: inside.reads[base].array for base in bases}
        of_rows = [v in bases for v in used]
        one = jex.jaxpr_as_fun(closed)

        def row(*values: Any) -> Any:
            shaped = [
                jnp.reshape(x, v.aval.shape) if is_row else x
                for x, v, is_row in zip(values, used, of_rows, strict=True)
            ]
            return one(*shaped)[0]

        ins = [names[v] for v in used]
        axes = tuple(0 if is_row else None for is_row in of_rows)
        types = [self.types[v] for v in ins]
        all_rows = jax.make_jaxpr(jax.vmap(row, in_axes=axes))(*(to_aval(t) for t in types if t is not None))
        name = self._new("ahead", all_rows.out_avals[0])
        arrays = ", ".join(dict.fromkeys(inside.reads[base].array for base in bases))
        text = f"jax.vmap(lambda row: {op.expr.text})({arrays})"
        self.ahead.append(Prim((name,), Expr(text, tuple(ins), JaxprFn(all_rows, [None])), op.loc))
        return name

    def _new(self, name: str, aval: Any) -> str:
        new = self._fresh(name)
        self.types[new] = from_aval(aval)
        return new


class _Inside:
    """The values in the jaxpr of a primitive that are functions of one row of shared arrays, and of shared values.

    Attributes:
        reads: the values that are rows.
        groups: of each such function, the read at whose index its rows stand.
    """

    def __init__(
        self,
        op: Prim,
        at_hand: Collection[str],
        rows: Mapping[str, _Row],
        same: Mapping[str, str],
        indices: Mapping[str, _Read],
    ) -> None:
        assert isinstance(op.expr.fn, JaxprFn)
        self.op, self.closed = op, op.expr.fn.closed
        self.reads: dict[Any, _Read] = {}
        self.groups: dict[Any, _Read] = {}
        self._shared: set[Any] = {*self.closed.jaxpr.constvars}
        self._arrays: dict[Any, str] = {}
        self._follows: dict[Any, str] = {}  # numbers that are functions of a moving variable and constants
        self._alike: dict[Any, Any] = {}  # what computes such a number -> the first variable that has it
        self._first: dict[Any, Any] = {}
        self._made: dict[Any, Any] = {v: eqn for eqn in self.closed.jaxpr.eqns for v in eqn.outvars}
        for v, name in zip(self.closed.jaxpr.invars, op.expr.ins, strict=True):
            if name in at_hand:
                self._shared.add(v)
                self._arrays[v] = name
            elif name in rows:
                origin = indices[rows[name].at]
                self.reads[v] = self.groups[v] = replace(origin, array=rows[name].array, at=rows[name].at)
            elif name in same:
                self._follows[v] = same[name]
        for eqn in self.closed.jaxpr.eqns:
            self._equation(eqn)

    def _equation(self, eqn: Any) -> None:
        if eqn.effects or eqn.primitive.name.startswith(("random_", "threefry")) or _unsafe(eqn):
            return
        operands = [v for v in eqn.invars if not isinstance(v, jex.Literal)]
        if all(v in self._shared for v in operands):
            self._shared.update(eqn.outvars)
        elif (read := self._read(eqn)) is not None:
            self.reads[eqn.outvars[0]] = self.groups[eqn.outvars[0]] = read
        elif all(v in self._shared or v in self.groups for v in operands):
            found = {self._key(self.groups[v]) for v in operands if v in self.groups}
            if len(found) == 1:
                group = next(self.groups[v] for v in operands if v in self.groups)
                self.groups.update(dict.fromkeys(eqn.outvars, group))
        elif all(v in self._shared or v in self._follows for v in operands) and not eqn.outvars[0].aval.shape:
            names = {self._follows[v] for v in operands if v in self._follows}
            if len(names) == 1:
                self._follows.update(dict.fromkeys(eqn.outvars, names.pop()))
                alike = tuple(str(v) if isinstance(v, jex.Literal) else self._first.get(v, v) for v in eqn.invars)
                key = (eqn.primitive.name, str(eqn.params), alike)
                self._first[eqn.outvars[0]] = self._alike.setdefault(key, eqn.outvars[0])

    @staticmethod
    def _key(read: _Read) -> tuple[Any, int]:
        return read.at, read.size

    def _read(self, eqn: Any) -> _Read | None:
        """The read of a row that an equation is."""
        if eqn.primitive.name != "dynamic_slice":
            return None
        array, at, *others = eqn.invars
        shape, sizes = array.aval.shape, eqn.params["slice_sizes"]
        whole = sizes == (1, *shape[1:]) and shape[0] > 1
        starts = all(isinstance(v, jex.Literal) or v in self._shared for v in others)  # anything: they are clamped to 0
        if not whole or not starts or array not in self._arrays or at not in self._follows:
            return None
        return _Read(self._arrays[array], shape[0], self._first.get(at, at), eqn.primitive)

    def bases(self, value: Any) -> list[Any]:
        """The rows that a value is computed of."""
        found: dict[Any, None] = {}
        work = [value]
        while work:
            v = work.pop()
            if v in self.reads:
                found[v] = None
            elif v in self.groups:
                work += [w for w in self._made[v].invars if not isinstance(w, jex.Literal)]
        return list(found)

    def plain_rows(self) -> Iterator[tuple[str, Any]]:
        """The results that are rows, each with the read that it is."""
        assert isinstance(self.op.expr.fn, JaxprFn)
        jaxpr, casts = self.closed.jaxpr, self.op.expr.fn.casts
        for dst, var, cast in zip(self.op.dsts, jaxpr.outvars, casts, strict=True):
            if cast is not None or isinstance(var, jex.Literal):
                continue
            while var in self._made and self._made[var].primitive.name in ("squeeze", "reshape"):
                var = self._made[var].invars[0]
            if var in self.reads and not isinstance(self.reads[var].at, str):
                yield dst, var

    def chosen(self) -> Any | None:
        """The first value that is better computed ahead; None if there is none."""
        reading = [v for eqn in self.closed.jaxpr.eqns if eqn.outvars[0] not in self.groups for v in eqn.invars]
        used = {v for v in (*reading, *self.closed.jaxpr.outvars) if not isinstance(v, jex.Literal)}
        for eqn in self.closed.jaxpr.eqns:
            for v in eqn.outvars:
                if v in self.groups and v not in self.reads and v in used and self._pays(v):
                    return v
        return None

    def _pays(self, value: Any) -> bool:
        """Whether it pays to compute a value ahead."""
        bases = self.bases(value)
        elements, rows = value.aval.size, sum(base.aval.size for base in bases)
        in_all = elements * self.groups[value].size
        if in_all > (SMALL if elements > WIDER * rows else MOST):
            return False
        inner = [base for base in bases if base not in self.closed.jaxpr.invars]
        cost = jaxpr_cost(part(self.closed, [value], inner)[0].jaxpr)
        return bool(cost >= max(LEAST, PER_ELEMENT * elements))


def _unsafe(eqn: Any) -> bool:
    return eqn.primitive.name == "while" or any(map(may_not_end, inner_jaxprs(eqn)))


def _computing(op: Prim, name: str, value: Any, given: Mapping[Any, str]) -> Prim:
    """The primitive that computes one value of another one."""
    assert isinstance(op.expr.fn, JaxprFn)
    closed, used = part(op.expr.fn.closed, [value], [*given])
    names = dict(zip(op.expr.fn.closed.jaxpr.invars, op.expr.ins, strict=True)) | dict(given)
    return replace(
        op, dsts=(name,), expr=replace(op.expr, ins=tuple(names[v] for v in used), fn=JaxprFn(closed, [None]))
    )
