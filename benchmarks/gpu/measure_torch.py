"""The measurements of one program in PyTorch, in a process of its own: `python -m benchmarks.gpu.measure_torch PROGRAM`

It reads and writes the lines of `benchmarks.gpu.measure`. JAX only makes the inputs here, on the CPU, so the
environment of this process needs no JAX with CUDA: see the Makefile.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu import torch_peers
from benchmarks.gpu.measure import answer, timed, times
from benchmarks.gpu.programs import program


def main() -> None:
    """Measure what is asked for."""
    name = sys.argv[1]
    torch.set_num_threads(int(os.environ.get("NPROC", "1")))  # on a CPU: threads that wait for each other at few lanes
    answer(json.load(sys.stdin), lambda case: measured(name, case))


def measured(name: str, case: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds and the work of a case: `torch` ("eager" or "compiled"), `lanes`."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    with torch.inference_mode():
        call = torch_peers.CALLS[name](case["lanes"], case["torch"] == "compiled", device)
        first, out = timed(call, synchronise)
        results = [x.cpu().numpy() for x in out]
        found = {"first_s": first, "work": work(name, results), "check": summary(results)}
        taken = times(call, synchronise)
        if case.get("trace"):
            trace(call, Path(case["trace"]))
    ran = {"torch": torch.__version__, "device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
    return {**found, "seconds": statistics.median(taken), "calls": len(taken), **ran}


def synchronise(out: Any) -> Any:
    """Wait until the device has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return out


def work(name: str, results: list[np.ndarray]) -> float:
    """Return the work of a result, as the program counts it."""
    return program(name).work(tuple(results) if len(results) > 1 else results[0])


def summary(results: list[np.ndarray]) -> list[float]:
    """Return the sum of each result, NaN left out, as `measure` does."""
    return [float(np.nansum(np.asarray(x, np.float64))) for x in results]


def trace(call: torch_peers.Call, folder: Path) -> None:
    """Write a trace of PyTorch's profiler."""
    folder.mkdir(parents=True, exist_ok=True)
    with torch.profiler.profile() as profile:
        timed(call, synchronise)
    profile.export_chrome_trace(str(folder / "trace.json"))


if __name__ == "__main__":
    main()
