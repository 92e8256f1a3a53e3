"""Codes 9xx: lanes that fail while the program runs."""

from __future__ import annotations

from pcbatch.codes.page import Page

PAGES = (
    Page(
        "PCB901",
        "lanes ran out of stack",
        """
These lanes made more nested calls than their stack has room for: `max_depth`, or as far as memory goes (`max_memory`)
where it is not set (64 inside `jax.jit`, where stacks cannot grow). The other lanes came to their end; `f.run(...)`
gives their values and a status per lane. Inside `jax.jit` this is a warning (`on_failure`), as for all lanes that fail.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_depth=8)
def total(n):
    return 0 if n == 0 else n + total(n - 1)


print(total(jnp.array([3, 12])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_depth=16)
def total(n):
    return 0 if n == 0 else n + total(n - 1)


print(total(jnp.array([3, 12])))
""",
    ),
    Page(
        "PCB902",
        "lanes did not end within `max_steps`",
        """
These lanes ran as many blocks as `max_steps` allows and were stopped. It counts the blocks of one lane, so that the
end of a lane does not depend on the others in the batch.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_steps=100)
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


print(collatz(jnp.array([6, 27])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_steps=1000)
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps = steps + 1
    return steps


print(collatz(jnp.array([6, 27])))
""",
    ),
    Page(
        "PCB903",
        "lanes failed an assertion",
        """
These lanes reached an `assert` whose condition was false. They stopped there and disturbed no other; `f.run(...)` gives
the results of the others and `Status.ASSERTION` for these.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def mean(total, count):
    assert count > 0, f"a count of {count}"
    return total / count


print(mean(jnp.array([6.0, 1.0]), jnp.array([3, 0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def mean(total, count):
    assert count > 0, f"a count of {count}"
    return total / count


print(mean.run(jnp.array([6.0, 1.0]), jnp.array([3, 0])).status)
""",
    ),
    Page(
        "PCB904",
        "lanes raised an exception",
        """
These lanes reached a `raise`. They stopped there and disturbed no other; `f.run(...)` gives the results of the others
and `Status.ERROR` for these.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def root(x):
    if x < 0:
        raise ValueError(f"no root of {x}")
    return jnp.sqrt(x)


print(root(jnp.array([4.0, -1.0])))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def root(x):
    if x < 0:
        raise ValueError(f"no root of {x}")
    return jnp.sqrt(x)


print(root.run(jnp.array([4.0, -1.0])).status)
""",
    ),
    Page(
        "PCB905",
        "lanes that had not ended when the time was over",
        """
These lanes still ran after as many seconds as `timeout` gives them, and were left as they were. The message tells the
blocks where they are; often that is a loop that does not end for some inputs. `f.run(..., timeout=...)` gives the
results of the others and `Status.RUNNING` for these; `f.start(...)` a machine that can go on later.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def count(n):
    steps = 0
    while n != 0:
        n, steps = n - 2, steps + 1
        if n < 0:
            n += 2
    return steps


print(count(jnp.array([4, 3]), timeout=0.2))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def count(n):
    steps = 0
    while n > 0:
        n, steps = n - 2, steps + 1
    return steps


print(count(jnp.array([4, 3]), timeout=60))
""",
    ),
    Page(
        "PCB910",
        "a lane computes a value that is not finite",
        """
`jax.debug_nans` or `jax.debug_infs` is on, and JAX found such a value in the result. The lane was run again, step by
step, to find the operation that gave it first. The error is a `FloatingPointError`, as JAX raises it.
""",
        bad="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def entropy(p):
    return -p * jnp.log(p)


with jax.debug_nans(True):
    print(entropy(jnp.array([0.5, 0.0])))
""",
        good="""
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def entropy(p):
    if p == 0.0:
        return 0.0
    return -p * jnp.log(p)


with jax.debug_nans(True):
    print(entropy(jnp.array([0.5, 0.0])))
""",
    ),
)
