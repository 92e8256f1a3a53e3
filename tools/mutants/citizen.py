"""Defects in what makes a batched function one of JAX's: axes, donation, exported programs, names, keys."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

APART = ("tests/lowering/test_rng_by_lane.py",)
AXES = ("tests/api/test_out_axes.py::TestWithoutLanes",)
PLACED = ("tests/api/test_out_axes.py::TestOutAxes",)
EXPORT = ("tests/api/test_aot.py::TestExport",)
COPIES = ("tests/api/test_aot.py::TestCopies",)
DONATED = ("tests/api/test_pytrees.py::TestStaticAndDonated",)
SCOPES = ("tests/report/test_named_scopes.py",)
STAGES = ("tests/api/test_aot.py::TestStages",)
UNROLLED = "tests/lowering/test_unroll_threefry.py"

MUTANTS = (
    Mutant(
        "apart-only-one-kind",
        "lowering/passes/rng_by_lane.py",
        'TAGS = ("key<rbg>", "key<urbg>")',
        'TAGS = ("key<rbg>",)',
        "lanes with keys of unsafe_rbg draw with the first one's",
        APART,
    ),
    Mutant(
        "apart-not-the-primitive",
        "lowering/passes/rng_by_lane.py",
        'if not of_key and name != "rng_bit_generator":',
        "if not of_key:",
        "lanes that ask XLA's generator itself draw with the first one's words",
        APART,
    ),
    Mutant(
        "rewrite-not-in-loops",
        "lowering/passes/rewrite_jaxprs.py",
        'CALLS |= {"cond", "while", "scan"}',
        'CALLS |= {"cond"}',
        "draws in inner loops stay as they are",
        (f"{UNROLLED}::TestPlaces::test_inside",),
    ),
    Mutant(
        "rewrite-forgets",
        "lowering/passes/rewrite_jaxprs.py",
        "if id(value) not in self._known:",
        "if True:",
        "a jaxpr that is used twice is rewritten, and lowered, twice",
        (UNROLLED,),
    ),
    Mutant(
        "uniform-branches",
        "lowering/analysis/divergence.py",
        "    return apart and not (made.once and fixed.issuperset(made.of))\n",
        "    return False\n",
        "what lanes assign on different ways counts as the same",
        AXES,
    ),
    Mutant(
        "uniform-once",
        "lowering/analysis/divergence.py",
        "made.once and fixed.issuperset(made.of)",
        "made.once",
        "what is assigned in one place counts as the same, though not all lanes come there each time",
        AXES,
    ),
    Mutant(
        "uniform-calls",
        "lowering/analysis/divergence.py",
        "    if made.of is None or not",
        "    if made.of is not None and not",
        "what a call gives counts as the same",
        AXES,
    ),
    Mutant(
        "uniform-never-met",
        "lowering/analysis/divergence.py",
        "if b not in met]",
        "]",
        "lanes that have gone different ways never meet again",
        AXES,
    ),
    Mutant(
        "scope-folders",
        "runtime/vm/named_scopes.py",
        'name = re.split(r"[\\\\/]", loc.file)[-1]',
        "name = loc.file",
        "names of operations depend on the folder of the file",
        SCOPES,
    ),
    Mutant(
        "scope-first-line",
        "runtime/vm/named_scopes.py",
        "sorted(found)[:LINES]",
        "sorted(found)[:1]",
        "a block shows one of its lines alone",
        SCOPES,
    ),
    Mutant(
        "scope-of-port",
        "runtime/emit/port.py",
        "with jax.named_scope(code.scope):",
        "if True:",
        "blocks under `port` have no name",
        SCOPES,
    ),
    Mutant(
        "symbolic-not-known",
        "lowering/typing/jax_types.py",
        "return not isinstance(size, int | np.integer)",
        "return False",
        "a number of lanes that is left open is compared with numbers",
        EXPORT,
    ),
    Mutant(
        "axes-of-the-lanes",
        "axes.py",
        "return np.moveaxis(value, 0, axis) if host else jnp.moveaxis(value, 0, axis)",
        "return value",
        "`out_axes` is always 0",
        PLACED,
    ),
    Mutant(
        "axes-first-lane",
        "axes.py",
        "return value[(np if host else jnp).argmax(status == int(Status.OK))]",
        "return value[0]",
        "a value without lanes is that of a lane that failed",
        AXES,
    ),
    Mutant(
        "axes-any-claim",
        "axes.py",
        "            if not uniform:\n",
        "            if False:\n",
        "`out_axes` of None takes one lane's value for all",
        AXES,
    ),
    Mutant(
        "donated-nothing",
        "compiled.py",
        "        if owner in names:\n            yield param\n",
        "        if False:\n            yield param\n",
        "no argument is given away",
        DONATED,
    ),
    Mutant(
        "donated-others",
        "compiled.py",
        "        if owner in names:\n            yield param\n",
        "        if True:\n            yield param\n",
        "all arguments are given away",
        DONATED,
    ),
    Mutant(
        "donated-under-debugging",
        "runtime/execute/executor.py",
        "if sought() or KEEPING.get() else",
        "if sought() else",
        "arguments are gone when a NaN is looked for in them",
        DONATED,
    ),
    Mutant(
        "named-forgets-options",
        "named.py",
        "        if found is self or plain is not self.fn:\n",
        "        if found is not None:\n",
        "a function with other options cannot be pickled",
        COPIES,
    ),
    Mutant(
        "grown-less",
        "runtime/execute/stack_depths.py",
        "self.depth = max(depth, self.depth)",
        "self.depth = depth // 2",
        "a thread forgets the stacks that another one needed",
        ("tests/api/test_aot.py::TestThreads::test_stacks_that_grow", "tests/compiler/test_persistent_cache.py"),
    ),
    Mutant(
        "avals-static",
        "traced.py",
        "    named = {name: arg for name, arg in kwargs.items() if name not in static}\n",
        "    named = kwargs\n",
        "static arguments count among those of the compiled form",
        STAGES,
    ),
    Mutant(
        "result-lanes-exported",
        "results.py",
        '"lanes": lanes',
        '"lanes": None',
        "an exported program forgets how many lanes it has",
        EXPORT,
    ),
)
