"""Codes 414, 415 and 417 to 419: devices, and many inputs through few lanes."""

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
_ADD = """
import numpy as np
import pcbatch


@pcbatch.batch
def power(x, n):
    y = 1.0
    while n > 0:
        y *= x
        n -= 1
    return y


xs, ns = np.ones(100, np.float32), np.arange(100)
"""

PAGES = (
    Page(
        "PCB414",
        "devices that there are not, or no devices",
        """
`devices=` takes a number, "all", devices of JAX, a mesh, or how lanes lie on one (a `jax.NamedSharding`, or a `jax.P`
for the mesh of `jax.set_mesh`); `mesh=` a mesh or a sharding. JAX has one device for all cores of a CPU, unless
`pcbatch.use_cpu_devices(4)` is called before anything else uses JAX. Inside a `jax.shard_map` every device has lanes
of its own already, and chunks go to devices of this process only, as runs do that have a time limit or are kept.
""",
        bad=_COLLATZ + "\nprint(steps(jnp.arange(1, 9), devices=4096))\n",
        good=_COLLATZ + '\nprint(steps(jnp.arange(1, 9), devices="all"))\n',
    ),
    Page(
        "PCB415",
        'what the strategy "local" cannot do',
        """
With `strategy="local"` lanes wait for each other at calls, and Python makes the recursive ones. So a lane cannot take
a new input while others still run, as `map` wants it, and all lanes are on one device. There are no policies and modes
either, which `explain_schedule` and `profile` tell about, no state between trips, which `start` and `timeout=` need,
and no tape, so no reverse mode: `jax.jvp` and `jax.jacfwd` work, `jax.grad` does not.
""",
        bad=_COLLATZ + '\nprint(steps.with_options(strategy="local").map(jnp.arange(1, 9)).value)\n',
        good=_COLLATZ + '\nprint(steps.with_options(strategy="pc").map(jnp.arange(1, 9)).value)\n',
    ),
    Page(
        "PCB417",
        "a value that an option of `map` does not take",
        """
`lanes` is the width of the machine on each device and `chunk` the number of inputs that are sent at a time: positive
integers. `progress` is a function of two numbers, or True for a bar, which needs the package tqdm.
""",
        bad=_COLLATZ + "\nprint(steps.map(jnp.arange(1, 9), lanes=0).value)\n",
        good=_COLLATZ + "\nprint(steps.map(jnp.arange(1, 9)).value)\n",
    ),
    Page(
        "PCB418",
        "chunks that do not fit together",
        """
An iterator of chunks is the only positional argument of `map`. Each chunk is a tuple of arguments as in a call (or,
for one parameter, the argument); all have the types, and the shared values, of the first. There must be one chunk,
because its types tell those of the result.
""",
        bad=_ADD + "print(power.map(iter(np.split(xs, 4)), iter(np.split(ns, 4))).value)\n",
        good=_ADD + "print(power.map(zip(np.split(xs, 4), np.split(ns, 4))).value)\n",
    ),
    Page(
        "PCB419",
        "chunks or progress inside `jit`",
        """
Chunks are sent, and progress is told, by the host between the programs that the devices run. Inside `jax.jit` there is
one program: give `map` whole arrays there, or call it outside.
""",
        bad=_COLLATZ + "\nprint(jax.jit(lambda ns: steps.map(ns, chunk=4).value)(jnp.arange(1, 9)))\n",
        good=_COLLATZ + "\nprint(jax.jit(lambda ns: steps.map(ns).value)(jnp.arange(1, 9)))\n",
    ),
)
