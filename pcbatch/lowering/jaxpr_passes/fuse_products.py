"""Make one product of several with one operand and shared weights, whose weights are put together once, ahead.

before:  i = { jax.nn.sigmoid(w.i @ x) }             after:  prologue: weights = { jnp.concatenate([w.i.T, w.f.T], 1) }
         f = { jax.nn.sigmoid(w.f @ x) }                     p, q = { jnp.split(x @ weights, (8,), -1) }
                                                             i = { jax.nn.sigmoid(p) }
                                                             f = { jax.nn.sigmoid(q) }

The products may stand anywhere in a block, in one primitive or in several, and the operand may be an expression that
each of them writes anew. Weights are what is computed of values that all lanes share, and of constants. A kernel has a
price of its own, which few lanes feel most: four products of 64 x 64 for 8 lanes take a third less time as one.

A weight on the left, `w @ x`, is transposed ahead, also where it stands alone: of lanes together that is a product with
the transposed of `w`, for which XLA's kernel on CPU takes up to three times as long as for rows as they lie in memory
(docs/users/performance.md). Only blocks that are visited again and again are rewritten. Products of several operands
with one weight are left apart: stacking the operands costs what the kernel saves, and more from some 64 lanes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp

from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.names import Fresh
from pcbatch.ir.ops import Expr, Move, Prim, PureOp
from pcbatch.ir.stack import StackProgram, Storage, Var
from pcbatch.ir.tasks import TaskProgram, after_jump, bindings
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.block_frequency import cycles
from pcbatch.lowering.analysis.value_numbers import Inside, Numbering
from pcbatch.lowering.jaxpr_passes.parts import part
from pcbatch.lowering.stack_passes import storage_classes
from pcbatch.lowering.typing.jax_types import from_aval, to_aval
from pcbatch.lowering.typing.trace import JaxprFn

SMALLEST = 64  # elements of a weight: smaller products are no kernel, but loops that XLA writes out
ALONE = 2048  # elements of a weight that is transposed for one product


def run(program: StackProgram) -> StackProgram:
    """Rewrite the blocks that are on a cycle of a program whose calls are lowered."""
    shared = {v for v, var in program.vars.items() if var.storage is Storage.SHARED}
    again = cycles(program)
    fusing = _Fusing(shared, {*program.vars})
    blocks = tuple(
        replace(b, ops=tuple(fusing.block(b.ops))) if again[b.label] and _has_product(b.ops) else b
        for b in program.blocks
    )
    if not fusing.types:
        return program
    vars = {
        **program.vars,
        **{v: Var(t, Storage.SHARED if v in fusing.ahead else None) for v, t in fusing.types.items()},
    }
    prologue = (*program.prologue, *fusing.prologue)
    return storage_classes.run(replace(program, vars=vars, blocks=blocks, prologue=prologue))


def run_tasks(program: TaskProgram) -> TaskProgram:
    """Rewrite the blocks of a program of tasks that several tasks may pass."""
    edges = {b.label: (*after_jump(b), *(label for label, _ in bindings(b))) for b in program.blocks}
    again = [label for label in edges if label in reachable(edges[label], edges)]
    often = reachable(again, edges)
    fusing = _Fusing(program.shared, {*program.types})
    blocks = []
    for block in program.blocks:
        pure = [op for op in block.ops if isinstance(op, PureOp)]
        if block.label in often and _has_product(pure):
            block = replace(block, ops=(*fusing.block(pure), *(op for op in block.ops if not isinstance(op, PureOp))))
        blocks.append(block)
    if not fusing.types:
        return program
    return replace(
        program,
        types={**program.types, **fusing.types},
        shared=(*program.shared, *fusing.ahead),
        blocks=tuple(blocks),
        prologue=(*program.prologue, *fusing.prologue),
    )


def _has_product(ops: Iterable[object]) -> bool:
    return any(eqn.primitive.name == "dot_general" for op in ops for eqn in _eqns(op))


def _eqns(op: object) -> Sequence[Any]:
    return op.expr.fn.closed.jaxpr.eqns if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn) else ()


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of a vector with a weight, in the jaxpr of operation `at` of a block."""

    at: int
    eqn: Any
    operand: Any  # the vector
    weight: Any
    axis: int  # of the weight, along which the product sums
    weight_number: int


Group = list[_Product]


@dataclass(slots=True)
class _Fusing:
    """The rewriting of all blocks of a program.

    Attributes:
        shared: the variables that all lanes share.
        used: all names.
        types: the types of new variables.
        ahead: those of them that the prologue computes.
        prologue: the operations that do.
    """

    shared: Iterable[str]
    used: set[str]
    types: dict[str, ArrayType] = field(default_factory=dict)
    ahead: list[str] = field(default_factory=list)
    prologue: list[PureOp] = field(default_factory=list)
    _weights: dict[Any, str] = field(default_factory=dict)  # those that stand together -> the variable
    _fresh: Callable[[str], str] = field(init=False)
    _numbering: Numbering = field(init=False)

    def __post_init__(self) -> None:
        self._fresh = Fresh(self.used)
        self._numbering = Numbering([*self.shared])

    def block(self, ops: Sequence[Any]) -> list[Any]:
        """Return the operations of a block with fused products."""
        new = list(ops)
        while (group := self._group(new)) is not None:
            new = self._fused(new, *group)
        return new

    def _group(self, ops: Sequence[Any]) -> tuple[Group, list[Inside | None]] | None:
        """The first products of one operand that are better made together, and the values of the block."""
        inside = self._numbering.block(ops)
        groups: dict[Any, Group] = {}
        for at, (op, values) in enumerate(zip(ops, inside, strict=True)):
            if values is None:
                continue
            for eqn in _eqns(op):
                product = _product(at, eqn, values)
                if product is not None:
                    params = tuple(sorted((k, v) for k, v in eqn.params.items() if k != "dimension_numbers"))
                    key = values.numbers[product.operand], str(eqn.invars[0].aval.dtype), params
                    groups.setdefault(key, []).append(product)
        for group in groups.values():
            alone = len({p.weight_number for p in group}) == 1
            if not alone or (group[0].axis == 1 and group[0].weight.aval.size >= ALONE):
                return group, inside
        return None

    def _fused(self, ops: list[Any], group: Group, inside: list[Inside | None]) -> list[Any]:
        """The operations with one product in place of a group."""
        at = group[0].at
        operand, before, given = self._operand(ops, group[0], inside)
        weights: dict[int, _Product] = {}
        for product in group:
            weights.setdefault(product.weight_number, product)
        results = {number: self._new("product", p.eqn.outvars[0].aval) for number, p in weights.items()}
        together = self._together([*weights.values()], ops, inside)
        fused = _product_op(tuple(results.values()), operand, together, [*weights.values()], ops[at].loc)
        new: list[Any] = []
        for k, op in enumerate(ops):
            if k == at:
                new += [*before, fused]
            made = {p.eqn.outvars[0]: results[p.weight_number] for p in group if p.at == k}
            values = inside[k]
            if given is not None and values is not None:  # an operand that is written anew
                number = given[0]
                made |= {v: given[1] for eqn in _eqns(op) for v in eqn.outvars if values.numbers[v] == number}
            new += self._with_given(op, made) if made and k >= at else [op]
        return new

    def _operand(
        self, ops: list[Any], first: _Product, inside: list[Inside | None]
    ) -> tuple[str, list[Prim], tuple[int, str] | None]:
        """The variable that holds the operand, operations that compute it, and its number if they are needed."""
        op, values = ops[first.at], inside[first.at]
        assert values is not None
        closed = op.expr.fn.closed
        if first.operand in closed.jaxpr.invars:
            return op.expr.ins[closed.jaxpr.invars.index(first.operand)], [], None
        name = self._new("operand", first.operand.aval)
        return name, [_part_of(op, (name,), [first.operand])], (values.numbers[first.operand], name)

    def _together(self, products: list[_Product], ops: list[Any], inside: list[Inside | None]) -> str:
        """The variable of the prologue that holds the weights of products side by side."""
        key = tuple((p.weight_number, p.axis) for p in products)
        if key not in self._weights:
            names = [self._weight(p, ops, inside) for p in products]
            axes = [p.axis for p in products]

            def fn(*weights: Any) -> Any:
                rows = [w.T if axis else w for w, axis in zip(weights, axes, strict=True)]
                return jnp.concatenate(rows, 1) if len(rows) > 1 else rows[0]

            closed = jax.make_jaxpr(fn)(*(to_aval(from_aval(p.weight.aval)) for p in products))
            rows = [f"{name}.T" if axis else name for name, axis in zip(names, axes, strict=True)]
            text = f"jnp.concatenate([{', '.join(rows)}], 1)" if len(rows) > 1 else rows[0]
            self._weights[key] = self._ahead("weights", Expr(text, tuple(names), JaxprFn(closed, [None])))
        return self._weights[key]

    def _weight(self, product: _Product, ops: list[Any], inside: list[Inside | None]) -> str:
        """The shared variable that holds a weight."""
        op, values = ops[product.at], inside[product.at]
        assert values is not None
        if product.weight in values.names:
            return values.names[product.weight]
        key = product.weight_number
        if key not in self._weights:
            closed, read = part(op.expr.fn.closed, [product.weight])
            ins = tuple(values.names[v] for v in read)
            self._weights[key] = self._ahead("weight", Expr(op.expr.text, ins, JaxprFn(closed, [None])))
        return self._weights[key]

    def _ahead(self, name: str, expr: Expr) -> str:
        assert isinstance(expr.fn, JaxprFn)
        new = self._new(name, expr.fn.closed.out_avals[0])
        self.ahead.append(new)
        self.prologue.append(Prim((new,), expr))
        return new

    def _new(self, name: str, aval: Any) -> str:
        new = self._fresh(name)
        self.types[new] = from_aval(aval)
        return new

    def _with_given(self, op: Prim, made: dict[Any, str]) -> list[PureOp]:
        """A primitive of which some values are variables now; results that are such are moves."""
        assert isinstance(op.expr.fn, JaxprFn)
        fn = op.expr.fn
        results = list(zip(op.dsts, fn.closed.jaxpr.outvars, fn.casts, strict=True))
        moved = [(dst, v) for dst, v, cast in results if cast is None and not isinstance(v, jex.Literal) and v in made]
        computed = [r for r in results if (r[0], r[1]) not in moved]
        moves = [Move(dst, made[v], op.loc) for dst, v in moved]
        if not computed:
            return [*moves]
        dsts, outvars, casts = zip(*computed, strict=True)
        return [_part_of(op, dsts, outvars, made, casts), *moves]


def _part_of(
    op: Prim,
    dsts: tuple[str, ...],
    outvars: Sequence[Any],
    made: dict[Any, str] | None = None,
    casts: Sequence[ArrayType | None] | None = None,
) -> Prim:
    """The primitive that computes some values of another one, of which those in `made` are variables."""
    assert isinstance(op.expr.fn, JaxprFn)
    made = made or {}
    closed, read = part(op.expr.fn.closed, outvars, [*made])
    names = dict(zip(op.expr.fn.closed.jaxpr.invars, op.expr.ins, strict=True)) | made
    fn = JaxprFn(closed, casts or [None] * len(dsts), beside_product=True)
    return replace(op, dsts=dsts, expr=replace(op.expr, ins=tuple(names[v] for v in read), fn=fn))


def _product(at: int, eqn: Any, values: Inside) -> _Product | None:
    """The product that an equation is, of a vector of the lane with a shared matrix of floating numbers."""
    if eqn.primitive.name != "dot_general":
        return None
    contract, (batch, _) = eqn.params["dimension_numbers"]
    if batch or len(contract[0]) != 1 or any(isinstance(v, jex.Literal) for v in eqn.invars):
        return None
    for weight, operand in ((0, 1), (1, 0)):
        w, x = eqn.invars[weight], eqn.invars[operand]
        fits = w.aval.ndim == 2 and x.aval.ndim == 1 and w.aval.dtype == x.aval.dtype and w.aval.size >= SMALLEST
        if fits and w in values.shared and x not in values.shared and jnp.issubdtype(w.aval.dtype, jnp.floating):
            return _Product(at, eqn, x, w, contract[weight][0], values.numbers[w])
    return None


def _product_op(dsts: tuple[str, ...], operand: str, weights: str, products: list[_Product], loc: Any) -> Prim:
    """The product of a vector with weights that stand side by side, as one result for each of them."""
    first = products[0].eqn
    sizes = [p.eqn.outvars[0].aval.shape[0] for p in products]
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    params = {**first.params, "dimension_numbers": (((0,), (0,)), ((), ()))}
    x = products[0].operand.aval

    def fn(x: Any, w: Any) -> list[Any]:
        all_ = first.primitive.bind(x, w, **params)
        return [jax.lax.slice(all_, (end - size,), (end,)) for size, end in zip(sizes, ends, strict=True)]

    matrix = ArrayType(str(x.dtype), (x.shape[0], ends[-1]))
    closed = jax.make_jaxpr(fn)(to_aval(ArrayType(str(x.dtype), x.shape)), to_aval(matrix))
    text = f"{operand} @ {weights}"
    if len(dsts) > 1:
        text = f"jnp.split({text}, {tuple(ends[:-1])})"
    return Prim(dsts, Expr(text, (operand, weights), JaxprFn(closed, [None] * len(dsts))), loc)
