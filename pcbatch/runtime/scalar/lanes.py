"""The loop over lanes, in one native function: each is cut out of the state, runs, and is put back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr

from pcbatch.runtime.scalar.loop_nest import Nest, blocks_of, loop_nest
from pcbatch.runtime.scalar.native import in_one_function, own_call
from pcbatch.runtime.scalar.visit import read_back, scalars_of, visit
from pcbatch.runtime.scalar.visit_order import Ordered
from pcbatch.runtime.scalar.words import NUMBER, Words
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.layout import PER_BLOCK, Layout
from pcbatch.runtime.vm.status import Status, parked
from pcbatch.runtime.vm.step import written as step_keys

VISITS = "visits of this lane"  # of a lane: those since it was cut out, int32[]; counted if they have a budget
BACK = "return address"  # of each lane, int32[lanes], where it leaves no frames


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a program that lanes run one after the other.

    Attributes:
        layout: The machine's arrays, with bodies of blocks for one lane.
        outside: The numbers of blocks that are not in it: a lane stops in front of them.
        passing: The state keys of registers whose values no lane leaves, and frames.
        in_place: The state keys of arrays of which a lane is not cut out: it reads and writes those of all lanes.
    """

    layout: Layout
    outside: frozenset[int] = frozenset()
    passing: frozenset[str] = frozenset()
    in_place: frozenset[str] = frozenset()

    @property
    def codes(self) -> tuple[BlockCode, ...]:
        """The blocks that lanes wait for."""
        return tuple(c for c in self.layout.codes if c.awaited and c.index not in self.outside)

    def codes_of(self, nest: Nest) -> tuple[BlockCode, ...]:
        """Return those of a nest."""
        inside = frozenset(blocks_of(nest))
        return tuple(code for code in self.codes if code.index in inside)


def run_lanes(
    part: Part, carry: Values, unset: Values, shared: Values, lanes: jax.Array, budget: jax.Array | None
) -> tuple[Values, jax.Array]:
    """Let each of the first `lanes` lanes run until it ends, waits for a block outside, or has used up its budget.

    Args:
        part: The program.
        carry: The machine's arrays, of all lanes.
        unset: Registers and frames of one lane, which each lane sets before it reads them.
        shared: The values that all lanes share.
        lanes: See above, int32[].
        budget: Of visits, int32[]; None: no limit.

    Returns:
        What lanes leave of the state, and the most visits that a lane has made, int32[]; one where there is no budget.
    """
    constant, changing = rows(part, carry)
    nest = loop_nest(part.layout.program, part.outside)

    def one(number: jax.Array, c: tuple[Values, Values, jax.Array]) -> tuple[Values, Values, jax.Array]:
        changing, passed, most = c
        lane = begin(part, constant | changing, passed, number, budget)
        in_place = part.in_place - {*part.layout.buffers}
        words = Words.of(lane, in_place, in_place & frozenset(constant))
        lane = words.unpacked(advance(part, words, nest, words.packed(lane), shared, lanes, budget))
        left, most = end(part, changing, lane, number, most, budget)
        # What passes goes on to the next lane, in place.
        return left, {key: lane[key] for key in passed}, most

    done, _, most = jax.lax.fori_loop(0, lanes, one, (changing, unset, jnp.int32(0)))
    return {key: value.reshape(carry[key].shape) for key, value in done.items()}, most


def rows(part: Part, carry: Values) -> tuple[Values, Values]:
    """Return the arrays of the state with an axis of lanes: those that no lane changes, and those in which lanes leave
    something."""
    layout = part.layout
    inside = [code for code in layout.codes if code.index not in part.outside]
    written = {"pc", BACK, *layout.buffers} | {key for code in inside for key in step_keys(layout, code)}
    every = {key: by_lane(layout, key, value, carry["pc"].shape[0]) for key, value in carry.items()}
    changing = {key: value for key, value in every.items() if key in written - part.passing}
    return {key: value for key, value in every.items() if key not in changing}, changing


def lane_by_lane(compute: Callable[[Values], Any], rows: Values) -> Any:
    """Return `compute(rows)`, computed lane after lane in one native function.

    `compute` takes rows and gives a pytree of arrays, [lanes, ...] each, each lane's part from the lane's own. XLA
    hands a program of more than a thousand operations to another thread, which takes longer than many a run: here it
    counts those of one lane.
    """
    closed, types = jax.make_jaxpr(compute, return_shape=True)(rows)
    leaves, tree = jax.tree.flatten(types)
    in_place = _in_place(closed.jaxpr, rows)

    def run(rows: Values, lanes: jax.Array) -> list[Any]:
        def one(number: jax.Array, out: list[Any]) -> list[Any]:
            lane = _cut({key: row for key, row in rows.items() if key not in in_place.values()}, number)
            if in_place:  # in a call of its own, before any of it is stored into
                lane |= own_call(_cut, {key: out[k] for k, key in in_place.items()}, number)
            store = partial(jax.lax.dynamic_update_slice_in_dim, start_index=number, axis=0)
            return list(map(store, out, jax.tree.leaves(compute(lane))))

        begin = [rows[in_place[k]] if k in in_place else jnp.zeros(x.shape, x.dtype) for k, x in enumerate(leaves)]
        out: list[Any] = jax.lax.fori_loop(0, lanes, one, begin)
        return out

    return jax.tree.unflatten(tree, in_one_function(run)(rows, jnp.int32(rows["pc"].shape[0])))


def _cut(rows: Values, number: jax.Array) -> Values:
    return {key: jax.lax.dynamic_slice_in_dim(value, number, 1) for key, value in rows.items()}


def _in_place(jaxpr: Any, rows: Values) -> dict[int, str]:
    """Return the results of a computation, by number, that take the place of one of its operands, the rows: an array of
    the same shape and dtype, of which no other result is computed. A result of megabytes for each lane is not written
    to memory twice."""
    outs = range(len(jaxpr.outvars))
    used = [dce_jaxpr(jaxpr, [j == k for j in outs])[1] for k in outs]
    found: dict[int, str] = {}
    for key, needed in zip(sorted(rows), zip(*used, strict=True), strict=True):
        row, by = rows[key], [k for k in outs if needed[k]]
        if row.ndim > 1 and row.size and len(by) == 1 and by[0] not in found:
            out = jaxpr.outvars[by[0]].aval
            found |= {by[0]: key} if (out.shape, out.dtype) == (row.shape, row.dtype) else {}
    return found


def by_lane(layout: Layout, key: str, value: jax.Array, lanes: int) -> jax.Array:
    """Return an array of the state with an axis of lanes: the second one of frames, the first one of others."""
    if key not in layout.buffers:
        return value
    return value.reshape(value.shape[0] // lanes, lanes, value.shape[1])


def cut_out(part: Part, rows: Values, number: jax.Array) -> Values:
    """Return the state of one lane: what changes often is worked on by itself, as XLA copies the arrays of all lanes
    in each step otherwise."""
    out: Values = {NUMBER: number} if part.in_place else {}
    for key, value in rows.items():
        if key in PER_BLOCK or key in part.in_place:
            out[key] = value
        else:
            axis = 1 if key in part.layout.buffers else 0
            out[key] = jax.lax.dynamic_index_in_dim(value, number, axis, False, allow_negative_indices=False)
    return out | {"pc": out["pc"].astype(jnp.int32)}


def put_back(part: Part, rows: Values, lane: Values, number: jax.Array) -> Values:
    """Return the state of all lanes with that of one of them in its place: the inverse of `cut_out`."""
    out: Values = {}
    for key, value in rows.items():
        new = lane[key].astype(value.dtype)
        if key in PER_BLOCK or key in part.in_place:
            out[key] = new
        else:
            axis = 1 if key in part.layout.buffers else 0
            out[key] = jax.lax.dynamic_update_index_in_dim(value, new, number, axis, allow_negative_indices=False)
    return out


def begin(part: Part, rows: Values, passed: Values, number: jax.Array, budget: jax.Array | None) -> Values:
    """Return the state of a lane that begins to run; `passed` is what it does not have from the state of all lanes."""
    lane = cut_out(part, {key: value for key, value in rows.items() if key not in passed}, number) | passed
    return lane if budget is None else lane | {VISITS: jnp.int32(0)}


def end(
    part: Part, rows: Values, lane: Values, number: jax.Array, most: jax.Array, budget: jax.Array | None
) -> tuple[Values, jax.Array]:
    """Return the state of all lanes with that of a lane that has run, and the most visits of a lane with its own."""
    layout = part.layout
    if layout.max_steps is not None:
        over = (lane["pc"] < layout.exit) & (lane["steps"] >= layout.max_steps)
        over = over if budget is None else over & (budget > 0)
        lane = lane | {"pc": jnp.where(over, parked(lane["pc"], layout.exit, Status.STEP_LIMIT), lane["pc"])}
    if BACK in rows:
        lane = lane | {BACK: read_back(lane)}
    return put_back(part, rows, lane, number), jnp.maximum(most, lane.get(VISITS, jnp.int32(1)))


def advance(
    part: Part, words: Words, nest: Nest, lane: Values, shared: Values, some: jax.Array, budget: jax.Array | None
) -> Values:
    """Return the state of a lane, packed, that has run until it waits for no block of a nest or has used up its budget.

    `some` is any value that XLA does not know.
    """
    layout, codes = part.layout, part.codes_of(nest)
    visits: dict[int, Ordered] = {}
    barrier: Any = jax.lax.optimization_barrier  # untyped

    def pc(lane: Values) -> jax.Array:
        # Where a loop's condition reads one number alone, XLA copies all that the number depends on in the loop, loops
        # inside of it included, to find out how often the loop goes round: half the time of a compilation.
        unknown: jax.Array = barrier((words.scalar(lane, "pc"), some))[0]
        return unknown

    def may_go_on(lane: Values) -> jax.Array:
        may = jnp.ones((), bool) if budget is None else words.scalar(lane, VISITS) < budget
        return may if layout.max_steps is None else may & (words.scalar(lane, "steps") < layout.max_steps)

    def step(code: BlockCode, lane: Values) -> Values:
        keys = [*scalars_of(layout, code), *(key for key in (VISITS, NUMBER) if key in words.places)]
        lane, values = words.read(lane, keys)
        # The program counter changes in each round. What does not depend on it XLA would move in front of the loop
        # around the block, and compute for lanes that do not wait there: a loop may have no end for them.
        own, used, _ = barrier((values, {v: shared[v] for v in code.shared}, words.scalar(lane, "pc")))
        if code.index not in visits:
            visits[code.index] = Ordered.of(partial(visit, layout, code), lane | own, used)
        out = visits[code.index](lane | own, used)
        return words.stored(lane, own, out | ({VISITS: own[VISITS] + 1} if VISITS in own else {}))

    steps = {code.index: partial(step, code) for code in codes}
    written = {k: jax.eval_shape(partial(_written, one), lane) for k, one in steps.items()}
    swept = {code.index: Visit(steps[code.index], written[code.index], code.scope) for code in codes}

    def waits(blocks: tuple[int, ...], lane: Values) -> jax.Array:
        return is_among(blocks, pc(lane)) & may_go_on(lane)

    # The strongly connected parts of the control flow are in order: no lane comes to one of them twice.
    return sweep(nest, swept, waits, lane)


def _written(step: Callable[[Values], Values], lane: Values) -> Values:
    return {key: new for key, new in step(lane).items() if new is not lane[key]}


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit of a block by a lane whose scalars are packed.

    Attributes:
        step: The visit, of the state of the lane.
        writes: The keys of what it changes.
        scope: The name of the block in XLA's programs and profiles.
    """

    step: Callable[[Values], Values]
    writes: Collection[str]
    scope: str


def sweep(
    nest: Nest, visits: Mapping[int, Visit], waits: Callable[[tuple[int, ...], Values], jax.Array], lane: Values
) -> Values:
    """Visit what the lane waits for, in order; a block, and a loop, until it waits elsewhere.

    `visits` are by the number of the block, and `waits` tells whether a lane waits for one of some blocks.
    """
    for each in nest:
        inside = (each,) if isinstance(each, int) else blocks_of(each)
        names = {name for k in inside if k in visits for name in visits[k].writes}
        if isinstance(each, int) and each in visits:
            with jax.named_scope(visits[each].scope):
                lane = _repeated(visits[each].step, partial(waits, inside), lane, names)
        elif not isinstance(each, int) and names:
            lane = _repeated(partial(sweep, each, visits, waits), partial(waits, inside), lane, names)
    return lane


def _repeated(
    step: Callable[[Values], Values], waits: Callable[[Values], jax.Array], lane: Values, names: Collection[str]
) -> Values:
    """Repeat a step while the lane waits for it. The loop carries what the step writes, `names`: XLA updates it in
    place."""
    rest = {key: value for key, value in lane.items() if key not in names}

    def body(c: Values) -> Values:
        new = step({**rest, **c})
        return {key: new[key] for key in c}

    new: Values = jax.lax.while_loop(
        lambda c: waits({**rest, **c}), body, {key: lane[key] for key in lane if key in names}
    )
    return {**lane, **new}


def is_among(blocks: tuple[int, ...], pc: jax.Array) -> jax.Array:
    """Whether a program counter is that of one of these blocks, whose numbers ascend."""
    runs: list[list[int]] = []
    for k in blocks:
        if runs and runs[-1][-1] == k - 1:
            runs[-1].append(k)
        else:
            runs.append([k])
    tests = [pc == run[0] if len(run) == 1 else (pc >= run[0]) & (pc <= run[-1]) for run in runs]
    return reduce(jnp.logical_or, tests) if tests else jnp.zeros((), bool)
