"""One broken program, at least, for every rule of the verifier."""

from __future__ import annotations

import pytest

from pcbatch.ir import verifier
from pcbatch.ir.rules import Fault
from pcbatch.ir.verifier import verify
from tests.ir.samples import (
    CHAIN_CFG,
    EVERY,
    FAIL_CFG,
    FAIL_STACK,
    FIB_CFG,
    FIB_STACK,
    FORK_STACK,
    GCD_CFG,
    GCD_STACK,
    TAIL_STACK,
)
from tests.oracles.text.parser import parse_program

BROKEN = [
    # rule, sample, what is replaced by what, the whole report
    ("label", GCD_CFG, {"body:": "head:", "t, body,": "t, head,"}, ["@gcd:: 2 blocks are called head"]),
    ("label", GCD_STACK, {"body:": "prologue:", "t, body,": "t, prologue,"}, ["no block may be called prologue"]),
    ("target", GCD_CFG, {"jump head": "jump tail"}, ["@gcd:body: jump to tail, which does not exist"]),
    ("target", GCD_STACK, {"entry=head": "entry=start"}, ["the entry start does not exist"]),
    ("target", FIB_STACK, {"ret=bb4": "ret=bb9"}, ["bb3: jump to bb9, which does not exist"]),
    ("target", FIB_STACK, {"pushjump bb0, ret=bb4": "pushjump bb9, ret=bb4"}, ["bb3: jump to bb9"]),
    ("reach", GCD_CFG, {"branch t, body, return": "return"}, ["@gcd:body: the block cannot be reached"]),
    ("reach", FIB_STACK, {"pushjump bb0, ret=bb4": "return"}, ["bb4: the block cannot be reached"]),
    ("declared", GCD_CFG, {"t: bool[]   c: i32[]": "t: bool[]"}, ["@gcd:body: the variable c is not declared"]),
    ("declared", GCD_STACK, {"in=(a, b)": "in=(a, b, d)"}, ["program: the variable d is not declared"]),
    ("declared", FIB_STACK, {"  push left = r\n": "  push left = r\n  push lost = r\n"}, ["bb3: the variable lost is"]),
    ("distinct", GCD_CFG, {"(a: i32[], b: i32[])": "(a: i32[], b: i32[], b: i32[])"}, ["b occurs 2 times"]),
    ("distinct", GCD_CFG, {"c = a": "c, c = { f(a) }"}, ["c occurs 2 times among the destinations"]),
    ("distinct", GCD_STACK, {"in=(a, b)": "in=(a, b, a)"}, ["a occurs 2 times among the parameters"]),
    ("cond", GCD_CFG, {"t: bool[]": "t: bool[2]"}, ["@gcd:head: the condition t is bool[2], not bool[]"]),
    (
        "cond",
        FORK_STACK,
        {"t, u: bool[] temp": "t: bool[] temp   u: i32[] temp"},
        ["f: the condition u is i32[], not bool[]"],
    ),
    ("target", FORK_STACK, {"call g ret=back": "call g ret=nowhere"}, ["f: jump to nowhere, which does not exist"]),
    ("cond", GCD_CFG, {"c = a": "c = select b, a, b"}, ["@gcd:body: the condition b is i32[], not bool[]"]),
    ("kind", FAIL_CFG, {"fail error": "fail panic"}, ["@check:bad: panic is no kind of failure"]),
    ("declared", FAIL_CFG, {"t, u: bool[]": "t: bool[]"}, None),
    ("declared", FAIL_CFG, {"half!r": "quarter!r"}, None),
    ("defined", FAIL_CFG, {"  half = { x / 2 }\n": ""}, ["@check:bad: half may be read before it is written"]),
    ("written", FAIL_STACK, {"  update half = { x / 2 }\n": ""}, ["bad: half may be read before it is written"]),
    ("types", GCD_CFG, {"c: i32[]": "c: i32[3]"}, ["c is i32[3], but a is i32[]"]),
    ("types", FIB_STACK, {"push left = r": "push left = t0", "pop n\n": "pop n\n  t0 = { n > 0 }\n"}, ["t0 is bool[]"]),
    ("types", TAIL_STACK, {"half = { 7 // 2 }": "half = x", "half: i32[]": "half: f32[]"}, None),
    ("defined", GCD_CFG, {"c = a\n": "b = { b }\n"}, ["@gcd:body: c may be read before it is written"]),
    ("defined", FIB_CFG, {"r = { 1 }": "right = { 1 }"}, ["@fib:bb1: the result r may be returned before"]),
    ("function", FIB_CFG, {"call @fib(t1)": "call @fob(t1)"}, ["@fib:bb2: call of @fob, which does not exist"]),
    ("function", CHAIN_CFG, {"func @top": "entry @peak\nfunc @top"}, ["@peak: the entry function does not exist"]),
    ("function", CHAIN_CFG, {"func @unused": "func @leaf", "call @unused": "call @leaf"}, ["@leaf: 2 functions have"]),
    ("function", "pcir 1 cfg\nfunc @f() -> () {\n}\n", {}, ["@f: the function has no block"]),
    ("call", FIB_CFG, {"call @fib(t1)": "call @fib(t1, n)"}, ["@fib:bb2: @fib has 1 arguments, not 2"]),
    ("call", FIB_CFG, {"left = call": "left, t2 = call"}, ["@fib has 1 results, not 2"]),
    ("call", FIB_CFG, {"call @fib(t1)": "call @fib(t0)"}, ["@fib:bb2: t0 is bool[], but n is i32[]"]),
    ("order", FIB_STACK, {"  push n = n0\n": "  push n = n0\n  pop n\n"}, None),
    ("order", FIB_STACK, {"  push left = r\n": "  push left = r\n  push left = n\n"}, ["bb3: left is pushed 2 times"]),
    ("order", FIB_STACK, {"  pop left\n": "  pop left\n  pop left\n"}, ["bb4: left is popped 2 times"]),
    ("slot", FIB_STACK, {"  push left = r\n": ""}, ["bb4: pop left without a push on some path from bb0"]),
    ("slot", TAIL_STACK, {"g:\n": "g:\n  pop x\n"}, ["g: pop x without a push on some path from f", "path from g"]),
    ("frames", FIB_STACK, {"n: i32[] reg+stack": "n: i32[] reg"}, ["bb2: n is reg and has no frames", "bb3: n is reg"]),
    ("local", GCD_STACK, {"a, b: i32[] reg": "a: i32[] reg   b: i32[] temp"}, None),
    (
        "local",
        FIB_STACK,
        {"  pop left\n": "", "left: i32[] stack": "left: i32[] temp", "push left = r": "left = r"},
        None,
    ),
    ("local", FIB_STACK, {"r: i32[] reg ": "r: i32[] stack "}, None),
    (
        "local",
        FAIL_STACK,
        {"x, y, half: f32[] reg": "x, y: f32[] reg   half: f32[] temp"},
        ["bad: half is temp, but is needed outside the"],
    ),
    ("null", GCD_STACK, {"c: i32[] temp": "c: i32[] null"}, ["body: the null variable c is read"]),
    ("null", GCD_STACK, {"out=(a)": "out=(c)", "c: i32[] temp": "c: i32[] null", "c % b": "a % b"}, None),
    ("shared", GCD_STACK, {"c: i32[] temp": "c: i32[] shared"}, ["body: the shared variable c is written outside"]),
    ("shared", TAIL_STACK, {"half = { 7 // 2 }": "half = { x }"}, ["prologue: x is read, but is not a shared"]),
    ("shared", TAIL_STACK, {"half = { 7 // 2 }": "half, r = { 7 // 2, 1 }"}, ["prologue: r is written, but is not"]),
    ("written", GCD_STACK, {"  c = a\n": ""}, None),
    (
        "written",
        GCD_STACK,
        {"in=(a, b)": "in=(b)"},
        ["head: the result a may be", "body: a may be read"],
    ),
    ("written", FIB_STACK, {"  update r = { 1 }\n": ""}, None),
]


@pytest.mark.parametrize("name", EVERY)
def test_the_samples_are_valid(name):
    assert verify(parse_program(EVERY[name])) == ()


@pytest.mark.parametrize(("rule", "sample", "changes", "messages"), BROKEN)
def test_rule(rule, sample, changes, messages):
    for old, new in changes.items():
        assert old in sample
        sample = sample.replace(old, new)
    faults = verify(parse_program(sample))
    mine = [str(fault) for fault in faults if fault.rule == rule]
    assert mine, faults
    if messages is not None:
        assert {fault.rule for fault in faults} == {rule}
        assert len(mine) == len(messages), mine
        assert all(message in fault for fault, message in zip(mine, messages, strict=True)), mine


def test_every_rule_of_the_docstring_has_a_test():
    lines = (verifier.__doc__ or "").splitlines()
    rules = {line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")}
    assert rules == {rule for rule, *_ in BROKEN}


def test_a_call_writes_what_its_callee_writes_on_all_paths():
    partial = FIB_STACK.replace("  update r = { 1 }\n", "")
    assert Fault("written", "bb3", "r may be read before it is written") in verify(parse_program(partial))


def test_a_fault_reads_as_a_sentence():
    assert str(Fault("null", "bb1", "x is read")) == "bb1: x is read [null]"
