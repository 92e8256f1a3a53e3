"""Machines in a kernel on two devices: each device runs a kernel of its own, with the results of one device."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType

import pcbatch
from pcbatch.runtime.kernel.machine import KernelMachine, SplitMachine
from tests.programs import classics, control

pytestmark = pytest.mark.skipif(len(jax.devices()) < 2, reason="needs two devices")

N = np.arange(1, 10, dtype=np.int32)


collatz = pcbatch.batch(control.collatz, plan=pcbatch.Plan(emitter=pcbatch.Kernel(tile=2)))
fib = pcbatch.batch(classics.fib, plan=pcbatch.Plan(emitter=pcbatch.Kernel(tile=2)))


@pcbatch.batch(plan=pcbatch.Plan(emitter=pcbatch.Kernel(tile=2)))
def whitened(n):
    """A block without a form in a kernel, `cholesky`, between two loops."""
    x, k = jnp.eye(2) * (jnp.float32(n) + 1), 0
    while k < n % 3:
        x = jnp.linalg.cholesky(x @ x.T)
        k += 1
    while k < n:
        x = x * 0.5
        k += 1
    return jnp.sum(x)


WANTED: dict[Any, Any] = {
    f: pcbatch.batch(f.fn, plan=pcbatch.Plan(emitter="guard"))(N) for f in (collatz, fib, whitened)
}
PROGRAMS = pytest.mark.parametrize("f", WANTED, ids=lambda f: f.__name__)


def test_the_programs_have_kernels() -> None:
    kinds = [type(f.lower(N).program.executable.machine) for f in WANTED]
    assert kinds == [KernelMachine, KernelMachine, SplitMachine]


@PROGRAMS
def test_calls(f: Any) -> None:
    """9 lanes are not the same number on both devices."""
    np.testing.assert_allclose(f(N, devices=2), WANTED[f], rtol=1e-6)


@PROGRAMS
def test_refill(f: Any) -> None:
    np.testing.assert_allclose(f.map(N, lanes=2, devices=2).value, WANTED[f], rtol=1e-6)


def test_statuses_and_runs_that_are_resumed() -> None:
    limited = collatz.with_options(max_steps=20).run(N, devices=2).status
    assert (
        limited.tolist()
        == pcbatch.batch(collatz.fn, plan=pcbatch.Plan(emitter="guard"), max_steps=20).run(N).status.tolist()
    )
    run = fib.start(N, devices=2)
    while not run.done:
        run = run.advance(5)
    assert run.result().value.tolist() == WANTED[fib].tolist()


@pytest.mark.parametrize(
    ("kind", "vma"),
    [
        (AxisType.Auto, True),
        (AxisType.Explicit, False),
        pytest.param(AxisType.Auto, False, marks=pytest.mark.full_only),
        pytest.param(AxisType.Explicit, True, marks=pytest.mark.full_only),
    ],
)
@PROGRAMS
def test_inside_shard_map(f: Any, kind: AxisType, vma: bool) -> None:
    """Devices run kernels on lanes of their own in a `shard_map` of the user's, `jit` around it or not."""
    mesh = jax.make_mesh((2,), ("x",), axis_types=(kind,))
    spec = jax.P("x")
    lanes = jax.device_put(N[:8], jax.NamedSharding(mesh, spec))
    inside = jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=vma)
    for way in (inside, jax.jit(inside)):
        np.testing.assert_allclose(way(lanes), WANTED[f][:8], rtol=1e-6)


@pytest.mark.skipif(jax.__version_info__ >= (0, 11), reason="Triton asks for a device, which a mesh of CPUs has not")
def test_it_is_lowered_for_gpus() -> None:
    """Each device has a kernel, without a host's help, in programs for several devices too."""
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    inside = jax.jit(jax.shard_map(fib, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x")))
    text = inside.trace(jax.ShapeDtypeStruct((8,), np.int32)).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("__gpu$xla.gpu.triton") == 1
