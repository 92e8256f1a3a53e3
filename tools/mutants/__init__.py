"""The table of deliberate defects, by part of the compiler."""

from __future__ import annotations

from tools.mutants import (
    builtins,
    cfg_passes,
    citizen,
    diagnostics,
    effects,
    emitters,
    frontend,
    gradients,
    ir,
    language,
    machine,
    merging,
    runs,
    schedule,
    stack_passes,
    strategies,
    streams,
    top,
    types,
    visits,
)
from tools.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *frontend.MUTANTS,
    *language.MUTANTS,
    *effects.MUTANTS,
    *diagnostics.MUTANTS,
    *builtins.MUTANTS,
    *ir.MUTANTS,
    *types.MUTANTS,
    *cfg_passes.MUTANTS,
    *stack_passes.MUTANTS,
    *merging.MUTANTS,
    *machine.MUTANTS,
    *emitters.MUTANTS,
    *schedule.MUTANTS,
    *visits.MUTANTS,
    *gradients.MUTANTS,
    *strategies.MUTANTS,
    *streams.MUTANTS,
    *runs.MUTANTS,
    *top.MUTANTS,
    *citizen.MUTANTS,
)

__all__ = ["MUTANTS", "Mutant"]
