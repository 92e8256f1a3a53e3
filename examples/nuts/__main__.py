"""Command line: sample a target with many chains in one batched program, print what came out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import jax

from examples.nuts import report
from examples.nuts.run import sample
from examples.nuts.targets import TARGETS
from examples.options import at_least, check_outputs, positive, write_json
from pcbatch.mcmc.settings import LEAST_WARMUP

CHAINS, DRAWS, WARMUP = 32, 500, 300


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(argv)
    _check(parser, options)
    os.environ.setdefault("NPROC", "1")  # threads of XLA: steps this small lose to their hand-over; cores: --devices
    if options.devices > 1:
        jax.config.update("jax_num_cpu_devices", options.devices)
        if len(jax.devices()) < options.devices:
            parser.error(f"--devices {options.devices}: there are only {len(jax.devices())}")
    run = sample(
        TARGETS[options.target](),
        chains=options.chains,
        draws=options.draws,
        warmup=options.warmup,
        step_size=options.step_size,
        adapt=not options.no_adapt,
        max_tree_depth=options.max_depth,
        devices=options.devices,
        seed=options.seed,
        progress=not options.no_adapt and sys.stderr.isatty(),
    )
    rows = report.coordinates(run)
    numbers = report.metrics(run, rows)
    print(report.table(rows), report.summary(numbers), sep="\n\n")
    if options.json:
        write_json(options.json, numbers)
    if options.plot:
        from examples.nuts.plots import plot_all

        plot_all(run, options.plot)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.nuts", description=__doc__)
    parser.add_argument("--target", choices=sorted(TARGETS), default="breast-cancer", help="default: %(default)s")
    parser.add_argument("--chains", type=at_least(1), default=CHAINS, help="default: %(default)s")
    parser.add_argument("--draws", type=at_least(1), default=DRAWS, help="draws kept per chain; default: %(default)s")
    parser.add_argument("--warmup", type=at_least(0), help=f"draws before; default: {WARMUP}, or 0 with --no-adapt")
    parser.add_argument("--step-size", type=positive, help="leapfrog step; adaptation starts from it")
    parser.add_argument("--no-adapt", action="store_true", help="fixed step size, unit mass matrix")
    parser.add_argument("--max-depth", type=at_least(1), default=10, help="of a tree; default: %(default)s")
    parser.add_argument("--devices", type=at_least(1), default=1, help="CPU devices to split the chains over")
    parser.add_argument("--seed", type=at_least(0), default=0)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the numbers to this file")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write pictures into this directory")
    return parser


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """What no single argument shows to be wrong; fills in the default that depends on another."""
    if options.no_adapt and options.step_size is None:
        parser.error("--no-adapt needs --step-size")
    if options.chains % options.devices:
        parser.error(f"--chains {options.chains} is not a multiple of --devices {options.devices}")
    check_outputs(parser, {"json": options.json}, options.plot)
    if options.warmup is None:
        options.warmup = 0 if options.no_adapt else WARMUP
    if not options.no_adapt and options.warmup < LEAST_WARMUP:
        parser.error(
            f"--warmup {options.warmup} leaves no draws to adapt in, at least {LEAST_WARMUP}: give more, or --no-adapt "
            "and --step-size"
        )


if __name__ == "__main__":
    sys.exit(main())
