"""Programs with lists, iterators, orders, sets and arrays."""
# ruff: noqa: E501 - a program is one text

from tests.diagnostics.refused.row import Row

LISTS = "[([3, 1, 2],), ([4, 4],), ([7],)]"
ARRAYS = "np.array([xs for xs, *_ in examples])"
EVEN = "[(np.array([1, 2, 4]),), (np.array([3, 1, 2]),)]"

ROWS = [
    Row(
        "permutations",
        "PCB306",
        "pass the elements as an array, `jnp.array([...])`, which has one length for all lanes",
        "import itertools\n@pcbatch.batch\ndef f(xs):\n    best = 0\n    for a in itertools.permutations(xs):\n"
        "        if 100 * a[0] + 10 * a[1] > best:\n            best = 100 * a[0] + 10 * a[1]\n    return best\n",
        "[([3, 1, 2],), ([4, 4, 9],)]",
        (),
        to=f"jnp.{ARRAYS[3:]}",
    ),
    Row(
        "order by a comparison",
        "PCB303",
        "sort by a key, a number or a tuple of numbers that has the order: `key=lambda x: ...`",
        "import functools\ndef order(a, b):\n    return a % 3 - b % 3\n@pcbatch.batch\ndef f(xs):\n"
        "    return sorted(xs, key=functools.cmp_to_key(order), reverse=xs[0] > 3)\n",
        LISTS,
        (("key=functools.cmp_to_key(order)", "key=lambda x: x % 3"),),
    ),
    Row(
        "order by a method",
        "PCB305",
        "give the order of `Job.__lt__` by a key: `key=lambda x: ...`",
        "class Job:\n    def __init__(self, cost):\n        self.cost = cost\n    def __lt__(self, other):\n"
        "        return self.cost < other.cost\n@pcbatch.batch\ndef f(xs):\n"
        "    return sorted([Job(x) for x in xs], reverse=xs[0] > 3)[0].cost\n",
        LISTS,
        (("sorted([Job(x) for x in xs], ", "sorted([Job(x) for x in xs], key=lambda x: x.cost, "),),
    ),
    Row(
        "map in a variable",
        "PCB306",
        "make a list of it: `list(map(abs, xs))`",
        "@pcbatch.batch\ndef f(xs):\n    sizes = map(abs, xs)\n    return sum(sizes)\n",
        LISTS,
        (("map(abs, xs)", "list(map(abs, xs))"),),
    ),
    Row(
        "columns of rows",
        "PCB306",
        "take the parts one by one: `[row[0] for row in rows]`, `[row[1] for row in rows]`",
        "@pcbatch.batch\ndef f(xs):\n    rows = [(x, 2 * x) for x in xs]\n    a, b = zip(*rows)\n    return sum(a) - sum(b)\n",
        LISTS,
        (("zip(*rows)", "[row[0] for row in rows], [row[1] for row in rows]"),),
    ),
    Row(
        "max of unpacked",
        "PCB306",
        "where that is not meant, pass the list itself: `max(xs)`",
        "@pcbatch.batch\ndef f(xs):\n    return max(*[(x, 1) for x in xs])\n",
        "[([3, 1, 2],), ([4, 4],)]",
        (("max(*[", "max(["),),
    ),
    Row(
        "any number of arguments",
        "PCB306",
        "pass the list itself: `total(xs)`; a function of yours has a parameter `xs` in place of `*xs` then",
        "def total(s, *xs):\n    for x in xs:\n        s += x\n    return s\n@pcbatch.batch\ndef f(xs):\n"
        "    return total(*xs)\n",
        LISTS,
        (("def total(s, *xs):\n", "def total(xs):\n    s = 0\n"), ("return total(*xs)", "return total(xs)")),
    ),
    Row(
        "groups",
        "PCB306",
        "compare each element with the one before it, in a loop: `if k == 0 or xs[k] != xs[k - 1]`",
        "import itertools\n@pcbatch.batch\ndef f(xs):\n    return len(list(itertools.groupby(xs)))\n",
        LISTS,
        (
            (
                "    return len(list(itertools.groupby(xs)))\n",
                "    groups = 0\n    for k in range(len(xs)):\n        if k == 0 or xs[k] != xs[k - 1]:\n"
                "            groups += 1\n    return groups\n",
            ),
        ),
    ),
    Row(
        "statistics",
        "PCB306",
        "call `statistics.mode` before the batched function, for each example",
        "import statistics\n@pcbatch.batch\ndef f(xs):\n    return statistics.mode(xs)\n",
        LISTS,
        (("def f(xs)", "def f(mode)"), ("statistics.mode(xs)", "mode")),
        to="np.array([statistics.mode(xs) for xs, in examples])",
    ),
    Row(
        "set in a set",
        "PCB303",
        "take the elements in their order in place of the set: `tuple(sorted(s))` is a key",
        "@pcbatch.batch\ndef f(n):\n    return len({frozenset({n, 1}), frozenset({3, 1})})\n",
        "[(3,), (5,)]",
        (("frozenset({n, 1})", "tuple(sorted({n, 1}))"), ("frozenset({3, 1})", "tuple(sorted({3, 1}))")),
    ),
    Row(
        "order of a set",
        "PCB314",
        "go over `sorted(s)`, whose order is known",
        "@pcbatch.batch\ndef f(xs):\n    s = set(xs)\n    s.discard(3)\n    s.add(4)\n    total = 0\n    for x in s:\n        total = 3 * total + x\n"
        "    return total\n",
        LISTS,
        (("for x in s:", "for x in sorted(s):"),),
    ),
    Row(
        "default of a defaultdict",
        "PCB304",
        "store the first value yourself: `if k not in d: d[k] = ...`",
        "from collections import defaultdict\n@pcbatch.batch\ndef f(xs):\n    d = defaultdict(lambda: [0, xs[0]])\n"
        "    for x in xs:\n"
        "        d[x][0] += 1\n    return len(d)\n",
        LISTS,
        (
            ("defaultdict(lambda: [0, xs[0]])", "{}"),
            ("    for x in xs:\n", "    for x in xs:\n        if x not in d: d[x] = [0, xs[0]]\n"),
        ),
    ),
    Row(
        "keys that see a change",
        "PCB330",
        "where `k` is not to show the change, make a list: `k = list(d.keys())`",
        "@pcbatch.batch\ndef f(n):\n    d = {}\n    for i in range(n):\n        d[i] = 0\n    k = d.keys()\n"
        "    d[9] = 1\n    return len(k) + len(d)\n",
        "[(3,), (5,)]",
        (("    d[9] = 1\n    return len(k)", "    d[9] = 1\n    return len(d.keys())"),),
    ),
    Row(
        "elements by index alone",
        "PCB314",
        "give `Old` a method `__iter__` that yields the elements: `for x in self.xs: yield x`",
        "class Old:\n    def __init__(self, xs):\n        self.xs = xs\n    def __getitem__(self, k):\n        return self.xs[k]\n"
        "@pcbatch.batch\ndef f(xs):\n    return sum(Old(xs))\n",
        LISTS,
        (("@pcbatch", "    def __iter__(self):\n        for x in self.xs: yield x\n@pcbatch"),),
    ),
    Row(
        "slice of an array",
        "PCB330",
        "make a copy: `old = board[:].copy()`; of an array, `board[:]` is a view",
        "@pcbatch.batch\ndef f(board, n):\n    old = board[:]\n    board[0] = n\n    return old[0] + board[0]\n",
        "[([1, 2, 4], 3), ([3, 1, 2], 5)]",
        (("old = board[:]", "old = board[:].copy()"),),
        args="np.array([xs for xs, _ in examples]), np.array([n for _, n in examples])",
    ),
    Row(
        "median of a list",
        "PCB303",
        "write `statistics.median(xs)`, which takes lists",
        "import statistics\n@pcbatch.batch\ndef f(xs):\n    return float(np.median(xs))\n",
        LISTS,
        (("np.median(xs)", "statistics.median(xs)"),),
    ),
    Row(
        "standard deviation of a list",
        "PCB303",
        "write `statistics.pstdev(xs)`, which takes lists",
        "import statistics\n@pcbatch.batch\ndef f(xs):\n    return float(np.std(xs))\n",
        LISTS,
        (("np.std(xs)", "statistics.pstdev(xs)"),),
    ),
    Row(
        "np.unique",
        "PCB306",
        "or make a list: `sorted(set(xs))`",
        "@pcbatch.batch\ndef f(xs):\n    return len(np.unique(xs))\n",
        EVEN,
        (("np.unique(xs)", "sorted(set(xs))"),),
    ),
    Row(
        "np.flatnonzero",
        "PCB306",
        "or make a list: `[k for k in range(len(xs > 2)) if (xs > 2)[k]]`",
        "@pcbatch.batch\ndef f(xs):\n    return len(np.flatnonzero(xs > 2))\n",
        EVEN,
        (("np.flatnonzero(xs > 2)", "[k for k in range(len(xs > 2)) if (xs > 2)[k]]"),),
    ),
    Row(
        "mask",
        "PCB306",
        "keep the shape: `jnp.where(xs > 2, xs, 0)` in place of `xs[xs > 2]`",
        "@pcbatch.batch\ndef f(xs):\n    return xs[xs > 2].sum()\n",
        EVEN,
        (("xs[xs > 2]", "jnp.where(xs > 2, xs, 0)"),),
    ),
    Row(
        "slice by a value of the lane",
        "PCB306",
        "or keep the shape and mask what is outside, with `k = jnp.arange(len(xs))`: `jnp.where((k < n), xs, 0)`",
        "@pcbatch.batch\ndef f(xs, n):\n    return xs[:n].sum()\n",
        "[(np.array([1, 2, 4]), 2), (np.array([3, 1, 2]), 1)]",
        (("    return xs[:n]", "    k = jnp.arange(len(xs))\n    return jnp.where((k < n), xs, 0)"),),
    ),
    Row(
        "table of a lane's size",
        "PCB306",
        "or make a list: `[0.0] * (n + 1)`",
        "@pcbatch.batch\ndef f(n):\n    table = np.zeros(n + 1)\n    for k in range(n):\n        table[k + 1] = table[k] + k\n"
        "    return table[n]\n",
        "[(3,), (5,)]",
        (("np.zeros(n + 1)", "[0.0] * (n + 1)"),),
    ),
    Row(
        "tolist",
        "PCB306",
        "write `xs`: the array itself holds the numbers",
        "@pcbatch.batch\ndef f(xs):\n    total = 0\n    for x in xs.tolist():\n        total += x\n    return total\n",
        EVEN,
        (("xs.tolist()", "xs"),),
    ),
    Row(
        "np.floor",
        "PCB306",
        "write `jnp.floor(x)`",
        "@pcbatch.batch\ndef f(x):\n    return int(np.floor(x))\n",
        "[(0.5,), (-2.5,)]",
        (("np.floor(x)", "jnp.floor(x)"),),
    ),
    Row(
        "array as a condition",
        "PCB308",
        "`jnp.any(xs > 0)` for one of them",
        "@pcbatch.batch\ndef f(xs):\n    if (xs > 2).any():\n        return 1\n    if xs > 0:\n        return 2\n    return 0\n",
        "[(np.array([3]),), (np.array([1]),)]",
        (("if xs > 0", "if jnp.any(xs > 0)"),),
    ),
    Row(
        "functions of a comprehension that capture its variable",
        "PCB207",
        "give the function the value that it has now, by a default: `lambda x, i=i: ...`",
        "@pcbatch.batch\ndef f(n):\n    fns = [lambda x: x + k for k in range(n)]\n    return fns[-1](1)\n",
        "[(3,), (5,)]",
        (("lambda x: x + k", "lambda x, k=k: x + k"),),
    ),
    Row(
        "a list and a tuple",
        "PCB304",
        "make all of them lists: `[]` in place of `()`",
        "@pcbatch.batch\ndef f(n):\n    d = {}\n    for k in range(n):\n        d[k] = [k] * k\n    return len(d.get(2, ()))\n",
        "[(1,), (4,), (3,)]",
        (("d.get(2, ())", "d.get(2, [])"),),
    ),
    Row(
        "dicts of different keys",
        "PCB304",
        "or keep pairs in place of each dict",
        "@pcbatch.batch\ndef f(n):\n    g = {'s': {'a': 2, 'b': n}, 'a': {'b': 3}, 'b': {'a': 1}}\n    u = 's' if n > 1 else 'a'\n"
        "    t = 0\n    for v, w in g[u].items():\n        t += w\n    return t\n",
        "[(1,), (4,), (3,)]",
        (
            ("{'a': 2, 'b': n}", "[('a', 2), ('b', n)]"),
            ("{'b': 3}", "[('b', 3)]"),
            ("{'a': 1}", "[('a', 1)]"),
            ("g[u].items()", "g[u]"),
        ),
    ),
    Row(
        "a trie of dicts in dicts",
        "PCB304",
        "for dicts in dicts keep one dict whose keys are whole paths",
        "@pcbatch.batch\ndef f(words):\n    trie = {}\n    for word in words:\n        node = trie\n        for c in word:\n"
        "            if c not in node:\n                node[c] = {}\n            node = node[c]\n        node['#'] = '#'\n    return len(trie)\n",
        "[(['ab', 'ac'],), (['b', 'c'],), (['a'],)]",
        (
            ("trie = {}\n", "trie, ends = {}, {}\n"),
            ("node = trie", "path = ''"),
            (
                "if c not in node:\n                node[c] = {}\n            node = node[c]",
                "if path + c not in trie:\n                trie[path + c] = 1\n            path = path + c",
            ),
            ("node['#'] = '#'", "ends[path] = '#'"),
            ("len(trie)", "sum(len(path) == 1 for path in trie)"),
        ),
    ),
    Row(
        "objects in a set by a computed equality",
        "PCB304",
        "keep a dict whose keys are tuples of the numbers and texts that make two objects equal",
        "class P:\n    def __init__(self, a, b):\n        self.a = a\n        self.b = b\n    def __eq__(self, other):\n"
        "        return abs(self.a - other.a) < 1 and self.b == other.b\n    def __hash__(self):\n        return hash(self.b)\n"
        "@pcbatch.batch\ndef f(n):\n    found = set()\n    for k in range(n):\n        x = P(k % 3, k % 2)\n        found.add(x)\n    return len(found)\n",
        "[(1,), (9,), (4,)]",
        (("found = set()", "found = {}"), ("found.add(x)", "found[x.a, x.b] = x")),
    ),
    Row(
        "an order of a heap that makes a dict",
        "PCB306",
        "compute what `__lt__` compares where the object is made",
        "import heapq\nclass S:\n    def __init__(self, a, b):\n        self.a = a\n        self.b = b\n    def __lt__(self, other):\n"
        "        return self.cost() < other.cost()\n    def cost(self):\n        places = {v: k + 1 for k, v in enumerate([self.a, self.b])}\n        return places[self.b] * self.a\n"
        "@pcbatch.batch\ndef f(n):\n    heap = []\n    for k in range(n):\n        heapq.heappush(heap, S((k * 7) % 5, k))\n"
        "    return heapq.heappop(heap).a\n",
        "[(1,), (9,), (4,)]",
        (
            ("        self.b = b\n", "        self.b = b\n        self.rank = S.cost(self)\n"),
            ("self.cost() < other.cost()", "self.rank < other.rank"),
            ("    def cost", "    @pcbatch.inline\n    def cost"),
        ),
    ),
]
