"""Defects in policies, modes, plans and profiles."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

FILE = "tests/runtime/test_schedule.py"
YOURS = (f"{FILE}::TestPoliciesOfUsers",)
DEAR = (f"{FILE}::TestSeveralExpensiveBlocks",)
MODES = (f"{FILE}::TestModes", f"{FILE}::test_modes_under_other_policies")
PROFILE = ("tests/report/test_profile.py::TestProfile",)
WIDE = ("tests/runtime/test_wide_counters.py",)
PLAN = ("tests/report/test_profile.py::TestExplanation",)
UNASKED = ("tests/report/test_profile.py::TestNothingIsCountedUnasked",)

MUTANTS = (
    # schedule, blocks
    Mutant(
        "schedule-unchecked",
        "runtime/vm/policies.py",
        "    if not is_ours(policy):\n        _check(policy, carry, new)\n",
        "",
        "what a user's policy gives is not looked at",
        YOURS,
    ),
    Mutant(
        "schedule-unfair",
        "runtime/vm/machine.py",
        "(trips + 1) % FAIR == 0",
        "trips < 0",
        "a policy that runs nothing is never overruled",
        YOURS,
    ),
    Mutant(
        "schedule-drain-emptiest",
        "runtime/vm/policies.py",
        "dear[jnp.argmax(blocks.waiting(carry)[dear])]",
        "dear[jnp.argmin(blocks.waiting(carry)[dear])]",
        "`drain` runs the expensive block that fewest lanes wait for",
        DEAR,
    ),
    Mutant(
        "schedule-drain-nothing",
        "runtime/vm/policies.py",
        "        carry = blocks.drain(cheap, carry)\n",
        "        carry = blocks.sweep(cheap, carry)\n",
        "`drain` goes over the cheap blocks once",
        (*DEAR, "tests/examples/test_nuts.py::test_no_chain_waits_at_a_trajectory"),
    ),
    Mutant(
        "blocks-run-for-nobody",
        "runtime/vm/blocks.py",
        "jnp.where(there, number, len(self))",
        "jnp.where(True, number, len(self))",
        "a block that nobody waits for runs all the same",
        YOURS,
        equivalent="emitters look for themselves where it matters: only time is lost",
    ),
    Mutant(
        "blocks-among-all",
        "runtime/vm/blocks.py",
        "range(len(self)) if among is None else among)",
        "range(1) if among is None else among)",
        "a policy can run the first block only",
        YOURS,
    ),
    Mutant(
        "port-place-unsorted",
        "runtime/emit/port.py",
        "jnp.where(jnp.any(is_it), jnp.argmax(is_it), len(among))",
        "jnp.searchsorted(jnp.array(among), block)",
        "`run` among some blocks takes another one",
        YOURS,
    ),
    Mutant(
        "port-nothing-writes",
        "runtime/vm/frames.py",
        "(self._no_row(buffer, window), jnp.zeros_like(window.here))",
        "(self._no_row(buffer, window), jnp.ones_like(window.here))",
        "where no block is named, frames are overwritten",
        (f"{FILE}::test_policies[port-fib]", f"{FILE}::test_policies"),
    ),
    # plans, order
    Mutant(
        "plans-modes-ignored",
        "runtime/costs/plan_modes.py",
        "said.get(k) or self._choice(block, lanes)",
        "self._choice(block, lanes)",
        "`modes` has no effect",
        MODES,
    ),
    Mutant(
        "plans-any-text",
        "runtime/costs/plan_modes.py",
        "        if not blocks:\n            title",
        "        if False:\n            title",
        "a text that no block holds is taken",
        MODES,
    ),
    Mutant(
        "order-one-expensive",
        "lowering/passes/block_layout.py",
        "weights[label] >= enough)",
        "weights[label] >= max(enough, *weights.values()))",
        "only the most expensive block is waited for",
        DEAR,
    ),
    Mutant(
        "order-all-dear",
        "lowering/passes/block_layout.py",
        "if cost >= EXPENSIVE and weights[label] >= enough)",
        "if cost >= EXPENSIVE)",
        "a block that is dear but rare is waited for",
        DEAR,
    ),
    # guard
    Mutant(
        "guard-few-once",
        "runtime/emit/guard.py",
        "return new, wanted(new, self.code) & (rounds < PATIENCE + groups), rounds + 1",
        "return new, jnp.zeros((), bool), rounds + 1",
        "a few lanes are computed and the others left waiting",
        (*PROFILE, *MODES),
        equivalent="lanes that are left wait for the next visit: only time is lost",
    ),
    # timeline, forecast
    Mutant(
        "wide-no-carry",
        "runtime/vm/wide_counters.py",
        "a[..., 1] + b[..., 1] + carry",
        "a[..., 1] + b[..., 1]",
        "counts begin anew at 2**32",
        WIDE,
    ),
    Mutant(
        "wide-low-word",
        "runtime/vm/wide_counters.py",
        "return words[..., 0] + 2.0**32 * words[..., 1]",
        "return words[..., 0]",
        "counts are shown modulo 2**32",
        WIDE,
    ),
    Mutant(
        "timeline-not-from-zero",
        "runtime/vm/timeline.py",
        "jnp.zeros_like(value) for key, value in totals.items()",
        "value for key, value in totals.items()",
        "a trip counts all trips before it",
        PROFILE,
    ),
    Mutant(
        "timeline-halves-lose",
        "runtime/vm/timeline.py",
        '"span": 2 * line["span"]',
        '"span": line["span"]',
        "buckets are full for ever",
        PROFILE,
    ),
    Mutant(
        "forecast-no-lanes",
        "runtime/costs/trip_time.py",
        "/ width for key in",
        "for key in",
        "XLA's costs are those of all lanes",
        PLAN,
    ),
    Mutant(
        "forecast-all-lanes",
        "runtime/costs/trip_time.py",
        "return lanes if isinstance(mode, Dense) else min(mode.width, lanes)",
        "return lanes",
        "a few lanes are shown as all",
        PLAN,
    ),
    Mutant(
        "layout-always-timed",
        "runtime/vm/layout.py",
        "    if layout.timed:\n",
        "    if True:\n",
        "every run keeps a record over time",
        UNASKED,
    ),
)
