"""The methods of a batched function that give reports: what it would do, did, records, and how it is fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pcbatch.api.programs import Programs
from pcbatch.api.public import public
from pcbatch.api.tune import TuneOptions, tune_call
from pcbatch.call.arguments import Arguments
from pcbatch.compiler.program import Program
from pcbatch.options import Options, checked_lanes
from pcbatch.plan import Mode
from pcbatch.report.profile import Profile, profile_call
from pcbatch.report.schedule import Explanation, explain_call
from pcbatch.report.tape import TapeUse, tape_use
from pcbatch.report.tuned import Tuned
from pcbatch.runs.run_options import Progress


class Reports:
    """The methods that give a report on a batched function; see `pcbatch.report`."""

    __name__: str
    options: Options
    _programs: Programs

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
        """Measure calls under other plans, and `map` with a few widths, and return the fastest.

        Each candidate changes one field of the plan; it is compiled, run on these arguments, compared with the result
        under the plan that the function has, and measured. Then the fastest is tried together with the fastest of other
        fields, and the best run in turn, the slower half of them left out after each round. One that gains less than 5%
        does not win. Ctrl-C ends it with what is measured so far.

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
            A `Tuned`, which prints as a table; its `plan` is the fastest.

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
            >>> digits.with_options(plan=tuned.plan)(xs).tolist()
            [1, 4, 2, 6]
        """
        options = TuneOptions(seconds, schedules, emitters, modes, unrolls, lanes, alike, progress)
        return tune_call(self._programs, self._with_programs, args, kwargs, options)

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments]:
        return self._programs.of_call(args, kwargs)

    def _with_programs(self, programs: Programs) -> Any:
        """This function under other options, with the same object if it is that of a method."""
        other: Any = object.__new__(type(self))
        vars(other).update(vars(self), options=programs.options, _programs=programs)
        return other
