"""The rules that hold for every program between passes; `verify` lists the breaches (none: a valid program).

Types and storage classes are checked where they are known. "Two types agree" leaves the weak flag out.

Both program types
  label     Labels are unique in their function (stack: in the program); `return` and `prologue` are reserved.
  target    All edges of terminators go to blocks that exist (a branch may go to `return`), and the entry exists.
  reach     Every block can be reached from the entry.
  declared  Every variable that is mentioned is declared.
  distinct  Parameters are distinct, and so are the destinations of one operation.
  cond      The conditions of a branch, a fork and a select are `bool[]`.
  kind      A failure is an "assertion", an "error", a "capacity" or a "limit".
  types     Source and destination of a move or a push agree; so do the three of a select.

CFG
  defined   Every variable is written on all paths before it is read; so are the results before a return.
  function  Function names are unique; the entry and every callee exist; every function has a block.
  call      Arguments and destinations are as many as the callee's parameters and results, and agree in type.

Stack
  order     A block pops a variable at most once, pushes it at most once, and pops it first: so an emitter can read
            all slots before the block and write all slots after it.
  slot      Every pop is reached, on all paths of its activation, by a push of the same variable there: slots are
            empty where a `pushjump` enters, outlive the calls made meanwhile, and are kept by tail jumps.
  frames    Only variables with frames are pushed or popped.
  local     A variable without a register (`temp`, `stack`) does not live from one block into another, nor from
            outside into the entry, nor as a result, nor into the message of a failure.
  null      A `null` variable is never read, and is no result.
  shared    Only the prologue writes shared variables, it writes nothing else, and it reads only shared ones that are
            parameters or written above.
  written   Every variable is written on all paths before it is read; so are the results before the outermost
            return. A call writes what its callee writes on all paths.

Not a rule: "the callee must not overwrite a register that lives across a call". A callee overwrites its results,
which the caller reads, and a parameter may be a result that only some paths write; the program text does not tell
that from a lost value. The interpreters compare values instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pcbatch.ir.analysis.dataflow import reachable
from pcbatch.ir.analysis.def_use import (
    AnyBlock,
    AnyOp,
    block_writes,
    conditions,
    may_return,
    pops,
    pushes,
    targets,
    terminator_reads,
)
from pcbatch.ir.analysis.liveness import doubtful, live_in, live_out
from pcbatch.ir.analysis.must_assign import slots, stack_written, written
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.ops import Fail
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.rules import (
    RESERVED_LABELS,
    Fault,
    Names,
    Types,
    agree,
    all_declared,
    distinct,
    is_bool,
    known_kind,
    op_types,
)
from pcbatch.ir.stack import Pop, Push, StackBlock, StackProgram, Storage
from pcbatch.ir.task_verifier import verify_tasks
from pcbatch.ir.tasks import TaskProgram


def verify(program: CfgProgram | StackProgram | TaskProgram) -> tuple[Fault, ...]:
    """Return all breaches of the rules above, or of those in `task_verifier`, in program order.

    The rules that need an analysis of paths are checked only where all labels and edges are sound.
    """
    match program:
        case CfgProgram():
            return tuple(_cfg(program))
        case StackProgram():
            return tuple(_stack(program))
        case _:
            return tuple(verify_tasks(program))


# Both program types


def _structure(blocks: tuple[AnyBlock, ...], entry: str, where: str) -> Iterator[Fault]:
    """The rules `label` and `target`, on which every analysis relies."""
    for label, count in Counter(block.label for block in blocks).items():
        if count > 1:
            yield Fault("label", where, f"{count} blocks are called {label}")
        if label in RESERVED_LABELS:
            yield Fault("label", where, f"no block may be called {label}")
    labels = {block.label for block in blocks}
    if entry not in labels:
        yield Fault("target", where, f"the entry {entry} does not exist")
    for block in blocks:
        for target in targets(block.terminator):
            if target not in labels:
                yield Fault("target", _at(where, block), f"jump to {target}, which does not exist")


def _reach(blocks: Iterable[AnyBlock], entry: str, where: str) -> Iterator[Fault]:
    edges = {block.label: targets(block.terminator) for block in blocks}
    reached = reachable([entry], edges)
    for label in edges:
        if label not in reached:
            yield Fault("reach", f"{where}{label}", "the block cannot be reached")


def _mentions(blocks: Iterable[AnyBlock], where: str) -> Iterator[tuple[str, str]]:
    for block in blocks:
        for op in block.ops:
            yield from ((_at(where, block), name) for name in _mentioned(op))
        yield from ((_at(where, block), name) for name in terminator_reads(block.terminator))


def _mentioned(op: AnyOp) -> tuple[str, ...]:
    return (*reads(op), *writes(op), *((op.dst,) if isinstance(op, Push) else ()))


def _blocks_types(blocks: Iterable[AnyBlock], types: Types, where: str) -> Iterator[Fault]:
    for block in blocks:
        yield from op_types(block.ops, types, _at(where, block))
        for cond in conditions(block.terminator):
            yield from is_bool(cond, types, _at(where, block))
        if isinstance(block.terminator, Fail):
            yield from known_kind(block.terminator.kind, _at(where, block))


def _unwritten(block: AnyBlock, known: Names) -> Iterator[str]:
    """The variables that a block may read before they are written; those in `known` are written at its top."""
    for op in block.ops:
        yield from (name for name in reads(op) if name not in known)
        known = known.union(writes(op))
    yield from (name for name in terminator_reads(block.terminator) if name not in known)


def _at(where: str, block: AnyBlock) -> str:
    return f"{where}{block.label}"


# CFG


def _cfg(program: CfgProgram) -> Iterator[Fault]:
    functions = {function.name: function for function in program.functions}
    for name, count in Counter(function.name for function in program.functions).items():
        if count > 1:
            yield Fault("function", f"@{name}", f"{count} functions have this name")
    if program.entry not in functions:
        yield Fault("function", f"@{program.entry}", "the entry function does not exist")
    for function in program.functions:
        yield from _function(function, functions)


def _function(function: Function, functions: Mapping[str, Function]) -> Iterator[Fault]:
    name, where = f"@{function.name}", f"@{function.name}:"
    yield from distinct(function.params, name, "parameters")
    names = ((name, variable) for variable in (*function.params, *function.results))
    yield from all_declared((*names, *_mentions(function.blocks, where)), function.types)
    yield from _blocks_types(function.blocks, function.types, where)
    for block in function.blocks:
        for op in block.ops:
            if isinstance(op, Call):
                yield from _call(op, function, functions, _at(where, block))
    if not function.blocks:
        yield Fault("function", name, "the function has no block")
        return
    entry = function.blocks[0].label
    broken = tuple(_structure(function.blocks, entry, where))
    yield from broken
    if not broken:
        yield from _reach(function.blocks, entry, where)
        yield from _defined(function, where)


def _call(op: Call, caller: Function, functions: Mapping[str, Function], where: str) -> Iterator[Fault]:
    callee = functions.get(op.func)
    if callee is None:
        yield Fault("function", where, f"call of @{op.func}, which does not exist")
        return
    for what, actual, declared in (("arguments", op.args, callee.params), ("results", op.dsts, callee.results)):
        if len(actual) != len(declared):
            yield Fault("call", where, f"@{op.func} has {len(declared)} {what}, not {len(actual)}")
        else:
            for a, b in zip(actual, declared, strict=True):
                yield from agree(a, b, caller.types, callee.types, where, "call")


def _defined(function: Function, where: str) -> Iterator[Fault]:
    if live_in(function)[function.blocks[0].label].issubset(function.params):
        return  # no path from the entry leads to a read, or out, past all writes
    tops = written(function)
    for block in function.blocks:
        yield from _read_too_early(block, tops.get(block.label), "defined", where)
        if may_return(block.terminator):
            yield from _returned_too_early(block, tops.get(block.label), function.results, "defined", where)


def _read_too_early(
    block: AnyBlock, known: Names | None, rule: str, where: str, only: Names | None = None
) -> Iterator[Fault]:
    for name in dict.fromkeys(_unwritten(block, known) if known is not None else ()):
        if only is None or name in only:
            yield Fault(rule, _at(where, block), f"{name} may be read before it is written")


def _returned_too_early(
    block: AnyBlock, known: Names | None, results: Iterable[str], rule: str, where: str
) -> Iterator[Fault]:
    missing = set(results) - known - block_writes(block) if known is not None else ()
    for name in sorted(missing):
        yield Fault(rule, _at(where, block), f"the result {name} may be returned before it is written")


# Stack


def _stack(program: StackProgram) -> Iterator[Fault]:
    types = {name: var.type for name, var in program.vars.items()}
    yield from distinct(program.params, "program", "parameters")
    names = (("program", name) for name in (*program.params, *program.results))
    prologue = (("prologue", name) for op in program.prologue for name in _mentioned(op))
    yield from all_declared((*names, *prologue, *_mentions(program.blocks, "")), types)
    yield from op_types(program.prologue, types, "prologue")
    yield from _blocks_types(program.blocks, types, "")
    yield from _shared(program)
    for block in program.blocks:
        yield from _order(block)
        yield from _storage(program, block)
    broken = tuple(_structure(program.blocks, program.entry, ""))
    yield from broken
    if not broken:
        yield from _reach(program.blocks, program.entry, "")
        yield from _local(program)
        yield from _slots(program)
        yield from _written(program)


def _order(block: StackBlock) -> Iterator[Fault]:
    pushed: set[str] = set()
    for op in block.ops:
        if isinstance(op, Push):
            pushed.add(op.dst)
        elif isinstance(op, Pop) and op.dst in pushed:
            yield Fault("order", block.label, f"{op.dst} is popped after it is pushed")
    for what, names in (("popped", [op.dst for op in pops(block)]), ("pushed", [op.dst for op in pushes(block)])):
        for name, count in Counter(names).items():
            if count > 1:
                yield Fault("order", block.label, f"{name} is {what} {count} times")


def _class_of(program: StackProgram, name: str) -> Storage | None:
    var = program.vars.get(name)
    return var.storage if var else None


def _storage(program: StackProgram, block: StackBlock) -> Iterator[Fault]:
    """The rule `frames`, and the parts of `null` and `shared` about single blocks."""
    for op in block.ops:
        if isinstance(op, Push | Pop):
            storage = _class_of(program, op.dst)
            if storage is not None and not storage.has_frames:
                yield Fault("frames", block.label, f"{op.dst} is {storage.value} and has no frames")
        for name in writes(op):
            if _class_of(program, name) is Storage.SHARED:
                yield Fault("shared", block.label, f"the shared variable {name} is written outside the prologue")
    for name in dict.fromkeys(n for item in (*map(reads, block.ops), terminator_reads(block.terminator)) for n in item):
        if _class_of(program, name) is Storage.NULL:
            yield Fault("null", block.label, f"the null variable {name} is read")


def _shared(program: StackProgram) -> Iterator[Fault]:
    known = {name for name in program.params if _class_of(program, name) in (Storage.SHARED, None)}
    for op in program.prologue:
        for name in reads(op):
            if name not in known:
                yield Fault("shared", "prologue", f"{name} is read, but is not a shared variable with a value")
        for name in writes(op):
            if _class_of(program, name) not in (Storage.SHARED, None):
                yield Fault("shared", "prologue", f"{name} is written, but is not shared")
            known.add(name)


def _local(program: StackProgram) -> Iterator[Fault]:
    for name in program.results:
        if _class_of(program, name) is Storage.NULL:
            yield Fault("null", "program", f"the null variable {name} is a result")
    inside = {name: var.storage for name, var in program.vars.items() if var.storage in (Storage.TEMP, Storage.STACK)}
    places = [("program", live_in(program)[program.entry]), *live_out(program).items()]
    for where, live in places:
        for name in sorted(live & inside.keys()):
            yield Fault("local", where, f"{name} is {inside[name].value}, but is needed outside the block")


def _slots(program: StackProgram) -> Iterator[Fault]:
    popped = {block.label: names for block in program.blocks if (names := [op.dst for op in pops(block)])}
    for entry, tops in slots(program).items():
        for label, filled in tops.items():
            for name in popped.get(label, ()):
                if name not in filled:
                    yield Fault("slot", label, f"pop {name} without a push on some path from {entry}")


def _written(program: StackProgram) -> Iterator[Fault]:
    names = doubtful(program)
    if not names:
        return
    tops, outermost = stack_written(program, names)
    for block in program.blocks:
        yield from _read_too_early(block, tops.get(block.label), "written", "", names)
        if may_return(block.terminator):
            results = [name for name in program.results if name in names]
            yield from _returned_too_early(block, outermost.get(block.label), results, "written", "")
