"""Command line: `python -m examples.networks tree_lstm --hidden 64 --batch 64 --train --fork always`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from examples.networks import NAMES
from examples.options import at_least


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m examples.networks", description=__doc__)
    add, shown = parser.add_argument, "default: %(default)s"
    add("network", choices=(*NAMES, "all"))
    add("--hidden", type=at_least(1), default=64, help=f"numbers of a state; {shown}")
    add("--batch", type=at_least(1), default=64, help=f"examples; {shown}")
    add("--most", type=at_least(2), help="words of an example at most, or what else its size is")
    add("--paper", action="store_true", help="the sizes of Cocktailer (OSDI 2023), of the networks that it runs")
    add("--fork", choices=("auto", "always", "never"), help="independent calls side by side")
    add("--train", action="store_true", help="gradients of a loss, too")
    add("--seed", type=at_least(0), default=0, help=f"of weights and examples; {shown}")
    add("--repeats", type=at_least(1), default=5, help=f"of what is timed; {shown}")
    options = parser.parse_args(argv)
    os.environ.setdefault("NPROC", "1")  # threads of XLA: steps this small lose to their hand-over
    from examples.networks.run import Settings, paper, report

    sizes = (options.hidden, options.batch, options.most, options.fork, options.seed, options.repeats)
    for name in NAMES if options.network == "all" else [options.network]:
        settings = paper(name, Settings(*sizes)) if options.paper else Settings(*sizes)
        if settings is not None:
            report(name, settings, options.train)
        elif options.network != "all":
            parser.error(f"{name} is none of the networks that Cocktailer runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
