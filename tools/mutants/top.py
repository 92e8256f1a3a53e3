"""Defects in what users touch: arguments, results, failures, the pipeline."""

from __future__ import annotations

from tools.mutants.mutant import LAW, Mutant, law

API = ("tests/api/test_api.py",)
RUNTIME = ("tests/runtime/test_limits.py",)

MUTANTS = (
    Mutant(
        "arguments-axis",
        "arguments.py",
        "    if axis not in (0, -len(shape)):\n",
        "    if False:\n",
        "`in_axes` is always 0",
        API,
    ),
    Mutant(
        "arguments-sizes",
        "arguments.py",
        "        if count != size:\n",
        "        if False:\n",
        "arguments of different sizes are accepted",
        API,
    ),
    Mutant(
        "arguments-shared",
        "arguments.py",
        "if all(axis is None for axis in per_leaf):",
        "if any(axis is None for axis in per_leaf):",
        "an argument with one shared leaf counts as shared",
        (*API, "tests/differential/test_local.py", LAW),
    ),
    Mutant(
        "failures-silent",
        "compiled.py",
        "        if isinstance(outcome.status, jax.core.Tracer) or not np.any(seen(outcome.status)):\n",
        "        if True:\n",
        "lanes that failed are not reported",
        RUNTIME,
    ),
    Mutant(
        "failures-one-kind",
        "failures.py",
        "kinds = {Status.STACK_FULL: _stack_full, Status.STEP_LIMIT: _step_limit, ",
        "kinds = {Status.STACK_FULL: _stack_full, ",
        "lanes that ran too long are not reported",
        RUNTIME,
    ),
    Mutant(
        "cache-config",
        "api.py",
        "key = (given.key, settings(), self.fn.__code__, apart)",
        "key = (given.key, self.fn.__code__, apart)",
        "a program compiled under another configuration of JAX is used again",
        ("tests/runtime/test_limits.py::TestDtypes",),
    ),
    Mutant(
        "results-utilisation",
        "results.py",
        "return active / offered",
        "return active",
        "utilisation is a number of lanes",
        ("tests/runtime/test_counts.py",),
    ),
    Mutant(
        "pipeline-unverified",
        "pipeline.py",
        "    if faults:\n        raise InternalError",
        "    if False:\n        raise InternalError",
        "a pass may leave an invalid program",
        ("tests/cli/test_cli.py", "tests/lowering/test_passes.py"),
    ),
    Mutant(
        "plain-batched",
        "api.py",
        "token = _plainly.set(True)",
        "token = _plainly.set(False)",
        "`plain` runs callees batched",
        API,
    ),
    Mutant(
        "compiled-empty",
        "compiled.py",
        "        if given.lanes == 0:\n            return self.empty()\n",
        "",
        "a batch of no lanes is run",
        (*RUNTIME, *law("fib")),
    ),
)
