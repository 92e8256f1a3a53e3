"""Calls whose results are appended to lists: they need not be waited for before the list is read.

    hs = [encode(child) for child in node.children]         hs: array[32, ...], n: its length

    r = call @encode(child)                                  spawn hs at n = encode(child)
    hs, n, full = { append } reads (hs, n, r)                n, full = { append } reads (n)

The operation behind the call must put each result into its own array, at the row that a length tells, and increase that
length, which nothing else does while calls are pending: so each of them has a row of its own. What else it computes
must not depend on results, and the call must not read the list, which the frame holds from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.extend.core as jex
import jax.numpy as jnp
from jax.lax import GatherScatterMode

from pcbatch.ir.analysis.liveness import live_after
from pcbatch.ir.cfg import Call, Function
from pcbatch.ir.ops import Prim
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.jaxpr_passes.parts import part
from pcbatch.lowering.typing.trace import JaxprFn

Site = tuple[str, int]  # label of a block, index of the call in it
UNCHANGED = ("convert_element_type", "broadcast_in_dim", "reshape", "squeeze")


@dataclass(frozen=True, slots=True)
class Store:
    """A call whose results become rows.

    Attributes:
        arrays: the variables of which they become rows, one for each result.
        row: the variable that tells the row, and is larger afterwards.
        rest: the operation behind the call without these arrays.
        values: the variables that are stored: the results, or others that are known.
    """

    arrays: tuple[str, ...]
    row: str
    rest: Prim
    values: tuple[str, ...]


def stored_results(function: Function) -> dict[Site, Store]:
    """Find the calls of a function whose results are appended at once."""
    after = live_after(function)
    found = {}
    for block in function.blocks:
        for k, (op, behind) in enumerate(zip(block.ops, block.ops[1:], strict=False)):
            if isinstance(op, Call) and isinstance(behind, Prim) and isinstance(behind.expr.fn, JaxprFn):
                store = _store(op.dsts, behind, behind.expr.fn, function.types)
                if store is None or after[block.label][k + 1].intersection(op.dsts):
                    continue
                if set(store.arrays).isdisjoint(op.args):  # which become pending with the call
                    found[block.label, k] = store
    rows: dict[tuple[str, ...], set[str]] = {}
    for store in found.values():
        rows.setdefault(store.arrays, set()).add(store.row)
    return {site: store for site, store in found.items() if len(rows[store.arrays]) == 1}


def known_values(function: Function, stores: Mapping[Site, Store]) -> dict[Site, Store]:
    """Find the operations that append known values to lists to which `stores` append results of calls."""
    lists = {(frozenset(store.arrays), store.row): store.arrays for store in stores.values()}
    found = {}
    for block in function.blocks if lists else ():
        for k, op in enumerate(block.ops):
            if (block.label, k - 1) in stores or not isinstance(op, Prim) or not isinstance(op.expr.fn, JaxprFn):
                continue
            store = _store(_stored(op, op.expr.fn), op, op.expr.fn, function.types)
            arrays = None if store is None else lists.get((frozenset(store.arrays), store.row))
            if store is not None and arrays is not None:
                order = [store.arrays.index(v) for v in arrays]
                found[block.label, k] = replace(store, arrays=arrays, values=tuple(store.values[j] for j in order))
    return found


def _stored(op: Prim, fn: JaxprFn) -> tuple[str, ...]:
    """The inputs of an operation that it puts into arrays."""
    names = dict(zip(fn.closed.jaxpr.invars, op.expr.ins, strict=True))
    updates = (eqn.invars[2] for eqn in fn.closed.jaxpr.eqns if eqn.primitive.name == "scatter")
    return tuple(dict.fromkeys(names[v] for v in updates if isinstance(v, jex.Var) and v in names))


def _store(dsts: tuple[str, ...], op: Prim, fn: JaxprFn, types: Mapping[str, ArrayType | None]) -> Store | None:
    """Describe an operation as a store, if it appends all of these variables to lists."""
    jaxpr, ins = fn.closed.jaxpr, op.expr.ins
    if not dsts or len(set(ins)) < len(ins) or not set(dsts) <= set(ins):
        return None
    inputs: dict[str, Any] = dict(zip(ins, jaxpr.invars, strict=True))
    makes = {v: eqn for eqn in jaxpr.eqns for v in eqn.outvars}
    arrays, row = {}, None
    for k, (dst, out) in enumerate(zip(op.dsts, jaxpr.outvars, strict=True)):
        eqn = makes.get(out) if dst in inputs and isinstance(out, jex.Var) else None
        if (
            eqn is None
            or eqn.primitive.name != "scatter"
            or eqn.invars[0] is not inputs[dst]
            or fn.casts[k] is not None
        ):
            continue
        result = next((v for v in dsts if inputs[v] is eqn.invars[2]), None)
        length = _source(eqn.invars[1], makes, inputs)
        if result is None or result in arrays or length is None or row not in (None, length) or not _is_row(eqn):
            return None
        arrays[result], row = dst, length
    if row is None or set(arrays) != set(dsts) or not _fit(arrays, types):
        return None
    rest = _without(op, fn, {*arrays.values()}, {*arrays, *arrays.values()})
    if rest is None or set(rest.expr.ins) != {row} or not _grows(rest, row):
        return None
    return Store(tuple(arrays[v] for v in dsts), row, rest, dsts)


def _source(v: Any, makes: Mapping[Any, Any], inputs: Mapping[str, Any]) -> str | None:
    """The input that a value is, in whatever shape; None if it is computed."""
    while v in makes and makes[v].primitive.name in UNCHANGED:
        eqn = makes[v]
        if not jnp.issubdtype(eqn.outvars[0].aval.dtype, jnp.integer) or eqn.outvars[0].aval.size != 1:
            return None
        v = eqn.invars[0]
        if not isinstance(v, jex.Var):
            return None
    return next((name for name, var in inputs.items() if var is v and var.aval.shape == ()), None)


def _is_row(eqn: Any) -> bool:
    """Whether a scatter replaces one row, or nothing if there is no such row."""
    operand, indices, updates = (v.aval for v in eqn.invars)
    numbers = eqn.params["dimension_numbers"]
    return (
        operand.ndim >= 1
        and indices.shape == (1,)
        and updates.shape == operand.shape[1:]
        and tuple(numbers.update_window_dims) == tuple(range(operand.ndim - 1))
        and tuple(numbers.inserted_window_dims) == (0,)
        and tuple(numbers.scatter_dims_to_operand_dims) == (0,)
        and not numbers.operand_batching_dims
        and eqn.params["mode"] in (GatherScatterMode.FILL_OR_DROP, GatherScatterMode.PROMISE_IN_BOUNDS)
    )


def _fit(arrays: Mapping[str, str], types: Mapping[str, ArrayType | None]) -> bool:
    """Whether results have the types of rows."""
    pairs = ((types.get(result), types.get(array)) for result, array in arrays.items())
    return all(
        r is not None
        and a is not None
        and (r.dtype, r.shape) == (a.dtype, a.shape[1:])
        and not r.dtype.startswith("key")
        for r, a in pairs
    )


def _without(op: Prim, fn: JaxprFn, outs: set[str], ins: set[str]) -> Prim | None:
    """An operation without some of its results and inputs; None if the other results depend on these inputs."""
    jaxpr = fn.closed.jaxpr
    kept = [k for k, dst in enumerate(op.dsts) if dst not in outs]
    if not kept or any(eqn.effects for eqn in jaxpr.eqns):
        return None
    smaller, used = part(fn.closed, [jaxpr.outvars[k] for k in kept])
    name_of = dict(zip(jaxpr.invars, op.expr.ins, strict=True))
    names = tuple(name_of[v] for v in used)
    if not ins.isdisjoint(names):
        return None
    made = JaxprFn(smaller, [fn.casts[k] for k in kept])
    expr = replace(op.expr, ins=names, fn=made)
    return replace(op, dsts=tuple(op.dsts[k] for k in kept), expr=expr)


def _grows(op: Prim, row: str) -> bool:
    """Whether an operation makes a variable larger, by a constant."""
    assert isinstance(op.expr.fn, JaxprFn)
    jaxpr = op.expr.fn.closed.jaxpr
    if row not in op.dsts:
        return False
    k = op.dsts.index(row)
    out, (before,) = jaxpr.outvars[k], jaxpr.invars
    return op.expr.fn.casts[k] is None and any(
        eqn.primitive.name == "add" and eqn.outvars[0] is out and _adds(eqn.invars, before) for eqn in jaxpr.eqns
    )


def _adds(terms: Sequence[Any], before: Any) -> bool:
    """Whether two terms are a value and a positive number."""
    return any(
        a is before and isinstance(b, jex.Literal) and int(b.val) > 0 for a, b in (tuple(terms), tuple(reversed(terms)))
    )
