"""What a mutant is: one module with one piece of its source replaced, and the tests that should notice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "pcbatch"

LAW = "tests/differential/test_differential.py::test_default_options_on_every_lane_count"
STAGES = "tests/differential/test_differential.py::test_every_stage_verifies_and_interprets"
LOCAL = "tests/differential/test_differential.py::test_local_strategy"
OPTIONS = "tests/differential/test_differential.py::test_schedules_and_emitters"
PASSES = "tests/lowering/test_passes.py"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A defect: in `module` (a path below `pcbatch/`), the only occurrence of `old` becomes `new`.

    `tests` are arguments for pytest, the quickest first. `equivalent` says why no test can notice, where that is so.
    """

    name: str
    module: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def full_name(self) -> str:
        """The module's name in `sys.modules`."""
        return "pcbatch." + self.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def apply(self, source: str) -> str:
        """The source with the defect. ValueError where the rule that it breaks is no longer there."""
        if source.count(self.old) != 1:
            raise ValueError(f"mutant {self.name}: {self.old!r} occurs {source.count(self.old)} times in {self.module}")
        return source.replace(self.old, self.new)

    @property
    def source(self) -> str:
        """The source of the module as it is."""
        return (PACKAGE / self.module).read_text(encoding="utf-8")


def on(test: str, *programs: object) -> tuple[str, ...]:
    """Test ids: one test for some of its parameters."""
    return tuple(f"{test}[{program}]" for program in programs)


def law(*programs: str) -> tuple[str, ...]:
    """Batched against plain Python, on every lane count."""
    return on(LAW, *programs)
