"""Refuse a number of the user's program that does not fit the dtype of the variable that comes to hold it.

JAX wraps such a number around without a word (300 becomes 44 in int8); the lane would then differ from plain Python.
Floats round, as they do everywhere in JAX.

refused:  y = 300    where y is i8[], because another path assigns an i8[] to it
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp

from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.diagnostics.short_repr import short
from pcbatch.ir.cfg import Call, CfgProgram, Function, Op
from pcbatch.ir.ops import Move, Prim
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.cfg_passes.split_live_ranges import original_name
from pcbatch.lowering.typing.abstract_values import Abstract, Known, fits
from pcbatch.lowering.typing.inferred import Inferred, VariableKey
from pcbatch.lowering.typing.jax_types import jax_dtype
from pcbatch.lowering.typing.join_types import differs

WIDER = ("int32", "uint32", "int64", "uint64")
Flow = tuple[VariableKey, Abstract | None, Loc | None]  # a variable, what flows into it, and where


def run(program: CfgProgram, inferred: Inferred) -> list[Diagnostic]:
    """Return a diagnostic for each number that does not fit. `inferred` must have passed all other checks."""
    entry = program.function(program.entry)
    flows: list[Flow] = [((entry.name, name), value, entry.loc) for name, value in inferred.args.items()]
    for function in program.functions:
        flows += _flows(program, function, inferred)
    return [one for flow in flows for one in _diagnostics(program, *flow, inferred)]


def _flows(program: CfgProgram, function: Function, inferred: Inferred) -> Iterator[Flow]:
    for block in function.blocks:
        if block.label in inferred.reachable.get(function.name, ()):
            for k, op in enumerate(block.ops):
                yield from _flows_of(program, (function.name, block.label, k), op, inferred)


def _flows_of(program: CfgProgram, key: tuple[str, str, int], op: Op, inferred: Inferred) -> Iterator[Flow]:
    name = key[0]
    match op:
        case Prim() if key in inferred.traced:
            for dst, value in zip(op.dsts, inferred.traced[key].outs, strict=True):
                yield (name, dst), value, op.loc
        case Move():
            yield (name, op.dst), inferred.types.get((name, op.src)), op.loc
        case Call():
            callee = program.function(op.func)
            for param, arg in zip(callee.params, op.args, strict=True):
                yield (callee.name, param), inferred.types.get((name, arg)), op.loc
            for dst, result in zip(op.dsts, callee.results, strict=True):
                yield (name, dst), inferred.types.get((callee.name, result)), op.loc


def _diagnostics(
    program: CfgProgram, place: VariableKey, value: Abstract | None, loc: Loc | None, inferred: Inferred
) -> Iterator[Diagnostic]:
    target = inferred.types.get(place)
    if target is None or value is None:
        return
    if differs(value, target):  # which leaf of a container a number becomes is not known here
        numbers = [leaf for leaf in value.leaves if isinstance(leaf, Known) and leaf.is_number]
        wider = [want for want in target.arrays if want.dtype != "bool"]
        for number in numbers:
            if wider and not any(fits(number, want) for want in wider):
                yield _diagnostic(program.function(place[0]), place[1], number, target.arrays[0], loc)
        return
    for want, have in zip(target.leaves, value.leaves, strict=True):
        if isinstance(want, ArrayType) and isinstance(have, Known) and not fits(have, want):
            yield _diagnostic(program.function(place[0]), place[1], have, want, loc)


def _diagnostic(function: Function, name: str, have: Known, want: ArrayType, loc: Loc | None) -> Diagnostic:
    variable = f"the result of `{function.name}`" if name in function.results else f"`{original_name(name)}`"
    return Diagnostic(
        "PCB312",
        f"the number {short(have.value)} does not fit {want.dtype}",
        None if loc is None else Label(loc, f"{variable} is {want} here".replace("~", "")),
        notes=("a number takes the dtype of the arrays that it meets on other paths, or JAX's default",),
        helps=(_way_out(have.value, want),),
    )


def _way_out(number: object, want: ArrayType) -> str:
    if jnp.issubdtype(jax_dtype(want), jnp.inexact):
        return f"give it a wider type: `jnp.float32({number})`"
    for dtype in WIDER:
        joined = dtype if want.weak else jnp.promote_types(dtype, jax_dtype(want)).name
        if jax.dtypes.canonicalize_dtype(dtype) == dtype and fits(Known(number), ArrayType(joined)):
            return f"give it a wider type: `jnp.{dtype}({number})`"
    return "write it as a float, or turn 64-bit types on: `jax.config.update('jax_enable_x64', True)`"
