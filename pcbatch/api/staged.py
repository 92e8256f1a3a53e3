"""The methods of a `Batched` that stop before a run: `trace` and `lower`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pcbatch.api.lowered import Lowered
from pcbatch.api.traced import Traced, avals_of
from pcbatch.call.placement import without_explicit_axes
from pcbatch.errors import PcbatchError
from pcbatch.runtime.sharding.lane_sharding import Devices

if TYPE_CHECKING:
    from pcbatch.call.arguments import Arguments
    from pcbatch.compiler.program import Program


class Staged:
    """A batched function ahead of a run, stage by stage."""

    fn: Any

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """The program for these arguments (arrays or `jax.ShapeDtypeStruct`), like `jax.stages.Traced`."""
        __tracebackhide__ = True
        lowered = self.lower(*args, **kwargs)
        return Traced(lowered, lowered.avals)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered:
        """The compiled stages for these arguments (arrays or `jax.ShapeDtypeStruct`), like `jax.stages.Lowered`."""
        __tracebackhide__ = True
        try:
            mesh = self.mesh_of_call(kwargs)
            compiled, given = self._compiled(args, kwargs)
            avals = avals_of(self.fn, compiled, given.lanes, args, kwargs)
            return Lowered(
                self.fn, compiled, given, mesh=without_explicit_axes(compiled.placed(given, mesh)), avals=avals
            )
        except PcbatchError as error:
            raise error.with_traceback(None) from None

    def mesh_of_call(self, kwargs: dict[str, Any]) -> Devices:
        raise NotImplementedError

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program, Arguments]:
        raise NotImplementedError
