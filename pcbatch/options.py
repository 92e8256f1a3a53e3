"""Options of a batched function and modes of its blocks: frozen, hashable, checked when they are made."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pcbatch.diagnostics.byte_sizes import bytes_of
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError

STRATEGIES = ("pc", "local")
SCHEDULES = ("auto", "earliest", "largest", "sweep", "drain")
EMITTERS = ("auto", "scalar", "guard", "port", "kernel")
FORKS = ("auto", "always", "never")
OVERFLOW = ("wrap", "fail")
MATH_ERRORS = ("raise", "nan")
ON_FAILURE = ("warn", "error", "ignore")


@dataclass(frozen=True, slots=True)
class Dense:
    """A mode: each visit computes a block for all lanes under a mask.

    The best mode of cheap blocks, and of blocks where most lanes usually wait. `spins`: a block that may follow itself
    is repeated while most lanes stay in it, this many times between two counts of those lanes; 0 for no repetition.
    `always`: computed without asking whether any lane waits, which is not repeated: for few lanes of cheap blocks the
    question takes longer than the answer.
    """

    spins: int = 0
    always: bool = False

    def __str__(self) -> str:
        if self.always:
            return "dense, always"
        return "dense, repeated" if self.spins else "dense"


@dataclass(frozen=True, slots=True)
class Few:
    """A mode: each visit computes a block for the first `width` waiting lanes, and again until none waits.

    The best mode of expensive blocks where few lanes wait at a time. Raises UsageError (PCB401) unless `width` is a
    positive integer.
    """

    width: int

    def __post_init__(self) -> None:
        _check_width(self.width)

    def __str__(self) -> str:
        return f"{self.width} lanes at a time"


@dataclass(frozen=True, slots=True)
class Strips:
    """A mode: `Dense` when more than half of the lanes wait, else `width` lanes at a time, each lane once.

    The best mode of expensive blocks where sometimes most lanes wait and sometimes few. Raises UsageError (PCB401)
    unless `width` is a positive integer.
    """

    width: int

    def __post_init__(self) -> None:
        _check_width(self.width)

    def __str__(self) -> str:
        return f"dense, or strips of {self.width}"


Mode = Dense | Few | Strips
MOST_OF_TILE = {"tile": 1024, "warps": 32}  # lanes, and groups of 32 threads: CUDA has no larger blocks


@dataclass(frozen=True, slots=True)
class Kernel:
    """An emitter: the whole machine is one kernel of a GPU, in which tiles of lanes do not wait for each other.

    `emitter="kernel"` is `Kernel()`. `tile`: the lanes of a tile, a power of two; `warps`: the groups of 32 threads
    that compute it, a power of two; None: chosen by what blocks compute. `spins`: how often a visit may compute a
    loop of one block before it looks at the others; large blocks less often. Raises UsageError (PCB401) for other
    numbers.
    """

    tile: int | None = None
    warps: int | None = None
    spins: int = 1

    def __post_init__(self) -> None:
        _positive("spins", self.spins, 4)
        for name, value in (("tile", self.tile), ("warps", self.warps)):
            _positive(name, value, 8)
            most = MOST_OF_TILE[name]
            if value is not None and (value & (value - 1) or value > most):
                title = f"{name} must be a power of two, at most {most:,}, not {value}"
                help = f"write `{name}={min(most, 1 << value.bit_length())}`"
                raise UsageError(Diagnostic("PCB401", title, helps=(help,)))


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a batched function; see `pcbatch.batch` for the meaning of each field.

    Raises UsageError (PCB401) for a value that an option cannot have.
    """

    in_axes: Any = 0
    out_axes: Any = 0
    static_argnames: tuple[str, ...] = ()
    donate_argnames: tuple[str, ...] = ()
    strategy: str = "pc"
    schedule: Any = "auto"
    emitter: str | Kernel = "auto"
    modes: Any = None
    unroll: int | None = None
    narrow: bool | None = None
    fork: str = "auto"
    max_depth: int | None = None
    max_steps: int | None = None
    max_length: int | None = None
    max_tape: int | None = None
    checkpoints: int | None = None
    max_memory: int | str | None = None
    devices: Any = None
    stats: bool = False
    command_buffers: bool = True
    overflow: str = "fail"
    math_errors: str = "raise"
    on_failure: str | None = None

    def __post_init__(self) -> None:
        _one_of("strategy", self.strategy, STRATEGIES)
        if not _is_policy(self.schedule):
            _check_schedule(self.schedule)
        if self.emitter == "mask":  # of earlier releases
            text = '`emitter="mask"` is gone, since no program was faster by it: `"guard"` runs instead'
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            object.__setattr__(self, "emitter", "guard")
        if not isinstance(self.emitter, Kernel):
            _one_of("emitter", self.emitter, EMITTERS, "or a `pcbatch.Kernel`")
        _check_modes(self.modes)
        _positive("unroll", self.unroll, 8)
        _flag("narrow", self.narrow)
        _one_of("fork", self.fork, FORKS)
        _positive("max_depth", self.max_depth)
        _positive("max_steps", self.max_steps)
        _positive("max_length", self.max_length)
        _positive("max_tape", self.max_tape)
        _positive("checkpoints", self.checkpoints)
        _check_memory(self.max_memory)
        _one_of("overflow", self.overflow, OVERFLOW)
        _one_of("math_errors", self.math_errors, MATH_ERRORS)
        if self.on_failure is not None:
            checked_on_failure("on_failure", self.on_failure)

    @property
    def kernel(self) -> Kernel | None:
        """The sizes of the kernel, if the machine is to be one."""
        if isinstance(self.emitter, Kernel):
            return self.emitter
        return Kernel() if self.emitter == "kernel" else None

    @property
    def memory(self) -> int | None:
        """The option `max_memory` as a number of bytes; None for no limit."""
        return bytes_of(self.max_memory) if isinstance(self.max_memory, str) else self.max_memory


def _is_policy(schedule: object) -> bool:
    """Whether a schedule is a `pcbatch.Policy`: an object with a name and a method `trip`."""
    return (
        not isinstance(schedule, type)
        and isinstance(getattr(schedule, "name", None), str)
        and callable(getattr(schedule, "trip", None))
    )


def _check_schedule(schedule: object) -> None:
    if isinstance(schedule, str) or not hasattr(schedule, "trip"):
        return _one_of("schedule", schedule, SCHEDULES, "or give an object with a `name` and a method `trip`")
    what = f"an object of the class `{type(schedule).__name__}`"
    help = "give it a `name`, a string, and a method `trip(self, blocks, carry)`: docs/users/schedule.md has an example"
    if isinstance(schedule, type):
        what, help = f"the class `{schedule.__name__}`", f"make an object of it: `schedule={schedule.__name__}()`"
        if hasattr(schedule, "load"):  # `pcbatch.Learned`
            help = "give what `pcbatch.learn_schedule(f, *samples)` or `pcbatch.Learned.load(path)` returns"
    raise UsageError(Diagnostic("PCB401", f"{what} is no policy", helps=(help,)))


def _check_width(width: object) -> None:
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        title = f"a width must be a positive integer, not {short(width)}"
        raise UsageError(Diagnostic("PCB401", title, helps=("write `pcbatch.Few(32)`",)))


def _check_modes(modes: object) -> None:
    values = modes.values() if isinstance(modes, Mapping) else () if modes is None else (modes,)
    wrong = [value for value in values if not isinstance(value, Mode)]
    if wrong or (isinstance(modes, Mapping) and not all(isinstance(key, str) for key in modes)):
        shown = wrong[0] if wrong else modes
        raise UsageError(
            Diagnostic(
                "PCB401",
                f"modes must be a mode, or a dict from texts to modes, not {short(shown)}",
                helps=('write `modes=pcbatch.Dense()`, or `modes={"logp(q)": pcbatch.Strips(32)}`',),
            )
        )


def _check_memory(limit: object) -> None:
    size = bytes_of(limit) if isinstance(limit, str) else limit
    if size is not None and isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return
    if limit is not None:
        help = 'leave it out, or write `max_memory="8GB"`'
        title = f"max_memory must be a number of bytes, a text such as '8GB', or None, not {short(limit)}"
        raise UsageError(Diagnostic("PCB401", title, helps=(help,)))


def checked_on_failure(name: str, value: object) -> None:
    """Raise UsageError unless `value` is a choice of `on_failure`; `name` is its option or environment variable."""
    _one_of(name, value, ON_FAILURE)


def checked_lanes(lanes: int | None) -> int | None:
    """Return a number of lanes, or None; raise UsageError (PCB401) unless it is a positive integer."""
    _positive("lanes", lanes)
    return lanes


def _one_of(name: str, value: object, choices: tuple[str, ...], *more: str) -> None:
    if not isinstance(value, str) or value not in choices:
        raise UsageError(
            Diagnostic(
                "PCB401",
                f"unknown {name} {short(value)}",
                helps=(", ".join([f"choose one of {', '.join(map(repr, choices))}", *more]),),
            )
        )


def _flag(name: str, value: object) -> None:
    if value is not None and not isinstance(value, bool):
        title = f"{name} must be True, False or None, not {short(value)}"
        raise UsageError(Diagnostic("PCB401", title, helps=(f"leave {name} out: then it is done where it pays",)))


def _positive(name: str, value: object, example: int = 64) -> None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise UsageError(
            Diagnostic(
                "PCB401",
                f"{name} must be a positive integer or None, not {short(value)}",
                helps=(f"leave {name} out, or give a number such as {name}={example}",),
            )
        )
