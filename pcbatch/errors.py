"""The exceptions that pcbatch raises. All of them carry diagnostics and survive pickling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import CodeType

from pcbatch.diagnostics.diagnostic import Diagnostic, render_all


class PcbatchError(Exception):
    """The base of all errors that are raised on purpose; `diagnostics` has the findings, `str` renders them."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | Diagnostic) -> None:
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n" + render_all(self.diagnostics)


class CompileError(PcbatchError):
    """A function cannot be compiled (codes PCB0xx to PCB3xx)."""


class UsageError(PcbatchError, TypeError):
    """A batched function was called or configured wrongly (codes PCB4xx)."""


class BatchRuntimeError(PcbatchError, RuntimeError):
    """Some lanes failed while running (codes PCB9xx). The other lanes are not affected."""


class TooLargeError(PcbatchError, MemoryError):
    """A run needs more memory than it may take; nothing was run (code PCB444)."""


class StateError(PcbatchError, ValueError):
    """A file has no checkpoint that this program can resume (codes PCB442 and PCB443)."""


class NonFiniteError(BatchRuntimeError, FloatingPointError):
    """A lane computed a NaN or an infinity while `jax.debug_nans` or `jax.debug_infs` was on."""


class InternalError(Exception):
    """A pass broke a rule of the IR: a bug in pcbatch, never the user's fault."""


class NeedsUnrolling(Exception):
    """A loop reads an element of a Python object, at an index that is not known while compiling.

    No error of the user: the compiler catches it and unrolls the loop. `length` is the number of elements.
    """

    def __init__(self, length: int) -> None:
        super().__init__(f"the {length} elements are told apart while compiling")
        self.length = length


class Refusal(TypeError):
    """A primitive has no meaning in a lane; raised while it is traced, and shown at its line.

    `str` is the title of the diagnostic; `code`, `notes` and `helps` are the rest of it.
    """

    def __init__(self, code: str, title: str, *notes: str, helps: Sequence[str] = ()) -> None:
        super().__init__(title)
        self.code = code
        self.notes = notes
        self.helps = tuple(helps)
        self.called: tuple[CodeType, ...] = ()  # the user's functions that the primitive had called by then


class StoresWhenRead(Refusal):
    """Reading an element of a `defaultdict` stores what it lacks, and here that would be lost."""


class MustCompileAlong(Refusal):
    """A primitive has no meaning in a lane, but its calls of some functions of the user have one, as functions of the
    program: `functions` are these."""

    def __init__(self, code: str, title: str, *, functions: Iterable[CodeType], helps: Sequence[str] = ()) -> None:
        super().__init__(code, title, helps=helps)
        self.functions = tuple(functions)
