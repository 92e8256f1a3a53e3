"""Codes 408 to 413: making, lowering and calling batched functions."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB408",
        "no argument says how many lanes there are",
        """
The number of lanes is the size of a mapped axis. When all arguments are shared, static or left out, nothing tells how
many lanes should run.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(in_axes=None)
def double(n):
    return n + n


print(double(3))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(in_axes=(None, 0))
def double(n, lane):
    return n + n


print(double(3, jnp.arange(4)))
""",
    ),
    Page(
        "PCB409",
        "`pcbatch.batch` of something that is no Python function",
        """
The compiler reads Python source. A builtin, a class, a callable object or a function already compiled by JAX has none
that it could read; put the call into a function of your own.
""",
        bad="""
import jax.numpy as jnp
import pcbatch

root = pcbatch.batch(jnp.sqrt)
print(root(jnp.array([1.0, 4.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def root(x):
    return jnp.sqrt(x)


print(root(jnp.array([1.0, 4.0])))
""",
    ),
    Page(
        "PCB410",
        "a stage that does not exist, or needs types",
        """
`f.lower(...).as_text(stage)` shows one of the stages `ast`, `cfg`, `stack`, `opt`, `schedule`, `jaxpr`, `stablehlo`.
The last three exist only for given types of all arguments.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return n + n


print(double.lower(jnp.arange(3)).as_text("llvm"))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return n + n


print(double.lower(jnp.arange(3)).as_text("stablehlo"))
""",
    ),
    Page(
        "PCB411",
        'a recursive function of the strategy "local" inside a trace',
        """
Local static autobatching keeps recursion in Python on the host, one compiled piece after the other, so it is no single
program that `jax.jit` could hold. The strategy "pc" is one program, recursion included.
""",
        bad="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(strategy="local")
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(jax.jit(fib)(jnp.array([3, 7])))
""",
        good="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(strategy="pc")
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


print(jax.jit(fib)(jnp.array([3, 7])))
""",
    ),
    Page(
        "PCB412",
        "a batched function is called where the compiler does not see it",
        """
A lane calls a batched function by its name, so that the call can become control flow. Through a helper or a container
the call happens inside a primitive, while compiling, with the values of one lane in place of a batch.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def halve(n):
    return n if n < 2 else halve(n // 2)


def helper(n):
    return halve(n) + 1


@pcbatch.batch
def main(n):
    return helper(n)


print(main(jnp.array([7, 8])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def halve(n):
    return n if n < 2 else halve(n // 2)


@pcbatch.batch
def main(n):
    return halve(n) + 1


print(main(jnp.array([7, 8])))
""",
    ),
    Page(
        "PCB413",
        "arguments of other types than a program was compiled for",
        """
`f.lower(...).compile()` gives a program for one set of types and one number of lanes. The function itself compiles
what it has not compiled yet.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return n + n


compiled = double.lower(jnp.arange(3)).compile()
print(compiled(jnp.arange(5)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def double(n):
    return n + n


print(double(jnp.arange(5)))
""",
    ),
)
