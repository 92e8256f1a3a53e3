"""Run the user's file and find the batched functions in it.

An exception there is the user's: it is shown from the user's first line on, without the frames of this program.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from pcbatch.api.batched import Batched
from pcbatch.cli.parse_arguments import BadUsage

MOST_NESTED = 3  # classes in classes: one may hold itself


class UserFailure(Exception):
    """The user's program failed; the text is what to show."""


def load(path: Path) -> ModuleType:
    """Import a file as Python would: a file of a package by its full name, any other one next to its neighbours."""
    path = path.resolve()
    root, name = _package(path)
    sys.path.insert(0, str(root))
    sys.path.append(str(Path.cwd()))  # `python -m` looks there as well
    quiet, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        return _execute(path, path.stem) if root == path.parent else importlib.import_module(name)
    except SystemExit as error:
        raise UserFailure(f"error: {path} exits while it is imported (status {error.code})") from None
    except Exception as error:
        raise UserFailure(user_traceback(error, str(path))) from None
    finally:
        sys.dont_write_bytecode = quiet


def _package(path: Path) -> tuple[Path, str]:
    """The folder to import from, and the name of the module there."""
    folder, parts = path.parent, [path.stem]
    while (folder / "__init__.py").exists() and folder.name.isidentifier():
        parts.insert(0, folder.name)
        folder = folder.parent
    if parts[-1] == "__init__":
        parts.pop()
    return folder, ".".join(parts)


def _execute(path: Path, name: str) -> ModuleType:
    # A file named like a module that is there already (`math.py`, `jax.py`) must not replace it.
    taken = name in sys.modules or name in sys.stdlib_module_names or not name.isidentifier()
    name = f"_pcbatch_{name}" if taken else name
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def user_traceback(error: BaseException, file: str) -> str:
    """The traceback from the first frame in the user's file on; only the exception when there is no such frame."""
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename != file:
        tb = tb.tb_next
    return "".join(traceback.format_exception(type(error), error.with_traceback(tb), tb)).rstrip()


def passes_through(error: BaseException, file: str) -> bool:
    """Whether the exception was raised below a line of this file."""
    tb: TracebackType | None = error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == file:
            return True
        tb = tb.tb_next
    return False


def find(module: ModuleType, path: Path, name: str | None) -> list[tuple[str, Batched[..., Any]]]:
    """The batched functions to show, with their names: the one asked for, or all that the file defines, in order."""
    everything = dict(_batched(module, ""))
    if name is None:
        own = _defined_here(everything, str(path.resolve()))
        if not own:
            raise BadUsage(f"{path} defines no batched function: decorate one with @pcbatch.batch")
        return own
    if name in everything:
        return [(name, everything[name])]
    if callable(_look_up(module, name)):
        raise BadUsage(f"{name!r} in {path} is not batched: decorate it with @pcbatch.batch")
    known = f"it has {', '.join(everything)}" if everything else "it has none"
    raise BadUsage(f"no batched function {name!r} in {path}: {known}")


def _batched(owner: ModuleType | type, prefix: str) -> Iterator[tuple[str, Batched[..., Any]]]:
    """The batched functions of a module, and the methods of the classes in it."""
    for name, value in vars(owner).items():
        bare = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if isinstance(bare, Batched):
            # The object of a method is the same for all lanes, and unknown here: what can be checked needs no types.
            yield f"{prefix}{name}", bare
        elif isinstance(value, type) and value.__module__ == _module_of(owner) and prefix.count(".") < MOST_NESTED:
            yield from _batched(value, f"{prefix}{name}.")


def _module_of(owner: ModuleType | type) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else owner.__module__


def _look_up(module: ModuleType, name: str) -> object:
    value: object = module
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _defined_here(everything: dict[str, Batched[..., Any]], file: str) -> list[tuple[str, Batched[..., Any]]]:
    """Leave out imported functions, and further names of the same function; in the order of the file."""
    by_fn: dict[object, tuple[str, Batched[..., Any]]] = {}
    for name, batched in everything.items():
        if batched.fn.__code__.co_filename == file:
            by_fn.setdefault(batched.fn, (name, batched))
    return sorted(by_fn.values(), key=lambda item: item[1].fn.__code__.co_firstlineno)
