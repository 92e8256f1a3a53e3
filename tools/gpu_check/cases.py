"""The cases: which programs are compiled, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TILE: Final = 16
LANES: Final = 1024
SCALAR: Final = ("fib", "gillespie", "rays", "ode")
NUTS: Final = ("nuts-20", "nuts-100")
TREES: Final = "trees"
LAUNCHING: Final = ("guard", "port")  # emitters of which each trip launches kernels
SCHEDULES: Final = ("earliest", "largest", "sweep", "drain")
ONE_KERNEL: Final = (*SCALAR, "nuts-20")  # whole machines are one kernel, which in tiles of `TILE` fits registers


@dataclass(frozen=True, slots=True)
class Case:
    """A way to compile a program of `benchmarks.gpu.programs`.

    Attributes:
        program: The name.
        emitter: "guard", "port" or "kernel", which has tiles of `TILE` lanes.
        schedule: The policy.
        graphs: Whether loops may become parts of command buffers, as pcbatch asks for; otherwise XLA's defaults.
    """

    program: str
    emitter: str
    schedule: str = "auto"
    graphs: bool = True

    def __str__(self) -> str:
        """Return the name in the record: `fib port auto graphs`."""
        return f"{self.program} {self.emitter} {self.schedule} {'graphs' if self.graphs else 'default'}"


def cases() -> tuple[Case, ...]:
    """Return all cases, those that take long first."""
    programs = (*reversed(NUTS), TREES, *SCALAR)
    both = (True, False)
    return (
        *(Case(name, "kernel") for name in programs),
        *(Case(name, emitter, graphs=graphs) for name in programs for emitter in LAUNCHING for graphs in both),
        *(Case("nuts-20", "port", schedule) for schedule in SCHEDULES),
        *(Case("fib", emitter, schedule) for emitter in (*LAUNCHING, "kernel") for schedule in SCHEDULES),
    )


def named(name: str) -> Case:
    """Return the case of a name in the record."""
    return next(case for case in cases() if str(case) == name)
