"""Constant propagation: which variables have one value wherever they are read, and whose value it is.

    (w shared by all lanes, x of each lane)    b = { w.T }; c = b; x = { c @ x }    roots: w -> w, b -> b, c -> b

The lattice has names in place of numbers: a variable climbs from undefined (it is left out) to the variable whose value
it has, its *root*, and from there to varying (None). A root is given, or computed once and of roots alone. Nodes are
variables, not blocks (Wegman and Zadeck, "Constant propagation with conditional branches", TOPLAS 1991).

What is the same, and for whom, depends on what is given and on which definitions count as computed:

- for all lanes at all times, in the program with calls lowered: `hoist_uniform`;
- for all activations of an example, or of all examples: `constants` and `shared_values`;
- for all activations in one context of calls: `clone_shared`, and the strategy "local";
- for all lanes, whatever path they take: `divergence`, which adds the influence of branches.

`constant_parameters` propagates integers in place of names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeGuard

from pcbatch.ir.analysis.dataflow import Node, Value, Worklist
from pcbatch.ir.analysis.def_use import AnyOp
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.ops import Move, Prim
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.stack import Push
from pcbatch.lowering.analysis.cost import op_may_not_end
from pcbatch.lowering.typing.trace import JaxprFn

Local = tuple[str, str]  # (function, variable)


@dataclass(frozen=True, slots=True)
class Definition(Generic[Node]):
    """A definition of variables.

    Attributes:
        targets: the variables.
        operands: what their values depend on; None if they vary anyway.
        op: the operation that computes them; None if they are the only operand itself.
    """

    targets: tuple[Node, ...]
    operands: tuple[Node, ...] | None
    op: Any = None


def propagate(
    definitions: Sequence[Definition[Node]],
    start: Mapping[Node, Value | None],
    evaluate: Callable[[Definition[Node], Mapping[Node, Value | None]], Sequence[Value | None]],
) -> dict[Node, Value | None]:
    """Return the value of each variable, None if it varies; of those that are left out nothing is ever known.

    Args:
        definitions: All definitions. A variable with several has the value that all of them give it.
        start: The values that variables have besides.
        evaluate: The values that a definition gives its targets, from those of its operands; it must be monotone.
    """
    values = dict(start)
    users: dict[Node, list[int]] = {}
    for k, definition in enumerate(definitions):
        for v in dict.fromkeys((*(definition.operands or ()), *definition.targets)):
            users.setdefault(v, []).append(k)
    worklist = Worklist(range(len(definitions)))
    for k in worklist:
        definition = definitions[k]
        if not all(v in values for v in definition.operands or ()):
            continue
        for v, new in zip(definition.targets, evaluate(definition, values), strict=True):
            joined = new if values.get(v, new) == new else None
            if v not in values or values[v] != joined:
                values[v] = joined
                for user in users[v]:
                    worklist.add(user)
    return values


def roots(definitions: Iterable[Definition[Node]], given: Mapping[Node, Node | None]) -> dict[Node, Node]:
    """Return the root of each variable that has one; `given` are the roots of parameters, None for those that vary."""
    definitions = tuple(definitions)
    origins = Counter([*given, *(v for one in definitions if one.op is not None for v in one.targets)])
    start = {**given, **dict.fromkeys(v for v, n in origins.items() if n > 1)}  # computed twice: two values

    def evaluate(definition: Definition[Node], values: Mapping[Node, Node | None]) -> Sequence[Node | None]:
        targets, operands = definition.targets, definition.operands
        if operands is not None and definition.op is None:
            return [values[v] for v in operands]
        # One varying result makes all of them vary: an operation is computed ahead whole or not at all.
        varies = operands is None or any(values[v] is None for v in operands)
        return [None] * len(targets) if varies or any(values.get(v, v) is None for v in targets) else targets

    return {v: root for v, root in propagate(definitions, start, evaluate).items() if root is not None}


def definition(op: AnyOp, is_computed: bool) -> Definition[str]:
    """Return what an operation defines. `is_computed`: its results may be roots, if it is more than a move."""
    if isinstance(op, Move | Push):  # the slot belongs to dst: a pop gives dst this value
        return Definition((op.dst,), (op.src,))
    return Definition(writes(op), reads(op) if is_computed else None, op)


def definitions(program: CfgProgram, is_computed: Callable[[object], bool]) -> Iterator[Definition[Local]]:
    """Yield the definitions in all functions, those of parameters by calls included."""
    params = {f.name: f.params for f in program.functions}
    for f in program.functions:
        for op in f.ops:
            one = definition(op, is_computed(op))
            operands = None if one.operands is None else tuple((f.name, v) for v in one.operands)
            yield Definition(tuple((f.name, v) for v in one.targets), operands, one.op)
            if isinstance(op, Call):
                yield from (
                    Definition(((op.func, p),), ((f.name, a),)) for a, p in zip(op.args, params[op.func], strict=True)
                )


def assigned_again(function: Function) -> list[str]:
    """Return the variables of a function with more than one definition; that of a parameter is the call."""
    counts = Counter([*function.params, *(v for op in function.ops for v in writes(op))])
    return [v for v, n in counts.items() if n > 1]


def constants(program: CfgProgram, varying: Iterable[Local] = ()) -> dict[Local, Local]:
    """Return the constants of an example: variables that are a parameter of the entry in every activation.

        def encode(w, tree, node): ... encode(w, tree, left) ... encode(w, tree, right)      # constants: w, tree

    A parameter is constant if every call passes it on unchanged. Tasks then need not carry it in their records: it is
    the same for all tasks of an example, and a table stays where it is. Those that are `varying` count as no constants.
    """
    given: dict[Local, Local | None] = {local: local for local in _entry(program)}
    return roots(definitions(program, lambda op: False), given | dict.fromkeys((*_again(program), *varying)))


def shared_values(program: CfgProgram, shared: Collection[str]) -> tuple[dict[Local, Local], list[tuple[str, Prim]]]:
    """Return the constants of all examples, and the primitives of them alone, in order, each with its function.

    `shared` are the parameters of the entry that all examples share. The results of these primitives are the same in
    every activation, too: they are roots, and are computed once, ahead.
    """
    given: dict[Local, Local | None] = {(f, p): (f, p) if p in shared else None for f, p in _entry(program)}
    found = roots(definitions(program, _may_run_ahead), given | dict.fromkeys(_again(program)))
    prims = [(f.name, op) for f in program.functions for op in f.ops if _may_run_ahead(op)]
    rest = [(f, op) for f, op in prims if found.get((f, op.dsts[0])) == (f, op.dsts[0])]
    done = {local for local, root in given.items() if root is not None}
    ahead: list[tuple[str, Prim]] = []
    while rest:
        ready = [(f, op) for f, op in rest if all(found[f, v] in done for v in op.expr.ins)]
        ahead += ready
        done |= {(f, v) for f, op in ready for v in op.dsts}
        rest = [(f, op) for f, op in rest if (f, op.dsts[0]) not in done]
    return found, ahead


def _may_run_ahead(op: object) -> TypeGuard[Prim]:
    """Whether an operation has operands, and may run where nobody asked for it."""
    return isinstance(op, Prim) and bool(op.expr.ins) and isinstance(op.expr.fn, JaxprFn) and not op_may_not_end(op)


def _entry(program: CfgProgram) -> list[Local]:
    return [(program.entry, p) for p in program.function(program.entry).params]


def _again(program: CfgProgram) -> list[Local]:
    return [(f.name, v) for f in program.functions for v in assigned_again(f)]
