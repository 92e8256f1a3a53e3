"""The sections of a large program: native functions through which each lane goes in order, once.

before:  one function: for each lane { A B C D }
after:   for each lane { one function: A B,  another one: C D }

LLVM takes a time for a native function that grows with its size squared: for each loop that it turns or takes a store
out of, it goes over the memory accesses of the whole function. So a large program is cut between strongly connected
components of its control flow, which come in order. The loop over lanes is XLA's then, and calls the sections; the
state of a lane goes from one to the next in place. A call costs one to four microseconds, by its arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import jax
import jax.numpy as jnp

from pcbatch.ir.ops import Prim
from pcbatch.lowering.analysis.cost import all_equations
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.scalar.lanes import BACK, Part, advance, begin, end, rows
from pcbatch.runtime.scalar.loop_nest import Nest, blocks_of, loop_nest
from pcbatch.runtime.scalar.native import in_one_function
from pcbatch.runtime.scalar.visit import scalars_of, stacks_of
from pcbatch.runtime.scalar.words import ARRAYS, Words
from pcbatch.runtime.vm.block_body import BlockCode, Values
from pcbatch.runtime.vm.layout import Layout
from pcbatch.runtime.vm.step import written

CALL = 2500  # operations of JAX: a call is worth it if these in a function of their own are compiled sooner
BARE = 4  # operations that a block is counted as without any


def sections(layout: Layout) -> tuple[Nest, ...]:
    """Return the sections of a program, in order; one where it is not worth to cut it.

    `layout` are the machine's arrays, with bodies of blocks for one lane.
    """
    nest = loop_nest(layout.program)
    sizes = {code.index: _size(code) for code in layout.codes}
    each = [sum(sizes[k] for k in blocks_of((part,))) for part in nest]
    cuts = cheapest_cuts(each, CALL)
    return tuple(nest[low:high] for low, high in zip((0, *cuts), (*cuts, len(nest)), strict=True))


def cheapest_cuts(sizes: Sequence[int], call: int) -> tuple[int, ...]:
    """Return where to cut a sequence, so that the squares of the sizes of its sections, and `call` squared for each of
    them, have the least sum; nowhere if one section has less without its call.

    >>> cheapest_cuts([90, 10, 80, 5], call=30)
    (2,)
    >>> cheapest_cuts([9, 1, 8, 5], call=30)
    ()
    """
    total = (0, *accumulate(sizes))
    best: list[tuple[int, tuple[int, ...]]] = [(0, ())]  # for each number of parts in front: the sum, and the cuts
    for high in range(1, len(total)):
        ways = ((best[low][0] + (total[high] - total[low]) ** 2 + call**2, low) for low in range(high))
        cost, low = min(ways)
        best.append((cost, (*best[low][1], low) if low else ()))
    cost, cuts = best[-1]
    return cuts if cost < total[-1] ** 2 else ()


def _size(code: BlockCode) -> int:
    bodies = [op.expr.fn.closed for op in code.block.ops if isinstance(op, Prim) and isinstance(op.expr.fn, JaxprFn)]
    return BARE + sum(1 for closed in bodies for _ in all_equations(closed.jaxpr))


def run_in_sections(
    part: Part,
    nests: Sequence[Nest],
    carry: Values,
    unset: Values,
    shared: Values,
    lanes: jax.Array,
    budget: jax.Array | None,
) -> tuple[Values, jax.Array]:
    """Let lanes run as `lanes.run_lanes` does, each through the sections of a program that has no blocks outside.

    `nests` are the sections; the other arguments and the results are those of `run_lanes`.
    """
    constant, changing = rows(part, carry)
    barrier: Any = jax.lax.optimization_barrier  # untyped
    shared = barrier(shared)  # else known arrays, such as the places of an empty dict, are made anew for each lane
    words = Words.of(jax.eval_shape(partial(begin, part), constant | changing, unset, lanes, budget))
    # Scalars are made in the first section: each operand of a native function costs a call of it some nanoseconds.
    scalars = {key: value for key, value in unset.items() if key in words.places}
    arrays = {key: value for key, value in unset.items() if key not in words.places}
    ends = frozenset({*changing, *(("frames",) if BACK in changing else ())})
    ways = [
        _Section(part, words, nest, k == 0, {} if k else scalars, ends if k == len(nests) - 1 else frozenset())
        for k, nest in enumerate(nests)
    ]

    def begun(changing: Values) -> Values:
        return {key: value for key, value in (constant | changing).items() if key not in unset}

    def one(number: jax.Array, c: tuple[Values, Values, jax.Array]) -> tuple[Values, Values, jax.Array]:
        changing, passed, most = c
        lane, left = passed, changing
        numbers = {"number": number, "lanes": lanes, "budget": budget}
        for section in ways:
            every = begun(changing) if section.first else {}
            every |= changing if section.ends else {}
            own = {key: value for key, value in lane.items() if key in section.keys}
            used = {v: shared[v] for code in section.codes for v in code.shared}
            changed, ended, most = in_one_function(section)(every, own, used, numbers, most, jnp.int32(0))
            lane, left = lane | changed, left | ended
        return left, {key: lane[key] for key in passed}, most

    done, _, most = jax.lax.fori_loop(0, lanes, one, (changing, arrays, jnp.int32(0)))
    return {key: value.reshape(carry[key].shape) for key, value in done.items()}, most


@dataclass(frozen=True, slots=True)
class _Section:
    """A section of a program.

    Attributes:
        part: The program.
        words: The places of the scalars of a lane.
        nest: The blocks.
        first: Whether it cuts a lane out of the state of all.
        unset: For the first section the scalars that each lane sets before it reads them.
        ends: The state keys that are needed to put the lane back, if the section is the last one.
    """

    part: Part
    words: Words
    nest: Nest
    first: bool
    unset: Values
    ends: frozenset[str]

    @property
    def codes(self) -> tuple[BlockCode, ...]:
        return self.part.codes_of(self.nest)

    @property
    def writes(self) -> frozenset[str]:
        """The state keys of what it changes of a lane, packed."""
        return frozenset({*ARRAYS, *(key for code in self.codes for key in written(self.part.layout, code))})

    @property
    def keys(self) -> frozenset[str]:
        """The state keys of what it needs of a lane, packed."""
        layout = self.part.layout
        read = {key for code in self.codes for key in (*scalars_of(layout, code), *stacks_of(layout, code))}
        return self.writes | read | self.ends

    def __call__(
        self,
        every: Values,
        lane: Values,
        shared: Values,
        numbers: Mapping[str, Any],
        most: jax.Array,
        zero: jax.Array,
    ) -> tuple[Values, Values, jax.Array]:
        """Return what the section changes of a lane, what it changes of all lanes, and the most visits of a lane.

        Args:
            every: The arrays of all lanes that it needs.
            lane: The arrays of the lane that it needs, packed; for the first section those that are not in `every`.
            shared: The values that all lanes share.
            numbers: That of the lane, that of lanes, and the budget of visits.
            most: The most visits of a lane so far.
            zero: Zero, by way of an element of each of these arrays.
        """
        number, budget, given = numbers["number"] + zero, numbers["budget"], lane
        if self.first:
            unset = {key: jnp.zeros(value.shape, value.dtype) for key, value in self.unset.items()}
            lane = self.words.packed(begin(self.part, every, lane | unset, number, budget))
        array, place, _ = self.words.places["pc"]
        lane = lane | {array: lane[array].at[place].add(zero)}
        lane = advance(self.part, self.words, self.nest, lane, shared, numbers["lanes"], budget)
        left = {key: value for key, value in every.items() if key in self.ends}
        if self.ends:
            left, most = end(self.part, left, self.words.unpacked(lane), number, most, budget)
        return {key: lane[key] for key in lane if key in self.writes or key not in given}, left, most
