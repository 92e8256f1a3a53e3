"""The methods of a `Batched` that run it: all lanes, or many inputs through few; at once, or bit by bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pcbatch.api.map import run_map
from pcbatch.call.arguments import signature, types_of_fixed
from pcbatch.call.placement import requested_devices
from pcbatch.call.results import Result
from pcbatch.errors import PcbatchError
from pcbatch.options import Options
from pcbatch.runs import monitored
from pcbatch.runs.progress import Progress
from pcbatch.runs.run_handle import Machine
from pcbatch.runs.run_options import RunOptions
from pcbatch.runtime.sharding.lane_sharding import Devices
from pcbatch.runtime.vm.raw_result import RawResult

if TYPE_CHECKING:
    from pcbatch.call.arguments import Arguments
    from pcbatch.compiler.program import Program
    from pcbatch.lowering.typing.abstract_values import Abstract


class Runs:
    """What `Batched` is besides a function of one example."""

    __name__: str  # the function's
    fn: Any
    options: Options

    def run(self, /, *args: Any, **kwargs: Any) -> Result:
        """As a call, but lanes that fail are reported in `Result.status`; never raises for them. Works in `jit`.

        Args:
            *args, **kwargs: as in a call, and outside of `jit` these (docs/users/runs.md tells more):
            progress: True for a bar of tqdm, or a function that is called with the numbers of lanes that are done, and
                of all.
            timeout: seconds (compiling is not counted) after which lanes that still run are left as they are, with
                `Status.RUNNING`.
            save_to: a path, where the run is kept. If the file is there, the run goes on from it.
            every: seconds between two writes of that file. (60 if left out.)

        Raises:
            Interrupted: Ctrl-C was pressed in a run with one of these; it holds the machine as it is then.
        """
        __tracebackhide__ = True
        try:
            compiled, given, outcome = self._outcome(args, kwargs)
        except PcbatchError as error:
            raise error.with_traceback(None) from None
        return compiled.result(outcome, given.lanes)

    def _outcome(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments, RawResult]:
        """What a call leaves."""
        mesh = self.mesh_of_call(kwargs)
        wishes = RunOptions.pop_from(kwargs, signature(self.fn).parameters) if kwargs else None
        compiled, given = self._compiled(args, kwargs)
        if wishes is None:
            return compiled, given, compiled.execute(given, mesh)
        return compiled, given, monitored.run_monitored(self.__name__, compiled, given, mesh, wishes)

    def start(self, /, *args: Any, **kwargs: Any) -> Machine:
        """A machine with the arguments of a call, before its first trip: a value that can be advanced, looked at, kept
        in a file and gone on with. Not inside `jit`.

        Example:
            >>> m = f.start(xs)
            >>> m = m.advance(max_trips=10_000)
            >>> print(m.done, m.progress())  # doctest: +SKIP
        """
        __tracebackhide__ = True
        try:
            mesh = self.mesh_of_call(kwargs)
            return monitored.start(self.__name__, *self._compiled(args, kwargs), mesh, "start")
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    def load(self, path: Any, /, *args: Any, **kwargs: Any) -> Machine:
        """The machine that `m.save(path)`, or `save_to=` of a call, has written to a file.

        Args:
            path: of the file.
            *args, **kwargs: arguments of the types that the run began with (`jax.ShapeDtypeStruct`s are enough); needed
                only if they hold objects of your own classes, or static ones that are no numbers and strings.
                `devices=` and `mesh=` as in a call.

        Raises:
            StateError: the file holds no run, not all of it, or one of another program (a `ValueError`).
        """
        __tracebackhide__ = True
        return self.load_with((), path, args, kwargs)

    def load_with(self, fixed: tuple[Any, ...], path: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Machine:
        """`load`, with arguments before the others."""
        __tracebackhide__ = True
        try:
            return monitored.load(self, path, fixed, args, kwargs)  # type: ignore[arg-type]
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    def map(
        self,
        /,
        *args: Any,
        lanes: int | None = None,
        chunk: int | None = None,
        progress: Progress | bool | None = None,
        timeout: float | None = None,
        save_to: Any = None,
        every: float | None = None,
        **kwargs: Any,
    ) -> Result:
        """Run many inputs through a fixed number of lanes: a lane that is done takes the next input.

        For inputs whose runs differ in length this is faster than a lane for each: none waits for the longest.

        Args:
            *args, **kwargs: as in a call, the inputs along the mapped axes; `devices=` and `mesh=` as well. Or, alone,
                an iterator of chunks: each is a tuple of arguments as in a call (of one parameter: or that argument).
            lanes: of the machine on each device. None: 512.
            chunk: inputs that are sent to the devices at a time. None: all, unless they are NumPy arrays of more than
                256 MiB in all (then 64 MiB) or come in chunks. Results of chunks are arrays of NumPy.
            progress: called with the number of inputs that are done, and of all (None: not known yet), now and then
                and at the end; True for a bar of tqdm.
            timeout: seconds after which inputs that are not done are left, with `Status.RUNNING`.
            save_to, every: as in `f.run`. A run over an iterator of chunks goes on with one that gives the same
                chunks again: those that are done with are read and dropped.

        Returns:
            A `Result` in the order of the inputs, with a status for each; like `run`, it does not raise for them.
        """
        __tracebackhide__ = True
        wishes = {"progress": progress, "timeout": timeout, "save_to": save_to, "every": every}
        return self.map_with((), args, {**kwargs, "lanes": lanes, "chunk": chunk, **wishes})

    def map_with(self, fixed: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result:
        """`map`, with arguments before the others that are the same for all inputs."""
        __tracebackhide__ = True
        try:
            options = {name: kwargs.pop(name, None) for name in ("lanes", "chunk")}
            wishes = RunOptions.pop_from(kwargs, {}, signature(self.fn).parameters)
            mesh = self.mesh_of_call(kwargs)
            return run_map(self, fixed, args, kwargs, mesh=mesh, wishes=wishes, **options)  # type: ignore[arg-type]
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    def mesh_of_call(self, kwargs: dict[str, Any]) -> Devices:
        """The devices of a call; takes them out of its keyword arguments, unless the function has such parameters."""
        return requested_devices(signature(self.fn).parameters, kwargs, self.options.devices)

    def types_of_fixed(self, fixed: tuple[Any, ...]) -> dict[str, Abstract]:
        """The types of the first parameters, which a method has from its object."""
        return types_of_fixed(self.fn, self.options, fixed)

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments]:
        raise NotImplementedError
