"""The methods of a `Batched` that tell how it would run, and how it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pcbatch.errors import PcbatchError
from pcbatch.options import checked_lanes
from pcbatch.report.profile import Profile, profile_call
from pcbatch.report.schedule import Explanation, explain_call
from pcbatch.report.tape import TapeUse, tape_use
from pcbatch.runtime.sharding.lane_sharding import Devices

if TYPE_CHECKING:
    from pcbatch.call.arguments import Arguments
    from pcbatch.compiler.program import Program


class Inspected:
    """What `Batched` is besides a function."""

    __name__: str  # the function's

    def explain_schedule(self, /, *args: Any, lanes: int | None = None, **kwargs: Any) -> Explanation:
        """How a call would run, and why: what is decided for each block, and what it is expected to cost.

        Args:
            *args, **kwargs: as in a call; `jax.ShapeDtypeStruct`s are enough. Nothing is run.
            lanes: explain a machine of so many lanes, as `f.map(..., lanes=...)` makes it. None: what a call makes.

        Example:
            >>> print(f.explain_schedule(xs))  # doctest: +SKIP
        """
        __tracebackhide__ = True
        try:
            mesh = self.mesh_of_call(kwargs)
            compiled, given = self._compiled(args, kwargs)
            return explain_call(self.__name__, compiled, given, checked_lanes(lanes), mesh)
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    def profile(self, /, *args: Any, lanes: int | None = None, **kwargs: Any) -> Profile:
        """Run with statistics, also over time: which blocks ran, for how many lanes, and how many those had room for.

        The program is compiled once more for it; other calls pay nothing. Lanes that fail raise nothing, as in `run`:
        see `Profile.result`.

        Args:
            *args, **kwargs: as in a call.
            lanes: run the inputs through so many lanes, as `map` does. None: as a call does.

        Example:
            >>> profile = f.profile(xs)  # doctest: +SKIP
            >>> print(profile)  # doctest: +SKIP
            >>> profile.html("profile.html")  # doctest: +SKIP
        """
        __tracebackhide__ = True
        try:
            mesh = self.mesh_of_call(kwargs)
            compiled, given = self._compiled(args, kwargs)
            return profile_call(self.__name__, compiled, given, checked_lanes(lanes), mesh)
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    def tape(self, /, *args: Any, **kwargs: Any) -> TapeUse:
        """What a gradient of this call would record: how often each block is visited, and how large the records are.

        Runs the lanes once. `f.tape(...).max_tape` is the least `max_tape` with which the gradient fits inside `jit`.

        Example:
            >>> f = f.with_options(max_tape=f.tape(xs).max_tape)  # doctest: +SKIP
        """
        __tracebackhide__ = True
        try:
            self.mesh_of_call(kwargs)
            return tape_use(*self.with_options(max_tape=None)._compiled(args, kwargs))
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    def with_options(self, **changes: Any) -> Any:
        """With some options changed."""
        raise NotImplementedError

    def mesh_of_call(self, kwargs: dict[str, Any]) -> Devices:
        """The devices of a call."""
        raise NotImplementedError

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments]:
        raise NotImplementedError
