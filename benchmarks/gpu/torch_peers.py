"""The programs of `programs.py` batched by hand in PyTorch, for `measure_torch`, which says where they run.

A loop is one step of all lanes with masks. So that the host seldom waits, a call makes `STEPS` steps; the host then
reads how many lanes go on, and takes out those that are done when they are half of all. `torch.compile` fuses the
operations of such a call: for it, a stack is planes, one tensor for each slot, and a slot is chosen by selections.
Without it, a stack is one tensor with a gather and a scatter. Lanes are the last axis of every state.

Numbers are float32 (PyTorch multiplies matrices in full precision unless it is told otherwise) and int32, as elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import networks_by_hand
from benchmarks.gpu.programs import parses, program
from examples.treelstm import by_hand

STEPS = 8  # of a loop in one call
NARROWEST = 4096  # lanes: of so few, those that are done stay
SLOTS = 8  # of a stack

State = tuple[Any, ...]
Draw = Callable[[Tensor], Tensor]  # a tensor -> uniform numbers of its shape, in [0, 1)


@dataclass(frozen=True, slots=True)
class Loop:
    """A masked loop.

    Attributes:
        step: The state of all lanes -> the state after a step; a lane that is done keeps its results.
        going: The state -> which lanes go on.
        results: The state -> what the program returns, its tensors with the lanes last.
    """

    step: Callable[..., State]
    going: Callable[..., Tensor]
    results: Callable[..., State]

    def repeated(self, *state: Any) -> State:
        """Make `STEPS` steps; say how many lanes go on."""
        for _ in range(STEPS):
            state = self.step(*state)
        return state, self.going(*state).sum()


def run(loop: Loop, steps: Callable[..., State], state: State) -> list[Tensor]:
    """Run a loop until all lanes are done.

    Args:
        loop: The loop.
        steps: `loop.repeated`, or the same compiled.
        state: Tensors, or tuples of tensors, each [..., lanes].

    Returns:
        The results, each [..., lanes].
    """
    out, where = None, None
    while True:
        state, left = steps(*state)
        going, lanes = int(left), _lanes(state)  # here the host waits for the device
        if going and (lanes <= NARROWEST or 2 * going > lanes):
            continue
        out, found = (loop.results(*state), None) if out is None else (out, loop.results(*state))
        if found is not None:
            for whole, part in zip(out, found, strict=True):
                whole[..., where] = part
        if not going:
            return list(out)
        keep = loop.going(*state).nonzero()[:, 0]
        where = keep if where is None else where[keep]
        state = _each(lambda x, keep=keep: x[..., keep], state)


def _lanes(state: Any) -> int:
    return int(state.shape[-1]) if isinstance(state, Tensor) else _lanes(state[0])


def _each(change: Callable[[Tensor], Tensor], state: Any) -> Any:
    return change(state) if isinstance(state, Tensor) else tuple(_each(change, part) for part in state)


# Stacks: `put` may write to the slot above the top, which is free.


def stack(like: Tensor, planes: bool) -> Any:
    """An empty stack of values that look like [..., lanes]."""
    return tuple(torch.zeros_like(like) for _ in range(SLOTS)) if planes else like.new_zeros(SLOTS, *like.shape)


def _at(slot: Tensor, value_shape: torch.Size) -> Tensor:
    return slot.clamp(min=0).long().expand(1, *value_shape)


def put(slots: Any, slot: Tensor, value: Tensor) -> Any:
    """The stack with another value in a slot, in place if it is one tensor; -1 may write anywhere."""
    if isinstance(slots, Tensor):
        return slots.scatter_(0, _at(slot, value.shape), value[None])
    return tuple(torch.where(slot == k, value, old) for k, old in enumerate(slots))


def take(slots: Any, slot: Tensor) -> Tensor:
    """The value in a slot; that in -1 means nothing."""
    if isinstance(slots, Tensor):
        return slots.gather(0, _at(slot, slots.shape[1:]))[0]
    found = slots[0]
    for k, value in enumerate(slots[1:], 1):
        found = torch.where(slot == k, value, found)
    return found


# Loops


def fib_step(n: Tensor, depth: Tensor, total: Tensor, slots: Any) -> State:
    """Each leaf adds one; a stack has the calls that wait."""
    going, leaf = depth >= 0, n <= 1
    slots = put(slots, depth, n - 1)
    total = total + (going & leaf)
    depth = torch.where(going, torch.where(leaf, depth - 1, depth + 1), depth)
    return torch.where(leaf, take(slots, depth), n - 2), depth, total, slots


def queens_step(row: Tensor, here: Tensor, total: Tensor, board: Tensor, slots: Any) -> State:
    """Place a queen in the row, or give the row up; `here` is int32[4, lanes]: columns, left, right, free."""
    going = row >= 0
    columns, left, right, free = here.unbind(0)
    queen = free & -free
    free = free ^ queen
    slots = put(slots, row, torch.stack([columns, left, right, free]))
    columns, left, right = columns | queen, (left | queen) << 1, (right | queen) >> 1
    placed = going & (queen != 0)
    solved = placed & (columns == board)
    down = placed & ~solved
    row = torch.where(down, row + 1, torch.where(going & (free == 0), row - 1, row))
    below = torch.stack([columns, left, right, board & ~(columns | left | right)])
    return row, torch.where(down, below, take(slots, row)), total + solved, board, slots


def gillespie_step(draw: Draw, population: Tensor, t: Tensor, events: Tensor, rate: Tensor, end: Tensor) -> State:
    """An event, if it is not too late."""
    going = (t < end) & (population > 0)
    births, deaths = rate * population, 0.02 * population * population
    t = torch.where(going, t - torch.log1p(-draw(t)) / (births + deaths), t)
    happens = going & (t < end)
    born = draw(t) * (births + deaths) < births
    return population + (2 * born.int() - 1) * happens, t, events + happens, rate, end


def rays_step(place: State, d: State, light: Tensor, bounces: Tensor, far: Tensor, steps: Tensor) -> State:
    """March on, or be reflected; `place` and `d` are x, y and z."""
    going = (bounces < 4) & (far < 20.0)
    c = [x - torch.round(x) for x in place]
    size = torch.sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2])
    hit, n = going & (size - 0.3 < 1e-3), [x / size for x in c]
    along = torch.where(hit, 2.0 * (d[0] * n[0] + d[1] * n[1] + d[2] * n[2]), 0.0)
    d = tuple(x - along * y for x, y in zip(d, n, strict=True))
    light = light + torch.where(hit, torch.exp2(-1.0 - bounces) * n[1].clamp(min=0.0), 0.0)
    distance = torch.where(going, torch.where(hit, 0.01, size - 0.3), 0.0)
    place = tuple(x + distance * y for x, y in zip(place, d, strict=True))
    return place, d, light, bounces + hit, far + distance, steps + going


def ode_step(y0: Tensor, y1: Tensor, t: Tensor, h: Tensor, steps: Tensor, rate: Tensor) -> State:
    """A step of Heun, which is kept if Euler's is close."""
    going = t < 1.0
    h = torch.minimum(h, 1.0 - t)
    a0, a1 = y1, -rate * y0 - y1
    b0, b1 = y1 + h * a1, -rate * (y0 + h * a0) - (y1 + h * a1)
    error = torch.maximum((0.5 * h * (b0 - a0)).abs(), (0.5 * h * (b1 - a1)).abs())
    taken = going & (error < 1e-3)
    y0 = torch.where(taken, y0 + 0.5 * h * (a0 + b0), y0)
    y1 = torch.where(taken, y1 + 0.5 * h * (a1 + b1), y1)
    t = torch.where(taken, t + h, t)
    return y0, y1, t, h * (0.9 * torch.sqrt(1e-3 / (error + 1e-12))).clamp(0.2, 2.0), steps + going, rate


# What is run: a call without arguments


Call = Callable[[], list[Tensor]]


def _loop(loop: Loop, start: State, compiled: bool, device: str) -> Call:
    """A call that runs a loop from its first state."""
    state = _each(lambda x: x.to(device), start)
    steps = torch.compile(loop.repeated, dynamic=True, fullgraph=True) if compiled else loop.repeated
    return lambda: run(loop, steps, state)


def _given(name: str, lanes: int) -> list[Tensor]:
    """The inputs of a program."""
    return [torch.tensor(np.asarray(x)) for x in program(name).inputs(lanes)]


def fib(lanes: int, compiled: bool, device: str) -> Call:
    """Fibonacci numbers."""
    (n,) = _given("fib", lanes)
    if lanes and int(n.max()) > 2 * SLOTS + 1:
        raise ValueError(f"a stack of {SLOTS} slots is for n up to {2 * SLOTS + 1}, not {int(n.max())}")
    start = (n, torch.zeros_like(n), torch.zeros_like(n), stack(n, compiled))
    return _loop(
        Loop(fib_step, lambda n, depth, *_: depth >= 0, lambda n, d, total, _: (total,)), start, compiled, device
    )


def queens(lanes: int, compiled: bool, device: str) -> Call:
    """Boards of up to 8 columns."""
    board, columns, left, right = _given("queens", lanes)
    here = torch.stack([columns, left, right, board])
    start = (torch.zeros_like(board), here, torch.zeros_like(board), board, stack(here, compiled))
    loop = Loop(queens_step, lambda row, *_: row >= 0, lambda row, here, total, *_: (total,))
    return _loop(loop, start, compiled, device)


def gillespie(lanes: int, compiled: bool, device: str, draw: Draw = torch.rand_like) -> Call:
    """Births and deaths, with PyTorch's own random numbers unless others are given."""
    rate, end = (torch.tensor(np.asarray(x)) for x in program("gillespie").inputs(lanes)[1:])
    zero = torch.zeros(lanes, dtype=torch.int32)
    loop = Loop(
        partial(gillespie_step, draw),
        lambda population, t, events, rate, end: (t < end) & (population > 0),
        lambda population, t, events, *_: (population, events),
    )
    return _loop(loop, (zero + 10, torch.zeros_like(rate), zero, rate, end), compiled, device)


def rays(lanes: int, compiled: bool, device: str) -> Call:
    """Rays between spheres."""
    x, y = _given("rays", lanes)
    zero, count = torch.zeros_like(x), torch.zeros(lanes, dtype=torch.int32)
    length = torch.sqrt(x * x + y * y + 4.0)
    start = ((x, y, zero - 3.0), (x / length, y / length, 2.0 / length), zero, count, zero, count)
    loop = Loop(
        rays_step,
        lambda place, d, light, bounces, far, steps: (bounces < 4) & (far < 20.0),
        lambda place, d, light, bounces, far, steps: (light, steps),
    )
    return _loop(loop, start, compiled, device)


def ode(lanes: int, compiled: bool, device: str) -> Call:
    """Adaptive steps."""
    y, rate = _given("ode", lanes)
    zero = torch.zeros_like(rate)
    start = (y[:, 0].contiguous(), y[:, 1].contiguous(), zero, zero + 0.1, zero.int(), rate)
    loop = Loop(ode_step, lambda y0, y1, t, *_: t < 1.0, lambda y0, y1, t, h, steps, _: (torch.stack([y0, y1]), steps))
    call = _loop(loop, start, compiled, device)

    def numbers() -> list[Tensor]:
        y, steps = call()
        return [y.T, steps]

    return numbers


# Trees


def compose(w: dict[str, Tensor], h: Tensor, c: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """The states of the nodes of one level, [nodes, hidden], from those of all nodes before."""
    gates = torch.addmm(w["node_bias"], torch.cat([h[left], h[right]], 1), w["node"])
    i, f, g, o, u = gates.chunk(5, 1)
    c = i.sigmoid() * u.tanh() + f.sigmoid() * c[left] + g.sigmoid() * c[right]
    return o.sigmoid() * c.tanh(), c


def leaves(w: dict[str, Tensor], word: Tensor) -> tuple[Tensor, Tensor]:
    """The states of words, [words, hidden]."""
    i, o, u = torch.addmm(w["leaf_bias"], w["embedding"][word], w["leaf"]).chunk(3, 1)
    c = i.sigmoid() * u.tanh()
    return o.sigmoid() * c.tanh(), c


def trees(lanes: int, compiled: bool, device: str) -> Call:
    """The TreeLSTM level by level, each as wide as it is; which nodes are in a level is found beforehand."""
    given, examples = parses(lanes)
    w = {name: torch.tensor(np.asarray(x)).to(device) for name, x in given.items()}
    plan = by_hand.plan(networks_by_hand.arrays([example.x for example in examples]), 1)
    word, root = (torch.tensor(x).long().to(device) for x in (plan.word, plan.root))
    left, right = (torch.tensor(x[:, 0]).long() for x in (plan.left, plan.right))
    ends = _levels(len(plan.word), np.maximum(plan.left, plan.right)[:, 0])
    levels = [(a, b, left[a:b].to(device), right[a:b].to(device)) for a, b in zip([0, *ends], ends, strict=False)]
    one = torch.compile(compose, dynamic=True, fullgraph=True) if compiled else compose

    def predict() -> list[Tensor]:
        h, c = leaves(w, word)
        room = h.new_empty(2, len(word) + len(left), h.shape[1])
        room[:, : len(word)] = torch.stack([h, c])
        h, c = room
        for a, b, here, there in levels:
            h[len(word) + a : len(word) + b], c[len(word) + a : len(word) + b] = one(w, h, c, here, there)
        return [torch.addmm(w["head_bias"], h[root], w["head"])]

    return predict


def _levels(words: int, latest: np.ndarray) -> list[int]:
    """Ends of levels: nodes in a row none of which needs another of them; `latest` is the later child of each."""
    ends, begin = [], 0
    for k, child in enumerate(latest):
        if child >= words + begin:
            ends.append(k)
            begin = k
    return [*ends, len(latest)] if len(latest) else []


CALLS: dict[str, Callable[..., Call]] = {
    "fib": fib,
    "gillespie": gillespie,
    "rays": rays,
    "ode": ode,
    "trees": trees,
    "queens": queens,
}
