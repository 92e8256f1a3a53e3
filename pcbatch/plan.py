"""The plan of a program: all of how it runs that changes no value. Frozen, hashable, checked when it is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.diagnostics.short_repr import short
from pcbatch.errors import UsageError

SCHEDULES = ("auto", "earliest", "largest", "sweep", "drain")
EMITTERS = ("auto", "scalar", "guard", "port", "kernel")
FORKS = ("auto", "always", "never")


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
        check_positive("spins", self.spins, 4)
        for name, value in (("tile", self.tile), ("warps", self.warps)):
            check_positive(name, value, 8)
            most = MOST_OF_TILE[name]
            if value is not None and (value & (value - 1) or value > most):
                title = f"{name} must be a power of two, at most {most:,}, not {value}"
                help = f"write `{name}={min(most, 1 << value.bit_length())}`"
                raise UsageError(Diagnostic("PCB401", title, helps=(help,)))


KINDS = {kind.__name__: kind for kind in (Dense, Few, Strips, Kernel)}  # that stand in files by name


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """All of how a program runs that changes no value, for `pcbatch.batch(plan=...)`.

    `f.tune(xs).plan` is one that was measured, `f.explain_schedule(xs).plan` the one in force. `repr` is an expression
    with the fields that differ from the defaults.

    Attributes:
        schedule: "auto", "earliest", "largest", "sweep", "drain", a `pcbatch.Learned`, or a policy of your own: which
            block runs next.
        emitter: how blocks are dispatched. "scalar": one lane after the other in one native function of a CPU, for
            programs that can be one; "guard" or "port": lanes together; "auto": a plain call on a CPU chooses,
            by estimated time; "kernel" (or a `pcbatch.Kernel`): the whole machine is one kernel of a GPU, for programs
            that can be one (UsageError for others).
        modes: how blocks are computed (by "guard"): None (chosen by cost), a `pcbatch.Dense()`, `Few(width)` or
            `Strips(width)` for all, or a dict from a text in a block's source, or its label, to one of these.
        unroll: rounds that one visit computes of a loop which is one small block. None: by cost (one inside
            a `jit` for many lanes on a CPU). With `max_steps` it is one. Loops that print, call, or change larger
            arrays have one.
        narrow: whether the last lanes of a run go on in machines of fewer lanes, on a CPU, and whether those of a queue
            do. None: where it is estimated to pay.
        fork: whether independent calls of one example run side by side, as in `f(left) + f(right)`: "auto" (where that
            is possible and estimated to pay), "always" (UsageError where it is impossible) or "never".
        cores: the most threads that the lanes of a plain call are dealt to, where they run one after the other on a
            CPU. None: as many as XLA has, which the environment's `NPROC` says.

    Raises:
        UsageError: a value that a field cannot have. (PCB401)

    Example:
        >>> import pcbatch
        >>> plan = pcbatch.Plan(schedule="sweep", modes=pcbatch.Few(32))
        >>> plan
        pcbatch.Plan(schedule="sweep", modes=pcbatch.Few(width=32))
        >>> f = pcbatch.batch(lambda n: n + 1, plan=plan)
        >>> f.options.plan == plan
        True
    """

    schedule: Any = "auto"
    emitter: str | Kernel = "auto"
    modes: Mode | Mapping[str, Mode] | None = None
    unroll: int | None = None
    narrow: bool | None = None
    fork: str = "auto"
    cores: int | None = None

    def __post_init__(self) -> None:
        if not _is_policy(self.schedule):
            _check_schedule(self.schedule)
        if (named := getattr(self.schedule, "deployed", None)) in SCHEDULES:  # a `pcbatch.Learned` that is a fixed one
            object.__setattr__(self, "schedule", named)
        if not isinstance(self.emitter, Kernel):
            check_one_of("emitter", self.emitter, EMITTERS, "or a `pcbatch.Kernel`")
        _check_modes(self.modes)
        if isinstance(self.modes, Mapping):  # a copy, which a change of the given one does not reach
            object.__setattr__(self, "modes", dict(self.modes))
        check_positive("unroll", self.unroll, 8)
        _check_flag("narrow", self.narrow)
        check_one_of("fork", self.fork, FORKS)
        check_positive("cores", self.cores, 2)

    def __hash__(self) -> int:
        values = (getattr(self, field.name) for field in fields(self))
        return hash(tuple([frozenset(v.items()) if isinstance(v, Mapping) else v for v in values]))

    def __repr__(self) -> str:
        return f"pcbatch.Plan({', '.join(f'{name}={_as_source(value)}' for name, value in self.changed().items())})"

    def changed(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults."""
        values = {field.name: (getattr(self, field.name), field.default) for field in fields(self)}
        return {name: value for name, (value, default) in values.items() if value is not default and value != default}

    @property
    def kernel(self) -> Kernel | None:
        """The sizes of the kernel, if the machine is to be one."""
        if isinstance(self.emitter, Kernel):
            return self.emitter
        return Kernel() if self.emitter == "kernel" else None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan to a file, as JSON.

        Args:
            path: of the file.

        Raises:
            UsageError: the schedule is an object, which has a file of its own. (PCB427)
        """
        Path(path).write_text(json.dumps({"plan": as_json(self)}, indent=1) + "\n", "utf-8")

    @staticmethod
    def load(path: str | PathLike[str]) -> Plan:
        """Read what `save` has written, or the plan in a file of `f.tune(...).save(path)`.

        Args:
            path: of the file.

        Raises:
            UsageError: the file holds no plan (PCB427), or one with a value that a field cannot have (PCB401).
        """
        try:
            return plan_of_json(json.loads(Path(path).read_text("utf-8"))["plan"])
        except UsageError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            help = "give the path of a file that `plan.save(path)` has written, with this version of pcbatch"
            raise UsageError(Diagnostic("PCB427", f"{Path(path).name} holds no plan", helps=(help,))) from error


def as_json(plan: Plan) -> dict[str, Any]:
    """Return the fields of a plan that differ from the defaults as values that JSON has.

    Raises:
        UsageError: the schedule is an object, which JSON has not. (PCB427)
    """
    if not isinstance(plan.schedule, str):
        title = f"a plan in a file names its schedule, and {short(plan.schedule)} cannot be"
        help = (
            'write `dataclasses.replace(plan, schedule="auto").save(path)`; a learned schedule has a `save` of its own'
        )
        raise UsageError(Diagnostic("PCB427", title, helps=(help,)))
    return {name: _to_json(value) for name, value in plan.changed().items()}


def plan_of_json(values: Mapping[str, Any]) -> Plan:
    """Return the plan of what `as_json` has given."""
    return Plan(**{name: _from_json(value) for name, value in values.items()})


def _as_source(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_as_source(key)}: {_as_source(mode)}' for key, mode in value.items())}}}"
    return f"pcbatch.{value!r}" if type(value) in KINDS.values() else short(value)


def _to_json(value: Any) -> Any:
    """A mode or a kernel as its class and fields, a dict of modes by texts as one of these; others are JSON."""
    if isinstance(value, Mapping):
        return {"of blocks": {text: _to_json(mode) for text, mode in value.items()}}
    return {type(value).__name__: asdict(value)} if type(value) in KINDS.values() else value


def _from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "of blocks":
        return {text: _from_json(mode) for text, mode in inner.items()}
    return KINDS[kind](**inner)


def _is_policy(schedule: object) -> bool:
    """Whether a schedule is a `pcbatch.Policy`: an object with a name and a method `trip`."""
    return (
        not isinstance(schedule, type)
        and isinstance(getattr(schedule, "name", None), str)
        and callable(getattr(schedule, "trip", None))
    )


def _check_schedule(schedule: object) -> None:
    if isinstance(schedule, str) or not hasattr(schedule, "trip"):
        return check_one_of("schedule", schedule, SCHEDULES, "or give an object with a `name` and a method `trip`")
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


def _check_flag(name: str, value: object) -> None:
    if value is not None and not isinstance(value, bool):
        title = f"{name} must be True, False or None, not {short(value)}"
        raise UsageError(Diagnostic("PCB401", title, helps=(f"leave {name} out: then it is done where it pays",)))


def check_one_of(name: str, value: object, choices: tuple[str, ...], *more: str) -> None:
    """Raise UsageError (PCB401) unless a value is one of the choices; `more`: what else it may be, for the help."""
    if not isinstance(value, str) or value not in choices:
        raise UsageError(
            Diagnostic(
                "PCB401",
                f"unknown {name} {short(value)}",
                helps=(", ".join([f"choose one of {', '.join(map(repr, choices))}", *more]),),
            )
        )


def check_positive(name: str, value: object, example: int = 64) -> None:
    """Raise UsageError (PCB401) unless a value is a positive integer or None."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise UsageError(
            Diagnostic(
                "PCB401",
                f"{name} must be a positive integer or None, not {short(value)}",
                helps=(f"leave {name} out, or give a number such as {name}={example}",),
            )
        )
