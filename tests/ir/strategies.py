"""Hypothesis strategies for programs of all types: well-formed to the printer, not always valid."""

from __future__ import annotations

from hypothesis import strategies as st

from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.forks import Fork
from pcbatch.ir.message import Field
from pcbatch.ir.ops import (
    ASSERTION,
    CAPACITY,
    ERROR,
    RETURN,
    Branch,
    Check,
    Expr,
    Fail,
    Jump,
    Move,
    Prim,
    Print,
    Return,
    Select,
)
from pcbatch.ir.stack import Pop, Push, PushJump, StackBlock, StackProgram, Storage, Var
from pcbatch.ir.tasks import Finish, Give, OpenFrame, Spawn, SpawnInto, Start, Sync, TaskBlock, TaskJump, TaskProgram
from pcbatch.ir.types import LONG, ArrayType

# Keywords of the text form are legal names.
NAMES = ("n", "x", "state", "state.q", "state.q.w", "pair._0", "push", "pop", "call", "select", "update", "func", "λ")
TEXTS = (
    "1",
    "n - 2",
    "x + n",
    "state.q + state.p",
    "x.shape[0] // n",
    "f({'a': x, **n}, [n for n in x])",
    "{k: state.q.w[k] for k in 'ab}'}",
    "(lambda n, *a: n + x)(n)",
    "'}' + \"{\" + r'\\' + '''it's'''",
    "f'{x:{n}}'",
    "f'{x['a']}'",
    "n if x else state",
    "def g(x): return x",
    "a = 1; b = a",
    "}",
    "(]",
    "",
    " n ",
    "'//' // n",
    "(y := n) + y",
)

names = st.sampled_from(NAMES)
labels = st.sampled_from(("bb0", "bb1", "loop.head", "even/bb2", "jump", "exit-3"))
targets = labels | st.just(RETURN)
types = st.none() | st.builds(
    ArrayType,
    st.sampled_from([*LONG.values(), "key<fry>"]),
    st.lists(st.integers(0, 9), max_size=3).map(tuple),
    st.booleans(),
)
texts = st.sampled_from(TEXTS) | st.text(max_size=12)
exprs = st.builds(Expr, texts, st.lists(names, max_size=3).map(tuple))
dsts = st.lists(names, max_size=3).map(tuple)
words = st.sampled_from(("x = ", "// no comment", "{", ")", '"', "\n", "a = b", "")) | st.text(max_size=6)
messages = st.recursive(
    st.lists(words | st.builds(Field, names, st.sampled_from(("", "r", "s", "a"))), max_size=3).map(tuple),
    lambda inner: st.lists(words | st.builds(Field, names, st.just(""), inner), max_size=3).map(tuple),
    max_leaves=4,
)
pure_ops = st.builds(Prim, dsts, exprs) | st.builds(Move, names, names) | st.builds(Select, names, names, names, names)
functions_names = st.sampled_from(("fib", "f.<locals>.g", "<lambda>"))
prints = st.builds(Print, messages)
checks = st.builds(Check, names, st.sampled_from((ASSERTION, ERROR, CAPACITY)), st.just("IndexError"), messages)
cfg_ops = pure_ops | prints | checks | st.builds(Call, dsts, functions_names, st.lists(names, max_size=3).map(tuple))
stack_ops = pure_ops | prints | st.builds(Push, names, names) | st.builds(Pop, names)
fails = st.builds(Fail, st.sampled_from((ASSERTION, ERROR, CAPACITY)), names, messages)
jumps = st.builds(Jump, labels) | st.builds(Branch, names, targets, targets) | st.just(Return()) | fails
leaves = st.builds(Jump, labels) | st.builds(PushJump, labels, labels) | st.just(Return())
trees = st.recursive(leaves, lambda inner: st.builds(Fork, names, inner, inner), max_leaves=6)


def _tuples(items: st.SearchStrategy, size: int = 4) -> st.SearchStrategy:
    return st.lists(items, max_size=size).map(tuple)


functions = st.builds(
    Function,
    functions_names,
    _tuples(names, 3),
    _tuples(names, 3),
    _tuples(st.builds(Block, labels, _tuples(cfg_ops), jumps)),
    st.dictionaries(names, types),
)
cfg_programs = st.builds(CfgProgram, functions_names, _tuples(functions, 3))
stack_programs = st.builds(
    StackProgram,
    labels,
    _tuples(names, 3),
    _tuples(names, 3),
    st.dictionaries(names, st.builds(Var, types, st.none() | st.sampled_from(Storage))),
    _tuples(st.builds(StackBlock, labels, _tuples(stack_ops), trees | fails)),
    _tuples(pure_ops, 2),
)

bindings = _tuples(st.tuples(names, names), 3)
ways = st.recursive(
    st.builds(Start, labels, bindings) | st.builds(Give, dsts),
    lambda inner: st.builds(Fork, names, inner, inner),
    max_leaves=4,
)
task_edges = st.recursive(
    st.builds(TaskJump, labels, bindings) | st.builds(Sync, labels, bindings) | st.builds(Finish, dsts),
    lambda inner: st.builds(Fork, names, inner, inner),
    max_leaves=6,
)
task_ops = pure_ops | st.just(OpenFrame()) | st.builds(SpawnInto, ways)
task_ops |= st.builds(Spawn, dsts, ways) | st.builds(Spawn, st.tuples(names), ways, st.just(True))
task_ops |= st.builds(Spawn, st.tuples(names), ways, row=names)
task_programs = st.builds(
    TaskProgram,
    labels,
    _tuples(names, 3),
    _tuples(names, 3),
    st.dictionaries(names, types),
    _tuples(names, 2),
    _tuples(names, 2),
    _tuples(st.builds(TaskBlock, labels, _tuples(names, 3), _tuples(task_ops), task_edges | fails, st.booleans())),
    _tuples(pure_ops, 2),
    st.frozensets(functions_names, max_size=2),
)
