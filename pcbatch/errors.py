"""The exceptions that pcbatch raises. All of them carry diagnostics and survive pickling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import CodeType

from pcbatch.decisions import NONE, Cure, Decisions
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


CURES: Mapping[str, Cure] = {
    **dict.fromkeys(("PCB304", "PCB305", "PCB306"), Cure.ALONG | Cure.LOOP),
    **dict.fromkeys(("PCB308", "PCB314", "PCB315"), Cure.LOOP),
    "PCB320": Cure.ALONG,
}
"""What may cure a refusal that does not say more, by its code."""


class NoAttribute(AttributeError):
    """The AttributeError of a container that Python raises as well: a `try` of the user's catches it."""


def class_name(error: Exception) -> str:
    """Return the name of the class of an error, as Python has it."""
    return "AttributeError" if isinstance(error, NoAttribute) else type(error).__name__


class Restart(Exception):
    """Ends a compilation that has to start again, with further decisions: see `pcbatch/decisions.py`.

    Attributes:
        wants: the further decisions.
        error: what is reported if they do not help; None: what is found then.
        shared: the changes of objects with several names, of which the error may be a consequence.
    """

    def __init__(self, wants: Decisions, error: CompileError | None = None, shared: CompileError | None = None) -> None:
        super().__init__(wants, error)
        self.wants, self.error, self.shared = wants, error, shared


class Refusal(TypeError):
    """A primitive has no meaning in a lane; raised while it is traced, and shown at its line.

    `str` is the title of the diagnostic; `code`, `notes` and `helps` are the rest of it.

    Attributes:
        cures: other ways to build the operation, in which it may have a meaning.
        functions: those of the user's that compiling along cures it for, where it is known which.
        wants: decisions that cure it.
        why: the reason for which a function is compiled along, in words.
        called: the user's functions that the primitive had called by then.
    """

    def __init__(
        self,
        code: str,
        title: str,
        *notes: str,
        helps: Sequence[str] = (),
        cures: Cure | None = None,
        functions: Iterable[CodeType] = (),
        wants: Decisions = NONE,
        why: str = "",
    ) -> None:
        super().__init__(title)
        self.code = code
        self.notes = notes
        self.helps = tuple(helps)
        self.cures = CURES.get(code, Cure.NONE) if cures is None else cures
        self.functions = tuple(functions)
        self.wants = wants
        self.why = why or title
        self.called: tuple[CodeType, ...] = ()


class TruthOfArray(Refusal):
    """A condition is an array of several elements, of this shape."""

    def __init__(self, shape: tuple[int, ...], *notes: str, help: str) -> None:
        title = f"a condition must be a scalar, not an array of shape {shape}"
        super().__init__("PCB308", title, *notes, helps=(help,))


class OtherCount(Refusal):
    """A call that unpacks `count` arguments by `*values` is built for another number of them."""

    def __init__(self, count: int) -> None:
        help = "write the arguments out, or pass the tuple as one argument"
        super().__init__("PCB205", "a call unpacks tuples of different lengths", helps=(help,))
        self.count = count


class KeyRefusal(Refusal):
    """A value that cannot be a key of a dict or set of the lane; shown at the key."""


class NeedsUnrolling(Refusal):
    """A loop reads an element of a Python object of this length, at an index that is not known while compiling.

    The compiler unrolls the loop; it is an error of the user only where that cannot be.
    """

    HELPS = ("go over all of them, and leave the loop with `break`",)

    def __init__(self, length: int) -> None:
        title = "a loop over a Python object needs a length that is the same for all lanes"
        note = f"it goes over {length} elements, one copy of its body for each"
        super().__init__("PCB315", title, note, helps=self.HELPS)
