"""Networks of `examples.networks` against PyTorch and DyNet: `python -m benchmarks.networks [--only drnn] [--training]`

The seven networks that ACRoBat (Fegade et al., 2023) is measured on: pcbatch in lanes and with calls side by side,
DyNet with both of its ways to batch (`make dynet`), PyTorch example by example (`make networks`). Predictions are
compared before anything is timed. CPU seconds of a process, medians; DyNet runs in one of its own. Batches: visits of
blocks by lanes, each of which holds several operations, and the operations that DyNet runs. `benchmarks.tasks` has the
TreeLSTM batched by hand.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

import pcbatch
from benchmarks.common import interleaved_cpu_medians
from examples.networks import check
from examples.networks.run import Settings, Task

ROOT = Path(__file__).parents[1]
DYNET = ROOT / "build/dynet/bin/python"
WAYS_OF_DYNET = {"DyNet, agenda": 1, "DyNet, by depth": 2}
LANES, TASKS, TORCH = "pcbatch, lanes", "pcbatch, tasks", "PyTorch"
SIZES: Mapping[str, tuple[int, int]] = {
    "tree_lstm": (64, 256),
    "mv_rnn": (32, 64),
    "birnn": (64, 256),
    "nested_rnn": (64, 256),
    "drnn": (64, 256),
    "berxit": (64, 128),
    "stack_rnn": (64, 256),
}


@dataclass(frozen=True)
class Measured:
    """The seconds of one way, and how many batches it makes, if it is known."""

    seconds: float
    batches: int | None = None


def ours(name: str, settings: Settings) -> dict[str, Task]:
    """The network in lanes and, where it can, with calls side by side."""
    found = {}
    for way, fork in ((LANES, "never"), (TASKS, "always")):
        task = Task(name, Settings(settings.hidden, settings.batch, settings.most, fork, settings.seed))
        try:
            task.check_predictions()
        except pcbatch.UsageError:  # no two of its calls are independent
            continue
        found[way] = task
    return found


def visits(task: Task) -> int:
    """Visits by lanes of all blocks."""
    return sum(block.visits for block in task.batched.profile(task.weights, task.inputs).blocks)


def in_torch(task: Task, training: bool) -> Callable[[], Any] | None:
    """The network in PyTorch, if it is there."""
    if not check.has_torch():
        return None
    import torch

    from examples.networks import in_torch as peers

    torch.set_num_threads(1)
    if training:
        return lambda: peers.gradient(task.name, task.weights, task.examples)[0]
    w = peers.tensors(task.weights)
    return lambda: peers.predictions(task.name, w, task.examples)


def written(x: Any) -> Any:
    """An example as JSON has it: trees as nested lists."""
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, tuple):
        return written(x[0]) if len(x) == 1 else [written(part) for part in x]
    return x


def named(weights: Mapping[str, Any], before: str = "") -> dict[str, np.ndarray]:
    """Weights by name; those of a cell by `cell.name`."""
    found: dict[str, np.ndarray] = {}
    for name, value in weights.items():
        found |= named(value, f"{name}.") if isinstance(value, dict) else {before + name: np.asarray(value)}
    return found


def flat(found: Any) -> np.ndarray:
    """The numbers that are compared with those of DyNet, in a row."""
    if isinstance(found, pcbatch.Ragged):
        return np.concatenate([np.asarray(found.values[k, :n]).ravel() for k, n in enumerate(found.lengths)])
    return np.asarray(found[0] if isinstance(found, tuple) else found).ravel()


def in_dynet(task: Task, training: bool, repeats: int) -> dict[str, Measured]:
    """The network in DyNet, if it is there."""
    if not DYNET.exists():
        return {}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "weights.npz", **named(task.weights))
        examples = [written(example.x) for example in task.examples]
        content = {"network": task.name, "examples": examples, "train": training}
        content["labels"] = [example.label for example in task.examples]
        (Path(folder) / "task.json").write_text(json.dumps(content), "utf-8")
        for way, autobatch in WAYS_OF_DYNET.items():
            script = [str(DYNET), str(ROOT / "benchmarks/networks_dynet.py"), folder, f"--autobatch={autobatch}"]
            run = lambda *more: subprocess.run([*script, *more], check=True, capture_output=True, text=True)  # noqa: E731, B023
            run(f"--repeats={repeats}")
            said = json.loads((Path(folder) / "dynet.json").read_text("utf-8"))
            check.compare(np.asarray(said["said"]), flat(task.predict()), way, rtol=1e-2, atol=1e-3)
            log = run("--count")
            batches = sum(line.startswith("BatchSize:") for line in (log.stdout + log.stderr).splitlines())
            found[way] = Measured(said["training" if training else "inference"], batches)
    return found


def measure(name: str, settings: Settings, training: bool) -> dict[str, Measured]:
    """All ways, in turn."""
    tasks = ours(name, settings)
    calls = {way: task.gradient if training else task.predict for way, task in tasks.items()}
    if (peer := in_torch(tasks[LANES], training)) is not None:
        calls[TORCH] = peer
    seconds = interleaved_cpu_medians(calls, settings.repeats)
    found = {way: Measured(some) for way, some in seconds.items()}
    found[LANES] = Measured(seconds[LANES], visits(tasks[LANES]))
    return found | in_dynet(tasks[LANES], training, settings.repeats)


def row(name: str, settings: Settings, found: Mapping[str, Measured], ways: Sequence[str]) -> str:
    """A line of the table: milliseconds, and batches in brackets."""

    def cell(way: str) -> str:
        if way not in found:
            return "-"
        ms, batches = 1e3 * found[way].seconds, found[way].batches
        return f"{ms:.{1 if ms >= 10 else 2}f}" + (f" ({batches:,})" if batches is not None else "")

    return f"| {name}, {settings.hidden}, {settings.batch} | " + " | ".join(map(cell, ways)) + " |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=SIZES, default=list(SIZES))
    parser.add_argument("--batch", type=int, nargs="*", default=[8, 64])
    parser.add_argument("--size", choices=("small", "large"), nargs="*", default=["small", "large"])
    parser.add_argument("--most", type=int, help="words of an example at most, or what else its size is")
    parser.add_argument("--training", action="store_true", help="the mean loss and its gradient")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args(arguments)
    os.environ.setdefault("NPROC", "1")  # before the first computation
    ways = [LANES, TASKS, *WAYS_OF_DYNET, TORCH]
    print(f"device {jax.devices()[0].device_kind}; milliseconds, and batches in brackets")
    print("| network, hidden, batch | " + " | ".join(ways) + " |\n|" + "---|" * (1 + len(ways)), flush=True)
    for name in options.only:
        for size, hidden in zip(("small", "large"), SIZES[name], strict=True):
            for batch in options.batch if size in options.size else ():
                settings = Settings(hidden, batch, options.most, repeats=options.repeats)
                print(row(name, settings, measure(name, settings, options.training), ways), flush=True)


if __name__ == "__main__":
    main()
