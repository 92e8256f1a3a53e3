"""The lowering of expressions to blocks.

An expression without control flow is one primitive, however large. What needs control flow is taken out of it
first, in evaluation order, and leaves a temporary in its place: calls of batched functions, `and`, `or`,
ternaries, chained comparisons, `:=` and methods such as `pop`. Since primitives are pure, the rest of the expression
may be evaluated later than Python would, but for parts that read a variable which a later part changes: those are
copied to a temporary first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import gast

from pcbatch.data import optional
from pcbatch.data.catalogue import NEXT
from pcbatch.data.functions import operators, python_numbers, sequence_operators, truth
from pcbatch.data.functions.python_numbers import NEGATIVE_POWER
from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.calls import CallPlan
from pcbatch.frontend.build.changes_in_try import by_streams, taken_one_by_one
from pcbatch.frontend.build.evaluation_order import (
    assigned,
    changes_objects,
    copied,
    frozen,
    may_raise,
    raises_in_order,
    settled,
    store,
    updated,
)
from pcbatch.frontend.build.iteration.kept_iterators import kept_iterator, take_next
from pcbatch.frontend.build.iteration.streams_as_lists import as_list
from pcbatch.frontend.build.iteration.taken_iterables import given_lists, with_lists
from pcbatch.frontend.build.links import link_into
from pcbatch.frontend.build.primitives import lane_reads
from pcbatch.frontend.build.receivers import call_of_looked_up, evaluated
from pcbatch.frontend.source.bind_call import starred
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.places import Mutation, mutation
from pcbatch.frontend.source.resolve import callee, is_builtin
from pcbatch.frontend.source.rewrites.spread import spread
from pcbatch.frontend.source.streams import becomes_list, expands, takes_list
from pcbatch.frontend.source.tree import (
    SCOPES,
    Node,
    children,
    compare,
    constant,
    is_constant,
    is_supported,
    load,
    rebuild,
    supported,
)
from pcbatch.ir.ops import LIMIT, Branch, Fail


def has_control(b: Builder, node: Node) -> bool:
    """Whether an expression contains a part that needs control flow: a call, a choice or an assignment."""
    if kept_iterator(b.unit, node) is not node:
        return True
    if expands(b.unit, node) or any(map(_is_listed(b, node), children(node))):
        return True
    if isinstance(node, SCOPES):
        return False
    if raises_in_order(b, node) or (isinstance(node, gast.Starred) and becomes_list(b.unit, node.value)):
        return True
    if isinstance(node, gast.BoolOp | gast.IfExp | gast.NamedExpr) or callee(b.unit, node) is not None:
        return True
    if (isinstance(node, gast.Compare) and len(node.ops) > 1) or _power_of(b, node) is not None:
        return True
    return mutation(b.unit, node) is not None or any(has_control(b, child) for child in children(node))


def lower(b: Builder, node: Node) -> Node:
    """The expression with every part that needs control flow replaced by a temporary that holds its value."""
    if not has_control(b, node):
        return node
    if expands(b.unit, node):
        return _looped(b, node)
    if (iterator := kept_iterator(b.unit, node)) is not node:
        return lower(b, iterator)
    function = callee(b.unit, node)
    if function is not None:
        return b.held(call_into(b, None, node, function), node)
    if _is_control(b, node):
        dst = b.temp()
        _control_into(b, dst, node)
        return b.held(dst, node)
    if isinstance(node, gast.NamedExpr):
        lower_into(b, node.target.id, node.value)
        return load(node.target.id, node)
    power = _power_of(b, node)
    if power is not None:
        return _power(b, node, *power)
    found = mutation(b.unit, node)
    if found is not None:
        return b.held(mutate(b, node, found), node)
    node = with_lists(b.unit, node)
    parts = list(children(node))
    listed = _is_listed(b, node)
    if any(map(listed, parts)):
        return lower(b, given_lists(b.unit, node, listed))
    ordered = in_order(b, parts, calls=isinstance(node, gast.Call))
    lowered = {id(part): new for part, new in zip(parts, ordered, strict=True)}
    return rebuild(node, lambda child: lowered[id(child)])


def _looped(b: Builder, node: Node) -> Node:
    dst = b.temp()
    b.loops.expand(b, dst, node)
    return b.held(dst, node)


def _is_listed(b: Builder, node: Node) -> Callable[[Node], bool]:
    """Whether a part of a node is a stream that becomes a list, because a method such as `extend` takes it whole."""
    if not takes_list(b.unit, node):
        return lambda part: False
    return lambda part: becomes_list(b.unit, part)


def _power_of(b: Builder, node: Node) -> tuple[Node, Node] | None:
    """Return the base and the exponent of a power whose exponent is no literal; None for any other node."""
    match node:
        case gast.BinOp(op=gast.Pow()):
            parts = node.left, node.right
        case gast.Call(args=[_, _], keywords=[]) if is_builtin(b.unit, node.func, "pow"):
            parts = node.args[0], node.args[1]
        case _:
            return None
    return None if _is_number(parts[1]) or any(isinstance(part, gast.Starred) for part in parts) else parts


def _is_number(node: Node) -> bool:
    """Return whether a node is a literal, which may have a sign."""
    return is_constant(node.operand if isinstance(node, gast.UnaryOp) else node)


def _power(b: Builder, node: Node, base: Node, exponent: Node) -> Node:
    """Compute a power after a test of base and exponent: a negative power of an integer is a float in Python, so it
    ends the lane."""
    parts = in_order(b, [base, exponent])
    base, exponent = (part if _is_number(part) else copied(b, part) for part in parts)
    holds, failing, cond = b.label(), b.label(), b.temp()
    shown = compare(exponent, gast.GtE(), constant(0, node), node)
    b.prim((cond,), supported(python_numbers.is_power, [base, exponent], node), shown=shown)
    b.end(Branch(cond, holds, failing, b.loc(node)))
    b.start(failing)
    b.end(Fail(LIMIT, LIMIT, (NEGATIVE_POWER,), b.loc(node)))
    b.start(holds)
    return supported(operators.checked_power, [base, exponent], node)


def in_order(
    b: Builder, nodes: Sequence[Node], fixed: Callable[[Node], Node] = lambda node: node, calls: bool = False
) -> list[Node]:
    """Lower several expressions, which Python evaluates in this order.

    `fixed` is what each is before that; `calls`: the first one is what a call calls.
    """
    lowered: list[Node] = []
    for node in nodes:
        names, objects = updated(b, node), changes_objects(b, node)
        # The parts before this one read what they read first, so this one must not change it.
        if names or objects:
            lowered = [frozen(b, part, names, objects, calls and k == 0) for k, part in enumerate(lowered)]
        if (b.handlers and has_control(b, node)) or (b.unbound and may_raise(b, node)):
            lowered = [settled(b, part, calls and k == 0) for k, part in enumerate(lowered)]
        lowered.append(lower(b, fixed(node)))
    return lowered


def mutate(b: Builder, node: Node, found: Mutation) -> str:
    """Build a call that changes a place; return the variable that holds its value."""
    if taken_one_by_one(b, found):
        return by_streams(b, node, found, operands)
    listed = [arg for arg in found.args if takes_list(b.unit, node) and becomes_list(b.unit, arg)]
    given = evaluated(b, node, found, [as_list(arg) if arg in listed else arg for arg in found.args], operands)
    if found.method == NEXT and len(found.args) < 2 and not found.names:
        return take_next(b, found, given.operands, node, lower_into)
    return call_of_looked_up(b, found, given, node, bool(listed))


def operands(b: Builder, nodes: Sequence[Node]) -> list[Node]:
    """Evaluate several expressions, in this order; return them as variables, or as they are if they read none."""
    lowered = in_order(b, nodes)
    return [
        atom(b, node) if lane_reads(b.unit, node, b.variables) and not isinstance(node, gast.Lambda) else node
        for node in lowered
    ]


def lower_into(b: Builder, dst: str, node: Node) -> None:
    """Build `dst = node` for any expression."""
    if isinstance(node, gast.IfExp) or callee(b.unit, node) is not None:
        _control_into(b, dst, node)
    elif _is_control(b, node) and dst not in {*lane_reads(b.unit, node, b.variables), *assigned(b, node)}:
        _control_into(b, dst, node)  # writes `dst` before all operands are read, hence the condition
    else:
        store(b, dst, lower(b, node))


def atom(b: Builder, node: Node) -> Node:
    """Return an expression as a variable or a literal, for a value that is used more than once."""
    lowered = lower(b, node)
    if is_constant(lowered) or (isinstance(lowered, gast.Name) and lowered.id in b.variables):
        return lowered
    return b.held(variable(b, lowered), node)


def variable(b: Builder, node: Node) -> str:
    """Return the name of a variable that holds the value of an expression."""
    node = lower(b, node)
    if isinstance(node, gast.Name) and node.id in b.variables:
        name: str = node.id
        return name
    dst = b.temp()
    b.prim((dst,), node)
    return dst


def where(b: Builder, node: Node, otherwise: str) -> None:
    """Continue in a new block where a condition holds, and at a label where it does not."""
    holds = b.label()
    condition(b, node, holds, otherwise)
    b.start(holds)


def condition(b: Builder, node: Node, on_true: str, on_false: str) -> None:
    """Close the current block: continue at one of two labels, as `if node:` would."""
    if expands(b.unit, node) and b.loops.expand_condition(b, node, on_true, on_false):
        return
    if is_constant(node):
        b.jump(on_true if node.value else on_false)
    elif isinstance(node, gast.UnaryOp) and isinstance(node.op, gast.Not):
        condition(b, node.operand, on_false, on_true)
    elif isinstance(node, gast.BoolOp):
        _bool_condition(b, node, on_true, on_false)
    elif isinstance(node, gast.IfExp):
        first, second = b.label(), b.label()
        condition(b, node.test, first, second)
        b.start(first)
        condition(b, node.body, on_true, on_false)
        b.start(second)
        condition(b, node.orelse, on_true, on_false)
    elif isinstance(node, gast.Compare) and len(node.ops) > 1:
        *links, last = node.ops
        left = node.left
        for op, right in zip(links, node.comparators, strict=False):
            left, right = in_order(b, [left, right])
            left, right = settled(b, left), atom(b, right)
            _then(b, compare(left, op, right, node), on_false)
            left = right
        left, right = in_order(b, [left, node.comparators[-1]])
        _branch(b, compare(left, last, right, node), on_true, on_false)
    else:
        _branch(b, lower(b, node), on_true, on_false)


def _bool_condition(b: Builder, node: Node, on_true: str, on_false: str) -> None:
    is_and = isinstance(node.op, gast.And)
    for value in node.values[:-1]:
        following = b.label()
        condition(b, value, following if is_and else on_true, on_false if is_and else following)
        b.start(following)
    condition(b, node.values[-1], on_true, on_false)


def _then(b: Builder, node: Node, on_false: str) -> None:
    following = b.label()
    _branch(b, node, following, on_false)
    b.start(following)


def _branch(b: Builder, node: Node, on_true: str, on_false: str) -> None:
    cond = b.temp()
    b.prim((cond,), supported(truth.truth, [node], node), shown=node)
    tested = _none_test(b, node)
    if tested is None:
        b.end(Branch(cond, on_true, on_false, b.loc(node)))
        return
    # On the way where the variable is not None, it has the type of its value from here on.
    name, holds = tested
    present, value_side = b.label(), on_true if holds else on_false
    b.end(Branch(cond, *((present, on_false) if holds else (on_true, present)), b.loc(node)))
    b.start(present)
    b.plain_prim((name,), supported(optional.narrowed, [load(name, node)], node), shown=load(name, node))
    b.note(same=True)
    b.jump(value_side)


def _none_test(b: Builder, node: Node) -> tuple[str, bool] | None:
    """The variable that a condition compares with None, and whether it is not None where the condition holds."""
    match node:
        case gast.Compare(left=gast.Name(id=name), ops=[op], comparators=[gast.Constant(value=None)]):
            known = name in b.unit.statics or name not in b.variables
            if not known and isinstance(op, gast.Is | gast.IsNot | gast.Eq | gast.NotEq):
                return name, isinstance(op, gast.IsNot | gast.NotEq)
    return None


def _is_control(b: Builder, node: Node) -> bool:
    chain = isinstance(node, gast.Compare) and len(node.ops) > 1
    return chain or isinstance(node, gast.BoolOp | gast.IfExp) or callee(b.unit, node) is not None


def _control_into(b: Builder, dst: str, node: Node) -> None:
    function = callee(b.unit, node)
    if function is not None:
        call_into(b, dst, node, function)
    elif isinstance(node, gast.IfExp):
        _ternary_into(b, dst, node)
    elif isinstance(node, gast.BoolOp):
        _bool_into(b, dst, node)
    else:
        _chain_into(b, dst, node)


def call_into(b: Builder, dst: str | None, node: Node, target: Target) -> str:
    """Build a call of a function of the program; return the variable of its result."""
    node = spread(b.unit, node)
    plan = CallPlan.of(b, node, without_star(b, node, target), target)
    values = in_order(b, plan.nodes, partial(plan.given.fixed, b, lower))
    names = (name for name, _ in plan.binding.given)
    given = {name: _argument(b, value, node) for name, value in zip(names, values, strict=True)}
    return plan.emit(b, dst, given)


def _argument(b: Builder, value: Node, call: Node) -> str:
    """Return the name of a variable that holds an argument of a call, linked with what that is a part of if asked."""
    if not isinstance(value, gast.Subscript) or b.loc(call) not in b.unit.decisions.linked:
        return variable(b, value)
    dst = b.temp()
    return dst if link_into(b, dst, value, has_control, call) else variable(b, value)


def without_star(b: Builder, node: Node, target: Target) -> Node:
    """Return the call with `*values` written out as the arguments that the function still needs."""

    def item(value: Node, k: int, count: int) -> Node:
        return supported(sequence_operators.star_item, [value, constant(k, value), constant(count, value)], value)

    def counted(value: Node, least: int) -> int:
        count = b.unit.unpacked(value, least)
        star = gast.copy_location(gast.Starred(value=value, ctx=gast.Load()), value)
        check = supported(sequence_operators.star_count, [value, constant(count, value)], value)
        b.prim((b.temp(),), check, shown=star)
        return count

    args = list(node.args)
    for k, arg in enumerate(args):
        if isinstance(arg, gast.Starred) and not is_supported(arg.value, sequence_operators.star_rest):
            # Several elements read it, so it is evaluated once, after those before it.
            *before, values = in_order(b, [*args[:k], arg.value])
            args[: k + 1] = [*before, gast.copy_location(gast.Starred(value=copied(b, values), ctx=arg.ctx), arg)]
    whole = gast.Call(func=node.func, args=args, keywords=node.keywords)
    return starred(gast.copy_location(whole, node), target, item, counted)


def _ternary_into(b: Builder, dst: str, node: Node) -> None:
    first, second, after = b.label(), b.label(), b.label()
    condition(b, node.test, first, second)
    for label, arm in ((first, node.body), (second, node.orelse)):
        b.start(label)
        lower_into(b, dst, arm)
        b.jump(after)
    b.start(after)


def _bool_into(b: Builder, dst: str, node: Node) -> None:
    """Build `and` and `or`: `a and b` is `a` when `a` is false, so each value both decides and may be the result."""
    is_and = isinstance(node.op, gast.And)
    after = b.label()
    for value in node.values[:-1]:
        lower_into(b, dst, value)
        following = b.label()
        test = load(dst, value)
        _branch(b, test, following if is_and else after, after if is_and else following)
        b.start(following)
    lower_into(b, dst, node.values[-1])
    b.begin(after)


def _chain_into(b: Builder, dst: str, node: Node) -> None:
    after, left = b.label(), node.left
    for op, comparator in zip(node.ops[:-1], node.comparators, strict=False):
        left, right = in_order(b, [left, comparator])
        left, right = settled(b, left), atom(b, right)
        b.prim((dst,), compare(left, op, right, node))
        following = b.label()
        _branch(b, load(dst, node), following, after)
        b.start(following)
        left = right
    left, right = in_order(b, [left, node.comparators[-1]])
    b.prim((dst,), compare(left, node.ops[-1], right, node))
    b.begin(after)
