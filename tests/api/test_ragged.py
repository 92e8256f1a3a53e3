"""Lists of all lanes: `pcbatch.Ragged` as a result and as an argument."""

from __future__ import annotations

import collections
import copy
import pickle
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Ragged, ragged

pytestmark = pytest.mark.share(2)

LISTS = [[1, 2], [3], [], [7, 8, 9]]


@pcbatch.batch
def weighted(xs, w):
    total = 0 * w
    i = 0
    for x in xs:
        total += (i + 1) * x * w
        i += 1
    return total


@pcbatch.batch
def extended(xs, n):
    for k in range(n):
        xs.append(k)
    return xs


class TestMaking:
    def test_numbers(self) -> None:
        r = ragged(LISTS)
        assert r.values.dtype == np.int32
        assert r.values.shape == (4, 3)
        assert r.lengths.tolist() == [2, 1, 0, 3]
        assert len(r) == 4
        assert r.tolist() == LISTS
        assert [row.tolist() for row in r] == LISTS

    @pytest.mark.parametrize(
        "lists",
        [
            [[1.5], []],
            [[True, False], [True]],
            [[[1], [2, 3]], [], [[]]],
            [[(1, 2.5)], [(3, 4.0), (5, 6.0)], []],
            [[{"a": 1, "b": [2]}], [{"a": 3, "b": []}]],
            [[], []],
            [["a", "bc"], []],
        ],
    )
    def test_it_gives_back_what_it_was_made_of(self, lists: Any) -> None:
        r = ragged(lists)
        assert r.tolist() == lists
        assert r == lists
        assert r == ragged(lists)
        assert repr(r) == f"Ragged({lists})"

    def test_arrays(self) -> None:
        r = ragged([np.arange(3), jnp.arange(1)])
        assert r.tolist() == [[0, 1, 2], [0]]
        rows = ragged([[np.zeros(2)], [np.ones(2), np.ones(2)]])
        assert rows.values.shape == (2, 2, 2)
        assert rows[1].shape == (2, 2)

    def test_dtype(self) -> None:
        assert ragged([[1]], np.float32).values.dtype == np.float32
        assert ragged([[], []]).values.dtype == jnp.array([]).dtype

    @pytest.mark.parametrize(
        "lists", [5, [1, 2], [[1], [(1, 2)]], [["a", 1]], [[2**40]], [[1], [[2]]], [[np.zeros(2), 1]]]
    )
    def test_what_is_refused(self, lists: Any) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB405"):
            ragged(lists)

    def test_values_without_an_axis_of_elements_are_refused(self) -> None:
        with pytest.raises(pcbatch.UsageError, match="2 axes or more"):
            pcbatch.batch(lambda xs: len(xs))(pcbatch.Ragged(np.arange(3), np.ones(3, int)))

    def test_lists_of_texts(self) -> None:
        def sorted_and_marked(words, word):
            return sorted(words), [k.upper() if k == word else k + word for k in words], words.count(word)

        words, word = [["b", "a"], [], ["hello", "a", "zz"]], ["a", "b", "hello"]
        found = pcbatch.batch(sorted_and_marked)(ragged(words), pcbatch.ragged(word))
        rows = zip(*(part.tolist() for part in found), strict=True)
        assert [*rows] == [sorted_and_marked(*example) for example in zip(words, word, strict=True)]


class TestReading:
    def test_lanes(self) -> None:
        r = ragged(LISTS)
        assert r[0].tolist() == [1, 2]
        assert r[-1].tolist() == [7, 8, 9]
        assert r[1:3].tolist() == [[3], []]
        with pytest.raises(IndexError, match="no lane 4 of 4"):
            r[4]

    def test_nested_lanes_are_ragged(self) -> None:
        r = ragged([[[1], [2, 3]], []])
        assert isinstance(r[0], Ragged)
        assert r[0].tolist() == [[1], [2, 3]]

    def test_an_array_where_lengths_agree(self) -> None:
        assert np.asarray(ragged([[1, 2], [3, 4]])).tolist() == [[1, 2], [3, 4]]
        assert jnp.asarray(ragged([[[1], [2]], [[3], [4]]])).shape == (2, 2, 1)
        with pytest.raises(ValueError, match="lists of lengths 0, 1, 2, 3 are no array"):
            np.asarray(ragged(LISTS))

    def test_a_lane_that_failed_has_no_list(self) -> None:
        r = Ragged(np.zeros((2, 1), np.int32), np.array([1, -(2**31)]))
        assert r.tolist() == [[0], None]
        with pytest.raises(ValueError, match="lane 1 has failed"):
            r[1]

    def test_inside_jit_its_lengths_are_not_known(self) -> None:
        seen: list[str] = []

        @jax.jit
        def f(r: Ragged) -> Ragged:
            seen.append(repr(r))
            with pytest.raises(ValueError, match="not known inside `jit`"):
                jnp.asarray(r)
            return r

        assert f(ragged(LISTS)) == LISTS
        assert seen[0].startswith("Ragged(values=")


class TestArguments:
    def test_a_list_for_each_lane(self) -> None:
        w = jnp.arange(4) + 1
        expected = [weighted.plain(xs, k + 1) for k, xs in enumerate(LISTS)]
        assert weighted(ragged(LISTS), w).tolist() == expected
        assert jax.jit(weighted)(ragged(LISTS), w).tolist() == expected
        assert weighted.map(ragged(LISTS), np.asarray(w), lanes=2, chunk=2).value.tolist() == expected

    def test_other_lengths_use_the_program(self) -> None:
        f = weighted.with_options()
        for lists in (LISTS, [[1, 2, 3, 4], [], [], []]):
            f(ragged(lists), jnp.arange(4))
        assert len(f._programs.cache) == 1

    def test_lists_grow(self) -> None:
        n = jnp.array([1, 0, 40, 2])
        out = extended(ragged(LISTS), n)
        assert out.tolist() == [extended.plain(list(xs), int(k)) for xs, k in zip(LISTS, n, strict=True)]
        assert extended(out, jnp.zeros(4, jnp.int32)) == out  # a result is an argument

    def test_one_list_of_lists_for_all_lanes(self) -> None:
        @pcbatch.batch(in_axes=(None, 0))
        def f(rows, k):
            return rows[k][0]

        assert f(ragged([[1, 2], [3]]), jnp.array([1, 0, 1])).tolist() == [3, 1, 3]

    def test_gradients(self) -> None:
        r, w = ragged([[1.0, 2.0], [3.0], []]), jnp.array([1.0, 10.0, 100.0])
        gradient = jax.grad(lambda v: weighted(Ragged(v, r.lengths), w).sum())(r.values)
        assert gradient.tolist() == [[1.0, 2.0], [10.0, 0.0], [0.0, 0.0]]

    def test_vmap(self) -> None:
        both = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), ragged(LISTS))
        w = jnp.ones((2, 4), jnp.int32)
        assert jax.vmap(weighted)(both, w).tolist() == [weighted(ragged(LISTS), w[0]).tolist()] * 2

    def test_a_failed_lane_is_no_argument(self) -> None:
        failed = extended.with_options(max_length=2).run(ragged([[1], [2]]), jnp.array([0, 9])).value
        assert failed.tolist() == [[1], None]
        with pytest.raises(pcbatch.UsageError, match="lanes 1 of a `Ragged` have failed"):
            extended(failed, jnp.array([0, 0]))

    def test_other_axes_are_refused(self) -> None:
        with pytest.raises(pcbatch.UsageError, match="PCB404"):
            extended.with_options(in_axes=(1, 0))(ragged(LISTS), jnp.arange(4))
        with pytest.raises(pcbatch.UsageError, match="PCB431"):
            extended.with_options(out_axes=1)(ragged(LISTS), jnp.arange(4))

    def test_messages_show_the_list(self) -> None:
        @pcbatch.batch
        def f(xs):
            assert xs[0] < 5
            return xs[0]

        with pytest.raises(pcbatch.BatchRuntimeError, match=r"1 \(xs=\[7, 8\]\)"):
            f(ragged([[1], [7, 8]]))


class Pair(NamedTuple):
    n: Any
    rows: Any


def test_results_in_other_structures() -> None:
    @pcbatch.batch
    def f(n):
        rows = []
        for i in range(n):
            row = []
            for j in range(i):
                row.append((j, 0.5 * i))
            rows.append(row.copy())
        return {"pair": Pair(n, rows)}

    value = f(jnp.array([3, 0]))
    plain = [f.plain(n)["pair"].rows for n in (3, 0)]
    assert isinstance(value["pair"], Pair)
    assert value["pair"].rows.tolist() == plain
    shapes = f.trace(jax.ShapeDtypeStruct((2,), "int32")).out_info
    assert isinstance(shapes["pair"].rows, Ragged)


@pcbatch.batch
def of_each_kind(n):
    counts, seen, dicts = {}, set(), []
    for k in range(n):
        counts[str(k % 2)] = (k, 0.5 * k)
        seen.add(k)
        dicts.append({k: str(n)})
    return [k for k in range(n)], tuple([k for k in range(n)]), str(n), str(n).encode(), counts, seen, dicts


class TestKinds:
    N = (3, 0, 2)
    KINDS = ("list", "tuple", "text", "bytes", "dict", "set", "list")

    def test_one_class_has_all(self) -> None:
        found = of_each_kind(jnp.array(self.N))
        expected = zip(*map(of_each_kind.plain, self.N), strict=True)
        assert tuple(part.kind for part in found) == self.KINDS
        for part, want in zip(found, map(list, expected), strict=True):
            assert type(part) is Ragged and part.tolist() == want and part[1:] == want[1:]
            read = part[2] if part.kind == "text" or part.holds_tables else part.tolist()[2]
            assert read == want[2] and type(read) is type(want[2])
            assert part.codes is part.values and part.table is part.values

    def test_it_goes_through_jit_vmap_and_calls(self) -> None:
        found, expected = of_each_kind(jnp.array(self.N)), [*zip(*map(of_each_kind.plain, self.N), strict=True)]
        twice = jax.vmap(of_each_kind)(jnp.array([self.N, self.N]))
        through, shaped = pcbatch.batch(lambda part: part), jax.eval_shape(of_each_kind, jnp.array(self.N))
        for k, want in enumerate(map(list, expected)):
            assert twice[k].tolist() == [want, want]
            assert through(found[k]).tolist() == want and jax.jit(through)(found[k]).tolist() == want
            kind = "" if self.KINDS[k] == "list" else f"kind='{self.KINDS[k]}'"
            assert shaped[k].kind == self.KINDS[k] and kind in repr(shaped[k])

    def test_tables_are_no_arrays(self) -> None:
        found = of_each_kind(jnp.array([2, 2]))
        assert np.asarray(found[2]).tolist() == ["2", "2"] and np.asarray(found[4]).dtype == object
        for part in (found[2], found[4], found[5]):
            with pytest.raises(TypeError, match=f"no array of JAX holds a {part.kind}"):
                jnp.asarray(part)

    def test_one_list_of_texts_for_all_lanes(self) -> None:
        f = pcbatch.batch(lambda words, k: words[k] + "!", in_axes=(None, 0))
        assert f(pcbatch.ragged(["a", "bc"]), jnp.array([1, 0, 1])).tolist() == ["bc!", "a!", "bc!"]


def test_export() -> None:
    exported = jax.export.export(jax.jit(extended.with_options(max_length=8)))(ragged(LISTS), jnp.arange(4))
    again = jax.export.deserialize(exported.serialize())
    assert again.call(ragged(LISTS), jnp.arange(4)) == extended(ragged(LISTS), jnp.arange(4))
    exported = jax.export.export(jax.jit(pcbatch.batch(lambda n: str(n))))(jnp.arange(4))
    found = jax.export.deserialize(exported.serialize()).call(jnp.arange(4))
    assert found.kind == "text" and found[3] == "3"


class TestOrderOfKeys:
    """Dicts with lists in them keep the order of their keys, which JAX's pytrees sort."""

    def test_arguments(self) -> None:
        @pcbatch.batch
        def f(d):
            found = 0
            for key in d:
                found = found * 10 + (len(d[key]) if key == "b" else d[key])
            return found

        lists, numbers = ragged([[1, 2], [3]]), jnp.array([7, 8])
        for _ in range(2):  # the second call repeats the first
            assert f({"b": lists, "a": numbers}).tolist() == [27, 18]
            assert f({"a": numbers, "b": lists}).tolist() == [72, 81]
        assert f.map({"b": lists, "a": numbers}).value.tolist() == [27, 18]
        assert f.plain({"b": np.arange(2), "a": 7}) == 27

    def test_elements_of_lists(self) -> None:
        @pcbatch.batch
        def f(rows):
            found = 0
            for row in rows:
                for key in row:
                    found = found * 10 + row[key]
            return found

        rows = [[{"z": 1, "a": 2}], [{"z": 3, "a": 4}, {"z": 5, "a": 6}]]
        assert f(ragged(rows)).tolist() == [12, 3456]
        assert [list(row) for row in ragged([[{"z": [{"y": 1, "b": 2}], "a": 2}]]).tolist()[0]] == [["z", "a"]]
        with pytest.raises(pcbatch.UsageError, match="keys in one order") as found:
            ragged([[{"z": 1, "a": "b"}], [{"a": "c", "z": 3}]])
        assert "sort the keys" in str(found.value)

    def test_results(self) -> None:
        @pcbatch.batch
        def f(n):
            return {"z": [n, n], "a": n}

        for _ in range(2):
            assert list(f(jnp.arange(2))) == ["z", "a"]
        assert list(f.map(jnp.arange(2), lanes=1).value) == ["z", "a"]


class TestCut:
    """Content is cut to the longest value when it is read."""

    def test_reading_before_and_behind_the_cut(self) -> None:
        for _ in range(2):
            lists = extended(ragged(LISTS), jnp.arange(4))
            assert lists._known_lengths is not None
            assert lists.tolist() == [[1, 2], [3, 0], [0, 1], [7, 8, 9, 0, 1, 2]]
            assert lists[1].tolist() == [3, 0]
            assert lists._known_lengths is not None
            assert lists.values.shape == (4, 6) and lists._known_lengths is None
            assert lists.tolist() == [[1, 2], [3, 0], [0, 1], [7, 8, 9, 0, 1, 2]]

    def test_copies(self) -> None:
        @pcbatch.batch
        def f(xs, text):
            return [[x] for x in xs], text + "!"

        found = f(ragged(LISTS), pcbatch.ragged(["a", "", "bcd", "e"]))
        for again in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
            assert again == found
            assert list(map(jnp.shape, jax.tree.leaves(again))) == list(map(jnp.shape, jax.tree.leaves(found)))
        assert found[1].codes.shape == (4, 4) and found[0].values.values.shape == (4, 3, 1)

    def test_first_read_in_a_trace(self) -> None:
        lists = extended(ragged(LISTS), jnp.arange(4))
        assert jax.jit(lambda x: lists.values.sum() + x)(1).item() > 0
        assert isinstance(lists.values, jax.Array) and not isinstance(lists.values, jax.core.Tracer)
        lists = extended(ragged(LISTS), jnp.arange(4))
        jax.jit(lambda n: n + 1, donate_argnums=0)(lists.lengths)
        assert lists.values.shape == (4, 6)

    def test_deques(self) -> None:
        @pcbatch.batch
        def f(n):
            d = collections.deque(maxlen=2)
            for k in range(n):
                d.append(k)
            return n, [d, d]

        for _ in range(2):
            first, second = f(jnp.array([3, 0, 1]))[1]
            assert first.tolist() == second.tolist() == [[1, 2], [], [0]]


@pytest.mark.parametrize(
    ("lengths", "why"), [([2, 7], "has length 7"), ([2, -3], "lanes 1 .* have failed"), ([2.0, 1.0], "are integers")]
)
def test_lengths_that_texts_cannot_have(lengths: list[Any], why: str) -> None:
    @pcbatch.batch
    def f(s):
        return len(s)

    codes = np.array([[97, 98], [99, 100]], np.int32)
    for _ in range(2):
        assert f(Ragged(codes, np.array([2, 1], np.int32), "text")).tolist() == [2, 1]
        with pytest.raises(pcbatch.UsageError, match=why):
            f(Ragged(codes, np.array(lengths), "text"))


class TestPlain:
    def test_a_function_that_assigns_to_items_gets_a_copy(self) -> None:
        @pcbatch.batch
        def f(x, y):
            x[0] = y[0]
            return x, y

        x = np.array([1, 2])
        for given in (x, jnp.asarray(x)):
            result, other = f.plain(given, y=np.array([5]))
            assert isinstance(result, np.ndarray)
            assert result.tolist() == [5, 2]
            assert isinstance(other, jax.Array)
        assert x.tolist() == [1, 2]

    def test_lists_of_lists(self) -> None:
        @pcbatch.batch
        def f(rows):
            return rows

        assert f.plain(ragged([[1], []])) == [[1], []]
