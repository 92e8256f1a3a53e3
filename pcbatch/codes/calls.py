"""Codes 204 to 208 and 213: calls of batched functions."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB204",
        "arguments that do not fit a batched function",
        """
Calls of batched functions are bound to their parameters while compiling, by Python's rules. This call has an argument
too many, lacks one, or names a parameter that does not exist.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def power(x, k):
    return x if k == 0 else x * power(x)


print(power(jnp.array([2.0, 3.0]), jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def power(x, k):
    return x if k == 0 else x * power(x, k - 1)


print(power(jnp.array([2.0, 3.0]), jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB205",
        "a call of a batched function unpacks what cannot be counted",
        """
Which argument goes to which parameter is decided before types are known. One `*values` fills the parameters that are
left, if none of them has a default. `**values`, a second star, and a star for optional parameters leave it open.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def gcd(a, b):
    following = {"a": b, "b": a % b}
    return a if b == 0 else gcd(**following)


print(gcd(jnp.array([12, 18]), jnp.array([8, 27])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def gcd(a, b):
    following = {"a": b, "b": a % b}
    return a if b == 0 else gcd(following["a"], following["b"])


print(gcd(jnp.array([12, 18]), jnp.array([8, 27])))
""",
    ),
    Page(
        "PCB206",
        "a batched function is called inside a nested function or a comprehension",
        """
A nested function or a comprehension is part of one primitive, which JAX traces at once. The call of a batched function
is control flow of the lane and has to stand in its own statements.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def depth(n):
    return 0 if n < 2 else 1 + depth(n // 2)


@pcbatch.batch
def total(n):
    return sum([depth(n + k) for k in range(3)])


print(total(jnp.array([1, 9])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def depth(n):
    return 0 if n < 2 else 1 + depth(n // 2)


@pcbatch.batch
def total(n):
    found = 0
    for k in range(3):
        found = found + depth(n + k)
    return found


print(total(jnp.array([1, 9])))
""",
    ),
    Page(
        "PCB207",
        "a batched function is used as a value",
        """
Which function a lane calls must be known while compiling: it may be called, or passed to a batched function, and not
chosen by a value of the lane. To hand the function of one example to JAX (`jax.grad`, `jax.vmap`), take `f.plain`.
""",
        bad="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def energy(x):
    return x * x


@pcbatch.batch
def force(x):
    return -jax.grad(energy)(x)


print(force(jnp.array([1.0, 2.0])))
""",
        good="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def energy(x):
    return x * x


@pcbatch.batch
def force(x):
    return -jax.grad(energy.plain)(x)


print(force(jnp.array([1.0, 2.0])))
""",
    ),
    Page(
        "PCB208",
        "a batched function is made inside another one",
        """
A batched function is compiled with the functions that call it, and cannot see the variables of one lane of its
caller. Define it outside and pass what it needs.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def outer(n):
    @pcbatch.batch
    def inner(k):
        return k + n

    return inner(n)


print(outer(jnp.array([1, 2])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def inner(k, n):
    return k + n


@pcbatch.batch
def outer(n):
    return inner(n, n)


print(outer(jnp.array([1, 2])))
""",
    ),
    Page(
        "PCB213",
        "an inline function calls itself",
        """
A copy of an inline function is put at each of its calls. A copy of one that calls itself, directly or through others,
would hold a copy of itself, without end. Decorated with `pcbatch.batch` it is called, and may recurse.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.inline
def log2(n):
    return 0 if n < 2 else 1 + log2(n // 2)


@pcbatch.batch
def digits(n):
    return log2(n) + 1


print(digits(jnp.array([1, 9])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def log2(n):
    return 0 if n < 2 else 1 + log2(n // 2)


@pcbatch.batch
def digits(n):
    return log2(n) + 1


print(digits(jnp.array([1, 9])))
""",
    ),
)
