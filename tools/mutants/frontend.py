"""Defects in the front end: scoping, control flow, expressions."""

from __future__ import annotations

from tools.mutants.mutant import LAW, Mutant, law

EXPRESSIONS = ("tests/frontend/test_expressions.py",)
STATEMENTS = ("tests/frontend/test_statements.py",)
REFUSALS = ("tests/frontend/test_refusals.py",)
SOURCE = ("tests/frontend/test_source.py",)
SUPPORT = ("tests/frontend/test_support.py",)

MUTANTS = (
    # exprs
    Mutant(
        "exprs-chain-order",
        "frontend/exprs.py",
        "            left = right\n        _branch(b, compare(left, last,",
        "        _branch(b, compare(left, last,",
        "`a < b < c` compares a with c",
        law("chained_comparisons"),
    ),
    Mutant(
        "exprs-chain-evaluates-twice",
        "frontend/exprs.py",
        "            left = lower(b, left)\n            right = atom(b, right)\n",
        "            left = lower(b, left)\n            lower(b, right)\n            right = atom(b, right)\n",
        "the middle of a chained comparison is evaluated twice",
        (*EXPRESSIONS, "tests/test_counts.py"),
    ),
    Mutant(
        "exprs-not-short",
        "frontend/exprs.py",
        "            _then(b, compare(left, op, right, node), on_false)\n",
        "            lower(b, node.comparators[-1])\n            _then(b, compare(left, op, right, node), on_false)\n",
        "the end of a chained comparison is evaluated though its start is false",
        EXPRESSIONS,
    ),
    Mutant(
        "exprs-and-is-or",
        "frontend/exprs.py",
        "condition(b, value, following if is_and else on_true, on_false if is_and else following)",
        "condition(b, value, following if not is_and else on_true, on_false if not is_and else following)",
        "`and` and `or` are exchanged in conditions",
        EXPRESSIONS,
    ),
    Mutant(
        "exprs-value-of-or",
        "frontend/exprs.py",
        "_branch(b, test, following if is_and else after, after if is_and else following)",
        "_branch(b, test, following, following)",
        "`a and b` is always b",
        EXPRESSIONS,
    ),
    Mutant(
        "exprs-ternary",
        "frontend/exprs.py",
        "((first, node.body), (second, node.orelse)):\n        b.start(label)\n        lower_into",
        "((second, node.body), (first, node.orelse)):\n        b.start(label)\n        lower_into",
        "the arms of a ternary are swapped",
        EXPRESSIONS,
    ),
    Mutant(
        "exprs-overwrites-input",
        "frontend/exprs.py",
        "elif _is_control(b, node) and dst not in lane_reads(b.unit, node, b.variables):",
        "elif _is_control(b, node):",
        "`x = a < b < x` writes x before it has read it",
        (*EXPRESSIONS, *law("short_circuit_values")),
    ),
    Mutant(
        "exprs-not",
        "frontend/exprs.py",
        "condition(b, node.operand, on_false, on_true)",
        "condition(b, node.operand, on_true, on_false)",
        "`not` in a condition does nothing",
        EXPRESSIONS,
    ),
    # stmts
    Mutant(
        "stmts-else-after-break",
        "frontend/stmts.py",
        "    condition(b, node.test, body, orelse if node.orelse else after)\n    b.start(body)\n"
        "    statements(b, node.body, Loop(after, head))\n",
        "    condition(b, node.test, body, orelse if node.orelse else after)\n    b.start(body)\n"
        "    statements(b, node.body, Loop(orelse, head))\n",
        "`else` of a `while` also runs after `break`",
        STATEMENTS,
    ),
    Mutant(
        "stmts-for-else-after-break",
        "frontend/stmts.py",
        "    iteration.step()\n    statements(b, node.body, Loop(after, head))\n",
        "    iteration.step()\n    statements(b, node.body, Loop(orelse, head))\n",
        "`else` of a `for` also runs after `break`",
        STATEMENTS,
    ),
    Mutant(
        "stmts-else-breaks-inner",
        "frontend/stmts.py",
        "    b.start(orelse)\n    statements(b, node.orelse, loop)\n    b.jump(after)\n"
        "    b.start(after)\n\n\ndef _for",
        "    b.start(orelse)\n    statements(b, node.orelse, Loop(after, head))\n    b.jump(after)\n"
        "    b.start(after)\n\n\ndef _for",
        "`break` in the `else` of a loop leaves that loop only",
        STATEMENTS,
    ),
    Mutant(
        "stmts-return-swapped",
        "frontend/stmts.py",
        "((first, value.body), (second, value.orelse))",
        "((second, value.body), (first, value.orelse))",
        "a returned ternary gives its other arm",
        (*STATEMENTS, *EXPRESSIONS),
    ),
    # assign
    Mutant(
        "assign-twice",
        "frontend/assign.py",
        "        value = _once(b, value)\n",
        "        pass\n",
        "`a = b = value` evaluates the value for every target",
        STATEMENTS,
    ),
    Mutant(
        "assign-first-place",
        "frontend/assign.py",
        "last[name.id] = id(name)",
        "last.setdefault(name.id, id(name))",
        "`x, x = 1, 2` keeps the first",
        STATEMENTS,
    ),
    Mutant(
        "assign-inplace",
        "frontend/assign.py",
        "binary(checked, node.op, value, node)",
        "binary(old, node.op, value, node)",
        "`xs += [x]` changes a list in place",
        (*REFUSALS, *SUPPORT, *STATEMENTS, "tests/test_errors.py"),
    ),
    # loops
    Mutant(
        "loops-variable-is-counter",
        "frontend/loops.py",
        "        assign_value(b, target, load(following, target))\n"
        "        b.prim((following,), binary(load(following, node), gast.Add(), step, node))\n",
        "        b.prim((following,), binary(load(following, node), gast.Add(), step, node))\n"
        "        assign_value(b, target, load(following, target))\n",
        "a loop variable is one step ahead",
        STATEMENTS,
    ),
    Mutant(
        "loops-step-read-again",
        "frontend/loops.py",
        "step = args[2] if isinstance(args[2], gast.Constant) else _copy(b, args[2])",
        "step = args[2]",
        "a loop notices that its body changed the step",
        STATEMENTS,
    ),
    Mutant(
        "loops-enumerate-start",
        "frontend/loops.py",
        "binary(at, gast.Add(), start, node)",
        "at",
        "`enumerate` starts at 0",
        STATEMENTS,
    ),
    Mutant(
        "loops-rows-follow-name",
        "frontend/loops.py",
        "    rows = _copy(b, lower(b, node))\n    count",
        "    rows = lower(b, node)\n    count",
        "a loop over an array notices that its body reassigned it",
        STATEMENTS,
    ),
    # scope, resolve
    Mutant(
        "scope-comprehension",
        "frontend/scope.py",
        "bound = {name for g in node.generators for name, _ in bindings([g.target])}",
        "bound = set[str]()",
        "a comprehension reads the variables of the function around it",
        EXPRESSIONS,
    ),
    Mutant(
        "scope-parameters",
        "frontend/scope.py",
        "bound = {*parameters(node.args), *(name",
        "bound = {*(name",
        "parameters of a nested function are read from around it",
        EXPRESSIONS,
    ),
    Mutant(
        "resolve-locals",
        "frontend/resolve.py",
        "if node.id in unit.bound or node.id in hidden:",
        "if node.id in hidden:",
        "a local does not hide a global of its name",
        (*STATEMENTS, *EXPRESSIONS),
    ),
    Mutant(
        "resolve-cells",
        "frontend/resolve.py",
        "    if name in fn.__code__.co_freevars:\n",
        "    if name in fn.__code__.co_freevars and name not in fn.__globals__:\n",
        "a global hides a closure variable",
        (*EXPRESSIONS, "tests/frontend"),
    ),
    # calls, prims, graph, compile, bound, support, source
    Mutant(
        "calls-defaults",
        "frontend/calls.py",
        "code.co_varnames[code.co_argcount - len(values) : code.co_argcount]",
        "code.co_varnames[: len(values)]",
        "defaults belong to the first parameters",
        EXPRESSIONS,
    ),
    Mutant(
        "calls-two-values",
        "frontend/calls.py",
        "        elif keyword.arg in given:\n",
        "        elif False:\n",
        "an argument may be given twice",
        REFUSALS,
    ),
    Mutant(
        "prims-helper-captures",
        "frontend/prims.py",
        "        names += helper_reads(unit, helper)\n",
        "        pass\n",
        "what a nested function captures is not read",
        EXPRESSIONS,
    ),
    Mutant(
        "operators-not",
        "frontend/operators.py",
        'return supported("not_", [node.operand], node)',
        "return node.operand",
        "`not` in an expression does nothing",
        EXPRESSIONS,
    ),
    Mutant(
        "graph-names",
        "frontend/graph.py",
        'while (name := f"t{self._next_temp}") in self.unit.names:',
        'while (name := f"t{self._next_temp}") == "":',
        "a temporary takes the name of a user's variable",
        STATEMENTS,
    ),
    Mutant(
        "compile-by-name",
        "frontend/compile.py",
        "            if known is fn:\n",
        "            if known.__name__ == fn.__name__:\n",
        "two functions of one name are taken for one",
        EXPRESSIONS,
    ),
    Mutant(
        "bound-helpers",
        "frontend/bound.py",
        "start = dict.fromkeys(order, everything) | {order[0]: Names()}",
        "start = dict.fromkeys(order, everything)",
        "a nested function may be used before its definition",
        REFUSALS,
    ),
    Mutant(
        "support-truth",
        "frontend/support_truth.py",
        "    return value != 0\n",
        "    return value > 0\n",
        "a negative number is false",
        SUPPORT,
    ),
    Mutant(
        "support-range-down",
        "frontend/support.py",
        "low, high = (start, stop) if step > 0 else (stop, start)",
        "low, high = start, stop",
        "a range that counts down is empty",
        SUPPORT,
    ),
    Mutant(
        "source-wrong-lambda",
        "frontend/source.py",
        "        found = [item for item in found if _body_matches(item[0].body, code)]\n",
        "        found = found[:1]\n",
        "of two lambdas on a line the first is compiled",
        SOURCE,
    ),
    Mutant(
        "unit-two-helpers",
        "frontend/unit.py",
        "if len(bound[name]) == 1 and name not in params}",
        "if name not in params}",
        "a name with two definitions counts as one nested function",
        ("tests/frontend", LAW),
    ),
    Mutant(
        "fence-open",
        "frontend/compile.py",
        "    check(unit, faults)\n",
        "",
        "what is not supported is compiled all the same",
        REFUSALS,
    ),
)
