"""The second half of a compilation: the passes in order, the verifier after each, and the programs of every stage.

`compile_stages` goes from a typed program (`typed_program.py`) to the one that the machine runs: `CFG_PASSES`,
`auto_inline`, `unroll_recursion`, `lower_calls`, `STACK_PASSES`, block layout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pcbatch.compiler.typed_program import ProgramT, Typed, checked
from pcbatch.decisions import Reason
from pcbatch.diagnostics.short_repr import short
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.text.export import to_dot, to_json
from pcbatch.ir.text.printer import print_program
from pcbatch.lowering.cfg_passes import (
    auto_inline,
    clone_shared,
    copy_propagation,
    dead_code,
    forward_destinations,
    if_conversion,
    lift_captures,
    low_bits,
    lower_checks,
    prove_checks,
    simplify_cfg,
    split_loops,
    unroll_recursion,
)
from pcbatch.lowering.jaxpr_passes import (
    fuse_products,
    integer_marks,
    needless_rounding,
    of_width,
    rng_by_lane,
    unroll_threefry,
)
from pcbatch.lowering.left_out import runs
from pcbatch.lowering.stack_passes import (
    block_layout,
    hoist_uniform,
    lower_calls,
    register_coalescing,
    simplify_stack,
    storage_classes,
    superblocks,
)
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.leaves import array_leaves

CFG_PASSES = (
    simplify_cfg.run,
    copy_propagation.run,
    low_bits.run,
    prove_checks.run,
    integer_marks.run,
    needless_rounding.run,
    forward_destinations.run,
    dead_code.run,
    simplify_cfg.run,
    if_conversion.run,
    simplify_cfg.run,
    copy_propagation.run,
    forward_destinations.run,
    dead_code.run,
    lower_checks.run,
    simplify_cfg.run_tails,
)

# After functions were inlined, for program counters alone: the local strategy makes one program of a callee.
TIDYING_PASSES = (
    simplify_cfg.run,
    copy_propagation.run,
    forward_destinations.run,
    dead_code.run,
    if_conversion.run,
    simplify_cfg.run_tails,
)

STACK_PASSES = (
    copy_propagation.run_stack,
    forward_destinations.run_stack,
    dead_code.run_stack,
    register_coalescing.run,
    simplify_stack.run,
    dead_code.run_stack,
    superblocks.run,
    copy_propagation.run_stack,
    forward_destinations.run_stack,
    dead_code.run_stack,
    register_coalescing.run_stores,
    simplify_stack.run,
    dead_code.run_stack,
)


@dataclass(frozen=True, slots=True)
class Stages:
    """One function compiled for one signature (or for none: `result` is then None and types are unknown)."""

    cfg: CfgProgram  # as the front end made it, typed
    optimised_cfg: CfgProgram  # what local static autobatching runs
    inlined_cfg: CfgProgram  # with fewer calls
    stack: StackProgram  # calls lowered
    opt: StackProgram  # what program-counter autobatching runs
    forms: StackProgram  # the same with computations in both forms, for lanes one after the other (`by_width.py`)
    schedule: str  # the policy that the blocks of `opt` are ordered for
    params: Mapping[str, Abstract]  # inferred types of the entry's parameters, in order
    result: Abstract | None  # structure of one lane's result
    captures: Mapping[str, Any] = field(default_factory=dict)  # further parameters of `opt`, of an outer trace
    helpers: tuple[Reason, ...] = ()  # the functions without a decorator that were compiled along

    @property
    def owners(self) -> list[str]:
        """The parameter of the function that each argument of a program, captured ones excepted, is a leaf of."""
        return [name for name, type_ in self.params.items() for _ in array_leaves(name, type_)]


def _after(old: ProgramT, new: ProgramT, name: str) -> ProgramT:
    """The result of pass `name` on a valid program, verified. Many change nothing, and comparing is cheaper."""
    return old if new == old else checked(new, name)


def compile_stages(
    typed: Typed,
    schedule: str = "auto",
    divergent: frozenset[str] = frozenset(),
    rounds: int | None = None,
    unrolls_recursion: bool = False,
) -> Stages:
    """Improve and lower a typed program: run all passes and return the program of every stage.

    `schedule` is a policy, or "auto". Captured values of an outer trace are uniform, unless `divergent` has them, by
    their names in the program. `rounds`: of a small loop, in one visit; None: by cost. `unrolls_recursion`: that of
    small functions, for lanes one after the other.
    """
    cfg = typed.cfg
    has_types = typed.result is not None
    optimised = cfg
    for run in CFG_PASSES:
        new = run(optimised)
        # Passes over jaxprs: in these programs that count as equal may differ.
        inside = run in (integer_marks.run, needless_rounding.run) and new is not optimised
        name = run.__module__.rpartition(".")[2]
        optimised = checked(new, name) if inside else _after(optimised, new, name)
    cloned = optimised
    if has_types and runs("clone_shared"):
        cloned = _after(optimised, clone_shared.run(optimised, typed.shared), "clone_shared")
    inlined = _merged(cloned, auto_inline.run(cloned), "auto_inline")
    if unrolls_recursion and runs("unroll_recursion"):
        inlined = _merged(inlined, unroll_recursion.run(inlined), "unroll_recursion")
    if has_types and runs("split_loops"):
        inlined = _after(inlined, split_loops.run(inlined, typed.shared), "split_loops")
    stack = checked(storage_classes.run(lower_calls.run(inlined)), "lower_calls")
    qualified = _qualified(cfg, stack, typed.shared)
    opened, captures = lift_captures.run(stack)
    opt = _optimise(_after(stack, opened, "captured"), qualified | (set(captures) - divergent), rounds)
    # Decided on the program as it was before reordering, and once: the estimate may depend on the order.
    schedule = block_layout.choose_schedule(opt) if schedule == "auto" else schedule
    opt = checked(block_layout.run(opt, schedule), "order")
    if runs("fuse_products"):
        opt = _after(opt, fuse_products.run(opt), "fuse_products")
    # Last, because it makes draws look more expensive than they are. It changes only the jaxprs of primitives.
    for draws in (unroll_threefry, rng_by_lane):
        optimised, opt = draws.run_cfg(optimised), draws.run(opt)
    forms = opt
    (cfg, optimised, inlined), (stack, opt) = of_width.run((cfg, optimised, inlined), (stack, opt))
    return Stages(
        cfg, optimised, inlined, stack, opt, forms, schedule, typed.params, typed.result, captures, typed.helpers
    )


def _merged(old: CfgProgram, new: CfgProgram, name: str) -> CfgProgram:
    """The program after pass `name`, and after the passes that clean up behind it if it has changed anything."""
    program = _after(old, new, name)
    if program is old:
        return old
    for run in TIDYING_PASSES:
        program = _after(program, run(program), run.__module__)
    return program


def _qualified(cfg: CfgProgram, stack: StackProgram, leaves: frozenset[str]) -> frozenset[str]:
    """Shared parameters by their names in the merged program."""
    params = cfg.function(cfg.entry).params
    return frozenset(new for old, new in zip(params, stack.params, strict=True) if old in leaves)


def _optimise(program: StackProgram, shared_params: frozenset[str], rounds: int | None) -> StackProgram:
    shared = shared_params if runs("hoist_uniform") else frozenset[str]()
    program = checked(storage_classes.run(hoist_uniform.run(program, shared)), "shared")
    for run in STACK_PASSES:
        if run is superblocks.run and not runs("superblocks"):
            continue
        new = superblocks.run(program, rounds) if run is superblocks.run else run(program)
        program = _after(program, storage_classes.run(new), f"{run.__module__}.{run.__name__}")
    return program


def show(program: CfgProgram | StackProgram, format: str = "text") -> str:
    """Return a program as "text", as "json", or as a graph for graphviz ("dot"). Raises ValueError for others."""
    match format:
        case "text":
            return print_program(program)
        case "json":
            return json.dumps(to_json(program), indent=2)
        case "dot":
            return to_dot(program)
        case _:
            raise ValueError(f"unknown format {short(format)}")


def stages(batched: Any, args: tuple[Any, ...]) -> dict[str, CfgProgram | StackProgram]:
    """Return the programs "cfg", "stack" and "opt" of a batched function, for batched example arguments."""
    programs: Stages = batched.lower(*args).stages
    return {"cfg": programs.cfg, "stack": programs.stack, "opt": programs.opt}
