"""The options of a run of `pcbatch.mcmc.sample`, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from pcbatch.call.usage import usage
from pcbatch.diagnostics.short_repr import short

Matrix = Literal["diag", "dense"]
Adaptation = Literal["pooled", "per-chain"]
LEAST_WARMUP = 20  # draws: a step size is not found in fewer


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run. The fields are the arguments of `sample`."""

    chains: int
    draws: int
    warmup: int
    target_accept: float
    max_tree_depth: int
    mass: Matrix
    adapt: Adaptation
    seed: int
    devices: Any = None
    step_size: float | None = None
    stats: bool = False

    @property
    def dense(self) -> bool:
        """Whether mass matrices are dense."""
        return self.mass == "dense"

    @property
    def pooled(self) -> bool:
        """Whether all chains share what is adapted."""
        return self.adapt == "pooled"


def check(settings: Settings) -> None:
    """Refuse what makes no sense.

    Raises:
        UsageError: PCB463.
    """
    s = settings
    for name, least in (("chains", 1), ("draws", 1), ("warmup", 0), ("max_tree_depth", 1), ("seed", 0)):
        value = getattr(s, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise _wrong(f"`{name}` must be an integer of at least {least}, not {short(value)}", name, least)
    if s.step_size is not None and (not isinstance(s.step_size, int | float) or not 0 < s.step_size < math.inf):
        raise _wrong(f"`step_size` must be a positive number, not {short(s.step_size)}", "step_size", 0.1)
    if s.warmup < LEAST_WARMUP and (s.warmup or s.step_size is None):
        raise usage(
            "PCB463",
            f"`warmup` must be an integer of at least {LEAST_WARMUP}, not {s.warmup}",
            "the step size and the mass matrix are learned in the warm-up",
            help=f"write `warmup={LEAST_WARMUP}` or more; or `warmup=0, step_size=0.1`, for a step size that you know",
        )
    if not isinstance(s.target_accept, int | float) or not 0 < s.target_accept < 1:
        raise _wrong(f"`target_accept` must lie between 0 and 1, not be {short(s.target_accept)}", "target_accept", 0.8)
    if s.mass not in ("diag", "dense"):
        raise _wrong(f'`mass` must be "diag" or "dense", not {short(s.mass)}', "mass", '"diag"')
    if s.adapt not in ("pooled", "per-chain"):
        raise _wrong(f'`adapt` must be "pooled" or "per-chain", not {short(s.adapt)}', "adapt", '"pooled"')


def _wrong(title: str, name: str, such: object) -> Exception:
    return usage("PCB463", title, help=f"write `{name}={such}`, for example")
