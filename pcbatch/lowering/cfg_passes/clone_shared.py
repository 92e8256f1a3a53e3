"""Copy functions for the shared values that they are called with, so that these stay unbatched.

before:  func @birnn(xs, f, b): p = call @rnn(xs, f)       after:  func @birnn(xs, f, b): p = call @rnn(xs, f)
                                q = call @rnn(xs, b)                                      q = call @rnn.2(xs, b)
         func @rnn(xs, w): ... { w @ h } ...                       func @rnn(xs, w): ...
                                                                   func @rnn.2(xs, w): ...

A parameter that every call gives the same shared value is no register: a product with it is one product over lanes.
With two values it would be one of each lane, whose matrix each visit reads lane by lane, and which a call moves. So a
function is copied for each of a few sets of values, and so are the functions that it calls (`analysis/
shared_arguments.py`). Lanes in two copies do not run together, which costs less than a matrix for each lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.lowering.analysis.shared_arguments import VARYING, Context, Contexts, contexts

MOST = 4  # copies of a function
MOST_OPERATIONS = 512  # in all copies of a function together


def run(program: CfgProgram, shared: Collection[str]) -> CfgProgram:
    """Copy functions in every program; `shared` are the parameters of the entry that all lanes share."""
    sites = Counter(op.func for f in program.functions for b in f.blocks for op in b.ops if isinstance(op, Call))
    if max(sites.values(), default=0) < 2:
        return program
    found = contexts(program, shared, MOST)
    taken = {f.name for f in program.functions}
    names: dict[tuple[str, Context], str] = {}
    for f in program.functions:
        contexts_of = found.found.get(f.name, [])
        copied = _is_worth(f, contexts_of)
        for k, context in enumerate(contexts_of):
            names[f.name, context] = f.name if k == 0 or not copied else _unused(f"{f.name}.{k + 1}", taken)
    if len(set(names.values())) == len({f for f, _ in names}):
        return program
    functions: dict[str, Function] = {}
    for f in program.functions:
        for context in found.found.get(f.name, []):
            name = names[f.name, context]
            functions.setdefault(name, _copy(f, name, found, context, names))
    return replace(program, functions=_in_use(program.entry, functions))


def _is_worth(function: Function, contexts_of: list[Context]) -> bool:
    """Whether a function is called with several sets of values, some of them shared, and is not too large."""
    operations = sum(len(block.ops) for block in function.blocks)
    some = any(root != VARYING for context in contexts_of for root in context)
    return 1 < len(contexts_of) and some and operations * len(contexts_of) <= MOST_OPERATIONS


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "x"
    taken.add(name)
    return name


def _copy(
    function: Function, name: str, found: Contexts, context: Context, names: dict[tuple[str, Context], str]
) -> Function:
    """The function for one context: it calls the functions for the contexts of its calls."""
    sites = found.calls[function.name, context]

    def op(block: Block, k: int, old: Op) -> Op:
        return replace(old, func=names[old.func, sites[block.label, k]]) if isinstance(old, Call) else old

    blocks = (replace(b, ops=tuple(op(b, k, old) for k, old in enumerate(b.ops))) for b in function.blocks)
    return replace(function, name=name, blocks=tuple(blocks))


def _in_use(entry: str, functions: dict[str, Function]) -> tuple[Function, ...]:
    """The functions that calls still lead to."""
    reached: dict[str, None] = {}
    work = [entry]
    while work:
        name = work.pop()
        if name in reached:
            continue
        reached[name] = None
        work += [op.func for b in functions[name].blocks for op in b.ops if isinstance(op, Call)]
    return tuple(f for name, f in functions.items() if name in reached)
