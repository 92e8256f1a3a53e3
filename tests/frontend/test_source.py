"""Functions whose source is unusual: exec, line endings, tabs, decorators, lambdas, strings at column 0."""

from __future__ import annotations

import functools
import linecache

import jax.numpy as jnp
import pytest

import pcbatch
from pcbatch.errors import CompileError
from pcbatch.frontend import ast_text
from tests.frontend.compiling import agree, compiled, lane, run


def made(text, name="f", file="<made by a test>"):
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    namespace = {}
    exec(compile(text, file, "exec"), namespace)
    return namespace[name]


def code_of(fn):
    with pytest.raises(CompileError) as info:
        compiled(fn)
    return [d.code for d in info.value.diagnostics]


def test_exec_with_linecache():
    f = made("\n\ndef f(n):\n    while n > 3:\n        n = n - 2\n    return n\n")
    agree(f, 0, 3, 8)
    assert compiled(f).functions[0].loc.line == 3


def test_line_endings_and_tabs():
    agree(made("def f(n):\r\n\tif n:\r\n\t\tn = n + 1\r\n\treturn n\r\n"), 0, 1)


def test_no_source():
    namespace = {}
    exec("def f(n): return n", namespace)
    assert code_of(namespace["f"]) == ["PCB001"]


def test_source_that_changed():
    text = "def f(n):\n    return n\n"
    f = made(text, file="<changing>")
    for changed in ("\n" + text, "def f(n, m):\n    return n\n", "def (:\n", "def g(n):\n    return n\n"):
        linecache.cache["<changing>"] = (len(changed), None, changed.splitlines(True), "<changing>")
        assert code_of(f) == ["PCB001"]


def test_text_at_column_zero_and_continuation_lines():
    def f(n):
        text = """
one
  two"""
        a = n + \
            len(text) \
            + 1  # fmt: skip
        b = (
            a
            * 2
        )  # fmt: skip
        if n > 2:
            return b
        return f"{a}", text

    agree(f, 1, 5)
    for block in compiled(f).functions[0].blocks:
        assert not any("\n" in op.expr.text for op in block.ops if hasattr(op, "expr"))


def test_columns_count_characters():
    def f(n):
        ä = "ü"; return [ä, n]  # noqa: E702  # fmt: skip

    op = compiled(f).functions[0].blocks[0].ops[1]
    line = linecache.getline(op.loc.file, op.loc.line)
    assert line[op.loc.col : op.loc.end_col] == "[ä, n]"


def twice(fn):
    return fn


def test_decorators():
    @twice
    @functools.cache
    def cached(n):
        return n + 1

    @lane
    @twice
    def f(n):
        return n + 1 if n else 0

    agree(f, 0, 1)
    agree(cached.__wrapped__, 3)


def test_methods_and_functions_in_functions():
    class Some:
        k = 3

        def method(self, x):
            return self.k * x

    def outer(k):
        def inner(n):
            def innermost(q):
                return q + k

            return innermost(n) if n else k

        return inner

    assert run(Some.method, Some(), 2) == 6
    agree(outer(4), 0, 1)


def test_lambdas():
    f = lambda n: n + 1 if n else 5
    pair = (lambda n: n + 1, lambda n: n + 2)
    agree(f, 0, 1)
    agree(pair[0], 1)
    agree(pair[1], 1)
    agree((lambda n:
           n * (lambda q: q + 1)(n)), 3)  # fmt: skip
    assert compiled(f).entry == "lambda_"


def test_lambda_that_cannot_be_told_apart():
    f = lambda n: n + 1
    moved = f.__code__.replace(co_firstlineno=f.__code__.co_firstlineno + 1)
    f.__code__ = moved
    assert code_of(f) == ["PCB002"]


def test_future_annotations_hold_in_primitives():
    f = made("from __future__ import annotations\ndef f(n):\n    def g(x: Unknown): return x\n    return g(n)\n")
    assert run(f, 3) == 3


def test_ast_text():
    def f(n):
        return n + 1

    text = ast_text(f)
    assert text.startswith("FunctionDef(") and "op=Add()" in text and text.endswith("\n")


def test_lambdas_of_which_python_leaves_out_a_part() -> None:
    # fmt: off
    f, g = (lambda x: x + 1 if True else 0), (lambda x: x * 2 if x > 1 else 0)
    h, k = (lambda x: (lambda y: y + 1)(x) if True else 0), (lambda x: 0 if False else x * 3)
    # fmt: on
    for fn in (f, g, h, k):
        assert pcbatch.batch(fn)(jnp.array([1, 2, 3])).tolist() == [fn(n) for n in (1, 2, 3)]
