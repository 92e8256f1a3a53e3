"""Packing objects that refer to one another, and making them again."""

from __future__ import annotations

import dataclasses
import enum
import random
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch


class Node(NamedTuple):
    left: Any
    right: Any
    word: int


class Op(enum.Enum):
    ADD = "+"
    MUL = "*"


@dataclasses.dataclass(eq=False)
class Item:
    op: Op
    parts: list[Any]
    numbers: list[int]
    place: tuple[float, float]
    row: Any
    note: float | None = None
    friend: Any = None
    flag: bool = False


class Plain:
    __slots__ = ("nested", "other")

    def __init__(self, other: Any, nested: list[list[Any]]) -> None:
        self.other, self.nested = other, nested


def tree(draw: random.Random, leaves: int) -> Node:
    if leaves == 1:
        return Node(None, None, draw.randrange(9))
    first = draw.randrange(1, leaves)
    return Node(tree(draw, first), tree(draw, leaves - first), -1)


def items() -> list[Item]:
    """Two items that refer to each other, in a list and by a field."""
    a = Item(Op.MUL, [], [1, 2, 3], (0.5, 1.0), np.arange(3.0), 2.5)
    b = Item(Op.ADD, [a, a], [], (1.5, -1.0), np.ones(3), None, a, True)
    a.parts.append(b)
    return [a, b]


@pytest.mark.parametrize("leaves", [1, 5, 300])
def test_trees_come_back_equal(leaves: int) -> None:
    draw = random.Random(leaves)
    trees = [tree(draw, draw.randrange(1, leaves + 1)) for _ in range(20)]
    assert pcbatch.pack(trees).unpack() == trees


def test_a_long_chain() -> None:
    chain = None
    for k in range(20_000):
        chain = Node(chain, None, k)
    back = pcbatch.pack([chain])[0].unpack()
    for k in range(19_999, -1, -1):
        assert back.word == k
        back = back.left
    assert back is None


def test_sharing_is_kept() -> None:
    leaf = Node(None, None, 3)
    packed = pcbatch.pack([Node(leaf, leaf, 0), leaf, Node(Node(None, None, 3), None, 1)])
    assert packed.schema.classes[0].rows == 4
    top, same, other = packed.unpack()
    assert top.left is top.right is same
    assert other.left is not same
    assert other.left == same


def test_sharing_is_kept_among_many() -> None:
    leaf = Node(None, None, 3)
    for root in pcbatch.pack([Node(leaf, leaf, k) for k in range(100)]).unpack():
        assert root.left is root.right


def test_cycles_lists_enumerations_and_optional_numbers() -> None:
    a, b = pcbatch.pack(items()).unpack()
    assert a.parts == [b]
    assert b.parts[0] is b.parts[1] is b.friend is a
    assert (a.op, b.op, a.numbers, b.numbers) == (Op.MUL, Op.ADD, [1, 2, 3], [])
    assert (a.place, a.note, b.note, a.flag, b.flag) == ((0.5, 1.0), 2.5, None, False, True)
    np.testing.assert_array_equal(a.row, np.arange(3.0))


def test_plain_classes_and_nested_lists() -> None:
    inner = Plain(None, [])
    outer = Plain(inner, [[inner, None], [], [inner]])
    (back,) = pcbatch.pack([outer]).unpack()
    assert back.nested == [[back.other, None], [], [back.other]]


def test_random_graphs() -> None:
    draw = random.Random(5)
    for size in (1, 7, 200):
        nodes = [Plain(None, []) for _ in range(size)]
        for node in nodes:
            node.other = draw.choice([None, *nodes])
            node.nested = [[draw.choice([None, *nodes]) for _ in range(draw.randrange(3))] for _ in range(2)]
        back = pcbatch.pack(nodes).unpack()
        places = {id(node): k for k, node in enumerate(back)}
        before = {id(node): k for k, node in enumerate(nodes)}
        assert len(places) == size
        for old, new in zip(nodes, back, strict=True):
            assert before.get(id(old.other)) == places.get(id(new.other))
            assert [[before.get(id(x)) for x in xs] for xs in old.nested] == [
                [places.get(id(x)) for x in xs] for xs in new.nested
            ]


def test_indexing_takes_roots() -> None:
    trees = [Node(None, None, k) for k in range(6)]
    packed = pcbatch.pack(trees)
    assert len(packed) == 6
    assert packed[2].unpack() == trees[2]
    assert packed[1:3].unpack() == trees[1:3]
    assert packed[np.array([4, 0, 4])].unpack() == [trees[4], trees[0], trees[4]]
    assert packed[packed.ids > 3].unpack() == trees[4:]
    assert [one.unpack() for one in packed] == trees


def test_a_packed_is_a_pytree() -> None:
    packed = pcbatch.pack(items())
    leaves, tree_of = jax.tree.flatten(packed)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    assert tree_of == jax.tree.structure(pcbatch.pack(items()))
    assert jax.jit(lambda p: p[1:])(packed).unpack()[0].op is Op.ADD
    assert jax.device_put(packed, jax.devices()[1]).unpack()[0].note == 2.5
    shapes = jax.eval_shape(lambda p: p, packed)
    assert shapes.ids.shape == (2,)


def test_sizes_do_not_change_with_small_changes_of_the_data() -> None:
    draw = random.Random(3)
    one, other = (pcbatch.pack([tree(draw, n) for _ in range(4)]) for n in (9, 10))
    assert one.schema == other.schema
    assert hash(one.schema) == hash(other.schema)
    assert pcbatch.pack([Node(None, None, 1)], rows={Node: 7}).schema.classes[0].rows == 7


def test_files(tmp_path: Any) -> None:
    packed = pcbatch.pack([*items(), None])
    packed.save(tmp_path / "items.npz")
    for read in (pcbatch.Packed.load(tmp_path / "items.npz", Item, Op), pcbatch.Packed.load(tmp_path / "items.npz")):
        assert read.schema == packed.schema
        assert jax.tree.all(jax.tree.map(lambda x, y: bool(jnp.all(x == y)), read, packed))


def test_files_of_half_precision(tmp_path: Any) -> None:
    packed = pcbatch.pack([Plain(jnp.ones(2, jnp.bfloat16), [])])
    packed.save(tmp_path / "half.npz")
    assert pcbatch.Packed.load(tmp_path / "half.npz", Plain).columns[-1].dtype == jnp.bfloat16


def test_files_that_hold_something_else(tmp_path: Any) -> None:
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(pcbatch.UsageError, match="PCB451"):
        pcbatch.Packed.load(tmp_path / "other.npz")
    Hidden = type("Hidden", (), {"__slots__": ("word",)})
    one = Hidden()
    one.word = 3
    pcbatch.pack([one]).save(tmp_path / "hidden.npz")
    with pytest.raises(pcbatch.UsageError, match="Hidden` is not found"):
        pcbatch.Packed.load(tmp_path / "hidden.npz")


def node(word: Any) -> Node:
    return Node(None, None, word)


class Open:
    """Objects with whatever attributes they are given."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("objects", "says"),
    [
        ([node(1), Node(node("a"), None, 1)], r"objects\[1\].left.word` cannot be packed: this is a str"),
        ([Node(Node(None, node({}), 0), None, 0)], r"objects\[0\].left.right.word` .* this is a dict"),
        ([node(1), node(True)], r"objects\[1\].word` .* both bools and other numbers"),
        ([node(1), node(np.zeros(2))], r"objects\[1\].word` .* has the shape \(2,\), and that of another object \(\)"),
        ([node(2**40)], r"objects\[0\].word` .* does not fit int32"),
        ([Node(node(1), None, 0), Node(3, None, 0)], r"objects\[0\].left` .* a Node, and other objects have a number"),
        ([node(Op.ADD), node(1)], r"objects\[1\].word` .* this is a int, and other objects have a Op there"),
        ([node([1, 2]), node([1, "b"])], r"objects\[1\].word` .* this is a str"),
        ([node([1]), node((1,))], r"objects\[1\].word` .* both lists and tuples"),
        ([3], r"objects\[0\]` .* of type int is no record"),
        ([Open(x=1), Open(x=1, y=2)], r"objects\[1\]` .* some objects of Open have an attribute `y`"),
        ([Open(x=1, y=1), Open(x=1)], r"objects\[1\]` .* no attribute `y`"),
    ],
)
def test_what_cannot_be_packed_is_named(objects: list[Any], says: str) -> None:
    with pytest.raises(pcbatch.UsageError, match=says):
        pcbatch.pack(objects)


def test_too_few_rows_are_refused() -> None:
    with pytest.raises(pcbatch.UsageError, match="gives them 1 rows"):
        pcbatch.pack([node(1), node(2)], rows={Node: 1})
