"""Evaluation of the jaxprs of a block with the lanes as the last axis of small arrays.

`jax.vmap` puts the batch axis first. For an array of a few elements per lane that leaves XLA:CPU an inner loop of these
few, which it unrolls into scalar code, with a branch per lane where values are selected. With the lanes last the inner
loop runs over lanes, so each operation is vectorised, however few elements a lane has.

Every value of the evaluation knows where its lanes are. An equation whose arrays all are small keeps them last, if
there is a rule for its primitive here; every other one runs under `jax.vmap`, which may move an axis, and JAX and XLA
remove moves that cancel.

    before:  mul a:f32[256,10] b:f32[256,10]
    after:   mul a:f32[10,256] b:f32[10,256]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from pcbatch.lowering.jaxpr_passes.parts import cut_out, evaluated

T = TypeVar("T")

SMALL = 32  # elements of an array that is kept with the lanes last
CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
CALLS |= {"custom_jvp_call": "call_jaxpr"}


@dataclass(frozen=True, slots=True)
class Placed:
    """A value, and the axis of its lanes: None if all lanes share it, 0, or -1. That of a scalar is -1."""

    array: Any
    axis: int | None


def is_small(shape: Sequence[int]) -> bool:
    """Return whether an array of this shape, of one lane, is kept with the lanes last; no scalar is."""
    return len(shape) > 0 and 0 < math.prod(shape) <= SMALL


def pays(jaxpr: Any) -> bool:
    """Return whether some equation of a jaxpr makes a small array by a rule of this module."""
    return any(
        any(pays(called.jaxpr) for called in _called(e))
        or (e.primitive.name in RULES and any(is_small(v.aval.shape) for v in e.outvars))
        for e in jaxpr.eqns
    )


def _called(eqn: Any) -> Sequence[jex.ClosedJaxpr]:
    """The jaxpr that an equation calls, or those of which the platform decides; none of other equations."""
    name, params = eqn.primitive.name, eqn.params
    if name in CALLS:
        return (params[CALLS[name]],)
    of_platforms: Sequence[jex.ClosedJaxpr] = params["branches"] if params.get("branches_platforms") else ()
    return of_platforms


def evaluate(closed: jex.ClosedJaxpr, operands: Sequence[Placed], width: int) -> list[Placed]:
    """Evaluate a jaxpr for all places of a window.

    Args:
        closed: The jaxpr of one lane.
        operands: Its operands.
        width: The number of places.
    """
    return _Evaluation(width).run(closed.jaxpr, closed.consts, operands)


@dataclass(frozen=True, slots=True)
class _Evaluation:
    width: int

    def run(self, jaxpr: Any, consts: Sequence[Any], operands: Sequence[Placed]) -> list[Placed]:
        def literal(v: Any) -> Placed:
            return Placed(np.asarray(v.val, _dtype(v)), None)

        return evaluated(jaxpr, [Placed(c, None) for c in consts], operands, partial(self.equation, jaxpr), literal)

    def equation(self, jaxpr: Any, eqn: Any, ins: Sequence[Placed]) -> list[Placed]:
        name = eqn.primitive.name
        if all(x.axis is None for x in ins):
            return [Placed(value, None) for value in _alone(jaxpr, eqn)(*_of_variables(eqn, [x.array for x in ins]))]
        if any(pays(called.jaxpr) for called in _called(eqn)):
            return self.called(eqn, ins) if name in CALLS else self.by_platform(eqn, ins)
        rule = RULES.get(name)
        if rule is not None and all(_fits(v) for v in (*eqn.invars, *eqn.outvars)):
            last = [x if x.axis is None else Placed(_last(x), -1) for x in ins]
            out = rule(eqn, last, self.width)
            if out is not None:
                return [Placed(array, -1) for array in out]
        return self.vmapped(jaxpr, eqn, ins)

    def called(self, eqn: Any, ins: Sequence[Placed]) -> list[Placed]:
        closed, axes = eqn.params[CALLS[eqn.primitive.name]], [x.axis for x in ins]
        placed: list[int | None] = []

        def call(*arrays: Any) -> list[Any]:
            outs = self.run(closed.jaxpr, closed.consts, list(map(Placed, arrays, axes)))
            placed[:] = [x.axis for x in outs]
            return [x.array for x in outs]

        inline = eqn.params.get("inline")
        if inline is True or getattr(inline, "name", "") == "JAX_EARLY":
            return self.run(closed.jaxpr, closed.consts, ins)
        call.__name__ = eqn.params.get("name", "call")
        with eqn.ctx.manager:
            return list(map(Placed, jax.jit(call)(*(x.array for x in ins)), placed))

    def by_platform(self, eqn: Any, ins: Sequence[Placed]) -> list[Placed]:
        """The branch that is chosen when the program is lowered for a platform; the first operand stands for it."""
        axes = [x.axis for x in ins[1:]]

        def branch(closed: jex.ClosedJaxpr) -> Callable[..., list[Any]]:
            def run(*arrays: Any) -> list[Any]:
                outs = self.run(closed.jaxpr, closed.consts, list(map(Placed, arrays, axes)))
                return [_full(x, v.aval.shape, self.width) for x, v in zip(outs, eqn.outvars, strict=True)]

            return run

        choices = list(zip(eqn.params["branches_platforms"], map(branch, eqn.params["branches"]), strict=True))
        named = {platform: run for platforms, run in choices if platforms for platform in platforms}
        default = next((run for platforms, run in choices if not platforms), None)
        outs = jax.lax.platform_dependent(*(x.array for x in ins[1:]), default=default, **named)
        return [Placed(array, -1) for array in outs]

    def vmapped(self, jaxpr: Any, eqn: Any, ins: Sequence[Placed]) -> list[Placed]:
        ins = _of_variables(eqn, ins)
        axes = tuple(None if x.axis is None else 0 for x in ins)
        values = [x.array if x.axis is None else _first(x) for x in ins]
        outs = jax.vmap(_alone(jaxpr, eqn), in_axes=axes, axis_size=self.width)(*values)
        return [Placed(x, -1 if x.ndim == 1 else 0) for x in outs]


def _alone(jaxpr: Any, eqn: Any) -> Callable[..., Any]:
    """One equation of a jaxpr as a function of its variables, each once."""
    function: Callable[..., Any] = jex.jaxpr_as_fun(cut_out(jaxpr, [eqn], eqn.outvars)[0])
    return function


def _of_variables(eqn: Any, operands: Sequence[T]) -> list[T]:
    """The operands of an equation that are no literals, each once."""
    return list({v: x for v, x in zip(eqn.invars, operands, strict=True) if isinstance(v, jex.Var)}.values())


def _dtype(v: Any) -> Any:
    return v.aval.dtype


def _fits(v: Any) -> bool:
    shape = v.aval.shape
    plain = not jnp.issubdtype(_dtype(v), jax.dtypes.extended)
    return plain and (not shape or is_small(shape))


def _last(x: Placed) -> Any:
    return jnp.moveaxis(x.array, 0, -1) if x.axis == 0 else x.array


def _first(x: Placed) -> Any:
    return jnp.moveaxis(x.array, -1, 0) if x.axis == -1 and jnp.ndim(x.array) > 1 else x.array


# Rules: of an equation, its operands with the lanes last, and the number of places; results, or None if it does not
# apply. Operands without lanes are as they are.

Rule = Callable[[Any, Sequence[Placed], int], list[Any] | None]


def _full(x: Placed, shape: tuple[int, ...], width: int) -> Any:
    """Return a value of this shape or a scalar as an array of [*shape, width]."""
    array, batched = jnp.asarray(_last(x)), x.axis is not None
    wide = (*shape, width)
    if batched and array.ndim == len(wide):
        return array
    if batched:  # a scalar of each lane
        return jax.lax.broadcast_in_dim(array, wide, (len(shape),))
    return jax.lax.broadcast_in_dim(array, wide, tuple(range(array.ndim)))


def _elementwise(eqn: Any, ins: Sequence[Placed], width: int) -> list[Any] | None:
    shape = eqn.outvars[0].aval.shape
    if any(v.aval.shape not in ((), shape) for v in eqn.invars):
        return None
    return [eqn.primitive.bind(*(_full(x, shape, width) for x in ins), **eqn.params)]


def _with(**change: Callable[[Any, int], Any]) -> Rule:
    """The rule of a primitive with one operand whose parameters need an entry for the lanes."""

    def rule(eqn: Any, ins: Sequence[Placed], width: int) -> list[Any] | None:
        if len(ins) != 1:
            return None
        params = {key: change[key](value, width) if key in change else value for key, value in eqn.params.items()}
        out = eqn.primitive.bind(ins[0].array, **params)
        return list(out) if eqn.primitive.multiple_results else [out]

    return rule


def _broadcast(eqn: Any, ins: Sequence[Placed], width: int) -> list[Any] | None:
    if len(ins) != 1:
        return None
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    return [jax.lax.broadcast_in_dim(ins[0].array, (*shape, width), (*dims, len(shape)))]


def _reshape(eqn: Any, ins: Sequence[Placed], width: int) -> list[Any] | None:
    if len(ins) != 1 or eqn.params["dimensions"] is not None:
        return None
    return [jax.lax.reshape(ins[0].array, (*eqn.params["new_sizes"], width))]


def _concatenate(eqn: Any, ins: Sequence[Placed], width: int) -> list[Any]:
    parts = [_full(x, v.aval.shape, width) for x, v in zip(ins, eqn.invars, strict=True)]
    return [jax.lax.concatenate(parts, eqn.params["dimension"])]


def _pad(eqn: Any, ins: Sequence[Placed], _: int) -> list[Any] | None:
    if ins[1].axis is not None or ins[0].axis is None:
        return None
    return [jax.lax.pad(ins[0].array, ins[1].array, (*eqn.params["padding_config"], (0, 0, 0)))]


def _slice(eqn: Any, ins: Sequence[Placed], width: int) -> list[Any]:
    p = eqn.params
    strides = None if p["strides"] is None else (*p["strides"], 1)
    return [jax.lax.slice(ins[0].array, (*p["start_indices"], 0), (*p["limit_indices"], width), strides)]


def _dot(eqn: Any, ins: Sequence[Placed], width: int) -> list[Any] | None:
    """The product of two vectors of lanes, as a sum of products."""
    (contracted, batch), (a, b) = eqn.params["dimension_numbers"], (v.aval for v in eqn.invars)
    if contracted != ((0,), (0,)) or batch != ((), ()) or a.ndim != 1 or b.ndim != 1:
        return None
    if a.dtype != b.dtype or eqn.outvars[0].aval.dtype != a.dtype or not np.issubdtype(a.dtype, np.floating):
        return None
    x, y = (_full(v, a.shape, width) for v in ins)
    return [jnp.sum(x * y, axis=0, dtype=a.dtype)]


_SAME = _with()
ELEMENTWISE = """
abs acos acosh add add_any and asin asinh atan atan2 atanh bitcast_convert_type cbrt ceil clamp complex conj
convert_element_type copy copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igammac imag
integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg nextafter not or polygamma population_count pow
real reduce_precision rem round rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt
square stop_gradient sub tan tanh xor
""".split()
OVER_AXES = """
argmax argmin cumlogsumexp cummax cummin cumprod cumsum reduce_and reduce_max reduce_min reduce_or reduce_prod
reduce_sum reduce_xor rev split squeeze
""".split()
RULES: dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(OVER_AXES, _SAME),
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "dot_general": _dot,
    "pad": _pad,
    "reshape": _reshape,
    "slice": _slice,
    "transpose": _with(permutation=lambda axes, _: (*axes, len(axes))),
}
