"""`f.lower(...)`: every stage of a compiled function as text, and the XLA executable."""

from __future__ import annotations

from dataclasses import dataclass
from types import FunctionType
from typing import Any

import jax
from jax.sharding import NamedSharding

from pcbatch import frontend
from pcbatch.api.traced import Avals, Described
from pcbatch.call.arguments import Arguments, prepare, usage
from pcbatch.compiler.pipeline import Stages, compile_stages, show
from pcbatch.compiler.program import Program
from pcbatch.diagnostics.short_repr import short
from pcbatch.frontend.source.callee import BatchedTest
from pcbatch.report.lane_failures import raise_failures
from pcbatch.report.schedule import explain_call
from pcbatch.runtime.sharding.lane_sharding import Devices

STAGES = ("ast", "cfg", "stack", "opt", "schedule", "jaxpr", "stablehlo")
NEEDS_TYPES = "lower the function for arguments, or for `jax.ShapeDtypeStruct`s: `f.lower(x)`"


@dataclass(frozen=True, slots=True)
class Lowered(Described):
    """A batched function lowered for one signature, like `jax.stages.Lowered`."""

    fn: FunctionType
    compiled: Program | None
    given: Arguments | None
    program: Stages | None = None
    mesh: Devices = None
    avals: Avals | None = None

    @staticmethod
    def untyped(fn: FunctionType, is_batched: BatchedTest) -> Lowered:
        """The stages that need no types."""
        return Lowered(fn, None, None, compile_stages(fn, is_batched, None))

    @property
    def stages(self) -> Stages:
        """The programs of all stages."""
        found = self.compiled.stages if self.compiled is not None else self.program
        assert found is not None
        return found

    def as_text(self, stage: str = "stablehlo") -> str:
        """One of `ast`, `cfg`, `stack`, `opt`, `schedule`, `jaxpr`, `stablehlo` as text."""
        return self.show(stage)

    def show(self, stage: str, format: str = "text") -> str:
        """A stage in a format; programs also as "json" and "dot", the schedule as "json"."""
        match stage:
            case "ast":
                return frontend.ast_text(self.fn)
            case "cfg":
                return show(self.stages.cfg, format)
            case "stack":
                return show(self.stages.stack, format)
            case "opt":
                return show(self.stages.opt, format)
            case "schedule":
                compiled, given = self._typed(stage)
                found = explain_call(self.fn.__name__, compiled, given, None, self.mesh)
                return found.to_json() if format == "json" else str(found)
            case "jaxpr" | "stablehlo":
                return self._xla(stage)
            case _:
                raise usage("PCB410", f"unknown stage {short(stage)}", help=f"choose one of {', '.join(STAGES)}")

    def _xla(self, stage: str) -> str:
        compiled, given = self._typed(stage)
        args = compiled.args(given)
        with compiled.mapping_errors(given):
            if stage == "jaxpr":
                return str(compiled.executable.jaxpr(args, given.lanes, self.mesh))
            return str(compiled.executable.lower(args, given.lanes, self.mesh).as_text())

    def jaxpr(self) -> Any:
        """The program of a run, a `jax.extend.core.ClosedJaxpr`."""
        compiled, given = self._typed("jaxpr")
        with compiled.mapping_errors(given):
            return compiled.executable.jaxpr(compiled.args(given), given.lanes, self.mesh)

    def cost_analysis(self) -> Any:
        """XLA's cost estimate, before it has optimised anything."""
        compiled, given = self._typed("cost_analysis")
        with compiled.mapping_errors(given):
            return compiled.executable.lower(compiled.args(given), given.lanes, self.mesh).cost_analysis()

    def _typed(self, stage: str) -> tuple[Program, Arguments]:
        if self.compiled is None or self.given is None:
            raise usage("PCB410", f"stage {short(stage)} needs the types of all arguments", help=NEEDS_TYPES)
        return self.compiled, self.given

    def compile(self) -> CompiledBatch:
        """Compile with XLA."""
        if self.compiled is None or self.given is None:
            raise usage("PCB410", "compiling needs the types of all arguments", help=NEEDS_TYPES)
        args = self.compiled.args(self.given)
        depth = self.compiled.executable.depth
        with self.compiled.mapping_errors(self.given):
            executable = self.compiled.executable.lower(args, self.given.lanes, self.mesh).compile()
        return CompiledBatch(self.fn, self.compiled, self.given, executable, depth, self.mesh, self.avals)


@dataclass(frozen=True, slots=True)
class CompiledBatch(Described):
    """The XLA executable of one signature, like `jax.stages.Compiled`; its stacks do not grow."""

    fn: FunctionType
    compiled: Program
    given: Arguments
    executable: Any
    depth: int
    mesh: Devices = None
    avals: Avals | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arguments of the types that it was compiled for; as `f(...)`, failed lanes included."""
        given = prepare(self.fn, self.compiled.options, args, kwargs)
        if given.key != self.given.key or given.lanes != self.given.lanes:
            raise usage(
                "PCB413",
                "the arguments are not those that this was compiled for",
                help="call the function itself: it compiles what it has not compiled yet",
            )
        values = self.compiled.args(given)
        if isinstance(self.mesh, NamedSharding):
            values = jax.device_put(values, self.executable.input_shardings[0][0])
        read = self.compiled.executable.outcome
        outcome = self.compiled.attempt(
            given, lambda: read(self.executable(values), self.depth, given.lanes, self.mesh)
        )
        raise_failures(self.fn.__name__, self.compiled, outcome, given)
        return self.compiled.value(outcome)

    def as_text(self) -> str:
        """The optimised HLO."""
        return str(self.executable.as_text())

    def cost_analysis(self) -> Any:
        """XLA's cost estimate."""
        return self.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """XLA's memory statistics."""
        return self.executable.memory_analysis()
