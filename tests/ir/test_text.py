"""The text form: round trips, what an expression reads, what the parser refuses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.cfg import Block, CfgProgram, Function
from pcbatch.ir.ops import Expr, Move, Prim, Return
from pcbatch.ir.text.expr_text import braced, default_reads
from pcbatch.ir.text.printer import print_program
from tests.ir import strategies
from tests.ir.samples import EVERY, FIB_CFG, FIB_STACK, FORK_STACK, GCD_CFG
from tests.oracles.text.functions import as_function
from tests.oracles.text.lines import ParseError, unbrace
from tests.oracles.text.parser import parse_program
from tests.shares import examples


@pytest.mark.parametrize("name", EVERY)
def test_the_samples_print_as_they_are_written(name):
    assert print_program(parse_program(EVERY[name])) == EVERY[name]


@pytest.mark.long
@settings(deadline=None, max_examples=examples(300, 75))
@given(strategies.cfg_programs | strategies.stack_programs)
def test_parsing_what_was_printed_gives_the_same_program(program):
    text = print_program(program)
    assert parse_program(text) == program
    assert print_program(parse_program(text)) == text


@settings(deadline=None, max_examples=examples(300, 75))
@given(strategies.texts)
def test_braces_bring_every_text_back(text):
    line = f"a = {braced(text)} reads (b)"
    assert unbrace(line, 4) == (text, len(line) - len(" reads (b)"))


DECLARED = {"n", "x", "state", "state.q", "even.n"}


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("1", ()),
        ("n - 2", ("n",)),
        ("x + n + x", ("x", "n")),
        ("state.q + 1", ("state.q",)),
        ("state.q.w + state.p", ("state.q", "state")),
        ("x.shape", ("x",)),
        ("even.n + even.m", ("even.n",)),
        ("f(x).n", ("x",)),
        ("jnp.sin(n)", ("n",)),
        ("[n for n in x]", ("x",)),
        ("[n for n in n]", ("n",)),
        ("[n for i in x for n in i if state]", ("x", "state")),
        ("(lambda n, k=x: n + k)(state)", ("x", "state")),
        ("{n: x for n in state}", ("x", "state")),
        ("{n: x, state: 1}", ("n", "x", "state")),
        ("n if x else state", ("n", "x", "state")),
        ("(n := x) + n", ("x",)),
        ("f'{n}{x:{state.q}}'", ("n", "x", "state.q")),
        ("x[n:state]", ("x", "n", "state")),
        ("def f(n): return n", None),
        ("n = 1", None),
    ],
)
def test_default_reading(text, reads):
    assert default_reads(text, DECLARED) == reads


def test_reads_are_shown_only_where_they_are_not_evident():
    ops = (Prim(("a",), Expr("n + m", ("n", "m"))), Prim(("a",), Expr("n + m", ("m", "n"))))
    text = print_program(CfgProgram("f", (Function("f", (), (), (Block("b", ops, Return()),), dict.fromkeys("anm")),)))
    assert "  a = { n + m }\n  a = { n + m } reads (m, n)\n" in text


def test_texts_with_dotted_variables_become_functions():
    state = type("State", (), {"p": 5})()
    function = as_function("scale * state.q + state.p - even.n", ("state.q", "even.n", "state"), {"scale": 10})
    assert function(3, 1, state) == 34
    assert as_function("[n + k for k in range(n)]", ("n",), {})(2) == [2, 3]


def test_locations_on_request():
    loc = Loc("/somewhere/gcd.py", 4, 8, 4, 9)
    move = Move("a", "b", loc)
    function = Function("f", ("b",), ("a",), (Block("bb0", (move,), Return()),), {"a": None, "b": None}, loc)
    program = CfgProgram("f", (function,))
    assert "gcd.py" not in print_program(program)
    text = print_program(program, locations=True)
    assert [line.split("//")[1] for line in text.splitlines() if "//" in line] == [" gcd.py:4:9"] * 2
    assert parse_program(text) == program


def test_comments_and_blank_lines_do_not_matter():
    spaced = FIB_CFG.replace("\n", "  // a comment { with a brace\n\n").replace("bb1:", "// all alone\nbb1:")
    assert parse_program(spaced) == parse_program(FIB_CFG)


def test_update_is_for_the_reader():
    assert parse_program(FIB_STACK.replace("update ", "")) == parse_program(FIB_STACK)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pcir 1 cfg", "pcir 2 cfg", "line 1: expected the header"),
        ("t: bool[]", "t: bool", "line 3: not a type: 'bool'"),
        ("t: bool[]", "t: boolean[]", "line 3: unknown dtype 'boolean'"),
        ("t: bool[]", "t: bool[] temp", "line 3: no storage classes"),
        ("jump head", "leap head", "line 11: expected an operation or a jump, not 'leap head'"),
        ("c = a", "c = a b", "line 8: expected `a = { text }`"),
        ("{ c % b }", "{ c % b", "line 10: the brace { is never closed"),
        ("{ c % b }", "{ c %% b }", "line 10: expected `reads"),
        ("{ c % b }", "{ c % b } writes (b)", "line 10: expected `reads"),
        ("  jump head\n}\n", "  jump head\n", "line 11: the text ends"),
        ("  jump head\n}\n", "", "line 10: the text ends, expected a jump"),
        ("c = a", "push c", "line 8: no push in a cfg program: 'push c'"),
        ("jump head", "pushjump head, ret=body", "line 11: no pushjump in a cfg program"),
        ("c = a", 'print("c, c)', "line 8: a text of the message is never closed"),
        ("c = a", 'print("c" c)', "line 8: expected , or ) in the message"),
        ("c = a", "print(1)", "line 8: expected a variable or a"),
        ("c = a", "print(c) c", "line 8: expected nothing after the message"),
        ("jump head", "fail error()", "line 11: expected an operation or a jump"),
        ("(a: i32[], b: i32[])", "(a i32[])", "line 2: expected `name: type`"),
    ],
)
def test_parse_errors_name_the_line(old, new, message):
    assert old in GCD_CFG
    with pytest.raises(ParseError) as error:
        parse_program(GCD_CFG.replace(old, new, 1))
    assert str(error.value).startswith(message)


def test_a_stack_program_has_no_calls():
    with pytest.raises(ParseError, match="line 6: no call in a stack program"):
        parse_program(FIB_STACK.replace("{ n <= 1 }", "call @fib(n)"))
    with pytest.raises(ParseError, match="line 3: unknown storage class 'heap'"):
        parse_program(FIB_STACK.replace("reg+stack", "heap"))


@pytest.mark.parametrize(
    ("fork", "message"),
    [
        ("branch t, g, (branch u, g, return", "line 10: expected `)` after the inner branch"),
        ("branch t, g", "line 10: expected a comma between the ways of a branch"),
        ("branch t, g, return, f", "line 10: expected nothing after the branch"),
        ("branch t, g, (jump f)", "line 10: expected `branch condition, way, way`"),
        ("branch t, g, (", "line 10: expected `branch condition, way, way`"),
        ("branch t, g, =", "line 10: expected a label, `return`, a call or a branch in parentheses"),
    ],
)
def test_forks_that_are_none(fork, message):
    with pytest.raises(ParseError) as error:
        parse_program(FORK_STACK.replace("branch t, g, (branch u, call g ret=back, return)", fork))
    assert str(error.value).startswith(message)


def test_a_cfg_program_has_no_forks():
    with pytest.raises(ParseError, match="line 6: no fork in a cfg program"):
        parse_program(FIB_CFG.replace("branch t0, bb1, bb2", "branch t0, bb1, call bb2 ret=bb1"))
