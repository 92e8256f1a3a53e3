"""Errors of derivatives: transformations that are refused, and JAX's own errors at the user's line.

    cv(x) under `jax.custom_vjp`, in forward mode  ──>  PCB424 at `cv(x)`

A program is differentiated where a derivative is traced: long after its types are known, and perhaps inside a function
of the user's that JAX traces. JAX keeps the traceback of every operation, which names the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pcbatch.diagnostics.diagnostic import Diagnostic, Label
from pcbatch.errors import CompileError, PcbatchError, UsageError
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.diagnose.traceback_spans import spans, user_frames

_LOOP = "lax.while_loop"  # as JAX names it
_RULE = "give JAX a rule: a function under `jax.custom_jvp` has derivatives in both modes"
_STATEMENT = "write the loop as a `while` or `for` statement of the batched function"


@contextmanager
def blaming(program: StackProgram) -> Iterator[None]:
    """Turn errors of JAX inside the `with` into CompileError at the line that caused them, if there is one."""
    try:
        yield
    except (PcbatchError, FloatingPointError):
        raise
    except Exception as error:
        diagnostic = _diagnostic(program, error)
        if diagnostic is None:
            raise
        raise CompileError(diagnostic) from None


def _diagnostic(program: StackProgram, error: Exception) -> Diagnostic | None:
    if error.__cause__ is None:
        return None
    frames, text = user_frames(error.__cause__), str(error)
    for op in (*program.prologue, *(op for block in program.blocks for op in block.ops)):
        located = spans(frames, op.loc) if isinstance(op, Prim) and op.loc is not None else None
        if located is not None:
            helps = (_STATEMENT, _RULE) if _LOOP in text else (_RULE,)
            note = f"{type(error).__name__}: {text}".strip()
            return Diagnostic("PCB424", "this cannot be differentiated", Label(located[0]), located[1], (note,), helps)
    return None


def not_linear() -> UsageError:
    """The error for the transpose of a run, recorded or not, and of derivatives in what they are not linear in."""
    title = "a batched function is transposed"
    note = "only linear functions can be, and nobody knows whether it is one"
    help = "write `jax.vjp(f, x)[1]`, with any `x`: if `f` is linear, that is its transpose"
    return UsageError(Diagnostic("PCB425", title, notes=(note,), helps=(help,)))
