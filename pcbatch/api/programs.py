"""The programs of a batched function: one for each signature, compiled by the first call that needs it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import RLock
from types import FunctionType
from typing import Any

import jax

from pcbatch.api.old_names import with_new_names
from pcbatch.api.repeated_calls import RepeatedCall, RepeatedCalls, key_of, repeatable, with_jax_arrays, with_room
from pcbatch.call.arguments import Arguments, prepare, types_of_fixed
from pcbatch.call.placement import requested_devices
from pcbatch.call.signature import checked_names, signature
from pcbatch.call.usage import usage
from pcbatch.compiler.compile_signature import compile_signature
from pcbatch.compiler.growth import limit_of
from pcbatch.compiler.program import Program, Recompile
from pcbatch.data.capacity import (
    LARGEST,
    NO_ROOM,
    START_CAPACITY,
    START_CHARACTERS,
    START_ROOM,
    FullError,
    Room,
    first_capacity,
    next_rooms,
    rounded,
    using_capacity,
)
from pcbatch.data.host.host_forms import is_concrete
from pcbatch.data.host.ragged_forms import longest
from pcbatch.data.objects.tables import TABLES
from pcbatch.decisions import NONE, Decisions
from pcbatch.errors import PcbatchError, Restart, UsageError
from pcbatch.frontend.source.callee import BatchedTest
from pcbatch.jax_settings import settings
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.jax_types import is_symbolic
from pcbatch.lowering.typing.trace import inside_primitive
from pcbatch.options import Options
from pcbatch.runtime.costs.plan_modes import most_lanes
from pcbatch.runtime.lowering_platform import default_platform
from pcbatch.runtime.scalar.worth import Widths
from pcbatch.runtime.sharding.lane_sharding import Devices, ambient_mesh, without_mesh
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks, is_staged, is_tracing
from pcbatch.sizing.room import room_of

MOST_UNSPLIT = 512  # lanes, up to which XLA does not split the kernels of unrolled loops


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """The programs of one function under one set of options, and the way from the arguments of a call to one of them.

    `fixed` are arguments before those of every call, which all lanes share: the object of a method.
    """

    fn: FunctionType
    options: Options
    is_batched: BatchedTest
    fixed: tuple[Any, ...] = ()
    cache: dict[Any, Program] = field(default_factory=dict)
    methods: dict[str, Programs] = field(default_factory=dict)  # by what the object is to the program
    compiling: RLock = field(default_factory=RLock)  # a second thread waits for the first
    rooms: dict[Any, Room] = field(default_factory=dict)  # of containers, that examples and runs of a signature needed
    repeated: RepeatedCalls = field(default_factory=RepeatedCalls)
    copied: dict[Any, frozenset[int]] = field(default_factory=dict)  # tables that programs change, by signature
    alone: dict[Any, Widths] = field(default_factory=dict)  # how many lanes run one after the other, by signature
    refused: set[Any] = field(default_factory=set)  # calls whose native functions XLA has refused to compile
    recent: deque[Any] = field(default_factory=lambda: deque(maxlen=32))  # requests of host code, see `Repeated`

    @property
    def name(self) -> str:
        """The name of the function, for messages."""
        return self.fn.__name__

    def with_options(self, **changes: Any) -> Programs:
        """Change some options; what is compiled already stays with the old ones.

        Raises:
            UsageError: an unknown or ill-typed option.
        """
        changes = with_new_names(changes, self.options)
        options = checked_names(self.fn, replace(self.options, **changes))
        return Programs(self.fn, options, self.is_batched, self.fixed)

    def of_method(self, instance: object) -> Programs:
        """The programs for calls whose first argument is `instance`, the same for all lanes: a pytree of JAX gives its
        arrays, which the lanes share; any other object is a constant of the program."""
        opaque = jax.tree_util.treedef_is_leaf(jax.tree.structure(instance))
        kind = "constant" if opaque else "shared"
        with self.compiling:
            if kind not in self.methods:
                self.methods[kind] = self.with_options(**_method_options(self.fn, self.options, kind))
            m = self.methods[kind]
        # Not by `dataclasses.replace`, which is slower: every call of a method comes by here.
        kept = m.cache, m.methods, m.compiling, m.rooms, m.repeated, m.copied, m.alone, m.refused, m.recent
        return Programs(m.fn, m.options, m.is_batched, (instance,), *kept)

    def pop_devices(self, kwargs: dict[str, Any]) -> Devices:
        """Take `devices=` and `mesh=` out of the keyword arguments of a call, unless the function has such parameters.

        Returns:
            The devices that the lanes run on; None: where the arguments are.
        """
        if not kwargs and self.options.devices is None:
            return None
        return requested_devices(signature(self.fn).parameters, kwargs, self.options.devices)

    def prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any], host: bool = False) -> Arguments:
        """Check the arguments of a call and split them into leaves; see `pcbatch.call.arguments.prepare`."""
        if inside_primitive():
            called = self.fn.__qualname__.rpartition("<locals>.")[2]
            raise usage(
                "PCB412",
                f"batched function `{self.name}` is called where the compiler does not see it",
                "a lane calls another batched function by its own name, a global or a closure variable; a call by "
                f"Python or JAX, as for `key={called}`, is not seen",
                help=f"call `{called}(...)` in the batched function itself, or decorate the helper that calls it with "
                "`@pcbatch.inline`",
            )
        again = partial(prepare, self.fn, self.options, (*self.fixed, *args), kwargs, host=host)
        call = again()
        while more := self._copied(call):
            call = again(copied=call.copied | more)
        return call

    def _copied(self, call: Arguments) -> frozenset[int]:
        """The tables of packed objects that the program for a call changes, of which each lane is to have a copy."""
        if TABLES not in call.types:
            return frozenset()
        key = (call.key, settings(), self.fn.__code__)
        known = all(map(is_concrete, call.arrays[TABLES]))
        if key not in self.copied or not known:
            try:
                self.compile(call)
                self.copied[key] = frozenset()
            except Restart as restart:
                if not known and restart.error is not None:
                    raise restart.error from None
                self.copied[key] = restart.wants.tables
        return self.copied[key]

    def types_of_fixed(self) -> dict[str, Abstract]:
        """The types of the parameters that `fixed` stands for."""
        return types_of_fixed(self.fn, self.options, self.fixed)

    def of_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], repeats: bool = True, alone: bool = False
    ) -> tuple[Program, Arguments]:
        """The program that a call runs, and the call's arguments as leaves; see `program`, and `Arguments.alone`."""
        leaves, key = self._key_of(args, kwargs, repeats, alone)
        if (repeated := self.repeated.find(key, leaves)) is not None:
            with suppress(OverflowError):  # of a number, which `prepare` names
                return repeated.plan.program, repeated.on_device()
        call = replace(self.prepare(args, kwargs), alone=alone)
        program = self.program(call, repeats)
        if repeatable(call, program) and self.repeated.may_plan(key):
            self._remember_call(key, args, kwargs, call, program)
        return program, call

    def repeated_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], repeats: bool = True, alone: bool = False
    ) -> RepeatedCall | None:
        """The plan of a call that repeats an earlier one, with its leaves; see `of_call`."""
        leaves, key = self._key_of(args, kwargs, repeats, alone)
        return self.repeated.find(key, leaves)

    def _key_of(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], repeats: bool, alone: bool
    ) -> tuple[list[Any], Hashable | None]:
        if inside_primitive():
            return [], None
        around = default_platform(), ambient_mesh().empty, is_staged(), debug_checks()
        rest = settings(), self.fn.__code__, repeats, alone, around
        return key_of((*self.fixed, *args), kwargs, rest)

    def _remember_call(
        self, key: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any], call: Arguments, program: Program
    ) -> None:
        """Keep what was found out of a call, if it is the same for a call with arrays of JAX in place of all leaves."""
        roomy = with_room((*self.fixed, *args), kwargs)
        args, kwargs = with_jax_arrays(*roomy, copied=TABLES not in call.types)
        leaves = jax.tree.leaves((args, tuple(kwargs.values())))
        try:
            like = replace(self.prepare(args[len(self.fixed) :], kwargs), alone=call.alone)
        except PcbatchError:  # numbers are more than arrays there
            return
        decided = call.alone and ambient_mesh().empty and not is_staged() and not debug_checks()
        if (like.key, like.mapped) == (call.key, call.mapped):
            self.repeated.remember(key, leaves, like, program, program.direct(call) if decided else None)

    def program(self, call: Arguments, repeats: bool = True) -> Program:
        """The program for the signature of a call; compiles it if it is new.

        Args:
            call: the call.
            decisions: what has been decided about the source for these arguments, with another room.
            repeats: whether a run of it may be repeated with more room for containers, unless JAX traces it.

        Raises:
            CompileError: the function cannot be compiled for these types.
            UsageError: `out_axes` does not fit the result, or `max_length` is less than the function always needs.
        """
        program = self.compile(call, repeats=repeats)
        _ = program.out_axes  # refuses a wrong `out_axes` before anything runs
        return program

    def compile(
        self,
        call: Arguments,
        varying: frozenset[str] = frozenset(),
        room: Room | None = None,
        decisions: Decisions = NONE,
        repeats: bool = True,
        rounds: int | None = None,
    ) -> Program:
        """Compile for the signature of a call without a look at `out_axes`, which transformations of a run change.

        Args:
            call: the call.
            varying: the captured values of an outer trace that differ between lanes, by name.
            room: of containers; None: that with which a run of the call begins.
            decisions: what was decided about the source for these arguments, with another room.
            repeats: whether a run may be repeated, so that it may begin with a small capacity.
            rounds: of a small loop, in one visit; None: what the call asks for.
        """
        rounds = rounds or _rounds(call, self.options)
        # Reloading tools put new code into old functions, and settings of JAX change what its types are.
        signature = (call.key, settings(), self.fn.__code__, varying, rounds)
        with self.compiling:
            call = _with_choice(call, self.options, call.key in self.refused)
            if room is None:
                limit, same = self.options.max_length, signature[:-1]  # no option changes what is needed
                if same not in self.rooms and repeats and not (limit or self.fixed or is_tracing(call.arrays)):
                    self.rooms[same] = room_of(self.fn, self.is_batched, call)
                room = _first_room(call, self.rooms.get(same, NO_ROOM), limit, repeats)
            key, chooses = (*signature, room), call.alone and not call.staged
            widths = self.alone.get(key) if chooses else Widths()

            def place(widths: Widths) -> Any:  # the number of lanes may be a symbol, where there are no widths
                return (*key, call.alone and call.staged, bool(widths) and call.lanes in widths)

            if widths is None or (program := self.cache.get(place(widths))) is None:
                with without_mesh():  # a program outlives the mesh that it is traced under
                    remember = partial(self._remember, signature[:-1], _told(call))
                    program = self._compiled(call, varying, room, remember, decisions, rounds)
                widths = program.alone or Widths()
                if chooses:
                    self.alone[key] = widths
                if not program.captures:  # captured values belong to one trace of the user's
                    self.cache[place(widths)] = program
            return replace(program, alone=widths) if chooses and program.alone is None else program

    def run(
        self, program: Program, call: Arguments, run: Callable[[Program], tuple[Program, RawResult]]
    ) -> tuple[Program, RawResult]:
        """Run the program of a call by `run`: lanes together from now on, where XLA refuses them one by one."""
        try:
            return run(program)
        except jax.errors.JaxRuntimeError:
            if not program.is_alone_by_choice or not program.is_refused(call):
                raise
        with self.compiling:
            self.refused.add(call.key)
            self.repeated.plans.clear()
        return run(self.program(call))

    def _compiled(
        self,
        call: Arguments,
        varying: frozenset[str],
        room: Room,
        remember: Callable[[Room], None],
        decisions: Decisions,
        rounds: int | None,
    ) -> Program:
        """Compile with this room in containers, or as much as it turns out that they need."""
        limit = limit_of(self.options)
        while True:
            again = partial(self.compile, rounds=rounds)
            recompile = Recompile(again, replace(call, arrays={}, mapped={}), varying, room, remember, decisions)
            try:
                with using_capacity(room, limit):
                    return compile_signature(self.fn, self.is_batched, self.options, call, recompile, rounds)
            except FullError as full:
                larger = next_rooms(room, full.needed, limit)
                if not larger or larger[0].joined(larger[0].needing(full.needed)) != larger[0]:
                    raise _always_full(room.needing(full.needed), self.options.max_length) from None
                room, decisions = larger[0], full.decided or decisions

    def _remember(self, signature: Any, first: Room, room: Room) -> None:
        with self.compiling:
            needed = self.rooms.get(signature, NO_ROOM)
            if room.joined(before := first.joined(needed)) != before:
                self.repeated.plans.clear()  # of programs with less room
            self.rooms[signature] = room.joined(needed)


def _with_choice(call: Arguments, options: Options, refused: bool) -> Arguments:
    """The call with what is known of whether its lanes may run one after the other: on a CPU, where XLA has not refused
    that, and where no option is about lanes that run together."""
    staged = call.staged or is_staged() or is_tracing(call.arrays) or is_symbolic(call.lanes)
    plan = options.plan
    together = plan.schedule, plan.emitter, plan.modes, options.stats, options.strategy
    may = together == ("auto", "auto", None, False, "pc") and plan.fork != "always" and not plan.narrow
    may &= options.devices is None or isinstance(options.devices, int)
    may &= staged or (default_platform() == "cpu" and not refused)
    return replace(call, alone=call.alone and may, staged=staged)


def _first_room(call: Arguments, needed: Room, limit: int | None, repeats: bool) -> Room:
    """The room with which a run begins; the only one inside a trace, where no run is repeated.

    `needed`: by earlier runs.
    """
    if is_tracing(call.arrays) or not (repeats or limit is None):
        most = START_CAPACITY if limit is None else rounded(limit)
        return Room(most, most if limit else START_CHARACTERS, most)
    start = _told(call) if repeats else START_ROOM
    return needed.joined(start.within(rounded(limit or LARGEST)))


def _told(call: Arguments) -> Room:
    """The room that the arguments of a call tell; those of packed objects tell none."""
    values = (jax.tree.unflatten(type_.tree, type_.leaves) for type_ in call.types.values())
    elements = first_capacity(0 if TABLES in call.types else max(map(longest, values), default=0))
    return replace(START_ROOM, elements=elements)


def _rounds(call: Arguments, options: Options) -> int | None:
    """The rounds of a small loop in one visit; None: by cost.

    Where the visits of a lane are limited, a visit is a round. Inside a `jit`, XLA cannot be told not to split larger
    kernels of many lanes over threads: on a CPU that takes longer than unrolling saves.
    """
    if options.max_steps is not None:
        return 1
    if options.plan.unroll is not None:
        return options.plan.unroll
    many = is_symbolic(call.lanes) or most_lanes(call.lanes) > MOST_UNSPLIT
    return 1 if many and default_platform() == "cpu" and is_staged() else None


def _always_full(needed: Room, limit: int | None) -> UsageError:
    """The error for a container that is known to need more room than it may have."""
    most = max(needed.sizes)
    what, parts, _ = needed.words[needed.sizes.index(most)]
    if limit is None:
        title = f"{what} needs room for {most:,} {parts}, and {LARGEST:,} are the most that it can have"
        return usage("PCB401", title, help="keep so many values in an array, which has a size of its own")
    title = f"max_length={limit} is too small: {what} of every lane needs room for {most:,} {parts}"
    return usage("PCB401", title, help=f"raise it with `max_length={rounded(most)}`, or leave it out")


def _method_options(fn: FunctionType, options: Options, kind: str) -> dict[str, Any]:
    """The options that differ when the first parameter is the object of a method, a "constant" or "shared"."""
    first, *rest = signature(fn).parameters
    in_axes = options.in_axes
    if kind == "constant":
        return {"static_argnames": (first, *(name for name in options.static_argnames if name != first))}
    if in_axes is None or isinstance(in_axes, int):
        return {"in_axes": dict.fromkeys(rest, in_axes) | {first: None}}
    return {"in_axes": {**in_axes, first: None}} if isinstance(in_axes, Mapping) else {}
