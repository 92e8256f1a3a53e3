"""Computations in two forms: one for lanes that run together, one for a lane that runs alone in native code.

    by_width(steps_that_are_masked, loop_that_ends)(columns, n)
        together: as many steps as the slowest lane may need, without a loop, each for all lanes
        alone:    a loop that ends when this lane is done

A program holds both until it is known how its lanes advance (`lowering/jaxpr_passes/of_width.py`). Wherever JAX
transforms or runs it before, the first form counts. A form that reads nothing but its operands is traced once for
their types, whatever program it is in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

import jax
import jax.extend.core as jex
import jax.extend.source_info_util
import numpy as np
from jax.extend.core.primitives import convert_element_type_p
from jax.interpreters import ad, batching, mlir

from pcbatch.data.capacity import capacities
from pcbatch.data.checks import collecting, rules
from pcbatch.data.origins import noting_more
from pcbatch.data.values import Value
from pcbatch.jax_settings import settings

jax.extend.source_info_util.register_exclusion(__file__)

by_width_p: Any = jex.Primitive("pcbatch_by_width")
by_width_p.multiple_results = True

Form = tuple[jex.ClosedJaxpr, Any]  # and the structure of its results
HERE = str(Path(__file__).parent) + "/"
PLAIN = (bool, int, str, type(None), np.dtype, type)


def by_width(together: Callable[..., Value], alone: Callable[..., Value] | None = None) -> Callable[..., Value]:
    """Return a function that computes `together`, or `alone` in a program of one lane.

    Without another form a lane alone computes the first one, all that it loads before anything else is stored. Both
    take pytrees of arrays and numbers, return one of arrays, of the same types, and give equal results. They may read
    other values of the lane as well. Where a form makes checks only `together` counts.
    """

    def call(*args: Value) -> Value:
        leaves, tree = jax.tree.flatten(args)
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return together(*args)
        first = _traced(together, tree, leaves)
        second = first if alone is None or not first else _traced(alone, tree, leaves, first[0].out_avals)
        if not first or not second:
            return together(*args)
        assert first[1] == second[1]
        forms, read = _reading((first[0], second[0]))
        outs = by_width_p.bind(*leaves, *read, together=forms[0], alone=forms[1])
        return jax.tree.unflatten(first[1], outs)

    return call


def _traced(
    form: Callable[..., Value], tree: Any, leaves: Sequence[Value], types: Sequence[Value] | None = None
) -> Form | None:
    """Return the jaxpr of a form, with results of these types, and their structure; None if it makes checks."""
    kept = _kept_for(form, tree, leaves, types)
    if kept:
        return kept[0]
    with noting_more() as notes:
        traced = _newly_traced(form, tree, leaves, types)
    if traced is not None and not notes.asked and not any(isinstance(x, jax.core.Tracer) for x in traced[0].consts):
        kept.append(traced)
    return traced


def _kept_for(
    form: Callable[..., Value], tree: Any, leaves: Sequence[Value], types: Sequence[Value] | None
) -> list[Form]:
    """Return the trace that is kept of a form, if there is one, in a list into which a new one goes."""
    code = _code(form)
    if code is None:
        return []
    given = tuple(map(jax.typeof, leaves))
    results = None if types is None else tuple((type_.dtype, type_.weak_type) for type_ in types)
    around = (settings(), rules(), capacities())
    try:
        return _list_for((code, tree, given, results, around))
    except TypeError:  # the structure of the operands holds what has no hash
        return []


@lru_cache(maxsize=1_000)
def _list_for(key: Hashable) -> list[Form]:
    return []


def _code(value: Value) -> Hashable | None:
    """Return what a function of this folder computes, by its code and what it finds in its cells; None for others."""
    if isinstance(value, PLAIN):
        return (type(value), value)
    if isinstance(value, float):
        return (float, value.hex())  # zeros of either sign, and NaN
    if isinstance(value, tuple):
        parts = tuple(map(_code, value))
        return None if None in parts else (type(value), parts)
    if not isinstance(value, FunctionType) or not value.__code__.co_filename.startswith(HERE):
        return None
    defaults = (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
    inside = [*defaults, *(cell.cell_contents for cell in value.__closure__ or ())]
    found = tuple(map(_code, inside))
    return None if None in found else (value.__code__, found)


def _newly_traced(
    form: Callable[..., Value], tree: Any, leaves: Sequence[Value], types: Sequence[Value] | None
) -> Form | None:
    structure: list[Any] = []

    def flat(*leaves: Value) -> list[Value]:
        outs, out_tree = jax.tree.flatten(form(*jax.tree.unflatten(tree, leaves)))
        structure.append(out_tree)
        return outs if types is None else list(map(_of_type, outs, types))

    with collecting() as checks:
        closed = jax.make_jaxpr(flat)(*leaves)
    return None if checks else (closed, structure[0])


def _reading(forms: Sequence[jex.ClosedJaxpr]) -> tuple[list[jex.ClosedJaxpr], list[Value]]:
    """Return jaxprs whose last operands are the values of the lane that one of them reads, and these values."""
    read = [(var, x) for form in forms for var, x in zip(form.jaxpr.constvars, form.consts, strict=True)]
    read = [(var, x) for var, x in read if isinstance(x, jax.core.Tracer)]
    more = [var for var, _ in read]

    def reading(form: jex.ClosedJaxpr) -> jex.ClosedJaxpr:
        kept = [(v, x) for v, x in zip(form.jaxpr.constvars, form.consts, strict=True) if v not in more]
        jaxpr = form.jaxpr.replace(constvars=[v for v, _ in kept], invars=[*form.jaxpr.invars, *more])
        return jex.ClosedJaxpr(jaxpr, [x for _, x in kept])

    return [reading(form) for form in forms] if read else list(forms), [x for _, x in read]


def _of_type(value: Value, type_: Any) -> Any:
    return convert_element_type_p.bind(value, new_dtype=type_.dtype, weak_type=type_.weak_type, sharding=None)


def _together(*args: Value, together: jex.ClosedJaxpr, alone: jex.ClosedJaxpr) -> Sequence[Value]:
    out: Sequence[Value] = jex.jaxpr_as_fun(together)(*args)
    return out


def _batched(args: Sequence[Value], axes: Sequence[Any], **forms: Any) -> tuple[Sequence[Value], Sequence[int]]:
    outs = jax.vmap(lambda *each: _together(*each, **forms), in_axes=tuple(axes))(*args)
    return outs, [0] * len(outs)


def _jvp(primals: Sequence[Value], tangents: Sequence[Value], **forms: Any) -> Value:
    instantiate: Any = ad.instantiate_zeros  # untyped
    known = map(instantiate, tangents)
    return jax.jvp(lambda *args: _together(*args, **forms), tuple(primals), tuple(known))


by_width_p.def_impl(_together)
by_width_p.def_abstract_eval(lambda *avals, together, alone: together.out_avals)
batching.primitive_batchers[by_width_p] = _batched
ad.primitive_jvps[by_width_p] = _jvp
mlir.register_lowering(by_width_p, mlir.lower_fun(_together, multiple_results=True))
