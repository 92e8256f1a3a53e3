"""Print where LLVM's time goes for the native functions of a program, by pass, and the loops that XLA wrote for it.

    XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text" python program.py
    python -m tools.llvm_passes DIR            the largest function that XLA compiled
    python -m tools.llvm_passes DIR --all 3    the three largest

The passes are those of level 2 in the LLVM of llvmlite (numba brings it, extra `bench`); XLA has an LLVM of its own, so
the seconds are close and not equal. On a busy machine run it twice.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

SHOWN: Final = 8  # passes, and kinds of loops
BOUND: Final = re.compile(r'= icmp uge i64 %"?([^ ,"]*)indvar[^ ,"]*"?, (\d+)$', re.MULTILINE)


def loops(text: str) -> Counter[tuple[str, int]]:
    """Count the loops over elements that XLA wrote into a text of LLVM, by the operation and by their rounds."""
    found = ((re.sub(r"[.\d]+", " ", name).strip(), int(rounds)) for name, rounds in BOUND.findall(text))
    return Counter(found)


def times(text: str) -> tuple[float, float, dict[str, float]]:
    """Return the CPU seconds of LLVM's optimiser and of its code generator, and those of each pass."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(re.sub(r"^target triple.*$", "", text, flags=re.MULTILINE))
    machine = binding.Target.from_default_triple().create_target_machine(opt=2)
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(2))
    builder.start_pass_timing()
    passes, start = builder.getModulePassManager(), time.process_time()
    passes.run(module, builder)
    optimised = time.process_time() - start
    report, start = builder.finish_pass_timing(), time.process_time()
    machine.emit_object(module)
    return optimised, time.process_time() - start, dict(_rows(report))


def _rows(report: str) -> Iterator[tuple[str, float]]:
    """The passes of LLVM's report with their seconds of user time; it prints each of them twice."""
    for line in report.splitlines():
        words = line.split()
        if words and words[-1].endswith("Pass"):
            yield words[-1], float(words[0])


def main(words: Sequence[str] | None = None) -> int:
    """Print the report for a folder of dumps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", type=Path, help="the folder that XLA was told to dump into")
    parser.add_argument("--all", type=int, default=1, metavar="N", help="of the N largest functions")
    options = parser.parse_args(words)
    files = sorted(options.dumps.glob("*ir-no-opt.ll"), key=lambda file: -file.stat().st_size)
    if not files:
        parser.error(f"{options.dumps} has no `*ir-no-opt.ll`: set XLA_FLAGS as above before the program starts")
    for file in files[: options.all]:
        text = file.read_text()
        counts = loops(text)
        once = sum(count for (_, rounds), count in counts.items() if rounds == 1)
        print(f"{file.name}: {len(text) / 1e6:.1f} MB, {counts.total()} loops over elements, {once} of one round")
        for (name, rounds), count in counts.most_common(SHOWN):
            print(f"  {count:5d} of {rounds} rounds: {name}")
        optimiser, generator, passes = times(text)
        print(f"  {optimiser:.1f} s in the optimiser, {generator:.1f} in the code generator")
        for name, seconds in sorted(passes.items(), key=lambda each: -each[1])[:SHOWN]:
            print(f"  {seconds:6.2f} s {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
