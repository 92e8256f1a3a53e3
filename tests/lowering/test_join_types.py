"""Types that cover two of different structure, and values that become such."""

from __future__ import annotations

import jax

from pcbatch.data.capacity import Room, using_capacity
from pcbatch.data.origins import Origin
from pcbatch.data.sequences.lane_list import LaneList
from pcbatch.data.sequences.lane_tuple import LaneTuple
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.abstract_values import known, with_origins
from pcbatch.lowering.typing.convert_types import convert, objects_of
from pcbatch.lowering.typing.join_types import join
from tests.lowering.typed import abstract_of

NUMBER = ArrayType("int32", ())


def test_lists_of_different_lengths_have_the_capacity_of_the_program() -> None:
    with using_capacity(Room(16)):
        joined = join(abstract_of([NUMBER]), abstract_of([NUMBER, NUMBER]))
    assert joined.leaves[0] == ArrayType("int32", (16,))


def test_origins_that_differ_are_not_known() -> None:
    one, two = jax.tree.structure([0]), jax.tree.structure([0, 0])
    number = with_origins(one, (NUMBER,), [Origin.NUMBER])
    mixed = with_origins(two, (NUMBER, NUMBER), [Origin.NUMBER, Origin.ARRAY])
    assert objects_of(join(mixed, number)).origins == (Origin.UNKNOWN,)
    numbers = with_origins(two, (NUMBER, NUMBER), [Origin.NUMBER] * 2)
    assert objects_of(join(number, numbers)).origins == (Origin.NUMBER,)


def test_a_known_number_that_may_be_none_is_an_array() -> None:
    joined = join(abstract_of(None), known(3))
    assert [type(leaf) for leaf in joined.leaves] == [ArrayType, ArrayType]


def test_a_list_that_gets_more_room_keeps_its_elements() -> None:
    with using_capacity(Room(16)):
        want = join(abstract_of([NUMBER]), abstract_of([NUMBER, NUMBER]))
    values = convert(LaneList.from_list([3, 4]), want)
    assert values.capacity == 16
    assert [int(values[k]) for k in range(2)] == [3, 4]


def test_known_tuples_in_a_list_become_those_of_the_lane_that_they_meet() -> None:
    pairs = with_origins(jax.tree.structure([(0, 0), (0, 0)]), (NUMBER,) * 4, [Origin.NUMBER] * 4)
    row = LaneTuple.tree_unflatten((Origin.NUMBER,), (ArrayType("int32", (4, 8)), ArrayType("int32", (4,))))
    want = join(pairs, abstract_of(LaneList.tree_unflatten((Origin.ARRAY,), (row, NUMBER))))
    rows = objects_of(want).columns
    assert (type(rows), rows.origins) == (LaneTuple, (Origin.NUMBER,))
    values = convert([(1, 2), (3, 4)], want)
    assert [[int(values[i][j]) for j in range(2)] for i in range(2)] == [[1, 2], [3, 4]]
