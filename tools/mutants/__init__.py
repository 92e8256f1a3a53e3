"""The table of deliberate defects, by part of the compiler."""

from __future__ import annotations

from tools.mutants import frontend, ir, lowering, runtime, strategies, top, types
from tools.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *frontend.MUTANTS,
    *ir.MUTANTS,
    *types.MUTANTS,
    *lowering.MUTANTS,
    *runtime.MUTANTS,
    *strategies.MUTANTS,
    *top.MUTANTS,
)

__all__ = ["MUTANTS", "Mutant"]
