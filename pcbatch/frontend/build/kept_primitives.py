"""Functions of primitives that are kept while one function is compiled: the same code gives one and the same object.

Compilation starts again with each new decision, and the front end makes all primitives anew. Most are as before, and
what is known about a primitive by its function, such as its traces, stays known if the function is the same object.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import CodeType, FunctionType

from pcbatch.contexts import setting

_kept: ContextVar[dict[Hashable, FunctionType] | None] = ContextVar("pcbatch_kept_primitives", default=None)


def keeping_primitives() -> AbstractContextManager[None]:
    """Keep the functions of the primitives that are made within the context."""
    return setting(_kept, {})


def kept(fn: FunctionType, constants: Collection[str]) -> FunctionType:
    """Return the kept function that is the same as `fn` in all respects, or keep this one and return it.

    `constants` are the names of its cells that nothing assigns; two of these are the same if they hold one object.
    """
    functions = _kept.get()
    if functions is None:
        return fn
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    closure = tuple(id(cell.cell_contents if name in constants else cell) for name, cell in cells)
    # The function that is kept has the globals and cells, so their identities are not reused.
    return functions.setdefault((_identity(fn.__code__), id(fn.__globals__), fn.__name__, closure), fn)


def _identity(code: CodeType) -> Hashable:
    """A value that is equal for equal code at the same places: in Python 3.11 `==` alone leaves out positions."""
    inner = tuple(_identity(part) for part in code.co_consts if isinstance(part, CodeType))
    return code, code.co_filename, code.co_qualname, code.co_linetable, code.co_exceptiontable, inner
