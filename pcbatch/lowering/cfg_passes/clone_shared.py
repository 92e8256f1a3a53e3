"""Copy functions for the shared values that they are called with, so that these stay unbatched.

before:  func @birnn(xs, f, b): p = call @rnn(xs, f)       after:  func @birnn(xs, f, b): p = call @rnn(xs, f)
                                q = call @rnn(xs, b)                                      q = call @rnn.2(xs, b)
         func @rnn(xs, w): ... { w @ h } ...                       func @rnn(xs, w): ...
                                                                   func @rnn.2(xs, w): ...

A parameter that every call gives the same shared value is no register: a product with it is one product over lanes.
With two values it would be one of each lane, whose matrix each visit reads lane by lane, and which a call moves. So a
function is copied for each of a few sets of values, and so are the functions that it calls. Lanes in two copies do not
run together, which costs less than a matrix for each lane.

The shared values that a call hands to a function are a context of it. A parameter is tracked if a product reads it, or
something that is computed of it, and if calls of the function within its own recursion hand it on as it is. The context
of a call says of each tracked parameter which shared value it gets: the name of the variable that has it, or `VARYING`.
What is computed of shared values alone is one, too. Values are told apart by the place where they are computed and the
context of the function there. Contexts say what is worth a copy of a function; whether a variable is the same in all
lanes is for others to prove.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from pcbatch.ir.analysis.callgraph import call_counts, sccs, without_uncalled
from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function, Op
from pcbatch.ir.names import unused
from pcbatch.ir.ops import Prim
from pcbatch.lowering.analysis.constants import Local, assigned_again, definition, definitions, roots
from pcbatch.lowering.analysis.cost import op_may_not_end, wants_rows
from pcbatch.lowering.typing.trace import JaxprFn

MOST = 4  # copies of a function
MOST_OPERATIONS = 512  # in all copies of a function together


def run(program: CfgProgram, shared: Collection[str]) -> CfgProgram:
    """Copy functions in every program; `shared` are the parameters of the entry that all lanes share."""
    if max(call_counts(program).values(), default=0) < 2:
        return program
    all_contexts = contexts(program, shared, MOST)
    taken = {f.name for f in program.functions}
    names: dict[tuple[str, Context], str] = {}
    for f in program.functions:
        contexts_of = all_contexts.of_function.get(f.name, [])
        copied = _is_worth(f, contexts_of)
        for k, context in enumerate(contexts_of):
            name = unused(f"{f.name}.{k + 1}", "x", taken, names.values()) if k and copied else f.name
            names[f.name, context] = name
    if len(set(names.values())) == len({f for f, _ in names}):
        return program
    functions: dict[str, Function] = {}
    for f in program.functions:
        for context in all_contexts.of_function.get(f.name, []):
            name = names[f.name, context]
            functions.setdefault(name, _copy(f, name, all_contexts, context, names))
    return without_uncalled(replace(program, functions=tuple(functions.values())))


def _is_worth(function: Function, contexts_of: list[Context]) -> bool:
    """Whether a function is called with several sets of values, some of them shared, and is not too large."""
    operations = sum(len(block.ops) for block in function.blocks)
    some = any(root != VARYING for context in contexts_of for root in context)
    return 1 < len(contexts_of) and some and operations * len(contexts_of) <= MOST_OPERATIONS


def _copy(
    function: Function, name: str, all_contexts: Contexts, context: Context, names: dict[tuple[str, Context], str]
) -> Function:
    """The function for one context: it calls the functions for the contexts of its calls."""
    sites = all_contexts.calls[function.name, context]

    def op(block: Block, k: int, old: Op) -> Op:
        return replace(old, func=names[old.func, sites[block.label, k]]) if isinstance(old, Call) else old

    blocks = (replace(b, ops=tuple(op(b, k, old) for k, old in enumerate(b.ops))) for b in function.blocks)
    return replace(function, name=name, blocks=tuple(blocks))


VARYING = ""
SMALLEST = 256  # elements of a parameter that is worth a copy of the function

Context = tuple[str, ...]  # of each tracked parameter: the root of its value


@dataclass(frozen=True, slots=True)
class Contexts:
    """The shared values that calls of a program's functions give them, function by function.

    Attributes:
        tracked: of each function, the positions of its tracked parameters.
        of_function: of each function, its contexts, in the order in which calls show them.
        calls: of each function and context, the contexts of the calls in it, by block and place.
    """

    tracked: Mapping[str, tuple[int, ...]]
    of_function: dict[str, list[Context]] = field(default_factory=dict)
    calls: dict[tuple[str, Context], dict[tuple[str, int], Context]] = field(default_factory=dict)


def contexts(program: CfgProgram, shared: Collection[str], most: int) -> Contexts:
    """Return the contexts of all functions that are called, given the shared parameters of the entry.

    A function that would have more than `most` contexts is called with all its parameters varying.
    """
    functions = {f.name: f for f in program.functions}
    result = Contexts(_tracked(program))
    entry = functions[program.entry]
    first = tuple(entry.params[k] if entry.params[k] in shared else VARYING for k in result.tracked[entry.name])
    own = {p: p for p in entry.params if p in shared}
    work: list[tuple[str, Context, Mapping[str, str]]] = [(entry.name, first, own)]
    result.of_function[entry.name] = [first]
    while work:
        name, context, roots_in = work.pop()
        function = functions[name]
        shared_root = _roots(function, roots_in, context)
        sites = result.calls.setdefault((name, context), {})
        for block in function.blocks:
            for k, op in enumerate(block.ops):
                if not isinstance(op, Call):
                    continue
                callee, places = functions[op.func], result.tracked[op.func]
                wanted = tuple(shared_root.get(op.args[at], VARYING) for at in places)
                known = result.of_function.setdefault(op.func, [])
                if wanted not in known and len(known) >= most:
                    wanted = (VARYING,) * len(places)
                sites[block.label, k] = wanted
                if wanted not in known:
                    known.append(wanted)
                    roots_of = {callee.params[at]: r for at, r in zip(places, wanted, strict=True) if r != VARYING}
                    work.append((op.func, wanted, roots_of))
    return result


def _roots(function: Function, roots_in: Mapping[str, str], context: Context = ()) -> dict[str, str]:
    """The shared values of the variables of a function that have one definition."""
    start = {p: p if p in roots_in else None for p in function.params} | dict.fromkeys(assigned_again(function))
    definitions = [definition(op, isinstance(op, Prim) and not _unsafe(op)) for op in function.ops]
    found = roots((replace(each, targets=(v,)) for each in definitions for v in each.targets), start)
    return {v: roots_in.get(root) or f"{function.name}({', '.join(context)}): {root}" for v, root in found.items()}


def _tracked(program: CfgProgram) -> dict[str, tuple[int, ...]]:
    """The positions of the parameters of each function that contexts tell of."""
    tracked = _wanted(program) - _changing(program)
    return {f.name: tuple(k for k, p in enumerate(f.params) if (f.name, p) in tracked) for f in program.functions}


def _wanted(program: CfgProgram) -> frozenset[Local]:
    """The variables that products read, or of which something is computed that they read."""
    functions = {f.name: f for f in program.functions}
    sources: dict[Local, list[Local]] = defaultdict(list)
    for one in definitions(program, lambda op: isinstance(op, Prim)):
        for v in one.targets:
            sources[v] += [(f, source) for f, source in one.operands or () if _large(functions[f], source)]
    products = [(f, op) for f in program.functions for op in f.ops if isinstance(op, Prim) and _has_product(op)]
    return reachable([(f.name, v) for f, op in products for v in op.expr.ins if _large(f, v)], sources)


def _changing(program: CfgProgram) -> frozenset[Local]:
    """The parameters that their function assigns, or that calls in its recursion do not hand on as they are."""
    component = {name: k for k, names in enumerate(sccs(program)) for name in names}
    functions = {f.name: f for f in program.functions}
    changing = {(f.name, v) for f in program.functions for v in assigned_again(f) if v in f.params}
    handed_on: dict[Local, list[Local]] = defaultdict(list)
    for f in program.functions:
        copies = _copies(f)
        for op in f.ops:
            if not isinstance(op, Call) or component[op.func] != component[f.name]:
                continue
            for arg, p in zip(op.args, functions[op.func].params, strict=True):
                source = copies.get(arg, arg)
                handed_on[f.name, source].append((op.func, p))
                if source not in f.params or (op.func == f.name and source != p):
                    changing.add((op.func, p))
    return reachable(changing, handed_on)


def _copies(function: Function) -> dict[str, str]:
    """The variables that are copies of a parameter, with its name."""
    return {v: root for v, root in _roots(function, {p: p for p in function.params}).items() if root in function.params}


def _large(function: Function, v: str) -> bool:
    type_ = function.types.get(v)
    return type_ is not None and math.prod(type_.shape) >= SMALLEST


def _has_product(op: Prim) -> bool:
    return isinstance(op.expr.fn, JaxprFn) and wants_rows(op.expr.fn.closed.jaxpr)


def _unsafe(op: Prim) -> bool:
    return not isinstance(op.expr.fn, JaxprFn) or op_may_not_end(op)
