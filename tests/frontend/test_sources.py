"""Where functions come from: files of every form, notebook cells, decorators, zip files, doctests, other processes."""

from __future__ import annotations

import doctest
import functools
import importlib.util
import linecache
import os
import subprocess
import sys
import zipfile
import zipimport
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.frontend.compiling import agree, compiled, lane, run
from tests.frontend.sources import COUNT, load, made, refusal, spans

N = np.array([-1, 0, 2], np.int32)
ROOT = Path(__file__).parents[2]
FORMS = {
    "plain": COUNT.encode(),
    "no newline at the end": COUNT.rstrip().encode(),
    "crlf": COUNT.replace("\n", "\r\n").encode(),
    "cr": COUNT.replace("\n", "\r").encode(),
    "mixed line ends": COUNT.replace("\n", "\r\n", 2).encode(),
    "tabs": COUNT.replace("    ", "\t").encode(),
    "form feed line": b"import sys\n\f\n" + COUNT.encode(),
    "form feed in the body": COUNT.replace("    return", "\f    return").encode(),
    "byte order mark": b"\xef\xbb\xbf" + COUNT.encode(),
    "byte order mark and crlf": b"\xef\xbb\xbf" + COUNT.replace("\n", "\r\n").encode(),
    "latin-1": b"# -*- coding: latin-1 -*-\nname = '\xe4\xf6'\n" + COUNT.encode(),
    "utf-8 cookie": b"#!/usr/bin/env python\n# vim: set fileencoding=utf-8 :\n" + COUNT.encode(),
    "odd line separators in a string": 'text = "a\\u2028b\u2028c\x1c"\n'.encode() + COUNT.encode(),
    "continuation lines": COUNT.replace("n - 2", "n \\\n  - 2").replace("n > 3", "(n\n > 3)").encode(),
    "after a multi-line string": b'"""One\n  def f(n):\ntwo"""\n' + COUNT.encode(),
    "on one line": b"def f(n): return n + 1\n",
    "space in the header": COUNT.replace("def f(n)", "def   f ( n )").encode(),
    "header over lines": COUNT.replace("def f(n)", "def \\\n f(\n n\n )").encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_files(form: str, tmp_path: Path) -> None:
    f = load(tmp_path, FORMS[form]).f
    agree(f, 0, 3, 8)
    assert spans(f)[-1] == "n + 1"


def test_latin_1_text_before_a_span(tmp_path: Path) -> None:
    text = "# coding: latin-1\ndef f(n):\n    é = 'äöü'; return (é, n)\n"
    f = load(tmp_path, text.encode("latin-1")).f
    agree(f, 1)
    assert spans(f) == ["'äöü'", "(é, n)"]


NORMALISED = """
def ﬁrst(ﬁ, ℌ=2):
    µ = ﬁ + H
    for ｉ in range(fi):
        µ = μ + i
    return µ


def second(x):
    return ﬁrst(x, ℌ=x)
"""


def test_identifiers_are_normalised_as_python_does(tmp_path: Path) -> None:
    module = load(tmp_path, NORMALISED)
    agree(module.first, (0, 2), (1, 2), (5, 3))
    assert compiled(module.first).entry == "first"
    module.first = lane(module.first)
    program = compiled(module.second)
    assert len(program.functions) == 2 and run(module.second, 3) == 9
    header = compiled(load(tmp_path, "def ﬁrst(ﬁ):\n    return ﬁ\n").first).functions[0].loc
    assert linecache.getline(header.file, 1)[header.col : header.end_col] == "def ﬁrst"
    header = refusal(load(tmp_path, "async  def   g(n):\n    pass\n").g).primary.loc
    assert linecache.getline(header.file, 1)[header.col : header.end_col] == "async  def   g"


def test_whole_programs_with_other_alphabets(tmp_path: Path) -> None:
    text = "def степень(число, λ=2):\n    итог = 1\n    while число > 0:\n"
    text += "        итог, число = итог * λ, число - 1\n    return {'итог': итог}\n"
    f = load(tmp_path, text).степень
    assert pcbatch.batch(f)(N)["итог"].tolist() == [1, 1, 4]
    assert "итог" in pcbatch.batch(f).lower(N).as_text("opt")


@pytest.mark.parametrize("before", ["'ä'", "'日本'", "'e\u0301'", "'\t'", "'🙂'"])
def test_carets_stand_below_what_they_mark(before: str, tmp_path: Path) -> None:
    fault = refusal(load(tmp_path, f"def f(n):\n    a = {before}; import n\n    return n\n").f)
    line = linecache.getline(fault.primary.loc.file, 2).rstrip()
    assert line[fault.primary.loc.col : fault.primary.loc.end_col] == "import n"
    shown = pcbatch.diagnostics.diagnostic.render(fault).split("\n")
    carets = next(text for text in shown if "^" in text)
    width = {"'ä'": 3, "'日本'": 6, "'e\u0301'": 3, "'\t'": 3, "'🙂'": 4}[before]
    assert carets.index("^") == len("2 |     a = ") + width + len("; ") and "^^^^^ " in carets


@pytest.mark.parametrize("name", ["<ipython-input-3-abc>", "/tmp/ipykernel_1/123.py", "<cell 3>", "<timed exec>"])
def test_names_of_notebook_cells(name: str) -> None:
    cells: dict[str, Any] = {}
    first = made("import pcbatch\n\n@pcbatch.batch\ndef f(n):\n    return n + 1 if n > 0 else n\n", name, cells)["f"]
    made("@pcbatch.batch\ndef g(n):\n    return f(n) * 2\n", name.replace("3", "4") + "'", cells)
    assert first(N).tolist() == [-1, 0, 3]
    assert cells["g"](N).tolist() == [-2, 0, 6]


def test_a_cell_that_runs_twice() -> None:
    name = "<cell that is edited>"
    old = made("def f(n):\n    return n + 1\n", name)["f"]
    new = made("def f(n):\n    return n + 2\n", name)["f"]
    agree(new, 1)
    assert refusal(old).code == "PCB001"


def twice(fn: Any) -> Any:
    @functools.wraps(fn)
    def twice_(n, k=1):
        return fn(fn(n)) * k

    return twice_


def passed(*args: Any, **kwargs: Any) -> Any:
    """A decorator with arguments that gives the function back."""
    return lambda fn: fn


def test_decorators_below() -> None:
    @pcbatch.batch
    @passed(
        1,
        k=")",
    )
    @passed()
    def f(n):
        if n > 0:
            return n + 1
        return n

    @pcbatch.batch
    @twice
    def g(n, k=5):
        return n + 1

    assert f(N).tolist() == [-1, 0, 3]
    # What is compiled is the wrapper, with the wrapper's own parameters and defaults.
    assert g(N).tolist() == [g.plain(int(n)) for n in N] == [1, 2, 4]
    assert g(N, N).tolist() == [-1, 0, 8]


def test_a_wrapper_with_star_arguments_is_compiled_itself() -> None:
    def logged(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(*args, **kwargs)

        return wrapper

    @pcbatch.batch
    @logged
    def f(n):
        return n + 1

    assert np.asarray(f(N)).tolist() == [n + 1 for n in N.tolist()]
    with pytest.raises(pcbatch.UsageError, match="PCB409"):
        pcbatch.batch(functools.cache(f.fn))


def test_decorators_above() -> None:
    class Space:
        @staticmethod
        @pcbatch.batch
        def up(n):
            if n > 0:
                return Space.up(n - 1) + 2
            return 0

        @pcbatch.batch(
            max_depth=9,
        )
        def __down(n):
            return n - 1

        down = __down

    @passed("of a stack")
    @passed(
        "over several"
        "lines"
    )  # fmt: skip
    @(
        pcbatch
        .batch
    )  # fmt: skip
    @passed()
    def f(n):
        return Space.up(n) + 1

    assert Space.up(N).tolist() == [0, 0, 4]
    assert Space.down(N).tolist() == [-2, -1, 1]
    assert f(N).tolist() == [1, 1, 5]


@pytest.mark.parametrize("which", [True, False])
def test_conditional_definitions(which: bool) -> None:
    if which:

        def f(n):
            return n + 1
    else:

        def f(n):
            return n + 2

    agree(f, 1)


def test_definitions_of_one_name() -> None:
    def f(n):
        return n + 1

    first = f

    def f(n):
        return n + 2

    for fn in (first, f, *[make() for make in (_nested, _nested_again)]):
        agree(fn, 1, 4)


def _nested():
    class Outer:
        class Inner:
            def f(n):
                return n + 3

    return Outer.Inner.f


def _nested_again():
    def deep():
        def f(n):
            return n + 4

        return f

    return deep()


def test_a_helper_with_an_assert_in_a_rewritten_module() -> None:
    def f(n):
        def positive(m):
            assert m is not None
            return m + 1

        return positive(n)

    agree(f, 1)


def test_text_that_python_warns_of(tmp_path: Path) -> None:
    text = 'def f(n):\n    a = "\\d"\n    return (a, n) if n is not 1000 else (a, 1)\n'
    with pytest.warns():
        f = load(tmp_path, text).f
    agree(f, 1)


def test_zip_files(tmp_path: Path) -> None:
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("zipped.py", "# the first line\n" + COUNT)
    f = _unzipped(archive)
    linecache.clearcache()
    agree(f, 0, 8)
    assert spans(f)[-1] == "n + 1"


def _unzipped(archive: Path) -> Any:
    importer = zipimport.zipimporter(str(archive))
    spec = importer.find_spec("zipped")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def documented() -> None:
    """A function in a doctest.

    >>> import pcbatch, numpy
    >>> @pcbatch.batch
    ... def f(n):
    ...     if n > 0:
    ...         return f(n - 1) + 2
    ...     return 0
    >>> f(numpy.array([0, 2])).tolist()
    [0, 4]
    """


def test_doctests() -> None:
    (example,) = doctest.DocTestFinder().find(documented, globs={})
    assert doctest.DocTestRunner().run(example).failed == 0


PROGRAM = """
import warnings, jax, numpy, pcbatch
@pcbatch.batch
def f(n):
    if n > 0:
        return f(n - 1) + 2
    return 0
try:
    print(f(numpy.array([0, 2])).tolist())
except pcbatch.CompileError as error:
    print(error.diagnostics[0].code)
"""


def python(*args: str, stdin: str = "") -> str:
    """The standard output of another interpreter."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, *args], input=stdin, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_program_on_the_command_line_or_the_standard_input() -> None:
    # Some versions of Python keep such text, others do not; it is compiled or refused, never wrong.
    for output in (python("-c", PROGRAM), python("-", stdin=PROGRAM)):
        assert output.strip() in ("[0, 4]", "PCB001")


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def cell(text):
    shell.run_cell(text, store_history=True).raise_error()
cell("import numpy, pcbatch")
cell('''@pcbatch.batch
def f(n):
    if n > 0:
        return f(n - 1) + 2
    return 0
''')
cell("print(f(numpy.array([0, 2])).tolist())")
cell("from __future__ import annotations")
cell("import asyncio; await asyncio.sleep(0)\\ng = pcbatch.batch(lambda n: f(n) if n > 0 else n)")
cell("%time print(g(numpy.array([-1, 2])).tolist())")
cell('''@pcbatch.batch
def f(n):
    return n + 1 if n > 0 else 10
''')
cell("print(f(numpy.array([0, 2])).tolist(), g.with_options()(numpy.array([-1, 2])).tolist())")
cell('''import jax.numpy as jnp  # Python compiles `jnp.abs(n)` in another way where it sees this
@pcbatch.batch
def h(n):
    return h(n - 1) + 2 if jnp.abs(n) > 0 else 0
print(h(numpy.array([0, 2])).tolist())
''')
"""


def test_a_session_of_ipython(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("IPython")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    lines = python("-c", NOTEBOOK).splitlines()
    shown = [line for line in lines if not line.startswith(("CPU times", "Wall time"))]
    assert shown[:4] == ["[0, 4]", "[-1, 4]", "[10, 3] [-1, 3]", "[0, 4]"]
