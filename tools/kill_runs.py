"""Kills runs with SIGKILL at random moments and has them go on: `python -m tools.kill_runs [--times 20] [run] [tasks]`

A child process runs a batched function with a checkpoint after every look; it is killed once or more often, anywhere:
in a trip, between two, in the middle of a write. The one that lives to the end must give, bit for bit, what a run gives
that nobody has killed. Prints `20 of 20`, and ends with status 1 if it is less.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pcbatch

ROOT = Path(__file__).parents[1]
KINDS = ("run", "map", "stream", "tasks")
LANES = 60
PATIENCE = 120  # seconds that a child may take


@pcbatch.batch
def wander(key, n):
    """Recursion, draws and a chaotic sequence: a state that is off by one bit ends elsewhere."""
    x = 0.5
    for _ in range(3 * n):
        key, sub = jax.random.split(key)
        x = 3.9 * x * (1 - x) + 1e-3 * jax.random.uniform(sub)
        x = jnp.clip(x, 0.01, 0.99)
    return x + (wander(key, n // 2) if n > 3 else 0.0)


@pcbatch.batch(plan=pcbatch.Plan(fork="always"))
def split(key, n):
    """Two calls side by side, each with draws of its own."""
    if n <= 1:
        return jax.random.uniform(key)
    left, right = jax.random.split(key)
    return 0.7 * split(left, n - 2) + jnp.sin(split(right, n - 1))


def arguments() -> tuple[Any, ...]:
    """Runs of unequal length."""
    return jax.random.split(jax.random.key(0), LANES), jnp.arange(LANES, dtype=jnp.int32) * 25


def chunks() -> Iterator[Any]:
    """The same, seven at a time."""
    keys, ns = arguments()
    return ((keys[k : k + 7], ns[k : k + 7]) for k in range(0, LANES, 7))


def compute(kind: str, path: Path | None = None) -> np.ndarray:
    """The bits of all results. `path`: of a checkpoint."""
    kept: dict[str, Any] = {} if path is None else {"save_to": path, "every": 0.0}
    match kind:
        case "run":
            result = wander.run(*arguments(), **kept)
        case "tasks":
            keys, ns = arguments()
            result = split.run(keys, ns // 100 + 4, **kept)
        case "map":
            result = wander.map(*arguments(), lanes=16, **kept)
        case _:
            result = wander.map(chunks(), lanes=16, chunk=7, **kept)
    if np.any(np.asarray(result.status)):
        raise SystemExit("a lane did not end")
    return np.asarray(result.value).view(np.uint32)


def child(kind: str, folder: Path) -> None:
    """The run that is killed."""
    from pcbatch.runtime.execute import host_loop

    host_loop.STRETCH = 0.01  # so short a run has many looks
    bits = compute(kind, folder / "run.npz")
    np.save(folder / "bits.part.npy", bits)
    (folder / "bits.part.npy").replace(folder / "bits.npy")


def spawn(kind: str, folder: Path) -> subprocess.Popen[bytes]:
    """A child."""
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(folder.parent / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-m", "tools.kill_runs", "--child", str(folder), kind]
    return subprocess.Popen(command, cwd=ROOT, env={**environment(), **cache}, stdin=subprocess.DEVNULL)


def environment() -> dict[str, str]:
    """In which a child finds the package."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def once(kind: str, folder: Path, kills: int, chance: random.Random) -> tuple[np.ndarray, int]:
    """A run that is killed so often, if it lives so long; its bits, and how often it was."""
    killed = 0
    while not (folder / "bits.npy").exists():
        with spawn(kind, folder) as process:
            if killed < kills:
                killed += _kill(process, folder / "run.npz", chance)
            if process.wait(PATIENCE) not in (0, -9):
                raise SystemExit(f"{kind}: a child ended with {process.returncode}")
    found: np.ndarray = np.load(folder / "bits.npy")
    return found, killed


def _kill(process: subprocess.Popen[bytes], checkpoint: Path, chance: random.Random) -> bool:
    """Wait until this child has written something, and a moment longer."""
    before, end = _written(checkpoint), time.monotonic() + PATIENCE
    while _written(checkpoint) == before and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    time.sleep(chance.expovariate(1 / 0.15))
    alive = process.poll() is None
    process.kill()
    return alive


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def times(kind: str, count: int, seed: int = 0, kills: int = 3) -> tuple[int, int]:
    """The number of times that the bits were right, and of children that were killed."""
    expected, chance, right, killed = compute(kind), random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as there:
        for k in range(count):
            folder = Path(there) / str(k)
            folder.mkdir()
            bits, how_often = once(kind, folder, chance.randint(1, kills), chance)
            right, killed = right + bool(np.array_equal(bits, expected)), killed + how_often
    return right, killed


def main(given: list[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(given)
    if chosen.child is not None:
        child(chosen.kinds[0], chosen.child)
        return 0
    failed = 0
    for kind in chosen.kinds:
        right, killed = times(kind, chosen.times, chosen.seed)
        print(f"{kind}: {right} of {chosen.times} bit-identical, {killed} processes killed", flush=True)
        failed += chosen.times - right
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
