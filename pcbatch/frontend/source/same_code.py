"""Code of a user's function compiled again: to test that a text is still its source, or to stand in for a part of it.

A file may be edited while the program runs, a name in `linecache` may be given to another text, an import hook may
change the tree before it is compiled. Name, line and parameters can agree all the same. So the text is compiled again,
and the code of the function at that place must do the same: equal instructions, names and constants. Where the
instructions stand in the file is left out, so comments may change.
"""

from __future__ import annotations
import __future__

import ast
import functools
import itertools
import warnings
from collections.abc import Iterator, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

FUTURE_FLAGS = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
OPTIMIZE = (-1, 0, 1, 2)  # the level of this interpreter, then all that a caller of `compile` may choose
PYTEST = "@py_"  # the start of the variables that pytest's rewriting of `assert` adds


def compiled_from(code: CodeType, text: str) -> bool:
    """Whether `text` defines, at the line of `code`, a function of its name with the same code."""
    if any(name.startswith(PYTEST) for part in _nested(code) for name in part.co_varnames):
        return True  # not known: only pytest can make the code that it makes
    flags = code.co_flags & FUTURE_FLAGS
    return any(
        other.co_firstlineno == code.co_firstlineno and _same(code, other)
        for single, optimize in itertools.product((False, True), OPTIMIZE)
        for other in _codes(text, flags, optimize, single)
    )


@functools.lru_cache(maxsize=64)
def _codes(text: str, flags: int, optimize: int, single: bool) -> tuple[CodeType, ...]:
    """All code objects of a text.

    `single`: each statement is compiled by itself, as IPython does. The code of a function depends on that: a call
    `module.f(x)` is compiled differently where `import module` stands in the same unit.
    """
    # Notebooks allow `await` outside functions. Python has shown its warnings when the text was first compiled.
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = compile(text, "<text>", "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True, optimize=optimize)
            units = [ast.Module([statement], []) for statement in tree.body] if single else [tree]
            codes = [compile(unit, "<text>", "exec", flags, dont_inherit=True, optimize=optimize) for unit in units]
        except (SyntaxError, ValueError):
            return ()
    return tuple(part for code in codes for part in _nested(code))


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _nested(const)


def _same(a: CodeType, b: CodeType) -> bool:
    return _facts(a) == _facts(b) and _same_constant(a.co_consts, b.co_consts)


def _facts(code: CodeType) -> tuple[object, ...]:
    return (
        *(code.co_name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        *(code.co_code, code.co_exceptiontable),
        *(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
    )


def _same_constant(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, CodeType):
        return _same(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_constant, a, b))
    if isinstance(a, frozenset):
        return {(type(x), x) for x in a} == {(type(x), x) for x in b}
    return bool(a is b or (a == b and repr(a) == repr(b)))  # 0.0 is not -0.0


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
    tree = ast.parse(f"def {CELLS}():\n pass")
    outer = tree.body[0]
    assert isinstance(outer, ast.FunctionDef)
    ast.copy_location(outer, definition)
    outer.args.args = [ast.arg(key) for key in cells]
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
