"""Jaxprs on NumPy scalars: JAX dispatches every operation alone at 10 to 100 us, which is too slow for an oracle.

Only what random programs are made of is known; an unknown operation goes to JAX itself, and so does what takes keys.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.typing.trace import JaxprFn

Step = Callable[[dict[Any, Any]], None]
ProgramT = TypeVar("ProgramT", CfgProgram, StackProgram)


def on_numpy(program: ProgramT) -> ProgramT:
    """The same program with primitives that compute in NumPy."""

    def block(b: Any) -> Any:
        return replace(b, ops=tuple(_op(op) for op in b.ops))

    if isinstance(program, CfgProgram):
        functions = tuple(replace(f, blocks=tuple(map(block, f.blocks))) for f in program.functions)
        return replace(program, functions=functions)
    prologue = tuple(_op(op) for op in program.prologue)
    return replace(program, blocks=tuple(map(block, program.blocks)), prologue=prologue)


def _op(op: Any) -> Any:
    if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn) and not _takes_keys(op.expr.fn):
        return replace(op, expr=replace(op.expr, fn=_primitive(op.expr.fn)))
    return op


def _takes_keys(fn: JaxprFn) -> bool:
    jaxpr = fn.closed.jaxpr
    values = [*jaxpr.invars, *(value for step in jaxpr.eqns for value in step.outvars)]
    return any(jnp.issubdtype(value.aval.dtype, jax.dtypes.extended) for value in values)


@lru_cache(maxsize=4096)
def _primitive(fn: JaxprFn) -> Callable[..., Any]:
    run = compiled(fn.closed.jaxpr, fn.closed.consts)
    ins = [np.dtype(v.aval.dtype).type for v in fn.closed.jaxpr.invars]
    casts = [None if cast is None else np.dtype(cast.dtype) for cast in fn.casts]

    def call(*leaves: Any) -> Any:
        outs = run([x if isinstance(x, np.ndarray) else to(x) for to, x in zip(ins, leaves, strict=True)])
        outs = [out if cast is None else out.astype(cast) for out, cast in zip(outs, casts, strict=True)]
        return outs[0] if len(outs) == 1 else tuple(outs)

    return call


def compiled(jaxpr: Any, consts: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
    """The jaxpr as a list of Python functions over an environment."""
    steps = [_step(eqn) for eqn in jaxpr.eqns]
    known = {v: _value(c) for v, c in zip(jaxpr.constvars, consts, strict=True)}
    outs = [_reader(v) for v in jaxpr.outvars]

    def run(args: Sequence[Any]) -> list[Any]:
        env = known | dict(zip(jaxpr.invars, args, strict=True))
        for step in steps:
            step(env)
        return [read(env) for read in outs]

    return run


def _value(x: Any) -> Any:
    array = np.asarray(x)
    return array if array.ndim else array[()]


def _reader(v: Any) -> Callable[[dict[Any, Any]], Any]:
    if isinstance(v, jex.Literal):
        value = _value(np.asarray(v.val, v.aval.dtype))
        return lambda env: value
    return operator.itemgetter(v)


def _step(eqn: Any) -> Step:
    reads = [_reader(v) for v in eqn.invars]
    name = eqn.primitive.name
    if name in ("jit", "pjit", "closed_call"):
        closed = eqn.params["jaxpr"]
        run = compiled(closed.jaxpr, closed.consts)
        return lambda env: env.update(zip(eqn.outvars, run([read(env) for read in reads]), strict=True))
    if eqn.primitive.multiple_results:  # a loop, or a conditional
        by_jax = functools.partial(eqn.primitive.bind, **eqn.params)
        return lambda env: env.update(
            zip(eqn.outvars, map(_value, by_jax(*(jnp.asarray(read(env)) for read in reads))), strict=True)
        )
    (out,) = eqn.outvars
    fn = SIMPLE.get(name) or _with_params(name, eqn)
    if len(reads) == 2:
        a, b = reads
        return lambda env: env.__setitem__(out, fn(a(env), b(env)))
    return lambda env: env.__setitem__(out, fn(*[read(env) for read in reads]))


def _with_params(name: str, eqn: Any) -> Callable[..., Any]:
    make = PARAMETRIC.get(name)
    return make(eqn.params, eqn) if make is not None else _by_jax(eqn)


def _by_jax(eqn: Any) -> Callable[..., Any]:
    return lambda *args: _value(eqn.primitive.bind(*map(jnp.asarray, args), **eqn.params))


def _select(which: Any, *cases: Any) -> Any:
    if isinstance(which, np.ndarray):
        return np.where(which, cases[1], cases[0])
    return cases[int(which)]


def _divide(a: Any, b: Any) -> Any:
    if a.dtype.kind != "i":
        return a / b
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)  # towards zero


def _cast(params: Mapping[str, Any], eqn: Any) -> Any:
    dtype = np.dtype(params["new_dtype"])
    return lambda x: x.astype(dtype)


def _reshape(params: Mapping[str, Any], eqn: Any) -> Any:
    shape = eqn.outvars[0].aval.shape
    return lambda x, *_: np.asarray(x).reshape(shape) if shape else np.asarray(x).reshape(())[()]


def _broadcast(params: Mapping[str, Any], eqn: Any) -> Any:
    shape, dims = params["shape"], params["broadcast_dimensions"]

    def run(x: Any) -> Any:
        sizes = dict(zip(dims, np.shape(x), strict=True))  # of which some may be 1
        return np.broadcast_to(np.asarray(x).reshape([sizes.get(k, 1) for k in range(len(shape))]), shape)

    return run if shape else lambda x: x


def _dynamic_slice(params: Mapping[str, Any], eqn: Any) -> Any:
    sizes = params["slice_sizes"]

    def run(x: Any, *starts: Any) -> Any:
        begin = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, x.shape, sizes, strict=True)]
        return x[tuple(slice(s, s + size) for s, size in zip(begin, sizes, strict=True))]

    return run


def _slice(params: Mapping[str, Any], eqn: Any) -> Any:
    strides = params["strides"] or (1,) * len(params["start_indices"])
    where = tuple(map(slice, params["start_indices"], params["limit_indices"], strides))
    return lambda x: x[where]


def _scatter(params: Mapping[str, Any], eqn: Any) -> Any:
    x, index, _ = (v.aval.shape for v in eqn.invars)
    if len(x) != 1 or index != (1,):
        return _by_jax(eqn)
    combine = SCATTERS[eqn.primitive.name]

    def run(x: Any, index: Any, new: Any) -> Any:
        k = int(index[0])
        if 0 <= k < len(x):
            x = x.copy()
            x[k] = combine(x[k], new)
        return x

    return run


def _reduce(fn: Any) -> Any:
    return lambda params, eqn: lambda x: fn(x, axis=params["axes"], dtype=np.asarray(x).dtype)


SCATTERS: dict[str, Callable[[Any, Any], Any]] = {
    "scatter": lambda old, new: new, "scatter-add": operator.add, "scatter-max": max, "scatter-min": min,
}  # fmt: skip
SIMPLE: dict[str, Callable[..., Any]] = {
    "add": operator.add, "add_any": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": np.invert, "abs": np.abs, "sign": np.sign,
    "floor": np.floor, "max": np.maximum, "min": np.minimum, "rem": np.fmod, "div": _divide, "select_n": _select,
    "square": np.square, "copy": lambda x: x, "stop_gradient": lambda x: x,
}  # fmt: skip
PARAMETRIC: dict[str, Callable[[Mapping[str, Any], Any], Callable[..., Any]]] = {
    "convert_element_type": _cast, "reshape": _reshape, "squeeze": _reshape, "broadcast_in_dim": _broadcast,
    "dynamic_slice": _dynamic_slice, "slice": _slice, **dict.fromkeys(SCATTERS, _scatter),
    "rev": lambda params, eqn: lambda x: np.flip(x, params["dimensions"]),
    "stack": lambda params, eqn: lambda *xs: np.stack(xs, params["axis"]),
    "concatenate": lambda params, eqn: lambda *xs: np.concatenate(xs, params["dimension"]),
    "integer_pow": lambda params, eqn: lambda x: (x ** params["y"]).astype(np.asarray(x).dtype),
    "iota": lambda params, eqn: lambda: np.arange(params["shape"][0], dtype=params["dtype"]),
    "reduce_sum": _reduce(np.sum),
    "reduce_or": _reduce(np.logical_or.reduce),
    "reduce_and": _reduce(np.logical_and.reduce),
}  # fmt: skip
