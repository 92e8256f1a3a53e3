"""Programs that are lowered for a device that is not there."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runtime import lowering_platform as platforms
from pcbatch.runtime.lowering_platform import PLATFORMS, default_platform, lowered_for, lowering_platform, platform_of
from pcbatch.runtime.sharding.lane_sharding import ambient_mesh, without_mesh
from pcbatch.runtime.vm.policies import POLICIES, Stepwise
from tests.oracles.plans import replanned
from tests.programs import REGISTRY
from tests.programs.classics import fib

pytestmark = pytest.mark.share(2)

N = np.arange(10, dtype=np.int32)
WANT = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
ELSEWHERE = [platform for platform in PLATFORMS if platform != "cpu"]


def lowered(f: Any, *args: Any, to: tuple[str, ...]) -> str:
    text: str = jax.jit(f).trace(*args).lower(lowering_platforms=to).as_text()
    return text


FIB = pcbatch.batch(fib, max_depth=16, plan=pcbatch.Plan(fork="never", schedule="drain", modes=pcbatch.Dense()))


def loops(text: str) -> int:
    return text.count("stablehlo.while")


class TestWhichPlatform:
    def test_by_default_that_of_the_default_device(self) -> None:
        assert lowering_platform() == default_platform() == "cpu"
        with jax.default_device("cpu"):
            assert lowering_platform() == "cpu"
        with jax.default_device(jax.devices()[0]):
            assert lowering_platform() == "cpu"

    def test_within_a_context(self) -> None:
        with lowered_for("rocm"):
            assert lowering_platform() == "rocm" and default_platform() == "cpu"
        assert lowering_platform() == "cpu"

    @pytest.mark.parametrize(("version", "name"), [("PJRT C API\ncuda 12090", "cuda"), ("ROCm 6.3", "rocm")])
    def test_gpus_of_two_makers(self, version: str, name: str) -> None:
        class Client:
            platform_version = version

        class Device:
            platform, client = "gpu", Client()

        assert platform_of(Device()) == name and name in PLATFORMS
        assert platform_of(jax.devices()[0]) == "cpu"

    def test_a_call_runs_where_its_arrays_are_committed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """On a machine whose default device is a GPU."""
        from pcbatch.call import placement

        monkeypatch.setattr(placement, "default_platform", lambda: "cuda")
        assert placement.platform_of_run(None, [jnp.ones(2)]) == "cuda"
        assert placement.platform_of_run(None, [1.0, jax.device_put(jnp.ones(2), jax.devices()[0])]) == "cpu"
        mesh = jax.make_mesh((1,), ("lanes",))
        assert placement.platform_of_run(mesh, []) == "cpu"


class TestDispatch:
    """On a CPU a guarded loop for each block; elsewhere one switch, and no other loop than that of the trips."""

    def test_on_a_cpu(self) -> None:
        assert loops(lowered(FIB, N, to=("cpu",))) > 1

    @pytest.mark.parametrize("platform", ELSEWHERE)
    def test_elsewhere(self, platform: str) -> None:
        text = lowered(FIB, N, to=(platform,))
        assert loops(text) == 1 and text.count('"stablehlo.case"') == 1

    def test_for_several_at_once(self) -> None:
        text = lowered(FIB, N, to=("cpu", "cuda"))
        assert loops(text) == loops(lowered(FIB, N, to=("cpu",))) + loops(lowered(FIB, N, to=("cuda",)))

    def test_what_is_lowered_for_one_is_not_kept_for_the_other(self) -> None:
        f = pcbatch.batch(fib, max_depth=16, plan=pcbatch.Plan(fork="never", modes=pcbatch.Dense()))
        assert loops(lowered(f, N, to=("cuda",))) == 1
        assert f(N).tolist() == WANT
        assert jax.jit(f)(N).tolist() == WANT
        assert loops(lowered(f, N, to=("cpu",))) > 1

    def test_an_exported_program_has_both(self) -> None:
        exported = jax.export.export(jax.jit(FIB), platforms=("cpu", "cuda", "tpu"))(N)
        back = jax.export.deserialize(exported.serialize())
        assert back.platforms == ("cpu", "cuda", "tpu") and back.call(N).tolist() == WANT

    @pytest.mark.parametrize("lanes", [3, 10])
    def test_map(self, lanes: int) -> None:
        text = lowered(lambda n: FIB.map(n, lanes=lanes).value, N, to=("cuda",))
        assert loops(text) == 2  # refills are a loop around the trips

    def test_few_lanes_are_found_by_a_prefix_sum(self) -> None:
        """A sequential search is a wait of the host for each lane."""
        few = replanned(FIB, modes=pcbatch.Few(2), emitter="guard")
        per_lane = re.compile(r"tensor<\d+xi1>.*stablehlo.dynamic_slice|stablehlo.dynamic_slice.*tensor<10xi1>")
        assert per_lane.search(lowered(few, N, to=("cpu",)))
        assert not per_lane.search(lowered(few, N, to=("cuda",)))

    def test_functions_that_jax_rewrites(self) -> None:
        """From JAX 0.12 on, `nonzero` is an operation of a higher level."""

        @pcbatch.batch
        def places(x, n):
            while n > 0:
                x = x + jnp.nonzero(x > 1, size=2, fill_value=0)[0].sum()
                n = n - 1
            return x

        x, n = np.ones((3, 4), np.int32) * np.arange(4, dtype=np.int32), np.arange(3, dtype=np.int32)
        assert jax.jit(places)(x, n).tolist() == places(x, n).tolist()


class TestSingleVisits:
    """Under `port` every policy of ours makes one visit a trip."""

    @pytest.mark.parametrize("schedule", POLICIES)
    def test_visits_are_trips(self, schedule: str) -> None:
        f = pcbatch.batch(fib, plan=pcbatch.Plan(schedule=schedule, emitter="port", fork="never"), stats=True)
        result = f.run(N)
        assert result.value.tolist() == WANT
        assert int(result.stats.trips) == sum(block.visits for block in result.stats.blocks)

    def test_policies_that_visit_several_blocks_can_choose_one(self) -> None:
        assert {name for name, policy in POLICIES.items() if isinstance(policy, Stepwise)} == {"sweep", "drain"}

    def test_a_sweep_takes_blocks_in_turn(self) -> None:
        @pcbatch.batch(plan=pcbatch.Plan(schedule="sweep", emitter="port"), stats=True)
        def two_loops(n):
            total = 0
            while n > 0:
                n = n - 1
                m = n
                while m > 0:
                    total = total + m
                    m = m - 1
            return total

        result = two_loops.run(N)
        assert result.value.tolist() == [sum(sum(range(m + 1)) for m in range(n)) for n in N.tolist()]
        guard = replanned(two_loops, emitter="guard", modes=pcbatch.Dense()).run(N)
        assert [b.active for b in result.stats.blocks] == [
            b.active for b in guard.stats.blocks
        ]  # lanes do the same work

    @pytest.mark.parametrize("schedule", ["sweep", "drain"])
    def test_in_chunks_of_trips(self, schedule: str) -> None:
        f = pcbatch.batch(fib, plan=pcbatch.Plan(schedule=schedule, emitter="port", fork="never"))
        run = f.start(N)
        while not run.done:
            run = run.advance(7)
        assert run.result().value.tolist() == WANT


SMALL = [name for k, name in enumerate(REGISTRY) if k % 20 == 0]


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("platform", ELSEWHERE)
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SMALL else pytest.mark.full_only) for n in REGISTRY])
def test_every_program_is_lowered_for_every_platform(name: str, platform: str) -> None:
    program = REGISTRY[name]
    with program.mode():
        args = program.args(4)
        f = program.batched(max_depth=8)
        try:
            text = lowered(f, *args, to=(platform,))
        except NotImplementedError as e:  # of JAX, such as callbacks of other platforms
            pytest.skip(str(e))
    assert "stablehlo.while" in text or "func.func" in text


def test_platforms_are_those_that_jax_lowers_for() -> None:
    assert set(platforms.PLATFORMS) == {"cpu", "cuda", "rocm", "tpu"}


def test_the_kind_of_device_stays_where_the_mesh_goes() -> None:
    """From JAX 0.12 on, Triton asks the ambient mesh for the GPU that a kernel is lowered for."""
    make: Any = getattr(jax.sharding, "AbstractDevice", None)
    if make is None:
        pytest.skip("this release of JAX has no abstract devices")
    device = make(device_kind="NVIDIA H100 80GB HBM3", num_cores=None, platform="cuda")
    mesh: Any = jax.sharding.AbstractMesh
    with jax.sharding.use_abstract_mesh(mesh((2,), ("x",), abstract_device=device)), without_mesh():
        assert ambient_mesh().empty
        assert ambient_mesh().abstract_device == device
