"""Schedules that nobody has learned: tables at random, for programs as they are."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pcbatch
from pcbatch.compiler.schedules import source_of
from pcbatch.runtime.learned import fingerprint
from pcbatch.runtime.learned.policy import LANES, TASKS, Learned, StateTable
from pcbatch.runtime.tasks.task_plan import TaskPlan
from pcbatch.runtime.tasks.trip import chosen_among

MOST = 8  # blocks of which all states of "base" are in a table
DRAWN = 300  # states of other tables


def random_table(blocks: int, encoding: str, seed: int) -> StateTable:
    """A table with blocks at random, also such as nothing waits for."""
    rng = random.Random(seed)
    if encoding == "base" and blocks <= MOST:
        states: Sequence[tuple[int, ...]] = list(itertools.product((0, 1), repeat=blocks))
    elif encoding == "base":
        states = [tuple(rng.choice((0, 1)) for _ in range(blocks)) for _ in range(DRAWN)]
    else:
        states = [_sorted(blocks, rng) for _ in range(DRAWN)]
    states = sorted(set(states))
    return StateTable(encoding, tuple(states), tuple(rng.randrange(blocks) for _ in states))


def _sorted(blocks: int, rng: random.Random) -> tuple[int, ...]:
    places = [k + 1 for k in range(blocks)]
    some = rng.sample(range(blocks), rng.randint(1, blocks))
    return tuple(places[some.index(k)] if k in some else 0 for k in range(blocks))


def random_policy(machine: str, labels: Sequence[str], blocks: str, seed: int, source: str = "") -> Learned:
    """A policy with tables at random."""
    rng = random.Random(seed)
    encodings = rng.choice((("base",), ("sort", "base"), ("sort",), ()))
    tables = tuple(random_table(len(labels), encoding, seed) for encoding in encodings)
    numbers = range(len(labels))
    ahead = tuple(tuple(1.0 if k == j else rng.choice((0, 0, 16, 64, 200)) / 64 for j in numbers) for k in numbers)
    return Learned(machine, tuple(labels), source, blocks, ahead, tables, "learned" if tables else "lemma")


def of_plan(plan: TaskPlan, seed: int, source: str = "") -> Learned:
    """A policy at random for a program of tasks."""
    labels = [block.label for block in chosen_among(plan)]
    return random_policy(TASKS, labels, fingerprint.of_tasks(plan.program), seed, source)


def of_call(f: Any, args: Sequence[Any], seed: int) -> Learned:
    """A policy at random for a batched function and a call of it."""
    assert isinstance(f, pcbatch.Batched)
    program, _ = f._programs.of_call(tuple(args), {})
    source = source_of(f.fn)
    if program.tasks is not None:
        return of_plan(program.tasks.plan(single=False), seed, source)
    stack = program.stages.opt
    return random_policy(LANES, [block.label for block in stack.blocks], fingerprint.of_lanes(stack), seed, source)
