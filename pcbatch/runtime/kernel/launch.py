"""The launch of a kernel: arrays of a state in, the same arrays out, written over."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from pcbatch.errors import UsageError
from pcbatch.lowering.typing.jax_types import array_struct
from pcbatch.runtime.kernel import qualify
from pcbatch.runtime.kernel.kernel_plan import KernelPlan
from pcbatch.runtime.kernel.memory import SPARE, KernelMemory, Order, from_stored, stored_dtype
from pcbatch.runtime.kernel.tile import TRIPS, Tile
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.frames import depth_of

LARGEST = 2**31 - 1  # elements of an array: places are int32


def launched(plan: KernelPlan, carry: Values, shared: Values, budget: jax.Array) -> tuple[Values, jax.Array]:
    """Run all tiles of a machine for at most `budget` trips each, int32[]; return the state and the trips, int32[].

    `carry` and `shared` are those of a `State`.
    """

    def body(tile: Tile) -> Values:
        end = tile.run(tile.begin(), tile.memory.refs["budget"][0])
        tile.end(end)
        return end

    out = called(plan, body, shared, {"budget": budget}, carry)
    return {key: out[key] for key in carry}, jnp.max(out[TRIPS])


def _shaped(array: jax.Array) -> Any:
    """Return the type of a result like this array. Inside a `shard_map`, JAX asks for the axes that it varies over."""
    type_: Any = jax.typeof(array)
    return array_struct(array.shape, array.dtype, manual_axis_type=type_.manual_axis_type)


def _check_sizes(plan: KernelPlan, arrays: Values) -> None:
    """Refuse arrays whose places are no int32: they would be read and written elsewhere."""
    for key, array in arrays.items():
        if (size := math.prod(jnp.shape(array))) > LARGEST:
            raise UsageError(qualify.size_refusal(plan, key, size))


def called(plan: KernelPlan, body: Callable[[Tile], Values], shared: Values, reads: Values, state: Values) -> Values:
    """Call a kernel.

    Args:
        plan: The machine.
        body: Traced inside of the kernel, for a tile whose memory has all arrays, flat; it gives what its loop carries.
        shared: The values that all lanes share, by variable.
        reads: More arrays that it reads.
        state: Arrays that it reads and writes, those of the machine's state among them.

    Returns:
        The arrays of `state`, and the `TRIPS` of each tile.
    """
    lanes = state["pc"].shape[0]
    depth = 0 if plan.layout.frames is None else depth_of(state["frames"], lanes)
    tiles = -(-lanes // plan.tile)
    interpret = lowering_platform() == "cpu"
    spare = SPARE if interpret else 0

    def flat(x: Any) -> jax.Array:
        array = jnp.asarray(x)
        array = array.astype(stored_dtype(array.dtype)).reshape(-1)
        return jnp.pad(array, (0, max(spare, 1 - array.size)))

    constants = {f"constant:{k}": jnp.asarray(x) for k, x in enumerate(plan.constants)}
    reads = {f"shared:{v}": shared[v] for v in plan.shared} | constants | reads
    _check_sizes(plan, {**reads, **state})
    inputs = {key: flat(x) for key, x in (*reads.items(), *state.items())}
    written = [inputs[key] for key in state]
    outs = [_shaped(x) for x in (*written, flat(jnp.zeros((tiles,), jnp.int32)))]
    names = [*reads, *state, TRIPS]

    def barrier() -> None:
        if not interpret:  # there one operation follows the other
            triton.debug_barrier()

    def kernel(*refs: Any) -> None:
        # What is written is an input and an output at the same place: it is touched as an output only.
        arrays = dict(zip(names, (*refs[: len(reads)], *refs[len(inputs) :]), strict=True))
        number = pl.program_id(0)  # known at the top of a kernel only
        memory = KernelMemory(arrays, Order(barrier, frozenset((*state, TRIPS))))
        arrays[TRIPS][number] = body(Tile.of(plan, memory, lanes, depth, number))[TRIPS]

    how: Any = {"interpret": True}
    if not interpret:
        how = {"compiler_params": triton.CompilerParams(num_warps=plan.warps, num_stages=1)}
    call: Any = pl.pallas_call(
        kernel,
        out_shape=outs,
        grid=(tiles,),
        input_output_aliases={len(reads) + k: k for k in range(len(state))},
        name="machine",
        **how,
    )
    found = dict(zip((*state, TRIPS), call(*inputs.values()), strict=True))
    wanted: dict[str, Any] = {key: (x.shape, x.dtype) for key, x in state.items()} | {TRIPS: ((tiles,), jnp.int32)}

    def natural(key: str) -> jax.Array:
        shape, dtype = wanted[key]
        return from_stored(found[key][: math.prod(shape)].reshape(shape), jnp.dtype(dtype))

    return {key: natural(key) for key in wanted}
