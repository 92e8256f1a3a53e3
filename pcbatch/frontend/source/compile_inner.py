"""Compilation of code that stands in for a user's function, or for a part of one.

The code keeps the file name, the future flags, the globals and the cells of that function, so it means the same, and
tracebacks and warnings point to the user's lines.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping
from types import CellType, CodeType, FunctionType

from pcbatch.frontend.source.same_code import FUTURE_FLAGS

CELLS = "__cells__"


def compile_inner(
    fn: FunctionType, definition: ast.stmt, name: str, values: Mapping[str, object]
) -> FunctionType | None:
    """Compile a function as if it were defined beside `fn`.

    Args:
        fn: The function whose file, flags, globals and cells are used.
        definition: A statement that defines the function `name`, or a class with only that, at lines of that file.
        name: The name of the function in `definition`; the result has the name of `fn`.
        values: Further names that the function reads, with their values.

    Returns:
        The function without defaults; None if it reads another name of the scope around it, such as `__class__`.
    """
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    cells |= {key: CellType(value) for key, value in values.items()}
    # The function around it makes free variables of the names that have cells.
    tree = ast.parse(f"def {CELLS}({', '.join(cells)}):\n pass")
    outer = tree.body[0]
    assert isinstance(outer, ast.FunctionDef)
    ast.copy_location(outer, definition)
    outer.body = [definition]
    own = getattr(definition, "name", None)
    if own is not None and own not in cells:  # in the definition its own name is the global one, as in the user's file
        outer.body.insert(0, ast.copy_location(ast.Global([own]), definition))
    with warnings.catch_warnings():  # Python has shown its warnings when the function was defined
        warnings.simplefilter("ignore")
        flags = fn.__code__.co_flags & FUTURE_FLAGS
        code: CodeType = compile(
            ast.fix_missing_locations(tree), fn.__code__.co_filename, "exec", flags, dont_inherit=True
        )
    path = (CELLS, definition.name, name) if isinstance(definition, ast.ClassDef) else (CELLS, name)
    for inner in path:
        code = next(part for part in code.co_consts if isinstance(part, CodeType) and part.co_name == inner)
    if not cells.keys() >= set(code.co_freevars):
        return None
    code = code.replace(co_name=fn.__code__.co_name, co_qualname=fn.__code__.co_qualname)
    return FunctionType(code, fn.__globals__, fn.__name__, None, tuple(cells[key] for key in code.co_freevars))
