"""The command line: what goes where, and with which exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pcbatch
import pcbatch.compiler.pipeline
from pcbatch.cli.main import main
from pcbatch.cli.parse_arguments import BadUsage, annotated_types, parse_arg, parse_arg_type, split_target
from pcbatch.diagnostics.error_pages import pages
from pcbatch.ir.types import ArrayType

FIB = """\
import pcbatch

print("hello from the file")

@pcbatch.batch
def fib(n):
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)

alias = fib

@pcbatch.batch
def count(n):
    k = 0
    while n > 0:
        n = n // 2
        k = k + 1
    return k

def plain(n):
    return n
"""

LOUD = """\
import pcbatch

@pcbatch.batch
def loud(n):
    print(f"n = {n:03d}")
    assert n > 0, f"{n} is \\\\ too small"
    return n
"""

METHODS = """\
import pcbatch

class Outer:
    @pcbatch.batch
    def climb(self, x):
        return x if x > 2 else self.climb(x + 1)

    @pcbatch.batch
    @classmethod
    def wrong(cls, x):
        return y

    @staticmethod
    @pcbatch.batch
    def double(x: "i32[]"):
        return x + x if x > 0 else x

    class Inner:
        @pcbatch.batch
        def wrong(self, x):
            return z
"""

Write = Callable[..., str]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a file of the user; modules that it brings in are forgotten after the test."""
    monkeypatch.chdir(tmp_path)
    before, path = set(sys.modules), list(sys.path)

    def write(source: str, name: str = "user.py") -> str:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source, encoding="utf-8")
        return name

    yield write
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*argv: str) -> tuple[int, str, str]:
        status = main(argv)
        out, err = capsys.readouterr()
        return status, out, err

    return run


# --- results


def test_whole_file_shows_each_function_once_in_order(write: Write, run: Run) -> None:
    status, out, err = run("compile", write(FIB))
    assert status == 0
    assert [line for line in out.splitlines() if line in ("// fib", "// count", "// alias")] == ["// fib", "// count"]
    assert "?" in out
    assert "hello" not in out and "hello" in err


def test_one_function_with_types(write: Write, run: Run) -> None:
    status, out, err = run("compile", f"{write(FIB)}:fib", "--arg", "n=i32[]")
    assert (status, out.startswith("pcir 1 stack")) == (0, True), err
    assert "i32[]" in out and "?" not in out


@pytest.mark.parametrize("stage", ["ast", "cfg", "stack", "opt"])
def test_stages_without_types(write: Write, run: Run, stage: str) -> None:
    status, out, err = run("compile", f"{write(FIB)}:fib", "--stage", stage)
    assert status == 0, err
    assert out.startswith({"ast": "", "cfg": "pcir 1 cfg"}.get(stage, "pcir 1 stack"))


@pytest.mark.parametrize(
    ("stage", "word"), [("jaxpr", "while"), ("stablehlo", "stablehlo.while"), ("schedule", "policy   sweep")]
)
def test_stages_with_types(write: Write, run: Run, stage: str, word: str) -> None:
    status, out, err = run("compile", f"{write(FIB)}:fib", "--arg", "n=i32[]", "--lanes", "5", "--stage", stage)
    assert status == 0, err
    assert word in out and "5" in out


@pytest.mark.parametrize("stage", ["cfg", "opt", "schedule"])
def test_json_is_one_document(write: Write, run: Run, stage: str) -> None:
    file = write(FIB)
    more = ("--arg", "n=i32[]", "--stage", stage, "--format", "json")
    _, one, _ = run("compile", f"{file}:fib", *more)
    status, both, err = run("compile", file, *more)
    assert status == 0, err
    assert isinstance(json.loads(one), dict)
    assert len(json.loads(both)) == 2


@pytest.mark.parametrize("stage", ["ast", "jaxpr", "stablehlo"])
def test_json_of_stages_that_are_text(write: Write, run: Run, stage: str) -> None:
    status, out, err = run("compile", write(FIB), "--arg", "n=i32[]", "--stage", stage, "--format", "json")
    assert status == 0, err
    fib, count = json.loads(out)
    assert (fib["function"], count["function"], fib["stage"]) == ("fib", "count", stage)
    assert fib["text"] != count["text"]


def test_dot(write: Write, run: Run) -> None:
    status, out, err = run("compile", f"{write(FIB)}:fib", "--format", "dot")
    assert status == 0, err
    assert out.startswith("digraph") and out.rstrip().endswith("}")


@pytest.mark.parametrize("types", [(), ("--arg", "n=i32[]")])
@pytest.mark.parametrize("stage", ["cfg", "stack", "opt"])
def test_failures_and_prints_in_every_format(write: Write, run: Run, stage: str, types: tuple[str, ...]) -> None:
    file = write(LOUD)
    _, text, err = run("compile", file, "--stage", stage, *types)
    assert 'print("n = ", n:("03d"), "\\n")' in text, err
    assert r'fail assertion AssertionError(n, " is \\ too small")' in text
    _, document, _ = run("compile", f"{file}:loud", "--stage", stage, "--format", "json", *types)
    program = json.loads(document)
    blocks = program["blocks"] if "blocks" in program else program["functions"][0]["blocks"]
    assert "fail" in [block["terminator"]["op"] for block in blocks]
    assert "print" in [op["op"] for block in blocks for op in block["ops"]]
    status, graph, _ = run("compile", f"{file}:loud", "--stage", stage, "--format", "dot", *types)
    assert status == 0 and "fail assertion" in graph


@pytest.mark.parametrize("head", ["", "from __future__ import annotations\n"])
@pytest.mark.parametrize("annotation", ['"i32[]"', 'Annotated[jax.Array, "a count", "i32[]"]'])
def test_annotations_give_types(write: Write, run: Run, head: str, annotation: str) -> None:
    imports = "from typing import Annotated\nimport jax\nimport pcbatch\n"
    source = f"{head}{imports}@pcbatch.batch\ndef twice(n: {annotation}):\n    return n + n\n"
    status, out, err = run("compile", write(source), "--stage", "jaxpr")
    assert status == 0, err
    assert "i32[8]" in out


def test_a_file_in_a_package_may_import_its_neighbours(write: Write, run: Run) -> None:
    write("", "parcel/__init__.py")
    write("ONE = 1\n", "parcel/numbers.py")
    source = "import pcbatch\nfrom .numbers import ONE\n@pcbatch.batch\ndef inc(n):\n    return n + ONE\n"
    status, out, err = run("compile", write(source, "parcel/inc.py"))
    assert status == 0, err
    assert "ONE" in out


def test_a_file_may_have_the_name_of_a_module(write: Write, run: Run) -> None:
    status, _, err = run("compile", write(FIB, "json.py"), "--format", "json")
    assert status == 0, err
    assert sys.modules["json"] is json


# --- errors in the user's program: 1


def test_compile_error(write: Write, run: Run) -> None:
    source = "import pcbatch\n@pcbatch.batch\ndef f(x):\n    with open('a'):\n        return x\n"
    status, out, err = run("compile", write(source))
    assert (status, out) == (1, "")
    assert err.startswith("error[PCB1") and "user.py:4:5" in err


def test_errors_of_all_functions_are_reported(write: Write, run: Run) -> None:
    bad = "@pcbatch.batch\ndef {}(x):\n    import no_such_module\n    return x\n"
    status, _, err = run("compile", write("import pcbatch\n" + bad.format("f") + bad.format("g")))
    assert status == 1
    assert "user.py:4:5" in err and "user.py:8:5" in err


def test_exception_while_importing_shows_the_part_of_the_user(write: Write, run: Run) -> None:
    source = "def helper():\n    raise ValueError('no luck')\n\nhelper()\n"
    status, out, err = run("compile", write(source))
    assert (status, out) == (1, "")
    assert "no luck" in err and 'user.py", line 4' in err and 'user.py", line 2' in err
    assert "cli_load.py" not in err and "importlib" not in err


def test_syntax_error(write: Write, run: Run) -> None:
    status, out, err = run("compile", write("def f(:\n"))
    assert (status, out) == (1, "")
    assert "SyntaxError" in err and "user.py" in err and "cli_load.py" not in err


def test_exit_while_importing(write: Write, run: Run) -> None:
    status, _, err = run("compile", write("raise SystemExit(0)\n"))
    assert status == 1 and "exits while it is imported" in err


def test_exception_of_a_primitive(write: Write, run: Run) -> None:
    source = "import pcbatch\n@pcbatch.batch\ndef f(x):\n    return x.no_such_attribute\n"
    status, out, err = run("compile", f"{write(source)}:f", "--arg", "x=f32[]")
    assert (status, out) == (1, "")
    assert "no_such_attribute" in err and "line 4" in err or "user.py:4" in err


# --- bad usage: 2


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ((), "COMMAND"),
        (("compile",), "FILE.py"),
        (("compile", "missing.py"), "no such file: missing.py"),
        (("compile", "missing.py:f"), "no such file: missing.py"),
        (("compile", "."), "is a folder"),
        (("compile", "user.py:nothing"), "it has fib, alias, count"),
        (("compile", "user.py:plain"), "is not batched"),
        (("compile", "user.py:fib", "--arg", "n"), "NAME=TYPE"),
        (("compile", "user.py:fib", "--arg", "n=int"), "not a type"),
        (("compile", "user.py:fib", "--arg", "n=i33[]"), "unknown dtype"),
        (("compile", "user.py:fib", "--arg", "n=i32[]", "--arg", "n=i32[]"), "twice"),
        (("compile", "user.py:fib", "--arg", "m=i32[]"), "no argument 'm'"),
        (("compile", "user.py:fib", "--stage", "jaxpr"), "--arg n=i32[]"),
        (("compile", "user.py:fib", "--stage", "stablehlo"), "annotation"),
        (("compile", "user.py:fib", "--stage", "nowhere"), "invalid choice"),
        (("compile", "user.py:fib", "--arg", "n=i64[]"), "JAX_ENABLE_X64=1"),
        (("compile", "user.py:fib", "--arg", "n=(i32[],u64[])"), "JAX_ENABLE_X64=1"),
        (("compile", "user.py:fib", "--lanes", "0"), "at least 1"),
        (("compile", "user.py:fib", "--stage", "ast", "--format", "dot"), "dot"),
        (("compile", "empty.py"), "no batched function"),
    ],
)
def test_bad_usage(write: Write, run: Run, argv: tuple[str, ...], says: str) -> None:
    write(FIB)
    write("x = 1\n", "empty.py")
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert says in err and "Traceback" not in err


def test_static_arguments_have_no_type(write: Write, run: Run) -> None:
    source = "import pcbatch\n@pcbatch.batch(static_argnames='mode')\ndef f(x, mode):\n    return x\n"
    path = write(source)
    status, _, err = run("compile", f"{path}:f", "--arg", "mode=f32[]")
    assert status == 2 and "'mode' is in static_argnames of f" in err
    status, _, err = run("compile", f"{path}:f", "--arg", "x=f32[]")
    assert status == 2 and "static argument 'mode' has no default" in err


def test_types_for_some_arguments_only(write: Write, run: Run) -> None:
    source = "import pcbatch\n@pcbatch.batch\ndef f(x, y):\n    return x + y\n"
    status, _, err = run("compile", f"{write(source)}:f", "--arg", "x=f32[]")
    assert status == 2 and "f lacks y" in err


# --- check and explain


def test_check_of_a_file_without_mistakes(write: Write, run: Run) -> None:
    status, out, err = run("check", write(FIB))
    assert status == 0 and err == "hello from the file\n"
    assert [line.split(" ")[:2] for line in out.splitlines()] == [["fib:", "ok"], ["count:", "ok"]]
    assert "--arg n=TYPE" in out


def test_check_with_types(write: Write, run: Run) -> None:
    assert run("check", f"{write(FIB)}:fib", "--arg", "n=i32[]")[:2] == (0, "fib: ok (for n: i32[])\n")


MISTAKES = """\
import pcbatch

@pcbatch.batch
def fine(n: "i32[]"):
    return n + 1

@pcbatch.batch
def typed(x: "f32[2]"):
    return x @ x[:, None, None] @ x

@pcbatch.batch
def shared(n):
    n + 1
    return n + nowhere

@pcbatch.batch
def caller(n):
    return shared(n) + misspelt
"""


def test_check_tells_all_mistakes(write: Write, run: Run) -> None:
    status, out, err = run("check", write(MISTAKES))
    assert (status, out) == (1, "fine: ok (for n: i32[])\n")
    places = [f"user.py:{place}" for place in ("9:", "13:5", "14:16", "18:24")]
    assert all(place in err for place in places), err
    assert err.count("error[PCB119]") == 1, "a shared callee is told once"
    assert err.count("error[") == len(places)


def test_check_does_not_run_functions(write: Write, run: Run) -> None:
    source = (
        "import pcbatch\n@pcbatch.batch\ndef f(n: 'i32[]'):\n    while True:\n        if n < 0:\n            return n\n"
    )
    assert run("check", write(source))[:2] == (0, "f: ok (for n: i32[])\n")


def test_check_of_methods(write: Write, run: Run) -> None:
    status, out, err = run("check", write(METHODS))
    assert (status, [line.split(" ")[0] for line in out.splitlines()]) == (1, ["Outer.climb:", "Outer.double:"])
    assert "the object of a method is not known" in out and "`y` is not defined" in err and "`z` is not def" in err
    assert run("check", "user.py:Outer.double")[:2] == (0, "Outer.double: ok (for x: i32[])\n")
    assert run("check", "user.py:Outer.climb", "--arg", "x=i32[]")[0] == 0
    assert run("check", "user.py:Outer.climb", "--arg", "x=i32[]", "--arg", "self=i32[]")[0] == 1
    assert "self.climb(x + 1)" in run("compile", "user.py:Outer.climb")[1]
    status, _, err = run("compile", "user.py:Outer.climb", "--stage", "jaxpr")
    assert status == 2 and "is a method" in err
    assert "it has Outer.climb" in run("check", "user.py:Outer.clim")[2]


def test_check_bad_usage(write: Write, run: Run) -> None:
    write(FIB)
    assert run("check", "user.py:fib", "--arg", "m=i32[]")[0] == 2
    assert run("check", "missing.py")[0] == 2


def test_explain(run: Run) -> None:
    status, out, err = run("explain", "pcb301")
    assert (status, err) == (0, "")
    assert out.startswith("PCB301: a variable changes type") and "This works:" in out


def test_explain_lists_all(run: Run) -> None:
    status, out, _ = run("explain")
    assert status == 0 and all(f"  {code}  {page.title}" in out for code, page in pages().items())


@pytest.mark.parametrize(("code", "says"), [("PCB39", "PCB309"), ("yield", "PCB105"), ("nonsense", "lists them")])
def test_explain_of_an_unknown_code(run: Run, code: str, says: str) -> None:
    status, out, err = run("explain", code)
    assert (status, out) == (2, "") and says in err


# --- our bugs: 70


def test_internal_error(write: Write, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("a rule is broken")

    monkeypatch.setattr("pcbatch.cli.main.dump", broken)
    status, out, err = run("compile", f"{write(FIB)}:fib")
    assert (status, out) == (70, "")
    assert "Traceback" in err and "a rule is broken" in err and "please report" in err


# --- the process


def test_version_and_help(run: Run) -> None:
    assert run("--version")[0] == 0
    status, out, _ = run("compile", "--help")
    assert status == 0 and "FILE.py[:FUNC]" in out


def test_reader_that_goes_away(write: Write) -> None:
    command = [sys.executable, "-m", "pcbatch", "compile", write(FIB), "--stage", "ast"]
    environment = {**os.environ, "PYTHONPATH": str(Path(pcbatch.__file__).parents[1])}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert "BrokenPipe" not in errors and process.wait() == 0, errors


# --- reading the arguments


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("fib.py", ("fib.py", None)),
        ("fib.py:fib", ("fib.py", "fib")),
        (r"C:\code\fib.py", (r"C:\code\fib.py", None)),
        (r"C:\code\fib.py:fib", (r"C:\code\fib.py", "fib")),
        ("fib.py:", ("fib.py:", None)),
        ("fib.py:1", ("fib.py:1", None)),
    ],
)
def test_split_target(target: str, expected: tuple[str, str | None]) -> None:
    assert split_target(target) == expected


def test_split_target_prefers_a_file_that_exists(write: Write) -> None:
    write("", "odd:name")
    assert split_target("odd:name") == ("odd:name", None)


F32, I32_3 = ArrayType("float32"), ArrayType("int32", (3,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f32[]", F32),
        (" f32[3, 4] ", ArrayType("float32", (3, 4))),
        ("(f32[],i32[3])", (F32, I32_3)),
        ("((f32[],), f32[])", ((F32,), F32)),
        ("()", ()),
        ("key<fry>[]", ArrayType("key<fry>")),
    ],
)
def test_parse_arg_type(text: str, expected: object) -> None:
    assert parse_arg_type(text) == expected


@pytest.mark.parametrize("text", ["", "?", "f32", "f32[", "f32[-1]", "(f32[]", "(f32[]))", "(f32[],,f32[])", "f32[x]"])
def test_parse_arg_type_refuses(text: str) -> None:
    with pytest.raises(BadUsage, match="malformed"):
        parse_arg(f"x={text}")


def test_annotations_that_cannot_be_evaluated_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.14 evaluates them when they are asked for."""

    def fail(_: object) -> dict[str, object]:
        raise NameError("Array")

    monkeypatch.setattr("inspect.get_annotations", fail)
    assert annotated_types(test_split_target) == {}


def test_other_annotations_are_ignored() -> None:
    def f(a, b, c, d, e): ...

    f.__annotations__ = {
        "a": list,
        "b": "list[int]",
        "c": "no such thing",
        "d": "i32[]",
        "e": "f32[3]",
        "return": "i32[]",
    }
    assert annotated_types(f) == {"d": ArrayType("int32"), "e": ArrayType("float32", (3,))}


class Shaped:
    """An annotation as jaxtyping makes them."""

    def __init__(self, dim_str: str, *dtypes: str) -> None:
        self.dim_str, self.dtypes = dim_str, dtypes


def test_annotations_of_numbers_and_arrays() -> None:
    def f(a: int, b: float, c: bool, d: complex): ...

    assert list(map(str, annotated_types(f).values())) == ["i32[]", "f32[]", "bool[]", "c64[]"]
    assert list(map(str, annotated_types(f, wide=True).values())) == ["i64[]", "f64[]", "bool[]", "c128[]"]
    f.__annotations__ = {
        "a": Shaped("3 4", "bfloat16", "float16", "float32", "float64"),
        "b": Shaped("", "int32"),
        "c": Shaped("n 4", "float32"),
        "d": Shaped("2", "int32", "float32"),
    }
    assert {name: str(type_) for name, type_ in annotated_types(f).items()} == {"a": "f32[3,4]", "b": "i32[]"}
