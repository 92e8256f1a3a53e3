"""What JAX says while it differentiates the steps of a program, as findings at the user's line.

    cv(x) under `jax.custom_vjp`, in forward mode  ──>  PCB424 at `cv(x)`

A program is differentiated where a derivative is traced, long after its types are known, and maybe in a program of the
user's. JAX keeps the traceback of every operation, which names the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pcbatch.diagnostics.diagnostic import Diagnostic, Label
from pcbatch.errors import CompileError, PcbatchError
from pcbatch.ir.ops import Prim
from pcbatch.ir.stack import StackProgram
from pcbatch.lowering.diagnose.traceback_spans import spans, user_frames

_LOOP = "lax.while_loop"  # as JAX names it
_RULE = "give JAX a rule: a function under `jax.custom_jvp` has derivatives in both modes"
_STATEMENT = "write the loop as a `while` or `for` statement of the batched function"


@contextmanager
def blaming(program: StackProgram) -> Iterator[None]:
    """Turn what JAX raises here into an error at the line to blame, if there is one."""
    try:
        yield
    except (PcbatchError, FloatingPointError):
        raise
    except Exception as error:
        found = _finding(program, error)
        if found is None:
            raise
        raise CompileError(found) from None


def _finding(program: StackProgram, error: Exception) -> Diagnostic | None:
    if error.__cause__ is None:
        return None
    frames, text = user_frames(error.__cause__), str(error)
    for op in (*program.prologue, *(op for block in program.blocks for op in block.ops)):
        found = spans(frames, op.loc) if isinstance(op, Prim) and op.loc is not None else None
        if found is not None:
            helps = (_STATEMENT, _RULE) if _LOOP in text else (_RULE,)
            note = f"{type(error).__name__}: {text}".strip()
            return Diagnostic("PCB424", "this cannot be differentiated", Label(found[0]), found[1], (note,), helps)
    return None
