"""Command line: train a TreeLSTM on generated trees, say how it does on others."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from examples.options import at_least, check_outputs, positive, write_json
from examples.treelstm import report
from examples.treelstm.checkpoint import CheckpointError
from examples.treelstm.data import highest
from examples.treelstm.train import (
    Data,
    Gradient,
    Progress,
    Saver,
    Settings,
    level_by_level,
    make_data,
    recursive,
    resume,
    start,
    train,
)

DEFAULT = Settings()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(argv)
    _check(parser, options)
    os.environ.setdefault("NPROC", "1")  # threads of XLA: steps this small lose to their hand-over
    settings = Settings(
        trees=options.trees,
        held_out=options.held_out,
        most=options.most,
        everywhere=options.loss == "nodes",
        hidden=options.hidden,
        batch=options.batch,
        epochs=options.epochs,
        rate=options.rate,
        seed=options.seed,
    )
    data = make_data(settings)
    print(report.describe(data), flush=True)
    try:
        progress = resume(options.checkpoint, settings) if _goes_on(options) else start(settings)
    except CheckpointError as error:
        parser.error(str(error))
    began, before = time.perf_counter(), progress.step
    gradient = level_by_level() if options.by_hand else recursive(highest(data.train))
    progress = _train(settings, data, gradient, progress, options)
    numbers = report.metrics(settings, data, progress, progress.step - before, time.perf_counter() - began)
    print(report.summary(numbers))
    if options.json:
        write_json(options.json, numbers)
    if options.plot:
        from examples.treelstm.plots import plot_training

        plot_training(settings, progress, numbers, options.plot)
    return 0


def _goes_on(options: argparse.Namespace) -> bool:
    return bool(options.resume and options.checkpoint.exists())


def _train(
    settings: Settings, data: Data, gradient: Gradient, progress: Progress, options: argparse.Namespace
) -> Progress:
    """With a progress bar, and checkpoints if asked for."""
    from tqdm import tqdm

    total = settings.epochs * settings.steps_per_epoch
    quiet = not sys.stderr.isatty()
    with tqdm(total=total, initial=progress.step, unit="step", leave=False, disable=quiet) as bar:

        def tick(loss: float) -> None:
            bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
            bar.update()

        saver = [Saver(options.checkpoint, settings, options.every)] if options.checkpoint else []
        return train(settings, data, gradient, progress, *saver, tick=tick)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.treelstm", description=__doc__)
    add = parser.add_argument
    shown = "default: %(default)s"
    add("--trees", type=at_least(1), default=DEFAULT.trees, help=f"to learn from; {shown}")
    add("--held-out", type=at_least(1), default=DEFAULT.held_out, help=f"other trees, for the accuracy; {shown}")
    add("--most", type=at_least(2), default=DEFAULT.most, help=f"leaves of a tree; {shown}")
    add("--loss", choices=("nodes", "root"), default="nodes", help=f"of all nodes or of the root alone; {shown}")
    add("--hidden", type=at_least(1), default=DEFAULT.hidden, help=f"size of a node's state; {shown}")
    add("--batch", type=at_least(1), default=DEFAULT.batch, help=f"trees in a minibatch; {shown}")
    add("--epochs", type=at_least(1), default=DEFAULT.epochs, help=shown)
    add("--rate", type=positive, default=DEFAULT.rate, help=f"learning rate of Adam; {shown}")
    add("--seed", type=at_least(0), default=DEFAULT.seed, help=shown)
    add("--by-hand", action="store_true", help="train with the batches of by_hand.py")
    add("--checkpoint", type=Path, metavar="FILE", help="write the state of the training into this file")
    add("--every", type=at_least(1), default=100, help=f"steps from checkpoint to checkpoint; {shown}")
    add("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    add("--json", type=Path, metavar="OUT", help="write the numbers to this file")
    add("--plot", type=Path, metavar="DIR", help="write a picture of the training into this directory")
    return parser


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """What no single argument shows to be wrong."""
    if options.batch > options.trees:
        parser.error(f"--batch {options.batch} is more than --trees {options.trees}")
    if options.resume and not options.checkpoint:
        parser.error("--resume needs --checkpoint FILE")
    check_outputs(parser, {"checkpoint": options.checkpoint, "json": options.json}, options.plot)
    if options.checkpoint and options.checkpoint.exists() and not options.resume:
        parser.error(f"--checkpoint {options.checkpoint} exists: give --resume to go on from it, or remove it")


if __name__ == "__main__":
    sys.exit(main())
