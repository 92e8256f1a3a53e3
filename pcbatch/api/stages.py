"""The stages ahead of a run, like those of `jax.stages`: `f.trace(...)`, `f.lower(...)` and `.compile()`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import jax
from jax.sharding import NamedSharding

from pcbatch import frontend
from pcbatch.call.arguments import Arguments, prepare
from pcbatch.call.array_leaves import is_static
from pcbatch.call.out_axes import aval_with_lanes
from pcbatch.call.usage import usage
from pcbatch.compiler.pipeline import Stages, compile_stages, show
from pcbatch.compiler.program import Program
from pcbatch.compiler.typed_program import typed_program
from pcbatch.data.host.host_forms import in_host_form
from pcbatch.diagnostics.short_repr import short
from pcbatch.frontend.source.callee import BatchedTest
from pcbatch.lowering.typing.abstract_values import array_type
from pcbatch.lowering.typing.jax_types import to_aval
from pcbatch.report.lane_failures import raise_failures
from pcbatch.report.schedule import explain_call
from pcbatch.runtime.sharding.lane_sharding import Devices

STAGES = ("ast", "cfg", "stack", "opt", "schedule", "jaxpr", "stablehlo")
NEEDS_TYPES = "lower the function for arguments, or for `jax.ShapeDtypeStruct`s: `f.lower(x)`"


@dataclass(frozen=True, slots=True)
class Avals:
    """Shapes and dtypes of a call. `args_info`: a pair (args, kwargs) in the structure of the call, static arguments
    left out; `out_info`: the result. Leaves are `jax.ShapeDtypeStruct`s."""

    args_info: Any
    out_info: Any


def avals_of(
    program: Program, lanes: int, parameters: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Avals:
    """The types of the arguments of a call, and of its result."""
    static = program.options.static_argnames
    names = list(parameters.parameters)
    positional = tuple(arg for k, arg in enumerate(args) if k >= len(names) or names[k] not in static)
    named = {name: arg for name, arg in kwargs.items() if name not in static}
    assert program.stages.result is not None
    types = [array_type(leaf) for leaf in program.stages.result.leaves]
    outs = [aval_with_lanes(to_aval(t, (lanes,)), axis) for t, axis in zip(types, program.out_axes, strict=True)]
    out = in_host_form(jax.tree.unflatten(program.stages.result.tree, outs))
    return Avals(jax.tree.map(_aval, (positional, named)), out)


def _aval(leaf: Any) -> jax.ShapeDtypeStruct | None:
    if is_static(leaf):
        return None
    leaf = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.eval_shape(lambda x: x, leaf)
    make: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
    aval: jax.ShapeDtypeStruct = make(leaf.shape, leaf.dtype, weak_type=bool(getattr(leaf, "weak_type", False)))
    return aval


@dataclass(frozen=True, slots=True)
class Stage:
    """The types of the arguments and of the result, under the names that `jax.stages` has for them."""

    avals: Avals | None

    @property
    def args_info(self) -> Any:
        """The types of the arguments: (args, kwargs), without static ones."""
        return self._known().args_info

    @property
    def out_info(self) -> Any:
        """The types of the result, in its structure."""
        return self._known().out_info

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return jax.tree.structure(self.args_info)

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return jax.tree.structure(self.out_info)

    @property
    def in_avals(self) -> tuple[Any, ...]:
        """The types of the array leaves of the arguments, in order."""
        return tuple(jax.tree.leaves(self.args_info))

    @property
    def out_avals(self) -> tuple[Any, ...]:
        """The types of the leaves of the result, in order."""
        return tuple(jax.tree.leaves(self.out_info))

    def _known(self) -> Avals:
        if self.avals is None:
            raise usage("PCB410", "the types of a result need those of all arguments", help=NEEDS_TYPES)
        return self.avals


@dataclass(frozen=True, slots=True)
class Traced(Stage):
    """A batched function traced for one signature, like `jax.stages.Traced`."""

    lowered: Lowered

    @property
    def jaxpr(self) -> Any:
        """The program of a run, a `jax.extend.core.ClosedJaxpr`.

        It takes the array leaves of the arguments. Its results begin with the leaves of the result (the lanes along
        their first axis), followed by the status of each lane and counts.
        """
        return self.lowered.jaxpr()

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self.lowered.fn.__name__

    def lower(self) -> Lowered:
        """Return the next stage, a `Lowered`."""
        return self.lowered


@dataclass(frozen=True, slots=True)
class Lowered(Stage):
    """A batched function lowered for one signature, like `jax.stages.Lowered`."""

    fn: FunctionType
    program: Program | None
    call: Arguments | None
    mesh: Devices = None
    untyped_stages: Stages | None = None

    @staticmethod
    def untyped(fn: FunctionType, is_batched: BatchedTest) -> Lowered:
        """Lower as far as types are not needed."""
        return Lowered(None, fn, None, None, untyped_stages=compile_stages(typed_program(fn, is_batched, None)))

    @property
    def stages(self) -> Stages:
        """The programs of all stages."""
        stages = self.program.stages if self.program is not None else self.untyped_stages
        assert stages is not None
        return stages

    def as_text(self, stage: str = "stablehlo") -> str:
        """Print the program at a stage.

        Args:
            stage: "ast" (the source as it is read), "cfg" (functions of blocks), "stack" (one list of blocks, calls
                lowered), "opt" (the same, optimised), "schedule" (the table of `f.explain_schedule`), "jaxpr" or
                "stablehlo" (as handed to XLA).

        Returns:
            The text, of several lines.

        Raises:
            UsageError: an unknown stage, or one that needs the types of all arguments where they are not known.
        """
        return self.show(stage)

    def show(self, stage: str, format: str = "text") -> str:
        """Print a stage in a format: programs also as "json" and "dot", the schedule as "json"."""
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
                explanation = explain_call(self.fn.__name__, *self._typed(stage), None, self.mesh)
                return explanation.to_json() if format == "json" else str(explanation)
            case "jaxpr":
                return str(self.jaxpr())
            case "stablehlo":
                program, call = self._typed(stage)
                with program.mapping_errors(call):
                    return str(self._to_xla(program, call).as_text())
            case _:
                raise usage("PCB410", f"unknown stage {short(stage)}", help=f"choose one of {', '.join(STAGES)}")

    def jaxpr(self) -> Any:
        """Trace a run: a `jax.extend.core.ClosedJaxpr`."""
        program, call = self._typed("jaxpr")
        with program.mapping_errors(call):
            return program.executable.jaxpr(program.args(call), call.lanes, self.mesh)

    def cost_analysis(self) -> Any:
        """Return XLA's cost estimate, as `jax.stages.Lowered` does, before XLA has optimised anything."""
        program, call = self._typed("cost_analysis")
        with program.mapping_errors(call):
            return self._to_xla(program, call).cost_analysis()

    def _typed(self, stage: str) -> tuple[Program, Arguments]:
        if self.program is None or self.call is None:
            raise usage("PCB410", f"stage {short(stage)} needs the types of all arguments", help=NEEDS_TYPES)
        return self.program, self.call

    def compile(self) -> CompiledBatch:
        """Compile with XLA, ahead of a run.

        Returns:
            A `CompiledBatch`, to be called with arguments of exactly these types and this number of lanes. Its stacks
            have the room of `max_depth` (or that of the deepest run so far), and do not grow.

        Raises:
            CompileError: JAX or XLA refuses the program.
            UsageError: the types of the arguments are not known.

        Example:
            >>> compiled = f.lower(xs).compile()  # doctest: +SKIP
            >>> compiled(xs)  # doctest: +SKIP
        """
        if self.program is None or self.call is None:
            raise usage("PCB410", "compiling needs the types of all arguments", help=NEEDS_TYPES)
        depth = self.program.executable.depth
        with self.program.mapping_errors(self.call):
            executable = self._to_xla(self.program, self.call).compile()
        return CompiledBatch(self.avals, self.fn, self.program, self.call, executable, depth, self.mesh)

    def _to_xla(self, program: Program, call: Arguments) -> Any:
        """`jax.stages.Lowered` of a run."""
        return program.executable.lower(program.args(call), call.lanes, self.mesh)


@dataclass(frozen=True, slots=True)
class CompiledBatch(Stage):
    """The XLA executable of one signature, like `jax.stages.Compiled`; its stacks do not grow."""

    fn: FunctionType
    program: Program
    call: Arguments
    executable: Any  # `jax.stages.Compiled`
    depth: int
    mesh: Devices = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run every lane, as `f(...)` does.

        Args:
            *args, **kwargs: of the types and the number of lanes that this was compiled for.

        Raises:
            BatchRuntimeError: a lane failed.
            UsageError: the arguments have other types.
        """
        call = prepare(self.fn, self.program.options, args, kwargs, copied=self.call.copied)
        if call.key != self.call.key or call.lanes != self.call.lanes:
            raise usage(
                "PCB413",
                "the arguments are not those that this was compiled for",
                help="call the function itself: it compiles what it has not compiled yet",
            )
        values = self.program.args(call)
        if isinstance(self.mesh, NamedSharding):
            values = jax.device_put(values, self.executable.input_shardings[0][0])
        read = self.program.executable.outcome
        raw = self.program.attempt(call, lambda: read(self.executable(values), self.depth, call.lanes, self.mesh))
        raise_failures(self.fn.__name__, self.program, raw, call)
        return self.program.value(raw, call)

    def as_text(self) -> str:
        """Print the HLO that XLA has optimised."""
        return str(self.executable.as_text())

    def cost_analysis(self) -> Any:
        """Return XLA's cost estimate, as `jax.stages.Compiled` does."""
        return self.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Return XLA's memory statistics in bytes, as `jax.stages.Compiled` does."""
        return self.executable.memory_analysis()
