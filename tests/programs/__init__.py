"""Named programs for one example each, shared by all suites; importing this package registers them all."""

from tests.programs import classics, control, corners, failing, language, passes, recursion, values
from tests.programs.registry import MAX_LANES, REGISTRY, Program, as_jax, select

PROGRAMS: tuple[Program, ...] = tuple(REGISTRY.values())

__all__ = [
    "MAX_LANES",
    "PROGRAMS",
    "REGISTRY",
    "Program",
    "as_jax",
    "classics",
    "control",
    "corners",
    "failing",
    "language",
    "passes",
    "recursion",
    "select",
    "values",
]
