"""A function is compiled from its own text or refused: files edited after import, names given to another text."""

from __future__ import annotations

import linecache
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.frontend.compiling import agree
from tests.frontend.sources import COUNT, load, load_again, refusal, spans

EDITS = {
    "another constant": COUNT.replace("2", "3"),
    "another constant of equal value": COUNT.replace("+ 1", "+ 1.0"),
    "another operator": COUNT.replace("-", "+"),
    "another name": COUNT.replace("    return n", "    return m"),
    "another parameter": COUNT.replace("(n)", "(n, m=1)"),
    "another line": "\n" + COUNT,
    "another function": COUNT.replace("def f", "def g"),
    "no function": "f = 3\n",
    "broken": "def f(n:\n",
    "empty": "",
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits_after_import_are_refused(edit: str, tmp_path: Path) -> None:
    module = load(tmp_path, COUNT)
    path = Path(str(module.__file__))
    path.write_text(EDITS[edit])
    os.utime(path, (1, 1))  # the same size and second must not hide the edit
    fault = refusal(module.f)
    assert fault.code == "PCB001"
    assert edit == "empty" or ("has changed since it was loaded" in fault.notes[0] and "reload" in fault.helps[0])
    if edit.startswith("another constant"):
        agree(load_again(path).f, 0, 8)  # the help works


def test_an_edited_lambda_is_refused(tmp_path: Path) -> None:
    module = load(tmp_path, "f = lambda n: n + 1\n")
    path = Path(str(module.__file__))
    path.write_text("f = lambda n: n + 2\n")
    os.utime(path, (1, 1))
    assert refusal(module.f).code == "PCB001"


def test_another_global_is_an_edit(tmp_path: Path) -> None:
    module = load(tmp_path, "def f(n):\n    return abs(n)\n")
    path = Path(str(module.__file__))
    path.write_text("def f(n):\n    return int(n)\n")
    os.utime(path, (1, 1))
    assert refusal(module.f).code == "PCB001"


def test_a_deleted_file(tmp_path: Path) -> None:
    module = load(tmp_path, COUNT)
    Path(str(module.__file__)).unlink()
    assert refusal(module.f).code == "PCB001"


def test_edits_that_change_nothing(tmp_path: Path) -> None:
    module = load(tmp_path, COUNT)
    path = Path(str(module.__file__))
    path.write_text(COUNT.replace("n > 3:", "(n  >  3):  # more").replace("    return", "\n    return") + "\nx = 1\n")
    os.utime(path, (1, 1))
    agree(module.f, 0, 8)
    assert spans(module.f)[-1] == "n + 1"


def test_a_name_that_belongs_to_another_text() -> None:
    linecache.cache["<registered wrongly>"] = (1, None, ["def f(n):\n", "    return n + 2\n"], "<registered wrongly>")
    namespace: dict[str, Any] = {}
    exec(compile("def f(n):\n    return n + 1\n", "<registered wrongly>", "exec"), namespace)
    assert refusal(namespace["f"]).code == "PCB001"


@pytest.mark.parametrize("optimize", [0, 1, 2])
def test_code_compiled_with_other_settings(optimize: int) -> None:
    text = 'def f(n):\n    "A docstring."\n    if __debug__:\n        return n + 1\n    return n\n'
    name = f"<optimised {optimize}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec", optimize=optimize), namespace)
    if optimize == 0:
        agree(namespace["f"], 1)
    namespace = {}
    exec(compile("from __future__ import annotations\n", name, "exec"), namespace)
    exec(compile(text, name, "exec", flags=annotations_flag(), optimize=0), namespace)
    agree(namespace["f"], 1)


def annotations_flag() -> int:
    import __future__

    return __future__.annotations.compiler_flag


def test_a_tool_that_reloads_in_place(tmp_path: Path) -> None:
    module, newer = load(tmp_path, COUNT), load(tmp_path, COUNT.replace("+ 1", "+ 2"))
    batched, examples = pcbatch.batch(module.f), np.array([0, 8], np.int32)
    assert batched(examples).tolist() == [1, 3]
    module.f.__code__ = newer.f.__code__
    assert batched(examples).tolist() == [2, 4]
    module.f.__code__ = module.f.__code__.replace(co_filename="<nowhere>")
    assert batched(examples).tolist() == [2, 4]
