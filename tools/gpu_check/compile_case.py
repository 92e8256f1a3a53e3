"""The compilation of one case, in a process of its own: XLA reads once where it is to dump what it makes.

XLA_FLAGS=--xla_dump_to=DIR JAX_PLATFORMS=cpu python -m tools.gpu_check.compile_case "fib port auto graphs"
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import pcbatch
from benchmarks.gpu.programs import program
from pcbatch.runtime.costs.xla_options import LOOPS_IN_GRAPHS
from tools.gpu_check.cases import LANES, TILE, Case, named
from tools.gpu_check.target import H100, KIND


def compile_case(case: Case) -> None:
    """Compile a case for the target, with the options of XLA that pcbatch would choose on such a GPU."""
    found = program(case.program)
    emitter = pcbatch.Kernel(tile=TILE) if case.emitter == "kernel" else case.emitter
    function = found.function.with_options(
        plan=replace(found.function.options.plan, emitter=emitter, schedule=case.schedule), on_failure="ignore"
    )
    options: Any = LOOPS_IN_GRAPHS if case.graphs else None
    specs = jax.tree.map(_spec(_topology()), _arrays(found.inputs(LANES)))
    with _device():
        lowered = jax.jit(lambda *args: function(*args)).trace(*specs).lower(lowering_platforms=("cuda",))
        lowered.compile(compiler_options=options)


def _arrays(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with arrays as leaves: a list of objects, one for each lane, becomes arrays."""
    return tuple(pcbatch.pack(arg) if isinstance(arg, list) else arg for arg in args)


def _topology() -> Any:
    """Return a machine with one such GPU, as XLA's compiler for CUDA imagines it."""
    with contextlib.suppress(jax.errors.JaxRuntimeError):  # JAX has found it by itself
        importlib.import_module("jax_plugins.xla_cuda12").initialize()
    size = {"topology_name": "1x1x1", "topology": "1x1x1"}
    return topologies.get_topology_desc(platform="cuda", target_config=H100, **size)


def _spec(topology: Any) -> Any:
    everywhere: Any = PartitionSpec  # untyped in some releases of JAX
    place = NamedSharding(Mesh(np.array(topology.devices[:1]), "x"), everywhere())
    struct: Any = jax.ShapeDtypeStruct

    def spec(x: Any) -> Any:
        return struct(np.shape(x), jax.numpy.result_type(x), sharding=place)

    return spec


def _device() -> Any:
    """From JAX 0.12 on, Triton wants to know the device while it lowers; before, there was no way to say."""
    device = getattr(jax.sharding, "AbstractDevice", None)
    if device is None or not hasattr(jax.sharding, "use_abstract_mesh") or jax.__version_info__ < (0, 11):
        return contextlib.nullcontext()
    kind = device(device_kind=KIND, num_cores=None, platform="cuda")
    return jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=kind))


if __name__ == "__main__":
    compile_case(named(sys.argv[1]))
