"""CFG functions prepared for local static autobatching: straight-line code, calls, registers, uniform variables.

before:  t1 = { n - 2 }; left = call @fib(t1); r = { left + 1 }        after:  StraightCode(t1), Call, StraightCode(r)

Parameters that are unbatched differ from call to call: a function has one plan for each set of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.analysis.def_use import block_writes, kept, successors
from pcbatch.ir.analysis.liveness import live_after, live_in, live_out
from pcbatch.ir.cfg import Block, Call, CfgProgram, Function
from pcbatch.ir.ops import RETURN, Branch, Check, Fail, Jump, Prim, Print, PureOp, Return, Select
from pcbatch.ir.roles import reads, writes
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.analysis.constants import definition, roots
from pcbatch.lowering.analysis.cost import op_may_not_end
from pcbatch.lowering.typing.jax_types import from_storage, jax_dtype, storage_type, to_storage
from pcbatch.runtime.vm.block_body import Values, evaluated, stored
from pcbatch.runtime.vm.lane_window import Window, lane_mask
from pcbatch.runtime.vm.operands import Batch, Common, Operand, at_places
from pcbatch.runtime.vm.prints import Shown, prints_of


@dataclass(frozen=True, slots=True)
class StraightCode:
    """Straight-line operations without calls, as one function of all lanes."""

    types: Mapping[str, ArrayType | None]  # of the function's variables
    shared: Names  # its uniform variables
    ops: tuple[PureOp | Print, ...]  # those of uniform variables first
    uses: tuple[str, ...]  # variables that are read
    makes: tuple[str, ...]  # variables that are defined for others
    may_not_end: bool  # an operation per lane must not run on the values of inactive lanes

    @property
    def prints(self) -> tuple[Print, ...]:
        """The prints among the operations, for active lanes, after all operations have run."""
        return prints_of(self.ops)

    def run(self, env: Mapping[str, Any], active: jax.Array) -> tuple[Values, Shown]:
        """Run the operations for all lanes.

        Args:
            env: Values by variable in storage form, [lanes, ...], or unbatched if they are uniform.
            active: bool[lanes].

        Returns:
            The new values in the same form, and the values to print. Those of inactive lanes are junk.
        """
        # No operation here asks which lane it computes for.
        window = Window(active.shape[0], active, source=active, index=active, dense=True, borrowed=False)
        given = {v: env[v] for v in self.uses}
        if self.may_not_end:
            given |= borrow({v: x for v, x in given.items() if v not in self.shared}, active)
        values: dict[str, Operand] = {}
        for v, x in given.items():
            natural = from_storage(x, type_of(self.types, v))
            values[v] = Common(natural) if v in self.shared else Batch(natural)
        printed: list[dict[str, Operand]] = []
        for op in self.ops:
            if isinstance(op, Print):
                printed.append({v: values[v] for v in reads(op)})
            else:
                values |= evaluated(op, values, window)

        def result(v: str, operand: Operand) -> Any:
            return stored(operand, type_of(self.types, v), window)

        uniform = [v for v in self.makes if v in self.shared]
        out = {v: to_storage(at_places(values[v], window), type_of(self.types, v)) for v in uniform}
        out |= {v: result(v, values[v]) for v in self.makes if v not in self.shared}
        return out, tuple({v: result(v, x) for v, x in shown.items()} for shown in printed)


def borrow(inputs: Mapping[str, Any], active: jax.Array) -> Values:
    """Return inputs [lanes, ...] in which inactive lanes have those of an active one: no inner loop runs on junk."""
    lender = jnp.argmax(active)
    return {k: jnp.where(lane_mask(active, v), v, v[lender]) for k, v in inputs.items()}


Item = StraightCode | Call


@dataclass(frozen=True, slots=True)
class LocalBlock:
    """A block of a function, prepared."""

    index: int  # its program counter in its function
    number: int  # its number among the blocks of all functions
    items: tuple[Item, ...]
    terminator: Jump | Branch | Return | Fail
    written: tuple[str, ...]  # registers that it gives new values

    @property
    def cond(self) -> tuple[str, ...]:
        """The variable that its branch depends on, if there is one."""
        return (self.terminator.cond,) if isinstance(self.terminator, Branch) else ()


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """A function prepared for calls in which certain parameters are unbatched."""

    function: Function
    given: Names  # the unbatched parameters
    shared: Names  # all uniform variables, which are unbatched
    blocks: tuple[LocalBlock, ...]
    registers: tuple[str, ...]
    index: Mapping[str, int]

    @property
    def key(self) -> tuple[str, Names]:
        """The key of the plan in caches: the function's name and its unbatched parameters."""
        return self.function.name, self.given

    @property
    def exit(self) -> int:
        """The program counter of a lane that has returned."""
        return len(self.blocks)

    @property
    def offset(self) -> int:
        """The number of the first block."""
        return self.blocks[0].number

    @property
    def acyclic(self) -> bool:
        """Whether every successor of a block comes after it."""
        return all(self.index[s] > b.index for b in self.blocks for s in successors(b.terminator))

    def type(self, name: str) -> ArrayType:
        """Return the type of a variable."""
        return type_of(self.function.types, name)

    def target(self, block: LocalBlock, cond: Any, where: Callable[..., Any]) -> Any:
        """Return the program counters of lanes after a block, an int or an integer array [lanes].

        `cond` is bool[lanes], the value of the branch's variable; `where` is that of NumPy or JAX.
        """
        match block.terminator:
            case Jump(target=target):
                return self.index[target]
            case Branch(on_true=on_true, on_false=on_false):
                return where(cond, self.index[on_true], self.index[on_false])
            case _:
                return self.exit

    def landed(self, block: LocalBlock, env: Mapping[str, Any], old: Mapping[str, Any], active: jax.Array) -> Values:
        """Return the registers that a block writes, with the old values in inactive lanes."""
        return {
            v: env[v] if v in self.shared else jnp.where(lane_mask(active, env[v]), env[v], old[v])
            for v in block.written
        }

    def shown(self, env: Mapping[str, Any], fail: Fail) -> dict[str, Any]:
        """Return the values that a failure shows, by `shown_name`."""
        return {shown_name(self.function, v): env[v] for v in kept(fail)}

    def enter(self, args: Sequence[Any], lanes: int, zeros: Callable[[ArrayType, tuple[int, ...]], Any]) -> Values:
        """Return the registers of a new activation, by variable in storage form.

        Args:
            args: The arguments in storage form, [lanes, ...], or unbatched for parameters in `given`.
            lanes: The number of lanes.
            zeros: Makes zeros of a type with leading axes.
        """
        out: Values = {}
        passed = dict(zip(self.function.params, args, strict=True))
        for v in self.registers:
            axes = () if v in self.shared else (lanes,)
            stored = storage_type(self.type(v))
            if v not in passed:
                out[v] = zeros(stored, axes)
                continue
            value = as_stored(passed[v], self.type(v))
            out[v] = jnp.broadcast_to(value, (*axes, *stored.shape)) if v in self.given and axes else value
        return out


def shown_name(function: Function, name: str) -> str:
    """Return the name, outside its function, of a variable that a failure shows."""
    return f"{function.name}.{name}"


def as_stored(value: Any, type_: ArrayType) -> Any:
    """Return a value in storage form with the dtype of a variable of this type, which may be of another precision."""
    dtype = jax_dtype(storage_type(type_))
    return value if value.dtype == dtype else value.astype(dtype)


def type_of(types: Mapping[str, ArrayType | None], name: str) -> ArrayType:
    """Return the type of a variable; programs are typed before they run."""
    type_ = types[name]
    assert type_ is not None, name
    return type_


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes the plans of a program, each once. Blocks of all functions are numbered in program order."""

    program: CfgProgram
    _made: dict[tuple[str, Names], FunctionPlan] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        """The number of blocks of all functions."""
        return sum(len(f.blocks) for f in self.program.functions)

    def entry(self, args: Mapping[str, Any]) -> FunctionPlan:
        """Return the plan of the entry function for arguments by parameter, [lanes, ...] or unbatched."""
        function = self.program.function(self.program.entry)
        lane_rank = {p: len(type_of(function.types, p).shape) for p in function.params}
        return self.plan(function.name, frozenset(p for p, n in lane_rank.items() if len(np.shape(args[p])) == n))

    def callee(self, caller: FunctionPlan, call: Call) -> FunctionPlan:
        """Return the plan of the function that a call runs."""
        params = self.program.function(call.func).params
        return self.plan(call.func, frozenset(p for p, a in zip(params, call.args, strict=True) if a in caller.shared))

    def plan(self, name: str, given: Names) -> FunctionPlan:
        """Return the plan of a function whose parameters `given` are unbatched."""
        if (name, given) not in self._made:
            names = [f.name for f in self.program.functions]
            offset = sum(len(f.blocks) for f in self.program.functions[: names.index(name)])
            self._made[name, given] = _plan(self.program.function(name), given, offset)
        return self._made[name, given]


def _plan(function: Function, given: Names, offset: int) -> FunctionPlan:
    shared = uniform(function, given)
    after, out = live_after(function), live_out(function)
    live = {v for names in live_in(function).values() for v in names} | set(function.results)
    live.update(v for block in function.blocks for v in kept(block.terminator))
    blocks = tuple(
        _block(function, block, k, offset + k, after[block.label], out[block.label], shared)
        for k, block in enumerate(function.blocks)
    )
    index = {block.label: k for k, block in enumerate(function.blocks)} | {RETURN: len(blocks)}
    registers = tuple(v for v in function.types if v in live)
    return FunctionPlan(function, given, shared, blocks, registers, index)


def _block(
    function: Function, block: Block, index: int, number: int, after: Sequence[Names], out: Names, shared: Names
) -> LocalBlock:
    items: list[Item] = []
    pending: list[PureOp | Print] = []
    for k, op in enumerate(block.ops):
        if isinstance(op, Call):
            items.append(op)
            continue
        assert not isinstance(op, Check), "`lower_checks` has replaced them"
        pending.append(op)
        if k + 1 == len(block.ops) or isinstance(block.ops[k + 1], Call):
            items.append(_run(function, pending, after[k], shared))
            pending = []
    written = tuple(v for v in function.types if v in block_writes(block) & out)
    return LocalBlock(index, number, tuple(items), block.terminator, written)


def _run(function: Function, ops: Sequence[PureOp | Print], live: Names, shared: Names) -> StraightCode:
    alike = {id(op): bool(writes(op)) and shared.issuperset(writes(op)) for op in ops}
    ops = sorted(ops, key=lambda op: not alike[id(op)])
    used: dict[str, None] = {}
    made: dict[str, None] = {}
    for op in ops:
        used |= dict.fromkeys(v for v in reads(op) if v not in made)
        made |= dict.fromkeys(writes(op))
    return StraightCode(
        types=function.types,
        shared=shared,
        ops=tuple(ops),
        uses=tuple(used),
        makes=tuple(sorted(made.keys() & live)),
        may_not_end=any(op_may_not_end(op) for op in ops if not alike[id(op)]),
    )


Names = frozenset[str]


def uniform(function: Function, given: Names) -> Names:
    """Return the variables that are uniform in an activation whose parameters `given` are uniform: equal for all lanes.

    They stay unbatched, so a product with one is one matrix product over lanes.

    Results are left out: they are merged lane by lane. So are variables with several definitions, unless all of them
    move one value.
    """
    start = {p: p if p in given else None for p in function.params} | dict.fromkeys(function.results)
    return frozenset(roots((definition(op, isinstance(op, Prim | Select)) for op in function.ops), start))
