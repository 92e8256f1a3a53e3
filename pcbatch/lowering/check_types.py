"""Turn what type inference could not do into diagnostics at the user's lines; all of them at once."""

from __future__ import annotations

import jax

from pcbatch.diagnostics import Diagnostic, Label, Loc
from pcbatch.errors import CompileError
from pcbatch.ir.cfg import Call, CfgProgram, Function
from pcbatch.ir.dataflow import solve
from pcbatch.ir.ops import Branch, Prim
from pcbatch.ir.walk import may_return, predecessors, reads, terminator_reads, writes
from pcbatch.lowering.abstract import Abstract, Known
from pcbatch.lowering.infer_types import Conflict, Inferred, branch_targets
from pcbatch.lowering.split_ranges import original_name
from pcbatch.lowering.trace import TraceError

NOT_CONSTANT = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)
DECORATE = (
    "decorate the helper that branches with `@pcbatch.batch`, or use `jnp.where` / `jax.lax.cond` in it; "
    "for the builtins `max` and `min` write `jnp.maximum` and `jnp.minimum`"
)
CONSTANT = (
    "shapes and Python integers must not depend on lane values; pass them as `static_argnames`. "
    "A NumPy array that a lane value indexes must be a JAX one: `jnp.asarray(table)[i]`"
)


def run(program: CfgProgram, found: Inferred) -> None:
    """Raise CompileError if anything is wrong; do nothing otherwise."""
    faults = [_primitive_error(program, key, error) for key, error in sorted(found.errors.items())]
    faults += [_conflict(program, conflict) for conflict in found.conflicts.values()]
    for function in program.functions:
        if found.reachable.get(function.name):
            faults += _unbound(function, found)
    if not faults:
        faults += _no_result(program, found)
    if faults:
        raise CompileError(tuple(dict.fromkeys(faults)))


def run_untyped(program: CfgProgram) -> None:
    """The checks that need no types: every block counts as reachable."""
    found = Inferred(reachable={f.name: {block.label for block in f.blocks} for f in program.functions})
    faults = [fault for function in program.functions for fault in _unbound(function, found)]
    if faults:
        raise CompileError(tuple(dict.fromkeys(faults)))


def _label(loc: Loc | None, text: str = "") -> Label | None:
    return None if loc is None else Label(loc, text)


def _primitive_error(program: CfgProgram, key: tuple[str, str, int], error: Exception) -> Diagnostic:
    function = program.function(key[0])
    op = next(block for block in function.blocks if block.label == key[1]).ops[key[2]]
    assert isinstance(op, Prim)
    helps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    if isinstance(error, TraceError):
        code, title = "PCB304", str(error)
        helps = (error.help,) if error.help else ()
    elif isinstance(error, jax.errors.TracerBoolConversionError):
        code, title = "PCB305", "a helper needs control flow of its own for each lane"
        notes = (_first_line(error),)
        helps = (DECORATE,)
    elif isinstance(error, NOT_CONSTANT) or "Shapes must be 1D sequences" in str(error):
        code, title = "PCB306", "a value that differs between lanes is used where JAX needs a constant"
        notes = (_first_line(error),)
        helps = (CONSTANT,)
    else:
        code, title = "PCB303", "this line fails for one lane"
        notes = (f"{type(error).__name__}: {error}".strip(),)
    return Diagnostic(code, title, _label(op.loc), notes=notes, helps=helps)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def _conflict(program: CfgProgram, conflict: Conflict) -> Diagnostic:
    function, name = conflict.place
    callee = program.function(function)
    shown = original_name(name)
    if name in callee.results:
        code, title = "PCB302", f"`{function}` returns values of different types"
        help = "return the same structure and shapes on every path"
    elif name in callee.params:
        code, title = "PCB307", f"argument `{shown}` of `{function}` has different types in different calls"
        help = "pass the same structure and shapes in every call; write one function per type if they must differ"
    else:
        code, title = "PCB301", f"variable `{shown}` changes type"
        help = "use an array of the final size and fill it with `.at[i].set(v)`, or use two variables"
    secondary: tuple[Label, ...] = ()
    if conflict.first_loc is not None and conflict.first_loc != conflict.loc:
        secondary = (Label(conflict.first_loc, f"{conflict.first} here"),)
    return Diagnostic(
        code,
        title,
        _label(conflict.loc, f"{conflict.second} here"),
        secondary,
        notes=(conflict.cause, "a variable keeps one structure, shape and dtype: all lanes share its storage"),
        helps=(help,),
    )


def _unbound(function: Function, found: Inferred) -> list[Diagnostic]:
    """Reads of variables that some reachable path does not assign (definite assignment, a forward intersection)."""
    reachable = found.reachable[function.name]
    blocks = [block for block in function.blocks if block.label in reachable]
    everything = frozenset(v for b in blocks for op in b.ops for v in writes(op)) | frozenset(function.params)
    edges = _reachable_edges(function, found)
    entry = function.blocks[0].label
    written = {b.label: frozenset(v for op in b.ops for v in writes(op)) for b in blocks}
    solution = solve(
        edges,
        join=lambda label, values: frozenset(function.params) if label == entry else everything.intersection(*values),
        transfer=lambda label, bound: bound | written[label],
        start=everything,
    )
    faults = []
    for block in blocks:
        bound = set(solution.entering[block.label])
        for op in block.ops:
            faults += [_unbound_fault(function, v, op.loc) for v in reads(op) if v not in bound]
            bound.update(writes(op))
        loc = block.terminator.loc if isinstance(block.terminator, Branch) else function.loc
        end = terminator_reads(block.terminator)
        end += function.results if may_return(block.terminator) else ()
        faults += [_unbound_fault(function, v, loc) for v in end if v not in bound]
    return faults


def _reachable_edges(function: Function, found: Inferred) -> dict[str, tuple[str, ...]]:
    """Predecessors along edges that inference found possible."""
    reachable = found.reachable[function.name]
    preds = predecessors(function.blocks)
    blocks = {block.label: block for block in function.blocks}

    def possible(source: str, target: str) -> bool:
        terminator = blocks[source].terminator
        if isinstance(terminator, Branch) and found.types:
            return target in branch_targets(terminator, found.types.get((function.name, terminator.cond)))
        return True

    return {
        label: tuple(p for p in preds[label] if p in reachable and possible(p, label))
        for label in blocks
        if label in reachable
    }


def _unbound_fault(function: Function, name: str, loc: Loc | None) -> Diagnostic:
    shown = original_name(name)
    if name in function.results:
        return Diagnostic("PCB111", f"`{function.name}` may end without returning a value", _label(loc))
    return Diagnostic(
        "PCB201",
        f"variable `{shown}` may be read before it is assigned",
        _label(loc, f"`{shown}` is not assigned on every path to here"),
        helps=(f"assign `{shown}` before the branch or loop that may skip its assignment",),
    )


def _no_result(program: CfgProgram, found: Inferred) -> list[Diagnostic]:
    faults = []
    for function in program.functions:
        if not found.reachable.get(function.name):
            continue
        value = found.types.get((function.name, function.results[0]))
        if value is None:
            faults.append(_never_returns(function))
        elif function.name == program.entry and any(isinstance(leaf, Known) for leaf in value.leaves):
            faults.append(_bad_result(function, value))
    return faults


def _never_returns(function: Function) -> Diagnostic:
    calls = [op for block in function.blocks for op in block.ops if isinstance(op, Call)]
    if calls:
        return Diagnostic(
            "PCB309",
            f"`{function.name}` has no base case: every path calls a function that never returns",
            _label(calls[0].loc, "this call never returns"),
            helps=("return a value without a recursive call on some path",),
        )
    note = "no `return` can be reached"
    return Diagnostic("PCB310", f"`{function.name}` never returns", _label(function.loc), notes=(note,))


def _bad_result(function: Function, value: Abstract) -> Diagnostic:
    return Diagnostic(
        "PCB311",
        f"`{function.name}` returns {value}, which is not made of arrays and numbers",
        _label(function.loc),
        helps=("return arrays, numbers, or tuples, dicts and registered pytrees of them",),
    )
