"""Give every independent live range of a variable its own name.

before:  x = { 0 }; y = { x + 1 }; x = { 0.5 }; ...      after:  x = { 0 }; y = { x + 1 }; x.v1 = { 0.5 }; ...

Two definitions share a name exactly when some use may see both: the names are the webs of reaching definitions that
register allocators color (Muchnick, "Advanced compiler design and implementation", 1997, chapter 16). Each name then
has one type, so that `x = 0` followed by `x = x * 0.5` in straight line keeps both types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

from pcbatch.data.optional import Optional
from pcbatch.ir.analysis.dataflow import forward
from pcbatch.ir.analysis.def_use import may_return, predecessors, retarget, successors, terminator_reads
from pcbatch.ir.analysis.liveness import live_in
from pcbatch.ir.analysis.loops import loops
from pcbatch.ir.analysis.union_find import UnionFind
from pcbatch.ir.cfg import Block, CfgProgram, Function, Op
from pcbatch.ir.ops import Expr, Jump, Move, Prim
from pcbatch.ir.roles import reads, rename_reads, rename_writes, writes
from pcbatch.lowering.typing.abstract_values import Abstract
from pcbatch.lowering.typing.convert_types import objects_of
from pcbatch.lowering.typing.inferred import Inferred

Def = tuple[str, int, int]  # block label, operation index, position among its writes; index -1: parameter
Node = Def | tuple[str, str]  # or a block and a variable at its top


def run(program: CfgProgram) -> CfgProgram:
    """Split the live ranges of every function."""
    return replace(program, functions=tuple(_split(_with_own_object(function)) for function in program.functions))


def _with_own_object(function: Function) -> Function:
    """Give the object of a method, which is of its class from the first operation on, another name where the caller
    gets it back: callers know it as one of several classes.

    before:  self = { self }; self = append_to(self, ...); return        after:  self.v0 = { self }
                                                                                 self.v0 = append_to(self.v0, ...)
                                                                                 self = self.v0; return
    """
    match function.blocks[0].ops[:1]:
        case (Prim(dsts=(name,), expr=Expr(ins=(read,), effects=effects)),) if name == read and effects.same:
            own = f"{name}.v0"
        case _:
            return function
    if name not in function.given_back:
        return function
    new = partial(_renamed, {name: own})
    blocks: list[Block] = []
    for block in function.blocks:
        ops = [rename_writes(rename_reads(op, new) if k or blocks else op, new) for k, op in enumerate(block.ops)]
        ops += [Move(name, own)] * may_return(block.terminator)
        blocks.append(Block(block.label, tuple(ops), rename_reads(block.terminator, new)))
    return replace(function, blocks=tuple(blocks), types={**function.types, own: None})


def split_before_loops(source: CfgProgram, split: CfgProgram, inferred: Inferred) -> CfgProgram:
    """Give variables that only become values or None inside of a loop a new live range where they enter it.

    before:  node = { key }; ... d[node] ...; jump head      after:  ...; node = node; jump head
             head: t = { node is not None }                          head: t = { node is not None }
                   branch t, body, out                                     branch t, body, out
             body: node = { parents[node] }; jump head               body: node = { parents[node] }; jump head

    `split` is `source` with its live ranges split, for which types were inferred. Where it is split again, what stands
    before the loop has a type without None.
    """
    functions = zip(source.functions, split.functions, strict=True)
    return replace(source, functions=tuple(_with_copies(old, new, inferred) for old, new in functions))


def _with_copies(function: Function, split: Function, inferred: Inferred) -> Function:
    live, preds = live_in(split), predecessors(split.blocks)
    copies: dict[tuple[str, str], list[Op]] = {}  # by edge
    for loop in loops(split):
        written = {v for label in loop.body for op in split.block(label).ops for v in writes(op)}
        for v in sorted(live[loop.head] & written):
            if not _may_be_none(inferred.types.get((function.name, v))):
                continue
            for label in preds[loop.head]:
                given = _reaching(split, preds, label, v, inferred)
                if label not in loop.body and not any(_may_be_none(value, True) for value in given):
                    name = original_name(v)
                    copies.setdefault((label, loop.head), []).append(Move(name, name))
    return _on_edges(function, copies) if copies else function


def _may_be_none(value: Abstract | None, unknown: bool = False) -> bool:
    """Whether a type is that of a value or None; `unknown` is the answer where there is no type."""
    if value is None:
        return unknown
    return isinstance(objects_of(value), Optional)


def _reaching(
    function: Function, preds: Mapping[str, Sequence[str]], label: str, name: str, inferred: Inferred
) -> Iterator[Abstract | None]:
    """The types of what a variable may have been assigned last before the end of a block, None where none is known.

    A copy of this pass counts as not known, so that it is made once.
    """
    entry, work, seen = function.blocks[0].label, [label], {label}
    while work:
        label = work.pop()
        for k, op in reversed(list(enumerate(function.block(label).ops))):
            if name in writes(op):
                traced = inferred.traced.get((function.name, label, k))
                if isinstance(op, Move):
                    copied = original_name(op.src) == original_name(name)
                    yield None if copied else inferred.types.get((function.name, op.src))
                else:
                    yield traced.outs[writes(op).index(name)] if traced is not None else None
                break
        else:
            if label == entry:
                yield None
            work += [before for before in preds[label] if before not in seen]
            seen.update(preds[label])


def _on_edges(function: Function, copies: Mapping[tuple[str, str], Sequence[Op]]) -> Function:
    """The function with operations on some edges between blocks."""
    fresh = count(function.last_label + 1)
    labels = {edge: f"bb{next(fresh)}" for edge in copies}
    blocks: list[Block] = []
    for block in function.blocks:
        new = {head: label for (before, head), label in labels.items() if before == block.label}
        blocks.append(replace(block, terminator=retarget(block.terminator, partial(_renamed, new))))
        blocks += [Block(label, tuple(copies[block.label, head]), Jump(head)) for head, label in new.items()]
    return replace(function, blocks=tuple(blocks))


def _renamed(new: Mapping[str, str], label: str) -> str:
    return new.get(label, label)


def original_name(name: str) -> str:
    """Return the user's name of a variable that this pass renamed."""
    return ".".join(part for part in name.split(".") if not (part[0] == "v" and part[1:].isdigit()))


def _split(function: Function) -> Function:
    start = {p: (function.blocks[0].label, -1, k) for k, p in enumerate(function.params)}
    last = {block.label: _definitions(block) for block in function.blocks}
    live, reached = live_in(function), _reached(function, last)
    names: dict[Def, str] = {d: v for v, d in start.items()}
    uses: dict[tuple[str, int, str], Node | None] = {}
    webs = UnionFind[Node]()  # and the variables at the tops of blocks stand for what reaches them
    for block in function.blocks:
        env: dict[str, Node] = {v: (block.label, v) for v in reached[block.label]}
        for k, op in enumerate(block.ops):
            for v in reads(op):
                uses[block.label, k, v] = env.get(v)
            for j, v in enumerate(writes(op)):
                names[block.label, k, j] = v
                env[v] = (block.label, k, j)
        read = terminator_reads(block.terminator)
        read += function.results if may_return(block.terminator) else ()
        for v in read:
            uses[block.label, len(block.ops), v] = env.get(v)
        for label in successors(block.terminator):  # a variable live there has a use that all these definitions reach
            for v in live[label] & env.keys():
                webs.union([(label, v), env[v]])
    for v in live[function.blocks[0].label] & start.keys():
        webs.union([(function.blocks[0].label, v), start[v]])
    # Callers read results by name, whichever definition a path ends with.
    _keep_together(function, names, webs)
    return _rename(function, uses, webs, _name_webs(function, names, webs))


def _definitions(block: Block) -> dict[str, Def]:
    """The last definition of every variable that the block writes."""
    return {v: (block.label, k, j) for k, op in enumerate(block.ops) for j, v in enumerate(writes(op))}


def _keep_together(function: Function, names: dict[Def, str], webs: UnionFind[Node]) -> None:
    """Unite all definitions of each result, so that results keep their names."""
    definitions: dict[str, list[Def]] = {result: [] for result in function.results}
    for d, v in names.items():
        if v in definitions:
            definitions[v].append(d)
    for defs in definitions.values():
        if defs:
            webs.union(defs)


def _reached(function: Function, last: Mapping[str, Mapping[str, Def]]) -> Mapping[str, frozenset[str]]:
    """The variables of which some definition reaches the top of each block, if they are read from there on."""
    live = live_in(function)
    entry, params = function.blocks[0].label, frozenset(function.params)
    written = {label: frozenset(names) for label, names in last.items()}
    return forward(
        function.blocks,
        join=lambda label, values: live[label] & frozenset().union(params if label == entry else (), *values),
        transfer=lambda label, before: before | written[label],
        start=frozenset[str](),
    ).entering


def _name_webs(function: Function, names: dict[Def, str], webs: UnionFind[Node]) -> dict[Node, str]:
    out: dict[Node, str] = {}
    seen: dict[str, int] = {}
    order = {block.label: k for k, block in enumerate(function.blocks)}
    # Parameters first: they keep their names.
    for d in sorted(names, key=lambda d: (d[1] >= 0, order[d[0]], d[1], d[2])):
        root, name = webs.find(d), names[d]
        if root not in out:
            count = seen.get(name, 0)
            out[root] = name if count == 0 else f"{name}.v{count}"
            seen[name] = count + 1
    return out


def _rename(
    function: Function,
    uses: Mapping[tuple[str, int, str], Node | None],
    webs: UnionFind[Node],
    web_names: Mapping[Node, str],
) -> Function:
    def used(label: str, k: int, v: str) -> str:
        node = uses[label, k, v]
        return v if node is None else web_names[webs.find(node)]

    blocks = []
    for block in function.blocks:
        ops: list[Op] = []
        for k, op in enumerate(block.ops):
            new = rename_reads(op, lambda v, k=k, label=block.label: used(label, k, v))  # type: ignore[misc]
            fresh = iter([web_names[webs.find((block.label, k, j))] for j in range(len(writes(op)))])
            ops.append(rename_writes(new, lambda _, fresh=fresh: next(fresh)))  # type: ignore[misc]
        end = len(block.ops)
        terminator = rename_reads(
            block.terminator,
            lambda v, end=end, label=block.label: used(label, end, v),  # type: ignore[misc]
        )
        blocks.append(replace(block, ops=tuple(ops), terminator=terminator))
    # A read that no definition reaches keeps its name; the checks report it as unbound.
    unbound = {v: None for (_, _, v), node in uses.items() if node is None}
    types = dict.fromkeys(web_names.values()) | unbound | dict.fromkeys(function.params + function.results)
    return replace(function, blocks=tuple(blocks), types=types)
