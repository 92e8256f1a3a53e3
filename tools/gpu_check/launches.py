"""Counts of a thunk sequence: for what the host waits, and how much it launches.

The host waits for the device wherever it must know a value to go on: the condition of a loop (each time it is
evaluated), the branch of a conditional, the data of a callback. Inside a command buffer the device decides by itself,
and the host launches once. Counts are those of a run in which each loop makes one iteration (so that its condition is
evaluated twice) and each conditional takes its longest branch: whatever a program does at all is in them. Those of one
iteration of its largest loop say what a trip of the machine takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import reduce
from typing import Final

from tools.gpu_check.thunks import BODY, CONDITION, DumpError, Thunk, walk

KERNELS: Final = frozenset({"kKernel", "kCustomKernel"})
LIBRARIES: Final = frozenset(
    {"kCholesky", "kConvolution", "kConvolutionReorder", "kCuDnn", "kCubSort", "kCublasLtMatmul", "kCustomCall"}
    | {"kFft", "kGemm", "kNorm", "kSelectK", "kTriangularSolve"}
)
COPIES: Final = frozenset({"kCopy", "kMemset32BitValue", "kMemzero"})
HOST: Final = frozenset({"kHostExecuteStart", "kHostRecv", "kHostSend", "kInfeed", "kOutfeed"})
NOTHING: Final = frozenset({"kCopyDone", "kHostExecuteDone", "kHostRecvDone", "kHostSendDone", "kWaitForStreams"})
GROUPS: Final = frozenset({"kSequential", "kDynamicSlice"})  # what is inside of them is done, and nothing else


@dataclass(frozen=True, slots=True)
class Count:
    """A number of events.

    Attributes:
        waits: Of the host for the device, to read a value.
        launches: By the host: of command buffers, and of kernels, copies and libraries outside of them.
        kernels: Kernels and calls of libraries that the device runs, in command buffers or not.
        copies: Copies and fills of arrays that the device makes.
    """

    waits: int = 0
    launches: int = 0
    kernels: int = 0
    copies: int = 0

    def __add__(self, other: Count) -> Count:
        """Return the events of both."""
        return Count(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __or__(self, other: Count) -> Count:
        """Return the larger of each number."""
        return Count(*map(max, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class Launches:
    """The counts of one program.

    Attributes:
        run: A run in which each loop makes one iteration.
        trip: One iteration of the largest loop outside of any other, with the evaluation of its condition; None
            without a loop.
        custom: The names of the kernels outside of loops, one for each launch.
        obstacles: The kinds of thunks, inside of loops that the host runs, that belong to no command buffer; what XLA
            cannot record keeps the loop around it out as well.
    """

    run: Count
    trip: Count | None
    custom: tuple[str, ...]
    obstacles: tuple[str, ...]


def launches(thunks: Sequence[Thunk]) -> Launches:
    """Count the events of an outermost sequence.

    Raises:
        DumpError: It holds a kind of thunk that is not known here, of which nobody can say whether the host waits.
    """
    loops = list(_outer_loops(thunks, False))
    largest = max(loops, key=lambda found: sum(1 for _ in walk(found[0].inside)), default=None)
    outside = (thunk for loop, recorded in loops if not recorded for thunk in _outside_graphs(loop.inside))
    return Launches(
        _total(thunks, False),
        None if largest is None else _trip(*largest),
        tuple(thunk.name for thunk in _without_loops(thunks) if thunk.kind in KERNELS),
        tuple(sorted({thunk.kind for thunk in outside if thunk.kind in LIBRARIES | HOST})),
    )


def _total(thunks: Iterable[Thunk], recorded: bool) -> Count:
    return sum((_count(thunk, recorded) for thunk in thunks), Count())


def _count(thunk: Thunk, recorded: bool) -> Count:
    """Count the events of a thunk, which is part of a command buffer or is not."""
    by_host = 0 if recorded else 1
    match thunk.kind:
        case "kCommandBuffer":
            return Count(launches=by_host) + _total(thunk.inside, True)
        case "kWhile":  # what ends the loop is evaluated once more
            return Count(waits=by_host) + _total(thunk.section(CONDITION), recorded) + _trip(thunk, recorded)
        case "kConditional":
            branches = (_total(section.thunks, recorded) for section in thunk.sections)
            return Count(waits=by_host) + reduce(Count.__or__, branches, Count())
        case kind if kind in GROUPS:
            return _total(thunk.inside, recorded)
        case kind if kind in KERNELS | LIBRARIES:
            return Count(launches=by_host, kernels=1)
        case kind if kind in COPIES:
            return Count(launches=by_host, copies=1)
        case kind if kind in HOST:
            return Count(waits=1)
        case kind if kind in NOTHING:
            return Count()
    raise DumpError(f"the kind of thunk `{thunk.kind}` is not known; say in {__name__} whether the host waits for it")


def _trip(loop: Thunk, recorded: bool) -> Count:
    """Count the events of one iteration: of its condition and its body."""
    wait = Count(waits=0 if recorded else 1)
    return wait + _total(loop.section(CONDITION), recorded) + _total(loop.section(BODY), recorded)


def _outer_loops(thunks: Iterable[Thunk], recorded: bool) -> Iterator[tuple[Thunk, bool]]:
    """Give the loops that are in no other loop, and whether each is part of a command buffer."""
    for thunk in thunks:
        if thunk.kind == "kWhile":
            yield thunk, recorded
        else:
            yield from _outer_loops(thunk.inside, recorded or thunk.kind == "kCommandBuffer")


def _without_loops(thunks: Iterable[Thunk]) -> Iterator[Thunk]:
    for thunk in thunks:
        if thunk.kind != "kWhile":
            yield thunk
            yield from _without_loops(thunk.inside)


def _outside_graphs(thunks: Iterable[Thunk]) -> Iterator[Thunk]:
    for thunk in thunks:
        if thunk.kind != "kCommandBuffer":
            yield thunk
            yield from _outside_graphs(thunk.inside)
