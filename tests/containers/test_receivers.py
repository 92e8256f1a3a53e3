"""The object of a method is looked up before the arguments, and is the one that changes: lanes do so, or refuse."""

from __future__ import annotations

import heapq
from collections import defaultdict

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.errors import BatchRuntimeError, CompileError
from tests.strangers.rows import alike, as_plain, lane_of


class Tree:
    """A tree by lists of children, made one node at a time."""

    def __init__(self, children):
        self.children = children
        self.count = 0
        self.names = {}
        self.other = None

    def node(self):
        self.children.append([])
        self.count += 1
        return len(self.children) - 1

    def name(self, k):
        self.names[k] = [k]
        return k

    def renamed(self):
        self.names = {0: [5], 1: [6]}
        return 3

    def emptied(self):
        self.children = []
        return 1


def swap(rows, x):
    rows[0], rows[1] = [x], [x + 1]
    return x


def put(rows, key, x):
    rows[key] = [x]
    return x


def grow(rows, x):
    rows.append([x])
    return x


def dropped(rows):
    return rows.pop(0)[0]


def of_itself(x):
    tree = Tree([[x]])
    tree.other = tree
    return tree.other.emptied() + len(tree.children)


def made_along(x):
    """A recursive function that fills lists of objects of its own, which are no others although the name is."""
    tree = Tree([])
    tree.children = [x]
    if x > 0:
        tree.children.append(made_along(x - 1)[0])
    return len(tree.children), x


def nodes(x):
    tree = Tree([[]])
    for k in range(x):
        tree.children[k].append(tree.node())
    return [len(one) for one in tree.children], tree.count


def from_the_end(x):
    rows = [[x], [2]]
    rows[-1].append(grow(rows, x))
    rows[-x].append(grow(rows, 1))
    return [sum(row) for row in rows]


def other_key(x):
    d = {1: [1], x + 5: [2]}
    d[1].append(put(d, x + 5, x))
    return [sum(row) for row in d.values()]


def other_literal(x):
    d = {1: [1], 2: [2]}
    d[1].append(put_second(d, x))
    return [sum(row) for row in d.values()]


def put_second(d, x):
    d[2] = [x]
    return x


def named(x):
    tree = Tree([[]])
    tree.name(0)
    tree.names[0].append(tree.name(x))
    return sorted(tree.names), sum(len(v) for v in tree.names.values())


def merged(x):
    groups = {k: [k] for k in range(4)}
    groups[0].extend(groups.pop(x))
    return sorted(groups), groups[0]


def last_popped(x):
    stack = [[x], [1], [2]]
    stack[0].append(stack.pop()[0])
    return [sum(row) for row in stack]


def in_place(x):
    rows = [[x], [2]]
    rows[0].append(extended(rows, x))
    return rows[0]


def extended(rows, x):
    rows[0] += [x]
    rows[0].append(x + 1)
    return x


def by_default(x):
    d = defaultdict(list)
    d[x].append(len(d))
    d[1].append(put(d, 7, x))
    return [sum(v) for v in d.values()]


def queued(x):
    queues = {0: [3, x], 1: [5]}
    heapq.heappush(queues[0], put(queues, 1, x + 1) - 2)
    return queues[0], queues[1]


class Other:
    """A class with a method of the same name, which does store what it has."""

    def __init__(self):
        self.count, self.names = 0, {}

    def name(self, k):
        self.names = {k: [k]}
        return k


def two_classes(x):
    tree, other = Tree([[]]), Other()
    tree.names.update({x: [other.name(x)]})
    tree.names.setdefault(x, []).append(tree.name(1))
    return [sum(row) for row in tree.names.values()], len(other.names)


RIGHT = [
    nodes, from_the_end, other_key, other_literal, named, merged, last_popped, in_place, by_default, queued,
    two_classes, of_itself, made_along,
]  # fmt: skip


@pytest.mark.parametrize("fn", RIGHT, ids=lambda fn: fn.__name__)
def test_like_python(fn):
    xs = [2, 3]
    got = pcbatch.batch(fn)(jnp.asarray(xs))
    for lane, x in enumerate(xs):
        assert of_lane(got, lane) == fn(x)


def of_lane(got, lane):
    """Return the result of a lane as values of Python."""
    if isinstance(got, tuple):
        return tuple(of_lane(part, lane) for part in got)
    if isinstance(got, list):
        return [of_lane(part, lane) for part in got]
    return np.asarray(got[lane]).tolist()


def same_literal(x):
    rows = [[1], [2]]
    rows[0].append(swap(rows, x))
    return rows[0]


def attribute(x):
    tree = Tree([[1]])
    tree.children.append([tree.emptied()])
    return len(tree.children), x


def way_there(x):
    tree = Tree([[1]])
    tree.names = {0: [x], 1: [x]}
    tree.names[0].append(tree.renamed())
    return sum(tree.names[0])


def augmented(x):
    rows = [[[1]], [[2]]]
    rows[0][0] += [swapped(rows, x)]
    return rows[0][0]


def swapped(rows, x):
    rows[0] = [[x]]
    return x


def moved(x):
    rows = [[1], [2], [x]]
    rows[1].append(rows.pop(0)[0])
    return rows[1]


def moved_by_call(x):
    rows = [[1], [2], [x]]
    rows[1].append(dropped(rows))
    return rows[1]


def nested(x):
    rows = {0: [1], 1: [2]}

    def renew():
        rows[0] = [x]
        return x

    rows[0].append(renew())
    return rows[0]


def through_another_name(x):
    tree = Tree([[1], [2]])
    tree.children[0].append(by_alias(tree, x))
    return tree.children[0]


def by_alias(tree, x):
    rows = tree.children
    rows[0] = [x]
    return x


def recursive(x):
    rows = [[1], [2]]
    rows[1].append(down(rows, x))
    return rows[1]


def down(rows, n):
    if n == 0:
        rows[1] = [7]
        return 1
    return down(rows, n - 1) + 1


def both(x):
    rows = {0: [1], 1: [2]}
    rows[x].append(put_and_grow(rows, x))
    return rows[0]


def put_and_grow(rows, x):
    rows[1 - x] = [x]
    rows[x].append(1)
    return x


def by_another_record(x):
    tree, other = Tree([[x]]), Tree([])
    other.other = tree
    tree.children.append([other.other.emptied()])
    return tree.children


def added_by_another_record(x):
    tree, other = Tree([[x]]), Tree([])
    other.other = tree
    tree.children += [[other.other.emptied()]]
    return tree.children


@pytest.mark.parametrize(
    "fn",
    [
        by_another_record,
        added_by_another_record,
        same_literal,
        attribute,
        way_there,
        moved,
        moved_by_call,
        nested,
        through_another_name,
        recursive,
        both,
    ],
    ids=lambda fn: fn.__name__,
)
def test_a_box_is_taken_before_the_operands(fn):
    examples = (0, 1) if fn is both else (2, 3)
    result = pcbatch.batch(fn)(jnp.array(examples))
    for k, x in enumerate(examples):
        assert alike(as_plain(lane_of(result, k)), as_plain(fn(x)), 0)


def test_an_object_that_is_replaced_by_then_is_refused():
    with pytest.raises(CompileError, match="PCB330"):
        pcbatch.batch(augmented)(jnp.arange(2, 4))


def same_key(x, key):
    d = {0: [1], 1: [2]}
    d[key].append(put(d, x, 5))
    return sum(d[0]) + 10 * sum(d[1])


def same_key_or_not(x, key):
    d, out = {0: [1], 1: [2]}, 0
    for k in range(4):
        if k % 2:
            d.setdefault(key + k, []).extend([put(d, x + k, 5)])
        else:
            out += len(d)
            d[(key + k) % 2].append(put(d, (x + k) % 2, k))
        out = 10 * out + sum(len(row) for row in d.values())
    return out


@pytest.mark.parametrize("fn", [same_key, same_key_or_not], ids=lambda fn: fn.__name__)
def test_lanes_that_replace_the_object(fn):
    xs, keys = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    got = pcbatch.batch(fn)(jnp.asarray(xs), jnp.asarray(keys))
    assert got.tolist() == [fn(x, key) for x, key in zip(xs.tolist(), keys.tolist(), strict=True)]


def missing_key(x):
    d = {1: [1]}
    if x > 3:
        i = x
    d[x].append(i)
    return i


def missing_place(x):
    rows, d = [[1]], {7: x}
    rows[x].append(d[x])
    return len(rows[0])


def no_value(x):
    d = {1: 2}
    if x > 3:
        i = x
    return d[x] + i


def no_value_first(x):
    d = {1: 2}
    if x > 3:
        i = x
    return i + d[x]


def no_value_stored(x):
    rows, d = [1, 2], {1: 1}
    if x > 3:
        i = x
    rows[d[x]] = i
    return rows[0]


def no_value_given(x):
    rows, d = [[1]], {1: 1}
    if x > 3:
        i = x
    rows[0].insert(i, d[x])
    return rows[0][0]


@pytest.mark.parametrize(
    "fn",
    [missing_key, missing_place, no_value, no_value_first, no_value_stored, no_value_given],
    ids=lambda fn: fn.__name__,
)
def test_first_exception(fn):
    for x in (1, 2, 5):
        raised = outcome(lambda x=x: fn(x))
        assert raised == outcome(lambda x=x: pcbatch.batch(fn)(np.asarray([x])))


def outcome(run):
    """Return the class of exception that a call raises, or that its only lane does."""
    try:
        run()
    except BatchRuntimeError as error:
        return next(name for name in ("UnboundLocalError", "KeyError", "IndexError") if f"`{name}`" in str(error))
    except Exception as error:
        return type(error).__name__
    return None
