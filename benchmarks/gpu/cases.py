"""The cases of a benchmark on GPUs, in the order in which they decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu import peers
from benchmarks.gpu.programs import NAMES
from pcbatch.plan import EMITTERS

LANES = (1024, 16_384, 262_144, 1_048_576)
DRY_LANES = (8,)
SIZES = (
    {"tile": 32, "warps": 1},
    {"tile": 64, "warps": 2},
    {"tile": 128, "warps": 4},
    {"tile": 16, "warps": 8},
    {"tile": 32, "warps": 1, "spins": 4},
)
FIRST = ("fib", "ode", "gillespie", "rays", "nuts-100", "nuts-20")  # programs that decide what "auto" is
CHAINS = (1_000, 10_000)
SAMPLED = {"nuts-20", "nuts-100", "logistic"}
WIDEST = {"trees": 16_384, "logistic": 10_000, "nuts-100": 262_144}  # lanes; of more the inputs alone take gigabytes


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure.

    Attributes:
        program: One of `programs.NAMES`.
        what: Arguments of `measure.measured`, or of `measure_torch.measured`.
    """

    program: str
    what: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the way in tables."""
        sizes = self.what.get("sizes")
        way = self.what.get("peer") or self.what["emitter"]
        if not sizes:
            return str(way)
        repeated = f" spins {sizes['spins']}" if "spins" in sizes else ""
        return f"{way} {sizes['tile']}x{sizes['warps']}{repeated}"


def cases(names: Sequence[str], lanes: Sequence[int] | None, dry: bool, emitters: Sequence[str] = ()) -> Iterator[Case]:
    """Yield all cases: those with graphs at 16,384 lanes first, of the programs that decide, and then the others."""
    wanted = [name for name in (*FIRST, *NAMES) if name in names]
    chosen = DRY_LANES if dry else lanes
    every = [case for name in dict.fromkeys(wanted) for case in _of_program(name, chosen, dry, emitters)]
    rank = {16_384: 0, 10_000: 0, 1_000: 1, 1024: 1}
    yield from sorted(
        every, key=lambda c: (rank.get(c.what["lanes"], 2), not c.what["graphs"], bool(c.what.get("sizes")))
    )


def _of_program(name: str, lanes: Sequence[int] | None, dry: bool, emitters: Sequence[str]) -> Iterator[Case]:
    widths = lanes or (CHAINS if name in SAMPLED else LANES)
    for width in (w for w in widths if w <= WIDEST.get(name, w)):
        for graphs in (True,) if dry else (True, False):
            for emitter in emitters or [each for each in EMITTERS if each != "auto"]:
                yield Case(name, {"emitter": emitter, "lanes": width, "graphs": graphs})
            for peer in peers.peers(name):
                yield Case(name, {"peer": peer.name, "lanes": width, "graphs": graphs})
        if name in peers.IN_TORCH:
            for way, shown in peers.TORCH.items():  # PyTorch has no loops in graphs
                yield Case(name, {"peer": shown, "torch": way, "lanes": width, "graphs": False})
        if not dry and name in FIRST:
            for sizes in SIZES:
                yield Case(name, {"emitter": "kernel", "sizes": sizes, "lanes": width, "graphs": True})
