"""Lanes inside `jax.jit` that XLA splits over devices: a machine on each, and no collective in its loop.

The tracing of a `jit` does not know where arrays will lie (unless the mesh has explicit axes). XLA decides that while
it compiles, and would split every operation of one machine: then each trip of it asks all devices whether a lane is
still live. Instead the run is one operation of JAX, about which XLA asks how it wants to be split: by lanes, each part
a run of its own. In order of time:

    trace     `split_by_xla` traces a run of all lanes to a jaxpr, and binds the primitive `pcbatch_lanes`: its
              parameters are that jaxpr and the function `part(lanes)`, a run of fewer lanes (`SplittableRun`).
    lower     JAX lowers the primitive by `_lowered`. For one device, inside a `shard_map` and for export that is the
              traced jaxpr; for several devices it is a call that XLA asks about (`jax`'s `custom_partitioning`).
              JAX tells devices to a lowering only if it sees such a call in a jaxpr among the parameters of equations:
              the parameter `split` here, and `asking()` in the operation of `transforms.run` around it.
    XLA asks  While it compiles, XLA propagates shardings through the call, by the rule that lanes are one factor of
              operands and results (`_rule`), and then calls `partition` with the shardings that it has found.
    part      `partition` chooses the axes of the mesh that lanes are split over (`_axes`) and traces a run of
              `lanes // devices` lanes. Numbers of trips and visits are added up over the devices after the run.

tests/runtime/test_custom_partitioning.py follows a call through these steps.
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
from pcbatch.runtime.sharding.lane_sharding import lane_axes, partition_spec, places_along, without_mesh
from pcbatch.runtime.vm import wide_counters
from pcbatch.runtime.vm.raw_result import RawResult

Run = Callable[[dict[str, Any], int], RawResult]  # arguments by parameter and the number of lanes -> its raw result

# The kinds of results, which say how the results of parts become those of the whole.
LANES = "lanes"  # one value per lane
TRIPS = "trips"  # a number, to be added up
COUNTS = "counts"  # numbers in two words each, to be added up

FACTOR = "l"  # the name of the lanes in rules for Shardy


@dataclass(frozen=True, slots=True, eq=False)
class SplittableRun:
    """A run of some lanes on arrays, and of any part of them: the parameter `job` of the primitive."""

    closed: jex.ClosedJaxpr  # the run of all lanes
    part: Callable[
        [int], Callable[..., list[Any]]
    ]  # a number of lanes -> the run of so many, as a function of operands
    lanes: int
    mapped: tuple[bool, ...]  # of each operand: the lanes are its first axis
    kinds: tuple[str, ...]  # of each result: `LANES`, `TRIPS` or `COUNTS`

    def whole(self, *operands: Any) -> list[Any]:
        """Run all lanes in one machine; return the results."""
        out: list[Any] = jex.jaxpr_as_fun(self.closed)(*operands)
        return out


@dataclass(frozen=True, slots=True)
class _ResultStructure:
    """The raw result of a run without its arrays, known once the run has been traced."""

    tree: Any  # of JAX
    key_impls: list[Any]  # of each leaf: the implementation of a PRNG key, None of other arrays
    kinds: tuple[str, ...]


def split_by_xla(run: Run, mapped: Mapping[str, Any], common: Mapping[str, Any], lanes: int) -> RawResult:
    """Run a program inside a trace so that XLA may split it by lanes.

    Args:
        run: Runs some of the lanes. It may be called several times, and while XLA compiles.
        mapped: The arguments with a value per lane, [lanes, ...] each.
        common: The arguments that all lanes share.
        lanes: The number of lanes.

    Returns:
        The result of `run({**mapped, **common}, lanes)`.
    """
    arrays, tree = jax.tree.flatten((dict(mapped), dict(common)))
    impls = [_key_impl(x) for x in arrays]
    structures: list[_ResultStructure] = []  # of every run that was traced, all alike

    def part(lanes: int) -> Callable[..., list[Any]]:
        def run_part(*operands: Any) -> list[Any]:
            of_part, shared = jax.tree.unflatten(tree, map(_with_key_impl, operands, impls))
            result = run({**of_part, **shared}, lanes)
            leaves, result_tree = jax.tree.flatten(result)
            kinds = tuple(jax.tree.leaves(_kinds(result)))
            structures.append(_ResultStructure(result_tree, [_key_impl(x) for x in leaves], kinds))
            return [_without_key_impl(x) for x in leaves]

        return run_part

    # XLA's call takes no typed PRNG keys: they pass as the integers that they are made of.
    operands = [_without_key_impl(x) for x in arrays]
    closed = jax.make_jaxpr(part(lanes))(*operands)
    structure = structures[0]
    if closed.effects or any(isinstance(x, jax.core.Tracer) or is_key_array(x) for x in closed.consts):
        out = jex.jaxpr_as_fun(closed)(*operands)  # prints, and what cannot become an operand, forbid to split it
    else:
        flags = tuple(k < len(mapped) for k in range(len(arrays)))  # the mapped ones come first in the tree
        job = SplittableRun(closed, part, lanes, flags, structure.kinds)
        out = _bind(_with_constants(job, operands), [*closed.consts, *operands])
    result: RawResult = jax.tree.unflatten(structure.tree, map(_with_key_impl, out, structure.key_impls))
    return result


def _with_constants(job: SplittableRun, operands: Sequence[Any]) -> SplittableRun:
    """Return a run with the constants of its jaxpr as more operands in front: a call that XLA asks about has none."""
    closed, count = job.closed, len(job.closed.consts)
    if not count:
        return job

    def whole(*operands: Any) -> list[Any]:
        out: list[Any] = jex.jaxpr_as_fun(jex.ClosedJaxpr(closed.jaxpr, list(operands[:count])))(*operands[count:])
        return out

    def part(lanes: int) -> Callable[..., list[Any]]:
        return lambda *operands: job.part(lanes)(*operands[count:])  # its trace has the constants again

    lifted = jax.make_jaxpr(whole)(*closed.consts, *operands)
    return replace(job, closed=lifted, part=part, mapped=(False,) * count + job.mapped)


def _kinds(result: RawResult) -> RawResult:
    """Return a raw result with the kind of each leaf in its place."""
    per_lane: RawResult = jax.tree.map(lambda _: LANES, result)
    return replace(per_lane, trips=TRIPS, counts=jax.tree.map(lambda _: COUNTS, result.counts))


def _key_impl(array: Any) -> Any:
    return jax.random.key_impl(array) if is_key_array(array) else None


def _without_key_impl(array: Any) -> Any:
    return jax.random.key_data(array) if is_key_array(array) else jnp.asarray(array)


def _with_key_impl(array: Any, impl: Any) -> Any:
    return array if impl is None else jax.random.wrap_key_data(array, impl=impl)


# The primitive. It stands inside the operation of `transforms.run`, so it needs no rules for transformations.

lanes_p = jex.Primitive("pcbatch_lanes")
lanes_p.multiple_results = True


def _bind(job: SplittableRun, operands: Sequence[Any]) -> list[Any]:
    bind: Any = lanes_p.bind  # untyped in some releases of JAX
    # A jaxpr, so that JAX sees in it that devices must be known when the primitive is lowered.
    split = jax.make_jaxpr(_split(job))(*operands)
    out: list[Any] = bind(*operands, job=job, split=split)
    return out


@functools.cache
def asking() -> jex.ClosedJaxpr:
    """Return a jaxpr with a call that XLA asks about, of no use but to be seen.

    JAX tells devices to the lowering of an equation only if it finds such a call in a jaxpr among its parameters. An
    operation around `split_by_xla` takes this one as a parameter, since the jaxpr of its run is not among them.
    """
    make: Any = custom_partitioning  # untyped in some releases of JAX
    function = make(lambda x: x)
    function.def_partition(partition=None, sharding_rule="... -> ...")
    with without_mesh(), jax.ensure_compile_time_eval():
        return jax.make_jaxpr(function)(0.0)


def _impl_rule(*operands: Any, job: SplittableRun, split: Any) -> list[Any]:
    out: list[Any] = jax.jit(job.whole)(*operands)
    return out


def _lowered(ctx: Any, *operands: Any, job: SplittableRun, split: jex.ClosedJaxpr) -> Any:
    function = jex.jaxpr_as_fun(split) if is_spread(ctx.module_context) else job.whole
    return mlir.lower_fun(function, multiple_results=True)(ctx, *operands)


def is_spread(module: Any) -> bool:
    """Whether a module is compiled for several devices, with shardings that XLA chooses, and to be run by this process.

    `module` is the `ModuleContext` of a lowering. Inside a `shard_map` (manual axes) there is nothing to choose; an
    exported module cannot call back into this process while it is compiled.
    """
    context = module.axis_context
    manual = getattr(context, "manual_axes", ())
    devices = getattr(context, "num_devices", 1)
    return not manual and devices > 1 and not module.lowering_parameters.for_export


_rules: Any = lanes_p  # untyped in some releases of JAX
# From JAX 0.12 on some functions of NumPy's, such as `nonzero`, are operations of a higher level, which JAX rewrites.
# Which equations have some, it asks their parameters; those of this one are rewritten when it is lowered.
_rules.is_high = lambda *avals, **params: False
_rules.def_impl(_impl_rule)
_rules.def_abstract_eval(lambda *operands, job, split: list(job.closed.out_avals))
mlir.register_lowering(lanes_p, _lowered)


# The answers to XLA.


def _split(job: SplittableRun) -> Callable[..., Any]:
    """Return the run of all lanes as a function of operands that XLA asks about."""
    make: Any = custom_partitioning  # untyped in some releases of JAX
    function = make(job.whole)

    def shardings(mesh: Any, shapes: Sequence[Any]) -> tuple[tuple[str, ...], tuple[Any, ...], list[Any]]:
        """Return the axes that lanes are split over, and the shardings of operands and results."""
        axes = _axes(job, mesh, shapes)
        by_lanes = NamedSharding(mesh, partition_spec(axes or None))
        replicated = NamedSharding(mesh, partition_spec())
        ins = tuple(by_lanes if mapped else replicated for mapped in job.mapped)
        return axes, ins, [by_lanes if kind == LANES else replicated for kind in job.kinds]

    def partition(mesh: Any, shapes: Sequence[Any], _: Any) -> tuple[Any, Any, Any, Any]:
        axes, ins, outs = shardings(mesh, shapes)
        devices = places_along(mesh, axes)

        def part(*operands: Any) -> list[Any]:
            out = job.part(job.lanes // devices)(*operands)
            return [_combined(x, kind, axes) for x, kind in zip(out, job.kinds, strict=True)]

        return mesh, part, outs, ins

    function.def_partition(
        partition=partition,
        infer_sharding_from_operands=lambda mesh, shapes, _: shardings(mesh, shapes)[2],
        sharding_rule=_rule(job),
    )
    return function  # type: ignore[no-any-return]


def _axes(job: SplittableRun, mesh: Any, shapes: Sequence[Any]) -> tuple[str, ...]:
    """Return the axes of the mesh that lanes are split over: those of the first operand with split lanes, or none."""
    for shape, mapped in zip(shapes, job.mapped, strict=True):
        if mapped and isinstance(shape.sharding, NamedSharding) and (axes := lane_axes(shape.sharding)):
            # Where they do not divide, XLA would pad operands with junk: then every device runs all lanes.
            if job.lanes % places_along(mesh, axes) == 0:
                return axes
    return ()


def _rule(job: SplittableRun) -> Any:
    """Return the sharding rule for Shardy: lanes are one factor, and every other axis is one that is not split."""
    closed = job.closed
    unsplit: list[str] = []

    def mapping(ndim: int, lanes: bool) -> Any:
        names = [f"d{len(unsplit) + axis}" for axis in range(ndim - lanes)]
        unsplit.extend(names)
        make: Any = ArrayMapping  # untyped in some releases of JAX
        return make(*([FACTOR] if lanes else []), *names)

    ins = tuple(mapping(len(aval.shape), lanes) for aval, lanes in zip(closed.in_avals, job.mapped, strict=True))
    outs = tuple(mapping(len(a.shape), kind == LANES) for a, kind in zip(closed.out_avals, job.kinds, strict=True))
    return SdyShardingRule(ins, outs, need_replication_factors=tuple(unsplit))


def _combined(array: Any, kind: str, axes: tuple[str, ...]) -> Any:
    """Return a result of one part as the result of all parts; `axes` are those that lanes are split over."""
    if not axes or kind == LANES:
        return array
    if kind == TRIPS:
        psum: Any = jax.lax.psum  # untyped in some releases of JAX
        return psum(array, axes)
    return functools.reduce(wide_counters.plus, jax.lax.all_gather(array, axes))
