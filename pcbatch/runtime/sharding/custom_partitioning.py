"""Lanes inside `jax.jit` that XLA spreads over devices: a machine on each, and no collective in its loop.

What `jit` traces does not say where arrays will lie (unless the mesh has explicit axes). XLA decides that while it
compiles, and would split every operation of one machine: each trip of it then asks all devices whether a lane still
runs. So the run becomes one operation of JAX, which is lowered, for several devices, to a function that XLA asks how it
wants to be split: by lanes, each part a run of its own. For one device it is lowered to what was traced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
from jax.experimental.custom_partitioning import ArrayMapping, SdyShardingRule, custom_partitioning
from jax.interpreters import mlir
from jax.sharding import NamedSharding

from pcbatch.lowering.typing.trace import is_key_array
from pcbatch.runtime.sharding.ambient_mesh import without_mesh
from pcbatch.runtime.sharding.lane_sharding import lane_axes, partition_spec
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.raw_result import RawResult

Run = Callable[[dict[str, Any], int], RawResult]  # arguments and the number of lanes -> what they leave
LANES = "lanes"  # a result with a value per lane
TRIPS = "trips"  # a number to add up over devices
COUNTS = "counts"  # numbers in two words each, likewise
FACTOR = "l"  # what XLA calls the lanes


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A run as XLA may split it. `closed`: of all lanes; `part(lanes)`: of so many. `mapped` tells which operands have
    lanes in front, `kinds` what each result is."""

    closed: jex.ClosedJaxpr
    part: Callable[[int], Callable[..., list[Any]]]
    lanes: int
    mapped: tuple[bool, ...]
    kinds: tuple[str, ...]

    def whole(self, *operands: Any) -> list[Any]:
        """All lanes in one machine."""
        out: list[Any] = jex.jaxpr_as_fun(self.closed)(*operands)
        return out


def split_by_xla(run: Run, mapped: Mapping[str, Any], common: Mapping[str, Any], lanes: int) -> RawResult:
    """`run({**mapped, **common}, lanes)` inside a trace; XLA may split it by lanes."""
    given, tree = jax.tree.flatten((dict(mapped), dict(common)))
    impls = [_impl(x) for x in given]
    made: list[Any] = []

    def part(lanes: int) -> Callable[..., list[Any]]:
        def some(*operands: Any) -> list[Any]:
            mine, shared = jax.tree.unflatten(tree, map(_wrapped, operands, impls))
            outcome = run({**mine, **shared}, lanes)
            leaves, out_tree = jax.tree.flatten(outcome)
            made[:] = [out_tree, [_impl(x) for x in leaves], jax.tree.leaves(_kinds(outcome))]
            return [_raw(x) for x in leaves]

        return some

    operands = [_raw(x) for x in given]
    closed = jax.make_jaxpr(part(lanes))(*operands)
    out_tree, out_impls, kinds = made
    if closed.effects or any(isinstance(x, jax.core.Tracer) or is_key_array(x) for x in closed.consts):
        out = jex.jaxpr_as_fun(closed)(*operands)
    else:
        flags = tuple(k < len(mapped) for k in range(len(given)))  # in the order of the tree
        job = Job(closed, part, lanes, flags, tuple(kinds))
        out = _bound(_with_constants(job, operands), [*closed.consts, *operands])
    outcome: RawResult = jax.tree.unflatten(out_tree, map(_wrapped, out, out_impls))
    return outcome


def _with_constants(job: Job, operands: Sequence[Any]) -> Job:
    """The same with the constants of its jaxpr as operands in front: what XLA is asked about may hold none."""
    closed, count = job.closed, len(job.closed.consts)
    if not count:
        return job

    def whole(*given: Any) -> list[Any]:
        out: list[Any] = jex.jaxpr_as_fun(jex.ClosedJaxpr(closed.jaxpr, list(given[:count])))(*given[count:])
        return out

    def part(lanes: int) -> Callable[..., list[Any]]:
        return lambda *given: job.part(lanes)(*given[count:])

    lifted = jax.make_jaxpr(whole)(*closed.consts, *operands)
    return replace(job, closed=lifted, part=part, mapped=(False,) * count + job.mapped)


def _kinds(outcome: RawResult) -> RawResult:
    """What each leaf is."""
    per_lane: RawResult = jax.tree.map(lambda _: LANES, outcome)
    return replace(per_lane, trips=TRIPS, counts=jax.tree.map(lambda _: COUNTS, outcome.counts))


def _impl(array: Any) -> Any:
    return jax.random.key_impl(array) if is_key_array(array) else None


def _raw(array: Any) -> Any:
    return jax.random.key_data(array) if is_key_array(array) else jnp.asarray(array)


def _wrapped(array: Any, impl: Any) -> Any:
    return array if impl is None else jax.random.wrap_key_data(array, impl=impl)


# The operation. It stands inside that of `transforms.run`, so no transformation meets it.

lanes_p = jex.Primitive("pcbatch_lanes")
lanes_p.multiple_results = True


def _bound(job: Job, operands: Sequence[Any]) -> list[Any]:
    bind: Any = lanes_p.bind  # untyped in some releases of JAX
    # As a jaxpr, in which JAX sees that devices must be known when this is lowered.
    split = jax.make_jaxpr(_split(job))(*operands)
    out: list[Any] = bind(*operands, job=job, split=split)
    return out


@functools.cache
def asking() -> jex.ClosedJaxpr:
    """A jaxpr that asks XLA, for an operation around such a run: JAX looks for it in parameters."""
    make: Any = custom_partitioning  # untyped in some releases of JAX
    function = make(lambda x: x)
    function.def_partition(partition=None, sharding_rule="... -> ...")
    with without_mesh(), jax.ensure_compile_time_eval():
        return jax.make_jaxpr(function)(0.0)


def _impl_rule(*operands: Any, job: Job, split: Any) -> list[Any]:
    out: list[Any] = jax.jit(job.whole)(*operands)
    return out


def _lowered(ctx: Any, *operands: Any, job: Job, split: jex.ClosedJaxpr) -> Any:
    function = jex.jaxpr_as_fun(split) if is_spread(ctx.module_context) else job.whole
    return mlir.lower_fun(function, multiple_results=True)(ctx, *operands)


def is_spread(module: Any) -> bool:
    """Is this compiled for several devices, by XLA as it likes, and run where it is compiled?"""
    around = module.axis_context
    manual = getattr(around, "manual_axes", ())
    devices = getattr(around, "num_devices", 1)
    return not manual and devices > 1 and not module.lowering_parameters.for_export


_rules: Any = lanes_p  # untyped in some releases of JAX
_rules.def_impl(_impl_rule)
_rules.def_abstract_eval(lambda *operands, job, split: list(job.closed.out_avals))
mlir.register_lowering(lanes_p, _lowered)


# How XLA splits it.


def _split(job: Job) -> Callable[..., Any]:
    make: Any = custom_partitioning  # untyped in some releases of JAX
    function = make(job.whole)

    def shardings(mesh: Any, shapes: Sequence[Any]) -> tuple[tuple[str, ...], tuple[Any, ...], list[Any]]:
        axes = _axes(job, mesh, shapes)
        front = NamedSharding(mesh, partition_spec(axes or None))
        whole = NamedSharding(mesh, partition_spec())
        ins = tuple(front if mapped else whole for mapped in job.mapped)
        return axes, ins, [front if kind == LANES else whole for kind in job.kinds]

    def partition(mesh: Any, shapes: Sequence[Any], _: Any) -> tuple[Any, Any, Any, Any]:
        axes, ins, outs = shardings(mesh, shapes)
        devices = functools.reduce(lambda n, name: n * mesh.shape[name], axes, 1)

        def part(*operands: Any) -> list[Any]:
            out = job.part(job.lanes // devices)(*operands)
            return [_added(x, kind, axes) for x, kind in zip(out, job.kinds, strict=True)]

        return mesh, part, outs, ins

    function.def_partition(
        partition=partition,
        infer_sharding_from_operands=lambda mesh, shapes, _: shardings(mesh, shapes)[2],
        sharding_rule=_rule(job),
    )
    return function  # type: ignore[no-any-return]


def _axes(job: Job, mesh: Any, shapes: Sequence[Any]) -> tuple[str, ...]:
    """The axes that lanes are split over: as the first operand is that has lanes on several devices."""
    for shape, mapped in zip(shapes, job.mapped, strict=True):
        if mapped and isinstance(shape.sharding, NamedSharding) and (axes := lane_axes(shape.sharding)):
            parts = functools.reduce(lambda n, name: n * mesh.shape[name], axes, 1)
            if job.lanes % parts == 0:  # else XLA fills up with what is no input, and every device runs all lanes
                return axes
    return ()


def _rule(job: Job) -> Any:
    """For Shardy: lanes are one factor, everything else one of its own that is not split."""
    closed = job.closed
    others: list[str] = []

    def mapping(ndim: int, lanes: bool) -> Any:
        names = [f"d{len(others) + axis}" for axis in range(ndim - lanes)]
        others.extend(names)
        make: Any = ArrayMapping  # untyped in some releases of JAX
        return make(*([FACTOR] if lanes else []), *names)

    ins = tuple(mapping(len(aval.shape), lanes) for aval, lanes in zip(closed.in_avals, job.mapped, strict=True))
    outs = tuple(mapping(len(a.shape), kind == LANES) for a, kind in zip(closed.out_avals, job.kinds, strict=True))
    return SdyShardingRule(ins, outs, need_replication_factors=tuple(others))


def _added(array: Any, kind: str, axes: tuple[str, ...]) -> Any:
    """A result of one part, as a result of all."""
    if not axes or kind == LANES:
        return array
    if kind == TRIPS:
        psum: Any = jax.lax.psum  # untyped in some releases of JAX
        return psum(array, axes)
    return functools.reduce(wide_counters.plus, jax.lax.all_gather(array, axes))
