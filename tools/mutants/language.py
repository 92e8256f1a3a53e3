"""Defects in loops over iterables, `match`, starred targets, methods, functions as values, inlining and unrolling."""

from __future__ import annotations

from tools.mutants.mutant import Mutant, law

STATEMENTS = ("tests/frontend/test_statements.py",)
LANGUAGE = ("tests/language/test_language.py",)
LOOPS = law("loop_over_reversed_range", "loop_with_enumerate_and_zip", "loop_over_two_arrays")
MATCHES = law("match_on_numbers", "match_on_structure", "match_with_return_and_break", "match_binds_at_the_end")
COPIES = law("loop_over_a_display", "nested_unrolled_loops", "loop_over_strings")
VALUES = law("functions_as_arguments", "any_number_of_arguments", "partial_with_another_value")
METHODS = law("method_of_a_constant_object", "recursive_method", "methods_of_two_objects")
NATURAL = ("tests/ir/test_analyses.py::test_natural_loops",)
ORDER = ("tests/lowering/test_passes.py::TestOrder",)
NUMBERS = ("tests/types/test_type_numbers.py", "tests/language/test_surprises.py")

MUTANTS = (
    # iterables
    Mutant(
        "iterables-first-length",
        "frontend/build/iterables.py",
        "    length = supported(name, [each.length.value for each in inner], node)\n",
        "    length = inner[0].length.value\n",
        "`zip` is as long as its first argument",
        LOOPS,
    ),
    Mutant(
        "iterables-not-reversed",
        "frontend/build/iterables.py",
        "inner.element(binary(last, gast.Sub(), i, node))",
        "inner.element(i)",
        "`reversed` goes forwards",
        LOOPS,
    ),
    Mutant(
        "iterables-step",
        "frontend/build/iterables.py",
        "binary(start, gast.Add(), binary(i, gast.Mult(), step, node), node)",
        "binary(start, gast.Add(), i, node)",
        "a range inside `zip` goes by ones",
        LOOPS,
    ),
    Mutant(
        "iterables-not-strict",
        "frontend/build/iterables.py",
        'name = "same_length" if _is_strict(node) else "shortest"',
        'name = "shortest"',
        "`zip(..., strict=True)` takes things of different lengths",
        ("tests/language/test_language.py::TestUnrolling", "tests/diagnostics/test_golden_errors.py"),
    ),
    # matching, support_match
    Mutant(
        "match-guard",
        "frontend/build/match.py",
        "        if case.guard is not None:\n",
        "        if False:\n",
        "a case is taken though its guard is false",
        MATCHES,
    ),
    Mutant(
        "match-binds-early",
        "frontend/build/match.py",
        "self.captures.setdefault(name, self.b.temp())",
        "self.captures.setdefault(name, name)",
        "a pattern that does not match assigns the names of its parts",
        MATCHES,
    ),
    Mutant(
        "match-from-the-front",
        "frontend/build/match.py",
        "constant(k if star is None or k < star else k - len(patterns), pattern)",
        "constant(k, pattern)",
        "what follows `*rest` in a pattern is counted from the front",
        MATCHES,
    ),
    Mutant(
        "match-alternatives",
        "frontend/build/match.py",
        "for pattern in node.patterns[:-1]:",
        "for pattern in node.patterns[1:-1]:",
        "the first of several alternatives does not count",
        MATCHES,
    ),
    Mutant(
        "match-first-attribute",
        "frontend/build/match.py",
        'supported("positional", [value, node.cls, constant(k, node)], node)',
        'supported("positional", [value, node.cls, constant(0, node)], node)',
        "positional parts of a class pattern all match its first attribute",
        MATCHES,
    ),
    Mutant(
        "match-rest-of-mapping",
        "frontend/build/match.py",
        'supported("without", [value, keys], node)',
        'supported("without", [value, display([], node)], node)',
        "`**rest` also holds the keys that the pattern names",
        MATCHES,
    ),
    Mutant(
        "match-longer",
        "frontend/support/match.py",
        "return len(value) >= count if more else len(value) == count",
        "return len(value) >= count",
        "a sequence pattern matches what is longer",
        MATCHES,
    ),
    Mutant(
        "match-text-is-a-sequence",
        "frontend/support/match.py",
        "not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray)",
        "not isinstance(value, Sequence)",
        "a sequence pattern matches a string",
        MATCHES,
    ),
    # assign, support: starred targets
    Mutant(
        "assign-star-takes-all",
        "frontend/support/operators.py",
        "    end = len(items) - after\n",
        "    end = len(items)\n",
        "`a, *rest, z = xs` puts z into `rest` too",
        law("starred_targets"),
    ),
    Mutant(
        "assign-star-place",
        "frontend/build/assignments.py",
        "sizes = [constant(star, at), constant(after, at)]",
        "sizes = [constant(after, at), constant(star, at)]",
        "a starred target takes its elements from the wrong end",
        law("starred_targets"),
    ),
    # target, resolve, calls, unit, methods
    Mutant(
        "target-one-copy",
        "frontend/source/callee.py",
        "a.keys() == b.keys() and all(_same(a[name], b[name], batched) for name in a)",
        "a.keys() == b.keys()",
        "one copy of a function serves all functions that are passed to it",
        (*LANGUAGE, *VALUES),
    ),
    Mutant(
        "target-any-object",
        "frontend/source/callee.py",
        "    return all(_same(x, y, batched) for x, y in zip(one.args, two.args, strict=True)) and same_statics(\n",
        "    return same_statics(\n",
        "methods of two objects count as one function",
        (*LANGUAGE, *METHODS),
    ),
    Mutant(
        "resolve-unbound",
        "frontend/source/resolve.py",
        'return found.__get__(base, type(base)) if own and name not in getattr(base, "__dict__", ()) else found',
        "return found",
        "a batched method is called without its object",
        METHODS,
    ),
    Mutant(
        "resolve-any-table",
        "frontend/source/resolve.py",
        "if type(base) not in (dict, tuple, list) or type(index) not in (int, str, bool):",
        "if base is MISSING or type(index) not in (int, str, bool):",
        "looking up a table of functions runs code of the user",
        (*LANGUAGE, "tests/frontend/test_expressions.py"),
    ),
    Mutant(
        "calls-bound-twice",
        "frontend/source/bind_call.py",
        "    free = shape.positional[len(target.args) :]\n",
        "    free = shape.positional\n",
        "the first argument of a method's call takes the place of its object",
        METHODS,
    ),
    Mutant(
        "calls-partial-wins",
        "frontend/source/bind_call.py",
        "if name in shape.by_name and name not in given}",
        "if name in shape.by_name}",
        "a keyword of a `functools.partial` beats that of the call",
        (*VALUES, *LANGUAGE),
    ),
    Mutant(
        "unit-in-a-case",
        "frontend/source/function_unit.py",
        "        elif isinstance(node, gast.stmt | gast.match_case) and",
        "        elif isinstance(node, gast.stmt) and",
        "a nested function in a `case` is not found",
        law("nested_function_in_a_case"),
    ),
    Mutant(
        "unit-assigned-static",
        "frontend/source/function_unit.py",
        "for name, value in statics.items() if not bound.get(name, [fn])}",
        "for name, value in statics.items()}",
        "a parameter that is assigned still means the function that was passed",
        (*LANGUAGE, *VALUES, "tests/api/test_api.py::TestArguments"),
    ),
    Mutant(
        "methods-constant",
        "methods.py",
        '"constant" if opaque else "shared"',
        '"constant"',
        "an object that is a pytree of arrays is a constant of the program",
        ("tests/language/test_language.py::TestMethods",),
    ),
    Mutant(
        "methods-mapped",
        "methods.py",
        "dict.fromkeys(rest, in_axes) | {first: None}",
        "dict.fromkeys((first, *rest), in_axes)",
        "the arrays of a method's object are mapped over lanes",
        ("tests/language/test_language.py::TestMethods",),
    ),
    # inline
    Mutant(
        "inline-exchanged",
        "lowering/passes/inline.py",
        "for p, a in zip(callee.params, call.args, strict=True)",
        "for p, a in zip(callee.params, reversed(call.args), strict=True)",
        "the arguments of an inline function are exchanged",
        (*law("inline_helpers"), *LANGUAGE),
    ),
    Mutant(
        "inline-leaves",
        "lowering/passes/inline.py",
        "return Block(labels[block.label], ops, Jump(labels[RETURN]))",
        "return Block(labels[block.label], ops, terminator)",
        "a `return` of an inline function returns from its caller",
        (*law("inline_helpers"), *LANGUAGE),
    ),
    # unroll, ir/loops
    Mutant(
        "unroll-one-less",
        "lowering/passes/unroll.py",
        "self.copies(wanted, wanted.trips)",
        "self.copies(wanted, max(0, wanted.trips - 1))",
        "the last element of a tuple is left out",
        COPIES,
    ),
    Mutant(
        "unroll-way-out",
        "lowering/passes/unroll.py",
        "_Wanted(loop, self.copied(loop), ",
        "_Wanted(loop, loop.body, ",
        "what leaves a loop over names does not know the element",
        law("leaving_a_loop_over_names"),
    ),
    Mutant(
        "unroll-ends-early",
        "lowering/passes/unroll.py",
        "own = names[trip] | {at: heads[trip + 1]}",
        "own = names[trip] | {at: heads[-1]}",
        "a loop over a tuple ends after its first element",
        COPIES,
    ),
    Mutant(
        "unroll-keeps-excluded",
        "lowering/passes/unroll.py",
        "block = replace(block, terminator=_jump(targets[0])) if len(targets) == 1 else block",
        "pass",
        "what a known condition excludes is reported all the same",
        law("optional_value"),
    ),
    Mutant(
        "loops-outer-first",
        "ir/loops.py",
        "tuple(sorted(found, key=lambda loop: len(loop.body)))",
        "tuple(sorted(found, key=lambda loop: -len(loop.body)))",
        "a loop inside another is taken for the one around it",
        (*NATURAL, *COPIES),
    ),
    Mutant(
        "loops-any-edge",
        "ir/loops.py",
        "if dominators.over(target, block.label):",
        "if True:",
        "every jump counts as one back to the head of a loop",
        (*NATURAL, *COPIES),
    ),
    # frequency
    Mutant(
        "frequency-no-recursion",
        "lowering/analysis/block_frequency.py",
        "isinstance(edge, Jump | PushJump)]",
        "isinstance(edge, Jump)]",
        "recursion does not count as a loop",
        (*ORDER, "tests/runtime/test_counts.py"),
    ),
    # check_numbers
    Mutant(
        "numbers-unchecked",
        "lowering/diagnose/check_types.py",
        "faults += _no_result(program, found) or check_numbers.run(program, found)",
        "faults += _no_result(program, found)",
        "a number that does not fit its variable wraps around",
        NUMBERS,
    ),
    Mutant(
        "numbers-moved",
        "lowering/diagnose/check_literals.py",
        "            yield (name, op.dst), found.types.get((name, op.src)), op.loc\n",
        "            pass\n",
        "a number that is moved into a variable is not checked",
        NUMBERS,
    ),
    Mutant(
        "numbers-passed",
        "lowering/diagnose/check_literals.py",
        "                yield (callee.name, param), found.types.get((name, arg)), op.loc\n",
        "                pass\n",
        "a number that is passed to a function is not checked",
        NUMBERS,
    ),
    Mutant(
        "numbers-from-below",
        "lowering/typing/abstract_values.py",
        "return low <= number <= high",
        "return number <= high",
        "a negative number fits an unsigned type",
        NUMBERS,
    ),
)
