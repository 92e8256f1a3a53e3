"""Turn the errors and conflicts of type inference into diagnostics at the user's lines, all of them at once."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from typing import Any

import jax

from pcbatch.data.columns import Unset
from pcbatch.data.mappings.lane_set import DictView
from pcbatch.data.objects.made import mentions_made
from pcbatch.data.objects.questions import RECORDS
from pcbatch.data.origins import Origin
from pcbatch.data.sequences.lane_iterator import GENERATOR, LaneIterator
from pcbatch.data.sequences.lane_range import LaneRange
from pcbatch.data.texts.known_texts import MIXED, MIXED_HELPS
from pcbatch.decisions import NONE as NO_DECISIONS
from pcbatch.decisions import Decisions
from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc, in_order
from pcbatch.errors import CompileError, NeedsUnrolling, Refusal, Restart
from pcbatch.ir import message as messages
from pcbatch.ir.analysis.callgraph import calls, recursive
from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.analysis.def_use import may_return
from pcbatch.ir.cfg import Call, CfgProgram, Function, Op
from pcbatch.ir.message import Message, variables
from pcbatch.ir.ops import RETURN, Fail, Prim, Print
from pcbatch.ir.roles import writes
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.cfg_passes.fail_unbound import unbound_reads
from pcbatch.lowering.cfg_passes.split_live_ranges import original_name
from pcbatch.lowering.cfg_passes.wrap_entry import ENTRY
from pcbatch.lowering.diagnose import check_literals
from pcbatch.lowering.diagnose.primitive_errors import NONE, diagnose
from pcbatch.lowering.diagnose.traceback_spans import narrowed
from pcbatch.lowering.typing.abstract_values import Abstract, Known
from pcbatch.lowering.typing.convert_types import objects_of
from pcbatch.lowering.typing.format_messages import Show, is_text
from pcbatch.lowering.typing.inferred import Conflict, Inferred, untyped
from pcbatch.lowering.typing.instances import MOST, base_of

SHAPE_HELP = "use an array of the final size and fill it with `.at[i].set(v)`, or use two variables"
NO_END = frozenset({"PCB309", "PCB310"})
"""The codes of functions that never return."""
NEVER_HELP = "give every loop a way out that leads to a `return`"
COPIES = "decorate `{}` with `@pcbatch.inline`: then each call has types of its own"
RECURSION = "in a recursion pass the whole array and an index that changes, `f(xs, k + 1)` in place of `f(xs[1:])`"
STRUCTURE_HELP = "build the same structure on every path, with zeros for what is not there yet, or use two variables"

WAYS_OUT = {
    "structure": "keep the same containers, lengths and keys on every path, and `None` where there is no value yet",
    "dtype": "convert to one dtype on every path, for example with `jnp.asarray(x, jnp.float32)`",
    "key": "use one kind of keys on every path: `jax.random.key(seed)` with one implementation",
    "made": "build new records of new ones alone: copy what they hold of packed ones first, or refer to it by a number",
    "packed": "pack the objects together, `trees = pcbatch.pack([*a, *b])`, and pass `trees[:n]` and `trees[n:]`",
    "text": "write the number as a text on its path, `str(n)`, and read it outside, `int(text)`",
    "levels": "keep one list of what the levels hold, and for each element the place of the one that it stands in",
    "room": "append what is made to a list in the loop, and put its elements together behind the loop",
    "value": "use a number for each case, and look up what it stands for outside: `NAMES[int(k)]`; a string or a "
    "function must be the same on every path",
}


def run(program: CfgProgram, inferred: Inferred) -> None:
    """Raise Restart with all diagnostics of a program, if there are any, and what would cure them."""
    functions = [function for function in program.functions if inferred.reachable.get(function.name)]
    unbound = [diagnostic for function in functions for diagnostic in _unbound(function, inferred)]
    diagnostics = _primitive_errors(program, inferred, {place for place, _ in unbound})
    diagnostics += [_conflict(program, conflict) for conflict in inferred.conflicts.values()]
    diagnostics += [diagnostic for _, diagnostic in unbound]
    if not diagnostics:
        diagnostics += _no_result(program, inferred) or check_literals.run(program, inferred)
        diagnostics += _messages_without_text(program, inferred)
    _raise(diagnostics, inferred, Decisions(rolled=_loops(program, inferred)))


def _loops(program: CfgProgram, inferred: Inferred) -> frozenset[Loc]:
    """The places of loops that may have to stay loops: they go over a known tuple in the first round of a loop around
    them and over a list of the lane in the next, or end where the lane knows."""
    conflicts = [loc for one in inferred.conflicts.values() for loc in (one.first_loc, one.loc)]
    keys = [key for key, error in inferred.errors.items() if isinstance(error, NeedsUnrolling)]
    reads = [program.function(name).block(label).ops[k].loc for name, label, k in keys]
    return frozenset(loc for loc in (*conflicts, *reads) if loc is not None)


def of_nothing(program: CfgProgram, inferred: Inferred) -> bool:
    """Whether all that fails reads a list into which nothing is stored, as far as is known."""

    def is_unset(part: object) -> bool:
        return isinstance(part, Unset)

    def reads_nothing(function: str, label: str, k: int) -> bool:
        op = program.function(function).block(label).ops[k]
        ins = op.expr.ins if isinstance(op, Prim) else ()
        values = [objects_of(inferred.types[function, v]) for v in ins if (function, v) in inferred.types]
        return any(map(is_unset, jax.tree.leaves(values, is_leaf=is_unset)))

    return bool(inferred.errors) and not inferred.conflicts and all(reads_nothing(*key) for key in inferred.errors)


def run_untyped(program: CfgProgram) -> None:
    """Run the checks that need no types: every block counts as reachable. Raises Restart like `run`."""
    inferred = untyped(program)
    _raise([diagnostic for function in program.functions for _, diagnostic in _unbound(function, inferred)], inferred)


def _raise(diagnostics: list[Diagnostic], inferred: Inferred, cures: Decisions = NO_DECISIONS) -> None:
    """Raise Restart with the diagnostics, each once, in the order of the source; do nothing without any."""
    if diagnostics:
        raise Restart(inferred.wants | cures, CompileError(in_order(diagnostics)))


def _label(loc: Loc | None, text: str = "") -> Label | None:
    return None if loc is None else Label(loc, text)


def _primitive_errors(program: CfgProgram, inferred: Inferred, unbound: set[Loc | None]) -> list[Diagnostic]:
    """One diagnostic for each span: parts of one construct, such as a loop over something odd, fail each in their own
    words, and a refusal of this package is the clearest of them. None at the spans `unbound`, where a variable without
    a value is read: that diagnostic is enough."""
    chosen: dict[object, tuple[str, Prim, Exception]] = {}
    real = {key for key, error in inferred.errors.items() if not isinstance(error, NeedsUnrolling)}
    # What is None because the code that gives it a value failed, too, follows from that.
    real = {key for key in real if NONE not in str(inferred.errors[key])} or real
    for key, error in sorted(inferred.errors.items()):
        if real and key not in real:
            continue  # the length of a loop, too, may be unknown because of the other errors
        op = program.function(key[0]).block(key[1]).ops[key[2]]
        assert isinstance(op, Prim)
        place = op.loc or key
        if op.loc is not None and op.loc in unbound:
            continue
        if place not in chosen or (isinstance(error, Refusal) and not isinstance(chosen[place][2], Refusal)):
            chosen[place] = key[0], op, error
    return [_primitive_error(program, inferred, *which) for which in chosen.values()]


def _primitive_error(program: CfgProgram, inferred: Inferred, function: str, op: Prim, error: Exception) -> Diagnostic:
    types = {v: value for v in op.expr.ins if (value := inferred.types.get((function, v))) is not None}
    return diagnose(op, types, error, program.entry.removesuffix(ENTRY))


def _number_of_values(result: Abstract) -> int | None:
    """The number of values that a `return` gives: those of a tuple, or one array; None for other results."""
    node = result.tree.node_data()
    if node is None:
        return None if isinstance(result.leaves[0], Known) and result.leaves[0].value is None else 1
    return len(result.tree.children()) if node[0] is tuple else None


def _conflict(program: CfgProgram, conflict: Conflict) -> Diagnostic:
    function, name = conflict.place
    callee = program.function(function)
    function = base_of(function)
    shown = original_name(name)
    copies: tuple[str, ...] = ()
    if name in callee.results:
        code, title = "PCB302", f"`{function}` returns values of different types"
        keeps = (
            "the result of a function keeps one structure, shape and dtype: its callers cannot tell which path it took"
        )
        help = "return the same structure and shapes on every path"
    elif name in callee.params:
        code, title = "PCB307", f"argument `{shown}` of `{function}` has different types in different calls"
        keeps = "a function is compiled once: all its calls share the storage of its parameters"
        if conflict.kind == "shape":
            keeps = f"a function is compiled for each tuple of shapes of its arguments, and these are more than {MOST}"
        copies = (RECURSION if callee.name in recursive(program) else COPIES.format(function),)
        help = "pass the same structure and shapes in every call, or write one function for each"
    else:
        code, title = "PCB301", f"{_subject(shown, conflict.loc)} changes type"
        keeps = "a variable keeps one structure, shape and dtype: all lanes share its storage"
        help = STRUCTURE_HELP if "structure" in conflict.cause else SHAPE_HELP
    pair = {_kind(conflict.first), _kind(conflict.second)}
    way_out = "text" if conflict.kind == "structure" and pair == {"text", "number"} else conflict.kind
    help = help if copies else WAYS_OUT.get(way_out, help)
    counts = {_number_of_values(conflict.first), _number_of_values(conflict.second)}
    if code == "PCB302" and len(counts) == 2 and None not in counts:
        help = "return the same number of values on every path; `jnp.zeros_like(x)` for one it does not have"
    secondary: tuple[Label, ...] = ()
    if conflict.first_loc is not None and conflict.first_loc != conflict.loc:
        secondary = (Label(conflict.first_loc, f"{conflict.first} here"),)
    return Diagnostic(
        code,
        title,
        _label(conflict.loc, f"{conflict.second} here"),
        secondary,
        notes=(conflict.cause, keeps),
        helps=(*copies, help),
    )


def _subject(name: str, loc: Loc | None) -> str:
    """A variable in words; those of the compiler have no name that users know."""
    function, _, own = name.rpartition(".")
    line = "" if loc is None else linecache.getline(loc.file, loc.line)
    if own == "r" and line.strip().startswith("return"):
        return f"the result of `{function.rpartition('.')[2]}`" if function else "the result"
    return f"variable `{own}`" if loc is None or re.search(rf"\b{own}\b", line) else "this value"


def _kind(value: Abstract) -> str:
    """Whether a value is a text, a number, or something else."""
    alone = value.leaves[0] if len(value.leaves) == 1 and jax.tree_util.treedef_is_leaf(value.tree) else None
    if is_text(value) or (isinstance(alone, Known) and isinstance(alone.value, str)):
        return "text"
    return "number" if isinstance(alone, ArrayType) or (isinstance(alone, Known) and alone.is_number) else ""


def _unbound(function: Function, inferred: Inferred) -> list[tuple[Loc | None, Diagnostic]]:
    """Diagnostics for reads that find no value on any path, and for paths without a result, with their locations.

    Where another path assigns the variable, lanes fail (`cfg_passes/fail_unbound.py`).
    """
    return [
        (read.loc, _unbound_diagnostic(function, read.name, read.loc))
        for read in unbound_reads(function, inferred)
        if not read.assigned_before or read.name in function.results
    ]


def _unbound_diagnostic(function: Function, name: str, loc: Loc | None) -> Diagnostic:
    shown = original_name(name)
    read = loc and narrowed(loc, shown)
    assigned = [op.loc for op in function.ops if op.loc and _assigns(op, shown)]
    other_lines = sorted(span for span in assigned if read is None or span.line != read.line)
    title, label = "is read before it is assigned", "is not assigned on any path to here"
    help = f"assign `{shown}` before; what a function assigns anywhere is its own, not a global of that name"
    return Diagnostic(
        "PCB201",
        f"variable `{shown}` {title}",
        _label(read, f"`{shown}` {label}"),
        tuple(Label(span, "assigned here") for span in other_lines[:1]),
        helps=(help,),
    )


def _assigns(op: Op, name: str) -> bool:
    return any(original_name(v) == name for v in writes(op))


def _no_result(program: CfgProgram, inferred: Inferred) -> list[Diagnostic]:
    diagnostics = []
    for function in program.functions:
        if not inferred.reachable.get(function.name):
            continue
        value = inferred.types.get((function.name, function.results[0]))
        if value is None and function.name == program.entry and (first := _first_failure(program, inferred)):
            diagnostics.append(_always_fails(function, first, inferred))
        elif value is None:
            diagnostics += [] if _may_fail(program, function.name, inferred) else [_never_returns(function, inferred)]
        elif function.name == program.entry and (
            any(isinstance(leaf, Known) for leaf in value.leaves) or _not_shown(value.tree)
        ):
            diagnostics.append(_bad_result(function, value, inferred.sources.get((function.name, function.results[0]))))
    return diagnostics


def _failures(function: Function, inferred: Inferred) -> list[Fail]:
    reachable = inferred.reachable.get(function.name, set())
    return [b.terminator for b in function.blocks if b.label in reachable and isinstance(b.terminator, Fail)]


def _may_fail(program: CfgProgram, name: str, inferred: Inferred) -> bool:
    """Whether a call of the function may end in a failure, its own or one of its callees."""
    return any(_failures(program.function(callee), inferred) for callee in reachable([name], calls(program)))


def _first_failure(program: CfgProgram, inferred: Inferred) -> tuple[Function, Fail] | None:
    every = ((function, fail) for function in program.functions for fail in _failures(function, inferred))
    return next(every, None)


def _always_fails(function: Function, first: tuple[Function, Fail], inferred: Inferred) -> Diagnostic:
    where, fail = first
    shown = Show(where.name, inferred.types)(fail.message)
    text = messages.text(shown, dict.fromkeys(messages.variables(shown), "..."))
    return Diagnostic(
        "PCB317",
        f"`{function.name}` fails on every path",
        _label(fail.loc, f"{fail.name}: {text}" if text else fail.name),
        helps=("call it with arguments for which it returns a value on some path",),
    )


def _never_returns(function: Function, inferred: Inferred) -> Diagnostic:
    calls_made = [op for op in function.ops if isinstance(op, Call)]
    returns = any(
        may_return(b.terminator) or RETURN in getattr(b.terminator, "targets", ())
        for b in function.blocks
        if b.label in inferred.reachable[function.name]
    )
    if calls_made:
        return Diagnostic(
            "PCB309",
            f"`{function.name}` has no base case: every path calls a function that never returns",
            _label(calls_made[0].loc, "this call never returns"),
            helps=("return a value without a recursive call on some path",),
        )
    note = "no `return` can be reached" if not returns else "its result has no type"
    return Diagnostic(
        "PCB310", f"`{function.name}` never returns", _label(function.loc), notes=(note,), helps=(NEVER_HELP,)
    )


def _not_shown(tree: Any) -> str:
    """Return in words the first part of a result that has no form outside of a program; "" if there is none."""
    words = {LaneIterator: "an iterator", LaneRange: "a range", DictView: "a view of a dict"}
    node = tree.node_data()
    if node is not None and any(hasattr(cls, GENERATOR) for cls in getattr(node[1], "types", (node[0],))):
        return "a generator"
    return words.get(node and node[0], "") or next(filter(None, map(_not_shown, tree.children())), "")


def _bad_result(function: Function, value: Abstract, loc: Loc | None) -> Diagnostic:
    if what := _not_shown(value.tree):
        title, help = f"`{function.name}` returns {what}", "return a list of its elements: `list(...)`"
        return Diagnostic("PCB311", title, _label(loc or function.loc), helps=(help,))
    return Diagnostic(
        "PCB311",
        f"`{function.name}` returns {value}, which is not made of arrays, numbers and texts",
        _label(loc or function.loc),
        helps=("return arrays, numbers, texts, or tuples, dicts and registered pytrees of them",),
    )


def _messages_without_text(program: CfgProgram, inferred: Inferred) -> list[Diagnostic]:
    """Return a diagnostic for each message whose text is not known.

    refused:  print(node)    where `node` refers to a record: the text of all it leads to; `print(node.word)` is none
    refused:  print(c)       where `c` is a bool on some paths and another number on others
    """
    records = inferred.heap is not None or any(value.tree.node_data() for value in inferred.args.values())
    found: list[Diagnostic] = []
    for function, message, loc in messages_of(program, inferred):
        for name in variables(message):
            value = inferred.types.get((function, name))
            if value is not None and Origin.MIXED in value.origins:
                shown = None if loc is None else Label(loc)
                found.append(Diagnostic("PCB304", MIXED, shown, helps=MIXED_HELPS))
            if value is not None and records and _has_records(value):
                found.append(_record_shown(value, loc))
        try:
            Show(function, inferred.types)(message)
        except Refusal as refusal:
            found.append(Diagnostic(refusal.code, str(refusal), _label(loc), helps=refusal.helps))
    return list(dict.fromkeys(found))


def messages_of(program: CfgProgram, inferred: Inferred) -> Iterator[tuple[str, Message, Loc | None]]:
    """Yield the messages that a lane may show, each with its function and its place."""
    for function in program.functions:
        for block in function.blocks:
            if block.label not in inferred.reachable.get(function.name, ()):
                continue
            yield from ((function.name, op.message, op.loc) for op in block.ops if isinstance(op, Print))
            if isinstance(block.terminator, Fail):
                yield function.name, block.terminator.message, block.terminator.loc


def _has_records(value: Abstract) -> bool:
    parts = jax.tree.leaves(_nodes(value), is_leaf=lambda part: isinstance(part, RECORDS))
    return any(isinstance(part, RECORDS) for part in parts)


def _nodes(value: Abstract) -> object:
    return jax.tree.unflatten(value.tree, list(range(len(value.leaves))))


def _record_shown(value: Abstract, loc: Loc | None) -> Diagnostic:
    primary = None if loc is None else Label(loc, f"this shows {value}")
    kind = "record that is made in a lane" if mentions_made(value.tree) else "packed object"
    title = f"the text of a {kind} is not known in a lane"
    return Diagnostic("PCB320", title, primary, helps=("show what it holds: `print(node.word)`",))
