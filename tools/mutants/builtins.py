"""Defects in Python's builtins for lanes, in what is refused of them, and in what is told to write instead."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

BUILTINS = ("tests/language/test_builtins.py",)
DRAWS = ("tests/lowering/test_draws.py",)
HELPERS = ("tests/diagnostics/test_helper_helps.py", "tests/diagnostics/test_golden_errors.py")

MUTANTS = (
    Mutant(
        "operators-hidden",
        "frontend/build/operators.py",
        "    inner = hidden | _bound(node)\n",
        "    inner = hidden\n",
        "a parameter of a lambda named as a builtin is taken for the builtin",
        BUILTINS,
    ),
    Mutant(
        "builtins-nan-first",
        "frontend/support/builtins.py",
        "    return jnp.where(jnp.isnan(xs[0]), xs[0], best)\n",
        "    return best\n",
        "`max` of an array passes over a NaN that comes first",
        BUILTINS,
    ),
    Mutant(
        "builtins-last",
        "frontend/support/builtins.py",
        "        found = a > b\n",
        "        found = a >= b\n",
        "`max` gives the last of the greatest",
        BUILTINS,
    ),
    Mutant(
        "builtins-any-late",
        "frontend/support/builtins.py",
        "            if bool(holds) is by:\n",
        "            if False:\n",
        "`any` does not stop at a known element",
        BUILTINS,
    ),
    Mutant(
        "impure-seeded",
        "frontend/source/impure.py",
        '        return None if seeded else "random"\n',
        "        return None\n",
        "a generator without a seed may be made in a lane",
        DRAWS,
    ),
    Mutant(
        "impure-today",
        "frontend/source/impure.py",
        "        elif (base is datetime.datetime or base is datetime.date) and node.func.attr in NOW:\n",
        "        elif False:\n",
        "`datetime.now()` is the same for all lanes",
        DRAWS,
    ),
    Mutant(
        "draws-unwatched",
        "lowering/typing/traced_draws.py",
        "        if states(program) != before:\n",
        "        if False:\n",
        "a helper may draw",
        DRAWS,
    ),
    Mutant(
        "draws-blame-all",
        "lowering/typing/traced_draws.py",
        "                if any(_mentions(code, space)):\n",
        "                if True:\n",
        "who draws elsewhere is blamed on the lane",
        DRAWS,
    ),
    Mutant(
        "in-place-swap",
        "frontend/subset/in_place.py",
        "for at, v in zip(target.elts, value.elts, strict=True)]",
        "for at, v in zip(target.elts, reversed(value.elts), strict=True)]",
        "what is told to write for a swap leaves the array as it was",
        HELPERS,
    ),
    Mutant(
        "in-place-method",
        "frontend/subset/in_place.py",
        'UPDATES = {gast.Add: "add"',
        'UPDATES = {gast.Add: "set"',
        "what is told to write for `xs[i] += v` forgets the old element",
        HELPERS,
    ),
    Mutant(
        "remedies-gamma",
        "lowering/diagnose/fix_its.py",
        "jax.scipy.special.gammaln({})",
        "jax.scipy.special.gamma({})",
        "what is told to write for `math.lgamma` is another function",
        BUILTINS,
    ),
    Mutant(
        "remedies-list",
        "lowering/diagnose/fix_its.py",
        "    return isinstance(error, jax.errors.TracerIntegerConversionError)\n",
        "    return False\n",
        "a list with an index of the lane is told to be static",
        ("tests/diagnostics/test_golden_errors.py",),
    ),
    Mutant(
        "decorate-recursive",
        "lowering/diagnose/decorator_hints.py",
        "    recursive = inner.name in (*inner.code.co_names, *inner.code.co_freevars)\n",
        "    recursive = False\n",
        "a helper that calls itself is told to be inlined",
        HELPERS,
    ),
    Mutant(
        "decorate-any-call",
        "lowering/diagnose/decorator_hints.py",
        "    if func is None or not _means(fn, func, first):\n",
        "    if func is None:\n",
        "a helper that `map` or JAX calls is told to be decorated only",
        HELPERS,
    ),
)
