"""`Batched`: a batched function, and the same as a method of an object."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from os import PathLike
from types import FunctionType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np

from pcbatch.api.inlined import Inline
from pcbatch.api.map import MapOptions, run_map
from pcbatch.api.programs import Programs
from pcbatch.api.public import public
from pcbatch.api.repeated_calls import DecidedRun
from pcbatch.api.stages import Lowered, Traced, avals_of
from pcbatch.api.tune import TuneOptions, tune_call
from pcbatch.ask.answers import Outcome, Values
from pcbatch.ask.asking import asked
from pcbatch.call.arguments import Arguments
from pcbatch.call.placement import without_explicit_axes
from pcbatch.call.plain_arguments import plain_arguments
from pcbatch.call.results import Result
from pcbatch.call.signature import checked_names, signature
from pcbatch.compiler.growth import run_growing
from pcbatch.compiler.program import Program
from pcbatch.contexts import setting
from pcbatch.frontend import assigned_items
from pcbatch.frontend.source.callee import Target
from pcbatch.options import Mode, Options, checked_lanes
from pcbatch.report.lane_failures import lane_error, raise_failures, report_when_run
from pcbatch.report.profile import Profile, profile_call
from pcbatch.report.schedule import Explanation, explain_call
from pcbatch.report.tape import TapeUse, tape_use
from pcbatch.runs import monitored
from pcbatch.runs.run_handle import Machine
from pcbatch.runs.run_options import Progress, RunOptions
from pcbatch.runtime.vm.raw_result import RawResult
from pcbatch.tuning.tuned import Tuned

P = ParamSpec("P")  # the parameters of a function of one example
Q = ParamSpec("Q")  # those of a method, less its object
R = TypeVar("R", covariant=True)  # what it returns, for an example as for a batch of them
T = TypeVar("T")

_plainly: ContextVar[bool] = ContextVar("pcbatch_plainly", default=False)


class Batched(Generic[P, R]):
    """A function of one example, compiled to run on a batch. Made by `pcbatch.batch`.

    Calling it maps over the leading axis of every argument leaf (see `in_axes`), as `jax.vmap` would; every lane
    follows its own control flow. It never changes: a copy of it is the object itself, and it is pickled by its name,
    as functions are, without its compiled programs.

    For type checkers it is generic: `Batched[P, R]` is made of a function with parameters P that returns R.
    """

    __name__: str  # the function's

    def __init__(self, fn: FunctionType, options: Options) -> None:
        functools.update_wrapper(self, fn)
        self.fn: FunctionType = fn
        self.options = options
        self._programs = Programs(fn, options, functools.partial(_target_of, fn))

    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        """Run every lane; the result has the lanes along the leading axis of every leaf (see `out_axes`).

        Args:
            *args, **kwargs: as for the plain function, with an axis of the lanes in every leaf that `in_axes` maps.
                `devices=`, `mesh=`, `timeout=`, `progress=`, `save_to=` and `every=` are as in `f.run`, unless they
                are parameters of the function.

        Raises:
            BatchRuntimeError: a lane failed (not inside `jit`: there it gives NaN, or the smallest integer, and
                `on_failure` says what else happens).
            CompileError: the function cannot be compiled for these types.
            UsageError: arguments do not fit the signature, `in_axes`, or one another.
        """
        __tracebackhide__ = True
        if _plainly.get():
            return self.fn(*self._programs.fixed, *args, **kwargs)  # type: ignore[no-any-return]
        return self._call(args, kwargs)

    @public
    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        decided = self._decided(args, kwargs)
        if decided is not None and not decided.has_failed():
            return decided.value()  # type: ignore[no-any-return]
        program, call, raw = self._run(args, kwargs, decided)
        raise_failures(self.fn.__name__, program, raw, call)
        return program.value(report_when_run(program, self.fn.__name__, raw), call)  # type: ignore[no-any-return]

    @public
    def ask(self, /, *args: Any, keep: bool = False, **kwargs: Any) -> Any:
        """Ask for the result of ONE example, and wait while others ask, too: their requests are answered in batches.

        In a call of `pcbatch.gather` other calls run meanwhile; a thread inside of `pcbatch.serving` sleeps; a
        coroutine awaits: `value = await f.ask(x)`. Requests make one batch if their own arguments have the same
        structure, shapes and dtypes, and if they share the very same objects where `in_axes` is None.

        Args:
            *args, **kwargs: the arguments of one example, as the plain function takes them: also texts, and lists of a
                length of their own.
            keep: whether the result stays on the device, as a row that is an argument of later requests.

        Returns:
            The result of this example, in arrays of NumPy; a row with `keep`.

        Raises:
            BatchRuntimeError: this example has failed. No other request sees that.

        Example:
            >>> import asyncio, pcbatch
            >>> @pcbatch.batch
            ... def square(x):
            ...     return x * x
            >>> async def main():
            ...     return await asyncio.gather(*(square.ask(x) for x in (1.0, 2.0, 3.0)))
            >>> [float(x) for x in asyncio.run(main())]
            [1.0, 4.0, 9.0]
        """
        return asked(self, args, kwargs, keep)

    def begun(self, args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float | None) -> Callable[[], Outcome]:
        """Begin a batch, and return what waits for its values and for the errors of examples that failed."""
        decided = self._decided(args, kwargs) if timeout is None else None
        return lambda: self._outcome(args, kwargs, timeout, decided)

    def _outcome(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float | None, decided: DecidedRun | None
    ) -> Outcome:
        if decided is not None and not decided.has_failed():
            return Values(decided.value()), {}
        more = {} if timeout is None else {"timeout": timeout}
        program, call, raw = self._run(args, {**kwargs, **more}, decided)
        result = program.result(raw, call.lanes, call)
        failed = np.flatnonzero(np.asarray(result.status))
        return Values(result.value), {int(k): lane_error(self.__name__, program, raw, call, int(k)) for k in failed}

    @public
    def run(self, /, *args: Any, **kwargs: Any) -> Result:
        """Run every lane, and report in `Result.status` how each ended: lanes that fail raise nothing. Works in `jit`.

        Args:
            *args, **kwargs: as in a call, and outside of `jit` these (docs/users/runs.md tells more):
            progress: True for a bar of tqdm, or a function that is called with the numbers of lanes that are done, and
                of all.
            timeout: seconds (compiling is not counted) after which lanes that still run are left as they are, with
                `Status.RUNNING`.
            save_to: a path, where the run is kept. If the file is there, the run is resumed from it.
            every: seconds between two writes of that file. (60 if left out.)

        Returns:
            A `Result`: the value as a call gives it, the status of each lane (int32[lanes]), and counts.

        Raises:
            CompileError, UsageError: as in a call.
            StateError: the file of `save_to` holds another run, or none.
            Interrupted: Ctrl-C was pressed in a run with one of these; it holds the machine as it is then.

        Example:
            >>> import jax.numpy as jnp, pcbatch
            >>> @pcbatch.batch(max_steps=100)
            ... def steps(n):
            ...     count = 0
            ...     while n != 1:
            ...         n = n // 2 if n % 2 == 0 else 3 * n + 1
            ...         count += 1
            ...     return count
            >>> result = steps.run(jnp.array([6, 27, 1]))
            >>> [pcbatch.Status(status).name for status in result.status]
            ['OK', 'STEP_LIMIT', 'OK']
        """
        program, call, raw = self._run(args, kwargs, self._decided(args, kwargs))
        return program.result(raw, call.lanes, call)

    @public
    def map(
        self,
        /,
        *args: Any,
        lanes: int | None = None,
        chunk: int | None = None,
        progress: Progress | bool | None = None,
        timeout: float | None = None,
        save_to: str | PathLike[str] | None = None,
        every: float | None = None,
        **kwargs: Any,
    ) -> Result:
        """Run many inputs through a fixed number of lanes: a lane that is done takes the next input.

        For inputs whose runs differ in length this is faster than a lane for each: none waits for the longest.

        Args:
            *args, **kwargs: as in a call, the inputs along the mapped axes; `devices=` and `mesh=` as well. Or, alone,
                an iterator of chunks: each is a tuple of arguments as in a call (of one parameter: or that argument).
            lanes: of the machine on each device. None: 512, or 768 for more than 12,000 inputs.
            chunk: inputs that are sent to the devices at a time. None: all, unless they are NumPy arrays of more than
                256 MiB in all (then 64 MiB) or come in chunks. Results of chunks are arrays of NumPy.
            progress: called with the number of inputs that are done, and of all (None: not known yet), now and then
                and at the end; True for a bar of tqdm.
            timeout: seconds after which inputs that are not done are left, with `Status.RUNNING`.
            save_to, every: as in `f.run`. A run over an iterator of chunks is resumed with one that gives the same
                chunks again: those that are done are read and dropped.

        Returns:
            A `Result` in the order of the inputs, with a status for each; like `run`, it does not raise for them.

        Raises:
            CompileError, UsageError, StateError, Interrupted: as in `f.run`; UsageError also for chunks of different
                types, and inside `jit` for an iterator or `chunk`.

        Example:
            >>> import jax.numpy as jnp, pcbatch
            >>> @pcbatch.batch
            ... def digits(n):
            ...     count = 1
            ...     while n >= 10:
            ...         n, count = n // 10, count + 1
            ...     return count
            >>> digits.map(jnp.array([7, 1000, 42, 123456]), lanes=2).value.tolist()
            [1, 4, 2, 6]
        """
        kwargs |= {"progress": progress, "timeout": timeout, "save_to": save_to, "every": every}
        run_options = RunOptions.pop_from(kwargs, {}, signature(self.fn).parameters)
        devices = self._programs.pop_devices(kwargs)
        return run_map(self._programs, args, kwargs, MapOptions(lanes, chunk, devices, run_options))

    @public
    def start(self, /, *args: Any, **kwargs: Any) -> Machine:
        """Make a machine with the arguments of a call, before its first trip. Not inside `jit`.

        The machine is a value: it can be advanced, looked at, saved to a file and resumed.

        Args:
            *args, **kwargs: as in a call, with `devices=` and `mesh=`.

        Returns:
            A `Machine` whose lanes are all at the entry.

        Raises:
            CompileError, UsageError: as in a call; UsageError also under a trace of JAX, and for strategy "local".

        Example:
            >>> import jax.numpy as jnp, pcbatch
            >>> @pcbatch.batch
            ... def countdown(n):
            ...     while n > 0:
            ...         n = n - 1
            ...     return n
            >>> m = countdown.start(jnp.array([1, 1000]))
            >>> m = m.advance(max_trips=2)
            >>> m.advance().result().value.tolist()
            [0, 0]
        """
        devices = self._programs.pop_devices(kwargs)
        program, call = self._programs.of_call(args, kwargs, alone=devices is None)
        return monitored.start(self.__name__, program, call, devices, "start")

    @public
    def load(self, path: str | PathLike[str], /, *args: Any, **kwargs: Any) -> Machine:
        """Read the machine that `m.save(path)`, or `save_to=` of a call, has written to a file.

        Args:
            path: of the file.
            *args, **kwargs: arguments of the types that the run began with (`jax.ShapeDtypeStruct`s are enough); needed
                only if they hold objects of your own classes, or static ones that are no numbers and strings.
                `devices=` and `mesh=` as in a call.

        Returns:
            The `Machine` as it was when the file was written.

        Raises:
            StateError: the file holds no run, not all of it, or one of another program (a `ValueError`).

        Example:
            >>> f.start(xs).advance(max_trips=1000).save("run.npz")  # doctest: +SKIP
            >>> f.load("run.npz").advance().result()  # doctest: +SKIP
        """
        return monitored.load(self._programs, path, args, kwargs)

    @public
    def explain_schedule(self, /, *args: Any, lanes: int | None = None, **kwargs: Any) -> Explanation:
        """Explain how a call would run, and why: the decisions for each block, and its estimated cost.

        Args:
            *args, **kwargs: as in a call; `jax.ShapeDtypeStruct`s are enough. Nothing is run.
            lanes: explain a machine of this number of lanes, as `f.map(..., lanes=...)` makes it. None: the machine of
                a call.

        Returns:
            An `Explanation`, which prints as a table; times are estimates in nanoseconds.

        Raises:
            CompileError, UsageError: as in a call; UsageError also for strategy "local".

        Example:
            >>> print(f.explain_schedule(xs))  # doctest: +SKIP
        """
        devices = self._programs.pop_devices(kwargs)
        alone = None
        if lanes is None and devices is None:
            alone = self._programs.of_call(args, dict(kwargs), alone=True)[0]
        compiled, call = self._compiled(args, kwargs)
        return explain_call(self.__name__, compiled, call, checked_lanes(lanes), devices, alone)

    @public
    def profile(self, /, *args: Any, lanes: int | None = None, **kwargs: Any) -> Profile:
        """Run with statistics, also over time: which blocks ran, for how many lanes, and how many those had room for.

        The program is compiled once more for it; other calls pay nothing. Lanes that fail raise nothing, as in `run`:
        see `Profile.result`.

        Args:
            *args, **kwargs: as in a call.
            lanes: run the inputs through this number of lanes, as `map` does. None: as a call does.

        Returns:
            A `Profile`, which prints as a table.

        Raises:
            CompileError, UsageError: as in a call; UsageError also under a trace of JAX, and for strategy "local".

        Example:
            >>> profile = f.profile(xs)  # doctest: +SKIP
            >>> print(profile)  # doctest: +SKIP
            >>> profile.html("profile.html")  # doctest: +SKIP
        """
        devices = self._programs.pop_devices(kwargs)
        return profile_call(self.__name__, *self._compiled(args, kwargs), checked_lanes(lanes), devices)

    @public
    def tape(self, /, *args: Any, **kwargs: Any) -> TapeUse:
        """Count what a gradient of this call would record: the visits of each block, and the bytes of its records.

        Runs the lanes once. `f.tape(...).max_tape` is the least `max_tape` with which the gradient fits inside `jit`.

        Args:
            *args, **kwargs: as in a call.

        Returns:
            A `TapeUse`, which prints as a table; sizes are in bytes.

        Raises:
            CompileError, UsageError: as in a call; UsageError also under a trace of JAX, and for strategy "local".

        Example:
            >>> f = f.with_options(max_tape=f.tape(xs).max_tape)  # doctest: +SKIP
        """
        self._programs.pop_devices(kwargs)  # a tape has the same size on any device
        return tape_use(*self._programs.with_options(max_tape=None).of_call(args, kwargs))

    @public
    def tune(
        self,
        /,
        *args: Any,
        seconds: float = 30.0,
        schedules: Sequence[str] | None = None,
        emitters: Sequence[str] | None = None,
        modes: Sequence[Mode | Mapping[str, Mode]] | None = None,
        unrolls: Sequence[int] | None = None,
        lanes: Sequence[int] | None = None,
        alike: float = 1.0,
        progress: Progress | bool | None = None,
        **kwargs: Any,
    ) -> Tuned:
        """Measure calls under other options, and `map` with a few widths, and return the fastest.

        Each candidate changes one option; it is compiled, run on these arguments, compared with the result under the
        options that the function has, and measured. Then the fastest is tried together with the fastest of other
        options, and the best run in turn, the slower half of them left out after each round. One that gains less than
        5% does not win. Ctrl-C ends it with what is measured so far.

        Args:
            *args, **kwargs: as in a call, of the size that is to be fast; `devices=` and `mesh=` as well.
            seconds: that it may take, with compiling. A program that is being compiled or run is not stopped; none but
                the first candidate is begun that is expected to end later.
            schedules: to try. None: "sweep", "drain", "earliest" and "largest".
            emitters: to try. None: "scalar" on a CPU, "guard" and "port".
            modes: to try. None: `Dense()`, and `Few(32)` and `Strips(32)` if there are more lanes.
            unrolls: numbers of rounds to try. None: 1 and 8, if there are loops to unroll.
            lanes: widths of `f.map` to try. None: the widest three of 1024, 512, 128 and 32 that inputs fill twice.
            alike: the least share of the numbers in each array of the result that must be those of the defaults
                (integers bit for bit, floating numbers up to rounding). Less than 1 where rounding sends runs another
                way, as in sampling.
            progress: called with the number of candidates that were compiled, and of all; True for a bar of tqdm.

        Returns:
            A `Tuned`, which prints as a table.

        Raises:
            CompileError, UsageError: as in a call; UsageError also inside of a transformation of JAX, for strategy
                "local", and for a function that prints or calls back to the host.

        Example:
            >>> import jax.numpy as jnp, pcbatch
            >>> @pcbatch.batch
            ... def digits(n):
            ...     count = 1
            ...     while n >= 10:
            ...         n, count = n // 10, count + 1
            ...     return count
            >>> xs = jnp.array([7, 1000, 42, 123456])
            >>> tuned = digits.tune(xs, seconds=5, schedules=["sweep"], emitters=[], modes=[], unrolls=[4])
            >>> digits.with_options(**tuned)(xs).tolist()
            [1, 4, 2, 6]
        """
        options = TuneOptions(seconds, schedules, emitters, modes, unrolls, lanes, alike, progress)
        return tune_call(self._programs, lambda programs: _with_programs(self, programs), args, kwargs, options)

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for these arguments, as `jax.jit(f).trace` does.

        Args:
            *args, **kwargs: as in a call; `jax.ShapeDtypeStruct`s are enough. Nothing is run.

        Returns:
            A `Traced`, like `jax.stages.Traced`: `.jaxpr`, the types of arguments and result, `.lower()`.

        Raises:
            CompileError, UsageError: as in a call.

        Example:
            >>> f.trace(jax.ShapeDtypeStruct((8,), "int32")).out_info  # doctest: +SKIP
        """
        __tracebackhide__ = True
        lowered = self.lower(*args, **kwargs)
        return Traced(lowered.avals, lowered)

    @public
    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """Compile the function for these arguments as far as XLA, as `jax.jit(f).lower` does.

        Args:
            *args, **kwargs: as in a call; `jax.ShapeDtypeStruct`s are enough. Nothing is run.

        Returns:
            A `Lowered`, like `jax.stages.Lowered`: `.as_text(stage)`, the types of arguments and result, `.compile()`.

        Raises:
            CompileError, UsageError: as in a call.

        Example:
            >>> import jax, pcbatch
            >>> @pcbatch.batch
            ... def double(x):
            ...     return 2 * x
            >>> lowered = double.lower(jax.ShapeDtypeStruct((8,), "float32"))
            >>> print(lowered.as_text("cfg").strip())
            pcir 1 cfg
            func @double(x: f32[]) -> (r: f32[]) {
            bb0:
              r = { 2 * x }
              return
            }
            >>> lowered.out_info
            ShapeDtypeStruct(shape=(8,), dtype=float32)
        """
        devices = self._programs.pop_devices(kwargs)
        program, call = self._programs.of_call(args, kwargs, repeats=False)
        avals = avals_of(program, call.lanes, signature(self.fn), (*self._programs.fixed, *args), kwargs)
        return Lowered(avals, self.fn, program, call, without_explicit_axes(program.placed(call, devices)))

    def plain(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one example in plain Python; batched functions that it calls run plainly too.

        Args:
            *args, **kwargs: of one example, without an axis of lanes. Arrays of NumPy among them become arrays of JAX,
                as in a call of the batch; but arrays of a parameter to whose items the function assigns become
                copies of NumPy, which allow it. A `Ragged` becomes a list of lists.

        Returns:
            The value that the function itself returns.

        Raises:
            Exception: what the function raises.

        Example:
            >>> import pcbatch
            >>> @pcbatch.batch
            ... def fib(n):
            ...     return n if n < 2 else fib(n - 2) + fib(n - 1)
            >>> fib.plain(10)
            55
        """
        converted, named = plain_arguments(self.fn, args, kwargs, assigned_items(self.fn))
        with setting(_plainly, True):
            return self.fn(*converted, **named)  # type: ignore[no-any-return]

    def with_options(self, **changes: Any) -> Batched[P, R]:
        """Change some options, in a new object that shares no compiled program with this one.

        Args:
            **changes: options of `pcbatch.batch`; the others stay as they are.

        Returns:
            A `Batched` of the same function.

        Raises:
            UsageError: an unknown or ill-typed option.

        Example:
            >>> checked = f.with_options(max_steps=10_000, stats=True)  # doctest: +SKIP
        """
        return Batched(self.fn, self._programs.with_options(**changes).options)

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments]:
        return self._programs.of_call(args, kwargs)

    def _decided(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DecidedRun | None:
        """The run of a call that repeats an earlier one, if all about it was decided."""
        repeated = self._programs.repeated_call(args, kwargs, alone=True)
        return None if repeated is None else repeated.run()

    def _run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], decided: DecidedRun | None
    ) -> tuple[Program, Arguments, RawResult]:
        """Run a call to its end: as it was `decided`, in one go, or as a monitored run if it has options of such a
        run."""
        if decided is not None and not decided.lacks_room():
            return decided.ended()
        devices = self._programs.pop_devices(kwargs)
        run_options = RunOptions.pop_from(kwargs, signature(self.fn).parameters) if kwargs else None
        program, call = self._programs.of_call(args, kwargs, alone=devices is None)

        def run(program: Program) -> tuple[Program, RawResult]:
            if run_options is None:
                return run_growing(program, lambda program: program.execute(call, devices))
            return monitored.run_monitored(self.__name__, program, call, devices, run_options)

        program, raw = self._programs.run(program, call, run)
        return program, call, raw

    def _of_method(self, instance: object) -> Batched[..., R]:
        """This function with `instance` before the arguments of every call."""
        bound: Batched[..., R] = object.__new__(Batched)
        vars(bound).update(vars(self), _programs=self._programs.of_method(instance))
        return bound

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Batched[P, R]: ...

    @overload
    def __get__(
        self: Batched[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> BoundMethod[Q, R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind the function to an object, its first argument, which is the same for all lanes."""
        return self if instance is None else BoundMethod(self, instance)

    def __repr__(self) -> str:
        return f"<pcbatch.Batched {self.fn.__qualname__}{signature(self.fn)}>"

    def __copy__(self) -> Batched[P, R]:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Batched[P, R]:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by the name that the module has for it.

        One made of the object of that name, by `with_options` or by `g = pcbatch.batch(f)`, is pickled as that object
        and the options.
        """
        named = _by_name(self.fn.__module__, self.fn.__qualname__)
        plain = named.fn if isinstance(named, Batched) else named
        if named is self or plain is not self.fn:
            return str(self.fn.__qualname__)  # pickle itself refuses a name that is not there
        return _again, (named, self.options)


def _with_programs(f: Batched[..., Any], programs: Programs) -> Batched[..., Any]:
    """The function under other options, with the same object if it is that of a method."""
    other: Batched[..., Any] = object.__new__(Batched)
    vars(other).update(vars(f), options=programs.options, _programs=programs)
    return other


def _by_name(module: str, path: str) -> Any:
    value: Any = sys.modules.get(module)
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _again(named: Any, options: Options) -> Batched[..., Any]:
    """Unpickle a function with its own options."""
    fn = named.fn if isinstance(named, Batched) else named
    return Batched(fn, checked_names(fn, replace(options)))


def _forwarded(
    method: Callable[Concatenate[Batched[..., Any], Q], T],
) -> Callable[Concatenate[BoundMethod[..., Any], Q], T]:
    """A method of `Batched` as one of `BoundMethod`: the object comes before the arguments."""

    @functools.wraps(method)
    def forward(bound: BoundMethod[..., Any], /, *args: Q.args, **kwargs: Q.kwargs) -> T:
        __tracebackhide__ = True
        return method(bound.batched._of_method(bound.instance), *args, **kwargs)

    return forward


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)  # `jax.jit` keeps weak references
class BoundMethod(Generic[P, R]):
    """A batched function with its first argument, the object of a method. Has the methods of a `Batched`.

    The object is the same for all lanes. One that JAX knows as a pytree gives its arrays, shared by the lanes; any
    other is a constant of the compiled program (and must be hashable), so that `self.step(x)` calls a batched method.
    """

    batched: Batched[..., R]
    instance: Any

    def __call__(self, /, *args: Any, **kwargs: Any) -> R:
        """Run every lane, as `Batched.__call__`."""
        __tracebackhide__ = True
        return self.batched._of_method(self.instance)(*args, **kwargs)

    def plain(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one example in plain Python, as `Batched.plain`."""
        return self.batched.plain(self.instance, *args, **kwargs)

    def with_options(self, **changes: Any) -> BoundMethod[P, R]:
        """Change some options, as `Batched.with_options`."""
        return BoundMethod(self.batched.with_options(**changes), self.instance)

    run = _forwarded(Batched.run)
    map = _forwarded(Batched.map)
    start = _forwarded(Batched.start)
    load = _forwarded(Batched.load)
    explain_schedule = _forwarded(Batched.explain_schedule)
    profile = _forwarded(Batched.profile)
    tape = _forwarded(Batched.tape)
    tune = _forwarded(Batched.tune)
    trace = _forwarded(Batched.trace)
    lower = _forwarded(Batched.lower)


class ClassMethod(classmethod):  # type: ignore[type-arg]
    """A batched classmethod, as `pcbatch.batch` makes it. (Python's own binds plain functions only.)"""

    def __get__(self, instance: Any, owner: type | None = None) -> BoundMethod[..., Any]:
        """Bind the function to the class, its first argument, which is the same for all lanes."""
        return BoundMethod(self.__func__, type(instance) if owner is None else owner)  # type: ignore[arg-type]


def _target_of(fn: FunctionType, obj: object) -> Target | None:
    """The function that a call of `obj` inside the batched `fn` runs per lane; None: JAX traces the call."""
    match obj:
        case Batched():
            return Target(obj.fn)
        case Inline():
            return Target(obj.fn, inline=True)
        case BoundMethod():
            return Target(obj.batched.fn, (obj.instance,))
        case functools.partial():
            inner = _target_of(fn, obj.func)
            if inner is None:
                return None
            keywords = {**dict(inner.keywords), **obj.keywords}
            return replace(inner, args=(*inner.args, *obj.args), keywords=tuple(keywords.items()))
        case _:
            # `g = pcbatch.batch(f)`: f's own recursive calls name f.
            return Target(fn) if obj is fn else None
