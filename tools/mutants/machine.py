"""Defects in the machine: blocks, schedules, stacks, limits."""

from __future__ import annotations

from tools.mutants.mutant import OPTIONS, Mutant, law, on

RUNTIME = ("tests/test_runtime.py",)
FULL = ("tests/test_runtime.py::TestStackFull",)
STEPS = ("tests/test_runtime.py::TestStepLimit",)
GROWTH = ("tests/test_runtime.py::TestGrowth",)
JUNK = ("tests/test_runtime.py::TestJunk",)
STORES = ("tests/test_regressions.py",)
COUNTS = ("tests/test_counts.py",)
# Which of the first three combinations of options a program meets is its place in the registry, modulo 3.
MANY = on(
    OPTIONS, "fib", "is_even", "gcd_subtractive", "catalan", "tak", "hanoi", "count_primes", "local_survives_call"
)
LOOPS = law("countdown", "gcd_while", "collatz")

MUTANTS = (
    # code
    Mutant(
        "code-no-borrowing",
        "runtime/code.py",
        "        if self.risky:\n            inputs = borrow(inputs, here)\n",
        "",
        "an inner loop runs on values of lanes that are elsewhere",
        (*JUNK, *STORES),
    ),
    Mutant(
        "code-borrow-from-elsewhere",
        "runtime/code.py",
        "lender = jnp.argmax(here)",
        "lender = jnp.argmin(here)",
        "lanes borrow from one that is elsewhere itself",
        (*JUNK, *STORES),
    ),
    Mutant(
        "code-select",
        "runtime/code.py",
        "jnp.where(env[op.cond], env[op.on_true], env[op.on_false])",
        "jnp.where(env[op.cond], env[op.on_false], env[op.on_true])",
        "a selection takes the other side",
        law("elif_chain"),
    ),
    Mutant(
        "code-lost-update",
        "runtime/code.py",
        "updates=registers(block_writes(block) & set(live_out)),",
        "updates=registers(block_writes(block) & set(live_out))[:-1],",
        "a block loses one of its new values",
        LOOPS,
    ),
    Mutant(
        "code-stores-on-loan",
        "runtime/code.py",
        "and not risky and not unsure]",
        "and not unsure]",
        "a block that borrows values stores in place, and keeps them",
        STORES,
    ),
    Mutant(
        "code-placed-and-written",
        "runtime/code.py",
        "    return stored - otherwise\n",
        "    return stored\n",
        "a register that other operations write too escapes the mask",
        STORES,
    ),
    # stores
    Mutant(
        "stores-unmasked",
        "runtime/stores.py",
        "masked = jnp.where(active, indices, nowhere)",
        "masked = indices",
        "a store in place happens in every lane",
        STORES,
    ),
    Mutant(
        "stores-other-operand",
        "runtime/stores.py",
        " or operands.get(target) != dst:",
        " or target not in operands:",
        "a store into a copy counts as one into the register itself",
        STORES,
    ),
    Mutant(
        "stores-no-index",
        "runtime/stores.py",
        "if not indices.size or integer_limits(indices.dtype)[1] < max(target.aval.shape):",
        "if integer_limits(indices.dtype)[1] < max(target.aval.shape):",
        "a scatter without an index is taken for one that can be masked",
        STORES,
    ),
    Mutant(
        "stores-mode",
        "runtime/stores.py",
        "return drops and int(target.aval.size) >= MIN_SIZE",
        "return int(target.aval.size) >= MIN_SIZE",
        "a scatter that clips its index is masked by an index out of range",
        STORES,
    ),
    # layout
    Mutant(
        "layout-first-address",
        "runtime/layout.py",
        "jnp.full((depth + 1, lanes), layout.exit, jnp.int32)",
        "jnp.full((depth + 1, lanes), 0, jnp.int32)",
        "the outermost return leads to the first block",
        law("fib"),
    ),
    Mutant(
        "layout-frame-short",
        "runtime/layout.py",
        "zeros(types[v], (depth, lanes))",
        "zeros(types[v], (max(1, depth - 1), lanes))",
        "frames are one short of the depth",
        FULL,
    ),
    Mutant(
        "layout-nowhere",
        "runtime/layout.py",
        "return (len(Status) + 1) * (self.exit + 1)",
        "return 0",
        "lanes that the emitter `mask` holds back stand at the first block",
        ("tests/test_differential.py::test_all_schedules_and_emitters",),
    ),
    # machine
    Mutant(
        "machine-never-done",
        "runtime/machine.py",
        "initial=layout.exit) < layout.exit",
        "initial=layout.exit) <= layout.exit",
        "a run goes on after its last lane",
        LOOPS,
    ),
    Mutant(
        "machine-failed-values",
        "runtime/machine.py",
        "lane_mask(status == int(Status.OK), stored)",
        "lane_mask(status >= int(Status.OK), stored)",
        "a lane that failed gives a number as if it had not",
        FULL,
    ),
    Mutant(
        "machine-grow-parked",
        "runtime/machine.py",
        '        carry["pc"] = unpark(carry["pc"], self.layout.exit, Status.STACK_FULL)\n',
        "",
        "lanes that ran out of stack stay parked when it has grown",
        GROWTH,
    ),
    Mutant(
        "machine-max-trips",
        "runtime/machine.py",
        "going & (s[1] < max_trips)",
        "going & (s[1] <= max_trips)",
        "`advance` makes one trip more than asked for",
        ("tests/test_runtime.py::TestMachine",),
    ),
    # pc
    Mutant(
        "pc-depth-more",
        "runtime/pc.py",
        "            return self.options.max_depth\n",
        "            return self.options.max_depth + 1\n",
        "`max_depth` allows one call more",
        FULL,
    ),
    Mutant(
        "pc-depth-less",
        "runtime/pc.py",
        "            return self.options.max_depth\n",
        "            return max(1, self.options.max_depth - 1)\n",
        "`max_depth` allows one call less",
        FULL,
    ),
    Mutant(
        "pc-never-grows",
        "runtime/pc.py",
        "np.any(np.asarray(status) == int(Status.STACK_FULL))",
        "np.any(np.asarray(status) == int(Status.STEP_LIMIT))",
        "stacks grow for the wrong reason",
        GROWTH,
    ),
    Mutant(
        "pc-grows-past-limit",
        "runtime/pc.py",
        "return self.static_depth is None and self.options.max_depth is None",
        "return self.static_depth is None",
        "stacks grow beyond `max_depth`",
        FULL,
    ),
    Mutant(
        "pc-concrete-under-trace",
        "runtime/pc.py",
        "leaves = [*jax.tree.leaves(args), jnp.zeros(())]",
        "leaves = jax.tree.leaves(args)",
        "a call inside `jit` with concrete arguments is not taken for a traced one",
        ("tests/test_runtime.py::TestMachine",),
    ),
    # stacks
    Mutant(
        "stacks-write-all",
        "runtime/stacks.py",
        "row = jnp.where(mask, depth, frames.shape[0])",
        "row = depth",
        "a push happens in every lane",
        law("fib", "catalan"),
    ),
    Mutant(
        "stacks-wrong-frame",
        "runtime/stacks.py",
        "return frames.at[depth, lanes]",
        "return frames.at[depth - 1, lanes]",
        "a pop reads the frame of the caller",
        law("fib"),
    ),
    Mutant(
        "stacks-grow-loses",
        "runtime/stacks.py",
        "return jnp.concatenate([frames, more])",
        "return jnp.concatenate([frames[:-1], more, more[:1]])",
        "a growing stack loses its last frame",
        GROWTH,
    ),
    Mutant(
        "stacks-grow-below",
        "runtime/stacks.py",
        "return jnp.concatenate([frames, more])",
        "return jnp.concatenate([more, frames])",
        "a growing stack gets its new frames below the old ones",
        GROWTH,
    ),
    # schedule
    Mutant(
        "schedule-emptiest",
        "runtime/schedule.py",
        "fullest = jnp.argmax(waiting)",
        "fullest = jnp.argmin(waiting)",
        "`largest` runs the block that fewest lanes wait for",
        MANY,
    ),
    Mutant(
        "schedule-first-lane",
        "runtime/schedule.py",
        "return jnp.minimum(jnp.min(pc), blocks)",
        "return jnp.minimum(pc[jnp.argmin(pc // blocks)], blocks)",
        "`earliest` runs the block of the first lane that is left",
        (*COUNTS, "tests/examples/test_nuts.py::test_no_chain_waits_at_a_trajectory"),
    ),
    Mutant(
        "schedule-first-block",
        "runtime/schedule.py",
        "return jnp.minimum(jnp.min(pc), blocks)",
        "return jnp.minimum(jnp.min(pc), 0)",
        "`earliest` always runs the first block",
        COUNTS,
    ),
    # status
    Mutant(
        "status-parked-wrong",
        "runtime/status.py",
        "return block + int(why) * (blocks + 1)\n",
        "return block + int(why) * blocks\n",
        "a lane that stops is parked where others end",
        (*FULL, *STEPS),
    ),
    Mutant(
        "status-unpark-wrong",
        "runtime/status.py",
        "pc - int(why) * (blocks + 1), pc)",
        "pc - int(why) * (blocks + 1) + 1, pc)",
        "a lane goes on at the block after the one it stopped before",
        GROWTH,
    ),
    Mutant(
        "status-failed-is-running",
        "runtime/status.py",
        "jnp.where(pc < blocks, int(Status.RUNNING), pc // (blocks + 1))",
        "jnp.where(pc != blocks, int(Status.RUNNING), pc // (blocks + 1))",
        "lanes that failed count as still running",
        (*FULL, *STEPS),
    ),
)
