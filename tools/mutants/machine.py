"""Defects in the machine: blocks, schedules, stacks, limits."""

from __future__ import annotations

from tools.mutants.mutant import OPTIONS, Mutant, law, on

RUNTIME = ("tests/runtime/test_limits.py",)
FULL = ("tests/runtime/test_limits.py::TestStackFull",)
STEPS = ("tests/runtime/test_limits.py::TestStepLimit",)
GROWTH = ("tests/runtime/test_limits.py::TestGrowth",)
JUNK = ("tests/runtime/test_limits.py::TestJunk",)
STORES = ("tests/language/test_regressions.py",)
COUNTS = ("tests/runtime/test_counts.py",)
# Which of the first three combinations of options a program meets is its place in the registry, modulo 3.
MANY = on(
    OPTIONS, "fib", "is_even", "gcd_subtractive", "catalan", "tak", "hanoi", "count_primes", "local_survives_call"
)
LOOPS = law("countdown", "gcd_while", "collatz")

MUTANTS = (
    # code
    Mutant(
        "code-select",
        "runtime/vm/block_body.py",
        "jnp.where(env[op.cond], env[op.on_true], env[op.on_false])",
        "jnp.where(env[op.cond], env[op.on_false], env[op.on_true])",
        "a selection takes the other side",
        law("elif_chain"),
    ),
    Mutant(
        "code-lost-update",
        "runtime/vm/block_body.py",
        "updates=registers(block_writes(block) & set(live_out)),",
        "updates=registers(block_writes(block) & set(live_out))[:-1],",
        "a block loses one of its new values",
        LOOPS,
    ),
    # layout
    Mutant(
        "layout-nowhere",
        "runtime/vm/layout.py",
        "return (len(Status) + 1) * (self.exit + 1)",
        "return 0",
        "lanes that the emitter `mask` holds back stand at the first block",
        ("tests/differential/test_differential.py::test_all_schedules_and_emitters",),
    ),
    # machine
    Mutant(
        "machine-failed-values",
        "runtime/vm/machine.py",
        "lane_mask(status == int(Status.OK), stored)",
        "lane_mask(status >= int(Status.OK), stored)",
        "a lane that failed gives a number as if it had not",
        FULL,
    ),
    Mutant(
        "machine-grow-parked",
        "runtime/vm/machine.py",
        '        carry["pc"] = unpark(carry["pc"], self.layout.exit, Status.STACK_FULL)\n',
        "",
        "lanes that ran out of stack stay parked when it has grown",
        GROWTH,
    ),
    Mutant(
        "machine-max-trips",
        "runtime/vm/machine.py",
        "going & (s[1] < max_trips)",
        "going & (s[1] <= max_trips)",
        "`advance` makes one trip more than asked for",
        ("tests/runtime/test_limits.py::TestMachine",),
    ),
    # pc
    Mutant(
        "pc-depth-more",
        "runtime/execute/executor.py",
        "            return self.options.max_depth\n",
        "            return self.options.max_depth + 1\n",
        "`max_depth` allows one call more",
        FULL,
    ),
    Mutant(
        "pc-depth-less",
        "runtime/execute/executor.py",
        "            return self.options.max_depth\n",
        "            return max(1, self.options.max_depth - 1)\n",
        "`max_depth` allows one call less",
        FULL,
    ),
    Mutant(
        "pc-never-grows",
        "runtime/execute/stack_depths.py",
        "np.any(seen(status) == int(Status.STACK_FULL))",
        "np.any(seen(status) == int(Status.STEP_LIMIT))",
        "stacks grow for the wrong reason",
        GROWTH,
    ),
    Mutant(
        "pc-grows-past-limit",
        "runtime/execute/executor.py",
        "return self.static_depth is None and self.options.max_depth is None",
        "return self.static_depth is None",
        "stacks grow beyond `max_depth`",
        FULL,
    ),
    # schedule
    # blocks
    Mutant(
        "blocks-never-done",
        "runtime/vm/blocks.py",
        "initial=len(self)) < len(self)",
        "initial=len(self)) <= len(self)",
        "a run goes on after its last lane",
        LOOPS,
    ),
    Mutant(
        "blocks-waiting-elsewhere",
        "runtime/vm/blocks.py",
        'return jnp.sum(carry["pc"][:, None] == numbers[None, :]',
        'return jnp.sum(carry["pc"][:, None] != numbers[None, :]',
        "lanes count where they do not wait",
        MANY,
    ),
    # schedule
    Mutant(
        "schedule-emptiest",
        "runtime/vm/policies.py",
        "fullest = jnp.argmax(blocks.waiting(carry)",
        "fullest = jnp.argmin(blocks.waiting(carry)",
        "`largest` runs the block that fewest lanes wait for",
        MANY,
    ),
    Mutant(
        "schedule-first-block",
        "runtime/vm/policies.py",
        'jnp.min(carry["pc"]).astype(jnp.int32), carry',
        '0 * jnp.min(carry["pc"]).astype(jnp.int32), carry',
        "`earliest` always runs the first block",
        COUNTS,
    ),
    # outcome
    Mutant(
        "outcome-concrete-under-trace",
        "runtime/vm/raw_result.py",
        "for leaf in (computed, *jax.tree.leaves(args)))",
        "for leaf in jax.tree.leaves(args))",
        "a call inside `jit` with concrete arguments is not taken for a traced one",
        ("tests/runtime/test_limits.py::TestMachine",),
    ),
    Mutant(
        "outcome-only-tracers",
        "runtime/vm/raw_result.py",
        "return any(isinstance(leaf, jax.core.Tracer)",
        "return not any(isinstance(leaf, jax.core.Tracer)",
        "calls are taken for traced ones, and traced ones for calls",
        ("tests/runtime/test_limits.py::TestStackFull", "tests/runtime/test_limits.py::TestMachine"),
    ),
    # status
    Mutant(
        "status-parked-wrong",
        "runtime/vm/status.py",
        "return block + int(why) * (blocks + 1)\n",
        "return block + int(why) * blocks\n",
        "a lane that stops is parked where others end",
        (*FULL, *STEPS),
    ),
    Mutant(
        "status-unpark-wrong",
        "runtime/vm/status.py",
        "pc - int(why) * (blocks + 1), pc)",
        "pc - int(why) * (blocks + 1) + 1, pc)",
        "a lane goes on at the block after the one it stopped before",
        GROWTH,
    ),
    Mutant(
        "status-failed-is-running",
        "runtime/vm/status.py",
        "jnp.where(pc < blocks, int(Status.RUNNING), pc // (blocks + 1))",
        "jnp.where(pc != blocks, int(Status.RUNNING), pc // (blocks + 1))",
        "lanes that failed count as still running",
        (*FULL, *STEPS),
    ),
)
