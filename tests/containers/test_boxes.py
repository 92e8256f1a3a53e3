"""Lists, dicts and sets that have several names, of which one changes them: all names show the change."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pcbatch
from tests.strangers.rows import alike, as_plain, lane_of

LANES = [1, 2, 3]


def longest(groups):
    best = groups[0]
    for g in groups:
        if len(g) > len(best):
            best = g
    return best


def add_to(bins, x):
    b = min(bins, key=sum)
    b.append(x)


def augmented_element(n):
    rows = [[0], [1], [2]]
    row = rows[n % 3]
    row += [n, n + 1]
    return rows


def looked_up_or_stored(n):
    d = {}
    for i in range(n + 2):
        lst = d.get(i % 2)
        if lst is None:
            lst = []
            d[i % 2] = lst
        lst.append(i)
    return d


def three_levels(n):
    cube = [[[0] * 2 for _ in range(3)] for _ in range(2)]
    for layer in cube:
        for row in layer:
            row[n % 2] = n
    return cube


def values_of_sorted_items(n):
    g = {"x": [3, 1], "y": [2]}
    for k, v in sorted(g.items()):
        v.append(n)
    return g


def receiver_of_a_choice(n):
    teams = {"x": [3, 1], "y": [2]}
    min(teams.values(), key=len).append(n)
    return teams


def smallest_by_a_builtin(n):
    bins = [[] for _ in range(3)]
    for x in [5, 3, n, 2]:
        best = min(bins, key=sum)
        best.append(x)
    return bins


def sets_in_dicts_by_name(n):
    users = [{"name": "a", "tags": set()}, {"name": "b", "tags": set()}]
    for u in users:
        u["tags"].add(n)
        if u["name"] == "b":
            u["tags"].add(0)
    return [sorted(u["tags"]) for u in users]


def lists_in_values_of_a_dict(n):
    graph = {i: {"next": [], "w": i} for i in range(4)}
    for i in range(4):
        graph[i]["next"].append((i + n) % 4)
    for node in graph.values():
        node["next"].append(node["w"])
    return [graph[i]["next"] for i in range(4)]


def augmented_set(n):
    seen = [set() for _ in range(3)]
    s = seen[n % 3]
    s |= {1, 2}
    return [len(x) for x in seen]


def defaults_of_a_lambda(n):
    hist = defaultdict(lambda: [0, 0])
    for x in [1, 2, 1, n]:
        h = hist[x]
        h[0] += 1
        h[1] += x
    return sorted((k, *v) for k, v in hist.items())


def dicts_by_name_stored_on_demand(n):
    inv = {}
    for name, qty in (("a", 2), ("b", n), ("a", 5)):
        entry = inv.setdefault(name, {"qty": 0, "log": []})
        entry["qty"] += qty
        entry["log"].append(qty)
    return inv


def exchanged_rows(n):
    dp = [[0] * 4 for _ in range(2)]
    prev, cur = dp
    for i in range(3):
        for j in range(1, 4):
            cur[j] = prev[j - 1] + n
        prev, cur = cur, prev
    return prev


def longest_of_defaults(n):
    d = defaultdict(list)
    for i in range(n + 3):
        d[i % 3].append(i)
    longest = max(d.values(), key=len)
    longest.pop()
    return sorted(d.items())


def shortest_queue(n):
    queues = [deque(), deque()]
    for i in range(n + 2):
        q = min(queues, key=len)
        q.append(i)
    out = []
    for q in queues:
        while q:
            out.append(q.popleft())
    return out


def given_by_a_helper(n):
    groups = [[1], [2, 3], [4]]
    g = longest(groups)
    g.append(n)
    return groups


def changed_in_a_helper(n):
    bins = [[] for _ in range(3)]
    for x in [7, 5, n, 2, 4]:
        add_to(bins, x)
    return bins


def by_a_closure(n):
    accounts = {"a": {"bal": 10, "hist": []}, "b": {"bal": 5, "hist": []}}

    def transfer(src, dst, amt):
        s, d = accounts[src], accounts[dst]
        if s["bal"] >= amt:
            s["bal"] -= amt
            d["bal"] += amt
            s["hist"].append(-amt)
            d["hist"].append(amt)
            return True
        return False

    transfer("a", "b", n)
    transfer("b", "a", 2 * n)
    return accounts


def kept_by_a_recursion(n):
    cache = {}

    def fib(k):
        if k in cache:
            return cache[k]
        r = [k] if k < 2 else fib(k - 1) + fib(k - 2)
        cache[k] = r
        return r

    r = fib(n)
    r.append(99)
    return cache[n]


def first_of_unpacked(n):
    lists = [[3, 1], [n, 2], [5]]
    lists.sort(key=lambda l: l[0])
    first, *rest = lists
    first.append(100)
    return lists


def queue_of_paths(n):
    q = deque([[0]])
    out = []
    while q:
        path = q.popleft()
        if len(path) > 3:
            out.append(path)
            continue
        for step in (1, n):
            new = path + [step]
            q.append(new)
            new.append(step)
    return out


def got_or_none(n):
    inv = {"apple": [3, 5], "pear": [2, 7]}

    def restock(item, k):
        rec = inv.get(item)
        if rec is None:
            inv[item] = [k, 1]
        else:
            rec[0] += k

    restock("apple", n)
    restock("fig", 2)
    restock("fig", n)
    return inv


def least_loaded(n):
    sched = [[] for _ in range(3)]
    tasks = [(3, "a"), (n, "b"), (2, "c")]
    for cost, name in sorted(tasks):
        worker = min(sched, key=lambda w: sum(c for c, _ in w))
        worker.append((cost, name))
    return [[c for c, _ in w] for w in sched]


def group_that_grows(n):
    current, groups = [], []
    groups.append(current)
    for x in [1, 1, 2, n, 3, 3]:
        if current and current[-1] != x:
            current = []
            groups.append(current)
        current.append(x)
    return groups


def unpacked_in_a_comprehension(n):
    pairs = [[1, 2], [3, 4]]
    p = pairs[n % 2]
    p[0] = n
    return sum(a * b for a, b in pairs)


def compared(n):
    rows = [[1], [2, 3]]
    r = max(rows, key=len)
    r.append(n)
    return r == [2, 3, 1], rows[1] != r


def asked_by_identity(n):
    rows = [[1], [2, 3]]
    r = rows[1]
    r.append(n)
    return r is rows[1], rows[0] is r


def ordered_boxes(n):
    rows = [[3], [2, 3]]
    best = min(rows, key=len)
    best.append(n)
    rows.sort()
    return rows


def one_row_twice(n):
    m = [[0] * 2] * 2
    m[0][0] = n
    return m


def copy_of_the_outer_list(n):
    rows = [[i] for i in range(3)]
    alias = list(rows)
    alias[0].append(n)
    alias.pop()
    return rows, len(alias)


def methods_by_a_name(n):
    rows = [[5, 1], [2, 2]]
    first = rows[0]
    first.sort()
    first.reverse()
    first[0:1] = [n, n]
    del first[-1]
    first.extend([7, 8])
    return rows, first.index(7), first.count(n), len(first), 8 in first


def memo_of_lists(n):
    memo = {}

    def path(k):
        if k == 0:
            return [0]
        if k in memo:
            return memo[k]
        r = path(k - 1) + [k]
        memo[k] = r
        return r

    a = path(n)
    a.append(-1)
    return path(n)


def teams_in_turn(n):
    teams = {"r": {"score": 0, "players": ["x"]}, "b": {"score": 0, "players": []}}
    cur = teams["r"]
    for i in range(4):
        cur["score"] += i
        if i % 2:
            cur["players"].append("p")
        cur = teams["b"] if cur is teams["r"] else teams["r"]
    return teams["r"]["score"], len(teams["r"]["players"]), teams["b"]["score"], len(teams["b"]["players"])


def lists_in_a_heap(n):
    q = [(2, [1]), (1, [2])]
    heapq.heapify(q)
    _, xs = heapq.heappop(q)
    xs.append(n)
    heapq.heappush(q, (5, xs))
    return [k for k, _ in q], [len(x) for _, x in q]


def selected_rows(n):
    xs = [[1], [2]]
    ys = [x for x in xs if len(x) < 5]
    ys[0].append(n)
    zs = [*xs, [3]]
    zs[1].append(n)
    return xs, zs


def either_of_two(n):
    opts = {"lo": [1], "hi": [2]}
    sel = opts.get("lo" if n < 2 else "zz") or opts["hi"]
    sel.append(n)
    return opts


def found_by_next(n):
    pool = [[0, i] for i in range(3)]
    w = next(p for p in pool if p[1] >= n - 1)
    w[0] += 5
    return pool


def index_of_records(n):
    data = [{"id": i, "tags": []} for i in range(3)]
    by_id = {d["id"]: d for d in data}
    by_id[n % 3]["tags"].append(n)
    hit = [d for d in data if d["tags"]]
    hit[0]["tags"].append(99)
    return [len(d["tags"]) for d in data]


def truth_of_a_name(n):
    rows = [[0], [1], [2]]
    r = None
    for x in rows:
        if len(x) == 1 and x[0] == n:
            r = x
    if r:
        r.append(5)
    return rows


def keys_of_a_dict(n):
    table = {k: [k] for k in range(3)}
    row = max(table.values(), key=lambda row: row[0] % n)
    row.append(n)
    total = 0
    for k in table:
        total += k * len(table[k])
    return total


PROGRAMS = (
    truth_of_a_name, keys_of_a_dict,
    augmented_element, looked_up_or_stored, three_levels, values_of_sorted_items, receiver_of_a_choice,
    smallest_by_a_builtin, sets_in_dicts_by_name, lists_in_values_of_a_dict, augmented_set,
    defaults_of_a_lambda, dicts_by_name_stored_on_demand, exchanged_rows, longest_of_defaults, shortest_queue,
    given_by_a_helper, changed_in_a_helper, by_a_closure, kept_by_a_recursion, first_of_unpacked,
    queue_of_paths, got_or_none, least_loaded, group_that_grows, unpacked_in_a_comprehension, compared,
    asked_by_identity, ordered_boxes, one_row_twice, copy_of_the_outer_list, methods_by_a_name, memo_of_lists,
    teams_in_turn, lists_in_a_heap, selected_rows, either_of_two, found_by_next, index_of_records,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_all_names_show_a_change(program: Callable[[int], Any]) -> None:
    results = pcbatch.batch(program)(np.array(LANES))
    for k, n in enumerate(LANES):
        assert alike(as_plain(lane_of(results, k)), as_plain(program(n)), 0.0), (program.__name__, n)
