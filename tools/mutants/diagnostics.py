"""Defects in what is said about mistakes: which line, which words, and whether it is a mistake at all."""

from __future__ import annotations

from tools.mutants.mutant import Mutant, law, on

ERRORS = ("tests/diagnostics/test_errors.py",)
UNDEFINED = ("tests/frontend/test_undefined.py",)
EDITS = ("tests/frontend/test_source_edits.py",)
SOURCE = ("tests/frontend/test_source.py",)


def golden(*programs: str) -> tuple[str, ...]:
    """What is said about wrong programs."""
    return on("tests/diagnostics/test_golden_errors.py::test_rendering", *programs)


MUTANTS = (
    # finding the source
    Mutant(
        "same-code-constants",
        "frontend/source/same_code.py",
        " and _same_constant(a.co_consts, b.co_consts)",
        "",
        "a file in which only a number was edited counts as unchanged",
        EDITS,
    ),
    Mutant(
        "same-code-names",
        "frontend/source/same_code.py",
        "*(code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),",
        "*(code.co_varnames, code.co_freevars, code.co_cellvars),",
        "a file in which only the name of a function that is called was edited counts as unchanged",
        EDITS,
    ),
    Mutant(
        "source-any-line",
        "frontend/source/locate.py",
        "here = by_line.get(code.co_firstlineno, ())",
        "here = [item for items in by_line.values() for item in items]",
        "two functions of one name in a file cannot be told apart",
        SOURCE,
    ),
    Mutant(
        "source-bytes",
        "frontend/source/locate.py",
        'return len(self.lines[line - 1].encode()[:offset].decode(errors="replace"))',
        "return offset",
        "columns count bytes, not characters",
        (*SOURCE, *golden("PCB303_accents")),
    ),
    # names
    Mutant(
        "undefined-excluded",
        "frontend/subset/undefined.py",
        "        if _depends_on_lane(unit, node.test):\n",
        "        if True:\n",
        "a name is reported that stands where a known condition excludes it",
        UNDEFINED,
    ),
    Mutant(
        "undefined-annotations",
        "frontend/subset/undefined.py",
        "            if id(child) != skipped:\n",
        "            if True:\n",
        "a name is reported that only an annotation of a variable holds",
        UNDEFINED,
    ),
    Mutant(
        "bound-again",
        "frontend/build/use_before_definition.py",
        "            gone.pop(name, None)\n",
        "            pass\n",
        "a variable that is assigned after `del` counts as deleted",
        law("deleted_and_assigned_again"),
    ),
    Mutant(
        "graph-unreachable",
        "frontend/build/builder.py",
        "        order = self.reachable()\n        number",
        "        order = list(self.drafts)\n        number",
        "code that nothing reaches is compiled",
        ("tests/frontend/test_statements.py",),
    ),
    # the fence
    Mutant(
        "fence-hidden",
        "frontend/subset/check.py",
        'self.visit(part, Where("a nested function", True, where.hidden | bound))',
        'self.visit(part, Where("a nested function", True, where.hidden))',
        "a parameter of a nested function is taken for the batched function of its name",
        ("tests/frontend/test_refusals.py", "tests/frontend/test_expressions.py", "tests/diagnostics/test_errors.py"),
    ),
    Mutant(
        "fence-call-in-scope",
        "frontend/subset/check.py",
        "        elif where.scope and not target.inline:\n",
        "        elif False:\n",
        "a batched function may be called inside a comprehension",
        ("tests/frontend/test_refusals.py",),
    ),
    Mutant(
        "fence-names-default",
        "frontend/subset/check_names.py",
        "    if isinstance(last, gast.If | gast.While):\n        return last.test\n",
        "",
        "the end of a function is blamed on a whole `if`, not on its condition",
        golden("PCB111_raise", "PCB111"),
    ),
    # wording
    Mutant(
        "falls-after-raise",
        "frontend/subset/check_names.py",
        "return isinstance(last, gast.Return | gast.Raise | gast.Break | gast.Continue)",
        "return isinstance(last, gast.Return | gast.Break | gast.Continue)",
        "the end of a function is blamed on an arm that raises",
        ("tests/frontend/test_refusals.py", *golden("PCB111_raise")),
    ),
    Mutant(
        "primitive-types-unsaid",
        "lowering/diagnose/primitive_errors.py",
        "    shown = {original_name(v): t for v, t in types.items() if original_name(v) in written}\n",
        "    shown = dict[str, object]()\n",
        "a failing primitive does not say of which types its variables are",
        ("tests/diagnostics/test_golden_errors.py",),
    ),
    Mutant(
        "primitive-other-help",
        "lowering/diagnose/primitive_errors.py",
        "    if where.chain and op.loc is not None:\n        why",
        "    if not where.chain and op.loc is not None:\n        why",
        "a branch in a helper is explained as one in the function, and the other way round",
        ("tests/diagnostics/test_golden_errors.py",),
    ),
    Mutant(
        "frames-of-ours",
        "lowering/diagnose/traceback_spans.py",
        "not file.startswith((*_PACKAGES, _OURS, ",
        "not file.startswith((*_PACKAGES, ",
        "frames of the compiler are shown as the user's",
        ("tests/diagnostics/test_golden_errors.py", *ERRORS),
    ),
    Mutant(
        "frames-whole",
        "lowering/diagnose/traceback_spans.py",
        "return (place.loc if place.exact else whole), labels",
        "return whole, labels",
        "the whole expression is blamed in place of its part that failed",
        ("tests/diagnostics/test_golden_errors.py",),
    ),
    Mutant(
        "frames-bytes",
        "lowering/diagnose/traceback_spans.py",
        'return len(linecache.getline(file, line).encode()[:column].decode(errors="replace"))',
        "return column",
        "columns of what failed count bytes, not characters",
        (*golden("PCB303_accents"), *ERRORS),
    ),
    Mutant(
        "witness-whole",
        "lowering/diagnose/find_non_finite.py",
        "place, helpers = spans(frames, loc) or (loc, ())",
        "place, helpers = loc, ()",
        "a NaN is blamed on a whole expression",
        (*ERRORS, "tests/diagnostics/test_golden_errors.py"),
    ),
    Mutant(
        "witness-later",
        "lowering/diagnose/find_non_finite.py",
        "            return eqn\n        env",
        "            found = eqn\n        env",
        "the operation that gave a NaN is not named",
        (*ERRORS, "tests/diagnostics/test_golden_errors.py"),
    ),
    Mutant(
        "blame-failed-lanes",
        "runtime/vm/raw_result.py",
        "np.flatnonzero(bad & (np.asarray(outcome.status) == 0))",
        "np.flatnonzero(bad)",
        "a NaN that a failed lane gives on purpose is an error",
        ERRORS,
    ),
    Mutant(
        "blame-later-lanes",
        "blame.py",
        "for lane in lanes[:RERUN_LANES]",
        "for lane in lanes[2:RERUN_LANES]",
        "the first lanes that give a NaN are not run again to find its line",
        ERRORS,
    ),
)
