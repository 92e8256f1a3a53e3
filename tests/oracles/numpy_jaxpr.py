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
from pcbatch.ir.tasks import TaskProgram
from pcbatch.lowering.typing.trace import JaxprFn
from tests.oracles.numpy_indexing import gather, scatter

Step = Callable[[dict[Any, Any]], None]
Control = Callable[[Sequence[Any]], list[Any]]
ProgramT = TypeVar("ProgramT", CfgProgram, StackProgram, TaskProgram)


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
    if name in CONTROL and eqn.params.keys() >= NEEDED.get(name, set()):
        inside = CONTROL[name](eqn.params)
        return lambda env: env.update(zip(eqn.outvars, inside([read(env) for read in reads]), strict=True))
    if eqn.primitive.multiple_results:
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


def _while(params: Mapping[str, Any]) -> Control:
    test, body = (compiled(params[key].jaxpr, params[key].consts) for key in ("cond_jaxpr", "body_jaxpr"))
    tests, bodies = params["cond_nconsts"], params["body_nconsts"]

    def run(args: Sequence[Any]) -> list[Any]:
        tested, shared, state = args[:tests], args[tests : tests + bodies], [*args[tests + bodies :]]
        while test([*tested, *state])[0]:
            state = body([*shared, *state])
        return state

    return run


def _cond(params: Mapping[str, Any]) -> Control:
    arms = [compiled(arm.jaxpr, arm.consts) for arm in params["branches"]]
    return lambda args: arms[min(max(int(args[0]), 0), len(arms) - 1)](args[1:])


def _scan(params: Mapping[str, Any]) -> Control:
    body = compiled(params["jaxpr"].jaxpr, params["jaxpr"].consts)
    consts, carried, length = params["num_consts"], params["num_carry"], params["length"]
    stacked = [v.aval for v in params["jaxpr"].jaxpr.outvars[carried:]]

    def run(args: Sequence[Any]) -> list[Any]:
        shared, state, columns = args[:consts], [*args[consts : consts + carried]], args[consts + carried :]
        rows = [np.empty((length, *aval.shape), aval.dtype) for aval in stacked]
        for k in range(length)[:: -1 if params["reverse"] else 1]:
            outs = body([*shared, *state, *(column[k] for column in columns)])
            state = outs[:carried]
            for row, out in zip(rows, outs[carried:], strict=True):
                row[k] = out
        return [*state, *rows]

    return run


def _sort(params: Mapping[str, Any]) -> Control:
    axis = params["dimension"]

    def run(args: Sequence[Any]) -> list[Any]:
        order = np.lexsort(args[: params["num_keys"]][::-1], axis)
        return [np.take_along_axis(x, order, axis) for x in args]

    return run


def _shift(fn: Any, signed: bool = False) -> Any:
    """A shift, by more bits than there are too."""

    def run(x: Any, by: Any) -> Any:
        x, by = np.asarray(x), np.asarray(by)
        bits, unsigned = x.dtype.itemsize * 8, np.dtype(f"u{x.dtype.itemsize}")
        far = by.view(unsigned) >= bits
        if signed:
            out = fn(x, np.where(far, bits - 1, by).astype(x.dtype))
        else:
            moved = fn(x.view(unsigned), np.where(far, 0, by).astype(unsigned))
            out = np.where(far, unsigned.type(0), moved).view(x.dtype)
        return out if out.ndim else out[()]

    return run


def _arg(fn: Any) -> Any:
    def make(params: Mapping[str, Any], eqn: Any) -> Any:
        (axis,), dtype = params["axes"], params["index_dtype"]
        return lambda x: fn(x, axis).astype(dtype)

    return make


def _pad(params: Mapping[str, Any], eqn: Any) -> Any:
    if any(low < 0 or high < 0 or inner for low, high, inner in params["padding_config"]):
        return _by_jax(eqn)
    shape = eqn.outvars[0].aval.shape
    starts = [low for low, _, _ in params["padding_config"]]

    def run(x: Any, value: Any) -> Any:
        out = np.full(shape, value, np.asarray(x).dtype)
        out[tuple(slice(s, s + n) for s, n in zip(starts, np.shape(x), strict=True))] = x
        return out if shape else out[()]

    return run


def _iota(params: Mapping[str, Any], eqn: Any) -> Any:
    value = np.indices(params["shape"], params["dtype"])[params["dimension"]]
    return lambda: value


def _empty(params: Mapping[str, Any], eqn: Any) -> Any:
    """An array of anything: of what no lane would take for a number of its own."""
    shape, dtype = params["shape"], np.dtype(params["dtype"])
    anything = True if dtype == np.bool_ else np.nan if dtype.kind in "fc" else np.iinfo(dtype).max // 3
    return lambda: np.full(shape, anything, dtype) if shape else dtype.type(anything)


def _round(params: Mapping[str, Any], eqn: Any) -> Any:
    return np.rint if params["rounding_method"] == jax.lax.RoundingMethod.TO_NEAREST_EVEN else _by_jax(eqn)


def _extreme(fn: Any) -> Any:
    return lambda params, eqn: lambda x: fn(x, axis=params["axes"])


def _reduce(fn: Any) -> Any:
    return lambda params, eqn: lambda x: fn(x, axis=params["axes"], dtype=np.asarray(x).dtype)


CONTROL: dict[str, Callable[[Mapping[str, Any]], Control]] = {
    "while": _while, "cond": _cond, "scan": _scan, "sort": _sort,
}  # fmt: skip
# A `scan` of newer releases of JAX says otherwise which of its operands are carried: JAX itself runs it then.
NEEDED = {"scan": {"num_consts", "num_carry", "length", "reverse", "jaxpr"}}
SIMPLE: dict[str, Callable[..., Any]] = {
    "pcbatch_rounded": lambda value, of: value,
    "add": operator.add, "add_any": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": np.invert, "abs": np.abs, "sign": np.sign,
    "floor": np.floor, "max": np.maximum, "min": np.minimum, "rem": np.fmod, "div": _divide, "select_n": _select,
    "shift_left": _shift(operator.lshift), "shift_right_logical": _shift(operator.rshift),
    "shift_right_arithmetic": _shift(operator.rshift, signed=True), "square": np.square,
    "copy": lambda x: x, "stop_gradient": lambda x: x,
}  # fmt: skip
PARAMETRIC: dict[str, Callable[[Mapping[str, Any], Any], Callable[..., Any]]] = {
    "convert_element_type": _cast, "reshape": _reshape, "squeeze": _reshape, "broadcast_in_dim": _broadcast,
    "dynamic_slice": _dynamic_slice, "slice": _slice, "gather": gather,
    "scatter": scatter(lambda old, new: new), "scatter-add": scatter(operator.add),
    "scatter-mul": scatter(operator.mul), "scatter-max": scatter(np.maximum), "scatter-min": scatter(np.minimum),
    "argmax": _arg(np.argmax), "argmin": _arg(np.argmin), "pad": _pad, "round": _round,
    "rev": lambda params, eqn: lambda x: np.flip(x, params["dimensions"]),
    "stack": lambda params, eqn: lambda *xs: np.stack(xs, params["axis"]),
    "concatenate": lambda params, eqn: lambda *xs: np.concatenate(xs, params["dimension"]),
    "integer_pow": lambda params, eqn: lambda x: (x ** params["y"]).astype(np.asarray(x).dtype),
    "iota": _iota, "empty": _empty,
    "reduce_sum": _reduce(np.sum),
    "reduce_max": _extreme(np.max),
    "reduce_min": _extreme(np.min),
    "reduce_or": _reduce(np.logical_or.reduce),
    "reduce_and": _reduce(np.logical_and.reduce),
}  # fmt: skip
