"""Evaluation of a function of one lane for many records, in pieces between which XLA does not fuse.

The transpose of a slice pads. XLA:CPU fuses a padding, a slice or a concatenation with what computes its operand, and
several shifts of one array then compute it as many times; with an exponential in it, element by element, behind a
branch. So the function is cut before each shift of what is costly, and all pieces but the last run in loops of their
own (`run_once.isolated`): the only thing on a CPU that ends a fusion, as XLA removes barriers before it fuses.

    piece 0     a = x[1:] - x[:-1];  d = ct * exp(a)       in a loop of its own
    piece 1     pad(d, (1, 0)) - pad(d, (0, 1))

Small arrays are evaluated with the lanes last, as in the forward machine (`runtime/vm/lanes_last.py`). A function that
is not cut is left to `jax.vmap`: with the lanes last too, a gradient of `tanh` of 32 numbers took 6 % longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr

from pcbatch.lowering.jaxpr_passes.parts import cut_out
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.vm import lanes_last
from pcbatch.runtime.vm.lanes_last import Placed
from pcbatch.runtime.vm.operands import Batch, Common, Operand
from pcbatch.runtime.vm.run_once import isolated
from pcbatch.transforms.tape.jaxpr_pieces import COSTLY, SHIFTS, any_of, inlined


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The results of a function, and which of them XLA would compute again for each use in a fusion, at a cost."""

    outs: list[Operand] | None  # None: it is not cut, and was not evaluated
    costly: list[bool]


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Pieces of a jaxpr; each takes and gives variables of the whole, whose inputs are `invars`."""

    parts: tuple[jex.ClosedJaxpr, ...]
    invars: Sequence[Any]
    outvars: Sequence[Any]
    costly: frozenset[Any]  # variables that are computed at a cost in the piece that ends with them


def evaluated(
    fn: Callable[..., Any], operands: Sequence[Batch | Common], width: int, costly: Collection[int] = ()
) -> Evaluated:
    """Apply a function of one lane to `width` records, if it is to be cut.

    Args:
        fn: A function of a value for each operand that gives a list of arrays.
        operands: The operands; one at least is a `Batch`.
        width: The number of records.
        costly: The positions of operands that have just been computed at a cost.
    """
    closed = jax.make_jaxpr(lambda *args: list(fn(*args)))(*(_struct(x) for x in operands))
    used = [True] * len(closed.jaxpr.outvars)
    closed = inlined(jex.ClosedJaxpr(dce_jaxpr(closed.jaxpr, used, instantiate=True)[0], closed.consts))
    pieces = _cut(closed, costly if lowering_platform() == "cpu" else None)
    marked = [not isinstance(v, jex.Literal) and v in pieces.costly for v in pieces.outvars]
    if len(pieces.parts) == 1:
        return Evaluated(None, marked)
    env: dict[Any, Placed] = dict(zip(pieces.invars, map(_placed, operands), strict=True))
    for part in pieces.parts[:-1]:
        env.update(zip(part.jaxpr.outvars, _apart(part, [env[v] for v in part.jaxpr.invars], width), strict=True))
    last = pieces.parts[-1]
    outs = lanes_last.evaluate(last, [env[v] for v in last.jaxpr.invars], width)
    return Evaluated([_operand(x) for x in outs], marked)


def _struct(operand: Batch | Common) -> Any:
    match operand:
        case Common(value=value):
            shape, dtype = jnp.shape(value), value.dtype
        case Batch(array=array, lanes_are_last=last):
            shape, dtype = array.shape[:-1] if last else array.shape[1:], array.dtype
    make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
    return make(shape, dtype)


def _placed(operand: Batch | Common) -> Placed:
    match operand:
        case Common(value=value):
            return Placed(value, None)
        case Batch(array=array, lanes_are_last=last):
            return Placed(array, -1 if last or array.ndim == 1 else 0)


def _operand(x: Placed) -> Operand:
    return Common(x.array) if x.axis is None else Batch(x.array, x.axis == -1 and x.array.ndim > 1)


def _apart(part: jex.ClosedJaxpr, ins: Sequence[Placed], width: int) -> list[Placed]:
    """Evaluate a piece in a loop of its own."""
    axes: list[int | None] = []

    def compute() -> list[Any]:
        outs = lanes_last.evaluate(part, ins, width)
        axes[:] = [x.axis for x in outs]
        return [x.array for x in outs]

    arrays = isolated(compute)
    return list(map(Placed, arrays, axes))


def _cut(closed: jex.ClosedJaxpr, costly: Collection[int] | None) -> _Pieces:
    """Cut a jaxpr before shifts of what is costly; None: nowhere."""
    jaxpr = closed.jaxpr
    if costly is None:
        return _Pieces((closed,), jaxpr.invars, jaxpr.outvars, frozenset())
    number = dict.fromkeys((*jaxpr.invars, *jaxpr.constvars), 0)  # of the piece that computes a variable
    computed = {jaxpr.invars[k] for k in costly}
    of_eqns: list[int] = []
    for eqn in jaxpr.eqns:
        ins = [v for v in eqn.invars if isinstance(v, jex.Var)]
        piece = max((number[v] for v in ins), default=0)
        fresh = any(v in computed and number[v] == piece for v in ins)
        if fresh and eqn.primitive.name in SHIFTS:
            piece, fresh = piece + 1, False
        of_eqns.append(piece)
        number.update(dict.fromkeys(eqn.outvars, piece))
        computed |= set(eqn.outvars) if fresh or any_of(eqn, COSTLY) else set()
    last = max(of_eqns, default=0)
    consts = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    numbers = range(last + 1)
    parts = tuple(_part(jaxpr, k, last, of_eqns, computed & set(jaxpr.invars), consts) for k in numbers)
    return _Pieces(parts, jaxpr.invars, jaxpr.outvars, frozenset(v for v in computed if number[v] == last))


def _part(
    jaxpr: Any, k: int, last: int, of_eqns: Sequence[int], computed: Collection[Any], consts: Mapping[Any, Any]
) -> jex.ClosedJaxpr:
    """Piece `k`, which gives what later pieces read; `computed` inputs pass through the first one."""
    eqns = [e for e, piece in zip(jaxpr.eqns, of_eqns, strict=True) if piece == k]
    defined = dict.fromkeys(v for e in eqns for v in e.outvars)
    outs = list(jaxpr.outvars)
    if k < last:
        later = [e for e, piece in zip(jaxpr.eqns, of_eqns, strict=True) if piece > k]
        wanted = {v for vs in (*(e.invars for e in later), jaxpr.outvars) for v in vs if isinstance(v, jex.Var)}
        passing = [v for v in jaxpr.invars if v in computed] if k == 0 else []
        outs = [v for v in (*defined, *passing) if v in wanted]
    return cut_out(jaxpr, eqns, outs, consts)[0]
