"""The methods of a batched function that run it."""

from __future__ import annotations

from os import PathLike
from typing import Any, Generic, ParamSpec, TypeVar

from pcbatch.api.map import MapOptions, run_map
from pcbatch.api.programs import Programs
from pcbatch.api.public import public
from pcbatch.api.repeated_calls import DecidedRun
from pcbatch.call.arguments import Arguments
from pcbatch.call.results import Result
from pcbatch.call.signature import signature
from pcbatch.compiler.growth import run_growing
from pcbatch.compiler.program import Program
from pcbatch.compiler.typed_program import keeping_work
from pcbatch.contexts import plainly
from pcbatch.report.lane_failures import raise_failures, report_when_run
from pcbatch.runs import monitored
from pcbatch.runs.run_handle import Run
from pcbatch.runs.run_options import Progress, RunOptions
from pcbatch.runtime.vm.raw_result import RawResult

P = ParamSpec("P")  # the parameters of a function of one example
R = TypeVar("R", covariant=True)  # what it returns, for an example as for a batch of them


class Calls(Generic[P, R]):
    """The methods that run a batched function: in one go, as a queue of inputs, or step by step."""

    __name__: str
    fn: Any  # a function, which type checkers would bind as a method
    _programs: Programs

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
        if plainly.get():
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
    def start(self, /, *args: Any, **kwargs: Any) -> Run:
        """Make a machine with the arguments of a call, before its first trip. Not inside `jit`.

        The machine is a value: it can be advanced, looked at, saved to a file and resumed.

        Args:
            *args, **kwargs: as in a call, with `devices=` and `mesh=`.

        Returns:
            A `Run` whose lanes are all at the entry.

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
    def load(self, path: str | PathLike[str], /, *args: Any, **kwargs: Any) -> Run:
        """Read the machine that `m.save(path)`, or `save_to=` of a call, has written to a file.

        Args:
            path: of the file.
            *args, **kwargs: arguments of the types that the run began with (`jax.ShapeDtypeStruct`s are enough); needed
                only if they hold objects of your own classes, or static ones that are no numbers and strings.
                `devices=` and `mesh=` as in a call.

        Returns:
            The `Run` as it was when the file was written.

        Raises:
            StateError: the file holds no run, not all of it, or one of another program (a `ValueError`).

        Example:
            >>> f.start(xs).advance(max_trips=1000).save("run.npz")  # doctest: +SKIP
            >>> f.load("run.npz").advance().result()  # doctest: +SKIP
        """
        return monitored.load(self._programs, path, args, kwargs)

    def _decided(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DecidedRun | None:
        """The run of a call that repeats an earlier one, if all about it was decided."""
        repeated = self._programs.repeated_call(args, kwargs, alone=True)
        return None if repeated is None else repeated.run()

    def _run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        decided: DecidedRun | None,
        run_options: RunOptions | None = None,
    ) -> tuple[Program, Arguments, RawResult]:
        """Run a call to its end: as it was `decided`, in one go, or as a monitored run if it has options of such a run,
        among its keyword arguments or besides."""
        if decided is not None and not decided.lacks_room():
            return decided.ended()
        devices = self._programs.pop_devices(kwargs)
        if kwargs and run_options is None:
            run_options = RunOptions.pop_from(kwargs, signature(self.fn).parameters)
        with keeping_work():  # a run whose containers grow is of several programs
            program, call = self._programs.of_call(args, kwargs, alone=devices is None)

            def run(program: Program) -> tuple[Program, RawResult]:
                if run_options is None:
                    return run_growing(program, lambda program: program.execute(call, devices))
                return monitored.run_monitored(self.__name__, program, call, devices, run_options)

            program, raw = self._programs.run(program, call, run)
        return program, call, raw
