"""Codes 440 to 444: runs that are looked after, kept and gone on with, and how much memory they take."""

from __future__ import annotations

from pcbatch.codes.page import Page

_COLLATZ = """
import jax
import jax.numpy as jnp
import pcbatch


@pcbatch.batch
def steps(n):
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count

"""
_KEPT = """
import tempfile
from pathlib import Path

import jax.numpy as jnp
import pcbatch

folder = Path(tempfile.mkdtemp())


@pcbatch.batch
def down(n):
    while n > 0:
        n -= 1
    return n


down.start(jnp.arange(9)).advance(3).save(folder / "run.npz")
"""

PAGES = (
    Page(
        "PCB440",
        "a value that an option of a long run does not take",
        """
`timeout` and `every` are numbers of seconds, `max_trips` is a whole number; `every` goes with `save_to`. A machine
that `advance(..., donate=True)` was called on has given its memory away, and machines are saved, not pickled.
""",
        bad=_COLLATZ + '\nprint(steps.run(jnp.arange(1, 9), timeout="1 minute").value)\n',
        good=_COLLATZ + "\nprint(steps.run(jnp.arange(1, 9), timeout=60).value)\n",
    ),
    Page(
        "PCB441",
        "a long run inside `jit`",
        """
Progress, time limits and checkpoints are looked after by the host, between the programs that the devices run. Inside
`jax.jit` and other transformations there is one program, and no host between its trips. There, `max_steps` ends lanes
that go on for too long.
""",
        bad=_COLLATZ + "\nprint(jax.jit(lambda ns: steps.run(ns, timeout=60).value)(jnp.arange(1, 9)))\n",
        good=_COLLATZ + "\nprint(jax.jit(lambda ns: steps.run(ns).value)(jnp.arange(1, 9)))\n"
        "print(steps.run(jnp.arange(1, 9), timeout=60).value)\n",
    ),
    Page(
        "PCB442",
        "a file that holds no run, or a path where none can be kept",
        """
What `m.save(path)` and `save_to=` write is an archive with a checksum for each part. It is written under another
name and moved to its place when all of it is on the disk, so an interrupted write leaves the file that was there. A
file that is refused all the same was cut off or changed by somebody else, or is of another kind.
""",
        bad=_KEPT
        + """
whole = (folder / "run.npz").read_bytes()
(folder / "part.npz").write_bytes(whole[:1000])
print(down.load(folder / "part.npz").advance().result().value)
""",
        good=_KEPT + '\nprint(down.load(folder / "run.npz").advance().result().value)\n',
    ),
    Page(
        "PCB443",
        "a run of another program",
        """
A run that was kept goes on with the program that began it: the same function with the same constants, arguments of the
same types, the same version of pcbatch and settings of JAX, as many devices. With `save_to=` the arguments are the
same too. Otherwise results would be a mixture of two programs.
""",
        bad=_KEPT
        + """

@pcbatch.batch
def faster(n):
    while n > 0:
        n -= 2
    return n


print(faster.load(folder / "run.npz").advance().result().value)
""",
        good=_KEPT + '\nprint(down.load(folder / "run.npz").advance().result().value)\n',
    ),
    Page(
        "PCB444",
        "a state that does not fit",
        """
All lanes have registers and frames of the same size, so what a machine takes is known before it is made. `max_memory`
is the most that it may take on each device, half of the device's memory where it is not set. `f.map` runs as many
inputs as there are through few lanes, in chunks if need be.
""",
        bad="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_memory="1MB")
def walk(n):
    x = jnp.zeros(10_000)
    for i in range(n):
        x = x.at[i].add(1.0)
    return x.sum()


print(walk(jnp.arange(100)))
""",
        good="""
import jax.numpy as jnp
import pcbatch


@pcbatch.batch(max_memory="1MB")
def walk(n):
    x = jnp.zeros(10_000)
    for i in range(n):
        x = x.at[i].add(1.0)
    return x.sum()


print(walk.map(jnp.arange(100), lanes=8).value)
""",
    ),
)
