"""Making functions whose text lies in files and elsewhere."""

from __future__ import annotations

import importlib.util
import itertools
import linecache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import CompileError
from tests.frontend.compiling import compiled

numbers = itertools.count()


def load(folder: Path, text: str | bytes) -> ModuleType:
    """Import a file with this text."""
    path = folder / f"sources_{next(numbers)}.py"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load_again(path)


def load_again(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(text: str, file: str, namespace: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run text under a name, as notebooks do."""
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = {} if namespace is None else namespace
    exec(compile(text, file, "exec"), namespace)
    return namespace


def refusal(fn: Any) -> Diagnostic:
    with pytest.raises(CompileError) as info:
        compiled(fn)
    assert str(info.value)
    return info.value.diagnostics[0]


def spans(fn: Any) -> list[str]:
    """The source text of every located operation, sliced by its columns."""
    locs = [op.loc for block in compiled(fn).functions[0].blocks for op in block.ops]
    return [linecache.getline(loc.file, loc.line)[loc.col : loc.end_col] for loc in locs]


COUNT = "def f(n):\n    while n > 3:\n        n = n - 2\n    return n + 1\n"
