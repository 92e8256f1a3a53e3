"""Programs with dicts and sets whose keys are values of the lane: every lane gives what plain Python gives."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from enum import Enum

import jax
import numpy as np
import pytest

import pcbatch

pytestmark = pytest.mark.share(5)

XS = np.random.default_rng(0).integers(0, 8, (12, 10)).astype(np.int32)
YS = np.random.default_rng(1).integers(0, 12, (12, 10)).astype(np.int32)
N = np.arange(12, dtype=np.int32)


def plain(value):
    """Return a result of one lane as values of Python."""
    return tuple(map(plain, value)) if isinstance(value, tuple) else value.item() if hasattr(value, "item") else value


def check(f, *args):
    """Compare a batch with the plain function, which gets Python's own numbers and lists."""
    got = pcbatch.batch(f)(*args)
    lanes = range(len(args[0]))
    parts = got if isinstance(got, tuple) else (got,)
    values = [part.tolist() for part in parts]
    for lane in lanes:
        expected = f(*[arg[lane].tolist() for arg in args])
        found = tuple(value[lane] for value in values)
        assert found == (expected if isinstance(expected, tuple) else (expected,)), lane


def two_sum(xs, target):
    seen = {}
    for i in range(len(xs)):
        if target - xs[i] in seen:
            return (seen[target - xs[i]], i)
        seen[xs[i]] = i
    return (-1, -1)


def happy(n):
    seen = set()
    while n != 1 and n not in seen:
        seen.add(n)
        total = 0
        while n > 0:
            d = n % 10
            total += d * d
            n //= 10
        n = total
    return n == 1


def first_repeated(xs):
    seen = set()
    for x in xs:
        if x in seen:
            return x
        seen.add(x)
    return -1


def most_frequent(xs):
    counts = {}
    for x in xs:
        counts[x] = counts.get(x, 0) + 1
    return max(counts, key=counts.get)


def cycle(n, c):
    seen = {}
    x, k = 0, 0
    while x not in seen:
        seen[x] = k
        x = (x * x + c) % n
        k += 1
    return k - seen[x]


def consecutive(xs):
    s = set(xs)
    best = t = 0
    for x in s:
        t = t * 3 % 1000 + x
        if x - 1 not in s:
            n = 1
            while x + n in s:
                n += 1
            best = max(best, n)
    return best, t


def deletes(xs):
    d = {}
    for x in xs:
        if x in d:
            del d[x]
        else:
            d[x] = len(d)
    t = 0
    for k, v in d.items():
        t = t * 11 + k + v
    return t


def algebra(xs, ys):
    a = set(xs)
    b = set(ys)
    return len(a | b), len(a & b), len(a - b), len(a ^ b), a <= b, a.isdisjoint(b), (a & b) <= a, a == b


def anagram(xs, ys):
    return Counter(xs) == Counter(ys)


def grouplists(xs):
    g = defaultdict(list)
    for x in xs:
        g[x % 3].append(x)
    best = 0
    for k in g:
        best = max(best, len(g[k]))
    return best


def setdefault(xs):
    d = {}
    for i, x in enumerate(xs):
        d.setdefault(x, i)
    t = 0
    for x in xs:
        t = t * 3 + d[x]
    return t


def nqueens(n):
    cols = set()
    d1 = set()
    d2 = set()
    pos = [0] * 8
    count = 0
    r = 0
    c = 0
    while r >= 0:
        if r == n:
            count += 1
            r -= 1
            if r >= 0:
                c = pos[r]
                cols.remove(c)
                d1.remove(r + c)
                d2.remove(r - c)
                c += 1
            continue
        while c < n and (c in cols or r + c in d1 or r - c in d2):
            c += 1
        if c < n:
            cols.add(c)
            d1.add(r + c)
            d2.add(r - c)
            pos[r] = c
            r += 1
            c = 0
        else:
            r -= 1
            if r >= 0:
                c = pos[r]
                cols.remove(c)
                d1.remove(r + c)
                d2.remove(r - c)
                c += 1
    return count


def merge(xs, ys):
    a = {x: 1 for x in xs}
    b = {y: 2 for y in ys}
    c = {**a, **b}
    a.update(b)
    return sum(c.values()), a == c, len(a | b)


def subarrays(xs, k):
    seen = defaultdict(int)
    seen[0] = 1
    total = count = 0
    for x in xs:
        total += x
        count += seen[total - k]
        seen[total] += 1
    return count, len(seen)


def window(xs, k):
    counts = {}
    best = left = 0
    for right in range(len(xs)):
        counts[xs[right]] = counts.get(xs[right], 0) + 1
        while len(counts) > k:
            counts[xs[left]] -= 1
            if counts[xs[left]] == 0:
                del counts[xs[left]]
            left += 1
        best = max(best, right - left + 1)
    return best


def bfs(n):

    seen = {(0, 0)}
    queue = [(0, 0, 0)]
    while queue:
        x, y, d = queue.pop(0)
        if x == n and y == n - 1:
            return d
        for dx, dy in ((1, 2), (2, 1), (-1, 2), (1, -2), (2, -1), (-2, 1)):
            p = (x + dx, y + dy)
            if 0 <= p[0] < 5 and 0 <= p[1] < 5 and p not in seen:
                seen.add(p)
                queue.append((p[0], p[1], d + 1))
    return -1


def updates(xs):
    s = {1, 2}
    s |= {x for x in xs}
    s.discard(3)
    s.update([100, 200])
    s -= {100}
    return len(s), 200 in s, sum(s), max(s), min(s)


def floats(xs):
    d = {}
    for x in xs:
        d[x / 2] = d.get(x / 2, 0.0) + 0.5
    return sum(d.values()), len(d)


def popitem(xs):
    d = {x: i for i, x in enumerate(xs)}
    k, v = d.popitem()
    w = d.pop(99, -5)
    return k, v, w, len(d)


def keys_changed(xs):
    d = {x: 0 for x in xs}
    for k in d:
        d[k] += k
    return sum(d.values())


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (
            two_sum,
            (
                XS,
                N,
            ),
        ),
        (happy, (N + 1,)),
        (first_repeated, (XS,)),
        (most_frequent, (XS,)),
        (
            cycle,
            (
                N + 2,
                N,
            ),
        ),
        (consecutive, (XS,)),
        (deletes, (XS,)),
        (
            algebra,
            (
                XS,
                YS,
            ),
        ),
        (
            anagram,
            (
                XS,
                np.concatenate([XS[:6, ::-1], YS[6:]]),
            ),
        ),
        (grouplists, (XS,)),
        (setdefault, (XS,)),
        (nqueens, (N % 6 + 1,)),
        (
            merge,
            (
                XS,
                YS,
            ),
        ),
        (
            subarrays,
            (
                XS,
                N,
            ),
        ),
        (
            window,
            (
                XS,
                N % 4 + 1,
            ),
        ),
        (bfs, (N % 6,)),
        (updates, (XS,)),
        (floats, (XS,)),
        (popitem, (XS,)),
        (keys_changed, (XS,)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_lane_gives_what_plain_python_gives(f, args):
    check(f, *args)


def counts(xs):
    found = {}
    for x in xs:
        found[x] = found.get(x, 0) + 1
    return found, set(xs)


def test_dicts_and_sets_are_results():
    dicts, sets = pcbatch.batch(counts)(XS)
    expected = [counts(x.tolist()) for x in XS]
    assert dicts.tolist() == [found for found, _ in expected] and sets.tolist() == [found for _, found in expected]
    assert [list(found) for found in dicts.tolist()] == [list(found) for found, _ in expected]
    assert dicts[3] == expected[3][0] and len(sets) == len(XS) and repr(sets).startswith("Ragged([{")
    assert (dicts.kind, sets.kind) == ("dict", "set")


def many(n):
    found = set()
    for k in range(n):
        found.add(k * k)
    return len(found)


def test_a_full_set_makes_the_run_start_again_with_more_room():
    assert pcbatch.batch(many)(np.array([3, 100, 0], np.int32)).tolist() == [3, 100, 0]


def lookup(x):
    table = {1: 10, 4: 40}
    return table[x]


def grows(xs, y):
    found = {x: 0 for x in xs}
    for k in found:
        if k == y:
            found[k + 100] = 0
    return len(found)


def test_a_lane_raises_what_python_raises():
    run = pcbatch.batch(lookup).run(np.array([1, 2, 4], np.int32))
    assert run.value[0] == 10 and run.value[2] == 40
    with pytest.raises(pcbatch.BatchRuntimeError, match=r"1 \(x=2\): 2"):
        pcbatch.batch(lookup)(np.array([1, 2, 4], np.int32))
    with pytest.raises(pcbatch.BatchRuntimeError, match="changed size during iteration"):
        pcbatch.batch(grows)(XS, XS[:, 0])


def grows_by_union(xs, y):
    found = {x: 0 for x in xs}
    for k in found:
        if k == y:
            found |= {k + 100: 0}
    return len(found)


def grows_in_items(xs, y):
    found = {x: 0 for x in xs}
    for k, v in found.items():
        found |= {(k + 100 if k == y else k): v}
    return len(found)


class Held:
    """An object with a dict."""

    def __init__(self, found):
        self.found = found


def grows_in_an_object(xs, y):
    held = Held({x: 0 for x in xs})
    for k in held.found:
        if k == y:
            held.found |= {k + 100: 0}
    return len(held.found)


def grows_in_a_list(xs, y):
    rows = [{x: 0 for x in xs}]
    for k in rows[0]:
        if k == y:
            rows[0][k + 100] = 0
    return len(rows[0])


def replaced_meanwhile(xs, y):
    """What is stored goes into another dict than that of the loop."""
    held = Held({x: 0 for x in xs})
    for k in held.found:
        held.found = {y: 1}
        held.found[k] = y
    return len(held.found)


def assigned_meanwhile(xs, y):
    found, seen = {x: 0 for x in xs}, 0
    for k in found:
        seen += k
        found = {k: y}
        found |= {y: k}
    return seen, len(found)


@pytest.mark.parametrize("fn", [grows_by_union, grows_in_items, grows_in_an_object, grows_in_a_list])
def test_a_loop_sees_in_any_way_that_its_dict_has_grown(fn):
    run = pcbatch.batch(fn).run(XS, np.where(np.arange(len(XS)) % 2, XS[:, 0], -1).astype(np.int32))
    assert [status == pcbatch.Status.ERROR for status in run.status] == [bool(k % 2) for k in range(len(XS))]


@pytest.mark.parametrize("fn", [replaced_meanwhile, assigned_meanwhile])
def test_a_loop_goes_on_with_the_dict_that_it_began_with(fn):
    found = jax.tree.leaves(pcbatch.batch(fn)(XS, XS[:, 0]))
    wanted = [jax.tree.leaves(fn(xs.tolist(), int(xs[0]))) for xs in np.asarray(XS)]
    assert [list(lane) for lane in zip(*(column.tolist() for column in found), strict=True)] == wanted


def renamed_and_refilled(y):
    found = {1: y, 5: y}
    other = found
    for k in found:
        other[2] = y
        del other[1]
        break
    return sum(found)


def test_another_name_of_a_dict_whose_keys_a_loop_replaces_is_not_forgotten():
    found = pcbatch.batch(renamed_and_refilled)(np.array([3, 4], np.int32))
    assert found.tolist() == [renamed_and_refilled(3), renamed_and_refilled(4)]


def removed(xs):
    found = set(xs)
    found.discard(3)
    return [x for x in found]


def unlike(n):
    found = {n: 1} if n > 2 else {n: [1]}
    return len(found)


def test_elements_of_a_set_that_only_loses_some_have_their_order():
    assert pcbatch.batch(removed)(XS).tolist() == [removed(row.tolist()) for row in XS]


def test_what_is_not_known_is_refused():
    with pytest.raises(pcbatch.CompileError, match="PCB301"):
        pcbatch.batch(unlike)(N)


def test_dicts_of_results_keep_the_order_of_their_keys_beside_lists() -> None:
    def both(n):  # type: ignore[no-untyped-def]
        return {"b": n, "a": [i for i in range(n)]}

    assert list(pcbatch.batch(both)(np.arange(3))) == ["b", "a"]


def test_a_view_that_is_kept_is_refused_where_the_dict_changes() -> None:
    def kept(n):  # type: ignore[no-untyped-def]
        d = {i: i for i in range(n)}
        keys = d.keys()
        d[n] = 1
        return len(keys)

    with pytest.raises(pcbatch.CompileError, match="PCB330"):
        pcbatch.batch(kept)(np.arange(3))


def test_keys_of_other_dtypes_on_two_paths_have_the_places_of_the_joined_dtype() -> None:
    def f(n):  # type: ignore[no-untyped-def]
        d = {0: [], 1: [], 2: []}
        if n >= 0:
            d[n].append(1)
        else:
            d[n] = [2]
        d[2] = [5]
        return list(d)

    with jax.enable_x64(True):
        check(f, np.array([0, 2, -1], np.int32))


def parted(ts):
    found = {}
    for k in range(len(ts)):
        found[tuple(ts[:k]), 0] = k
        found[tuple(ts[k:]), 1] = -k
    return [found[key] for key in found], [len(row) + which for row, which in found]


def test_keys_with_known_tuples_and_tuples_of_the_lane_are_gone_over():
    rows = [[3, 1, 2], [], [9, 5]]
    values, sizes = pcbatch.batch(parted)(pcbatch.ragged(rows))
    assert list(zip(values.tolist(), sizes.tolist(), strict=True)) == [parted(row) for row in rows]


class Recent:
    """A cache that drops what was used longest ago."""

    def __init__(self, room):
        self.room = room
        self.kept = OrderedDict()

    def get(self, key):
        if key not in self.kept:
            return -1
        self.kept.move_to_end(key)
        return self.kept[key]

    def put(self, key, value):
        if key in self.kept:
            self.kept.move_to_end(key)
        self.kept[key] = value
        if len(self.kept) > self.room:
            self.kept.popitem(last=False)


def used_longest_ago(x, y):
    cache = Recent(2)
    found = []
    for key in (x, y, x + y, y, 1, x):
        found.append(cache.get(key))
        cache.put(key, key + 1)
    return tuple(found), list(cache.kept), cache.kept


def moved_to_both_ends(x, y):
    d = OrderedDict([(x, 1), (y + 10, 2), (7, 3)])
    d.move_to_end(x)
    d.move_to_end(7, last=False)
    first = d.popitem(last=False)
    return first, d.popitem(), list(d.items())


def compared_in_order(x, y):
    one, other = OrderedDict(), OrderedDict()
    one[x], one[y] = 1, 2
    other[y], other[x] = 2, 1
    return one == other, one == {y: 2, x: 1}, one != other, isinstance(one, OrderedDict)


def moved_that_is_not_there(x, y):
    d = OrderedDict()
    d[x] = y
    if y == 1:
        d.move_to_end(x + 1)
    if y == 2:
        d.popitem()
    return d.popitem(last=False)[0]


@pytest.mark.parametrize("f", [used_longest_ago, moved_to_both_ends, compared_in_order, moved_that_is_not_there])
def test_ordered_dicts(f):
    xs, ys = np.arange(1, 7), np.array([1, 2, 0, 1, 2, 3])
    result = pcbatch.batch(f).run(xs, ys)
    parts = result.value if isinstance(result.value, tuple) else (result.value,)
    for lane, (x, y) in enumerate(zip(xs.tolist(), ys.tolist(), strict=True)):
        try:
            plain = f(x, y)
        except KeyError:
            assert result.status[lane] == pcbatch.Status.ERROR
            continue
        wanted = plain if isinstance(plain, tuple) else (plain,)
        assert result.status[lane] == pcbatch.Status.OK
        assert jax.tree.map(int, tuple(_of_lane(part, lane) for part in parts)) == jax.tree.map(int, wanted)


def _of_lane(part, lane):
    if isinstance(part, tuple):
        return tuple(_of_lane(each, lane) for each in part)
    return part.tolist()[lane]


def test_methods_that_only_ordered_dicts_have():
    with pytest.raises(pcbatch.CompileError, match="move_to_end"):
        pcbatch.batch(lambda n: [d := {n: 1}, d.move_to_end(n)][0])(np.arange(3))


def _counted(xs, ys):
    a, b = Counter(), Counter()
    for x in xs:
        a[x % 5] += x - 2
    for y in ys:
        b[y % 4] += y - 4
    return a, b


def counters_combined(xs, ys):
    a, b = _counted(xs, ys)
    found = []
    for c in (a + b, a - b, a | b, a & b, b - a):
        for key in c:
            found.append(key)
            found.append(c[key])
        found.append(-100)
    return found


def counters_combined_in_place(xs, ys):
    a, b = _counted(xs, ys)
    a += b
    found = [*a, *a.values()]
    a -= b
    found += [*a, *a.values()]
    a |= b
    found += [*a, *a.values()]
    a &= b
    return [*found, *a, *a.values()]


def counters_compared(xs, ys):
    a, b, c = Counter(), Counter(), Counter()
    for x in xs:
        a[x] += 1
    for y in ys:
        b[y % 8] += 1
        c[y] += 0
    return (a == b, a != b, a - b == Counter(), c == Counter(), Counter() == c, b - a == b)


@pytest.mark.parametrize("f", [counters_combined, counters_combined_in_place, counters_compared])
def test_arithmetic_of_counters(f):
    check(f, XS, np.concatenate([XS[:2], YS[2:]]))


def test_a_counter_and_a_dict_are_not_combined():
    with pytest.raises(pcbatch.CompileError, match=r"make both a `Counter`"):
        pcbatch.batch(lambda n: (Counter({n: 1}) | {n: 2})[n])(N)


def removed_keys(xs, ys):
    d = {}
    for x in xs:
        d[x] = x + 1
    for y in ys:
        if y in d:
            del d[y]
    found = 0
    for k in range(12):
        found = 2 * found + int(k in d)
    for y in ys:
        d[y] = d.get(y, 0) + 1
    for k in range(12):
        found += d.get(k, 0) * k
    return found, len(d)


def removed_elements(xs, ys):
    s, t = set(), {1, 5, 9}
    for x in xs:
        s.add(x)
    for y in ys:
        s.discard(y)
        t ^= {y}
    found = 0
    for k in range(12):
        found = 4 * found + 2 * int(k in s) + int(k in t)
    s &= t
    for y in ys:
        s.add(y + 1)
    for k in range(12):
        found += int(k in s) * k
    return found, len(s)


def removed_counts(xs, ys):
    c, d = Counter(), Counter()
    for x in xs:
        c[x] += 1
    for y in ys:
        d[y] += 2
    e = c - d
    for y in ys:
        e[y] += 1
    found = 0
    for k in range(12):
        found = found * 3 + e[k] % 3
    return found % 10007, len(e)


@pytest.mark.parametrize("emitter", ["scalar", "guard"])
@pytest.mark.parametrize("f", [removed_keys, removed_elements, removed_counts], ids=lambda f: f.__name__)
@pytest.mark.share(3)
def test_entries_behind_removed_ones_are_found(f, emitter):
    got = pcbatch.batch(f, plan=pcbatch.Plan(emitter=emitter), max_length=16)(XS, YS)
    for lane in range(len(XS)):
        assert tuple(int(part[lane]) for part in got) == f(XS[lane].tolist(), YS[lane].tolist()), lane


def lists_of_two_origins(n):
    m = {0: [], 1: [n]}
    m.setdefault(6, []).append(7)
    if n not in m:
        m[n] = []
    m[n].append((n + 5) % 97)
    while n > 0:
        if n % 3:
            m.setdefault(n, []).append(n)
        else:
            m = {0: [], 1: [round(n / 2) % 97]}
        n -= 1
    return [k + sum(v) for k, v in m.items()]


def test_lists_of_values_whose_sources_differ_are_stored():
    got = pcbatch.batch(lists_of_two_origins)(N[:8])
    assert [list(map(int, row)) for row in got] == [lists_of_two_origins(int(n)) for n in N[:8]]


class Color(Enum):
    RED = 0
    GREEN = 1
    BLUE = 2


def members_of_a_comprehension(n):
    d = {color: color.value for color in Color}
    d[Color(n % 3)] += 10
    return d[Color.RED], d[Color.GREEN], d[Color.BLUE]


def members_of_a_loop(n):
    counts = {}
    for color in Color:
        counts[color] = 0
    counts[Color(n % 3)] += 1
    return counts[Color.RED], counts[Color.GREEN], len(counts)


def members_of_pairs(n):
    d = dict([(color, n) for color in Color])
    d.setdefault(Color.BLUE, 4)
    d.update([(Color.RED, 7)])
    return d[Color(n % 3)], sum(d.values())


def members_in_tuples(n):
    lists = {(color, k): [k] for color in Color for k in range(2)}
    lists[Color(n % 3), 1].append(n)
    return len(lists[Color.RED, 1]), sum(lists[Color.GREEN, 1])


MEMBERS = [members_of_a_comprehension, members_of_a_loop, members_of_pairs, members_in_tuples]


@pytest.mark.parametrize("f", MEMBERS, ids=lambda f: f.__name__)
def test_members_of_an_enumeration_as_keys(f):
    check(f, N)


def text_default(n):
    names = defaultdict(lambda: "none")
    names[n] = "some"
    return names[2], names[3]


def pair_default(n):
    found = defaultdict(lambda: (0, 1.5))
    found[n] = (3, 2.5)
    return found[2][0] + found[2][1], found[3][0], n in found


def list_default(n):
    counts = defaultdict(lambda: [0, 0])
    for k in range(n):
        counts[k % 3][k % 2] += k
    return counts[0][0], counts[1][1], counts[2][0], len(counts)


def default_that_stays(n):
    most = 10**6

    def reach(start):
        distance = defaultdict(lambda: most)
        distance[start] = 0
        for k in range(n):
            if distance[k] + 1 < distance[k + 1]:
                distance[k + 1] = distance[k] + 1
        return distance[2]

    return reach(0), reach(1)


def test_defaults_of_a_defaultdict():
    """Constants may be defaults, and what variables hold that no one assigns again."""
    for f in (text_default, pair_default, list_default, default_that_stays):
        check(f, N)


def _other_keys(a, n):
    t = {}
    for i in range(n):
        t[i] = i
    seen = 0
    for _ in t.values():
        seen += 1
        if seen == 1:
            del t[0]
            t[a] = 1
    return seen


@pytest.mark.parametrize("plan", [pcbatch.Plan(emitter="scalar", fork="never"), pcbatch.Plan(emitter="guard")])
def test_other_keys_of_a_dict_of_one_size_in_a_loop_over_it(plan: pcbatch.Plan) -> None:
    """Python raises, or goes on with keys that follow from its own table: a lane always raises."""
    result = pcbatch.batch(_other_keys, plan=plan).run(np.array([3, 7, 9]), np.array([3, 4, 3]))
    assert result.status.tolist() == [int(pcbatch.Status.ERROR)] * 3
