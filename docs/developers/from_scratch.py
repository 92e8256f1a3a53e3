# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # pcbatch from scratch
#
# This page builds a toy of pcbatch: it takes plain Python functions of one example, with `if`, `while` and recursion,
# and runs them on a batch inside one `jax.lax.while_loop`. It has the three parts of the real compiler:
#
# 1. a **front end** turns the syntax tree into a graph of blocks;
# 2. **lowering** merges all functions into one program, and turns calls into pushes and jumps;
# 3. the **machine** gives each lane a program counter and a stack, and runs blocks for the lanes that wait for them.
#
# What the toy leaves out is listed at the end. The method is that of Radul et al., "Automatically Batching
# Control-Intensive Programs for Modern Accelerators", MLSys 2020.

# %%
from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# %% [markdown]
# ## The program
#
# A *block* is straight-line code with one way in; it ends in a jump. An expression without calls stays one piece, an
# `Expr`: Python text for ONE lane, compiled, with the variables that it reads. The machine evaluates it under
# `jax.vmap`, so it may hold whatever JAX can trace.


# %%
@dataclass(frozen=True)
class Expr:
    text: str
    code: CodeType = field(repr=False)
    reads: tuple[str, ...]


@dataclass(frozen=True)
class Assign:
    target: str
    value: Expr


@dataclass(frozen=True)
class Push:  # saves a variable in the lane's current frame
    name: str


@dataclass(frozen=True)
class Pop:  # brings it back
    name: str


@dataclass(frozen=True)
class Jump:
    to: int


@dataclass(frozen=True)
class Branch:
    test: Expr
    then: int
    other: int


@dataclass(frozen=True)
class Call:  # only before lowering: `target = callee(*arguments)`, then on to the block `to`
    target: str
    callee: str
    arguments: tuple[Expr, ...]
    to: int


@dataclass(frozen=True)
class PushJump:  # only after lowering: opens a frame that returns to the block `back`
    to: int
    back: int


@dataclass(frozen=True)
class Return:
    pass


@dataclass
class Block:
    body: list[Assign | Push | Pop] = field(default_factory=list)
    end: Jump | Branch | Call | PushJump | Return | None = None


@dataclass
class Function:
    name: str
    parameters: tuple[str, ...]
    blocks: list[Block]
    variables: set[str]  # parameters, what it assigns, results of calls


# %% [markdown]
# ## Front end
#
# The builder walks over the statements and appends to the current block. An `if` or a `while` closes it with a branch
# and opens others. So does a call, wherever it stands in an expression: it gets a block end of its own and a
# temporary for its result. `fib(n - 2) + fib(n - 1)` becomes `_t0 = fib(n - 2)`, `_t1 = fib(n - 1)`, `_t0 + _t1`.
#
# What is not known to be right is refused at its line, because a wrong answer is worse than none. `and` and a ternary
# would need blocks too (only one side is evaluated), so the toy refuses them.

# %%
REFUSED = (
    ast.BoolOp | ast.IfExp | ast.NamedExpr | ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
)


class Builder(ast.NodeTransformer):
    """Builds the blocks of one function. `batched`: the names of functions whose calls are calls of the lane."""

    def __init__(self, function: Callable[..., Any], batched: set[str]) -> None:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        parameters = tuple(argument.arg for argument in tree.args.args)
        stores = (part for part in ast.walk(tree) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
        self.batched, self.calls = batched, 0
        self.function = Function(tree.name, parameters, [Block()], {*parameters, *(part.id for part in stores)})
        if any(name.startswith("_") for name in self.function.variables):
            self.refuse(tree, "names with an underscore in front are the compiler's")
        self.block = self.function.blocks[0]
        self.statements(tree.body)
        if self.block.end is None:
            self.refuse(tree, "a path ends without `return`")

    def refuse(self, node: Any, why: str) -> None:
        raise SyntaxError(f"{self.function.name}, line {node.lineno}: {why}")

    def new_block(self) -> int:
        self.function.blocks.append(Block())
        return len(self.function.blocks) - 1

    def go_on_at(self, number: int) -> None:
        self.block = self.function.blocks[number]

    def close(self, end: Jump | Branch | Call | Return) -> None:
        if self.block.end is None:  # else there was a `return`
            self.block.end = end

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            if self.block.end is not None:
                self.refuse(node, "a statement that is never reached")
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=value):
                self.assign(name, value)
            case ast.AugAssign(target=ast.Name(name), op=op, value=value):
                self.assign(name, ast.BinOp(ast.Name(name, ast.Load()), op, value))
            case ast.Return(value=ast.expr() as value):
                self.assign("_result", value)
                self.close(Return())
            case ast.If(test=test, body=body, orelse=orelse):
                value, then, other, after = self.expression(test), self.new_block(), self.new_block(), self.new_block()
                self.close(Branch(value, then, other))
                for number, part in ((then, body), (other, orelse)):
                    self.go_on_at(number)
                    self.statements(part)
                    self.close(Jump(after))
                self.go_on_at(after)
                if not any(block.end == Jump(after) for block in self.function.blocks):
                    self.close(Return())  # both arms return: nobody comes here
            case ast.While(test=test, body=body, orelse=[]):
                head, inside, after = self.new_block(), self.new_block(), self.new_block()
                self.close(Jump(head))
                self.go_on_at(head)
                value = self.expression(test)
                self.close(Branch(value, inside, after))
                self.go_on_at(inside)
                self.statements(body)
                self.close(Jump(head))
                self.go_on_at(after)
            case ast.Expr(value=ast.Constant(value=str())):
                pass  # a docstring
            case _:
                self.refuse(node, f"the toy knows no {type(node).__name__}")

    def assign(self, name: str, value: ast.expr) -> None:
        result = self.expression(value)  # may hold calls: then the block is another one afterwards
        self.block.body.append(Assign(name, result))

    def expression(self, node: ast.expr) -> Expr:
        value = ast.fix_missing_locations(self.visit(node))
        names = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
        code = compile(ast.Expression(value), f"<{self.function.name}>", "eval")
        return Expr(ast.unparse(value), code, tuple(sorted(names & self.function.variables)))

    def visit(self, node: ast.AST) -> Any:
        """Takes the calls of batched functions out of an expression, innermost and leftmost first."""
        if isinstance(node, REFUSED):
            self.refuse(node, f"the toy knows no {type(node).__name__}")
        match node:
            case ast.Call(func=ast.Name(callee), args=arguments, keywords=[]) if callee in self.batched:
                values = tuple(self.expression(argument) for argument in arguments)
                target, self.calls = f"_t{self.calls}", self.calls + 1
                self.function.variables.add(target)
                after = self.new_block()
                self.close(Call(target, callee, values, after))
                self.go_on_at(after)
                return ast.Name(target, ast.Load())
        return self.generic_visit(node)


# %% [markdown]
# A function and its blocks:


# %%
def fib(n):
    if n <= 1:
        return 1
    return fib(n - 2) + fib(n - 1)


def show(blocks: Sequence[Block]) -> None:
    def said(part: Any) -> str:
        fields = {name: value.text if isinstance(value, Expr) else value for name, value in vars(part).items()}
        return f"{type(part).__name__}({', '.join(f'{name}={value!r}' for name, value in fields.items())})"

    for number, block in enumerate(blocks):
        print(f"{number}: {'; '.join(said(part) for part in [*block.body, block.end])}")


show(Builder(fib, {"fib"}).function.blocks)

# %% [markdown]
# ## Lowering
#
# All functions become one list of blocks, and variables get the name of their function in front. Then a call is this:
# the caller saves its variables in its frame (`Push`), evaluates the arguments into the parameters of the callee, and
# goes there with a return address (`PushJump`). The block behind the call brings the variables back (`Pop`) and takes
# the result.
#
# Arguments are evaluated into temporaries first: in `gcd(b, a % b)` the new `a` must not be seen by `a % b`.


# %%
@dataclass(frozen=True)
class Program:
    blocks: tuple[Block, ...]
    parameters: tuple[str, ...]
    variables: tuple[str, ...]
    scope: dict[str, Any]  # globals of the functions


def lower(functions: Sequence[Callable[..., Any]]) -> Program:
    """One program; the first function is its entry."""
    names = {function.__name__ for function in functions}
    built = {function.__name__: Builder(function, names).function for function in functions}
    first, count = {}, 0
    for name, function in built.items():
        first[name], count = count, count + len(function.blocks)
    merged: list[Block] = []
    for function in built.values():
        merged += [lowered(block, function, built, first) for block in function.blocks]
    for block in [block for block in merged if isinstance(block.end, Call)]:
        call(block, built, first, merged)
    variables = {part.target for block in merged for part in block.body if isinstance(part, Assign)}
    entry = built[functions[0].__name__]
    parameters = tuple(f"{entry.name}.{name}" for name in entry.parameters)
    return Program(tuple(merged), parameters, tuple(sorted(variables | {*parameters})), dict(functions[0].__globals__))


def lowered(block: Block, function: Function, built: dict[str, Function], first: dict[str, int]) -> Block:
    """With the numbers and names of the whole program; calls keep their place."""
    here = first[function.name]

    def named(expr: Expr) -> Expr:
        return replace(expr, reads=tuple(f"{function.name}.{name}" for name in expr.reads))

    body = [Assign(f"{function.name}.{a.target}", named(a.value)) for a in block.body if isinstance(a, Assign)]
    match block.end:
        case Jump(to):
            return Block(body, Jump(here + to))
        case Branch(test, then, other):
            return Block(body, Branch(named(test), here + then, here + other))
        case Call(target, callee, arguments, to):
            target = f"{function.name}.{target}"
            return Block(body, Call(target, callee, tuple(map(named, arguments)), here + to))
    return Block(body, Return())


def call(block: Block, built: dict[str, Function], first: dict[str, int], merged: list[Block]) -> None:
    """Replace a call by pushes and a jump, and pops where it comes back to."""
    assert isinstance(block.end, Call)
    target, callee, arguments, to = block.end.target, block.end.callee, block.end.arguments, block.end.to
    caller = target.partition(".")[0]
    saved = sorted(f"{caller}.{name}" for name in built[caller].variables)
    block.body += [Push(name) for name in saved]
    passing = [f"{callee}._argument{k}" for k in range(len(arguments))]
    block.body += [Assign(name, value) for name, value in zip(passing, arguments, strict=True)]
    for name, parameter in zip(passing, built[callee].parameters, strict=True):
        block.body.append(Assign(f"{callee}.{parameter}", copy_of(name)))
    merged[to].body[:0] = [*map(Pop, saved), Assign(target, copy_of(f"{callee}._result"))]
    block.end = PushJump(first[callee], to)


def copy_of(variable: str) -> Expr:
    name = variable.partition(".")[2]
    return Expr(variable, compile(name, "<copy>", "eval"), (variable,))


show(lower([fib]).blocks)

# %% [markdown]
# ## The machine
#
# Its state has one number per lane for the program counter, for the depth of the stack, and for each variable; and
# for each variable a frame per depth. Everything is an integer here; the real machine has pytrees of arrays, with
# types inferred by tracing.
#
# A *trip* chooses one block and runs it under a mask: all lanes compute, and the lanes whose program counter is that
# block keep what they computed. Which block is chosen is the *policy*. It changes time, never a result. The loop ends
# when all lanes stand at EXIT, the number behind the last block.

# %%
State = dict[str, Any]


def evaluate(expr: Expr, program: Program, registers: State) -> jax.Array:
    values = {name.partition(".")[2]: registers[name] for name in expr.reads}
    if not values:
        return jnp.asarray(eval(expr.code, program.scope))
    return jax.vmap(lambda values: jnp.asarray(eval(expr.code, program.scope, values)))(values)


def run_block(program: Program, number: int, state: State) -> State:
    block, lanes = program.blocks[number], jnp.arange(len(state["pc"]))
    here, depth = state["pc"] == number, state["depth"]
    registers, frames, back = dict(state["registers"]), dict(state["frames"]), state["back"]
    row = jnp.where(here, depth, -1 - len(back))  # out of range for the others: nothing is written
    for part in block.body:
        match part:
            case Assign(name, value):
                new = evaluate(value, program, registers)
                registers[name] = jnp.where(here, new, registers[name]).astype(registers[name].dtype)
            case Push(name):
                frames[name] = frames[name].at[row, lanes].set(registers[name], mode="drop")
            case Pop(name):
                registers[name] = jnp.where(here, frames[name][depth, lanes], registers[name])
    match block.end:
        case Jump(to):
            pc = jnp.full_like(state["pc"], to)
        case Branch(test, then, other):
            pc = jnp.where(evaluate(test, program, registers), then, other)
        case PushJump(to, address):
            back = back.at[row, lanes].set(address, mode="drop")
            pc, depth = jnp.full_like(depth, to), depth + 1
        case Return():
            depth = depth - 1
            pc = jnp.where(depth < 0, len(program.blocks), back[depth, lanes])
    state = state | {"registers": registers, "frames": frames, "back": back, "trips": state["trips"] + 1}
    return state | {"pc": jnp.where(here, pc, state["pc"]), "depth": jnp.where(here, depth, state["depth"])}


def earliest(pc: jax.Array, blocks: int) -> jax.Array:
    return jnp.min(pc)


def fullest(pc: jax.Array, blocks: int) -> jax.Array:
    return jnp.argmax(jnp.sum(pc[:, None] == jnp.arange(blocks)[None, :], axis=0))


# %% [markdown]
# A lane that calls deeper than there are frames would read another's variables or lose its own. So it must be seen:
# its depth is more than the number of frames, and the toy raises. (The real machine parks the lane and grows the
# stack.)


# %%
def batch(*functions: Callable[..., Any], policy: Any = earliest, max_depth: int = 32) -> Callable[..., Any]:
    """The first function on a batch; the others may be called by it, and by one another."""
    program = lower(functions)
    exit_, count = len(program.blocks), len(program.blocks)

    @jax.jit
    def run(*arguments: jax.Array) -> State:
        lanes = len(arguments[0])
        zeros, frame = jnp.zeros(lanes, jnp.int32), jnp.zeros((max_depth, lanes), jnp.int32)
        registers = dict.fromkeys(program.variables, zeros) | dict(zip(program.parameters, arguments, strict=True))
        state = {"pc": zeros, "depth": zeros, "back": frame, "registers": registers}
        state |= {"frames": dict.fromkeys(program.variables, frame), "trips": jnp.int32(0)}
        steps = [lambda state, k=k: run_block(program, k, state) for k in range(count)]

        def trip(state: State) -> State:
            return jax.lax.switch(policy(state["pc"], count), steps, state)

        def going(state: State) -> jax.Array:
            return jnp.any(state["pc"] < exit_) & jnp.all(state["depth"] <= max_depth)

        return jax.lax.while_loop(going, trip, state)

    def call_batch(*arguments: Any) -> tuple[np.ndarray, int]:
        end = run(*(jnp.asarray(argument, jnp.int32) for argument in arguments))
        if np.any(end["depth"] > max_depth):
            raise RecursionError(f"a lane has more than {max_depth} calls open")
        return np.asarray(end["registers"][f"{functions[0].__name__}._result"]), int(end["trips"])

    return call_batch


# %% [markdown]
# ## It runs
#
# Each lane gives what the plain function gives.

# %%
ns = np.arange(12)
for policy in (earliest, fullest):
    values, trips = batch(fib, policy=policy)(ns)
    assert values.tolist() == [fib(int(n)) for n in ns]
    print(policy.__name__, values, trips, "trips")


# %%
def gcd(a, b):
    if b == 0:
        return a
    return gcd(b, a % b)


def steps(n):
    """A loop, an `if` in it, and a call."""
    count = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    return gcd(count, 12)


pairs = np.random.default_rng(0).integers(0, 1000, (2, 50))
values, trips = batch(gcd)(*pairs)
assert values.tolist() == [math.gcd(int(a), int(b)) for a, b in pairs.T]
print("gcd of", len(values), "pairs:", trips, "trips")

values, trips = batch(steps, gcd)(np.arange(1, 30))
assert values.tolist() == [steps(n) for n in range(1, 30)]
print("steps:", trips, "trips")

# %% [markdown]
# ## What is missing
#
# | the toy | pcbatch |
# |---|---|
# | integers | pytrees of arrays; types are inferred by tracing, to a fixpoint over loops and calls |
# | saves all variables at each call | what is live behind it and may change; pushes and pops that cancel are dropped |
# | `gcd` opens a frame for each call | a call in tail position is a jump |
# | reads 0 from a variable that a path leaves unassigned | refuses the function |
# | a block for each piece of syntax | inlining, if-conversion, tail duplication: fewer and larger blocks |
# | all lanes compute each block | a few lanes at a time, where few wait |
# | frames of fixed depth | stacks that grow between two runs |
# | no gradient | a tape of block visits, and a machine that runs it backwards |
#
# [The architecture](architecture.md) goes through the real one.
