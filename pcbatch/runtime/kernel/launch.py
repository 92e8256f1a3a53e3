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
from pcbatch.runtime.kernel import qualify
from pcbatch.runtime.kernel.memory import SPARE, Memory, Order, from_stored, stored_dtype
from pcbatch.runtime.kernel.plan import KernelPlan
from pcbatch.runtime.kernel.tile import TRIPS, Tile
from pcbatch.runtime.lowering_platform import lowering_platform
from pcbatch.runtime.vm.block_body import Values
from pcbatch.runtime.vm.frames import depth_of

LARGEST = 2**31 - 1  # elements of an array: places are int32


def launched(plan: KernelPlan, carry: Values, shared: Values, budget: jax.Array) -> tuple[Values, jax.Array]:
    """Run all tiles of a machine for at most `budget` trips each, int32[]; return the state and the trips, int32[].

    `carry` and `shared` are those of a `State`.
    """
    lanes = carry["pc"].shape[0]
    depth = depth_of_state(plan, carry)
    tiles = -(-lanes // plan.tile)

    def body(memory: Memory) -> None:
        number = pl.program_id(0)  # known at the top of a kernel only
        tile = Tile.of(plan, memory, lanes, depth, number)
        end = tile.run(tile.begin(), memory.refs["budget"][0])
        tile.end(end)
        memory.refs[TRIPS][number] = end[TRIPS]

    out = called(plan, body, tiles, shared, {"budget": budget}, carry, {TRIPS: ((tiles,), jnp.int32)})
    return {key: out[key] for key in carry}, jnp.max(out[TRIPS])


def depth_of_state(plan: KernelPlan, carry: Values) -> int:
    """Return the nested calls that the frames of a state have room for."""
    return 0 if plan.layout.frames is None else depth_of(carry["frames"], carry["pc"].shape[0])


def _shaped(array: jax.Array) -> Any:
    """Return the type of a result like this array. Inside a `shard_map`, JAX asks for the axes that it varies over."""
    struct: Any = jax.ShapeDtypeStruct  # untyped in some releases of JAX
    type_: Any = jax.typeof(array)
    return struct(array.shape, array.dtype, manual_axis_type=type_.manual_axis_type)


def _check_sizes(plan: KernelPlan, arrays: Values) -> None:
    """Refuse arrays whose places are no int32: they would be read and written elsewhere."""
    for key, array in arrays.items():
        if (size := math.prod(jnp.shape(array))) > LARGEST:
            raise UsageError(qualify.size_refusal(plan, key, size))


def called(
    plan: KernelPlan,
    body: Callable[[Memory], None],
    tiles: int,
    shared: Values,
    reads: Values,
    state: Values,
    results: dict[str, tuple[tuple[int, ...], Any]],
) -> Values:
    """Call a kernel.

    Args:
        plan: The machine.
        body: Traced inside of the kernel; it gets all arrays, flat, by name.
        tiles: The number of tiles.
        shared: The values that all lanes share, by variable.
        reads: More arrays that it reads.
        state: Arrays that it reads and writes.
        results: Shapes and dtypes of arrays that it writes.

    Returns:
        The arrays of `state` and `results`.
    """
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
    fresh = [jnp.zeros(shape, dtype) for shape, dtype in results.values()]
    outs = [_shaped(x) for x in (*written, *map(flat, fresh))]
    names = [*reads, *state, *results]

    def barrier() -> None:
        if not interpret:  # there one operation follows the other
            triton.debug_barrier()

    def kernel(*refs: Any) -> None:
        # What is written is an input and an output at the same place: it is touched as an output only.
        arrays = dict(zip(names, (*refs[: len(reads)], *refs[len(inputs) :]), strict=True))
        body(Memory(arrays, Order(barrier, frozenset((*state, *results)))))

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
    found = dict(zip((*state, *results), call(*inputs.values()), strict=True))
    wanted = {key: (x.shape, x.dtype) for key, x in state.items()} | results

    def natural(key: str) -> jax.Array:
        shape, dtype = wanted[key]
        return from_stored(found[key][: math.prod(shape)].reshape(shape), jnp.dtype(dtype))

    return {key: natural(key) for key in wanted}
