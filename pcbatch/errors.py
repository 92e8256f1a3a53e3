"""The exceptions that pcbatch raises. All of them carry diagnostics and survive pickling."""

from __future__ import annotations

from collections.abc import Sequence

from pcbatch.diagnostics import Diagnostic, render_all


class PcbatchError(Exception):
    """Base of everything raised on purpose. `diagnostics` holds the findings; `str` renders them."""

    def __init__(self, diagnostics: Sequence[Diagnostic] | Diagnostic) -> None:
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n" + render_all(self.diagnostics)


class CompileError(PcbatchError):
    """The user's function cannot be compiled (codes PCB0xx to PCB3xx)."""


class UsageError(PcbatchError, TypeError):
    """A batched function was called or configured wrongly (codes PCB4xx)."""


class BatchRuntimeError(PcbatchError, RuntimeError):
    """Some lanes failed while running (codes PCB9xx). The other lanes are not affected."""


class InternalError(Exception):
    """A pass broke a rule of the IR: a bug in pcbatch, never the user's fault."""


class NeedsUnrolling(Exception):
    """Not an error: a loop asks a Python object for an element whose number is not known while compiling."""

    def __init__(self, length: int) -> None:
        super().__init__(f"the {length} elements are told apart while compiling")
        self.length = length
