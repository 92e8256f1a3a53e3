"""Numbers of values: two values in a block have one number if they are computed alike from equal operands.

    a = { jnp.tanh(w @ xs[t]) }; b = { v @ xs[t] }        both `xs[t]` have one number

Variables of the program and of the jaxprs of its primitives are numbered together. Within a primitive the numbering
also tells which values are *shared*: computed of shared variables of the program, and of constants, alone.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import jax.extend.core as jex

from pcbatch.ir.ops import Move, Prim
from pcbatch.ir.roles import writes
from pcbatch.lowering.analysis.cost import HOST, inner_jaxprs, may_not_end
from pcbatch.lowering.typing.trace import JaxprFn


@dataclass(frozen=True, slots=True)
class Inside:
    """The values of the jaxpr of one primitive.

    Attributes:
        numbers: the number of each variable of the jaxpr.
        shared: the variables that are shared.
        names: of each operand that is a shared variable of the program, its name.
    """

    numbers: dict[Any, int]
    shared: frozenset[Any]
    names: dict[Any, str]


class Numbering:
    """Gives numbers; those of shared values are the same in all blocks of a program."""

    def __init__(self, shared: Collection[str]) -> None:
        self._known: dict[Hashable, int] = {}
        self._next = count()
        self._shared = {v: self._number(("shared", v)) for v in shared}
        self._shared_names = {number: v for v, number in self._shared.items()}
        self._alive: list[Any] = []  # constants, so that their ids stay their own

    def block(self, ops: Sequence[Any]) -> list[Inside | None]:
        """Return the values inside each operation of a block; None for what is no primitive with a jaxpr."""
        current = dict(self._shared)
        found: list[Inside | None] = []
        for op in ops:
            if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn):
                inside = self._primitive(op.expr.fn.closed, [self._of(v, current) for v in op.expr.ins])
                found.append(inside)
                for dst, var, cast in zip(op.dsts, op.expr.fn.closed.jaxpr.outvars, op.expr.fn.casts, strict=True):
                    number = self._atom(var, inside.numbers)
                    current[dst] = number if cast is None else self._number(("cast", cast.dtype, number))
                continue
            found.append(None)
            if isinstance(op, Move):
                current[op.dst] = self._of(op.src, current)
            else:
                current.update({v: next(self._next) for v in writes(op)})
        return found

    def _of(self, name: str, current: dict[str, int]) -> int:
        if name not in current:
            current[name] = next(self._next)
        return current[name]

    def _number(self, key: Hashable) -> int:
        try:
            return self._known.setdefault(key, next(self._next))
        except TypeError:  # a parameter that cannot be compared
            return next(self._next)

    def _atom(self, atom: Any, numbers: dict[Any, int]) -> int:
        if isinstance(atom, jex.Literal):
            return self._number(("literal", str(atom.aval), repr(atom.val)))
        return numbers[atom]

    def _primitive(self, closed: jex.ClosedJaxpr, ins: Sequence[int]) -> Inside:
        jaxpr = closed.jaxpr
        numbers: dict[Any, int] = dict(zip(jaxpr.invars, ins, strict=True))
        names = {v: self._shared_names[k] for v, k in numbers.items() if k in self._shared_names}
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            self._alive.append(const)
            numbers[var] = self._number(("constant", id(const)))
        shared = {*names, *jaxpr.constvars}
        for eqn in jaxpr.eqns:
            operands = tuple(self._atom(v, numbers) for v in eqn.invars)
            key = (eqn.primitive.name, tuple(sorted(eqn.params.items())), operands)
            pure = not eqn.effects and not _unsafe(eqn)
            for k, v in enumerate(eqn.outvars):
                numbers[v] = self._number((*key, k)) if pure else next(self._next)
            if pure and all(isinstance(v, jex.Literal) or v in shared for v in eqn.invars):
                shared.update(eqn.outvars)
        return Inside(numbers, frozenset(shared), names)


def _unsafe(eqn: Any) -> bool:
    return eqn.primitive.name in ("while", *HOST) or any(map(may_not_end, inner_jaxprs(eqn)))
