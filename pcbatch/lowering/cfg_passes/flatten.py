"""Apply inferred types: every variable becomes its array leaves, every primitive its jaxpr.

before:  s: ?                                  after:  s.q: f32[3]   s.n: i32[]
         s = { Point(q + 1.0, n) }                     s.q = { Point(q + 1.0, n) } reads (q)
                                                       s.n = n

Outputs that a jaxpr merely passes on become moves, so repacking a tuple costs nothing. Values known while compiling and
unreachable blocks disappear. Where the dtype of a definition is narrower than that of its variable, a cast is added.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, assert_never

import jax
import jax.extend.core as jex

from pcbatch.data import checks as containers
from pcbatch.data.objects.made import HEAP
from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.analysis.def_use import jump_to
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op, Terminator
from pcbatch.ir.message import Field
from pcbatch.ir.ops import CAPACITY, ERROR, LIMIT, Branch, Check, Expr, Fail, Move, Prim, Print, Select, unset
from pcbatch.ir.text.expr_text import part_text
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.cfg_passes.simplify_cfg import drop_unreachable
from pcbatch.lowering.stack_passes.parallel_moves import parallel_moves
from pcbatch.lowering.stack_passes.stored_into import MIN_SIZE
from pcbatch.lowering.typing import pytree
from pcbatch.lowering.typing.abstract_values import Abstract, Known, leaf_names
from pcbatch.lowering.typing.convert_types import convert
from pcbatch.lowering.typing.format_messages import Show
from pcbatch.lowering.typing.inferred import Inferred, branch_targets
from pcbatch.lowering.typing.jax_types import from_aval, to_aval
from pcbatch.lowering.typing.join_types import differs
from pcbatch.lowering.typing.leaves import Leaves, array_leaves, cast, constant, leaf_move, no_value
from pcbatch.lowering.typing.made_records import functions_with_heap
from pcbatch.lowering.typing.trace import JaxprFn, Traced, TracedCheck, check_outputs, restrict

KINDS = dict.fromkeys(containers.NO_EXCEPTIONS, CAPACITY) | {containers.LIMIT: LIMIT}
"""The kinds of failures that are no exceptions, by their names among checks."""


def run(program: CfgProgram, inferred: Inferred) -> CfgProgram:
    """The typed program, over array leaves. `inferred` must have passed `check_types`."""
    variables: dict[str, list[str]] = {function.name: [] for function in program.functions}
    for function_name, variable in inferred.types:
        variables[function_name].append(variable)
    with_heap = functions_with_heap(program.functions, inferred) if inferred.heap is not None else frozenset[str]()
    typed: list[Function] = []
    for function in program.functions:
        if inferred.reachable.get(function.name):
            uses_heap = function.name == program.entry or function.name in with_heap
            leaves = Leaves(inferred, function.name, variables[function.name], uses_heap)
            typed.append(_Flattener(program, function, inferred, leaves, with_heap).function())
    return CfgProgram(program.entry, tuple(typed))


class _Flattener:
    """Flattens one function."""

    def __init__(
        self, program: CfgProgram, function: Function, inferred: Inferred, leaves: Leaves, with_heap: frozenset[str]
    ) -> None:
        self.program, self.source, self.inferred = program, function, inferred
        self.leaves, self.types, self.fresh, self.abstract = leaves, leaves.types, leaves.fresh, leaves.abstract
        self.with_heap = with_heap  # the functions that have the records as a parameter and a result
        self.show = Show(function.name, inferred.types)

    def results(self) -> tuple[str, ...]:
        """The leaves of the results; there are none if the function never returns."""
        name = self.source.name
        return self.leaves.of([r for r in self.source.results if (name, r) in self.inferred.types])

    def function(self) -> Function:
        reachable = self.inferred.reachable[self.source.name]
        blocks = drop_unreachable(tuple(self.block(block) for block in self.source.blocks if block.label in reachable))
        entry = self.source.name == self.program.entry
        if entry:
            made = tuple(no_value(leaf, self.types[leaf], self.source.loc) for leaf in self.leaves.heap)
            blocks = (replace(blocks[0], ops=(*made, *blocks[0].ops)), *blocks[1:])
        heap = self.leaves.heap if self.source.name in self.with_heap and not entry else ()
        for temp, name in self.fresh.origins.items():
            self.types.setdefault(temp, self.types[name] if name in self.types else self.types[temp])
        return replace(
            self.source,
            params=self.leaves.of(self.source.params) + self.leaves.tables + heap,
            results=self.results() + heap,
            blocks=blocks,
            types=self.types,
        )

    def block(self, block: Block) -> Block:
        ops: list[Op] = []
        for k, op in enumerate(block.ops):
            match op:
                case Prim() if op.expr.fn is unset:
                    ops += self.unset(op.dsts[0], op.loc)
                case Prim():
                    ops += self.prim(op, self.inferred.traced.get((self.source.name, block.label, k)))
                case Move():
                    ops += self.assign(op.dst, op.src, self.abstract(op.src), op.loc)
                case Call():
                    ops += self.call(op)
                    if not self.inferred.returns(op):
                        return Block(block.label, tuple(ops), no_way_back(op))
                case Print():
                    ops.append(Print(self.show(op.message), op.loc))
                case Select() | Check():
                    raise NotImplementedError("selections and checks are made after type inference")
                case _:
                    assert_never(op)
        terminator = self.terminator(block.terminator)
        return Block(block.label, tuple(ops), terminator)

    def unset(self, name: str, loc: Loc | None) -> list[Op]:
        """Operations that give a variable without a value zeros; nothing reads them."""
        value = self.inferred.types.get((self.source.name, name))
        return [] if value is None else [no_value(leaf, type_, loc) for leaf, type_ in array_leaves(name, value)]

    def terminator(self, terminator: Terminator) -> Terminator:
        if isinstance(terminator, Fail):
            return replace(terminator, message=self.show(terminator.message))
        if not isinstance(terminator, Branch):
            return terminator
        cond = self.inferred.types.get((self.source.name, terminator.cond))
        targets = branch_targets(terminator, cond)
        if len(targets) == 1:
            return jump_to(targets[0])
        return replace(terminator, cond=self.leaves.of([terminator.cond])[0])

    def prim(self, op: Prim, traced: Traced | None) -> list[Op]:
        """Flatten a primitive: each leaf of a result is passed on, computed, or a constant."""
        assert traced is not None, op
        if traced.heap is not None:
            op, traced = replace(op, dsts=(*op.dsts, HEAP)), replace(traced, outs=(*traced.outs, traced.heap))
        wider = {dst: out for dst, out in zip(op.dsts, traced.outs, strict=True) if differs(out, self.abstract(dst))}
        if wider:
            temps = {dst: self.leaves.temporary(dst, out) for dst, out in wider.items()}
            ops = self._prim(replace(op, dsts=tuple(temps.get(dst, dst) for dst in op.dsts)), traced)
            return ops + [part for dst, temp in temps.items() for part in self.convert(dst, temp, op.loc)]
        return self._prim(op, traced)

    def _prim(self, op: Prim, traced: Traced) -> list[Op]:
        """Flatten a primitive that gives values with the structures of its variables."""
        in_leaves = self.leaves.of(op.expr.ins) + (self.leaves.tables if traced.tables else ())
        in_leaves += () if traced.heap is None else self.leaves.heap
        outvars = traced.closed.jaxpr.outvars
        invars = _passed_on(traced.closed.jaxpr)
        moves: list[tuple[str, str]] = []
        computed: list[tuple[str, int, ArrayType | None]] = []  # leaf, output of the jaxpr, type to cast it to
        constants: list[Op] = []
        position = 0  # among the outputs of the jaxpr, which known leaves are none of
        for dst, value in zip(op.dsts, traced.outs, strict=True):
            target = self.abstract(dst)
            for leaf, want, have in zip(leaf_names(dst, target), target.leaves, value.leaves, strict=True):
                if isinstance(have, Known):
                    if isinstance(want, ArrayType):  # it joins arrays of other definitions
                        constants.append(constant(leaf, have, want, op.loc))
                    continue
                var = outvars[position]
                assert isinstance(want, ArrayType)
                same = want.dtype == have.dtype
                if isinstance(var, jex.Var) and var in invars and same:
                    moves.append((leaf, in_leaves[invars[var]]))
                else:
                    computed.append((leaf, position, None if same else want))
                position += 1
        checks = self.checks(op, traced, computed)
        return [*self._sequence(op, traced, in_leaves, moves, computed, constants), *checks]

    def checks(self, op: Prim, traced: Traced, computed: list[tuple[str, int, ArrayType | None]]) -> list[Op]:
        """The checks of a primitive; adds what they read to the leaves that it computes."""
        checks: list[Op] = []

        def leaf(position: int) -> str:
            name = self.fresh("check")
            self.types[name] = from_aval(traced.closed.out_avals[position])
            computed.append((name, position, None))
            return name

        for check in traced.checks:
            failed = leaf(check.failed)
            message = tuple(part if isinstance(part, str) else Field(leaf(part)) for part in check.message)
            kind = KINDS.get(check.exception, ERROR)
            checks.append(Check(failed, kind, check.exception, message, op.loc))
        return checks

    def _sequence(
        self,
        op: Prim,
        traced: Traced,
        in_leaves: tuple[str, ...],
        moves: list[tuple[str, str]],
        computed: list[tuple[str, int, ArrayType | None]],
        constants: list[Op],
    ) -> list[Op]:
        """Order the parts so that each reads the values from before the operation."""
        # Sources that this operation overwrites itself are saved first.
        written = {leaf for leaf, _, _ in computed} | {c.dsts[0] for c in constants if isinstance(c, Prim)}
        pairs = [(dst, src) for dst, src in moves if src in written]
        late = {src: self.fresh(src) for _, src in pairs}
        saved: list[Op] = [Move(temp, src, op.loc) for src, temp in late.items()]
        before, after = parallel_moves([(d, late.get(s, s)) for d, s in moves], self.fresh, op.loc)
        prims: list[Op] = []
        if computed:
            part, used = restrict(traced.closed, [k for _, k, _ in computed])
            fn = JaxprFn(part, [cast for _, _, cast in computed])
            whole = not moves and not constants
            of_part = partial(part_text, op, [leaf for leaf, _, _ in computed], whole)
            source = op.expr.written
            if source is not None:
                source = replace(source, text=of_part(source.text), whole=of_part(source.whole))
            expr = Expr(of_part(op.expr.text), tuple(in_leaves[k] for k in used), fn, source)
            prims.append(Prim(tuple(leaf for leaf, _, _ in computed), expr, op.loc))
        return [*saved, *before, *prims, *constants, *after]

    def convert(self, dst: str, src: str, loc: Loc | None) -> list[Op]:
        """Operations for `dst = src` where the type of `dst` has another structure, as a list of the lane has."""
        have, want, found = self.abstract(src), self.abstract(dst), list[TracedCheck]()

        def fn(*arrays: Any) -> list[Any]:
            with containers.collecting() as made:
                leaves, _ = pytree.flatten(convert(have.rebuild(list(arrays)), want))
            outs = [leaf for leaf, type_ in zip(leaves, want.leaves, strict=True) if isinstance(type_, ArrayType)]
            return outs + check_outputs(made, found, len(outs))

        closed = jax.make_jaxpr(fn)(*[to_aval(leaf) for leaf in have.arrays])
        return self.prim(Prim((dst,), Expr(src, (src,)), loc), Traced(closed, (want,), checks=tuple(found)))

    def assign(self, dst: str, src: str, value: Abstract, loc: Loc | None) -> list[Op]:
        """Operations for `dst = src`, variables of any structure, with casts where `dst` is wider."""
        target = self.abstract(dst)
        if differs(value, target):
            return self.convert(dst, src, loc)
        ops: list[Op] = []
        sources, dsts = leaf_names(src, value), leaf_names(dst, target)
        for to, want, have_name, have in zip(dsts, target.leaves, sources, value.leaves, strict=True):
            if isinstance(want, ArrayType):
                ops.append(leaf_move(to, want, have_name, have, loc))
        return ops

    def call(self, op: Call) -> list[Op]:
        callee = self.program.function(op.func)
        ops: list[Op] = []
        args: list[str] = []
        for param, arg in zip(callee.params, op.args, strict=True):
            want = self.abstract(param, callee.name)
            have = self.abstract(arg)
            if differs(have, want):
                arg, source, have = self.leaves.temporary(arg, want), arg, want
                ops += self.convert(arg, source, op.loc)
            for leaf, w, h in zip(leaf_names(arg, have), want.leaves, have.leaves, strict=True):
                if isinstance(w, ArrayType):
                    args.append(self._argument(leaf, w, h, op.loc, ops))
        after: list[Op] = []
        dsts: list[str] = []
        for dst, result in zip(op.dsts, callee.results, strict=True):
            if (callee.name, result) not in self.inferred.types:
                continue  # it never returns
            have = self.abstract(result, callee.name)
            want = self.abstract(dst)
            if differs(have, want):
                temp = self.leaves.temporary(dst, have)
                after += self.convert(dst, temp, op.loc)
                dsts += self.leaves.of([temp])
                continue
            for leaf, w, h in zip(leaf_names(dst, want), want.leaves, have.leaves, strict=True):
                dsts += self._result(leaf, w, h, op.loc, after)
        heap = self.leaves.heap if op.func in self.with_heap else ()
        return [*ops, Call((*dsts, *heap), op.func, (*args, *self.leaves.tables, *heap), op.loc), *after]

    def _argument(self, leaf: str, want: ArrayType, have: ArrayType | Known, loc: Loc | None, ops: list[Op]) -> str:
        if isinstance(have, ArrayType) and have.dtype == want.dtype:
            return leaf
        temp = self.fresh(leaf)
        self.types[temp] = want
        ops.append(leaf_move(temp, want, leaf, have, loc))
        return temp

    def _result(
        self, leaf: str, want: ArrayType | Known, have: ArrayType | Known, loc: Loc | None, after: list[Op]
    ) -> list[str]:
        if isinstance(have, Known):
            if isinstance(want, ArrayType):
                after.append(constant(leaf, have, want, loc))
            return []
        assert isinstance(want, ArrayType)
        if have.dtype == want.dtype:
            return [leaf]
        temp = self.fresh(leaf)
        self.types[temp] = have
        after.append(cast(leaf, temp, have, want, loc))
        return [temp]


def _passed_on(jaxpr: Any) -> dict[Any, int]:
    """Return the variables of a jaxpr that are inputs, with their positions: large arrays whose weak type ends, too.

    That changes nothing in an array; as an operation it would keep the two from sharing a register.
    """
    positions = {v: k for k, v in enumerate(jaxpr.invars)}
    for eqn in jaxpr.eqns:
        source = eqn.invars[0] if eqn.primitive.name == "convert_element_type" else None
        if isinstance(source, jex.Var) and source in positions:
            have: Any = source.aval
            if have.size >= MIN_SIZE and have.dtype == eqn.outvars[0].aval.dtype:
                positions[eqn.outvars[0]] = positions[source]
    return positions


def no_way_back(call: Call) -> Fail:
    """Return the terminator of a block after a call that never returns; no lane reaches it."""
    return Fail(ERROR, "RuntimeError", (f"@{call.func} returned",), call.loc)
