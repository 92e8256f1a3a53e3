"""Defects in runs that are looked after, kept and gone on with, and in what they may take."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

RUNS = "tests/runs/test_runs.py"
ADVANCE = (f"{RUNS}::TestAdvance::test_bit_by_bit", f"{RUNS}::TestAdvance::test_a_machine_is_a_value")
GROWTH = (f"{RUNS}::TestAdvance::test_growing", f"{RUNS}::TestMemory::test_stacks_stop")
MEMORY = (f"{RUNS}::TestMemory",)
FILES = (f"{RUNS}::TestFiles",)
DEVICES = (f"{RUNS}::TestAdvance::test_devices",)
HARD = "tests/runs/test_runs_hard.py"
KEPT = (f"{RUNS}::TestCheckpoints",)
TIME = (f"{RUNS}::TestTime::test_modes", f"{RUNS}::TestTime::test_policies")

MUTANTS = (
    # watch
    Mutant(
        "watch-counts-no-trips",
        "runtime/execute/host_loop.py",
        "            self.trips -= trips\n",
        "            pass\n",
        "`max_trips` holds for each program, not for all",
        ADVANCE,
    ),
    Mutant(
        "watch-never-faster",
        "runtime/execute/host_loop.py",
        "min(wanted, FASTER * max(self.trips, FIRST), FOREVER)",
        "min(wanted, max(self.trips, FIRST), FOREVER)",
        "every program makes four trips",
        (f"{RUNS}::test_pace",),
    ),
    # arrays
    Mutant(
        "arrays-first-device",
        "runtime/execute/state_arrays.py",
        "return int(np.sum(seen(counts), dtype=np.int64))",
        "return int(np.asarray(seen(counts)).flat[0])",
        "what the first device has done is taken for all",
        DEVICES,
    ),
    Mutant(
        "arrays-narrow-trips",
        "runtime/execute/state_arrays.py",
        "trips <= np.iinfo(np.int32).max else np.int64(trips)",
        "trips <= np.iinfo(np.int32).max else np.int32(trips % 2**31)",
        "a number of trips wraps around",
        (f"{RUNS}::test_more_trips_than_a_word_holds",),
    ),
    # paused
    Mutant(
        "paused-takes-arguments",
        "runtime/execute/run_state.py",
        "return _Bare(jax.tree.map(jnp.copy, state.carry), state.trips, state.shared)",
        "return _Bare(state.carry, state.trips, state.shared)",
        "the caller's own arrays are given away",
        (f"{RUNS}::TestAdvance::test_arguments_stay_the_callers",),
        equivalent="JAX copies what a program passes on, though it does not promise to",
    ),
    Mutant(
        "paused-no-growth",
        "runtime/execute/run_state.py",
        "        if full and not live:\n",
        "        if False:\n",
        "lanes wait for deeper stacks for ever",
        GROWTH,
    ),
    Mutant(
        "paused-numbers-by-place",
        "runtime/execute/run_state.py",
        "slots.reshape(self.spread.devices, -1) * self.spread.devices + devices",
        "slots.reshape(self.spread.devices, -1) + devices",
        "lanes of several devices are called by wrong numbers",
        DEVICES,
    ),
    # memory
    Mutant(
        "memory-no-frames",
        "runtime/costs/memory.py",
        "return width * (self.lane + self.frame * (depth + 2)) + slots * self.input",
        "return width * self.lane + slots * self.input",
        "stacks cost nothing",
        MEMORY,
    ),
    Mutant(
        "memory-no-old-stacks",
        "runtime/costs/memory.py",
        "self.total(width, deeper) + width * self.frame * (depth + 2)",
        "self.total(width, depth)",
        "stacks grow into room that there is not",
        MEMORY,
    ),
    # guard
    Mutant(
        "guard-no-patience",
        "runtime/emit/guard.py",
        "(debt < start) & (rounds < PATIENCE_WHEN_DEAR), (debt",
        "(debt < start), (debt",
        "a lane that never ends keeps its trip from ending",
        TIME,
    ),
    Mutant(
        "guard-few-starve",
        "runtime/emit/guard.py",
        "there & ((rounds < PATIENCE) | (group == rounds - PATIENCE))",
        "there",
        "lanes that never end keep those behind them from going on",
        TIME,
    ),
    # chunks
    Mutant(
        "chunks-any-stream",
        "runtime/execute/chunk_runner.py",
        '        if here.mark != about["seen"]:\n',
        "        if False:\n",
        "a run goes on with other inputs",
        (f"{RUNS}::TestCheckpoints::test_other_settings_of_map",),
    ),
    Mutant(
        "chunks-what-runs-is-done",
        "runtime/execute/chunk_runner.py",
        "        owners[device, items[device, lane]] = NOBODY\n        for",
        "        for",
        "what has not ended when the time is over has a result",
        (f"{RUNS}::TestTime",),
    ),
    # around runs
    Mutant(
        "watch-compiling-counts",
        "runtime/execute/host_loop.py",
        "self.until, self._waits = self._waits + now - self._began, None",
        "self.until, self._waits = self._waits, None",
        "a time limit is over before anything has run",
        (f"{HARD}::TestTime",),
    ),
    Mutant(
        "paused-full-for-ever",
        "runtime/execute/run_state.py",
        "        if self.grows or not full or not room:\n",
        "        if True:\n",
        "a kept run does not use the memory that it is given later",
        (f"{HARD}::TestGoingOn",),
    ),
    Mutant(
        "mapping-waits-for-a-piece",
        "mapping.py",
        "        if stopped() and (filled or not first):\n",
        "        if False:\n",
        "a slow iterator keeps a run from stopping",
        (f"{HARD}::TestTime",),
    ),
    Mutant(
        "spread-typed",
        "runtime/sharding/lane_sharding.py",
        "            return _untyped(array)\n",
        "            return array\n",
        "lanes with a sharding in their type are not dealt out",
        (f"{HARD}::test_explicit_axes",),
    ),
    # saved, fingerprint
    Mutant(
        "saved-over-a-device",
        "saved.py",
        "        if os.path.lexists(found) and not found.is_file():\n",
        "        if False:\n",
        "a device is replaced by a file",
        (f"{HARD}::TestPaths",),
    ),
    Mutant(
        "saved-one-partial",
        "saved.py",
        "{secrets.token_hex(4)}",
        "0",
        "two writers meet in one file",
        (f"{HARD}::TestPaths",),
    ),
    Mutant(
        "saved-in-place",
        "saved.py",
        'path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")',
        "path",
        "a write that fails destroys what was there",
        FILES,
    ),
    Mutant(
        "fingerprint-no-constants",
        "fingerprint.py",
        "            _add(found, op.expr.fn.closed.consts)\n",
        "",
        "a run goes on with other constants",
        FILES,
    ),
)
