"""Networks of `examples.networks` against other ways to batch them: `python -m benchmarks.networks --only drnn`

The seven networks that ACRoBat (Fegade et al., 2023) is measured on, and others of `examples.networks`: pcbatch as it
chooses itself and with calls side by side, DyNet with both of its ways to batch (`make dynet`), PyTorch example by
example (`make networks`), and JAX batched by hand where there is a natural way. `--training`: a step, which is the mean
loss and its gradient by all weights. Results are compared before anything is timed. CPU seconds of a process, medians;
DyNet runs in one of its own. Batches, of the forward pass: visits of blocks, each of which holds several operations
(they are not counted for `--training`); the operations that DyNet runs; the steps of a loop by hand, whose plans are
made beforehand. Without PyTorch examples
are compared with plain Python, which takes long: use `build/torch/bin/python`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

import pcbatch
from benchmarks import networks_by_hand
from benchmarks.common import interleaved_cpu_medians
from benchmarks.networks_by_hand import ByHand
from examples.networks import check
from examples.networks.run import Settings, Task
from examples.networks.visits import made
from pcbatch.api.learn_schedule import sampled

ROOT = Path(__file__).parents[1]
DYNET = ROOT / "build/dynet/bin/python"
DYNET_NETWORKS = ("tree_lstm", "mv_rnn", "birnn", "nested_rnn", "drnn", "berxit", "stack_rnn")
WAYS_OF_DYNET = {"DyNet, agenda": 1, "DyNet, by depth": 2}
FORKS = {"auto": "pcbatch", "always": "pcbatch, tasks", "never": "pcbatch, lanes"}
TORCH, BY_HAND = "PyTorch", "by hand"
SIZES: Mapping[str, tuple[int, int]] = {
    "tree_lstm": (64, 256),
    "mv_rnn": (32, 64),
    "birnn": (64, 256),
    "nested_rnn": (64, 256),
    "drnn": (64, 256),
    "berxit": (64, 128),
    "stack_rnn": (64, 256),
    "rae": (64, 256),
    "two_types": (64, 256),
    "nary_tree_lstm": (64, 256),
    "lattice_lstm": (64, 256),
    "lstm": (64, 256),
    "nasrnn": (64, 256),
    "attention": (64, 256),
    "seq2seq": (64, 256),
    "blockdrop": (32, 64),
    "skipnet": (64, 256),
    "tree_rae": (64, 256),
}


@dataclass(frozen=True)
class Measured:
    """The seconds of one way, and how many batches it makes, if it is known."""

    seconds: float
    batches: int | None = None


def ours(name: str, settings: Settings, forks: Sequence[str]) -> dict[str, Task]:
    """The network as pcbatch runs it, by the name of the way."""
    found = {}
    for fork in forks:
        task = Task(name, Settings(settings.hidden, settings.batch, settings.most, fork, settings.seed))
        try:
            sampled(task.batched, (task.weights, task.inputs), {})
        except pcbatch.UsageError:  # no two of its calls are independent
            continue
        found[FORKS[fork]] = task
    return found


def forks_by_itself(task: Task) -> bool:
    """Whether the function runs calls side by side without being asked to."""
    program, given = sampled(task.batched, (task.weights, task.inputs), {})
    return program.tasks is not None and program.tasks.takes(given.lanes)


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
    if not DYNET.exists() or task.name not in DYNET_NETWORKS:
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
            if training:
                check.compare(np.asarray(said["loss"]), np.asarray(task.gradient()[0]), way, rtol=1e-2, atol=1e-3)
            log = run("--count")
            batches = sum(line.startswith("BatchSize:") for line in (log.stdout + log.stderr).splitlines())
            found[way] = Measured(said["training" if training else "inference"], batches)
    return found


def compared(tasks: Mapping[str, Task], by_hand: Mapping[str, ByHand], training: bool) -> None:
    """Stop if two ways differ; the first is compared with each example by itself."""
    first = next(iter(tasks.values()))
    first.check_predictions()
    for way, one in by_hand.items():
        found = networks_by_hand.shown(first, one.predict(first.weights))
        check.compare(found, flat(first.predict()), way, check.RTOL, check.ATOL)
    for way, task in tasks.items():
        check.compare(flat(task.predict()), flat(first.predict()), way)
    if training:
        slope = first.gradient()
        if check.has_torch():
            first.check_gradient()
        for way, one in (dict(tasks) | dict(by_hand)).items():
            found = one.gradient() if isinstance(one, Task) else one.gradient(first.weights)
            check.compare(found, slope, f"gradient, {way}")


def measure(name: str, settings: Settings, training: bool, forks: Sequence[str]) -> dict[str, Measured]:
    """All ways, in turn. What runs calls side by side by itself is not run a second time as such."""
    tasks = ours(name, settings, forks)
    first = next(iter(tasks.values()))
    by_itself = not training and {FORKS["auto"], FORKS["always"]} <= tasks.keys() and forks_by_itself(first)
    if by_itself:
        del tasks[FORKS["always"]]
    by_hand = networks_by_hand.ways(first)
    compared(tasks, by_hand, training)
    calls: dict[str, Callable[[], Any]] = {}
    for way, task in tasks.items():
        calls[way] = task.gradient if training else task.predict
    for way, one in by_hand.items():
        calls[way] = partial(one.gradient if training else one.predict, first.weights)
    if (peer := in_torch(first, training)) is not None:
        calls[TORCH] = peer
    seconds = interleaved_cpu_medians(calls, settings.repeats)
    found = {way: Measured(some) for way, some in seconds.items()}
    for way, task in tasks.items() if not training else ():
        found[way] = Measured(seconds[way], made(task.batched, task.weights, task.inputs))
    if by_itself:
        found[FORKS["always"]] = found[FORKS["auto"]]
    if by_hand:
        best = min(by_hand, key=lambda way: seconds[way])
        found[BY_HAND] = Measured(seconds[best], by_hand[best].steps)
    return found | in_dynet(first, training, settings.repeats)


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
    parser.add_argument("--fork", nargs="*", choices=FORKS, default=["auto", "always"])
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args(arguments)
    os.environ.setdefault("NPROC", "1")  # before the first computation
    ways = [*(FORKS[fork] for fork in options.fork), BY_HAND, *WAYS_OF_DYNET, TORCH]
    print(f"device {jax.devices()[0].device_kind}; milliseconds, and batches in brackets")
    print("| network, hidden, batch | " + " | ".join(ways) + " |\n|" + "---|" * (1 + len(ways)), flush=True)
    for name in options.only:
        for size, hidden in zip(("small", "large"), SIZES[name], strict=True):
            for batch in options.batch if size in options.size else ():
                settings = Settings(hidden, batch, options.most, repeats=options.repeats)
                found = measure(name, settings, options.training, options.fork)
                print(row(name, settings, found, ways), flush=True)


if __name__ == "__main__":
    main()
