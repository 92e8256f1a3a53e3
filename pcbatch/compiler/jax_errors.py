"""Errors that JAX raises only when the batched program is traced, lowered, compiled or run, as diagnostics at a line.

Types are inferred for one lane, so an operation without a batching rule, or one that the back end cannot compile,
fails later, far from the user's line. JAX keeps the traceback of every operation; where it does not say which one
XLA refused, each primitive is compiled by itself, and where a NaN came from, lanes are run again step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from pcbatch.diagnostics.diagnostic import Diagnostic, Label
from pcbatch.errors import CompileError, NonFiniteError, PcbatchError
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.diagnose.find_non_finite import find
from pcbatch.lowering.diagnose.traceback_spans import spans, user_frames
from pcbatch.lowering.typing.jax_types import to_aval
from pcbatch.lowering.typing.trace import JaxprFn
from pcbatch.runtime.vm.raw_result import RawResult, debug_checks, no_donation, non_finite_lanes

RERUN_LANES = 64  # lanes that are run again, one by one, in search of a NaN


@dataclass(frozen=True, slots=True)
class ErrorMapper:
    """A run of a program that may fail, and what it takes to find the line.

    Attributes:
        program: the typed program, with branches as the user wrote them.
        go: runs it.
        compile: lowers and compiles it without running it.
        args: the arguments by parameter, in order.
        lanes: the number of lanes.
        describe: tells the number and the inputs of a lane.
    """

    program: CfgProgram
    go: Callable[[], RawResult]
    compile: Callable[[], object]
    args: Mapping[str, Any]
    lanes: int
    describe: Callable[[int], str]

    def run(self) -> RawResult:
        """Run it; an error of JAX becomes one at the user's line if there is one to blame, else it passes."""
        try:  # as `mapping_errors` does, without its generator: each call comes by here
            return self.go()
        except PcbatchError:
            raise
        except FloatingPointError as error:
            return self._without_debugging(error)
        except Exception as error:
            self._raise_located(error)
            raise

    @contextmanager
    def mapping_errors(self) -> Iterator[None]:
        """Turn errors of JAX in tracing, lowering and compiling into errors at the line to blame."""
        try:
            yield
        except (PcbatchError, FloatingPointError):
            raise
        except Exception as error:
            self._raise_located(error)
            raise

    def _raise_located(self, error: Exception) -> None:
        """Raise the error at the user's line that `error` is about, if there is one to blame."""
        diagnostic = self.diagnose(error)
        if diagnostic is not None:
            raise CompileError(diagnostic) from None

    def diagnose(self, error: Exception) -> Diagnostic | None:
        """Return a diagnostic at the primitive that `error` is about; None if there is none."""
        located = None if error.__cause__ is None else _located(self.program, error, error.__cause__)
        if located is not None:
            return located
        # JAX has not said of which operation, or of one inside a function of its own.
        raised_by_jax = isinstance(error, jax.errors.JaxRuntimeError) or error.__cause__ is not None
        if raised_by_jax and _failure(self.compile) is not None:
            return _refused(self.program)  # else the run has failed: memory, or a callback of the user
        return None

    def is_refused(self) -> bool:
        """Whether XLA refuses to compile the program, for another reason than memory."""
        error = _failure(self.compile)
        return error is not None and "RESOURCE_EXHAUSTED" not in str(error)

    def _without_debugging(self, error: FloatingPointError) -> RawResult:
        """Run again without JAX's checks: lanes that failed give NaN on purpose; anything else has a line to blame."""
        kinds = debug_checks()
        with jax.debug_nans(False), jax.debug_infs(False):
            with no_donation():
                outcome = self.go()
            if any(isinstance(x, jax.core.Tracer) for x in (outcome.status, *outcome.values)):
                raise error
            lanes = non_finite_lanes(outcome)
            found = next(filter(None, (self._first_non_finite(lane, kinds) for lane in lanes[:RERUN_LANES])), None)
        if found is not None:
            raise NonFiniteError(found) from None
        if lanes:
            raise error
        return outcome

    def _first_non_finite(self, lane: int, kinds: tuple[str, ...]) -> Diagnostic | None:
        function = self.program.function(self.program.entry)
        args = [_of_lane(value, function.types[v], lane) for v, value in self.args.items()]
        found = find(self.program, args, kinds)
        if found is None:
            return None
        title = f"a lane computes {found.kind} here"
        label = f"the first to give it is `{found.operation}`" if found.operation else ""
        notes = (f"lane {self.describe(lane)}", f"checked because `jax_debug_{found.kind}s` is on")
        helps = ("test the operands with `if` before this line, or replace them with `jnp.where`",)
        return Diagnostic("PCB910", title, Label(found.place, label), found.helpers, notes, helps)


def _located(program: CfgProgram, error: Exception, origin: BaseException) -> Diagnostic | None:
    """The primitive whose operation JAX was working on, by the traceback that it keeps of that operation."""
    for _, op in _prims(program):
        found = None if op.loc is None else spans(user_frames(origin), op.loc)
        if found is not None:
            return _diagnostic(Label(found[0]), found[1], error)
    return None


def _refused(program: CfgProgram) -> Diagnostic | None:
    """The first primitive that XLA cannot compile by itself."""
    for types, op in _prims(program):
        ins = [t for v in op.expr.ins if (t := types[v]) is not None]
        fn: Any = op.expr.fn
        if op.loc is None or not isinstance(fn, JaxprFn):
            continue
        lanes = jax.jit(jax.vmap(fn) if ins else fn)
        error = _failure(lambda lanes=lanes, ins=ins: lanes.lower(*[to_aval(t, (2,)) for t in ins]).compile())  # type: ignore[misc]
        if error is not None:
            return _diagnostic(Label(op.loc), (), error)
    return None


def _prims(program: CfgProgram) -> Iterator[tuple[Mapping[str, ArrayType | None], Prim]]:
    for function in program.functions:
        for block in function.blocks:
            yield from ((function.types, op) for op in block.ops if isinstance(op, Prim))


def _failure(attempt: Callable[[], object]) -> Exception | None:
    try:
        attempt()
    except Exception as error:
        return error
    return None


def _diagnostic(place: Label, helpers: tuple[Label, ...], error: Exception) -> Diagnostic:
    return Diagnostic(
        "PCB313",
        "this cannot be compiled for a batch of lanes",
        place,
        helpers,
        (
            f"{type(error).__name__}: {error}".strip(),
            "it traces for one lane; this comes up when lanes are batched and compiled",
        ),
        ("write it with operations that work under `jax.jit(jax.vmap(...))` on this back end",),
    )


def _of_lane(value: Any, type_: ArrayType | None, lane: int) -> Any:
    assert type_ is not None
    return value[lane] if np.ndim(value) > len(type_.shape) else value
