"""Batched functions over packed objects: every lane gives what the plain function gives for its object."""

from __future__ import annotations

import dataclasses
import enum
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Status
from tests.oracles.plans import replanned

pytestmark = pytest.mark.share(5)


class Node(NamedTuple):
    left: Any
    right: Any
    word: int


def tree(draw: random.Random, leaves: int) -> Node:
    if leaves == 1:
        return Node(None, None, draw.randrange(9))
    first = draw.randrange(1, leaves)
    return Node(tree(draw, first), tree(draw, leaves - first), 0)


def trees(count: int = 9, leaves: int = 12) -> list[Node]:
    draw = random.Random(count)
    return [tree(draw, draw.randrange(1, leaves)) for _ in range(count)]


def agree(f: Any, objects: Sequence[Any], *rest: Any) -> None:
    """Compare every lane with the plain function. `rest`: further arguments with a value for each lane."""
    lanes = f(pcbatch.pack(objects), *map(jnp.asarray, rest))
    plain = [f.plain(*args) for args in zip(objects, *rest, strict=True)]
    np.testing.assert_allclose(lanes, np.array(plain, np.asarray(lanes).dtype), rtol=1e-5)


@pcbatch.batch
def total(node):
    if node is None:
        return 0
    return node.word + total(node.left) + total(node.right)


@pcbatch.batch
def height(node):
    return 1 + max(height(node.left), height(node.right)) if node.left is not None else 0


@pcbatch.batch
def leftmost(node):
    while node.left:
        node = node.left
    return node.word


@pcbatch.batch
def none_on_one_way(node):
    other = node
    if node.word % 2 == 1:
        other = node.left
    return other is None


@pytest.mark.parametrize("f", [total, height, leftmost], ids=lambda f: f.__name__)
def test_trees(f: Any) -> None:
    agree(f, trees())


def test_none_on_one_way() -> None:
    agree(none_on_one_way, [Node(None, None, k) for k in range(4)])
    agree(none_on_one_way, [Node(None, None, 1), Node(Node(None, None, 0), None, 1), Node(None, None, 2)])


@pytest.mark.parametrize("options", [{"strategy": "local"}, {"schedule": "earliest"}, {"max_depth": 20}])
def test_other_ways_to_run(options: dict[str, Any]) -> None:
    if options.get("strategy") == "local":
        agree(replanned(leftmost, **options), trees())
    else:
        agree(replanned(total, **options), trees())


def test_the_tables_are_shared() -> None:
    """No register, slot or selection holds a table, and no check is left where a test comes before."""
    lowered = total.lower(pcbatch.pack(trees()))
    program = lowered.stages.opt
    large = {v for v, var in program.vars.items() if var.type is not None and var.type.shape}
    assert {program.vars[v].storage.name for v in large} == {"SHARED"}
    assert "fail error" not in lowered.as_text("opt")
    assert "f32[9,32]" not in lowered.compile().as_text()
    assert "s32[9,32]" not in lowered.compile().as_text()


def test_a_minibatch_is_an_index() -> None:
    objects = trees()
    packed = pcbatch.pack(objects)
    batch = np.array([3, 0, 3, 8])
    assert total(packed[batch]).tolist() == [total.plain(objects[k]) for k in batch]
    assert jax.jit(lambda p, k: total(p[k]))(packed, batch).tolist() == total(packed[batch]).tolist()


class Cell(NamedTuple):
    head: int
    tail: Any


def cells(values: Sequence[int]) -> Any:
    chain = None
    for value in reversed(values):
        chain = Cell(value, chain)
    return chain


CHAINS = [cells(range(1, n)) for n in (1, 2, 5, 9)]


@pcbatch.batch
def length(chain):
    count = 0
    while chain:
        chain = chain.tail
        count += 1
    return count


@pcbatch.batch
def greatest(chain):
    best = None
    while chain is not None:
        if best is None or chain.head % 5 > best.head % 5:
            best = chain
        chain = chain.tail
    return -1 if best is None else best.head


@pcbatch.batch
def same_ends(chain):
    last = chain
    while last is not None and last.tail is not None:
        last = last.tail
    return last is chain, not chain, chain == None  # noqa: E711


def test_nothing_but_none() -> None:
    agree(total, [None, None])
    assert total(pcbatch.pack([])).shape == (0,)


def test_linked_lists() -> None:
    agree(length, CHAINS)
    agree(greatest, CHAINS)
    result = same_ends(pcbatch.pack(CHAINS))
    assert np.transpose(result).tolist() == [list(map(bool, same_ends.plain(chain))) for chain in CHAINS]


@pcbatch.batch
def last_cell(chain):
    while chain is not None and chain.tail is not None:
        chain = chain.tail
    return chain, chain is None


def test_records_are_results() -> None:
    packed = pcbatch.pack(CHAINS)
    found, none = last_cell(packed)
    assert found.unpack() == [last_cell.plain(chain)[0] for chain in CHAINS]
    assert none.tolist() == [True, False, False, False]
    again, _ = last_cell(found)
    assert again.unpack() == found.unpack()
    assert jax.jit(last_cell)(packed)[0].unpack() == found.unpack()
    assert last_cell.run(packed).value[0].unpack() == found.unpack()
    assert last_cell.map(packed, lanes=2).value[0].unpack() == found.unpack()


class Num(NamedTuple):
    value: float


class Var(NamedTuple):
    index: int


class Add(NamedTuple):
    left: Any
    right: Any


class Mul(NamedTuple):
    left: Any
    right: Any


class Neg(NamedTuple):
    arg: Any


@pcbatch.batch(in_axes=(0, None))
def evaluate(e, env):
    match e:
        case Num(value):
            return value
        case Var(index=k):
            return env[k]
        case Add(a, b):
            return evaluate(a, env) + evaluate(b, env)
        case Mul(left=a, right=b):
            return evaluate(a, env) * evaluate(b, env)
        case Neg(a):
            return -evaluate(a, env)
    raise ValueError("no expression")


@pcbatch.batch
def weight(e):
    """Ask for classes in other ways, and read a field that two of the classes have."""
    if isinstance(e, Num | Var):
        return 1 if type(e) is Num else 2
    if isinstance(e, (Add, Mul)):
        more = 10 if hasattr(e, "left") and isinstance(e, Add) else 20
        return more + weight(e.left) + weight(e.right)
    return weight(e.arg)


def expression(draw: random.Random, depth: int) -> Any:
    match draw.randrange(5) if depth else draw.randrange(2):
        case 0:
            return Num(float(draw.randrange(4)))
        case 1:
            return Var(draw.randrange(3))
        case 2:
            return Add(expression(draw, depth - 1), expression(draw, depth - 1))
        case 3:
            return Mul(expression(draw, depth - 1), expression(draw, depth - 1))
    return Neg(expression(draw, depth - 1))


def expressions() -> list[Any]:
    draw = random.Random(2)
    return [Num(1.0), Neg(Var(2)), *(expression(draw, 4) for _ in range(8))]


def test_expressions() -> None:
    env = jnp.array([1.0, 2.0, 3.0])
    objects = expressions()
    lanes = evaluate(pcbatch.pack(objects), env)
    np.testing.assert_allclose(lanes, [evaluate.plain(e, env) for e in objects], rtol=1e-5)
    agree(weight, objects)


class Op(enum.Enum):
    SUM = "s"
    MAX = "m"


@dataclasses.dataclass(eq=False)
class Gate:
    op: Op
    inputs: list[Any]
    bias: int | None
    row: Any
    weights: tuple[int, ...] = ()

    @property
    def is_input(self):
        return len(self.inputs) == 0

    def twice(self, more):
        return 2 * self.bias + more


@pcbatch.batch
def output(gate):
    if gate.is_input:
        return gate.twice(1) + gate.row[0]
    value = 0.0
    for k, one in enumerate(gate.inputs):
        match gate.op:
            case Op.SUM:
                value = value + gate.weights[k] * output(one)
            case Op.MAX:
                value = max(value, output(one))
    return value + (0 if gate.bias is None else gate.bias) + len(gate.weights)


@pcbatch.batch
def last_input(gate):
    return gate.inputs[-1].inputs[0].bias


def gate(draw: random.Random, depth: int) -> Gate:
    if not depth:
        return Gate(Op.SUM, [], draw.randrange(5), np.float32([draw.randrange(3)]))
    inputs = [gate(draw, depth - 1) for _ in range(draw.randrange(1, 4))]
    inputs.append(inputs[0])
    return Gate(draw.choice(list(Op)), inputs, draw.choice([None, 2]), np.float32([0]), tuple(range(len(inputs))))


@pytest.mark.promotion("standard")
def test_lists_enumerations_methods_and_sharing() -> None:
    draw = random.Random(4)
    agree(output, [gate(draw, depth) for depth in (0, 1, 2, 3, 3)])


def test_what_python_raises_fails_the_lane() -> None:
    draw = random.Random(1)
    gates = [gate(draw, depth) for depth in (2, 0, 1)]
    result = last_input.run(pcbatch.pack(gates))
    assert result.status.tolist() == [Status.OK, Status.ERROR, Status.ERROR]
    assert result.value.tolist()[0] == last_input.plain(gates[0])
    with pytest.raises(pcbatch.BatchRuntimeError, match="IndexError`: list index out of range"):
        last_input(pcbatch.pack(gates))

    @pcbatch.batch
    def word(node):
        return node.left.word

    assert word.run(pcbatch.pack([tree(draw, 2), tree(draw, 1)])).status.tolist() == [Status.OK, Status.ERROR]
    with pytest.raises(pcbatch.BatchRuntimeError, match="'NoneType' object has no attribute 'word'"):
        word(pcbatch.pack([tree(draw, 1), tree(draw, 2)]))

    @pcbatch.batch
    def value(e):
        return e.value

    with pytest.raises(pcbatch.BatchRuntimeError, match="'Var' object has no attribute 'value'"):
        value(pcbatch.pack([Num(1.0), Var(1)]))


class Even(NamedTuple):
    rest: Any


class Odd(NamedTuple):
    rest: Any


@pcbatch.batch
def even(x):
    return True if x is None else odd(x.rest)


@pcbatch.batch
def odd(x):
    return False if x is None else even(x.rest)


def test_classes_that_refer_to_each_other() -> None:
    objects = [None]
    for k in range(6):
        objects.append((Odd, Even)[k % 2](objects[-1]))
    agree(even, objects)


class Place:
    """A place in a graph that has cycles."""

    def __init__(self, cost: int) -> None:
        self.cost, self.ways = cost, list[Place]()


@pcbatch.batch
def walk(place, steps):
    cost = 0
    start = place
    for k in range(steps):
        if k > 0 and place is start:
            cost += 100
        cost += place.cost
        if len(place.ways) == 0:
            break
        place = place.ways[(cost + k) % len(place.ways)]
    return cost


def test_a_graph_with_cycles() -> None:
    draw = random.Random(8)
    places = [Place(draw.randrange(10)) for _ in range(12)]
    for place in places[:-1]:
        place.ways += [draw.choice(places) for _ in range(draw.randrange(1, 4))]
    agree(walk, places, np.arange(12))


class Split(NamedTuple):
    feature: int
    threshold: float
    low: Any
    high: Any


class Leaf(NamedTuple):
    answer: float


@pcbatch.batch(in_axes=(None, 0))
def forest(roots, x):
    answer = 0.0
    for node in roots:
        while isinstance(node, Split):
            node = node.low if x[node.feature] < node.threshold else node.high
        answer += node.answer
    return answer / len(roots)


def decision_tree(draw: random.Random, depth: int) -> Any:
    if not depth:
        return Leaf(draw.random())
    threshold = draw.random()
    return Split(
        draw.randrange(3), threshold, decision_tree(draw, depth - 1), decision_tree(draw, draw.randrange(depth))
    )


def test_a_forest_that_lanes_share() -> None:
    draw = random.Random(6)
    roots = [decision_tree(draw, 4) for _ in range(5)]
    xs = np.random.default_rng(0).random((7, 3)).astype(np.float32)
    expected = [forest.plain(roots, x) for x in xs]
    np.testing.assert_allclose(forest(pcbatch.pack(roots), xs), expected, rtol=1e-5)


class KdNode(NamedTuple):
    point: Any
    axis: int
    below: Any
    above: Any


@pcbatch.batch(in_axes=(None, 0, None, None))
def nearest(node, x, best, distance):
    if node is None:
        return best, distance
    d = jnp.sum((node.point - x) ** 2)
    if d < distance:
        best, distance = node, d
    side = x[node.axis] - node.point[node.axis]
    near, far = (node.below, node.above) if side < 0 else (node.above, node.below)
    best, distance = nearest(near, x, best, distance)
    if side**2 < distance:
        best, distance = nearest(far, x, best, distance)
    return best, distance


@pcbatch.batch(in_axes=(None, 0))
def find(root, x):
    found, distance = nearest(root, x, None, jnp.inf)
    return found.point, distance


def kd_tree(points: Any, axis: int = 0) -> Any:
    if not len(points):
        return None
    points = points[np.argsort(points[:, axis])]
    k = len(points) // 2
    other = (axis + 1) % points.shape[1]
    return KdNode(points[k], axis, kd_tree(points[:k], other), kd_tree(points[k + 1 :], other))


def test_nearest_neighbours() -> None:
    draw = np.random.default_rng(1)
    points, xs = draw.random((40, 2)).astype(np.float32), draw.random((12, 2)).astype(np.float32)
    found, distance = find(pcbatch.pack([kd_tree(points)])[0], xs)
    squares = np.sum((points[None] - xs[:, None]) ** 2, -1)
    np.testing.assert_allclose(distance, squares.min(1), rtol=1e-5)
    np.testing.assert_array_equal(found, points[squares.argmin(1)])


def test_random_graphs() -> None:
    draw = random.Random(11)
    for size in (1, 3, 40):
        places = [Place(draw.randrange(10)) for _ in range(size)]
        for place in places:
            place.ways += [draw.choice(places) for _ in range(draw.randrange(4))]
        agree(walk, places, np.full(size, 15))


def refused(f: Callable[..., Any], objects: Sequence[Any], says: str) -> None:
    with pytest.raises(pcbatch.CompileError, match=says):
        pcbatch.batch(f).lower(pcbatch.pack(objects))


def test_what_has_no_meaning_in_a_lane_is_refused() -> None:
    def less(n):
        return n.left < n.right

    def identity(n):
        return id(n)

    def missing(n):
        return n.wrod

    def key(n):
        return {n: 1}[n.left]

    def assigned(n):
        n.word = 3
        return n.word

    def shown(n):
        print("node", n)
        return n.word

    def told(n):
        assert n.left is None, f"{n.left} is there"
        return n.word

    refused(shown, trees(), "text of a packed object")
    refused(told, trees(), "text of a packed object")
    refused(less, trees(), "cannot be ordered")
    refused(identity, trees(), "`id`")
    refused(missing, trees(), "wrod")
    refused(key, trees(), "no hash|key of type Node")
    refused(assigned, trees(), "PCB")


@pcbatch.batch
def depth_first(node):
    """Keep nodes in a list; None among them."""
    stack, order = [node], 0
    while len(stack) > 0:
        node = stack.pop()
        if node is None:
            continue
        order = (order * 3 + node.word) % 1009
        stack.append(node.right)
        stack.append(node.left)
    return order


@pcbatch.batch
def waves(node):
    wave, count = [node], 0
    while wave:
        following = []
        for one in wave:
            if one.left is not None:
                following.append(one.left)
                following.append(one.right)
        wave = following
        count += 1
    return count


@pytest.mark.parametrize("f", [depth_first, waves], ids=lambda f: f.__name__)
def test_lists_of_records(f: Any) -> None:
    agree(f, trees())


class Branching(NamedTuple):
    weight: int
    parts: list[Branching]


def total_weight(node):
    """A helper that goes over the list of a record, and calls itself in a comprehension."""
    return node.weight + sum([total_weight(part) for part in node.parts])


@pcbatch.batch
def weigh(node):
    return total_weight(node)


def test_a_recursive_helper_goes_over_a_list_of_a_record() -> None:
    leaf = Branching(5, [])
    agree(weigh, [leaf, Branching(1, [leaf, Branching(2, [leaf]), leaf])])


def test_an_array_of_a_record_is_not_changed() -> None:
    def overwrite(gate):
        row = gate.row
        row[0] = 3
        return row[0] + gate.row[0]

    refused(overwrite, [gate(random.Random(0), 0)], "PCB")


def test_records_made_in_lanes_beside_packed_ones() -> None:
    def longer(chain):
        for k in range(chain.head):
            chain = Cell(k, chain)
        return chain.head

    agree(pcbatch.batch(longer), CHAINS[1:])


def test_records_that_were_packed_apart() -> None:
    @pcbatch.batch
    def same(a, b):
        return a is b

    one, other = pcbatch.pack(trees()), pcbatch.pack(trees())
    assert same(one, one[::-1]).tolist() == [k == 4 for k in range(9)]
    with pytest.raises(pcbatch.CompileError, match="packed apart"):
        same(one, other)
