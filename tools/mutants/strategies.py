"""Defects in the strategy "local"."""

from __future__ import annotations

from tools.mutants.mutant import LOCAL as SUITE
from tools.mutants.mutant import Mutant, on

TESTS = ("tests/differential/test_local.py",)
STAGED = ("tests/differential/test_local.py::TestStaged",)
HOST = ("tests/differential/test_local.py::TestHost",)
JUNK = ("tests/differential/test_local.py::TestJunk",)
SHARED = ("tests/differential/test_local.py::TestShared",)
LOOPS = on(SUITE, "countdown", "count_primes", "nested_ifs")
RECURSION = on(SUITE, "fib", "catalan", "hofstadter_female", "local_survives_call")

MUTANTS = (
    # local
    Mutant(
        "local-staged-recursion",
        "runtime/local_strategy/executor.py",
        "if below[name] & cyclic)",
        "if name in cyclic)",
        "a function that calls a recursive one is staged, which never ends",
        HOST,
    ),
    Mutant(
        "local-depth-late",
        "runtime/local_strategy/executor.py",
        "limit = self.options.max_depth or self._deepest(lanes)",
        "limit = (self.options.max_depth or self._deepest(lanes)) + 1",
        "`max_depth` allows one call more on the host",
        HOST,
    ),
    Mutant(
        "local-static-depth",
        "runtime/local_strategy/executor.py",
        "limit = wanted if deepest is None or (wanted is not None and wanted < deepest) else None",
        "limit = None",
        "`max_depth` does not hold for staged calls",
        (*STAGED, *HOST),
    ),
    Mutant(
        "local-where",
        "runtime/local_strategy/executor.py",
        "where = jnp.where(stop == blocks, -1, stop % (blocks + 1))",
        "where = jnp.where(stop == blocks, -1, stop % blocks)",
        "the place where a lane stopped is another",
        HOST,
    ),
    # local_plan
    Mutant(
        "plan-no-borrowing",
        "runtime/local_strategy/plan.py",
        "        if self.risky:\n            inputs = borrow(inputs, active)\n",
        "",
        "an inner loop runs on values of lanes that are elsewhere",
        JUNK,
    ),
    Mutant(
        "plan-mask-dropped",
        "runtime/local_strategy/plan.py",
        "jnp.where(lane_mask(active, env[v]), env[v], old[v])",
        "env[v]",
        "a block updates the registers of all lanes",
        LOOPS,
    ),
    Mutant(
        "plan-branch",
        "runtime/local_strategy/plan.py",
        "where(cond, self.index[on_true], self.index[on_false])",
        "where(cond, self.index[on_false], self.index[on_true])",
        "the arms of a branch are swapped",
        LOOPS,
    ),
    Mutant(
        "plan-acyclic",
        "runtime/local_strategy/plan.py",
        "return all(t > b.index for b in self.blocks for t in self.following(b))",
        "return all(t >= b.index for b in self.blocks for t in self.following(b))",
        "a block that jumps to itself counts as no loop",
        on(SUITE, "loop_of_one_block"),
    ),
    # local_shared
    Mutant(
        "uniform-two-moves",
        "runtime/local_strategy/uniform.py",
        "if len(moved) == 1 and None not in moved:",
        "if None not in moved:",
        "a variable that two moves define counts as the same for all lanes",
        on(SUITE, "shared_by_two_ways"),
    ),
    Mutant(
        "uniform-results",
        "runtime/local_strategy/uniform.py",
        "if p not in definitions and p not in function.results}",
        "if p not in function.results}",
        "a shared parameter that lanes change stays shared",
        SHARED,
    ),
    Mutant(
        "uniform-some-inputs",
        "runtime/local_strategy/uniform.py",
        "all(x in roots for x in reads(op))",
        "any(x in roots for x in reads(op))",
        "a value with one shared input counts as shared",
        SHARED,
    ),
    # local_staged
    Mutant(
        "staged-latest",
        "runtime/local_strategy/staged.py",
        "once(jnp.min(pc) == block.index, step, inside)",
        "once(jnp.max(pc) == block.index, step, inside)",
        "the latest block runs next, also for lanes that are done",
        LOOPS,
    ),
    Mutant(
        "staged-failed-go-on",
        "runtime/local_strategy/staged.py",
        "            pc = jnp.where(active & ~going, plan.exit, pc)\n",
        "            pass\n",
        "lanes that failed in a call go on after it",
        (*STAGED, *HOST),
    ),
    Mutant(
        "staged-all-called",
        "runtime/local_strategy/staged.py",
        "[env[a] for a in call.args], active, counts, deeper)",
        "[env[a] for a in call.args], active | True, counts, deeper)",
        "a call runs for lanes that do not make it",
        (*STAGED, *on(SUITE, "callee_without_recursion", "count_primes"), *TESTS),
    ),
    Mutant(
        "staged-sure",
        "runtime/local_strategy/staged.py",
        "                sure = sure and not self.tally.fails\n",
        "",
        "an inner loop runs after a call in which all lanes failed",
        JUNK,
    ),
    # local_tally
    Mutant(
        "tally-steps-late",
        "runtime/local_strategy/counters.py",
        'counts["steps"] >= self.max_steps)',
        'counts["steps"] > self.max_steps)',
        "`max_steps` allows one block more",
        (*STAGED, *HOST, *TESTS),
    ),
    Mutant(
        "tally-depth-late",
        "runtime/local_strategy/counters.py",
        "full = active & (depth >= self.max_depth)",
        "full = active & (depth > self.max_depth)",
        "`max_depth` allows one call more",
        (*HOST, *STAGED),
    ),
    Mutant(
        "tally-steps-all",
        "runtime/local_strategy/counters.py",
        'counts["steps"] + active.astype(xp.int32)',
        'counts["steps"] + xp.int32(1)',
        "steps are those of the run, not of the lane",
        STAGED,
    ),
    Mutant(
        "tally-failed-remain",
        "runtime/local_strategy/counters.py",
        'return active & (counts["stop"] == self.blocks) if self.fails else active',
        "return active",
        "lanes that failed stay active",
        (*HOST, *STAGED),
    ),
    # local_host
    Mutant(
        "host-latest",
        "runtime/local_strategy/host.py",
        "k = int(frame.pc.min())\n        if k == frame.plan.exit:",
        "k = int(frame.pc.max())\n        if k == frame.plan.exit:",
        "an activation ends with its first lane",
        RECURSION,
    ),
    Mutant(
        "host-forgets-values",
        "runtime/local_strategy/host.py",
        "            frame.values |= out\n",
        "            frame.values = out\n",
        "what a block computed before its last call is lost",
        RECURSION,
    ),
    Mutant(
        "host-failed-go-on",
        "runtime/local_strategy/host.py",
        "frame.pc = np.where(going, frame.pc, frame.plan.exit).astype(np.int32)",
        "pass",
        "lanes that failed in a call go on after it",
        HOST,
    ),
    Mutant(
        "host-junk-seen",
        "runtime/local_strategy/host.py",
        "env[v] if v in plan.shared else _or_zero(going, env[v])",
        "env[v]",
        "values of lanes that are elsewhere leave a piece",
        JUNK,
    ),
    Mutant(
        "host-wrong-depth",
        "runtime/local_strategy/host.py",
        "frame.active, frame.depth + 1)",
        "frame.active, frame.depth)",
        "recursion on the host does not count its depth",
        HOST,
    ),
)
