"""Trees made of tuples: of several lengths and literal texts, with texts and numbers beside them."""

from __future__ import annotations

import heapq
from typing import Any

import jax.numpy as jnp
import pytest

import pcbatch
from tests.strangers.rows import as_plain, lane_of

pytestmark = pytest.mark.promotion("standard")


def parsed(text, pos):
    if text[pos] == "(":
        left, pos = parsed(text, pos + 1)
        op = text[pos]
        right, pos = parsed(text, pos + 1)
        return ("bin", op, left, right), pos + 1
    if text[pos] == "-":
        x, pos = parsed(text, pos + 1)
        return ("neg", x), pos
    return ("num", int(text[pos])), pos + 1


def evaluated(node):
    if node[0] == "num":
        return node[1]
    if node[0] == "neg":
        return -evaluated(node[1])
    _, op, left, right = node
    a, b = evaluated(left), evaluated(right)
    return a + b if op == "+" else a * b


def matched(node):
    match node:
        case ("num", value):
            return value
        case ("neg", x):
            return -matched(x)
        case ("bin", op, left, right):
            return matched(left) + matched(right) if op == "+" else matched(left) * matched(right)
    raise ValueError("no node")


def depth(node):
    kind, *rest = node
    if kind == "num":
        return 1
    if kind == "neg":
        return 1 + depth(rest[0])
    return 1 + max(depth(rest[1]), depth(rest[2]))


def leaves(tree):
    total, stack = 0, [(tree, 1)]
    while stack:
        node, factor = stack.pop()
        if len(node) == 4:
            stack.append((node[2], factor))
            stack.append((node[3], factor))
        elif isinstance(node[1], tuple):
            stack.append((node[1], -factor))
        else:
            total += factor * node[1]
    return total


def asked(text):
    node, _ = parsed(text, 0)
    try:
        last = 3 if node[3] == node[2] else 4
    except IndexError:
        last = 0
    return evaluated(node), matched(node), depth(node), leaves(node), len(node), last, node


def term(text, pos):
    if text[pos] == "(":
        left, pos = term(text, pos + 1)
        op = text[pos]
        right, pos = term(text, pos + 1)
        return (op, left, right), pos + 1
    if text[pos] == "x":
        return "x", pos + 1
    return int(text[pos]), pos + 1


def derived(e):
    if isinstance(e, int):
        return 0
    if isinstance(e, str):
        return 1
    op, a, b = e
    if op == "+":
        return ("+", derived(a), derived(b))
    return ("+", ("*", derived(a), b), ("*", a, derived(b)))


def simple(e):
    if not isinstance(e, tuple):
        return e
    op, a, b = e
    a, b = simple(a), simple(b)
    if op == "*" and (a == 0 or b == 0):
        return 0
    if (op == "+" and a == 0) or (op == "*" and a == 1):
        return b
    if (op == "+" and b == 0) or (op == "*" and b == 1):
        return a
    return (op, a, b)


def derivative(text):
    return simple(derived(term(text, 0)[0]))


def code_lengths(text):
    counts = {}
    for letter in text:
        counts[letter] = counts.get(letter, 0) + 1
    heap = [(weight, k, letter) for k, (letter, weight) in enumerate(sorted(counts.items()))]
    heapq.heapify(heap)
    tie = len(heap)
    while len(heap) > 1:
        one, _, left = heapq.heappop(heap)
        two, _, right = heapq.heappop(heap)
        heapq.heappush(heap, (one + two, tie, (left, right)))
        tie += 1
    out = {}

    def walk(node, length):
        if isinstance(node, tuple):
            left, right = node
            walk(left, length + 1)
            walk(right, length + 1)
        else:
            out[node] = length

    walk(heap[0][2], 0)
    return sorted(out.items())


def signed(words, pos):
    if words[pos] == "-":
        tree, pos = signed(words, pos + 1)
        return ("call", "neg", [tree]), pos
    return (("var", words[pos]) if words[pos].isalpha() else ("num", float(words[pos]))), pos + 1


def statement(words):
    name = "ans"
    tree, pos = signed(words, 0)
    if tree[0] == "var" and pos < len(words) and words[pos] == "=":
        name = tree[1]
        tree, pos = signed(words, pos + 1)
    return name, tree


def value_of(tree, env):
    match tree:
        case ("num", value):
            return value
        case ("var", name) if name in env:
            return env[name]
        case ("call", _, args):
            return -value_of(args[0], env)
    return 0.0


def calculated(text):
    env = {"pi": 3.0}
    name, tree = statement(text.split())
    env[name] = value_of(tree, env)
    return name, env[name]


def lanes(function: Any, texts: list[str]) -> list[Any]:
    out = pcbatch.batch(function)(pcbatch.ragged(texts))
    return [as_plain(lane_of(out, k)) for k in range(len(texts))]


def test_a_tree_is_read_as_python_reads_it() -> None:
    texts = ["(1+2)", "-(3*(2+2))", "7", "(5*5)", "--4"]
    assert lanes(asked, texts) == [as_plain(asked(text)) for text in texts]


def test_leaves_are_texts_and_numbers() -> None:
    texts = ["(x*(2+x))", "x", "7", "((1*x)*(x+4))"]
    assert lanes(derivative, texts) == [as_plain(derivative(text)) for text in texts]


def test_parts_of_a_heap_are_trees() -> None:
    texts = ["abracadabra", "aabbbc", "zzzzy", "aaa"]
    assert lanes(code_lengths, texts) == [as_plain(code_lengths(text)) for text in texts]


def test_what_hangs_on_one_object_is_refused() -> None:
    def same(n):
        first = tree = ("leaf", n)
        for k in range(n):
            tree = ("node", tree, ("leaf", k))
        return tree is first

    with pytest.raises(pcbatch.CompileError, match="compares tuples, texts or numbers of a tree"):
        pcbatch.batch(same)(jnp.arange(3))


def test_a_stack_of_numbers_and_tuples_is_no_endless_compilation() -> None:
    def parsed(text):
        stack, signs = [], {"+", "-"}
        for c in text:
            if c in signs:
                b, a = stack.pop(), stack.pop()
                stack.append((c, a, b))
            else:
                stack.append(int(c))
        return stack.pop()

    with pytest.raises(pcbatch.CompileError, match="the elements of a list of the lane must be alike"):
        pcbatch.batch(parsed)(pcbatch.ragged(["12+", "1"]))


def test_pairs_with_a_tree_are_none() -> None:
    """A name or a position beside a tree makes no tree of two parts, as `("num", 1.5)` is."""
    texts = ["x = - 2", "3", "pi", "- - pi", "y = - z"]
    assert lanes(calculated, texts) == [as_plain(calculated(text)) for text in texts]


def sets_or_anchors(pattern, text):
    chars = set()
    for c in pattern:
        chars.add(c)
    node = ("set", frozenset(chars), False) if len(pattern) > 2 else ("anchor", pattern[0])
    return text[0] in node[1] if node[0] == "set" else text[0] == node[1]


def test_a_part_is_a_set_or_a_text() -> None:
    patterns, texts = ["abc", "ad", "xyz", "bb"], ["b", "b", "b", "b"]
    found = pcbatch.batch(sets_or_anchors)(pcbatch.ragged(patterns), pcbatch.ragged(texts))
    assert found.tolist() == list(map(sets_or_anchors, patterns, texts))


def test_the_fault_beside_tuples_is_shown_and_not_what_they_would_lack_without_records() -> None:
    def parsed(text):
        stack = []
        for c in text:
            if c == "+":
                b, a = stack.pop(), stack.pop()
                stack.append(("add", a, b))
            else:
                stack.append(("num", int(c)))
        return stack.pop()

    def value(node):
        if node[0] == "num":
            return node[1] + 0 * hash(node)
        return value(node[1]) + value(node[2])

    with pytest.raises(pcbatch.CompileError) as refused:
        pcbatch.batch(lambda text: value(parsed(text)))(pcbatch.ragged(["12+", "3"]))
    assert [one.code for one in refused.value.diagnostics] == ["PCB305"]


def test_a_part_is_a_known_frozenset() -> None:
    def parsed(pattern):
        if pattern[0] == "d":
            return ("set", frozenset("0123456789"), False)
        if pattern[0] == ".":
            return ("set", None, True)
        return ("char", pattern[0])

    def fits(node, c):
        if node[0] == "set":
            return node[1] is None or (c in node[1]) != node[2]
        return c == node[1]

    def run(pattern, text):
        return [fits(parsed(pattern), c) for c in text]

    patterns, texts = ["d", ".", "a"], ["1a", "b", "ab"]
    found = pcbatch.batch(run)(pcbatch.ragged(patterns), pcbatch.ragged(texts))
    assert [list(map(bool, one)) for one in found] == list(map(run, patterns, texts))

    def in_order(pattern):
        node = parsed(pattern)
        return [] if node[1] is None else [c for c in node[1]]

    with pytest.raises(pcbatch.CompileError, match="the order of this set is not known"):
        pcbatch.batch(in_order)(pcbatch.ragged(["d", "."]))
