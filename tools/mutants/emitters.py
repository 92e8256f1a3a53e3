"""Defects in the emitters and in what chooses among them."""

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
    # threads
    Mutant(
        "threads-always",
        "runtime/threads.py",
        "kernel * lanes >= WORTH_SPLITTING or jax",
        "jax",
        "kernels worth splitting are kept on one thread",
        ("tests/test_runtime.py::TestMachine",),
    ),
    Mutant(
        "threads-unknown-option",
        "runtime/threads.py",
        ' or jax.default_backend() != "cpu" or not _known():',
        ":",
        "a compiler option is used without asking whether it is known",
        ("tests/test_runtime.py::TestMachine",),
    ),
    # emit
    Mutant(
        "emit-pick",
        "runtime/emit/__init__.py",
        '== "cpu" else "port"',
        '!= "cpu" else "port"',
        "the automatic emitter is the one of the other platform",
        ("tests/test_runtime.py::TestMachine",),
    ),
    Mutant(
        "emit-names",
        "runtime/emit/__init__.py",
        '"port": Port(), "mask": Mask()',
        '"port": Port(), "mask": Guard()',
        "the emitter `mask` is another one",
        ("tests/test_runtime.py::TestMachine",),
    ),
    Mutant(
        "base-steps-late",
        "runtime/emit/base.py",
        'carry["steps"] >= layout.max_steps)',
        'carry["steps"] > layout.max_steps)',
        "`max_steps` allows one block more",
        STEPS,
    ),
    Mutant(
        "base-depth-late",
        "runtime/emit/base.py",
        'carry["pcs"].shape[0] - 1)',
        'carry["pcs"].shape[0])',
        "a call is made though the stack is full",
        FULL,
    ),
    Mutant(
        "base-full-goes-on",
        "runtime/emit/base.py",
        "return active & ~full, jnp.where(full,",
        "return active, jnp.where(full,",
        "a lane without room for a call runs the block all the same",
        FULL + GROWTH,
    ),
    Mutant(
        "base-update-all",
        "runtime/emit/base.py",
        "jnp.where(lane_mask(active, new), new, carry[reg(v)])",
        "new",
        "a block updates the registers of all lanes",
        LOOPS,
    ),
    Mutant(
        "base-jump-all",
        "runtime/emit/base.py",
        '                out["pc"] = jnp.where(mask, layout.index[target], out["pc"])\n            case PushJump',
        '                out["pc"] = jnp.full_like(pc, layout.index[target])\n            case PushJump',
        "a jump moves all lanes",
        law("count_primes", "bubble_sort", "different_trip_counts", "while_else", "deeply_nested_loops"),
    ),
    Mutant(
        "base-depth-all",
        "runtime/emit/base.py",
        'depth = jnp.where(mask, carry["depth"] + 1, depth)',
        'depth = carry["depth"] + 1',
        "a call deepens the stacks of all lanes",
        law("fib"),
    ),
    Mutant(
        "base-branch-returns",
        "runtime/emit/base.py",
        "_ways(edge.on_true, mask & cond, conds) + _ways(edge.on_false, mask & ~cond, conds)",
        "_ways(edge.on_true, mask & ~cond, conds) + _ways(edge.on_false, mask & cond, conds)",
        "a branch returns on the wrong side",
        law("countdown", "fib"),
    ),
    Mutant(
        "base-leave-all",
        "runtime/emit/base.py",
        'jnp.where(mask, carry["depth"] - 1, depth) if layout',
        'carry["depth"] - 1 if layout',
        "a return takes a frame from all lanes",
        law("fib"),
    ),
    Mutant(
        "base-steps-all",
        "runtime/emit/base.py",
        'carry["steps"] + active.astype(carry["steps"].dtype)',
        'carry["steps"] + 1',
        "steps are those of the machine, not of the lane",
        STEPS,
    ),
    Mutant(
        "base-save-all",
        "runtime/emit/base.py",
        'out[slot(v)] = stacks.write(carry[slot(v)], carry["depth"], value, active)',
        'out[slot(v)] = stacks.write(carry[slot(v)], carry["depth"], value, active | True)',
        "a block saves a variable of all lanes",
        law("fib", "catalan"),
    ),
    Mutant(
        "guard-untested",
        "runtime/emit/guard.py",
        "following == code.index\n",
        "following <= code.index\n",
        "blocks run that the policy did not name",
        COUNTS,
    ),
    Mutant(
        "guard-risky",
        "runtime/emit/guard.py",
        "if code.risky or code.prints:",
        "if code.prints:",
        "a block with an inner loop runs with no lane waiting for it",
        STORES,
    ),
    Mutant(
        "guard-once",
        "runtime/emit/guard.py",
        "return jnp.zeros((), bool), step(",
        'return jnp.any(c[1]["pc"] == code.index), step(',
        "a block is repeated as long as lanes wait for it",
        (*COUNTS, *STEPS),
    ),
    Mutant(
        "mask-not-held",
        "runtime/emit/mask.py",
        'held = jnp.where(following == code.index, carry["pc"], layout.nowhere)',
        'held = carry["pc"]',
        "blocks run that the policy did not name, and lanes are put back",
        (*COUNTS, *on(OPTIONS, "fib", "is_even", "gcd_subtractive"), "tests/test_runtime.py"),
    ),
    Mutant(
        "mask-not-put-back",
        "runtime/emit/mask.py",
        'pc = jnp.where(following == code.index, out["pc"], carry["pc"])',
        'pc = out["pc"]',
        "lanes that were held back stay nowhere",
        COUNTS,
    ),
    Mutant(
        "port-save-all",
        "runtime/emit/port.py",
        "saved[slot(v)], who[slot(v)] = value, active",
        "saved[slot(v)], who[slot(v)] = value, ~nobody",
        "a block saves a variable of all lanes",
        MANY,
    ),
    Mutant(
        "port-address-row",
        "runtime/emit/port.py",
        'row = carry["depth"] + 1 if name == "pcs" else carry["depth"]',
        'row = carry["depth"]',
        "a return address is written into the caller's row",
        MANY,
    ),
    Mutant(
        "port-new-depth",
        "runtime/emit/port.py",
        'row = carry["depth"] + 1 if name == "pcs" else carry["depth"]',
        'row = out.get("depth", carry["depth"])',
        "values are saved at the depth after the jump",
        MANY,
    ),
)
