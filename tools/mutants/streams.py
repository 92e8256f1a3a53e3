"""Defects in `map`: refilling, growing and narrowing between programs, chunks, devices."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

MAP = "tests/runs/test_map.py"
ANY = (f"{MAP}::test_any_lanes_and_chunks",)
GROWTH = (f"{MAP}::TestGrowth",)
FAILURES = (f"{MAP}::TestFailures",)
STRUCTURES = (f"{MAP}::TestStructures",)
PROGRESS = (f"{MAP}::TestProgress",)
PROGRAMS = (f"{MAP}::TestPrograms",)
PRINTS = (f"{MAP}::TestPrinting",)
ITERATORS = (f"{MAP}::test_any_sizes_of_an_iterator", *STRUCTURES)
DEVICES = ("tests/devices/test_devices.py::test_dealing",)
BLOCKS = ("tests/devices/test_meshes.py::test_blocks",)
SURROUNDED = (
    "tests/devices/test_meshes.py::test_inside_shard_map_and_outside_again",
    "tests/devices/test_meshes.py::test_results_vary_inside_shard_map",
)
SHARDED = ("tests/devices/test_meshes.py::test_inside_jit_each_device_has_a_machine",)
LYING = ("tests/devices/test_meshes.py::test_lanes_stay_where_they_lie",)

MUTANTS = (
    # queue
    Mutant(
        "queue-no-debt",
        "runtime/execute/refill.py",
        "jnp.where(more, carry[DEBT] < lanes, alive > narrower)",
        "jnp.where(more, alive > 0, alive > narrower)",
        "lanes that are done wait for the longest before they take inputs",
        PROGRAMS,
    ),
    Mutant(
        "queue-keeps-steps",
        "runtime/execute/refill.py",
        'for key in ("depth", "steps") if key in carry',
        'for key in ("depth",) if key in carry',
        "an input inherits the steps of the one before",
        FAILURES,
    ),
    Mutant(
        "queue-keeps-depth",
        "runtime/execute/refill.py",
        'for key in ("depth", "steps") if key in carry',
        'for key in ("steps",) if key in carry',
        "an input inherits the depth at which the one before failed",
        (*FAILURES, *GROWTH),
    ),
    Mutant(
        "queue-frees-the-full",
        "runtime/execute/refill.py",
        "    return free & ~is_full(q, blocks) if grows else free\n",
        "    return free\n",
        "who waits for deeper stacks is taken for done",
        GROWTH,
    ),
    Mutant(
        "queue-forgets-the-full",
        "runtime/execute/refill.py",
        "(_count(q, blocks) > narrower) | jnp.any(_unwritten(q, blocks, grows))",
        "(_count(q, blocks) > narrower)",
        "who got no deeper stacks is forgotten when the machine narrows",
        GROWTH,
    ),
    Mutant(
        "queue-takes-too-many",
        "runtime/execute/refill.py",
        "    takes = free & (new < q.end)\n",
        "    takes = free & (new <= q.end)\n",
        "a lane takes an input that is not there",
        (*ANY, *PRINTS),
    ),
    Mutant(
        "queue-writes-all",
        "runtime/execute/refill.py",
        "    slot = jnp.where(free, q.item, beyond)\n",
        "    slot = q.item\n",
        "lanes that still run write results at every refill",
        ANY,
        equivalent="they write them again when they are done",
    ),
    Mutant(
        "queue-carries-to-lane-zero",
        "runtime/execute/refill.py",
        "q.slots - q.lanes, q.slots) + lane\n",
        "q.slots - q.lanes, q.slots) + lane[::-1]\n",
        "work that is taken into the next chunk changes its owner",
        ANY,
    ),
    Mutant(
        "queue-narrow-all-live",
        "runtime/execute/refill.py",
        '    out["pc"] = jnp.where(there, out["pc"], jnp.asarray(len(blocks), out["pc"].dtype))\n',
        "",
        "in a narrower machine places without a lane run the last lane's work",
        (f"{MAP}::TestPrinting::test_in_narrow_machines",),
    ),
    Mutant(
        "queue-unnumbered",
        "runtime/execute/refill.py",
        "{**out, NAME: names}",
        "out",
        "what lanes print carries the lane's number",
        PRINTS,
    ),
    # stream
    Mutant(
        "stream-no-growth",
        "runtime/execute/queue_runner.py",
        "            full = self.grows and bool(np.any(seen(pause.full)))\n",
        "            full = self.grows and bool(np.all(seen(pause.left) == 0)) and bool(np.any(seen(pause.full)))\n",
        "stacks grow at the end only",
        GROWTH,
    ),
    Mutant(
        "stream-gives-up",
        "runtime/execute/queue_runner.py",
        "            self.grows = False\n            return q\n",
        "            return q\n",
        "a lane that may not have deeper stacks waits for ever",
        GROWTH,
    ),
    Mutant(
        "stream-copies",
        "runtime/execute/queue_runner.py",
        "grows=self.grows, donate=(0,)",
        "grows=self.grows, donate=()",
        "results are copied whenever the host looks",
        PROGRAMS,
    ),
    Mutant(
        "stream-donates-shared",
        "runtime/execute/queue_runner.py",
        "grows=self.grows, donate=(0,)",
        "grows=self.grows, donate=(0, 1)",
        "arrays of the caller are given away",
        PROGRAMS,
    ),
    Mutant(
        "stream-counts-runs",
        "runtime/execute/queue_runner.py",
        "live, q.following - held, q.item, q",
        "live, q.following, q.item, q",
        "inputs count as done when they have begun",
        PROGRESS,
    ),
    # chunks
    Mutant(
        "chunks-in-the-wrong-place",
        "runtime/execute/chunk_runner.py",
        "np.concatenate([here.owners, carried], axis=1)",
        "np.concatenate([carried, here.owners], axis=1)",
        "results of what was carried along go to other inputs",
        ANY,
    ),
    Mutant(
        "chunks-take-the-unfinished",
        "runtime/execute/chunk_runner.py",
        "        owners[device, running] = NOBODY\n",
        "",
        "what lanes take along has a result before it is done",
        ANY,
        equivalent="the result that comes later takes the place of it",
    ),
    Mutant(
        "chunks-lose-the-last",
        "runtime/execute/chunk_runner.py",
        "        self.left = _Left(rows, self._done(begun.queue))\n        self._gather()\n",
        "        self.left = _Left(rows, self._done(begun.queue))\n",
        "results of the last chunk stay on the device",
        ANY,
    ),
    Mutant(
        "chunks-count-the-padding",
        "runtime/execute/chunk_runner.py",
        "self.came + piece.inputs, self.number + 1\n",
        "self.came + self.stream.spread.inputs, self.number + 1\n",
        "a chunk that is not full counts as one that is",
        ITERATORS,
    ),
    # spread
    Mutant(
        "spread-ends",
        "runtime/sharding/lane_sharding.py",
        "inputs - np.arange(self.devices, dtype=np.int32) + self.devices - 1",
        "inputs - np.arange(self.devices, dtype=np.int32)",
        "devices leave out their last input",
        DEVICES,
    ),
    Mutant(
        "spread-order",
        "runtime/sharding/lane_sharding.py",
        "        rows = jnp.swapaxes(array, 0, 1).reshape(-1, *array.shape[2:])[: self.inputs]\n",
        "        rows = array.reshape(-1, *array.shape[2:])[: self.inputs]\n",
        "results stand in the order of the devices",
        DEVICES,
    ),
    Mutant(
        "spread-block-ends",
        "runtime/sharding/lane_sharding.py",
        "np.clip(inputs - self.each * np.arange(self.devices, dtype=np.int32), 0, self.each)",
        "np.clip(inputs - self.each * np.arange(self.devices, dtype=np.int32), 0, self.each - 1)",
        "a device with a full block leaves out its last input",
        BLOCKS,
    ),
    Mutant(
        "surroundings-vary",
        "runtime/sharding/ambient_mesh.py",
        'to="varying") for x in arrays] if axes else list(arrays)',
        'to="varying") for x in arrays] if False else list(arrays)',
        "results of lanes that differ from device to device pass for the same on all",
        SURROUNDED,
    ),
    Mutant(
        "surroundings-around",
        "runtime/sharding/ambient_mesh.py",
        "    if mesh_around().empty and all(t.sharding.mesh.empty for t in types):\n",
        "    if True:\n",
        "the machine is traced in the mesh around it",
        SURROUNDED,
    ),
    Mutant(
        "surroundings-kept",
        "api.py",
        "            with no_mesh():  # what is traced for one lane is kept, and used elsewhere\n",
        "            if True:\n",
        "what was compiled inside a shard_map remembers its mesh",
        SURROUNDED,
    ),
    Mutant(
        "partition-trips",
        "runtime/sharding/custom_partitioning.py",
        "    if not axes or kind == LANES:\n",
        "    if not axes or kind in (LANES, TRIPS):\n",
        "the trips of one device pass for those of all",
        SHARDED,
    ),
    Mutant(
        "partition-one-machine",
        "runtime/sharding/custom_partitioning.py",
        "    return not manual and devices > 1 and",
        "    return False and not manual and devices > 1 and",
        "all devices run one machine, and ask one another at every trip",
        SHARDED,
    ),
    Mutant(
        "placement-forgets",
        "placement.py",
        "        if mapped and lane_axes(sharding) and",
        "        if False and lane_axes(sharding) and",
        "lanes that lie on several devices run in one machine",
        LYING,
    ),
    # mapping
    Mutant(
        "map-same-buffer",
        "mapping.py",
        "                rows[v][filled : filled + step] = x[taken : taken + step]\n",
        "                rows[v][filled : filled + step] = x[:step]\n",
        "a chunk that is cut begins anew",
        ITERATORS,
    ),
    Mutant(
        "map-other-values",
        "mapping.py",
        "            if not varies and not _same(leaf, known):\n",
        "            if False:\n",
        "a shared value may differ from chunk to chunk, and that of the first is taken",
        ("tests/diagnostics/test_golden_errors.py::test_rendering[PCB418_shared]",),
    ),
)
