"""Sizes and counts of named programs that only go down: lower them when a pass gets better.

Blocks but those in which lanes only fail, stacked variables and operations of the optimised program; values pushed by
the lanes of a run, and the trips of the machine under "sweep" and under "earliest", where one block runs at a time.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest

import pcbatch.compiler.program
from examples.nuts.run import fixed_chain, start
from examples.nuts.targets import gaussian
from pcbatch.compiler.pipeline import Stages, compile_stages
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.stack_passes.superblock_facts import ProgramFacts
from tests.oracles.interpret_stack import interpret_stack
from tests.oracles.numpy_jaxpr import on_numpy
from tests.programs import REGISTRY
from tests.programs.registry import select

pytestmark = pytest.mark.long

LANES = 16


@dataclass(frozen=True, slots=True)
class Counts:
    """What is counted of one program."""

    blocks: int
    stacked: int
    ops: int
    pushed: int
    sweep: int
    earliest: int


NAMED: dict[str, Counts] = {
    "fib": Counts(4, 2, 16, 238, 94, 192),
    "is_even": Counts(2, 0, 10, 0, 5, 6),
    "iota_sum": Counts(2, 0, 5, 0, 100, 101),
    "gcd_subtractive": Counts(2, 0, 13, 0, 48, 49),
    "pea_nuts": Counts(6, 1, 15, 21, 33, 80),
    "ackermann": Counts(4, 1, 30, 20, 23, 36),
    "mccarthy": Counts(3, 0, 11, 0, 16, 23),
    "tak": Counts(6, 5, 41, 30, 20, 62),
    "hanoi": Counts(4, 2, 16, 132, 53, 78),
    "queens": Counts(3, 5, 50, 380, 82, 111),
    "catalan": Counts(5, 6, 59, 1188, 81, 176),
    "hofstadter_female": Counts(7, 2, 26, 63, 58, 124),
    "tree_sum": Counts(4, 2, 20, 6, 6, 10),
    "local_survives_call": Counts(4, 4, 33, 164, 39, 61),
    "array_through_recursion": Counts(4, 2, 17, 186, 53, 78),
    "extended_gcd": Counts(3, 2, 25, 32, 8, 10),
    "namedtuple_through_callee": Counts(3, 0, 25, 0, 6, 8),
    "short_circuit": Counts(1, 0, 10, 0, 1, 1),
    "collatz": Counts(2, 0, 8, 0, 20, 21),
    "count_primes": Counts(3, 0, 25, 0, 77, 97),
    "bubble_sort": Counts(4, 0, 44, 0, 10, 13),
    "for_enumerate_start_unpack": Counts(2, 0, 14, 0, 4, 5),
    "random_walk": Counts(2, 0, 18, 0, 9, 10),
    "dict_values": Counts(2, 0, 5, 0, 6, 7),
    "nested_ifs": Counts(1, 0, 4, 0, 1, 1),
    "mutual_tail_calls": Counts(4, 0, 25, 0, 12, 14),
}


def blocks(program: StackProgram) -> int:
    """Blocks from which a lane may still return."""
    return len(program.blocks) - len(ProgramFacts.of(program).failing)


def stacked(program: StackProgram) -> int:
    """Variables with a stack."""
    return sum(var.storage is not None and var.storage.has_frames for var in program.vars.values())


def counts(name: str) -> Counts:
    """Compile a named program and run it."""
    program = REGISTRY[name]
    with program.mode():
        args, batched = program.args(LANES), program.batched()
        opt = batched.lower(*args).stages.opt
        trips = {
            s: int(batched.with_options(plan=pcbatch.Plan(schedule=s)).run(*args).stats.trips)
            for s in ("sweep", "earliest")
        }
        pushed = sum(_pushes(opt, jax.tree.leaves(select(args, program.in_axes, lane))) for lane in range(4))
    ops = sum(len(block.ops) for block in opt.blocks)
    return Counts(blocks(opt), stacked(opt), ops, pushed, trips["sweep"], trips["earliest"])


def _pushes(program: StackProgram, example: list[Any]) -> int:
    """How many values one lane pushes."""
    if not stacked(program):
        return 0
    with np.errstate(all="ignore"):
        return interpret_stack(on_numpy(program), list(map(np.asarray, example)))[1].pushes


@pytest.mark.share(12)
@pytest.mark.parametrize("name", NAMED)
def test_named_programs(name: str) -> None:
    found, limit = counts(name), NAMED[name]
    assert all(getattr(found, field) <= getattr(limit, field) for field in Counts.__slots__), found


# Blocks of all programs that an example compiles.
GALLERY: dict[str, int] = {
    "quicksort": 10,
    "json_tokens": 7,
    "sudoku": 8,
    "simpson": 5,
    "random_walk": 2,
    "newton": 4,
    "mandelbrot": 2,
    "edit_distance": 8,
    "forest": 5,
    "arithmetic": 13,
    "kd_tree": 12,
}


@pytest.mark.share(6)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize("name", GALLERY)
def test_gallery(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Stages] = []

    def recording(*args: object) -> Stages:
        made.append(compile_stages(*args))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(pcbatch.compiler.compile_signature, "compile_stages", recording)
    program = importlib.import_module(f"examples.gallery.{name}")
    for value in vars(program).values():
        if isinstance(value, pcbatch.Batched):
            value._programs.cache.clear()  # another test may have compiled it
    program.main(lanes=3)
    assert made
    assert sum(blocks(found.opt) for found in made) <= GALLERY[name]


@pytest.mark.promotion("standard")
def test_nuts() -> None:
    """The end of a tree, of its first half, of the doubling, of the draw; the starts of all these; a leaf."""
    target = gaussian(10)
    chain, args = fixed_chain(target, start(target, chains=4), step=0.2, draws=3, max_tree_depth=8)
    opt = chain.lower(*args).stages.opt
    assert (blocks(opt), stacked(opt)) <= (8, 2)
    assert sum(len(block.ops) for block in opt.blocks) <= 35
