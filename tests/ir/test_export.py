"""JSON and Graphviz exports."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.ir.cfg import Block, CfgProgram, Function
from pcbatch.ir.ops import Expr, Prim, Return
from pcbatch.ir.text.export import to_dot, to_json
from tests.ir import strategies
from tests.ir.samples import CHAIN_CFG, EVERY, FAIL_STACK, FIB_STACK, FORK_STACK, TAIL_STACK
from tests.oracles.text.parser import parse_program


@pytest.mark.parametrize("name", EVERY)
def test_json_tells_programs_apart_and_survives_json(name):
    out = to_json(parse_program(EVERY[name]))
    assert json.loads(json.dumps(out)) == out
    others = [to_json(parse_program(text)) for other, text in EVERY.items() if other != name]
    assert out not in others


def test_json_of_a_stack_program():
    out = to_json(parse_program(FIB_STACK))
    assert (out["stage"], out["entry"], out["params"], out["results"]) == ("stack", "bb0", ["n"], ["r"])
    assert out["vars"][0] == {
        "name": "n",
        "type": {"dtype": "int32", "shape": [], "weak": False},
        "storage": "reg+stack",
    }
    block = out["blocks"][3]
    assert (block["label"], block["function"]) == ("bb3", "fib")
    assert block["ops"] == [
        {"op": "pop", "dst": "n", "loc": None},
        {"op": "prim", "dsts": ["n"], "expr": {"text": "n - 1", "ins": ["n"]}, "loc": None},
        {"op": "push", "dst": "left", "src": "r", "loc": None},
    ]
    assert block["terminator"] == {"op": "pushjump", "target": "bb0", "ret": "bb4", "loc": None}


def test_json_has_locations():
    op = Prim((), Expr("f()", ()), Loc("f.py", 1, 2, 3, 4))
    out = to_json(CfgProgram("f", (Function("f", (), (), (Block("bb0", (op,), Return()),)),)))
    loc = {"file": "f.py", "line": 1, "col": 2, "end_line": 3, "end_col": 4}
    assert out["functions"][0]["blocks"][0]["ops"][0]["loc"] == loc


def test_json_of_failures_and_prints():
    out = to_json(parse_program(FAIL_STACK))
    half = {"var": "half", "conversion": "r", "spec": [">9"]}
    x = {"var": "x", "conversion": "", "spec": []}
    assert out["blocks"][4]["terminator"] == {
        "op": "fail",
        "kind": "error",
        "name": "ValueError",
        "message": ["half of // {", x, " is ", half, "\u2028"],
        "loc": None,
    }
    assert out["blocks"][0]["ops"][0]["op"] == "print"
    assert "fail assertion AssertionError()" in to_dot(parse_program(FAIL_STACK))


def test_dot_of_a_stack_program():
    dot = to_dot(parse_program(TAIL_STACK))
    assert '"f" -> "deep" [label="T"];' in dot
    assert '"f" -> "g" [label="F"];' in dot
    assert '"deep" -> "g" [label="call"];' in dot
    assert '"deep" -> "back" [label="ret", style=dashed];' in dot
    assert '"back" -> "f";' in dot
    assert '"prologue" -> "f" [style=dashed];' in dot
    assert r'[label="back:\lpop x\lupdate x = { x - r }\ljump f\l"]' in dot


def test_dot_of_a_cfg_program():
    dot = to_dot(parse_program(CHAIN_CFG))
    assert dot.count("subgraph") == 4
    assert '"top:bb0" -> "middle:bb0" [label="call", style=dotted];' in dot


@pytest.mark.full_only
@pytest.mark.long
@settings(deadline=None, max_examples=100)
@given(strategies.cfg_programs | strategies.stack_programs)
def test_dot_strings_are_closed(program):
    for line in to_dot(program).splitlines():
        assert line.replace("\\\\", "").replace('\\"', "").count('"') % 2 == 0
    json.dumps(to_json(program))


def test_forks() -> None:
    program = parse_program(FORK_STACK)
    block = to_json(program)["blocks"][0]
    call = {"op": "pushjump", "target": "g", "ret": "back", "loc": None}
    inner = {"op": "fork", "cond": "u", "on_true": call, "on_false": {"op": "return"}, "loc": None}
    assert block["terminator"] == {
        "op": "fork",
        "cond": "t",
        "on_true": {"op": "jump", "target": "g"},
        "on_false": inner,
        "loc": None,
    }
    dot = to_dot(program)
    assert '"f" -> "g" [label="T"];' in dot
    assert '"f" -> "g" [label="FT call"];' in dot
    assert '"f" -> "back" [label="FT ret", style=dashed];' in dot
    assert "branch t, g, (branch u, call g ret=back, return)" in dot and "peripheries=2" in dot
