"""Remove checks of integers of which only low bits are used, as in hashes: these are right though the number wraps.

before:  s, bad = { (s * 31 + c) & 4095 }; check bad ...        after:  s = { (s * 31 + c) & 4095 }

A backward analysis finds the variables of which more is used: what is compared, divided, shown, returned or an index.
Sums, differences, products and masks hand on what is used of their results; a mask that is known ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from pcbatch.data.integer_marks import CALLS, mark_of
from pcbatch.ir.analysis.def_use import terminator_reads
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.ops import Check, Move, Prim
from pcbatch.ir.roles import reads
from pcbatch.lowering.cfg_passes.prove_checks import without_results
from pcbatch.lowering.jaxpr_passes.integer_marks import has_marks
from pcbatch.lowering.typing.trace import JaxprFn

HANDED_ON = frozenset({"add", "sub", "mul", "neg", "and", "or", "xor", "not"})
"""Operations whose low bits depend on the low bits of their operands alone."""


def run(program: CfgProgram) -> CfgProgram:
    """Return the program without the checks of integers whose high bits nothing uses."""
    if not has_marks(program, "checked"):
        return program
    used = _used(program)
    return replace(program, functions=tuple(_function(function, used[function.name]) for function in program.functions))


def _used(program: CfgProgram) -> dict[str, set[str]]:
    """The variables of each function of which more than the low bits is used."""
    functions = {f.name: f for f in program.functions}
    used = {f.name: set(_read_by_others(f)) for f in program.functions}
    used[program.entry] |= set(functions[program.entry].results)
    before = -1
    while (size := sum(map(len, used.values()))) != before:
        before = size
        for f in program.functions:
            own = used[f.name]
            for op in (op for block in reversed(f.blocks) for op in reversed(block.ops)):
                match op:
                    case Prim():
                        own |= _Reading(op, own).ins
                    case Move(dst=dst, src=src) if dst in own:
                        own.add(src)
                    case Call():
                        callee = functions[op.func]
                        theirs = used[op.func]
                        own |= {arg for param, arg in zip(callee.params, op.args, strict=True) if param in theirs}
                        theirs |= {result for dst, result in zip(op.dsts, callee.results, strict=True) if dst in own}
    return used


def _read_by_others(function: Function) -> Iterator[str]:
    """The variables that jumps, messages and checks of other kinds read."""
    ops = [*function.ops]
    of_marks = {name for op in ops if isinstance(op, Prim) for name in _Reading(op, frozenset()).checks}
    for block in function.blocks:
        yield from terminator_reads(block.terminator)
    for op in ops:
        if not isinstance(op, Prim | Move | Call):
            yield from (name for name in reads(op) if name not in of_marks)


def _function(function: Function, used: Set[str]) -> Function:
    prims = [op for op in function.ops if isinstance(op, Prim)]
    dead = {name for op in prims for name in _Reading(op, used).dead}
    if not dead:
        return function
    blocks = [
        replace(b, ops=tuple(op for op in b.ops if not (isinstance(op, Check) and op.failed in dead)))
        for b in function.blocks
    ]
    return replace(function, blocks=tuple(without_results(block, dead) for block in blocks))


class _Reading:
    """The operands of a primitive that are used in full, if the variables `used` are.

    Attributes:
        ins: the operands of which more than the low bits is used.
        checks: the results that say whether a marked operation fits.
        dead: those of them whose operation has a result of which only low bits are used.
    """

    def __init__(self, op: Prim, used: Set[str]) -> None:
        self.ins: set[str] = set(op.expr.ins)
        self.checks: set[str] = set()
        self.dead: set[str] = set()
        if not isinstance(op.expr.fn, JaxprFn):
            return
        jaxpr = op.expr.fn.closed.jaxpr
        outs = dict(zip(op.dsts, jaxpr.outvars, strict=True))
        made = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
        marks = {dst: eqn for dst, var in outs.items() if (eqn := _checked(var, made)) is not None}
        full = {var for dst, var in outs.items() if dst in used and isinstance(var, jex.Var)}
        reads_of: dict[Any, int] = {}
        for eqn in jaxpr.eqns:
            for var in eqn.invars:
                if isinstance(var, jex.Var):
                    reads_of[var] = reads_of.get(var, 0) + 1
        negations = {outs[dst] for dst in marks}
        for eqn in reversed(jaxpr.eqns):
            if not negations.isdisjoint(eqn.outvars):
                continue  # whether it fits: the mark itself asks
            asked = reads_of.get(eqn.outvars[-1], 0) > 1 if _is_checked(eqn) else False
            if asked:
                full.add(eqn.outvars[0])
            full |= set(_operands(eqn, not full.isdisjoint(eqn.outvars)))
        self.ins = {name for name, var in zip(op.expr.ins, jaxpr.invars, strict=True) if var in full}
        self.checks = set(marks)
        self.dead = {dst for dst, eqn in marks.items() if eqn.outvars[0] not in full}


def _checked(var: Any, made: Mapping[Any, Any]) -> Any:
    """The marked operation of which a variable says that it does not fit; None for other variables."""
    negation = made.get(var) if isinstance(var, jex.Var) else None
    if negation is None or negation.primitive.name != "not" or not isinstance(negation.invars[0], jex.Var):
        return None
    eqn = made.get(negation.invars[0])
    return eqn if eqn is not None and _is_checked(eqn) and negation.invars[0] is eqn.outvars[1] else None


def _is_checked(eqn: Any) -> bool:
    mark = mark_of(eqn)
    return mark is not None and mark.kind == "checked"


def _operands(eqn: Any, is_used: bool) -> list[Any]:
    """The operands of which an equation uses more than the low bits, if that is used of its result."""
    mark = mark_of(eqn)
    name = mark.name if mark is not None and mark.name else str(eqn.primitive.name)
    operands = [var for var in eqn.invars if isinstance(var, jex.Var)]
    if name == "and" and any(isinstance(var, jex.Literal) and np.all(np.asarray(var.val) >= 0) for var in eqn.invars):
        return []
    if name in HANDED_ON or (mark is not None and mark.kind == "between") or _narrows(eqn):
        return operands if is_used else []
    if name in ("select_n", "shift_left") or _is_where(eqn):
        first = eqn.invars[1:] if name == "shift_left" else eqn.invars[:1]
        return operands if is_used else [var for var in first if isinstance(var, jex.Var)]
    return operands


def _narrows(eqn: Any) -> bool:
    """Whether an equation converts integers to integers of no more bits."""
    if eqn.primitive.name != "convert_element_type":
        return False
    old, new = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    both = jnp.issubdtype(old, jnp.integer) and jnp.issubdtype(new, jnp.integer)
    return both and new.itemsize <= old.itemsize


def _is_where(eqn: Any) -> bool:
    return eqn.primitive.name in CALLS and eqn.params.get("name") == "_where"
