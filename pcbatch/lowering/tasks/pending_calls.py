"""Calls that have not returned yet, at each point of a function, and where they must be waited for.

    left = f(x)                  left is pending
    right = f(y)                 left, right: both may run
    return g(left, right)        they are waited for here

A forward data-flow problem. A call need not be waited for before an operation reads or assigns one of its results, a
condition or a `return` does, or the function returns. As late as possible is best: two calls that are pending together
run side by side. The state joins by union where paths meet; at the head of a loop, calls stay pending only if they are
so on all ways to it, as each round would open a frame for them otherwise. Nor do they where paths meet whose calls have
only some results in common, `x, y` and `x, z`: a place in a frame belongs to all results of one call.

Calls whose results are appended to lists (`stored_results.py`) have a row each: what is pending is the list, and a loop
that appends to it waits for nothing, as long as nothing but such operations changes the length of the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pcbatch.ir.analysis.dataflow import block_edges, postorder
from pcbatch.ir.analysis.def_use import may_return, predecessors, terminator_reads
from pcbatch.ir.cfg import Block, Call, Function, Op
from pcbatch.ir.ops import Return
from pcbatch.ir.roles import reads, writes
from pcbatch.lowering.stack_passes.lower_calls import tail_call
from pcbatch.lowering.tasks.stored_results import Store

Site = tuple[str, int]  # label of a block, index of the call in it


@dataclass(frozen=True, slots=True)
class Pending:
    """The state at a point: whether a frame is open, and the results of each call that has not been waited for."""

    open: bool = False
    calls: frozenset[tuple[str, ...]] = frozenset()

    @property
    def results(self) -> frozenset[str]:
        """The variables that have no value yet."""
        return frozenset(v for dsts in self.calls for v in dsts)

    @property
    def overlaps(self) -> bool:
        """Whether two calls, from different paths, have some of their results in common, but not all."""
        return sum(map(len, self.calls)) > len(self.results)


CLOSED = Pending()


@dataclass(frozen=True, slots=True)
class Waits:
    """The places at which a function waits for calls.

    Attributes:
        entering: the state at the top of each block.
        before: the operations before which it waits, by block; the number of operations stands for the terminator.
        together: whether two calls may be pending at one time.
    """

    entering: Mapping[str, Pending]
    before: Mapping[str, frozenset[int]]
    together: bool


def waits(
    function: Function,
    summed: Iterable[Site],
    tails: Iterable[Site],
    stores: Mapping[Site, Store] | None = None,
    known: Mapping[Site, Store] | None = None,
) -> Waits:
    """Find where a function must wait.

    Args:
        function: The function.
        summed: Calls whose results go to the destination of their caller.
        tails: Calls in tail position, which take the place of their caller.
        stores: Calls whose results become rows of arrays.
        known: Operations that give other rows of these arrays known values.
    """
    return _Analysis(function, frozenset(summed), frozenset(tails), stores or {}, known or {}).run()


class _Analysis:
    def __init__(
        self,
        function: Function,
        summed: frozenset[Site],
        tails: frozenset[Site],
        stores: Mapping[Site, Store],
        known: Mapping[Site, Store],
    ) -> None:
        self.function, self.summed, self.tails, self.stores, self.known = function, summed, tails, stores, known
        self.rows = {store.arrays: store.row for store in stores.values()}
        self.sources = predecessors(function.blocks)
        order = [*reversed(postorder([function.blocks[0].label], block_edges(function.blocks)))]
        self.number = {label: k for k, label in enumerate(order)}
        self.closed: set[str] = {function.blocks[0].label}  # blocks that begin with all calls returned
        self.together = False

    def run(self) -> Waits:
        while True:
            entering, leaving = self.solve()
            mixed = {
                block.label
                for block in self.function.blocks
                if block.label in self.number and self.is_head(block.label) and entering[block.label].open
                if self.is_mixed(block.label, entering[block.label], leaving)
            }
            mixed |= {label for label, state in entering.items() if state.overlaps}
            if not mixed:
                break
            self.closed |= mixed
        self.together = False
        before = {b.label: self.through(b, entering[b.label])[1] for b in self.function.blocks if b.label in entering}
        return Waits(entering, before, self.together)

    def is_mixed(self, label: str, state: Pending, leaving: Mapping[str, Pending]) -> bool:
        """Whether no frame is open on some ways to the head of a loop; where only lists are pending, ways around it."""
        closed = [s for s in self.sources[label] if s in leaving and not leaving[s].open]
        if state.calls <= self.rows.keys():
            closed = [s for s in closed if self.number[s] >= self.number[label]]
        return bool(closed)

    def is_head(self, label: str) -> bool:
        """Whether a block is the head of a loop: a later one leads to it."""
        return any(self.number.get(s, -1) >= self.number[label] for s in self.sources[label])

    def solve(self) -> tuple[dict[str, Pending], dict[str, Pending]]:
        """States at the top and at the bottom of blocks; they only grow, so that this ends."""
        blocks = {block.label: block for block in self.function.blocks}
        entering = dict.fromkeys(self.number, CLOSED)
        leaving: dict[str, Pending] = {}
        again = True
        while again:
            again = False
            for label in self.number:
                coming = [leaving[s] for s in self.sources[label] if s in leaving]
                state = entering[label]
                if label not in self.closed:
                    calls = state.calls.union(*(s.calls for s in coming))
                    state = Pending(state.open or any(s.open for s in coming), calls)
                out = self.through(blocks[label], state)[0]
                if state != entering[label] or leaving.get(label) != out:
                    entering[label], leaving[label], again = state, out, True
        return entering, leaving

    def through(self, block: Block, state: Pending) -> tuple[Pending, frozenset[int]]:
        """The state after a block, and the operations before which it waits."""
        waits = set()
        for k, op in enumerate(block.ops):
            if state.open and self.must_wait(op, (block.label, k), state):
                waits.add(k)
                state = CLOSED
            if isinstance(op, Call) and (block.label, k) not in self.summed | self.tails:
                self.together = self.together or bool(state.calls)
                store = self.stores.get((block.label, k))
                state = Pending(True, state.calls | {op.dsts if store is None else store.arrays})
        end = block.terminator
        ends = may_return(end) and not self.is_tail(block)
        if state.open and (ends or not state.results.isdisjoint(terminator_reads(end))):
            waits.add(len(block.ops))
            state = CLOSED
        return state, frozenset(waits)

    def must_wait(self, op: Op, site: Site, state: Pending) -> bool:
        if site in self.tails:
            return True
        behind = self.stores.get((site[0], site[1] - 1))
        lengths = {self.rows[arrays] for arrays in state.calls if arrays in self.rows}
        if behind is not None:
            # It changes the length of its own list, which has become pending with the call before it.
            op, lengths = behind.rest, lengths - {behind.row}
        known = self.known.get(site)
        if known is not None and known.arrays in state.calls:
            if not state.results.isdisjoint(known.values):
                return True
            op, lengths = known.rest, lengths - {known.row}
        store = self.stores.get(site)
        touched = {*reads(op), *(writes(op) if store is None else ())}
        if store is not None and store.arrays not in state.calls:
            touched |= {*store.arrays}
        return not state.results.isdisjoint(touched) or not lengths.isdisjoint(writes(op))

    def is_tail(self, block: Block) -> bool:
        return isinstance(block.terminator, Return) and (block.label, len(block.ops) - 1) in self.tails


def tails(function: Function, functions: Mapping[str, Function]) -> Iterator[Site]:
    """Yield the calls in tail position whose results have the types of the caller's."""
    for block in function.blocks:
        call = tail_call(function, block)
        if call is not None and _result_types(function) == _result_types(functions[call.func]):
            yield block.label, len(block.ops) - 1


def _result_types(function: Function) -> list[tuple[str, tuple[int, ...]]]:
    """The types of results, apart from whether they are weak."""
    types = [function.types[r] for r in function.results]
    return [(t.dtype, t.shape) for t in types if t is not None]
