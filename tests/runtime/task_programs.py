"""Task programs written by hand, each with its plain function in Python."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ir.forks import Fork
from pcbatch.ir.ops import Expr, Prim
from pcbatch.ir.tasks import Finish, Give, OpenFrame, Spawn, SpawnInto, Start, Sync, TaskBlock, TaskJump, TaskProgram
from pcbatch.ir.types import ArrayType
from pcbatch.lowering.typing.jax_types import from_aval, to_aval
from pcbatch.lowering.typing.trace import JaxprFn

ROOM = 4  # rows of `rows_of_frame`
I32, F32 = ArrayType("int32"), ArrayType("float32")


def jump(target: str, *names: str, **args: str) -> TaskJump:
    """A jump that binds parameters to the variables of their names, and others as given."""
    return TaskJump(target, (*((v, v) for v in names), *args.items()))


def sync(target: str, *names: str) -> Sync:
    """A `sync` that saves these variables."""
    return Sync(target, tuple((v, v) for v in names))


class Types(dict):
    """The types of a program's variables, and primitives made from Python functions."""

    def prim(self, dsts: str, ins: str, fn) -> Prim:
        """An operation; results get their types here."""
        names, reads = tuple(dsts.split()), tuple(ins.split())
        closed = jax.make_jaxpr(fn)(*(to_aval(self[v]) for v in reads))
        for v, aval in zip(names, closed.out_avals, strict=True):
            self[v] = from_aval(aval)
        return Prim(names, Expr("f", reads, JaxprFn(closed, [None] * len(names))))


def fib(n):
    return 1 if n <= 1 else fib(n - 1) + fib(n - 2)


def fib_frames() -> TaskProgram:
    t = Types(n=I32, a=I32, b=I32, r=I32)
    bb0 = TaskBlock("bb0", ("n",), (t.prim("c", "n", lambda n: n <= 1),), Fork("c", jump("bb1"), jump("bb2", "n")))
    bb1 = TaskBlock("bb1", (), (t.prim("one", "", lambda: jnp.int32(1)),), Finish(("one",)))
    ops = (
        t.prim("x", "n", lambda n: n - 1),
        t.prim("y", "n", lambda n: n - 2),
        t.prim("cx", "x", lambda n: n <= 1),
        t.prim("cy", "y", lambda n: n <= 1),
        t.prim("u", "", lambda: jnp.int32(1)),
        OpenFrame(),
        Spawn(("a",), Fork("cx", Give(("u",)), Start("bb2", (("n", "x"),)))),
        Spawn(("b",), Fork("cy", Give(("u",)), Start("bb2", (("n", "y"),)))),
    )
    bb2 = TaskBlock("bb2", ("n",), ops, sync("bb3"))
    bb3 = TaskBlock("bb3", ("a", "b"), (t.prim("r", "a b", lambda a, b: a + b),), Finish(("r",)), joins=True)
    return TaskProgram("bb0", ("n",), ("r",), t, (), (), (bb0, bb1, bb2, bb3))


def fib_plain_frames() -> TaskProgram:
    """Without a peeled base case."""
    t = Types(n=I32, a=I32, b=I32, r=I32)
    bb0 = TaskBlock("bb0", ("n",), (t.prim("c", "n", lambda n: n <= 1),), Fork("c", jump("bb1"), jump("bb2", "n")))
    bb1 = TaskBlock("bb1", (), (t.prim("one", "", lambda: jnp.int32(1)),), Finish(("one",)))
    ops = (
        t.prim("x", "n", lambda n: n - 1),
        t.prim("y", "n", lambda n: n - 2),
        OpenFrame(),
        Spawn(("a",), Start("bb0", (("n", "x"),))),
        Spawn(("b",), Start("bb0", (("n", "y"),))),
    )
    bb2 = TaskBlock("bb2", ("n",), ops, sync("bb3"))
    bb3 = TaskBlock("bb3", ("a", "b"), (t.prim("r", "a b", lambda a, b: a + b),), Finish(("r",)), joins=True)
    return TaskProgram("bb0", ("n",), ("r",), t, (), (), (bb0, bb1, bb2, bb3))


def ignored_results() -> TaskProgram:
    """`f(n - 1); f(n - 2); return 7`: a block after a `sync` that takes nothing."""
    t = Types(n=I32, a=I32, b=I32)
    bb0 = TaskBlock("bb0", ("n",), (t.prim("c", "n", lambda n: n <= 1),), Fork("c", jump("bb1"), jump("bb2", "n")))
    bb1 = TaskBlock("bb1", (), (t.prim("r", "", lambda: jnp.int32(1)),), Finish(("r",)))
    ops = (
        t.prim("x", "n", lambda n: n - 1),
        t.prim("y", "n", lambda n: n - 2),
        OpenFrame(),
        Spawn(("a",), Start("bb0", (("n", "x"),))),
        Spawn(("b",), Start("bb0", (("n", "y"),))),
    )
    bb2 = TaskBlock("bb2", ("n",), ops, sync("bb3"))
    bb3 = TaskBlock("bb3", (), (t.prim("s", "", lambda: jnp.int32(7)),), Finish(("s",)), joins=True)
    return TaskProgram("bb0", ("n",), ("r",), t, (), (), (bb0, bb1, bb2, bb3))


def one_name_on_two_paths() -> TaskProgram:
    """One frame whose paths give `a`, of `g(n - 1)` or of `h(n - 1)`, beside one other result or none."""
    t = Types(n=I32, m=I32, k=I32, a=I32, b=F32)
    ops = (t.prim("x", "n", lambda n: n - 1), t.prim("c", "n", lambda n: n % 2 == 0), OpenFrame())
    f = TaskBlock("f", ("n",), ops, Fork("c", jump("even", "x"), jump("odd", "x")))
    even = TaskBlock("even", ("x",), (Spawn(("b", "a"), Start("g", (("m", "x"),))),), sync("bb1"), open=True)
    odd = TaskBlock("odd", ("x",), (Spawn(("a",), Start("h", (("k", "x"),))),), sync("bb2"), open=True)
    bb1 = TaskBlock("bb1", ("a",), (t.prim("r", "a", lambda a: a + 1),), Finish(("r",)), joins=True)
    bb2 = TaskBlock("bb2", ("a",), (t.prim("s", "a", lambda a: a * 2),), Finish(("s",)), joins=True)
    g = TaskBlock("g", ("m",), (t.prim("u v", "m", lambda m: (jnp.float32(0.5), m + 10)),), Finish(("u", "v")))
    h = TaskBlock("h", ("k",), (t.prim("w", "k", lambda k: k + 20),), Finish(("w",)))
    return TaskProgram("f", ("n",), ("r",), t, (), (), (f, even, odd, bb1, bb2, g, h))


def fib_sums(peeled: bool = True) -> TaskProgram:
    t = Types(n=I32, r=I32)
    c = t.prim("c", "n", lambda n: n <= 1)
    one = t.prim("one", "", lambda: jnp.int32(1))
    bb0 = TaskBlock("bb0", ("n",), (c, one), Fork("c", Finish(("one",)), jump("bb1", "n")), function="fib")
    ops = (
        t.prim("x", "n", lambda n: n - 1),
        t.prim("y", "n", lambda n: n - 2),
        t.prim("cx", "x", lambda n: n <= 1),
        t.prim("cy", "y", lambda n: n <= 1),
        one,
        t.prim("zero", "", lambda: jnp.int32(0)),
    )
    if peeled:
        spawns = [SpawnInto(Fork(c, Give(("one",)), Start("bb1", (("n", v),)))) for c, v in (("cx", "x"), ("cy", "y"))]
    else:
        spawns = [SpawnInto(Start("bb0", (("n", v),))) for v in ("x", "y")]
    bb1 = TaskBlock("bb1", ("n",), (*ops, *spawns), Finish(("zero",)), function="fib")
    return TaskProgram("bb0", ("n",), ("r",), t, (), (), (bb0, bb1), sums=frozenset({"fib"}))


NODES, HIDDEN = 31, 5


def tree(seed: int, leaves: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random binary tree: left, right (-1: none) and a number at each node."""
    rng = np.random.default_rng(seed)
    left, right = np.full(NODES, -1, np.int32), np.full(NODES, -1, np.int32)
    count = [1]

    def grow(node: int, leaves: int) -> None:
        if leaves > 1:
            part = int(rng.integers(1, leaves))
            left[node], right[node] = count[0], count[0] + 1
            count[0] += 2
            grow(int(left[node]), part)
            grow(int(right[node]), leaves - part)

    grow(0, leaves)
    return left, right, rng.integers(0, 7, NODES).astype(np.int32)


def encode(w, e, left, right, word, node=0):
    """h, c of a node, as `treelstm` computes them."""
    if left[node] < 0:
        h = np.tanh(e[word[node]])
        return h, h * h
    hl, cl = encode(w, e, left, right, word, left[node])
    hr, cr = encode(w, e, left, right, word, right[node])
    c = np.tanh((hl - 2 * hr) @ w) + cl * cr + np.float32(word[node])
    return np.tanh(c), c


def treelstm() -> TaskProgram:
    vec, ints = ArrayType("float32", (HIDDEN,)), ArrayType("int32", (NODES,))
    t = Types(w=ArrayType("float32", (HIDDEN, HIDDEN)), e=ArrayType("float32", (7, HIDDEN)), node=I32)
    t |= {"left": ints, "right": ints, "word": ints, "r.h": vec, "r.c": vec}
    t |= {"left.h": vec, "left.c": vec, "right.h": vec, "right.c": vec}
    ops = (
        t.prim("t1", "left node", lambda xs, i: xs[i]),
        t.prim("t2", "right node", lambda xs, i: xs[i]),
        t.prim("t3", "left t1", lambda xs, i: xs[i] < 0),
        t.prim("t4", "left t2", lambda xs, i: xs[i] < 0),
        OpenFrame(),
        Spawn(("left.h", "left.c"), _child("t3", "t1")),
        Spawn(("right.h", "right.c"), _child("t4", "t2")),
    )
    root = TaskBlock(
        "bb0",
        (),
        (t.prim("z", "", lambda: jnp.int32(0)), t.prim("t0", "left z", lambda xs, i: xs[i] < 0)),
        Fork("t0", jump("bb2", node="z"), jump("bb1", node="z")),
    )
    walk = TaskBlock("bb1", ("node",), ops, sync("bb3", "node"))
    leaf = TaskBlock(
        "bb2",
        ("node",),
        (t.prim("l.h l.c", "e word node", lambda e, word, i: ((h := jnp.tanh(e[word[i]])), h * h)),),
        Finish(("l.h", "l.c")),
    )

    def compose(w, hl, cl, hr, cr, word, node):
        c = jnp.tanh((hl - 2 * hr) @ w) + cl * cr + jnp.float32(word[node])
        return jnp.tanh(c), c

    join = TaskBlock(
        "bb3",
        ("left.h", "left.c", "right.h", "right.c", "node"),
        (t.prim("o.h o.c", "w left.h left.c right.h right.c word node", compose),),
        Finish(("o.h", "o.c")),
        joins=True,
    )
    return TaskProgram(
        "bb0",
        ("w", "e", "left", "right", "word"),
        ("r.h", "r.c"),
        t,
        ("left", "right", "word"),
        ("w", "e"),
        (root, walk, leaf, join),
    )


def _child(cond: str, node: str) -> Fork:
    return Fork(cond, Start("bb2", (("node", node),)), Start("bb1", (("node", node),)))


def paths(n, width):
    """The number of ways, by a loop of calls whose results are added up."""
    if n == 0:
        return 1
    total, k = 0, 0
    while k < width:
        total += paths(n - 1, k + 1)
        k += 1
    return total * 2 - n


def loop_into_frame() -> TaskProgram:
    """`paths`: the loop adds to a place of its frame, which stays open across its rounds."""
    t = Types(n=I32, width=I32, k=I32, total=I32, r=I32)
    zero = t.prim("zero", "", lambda: jnp.int32(0))
    start = t.prim("k", "", lambda: jnp.int32(0))
    one = t.prim("one", "", lambda: jnp.int32(1))
    bb0 = TaskBlock(
        "bb0",
        ("n", "width"),
        (t.prim("c", "n", lambda n: n == 0),),
        Fork("c", jump("bb1"), jump("bb2", "n", "width")),
        function="main",
    )
    bb1 = TaskBlock("bb1", (), (one,), Finish(("one",)), function="main")
    bb2 = TaskBlock(
        "bb2",
        ("n", "width"),
        (zero, start, OpenFrame(), Spawn(("total",), Give(("zero",)))),
        jump("bb3", "n", "width", "k"),
        function="main",
    )
    bb3 = TaskBlock(
        "bb3",
        ("n", "width", "k"),
        (t.prim("go", "k width", lambda k, w: k < w),),
        Fork("go", jump("bb4", "n", "width", "k"), sync("bb5", "n")),
        open=True,
        function="main",
    )
    bb4 = TaskBlock(
        "bb4",
        ("n", "width", "k"),
        (
            t.prim("m", "n", lambda n: n - 1),
            t.prim("k", "k", lambda k: k + 1),
            Spawn(("total",), Start("bb0", (("n", "m"), ("width", "k"))), adds=True),
        ),
        jump("bb3", "n", "width", "k"),
        open=True,
        function="main",
    )
    bb5 = TaskBlock(
        "bb5",
        ("total", "n"),
        (t.prim("r", "total n", lambda total, n: total * 2 - n),),
        Finish(("r",)),
        joins=True,
        function="main",
    )
    return TaskProgram(
        "bb0", ("n", "width"), ("r",), t, (), (), (bb0, bb1, bb2, bb3, bb4, bb5), sums=frozenset({"main"})
    )


def ranked(n, width):
    """What calls give, each with a weight by its number; there is room for some."""
    if n == 0:
        return 1 + width
    parts = [0] * ROOM
    for k in range(min(width, ROOM)):
        parts[k] = ranked(n - 1, k)
    return sum((k + 1) * part for k, part in enumerate(parts)) % 1009


def rows_of_frame() -> TaskProgram:
    """`ranked`: the loop spawns one row of an array after the other, and more than there are."""
    t = Types(n=I32, width=I32, k=I32, r=I32, parts=ArrayType("int32", (ROOM,)))
    leaf = (t.prim("c", "n", lambda n: n == 0), t.prim("one", "width", lambda width: 1 + width))
    bb0 = TaskBlock("bb0", ("n", "width"), leaf, Fork("c", Finish(("one",)), jump("bb1", "n", "width")))
    none = t.prim("none", "", lambda: jnp.zeros(ROOM, jnp.int32))
    start = t.prim("k", "", lambda: jnp.int32(0))
    opened = (none, start, OpenFrame(), Spawn(("parts",), Give(("none",))))
    bb1 = TaskBlock("bb1", ("n", "width"), opened, jump("bb2", "n", "width", "k"))
    go = t.prim("go", "k width", lambda k, w: k < w)
    bb2 = TaskBlock(
        "bb2", ("n", "width", "k"), (go,), Fork("go", jump("bb3", "n", "width", "k"), sync("bb4")), open=True
    )
    each = (
        t.prim("m", "n", lambda n: n - 1),
        t.prim("l", "k", lambda k: k + 1),
        Spawn(("parts",), Start("bb0", (("n", "m"), ("width", "k"))), row="k"),
    )
    bb3 = TaskBlock("bb3", ("n", "width", "k"), each, jump("bb2", "n", "width", k="l"), open=True)
    ranks = t.prim("r", "parts", lambda parts: jnp.sum(parts * jnp.arange(1, ROOM + 1, dtype=jnp.int32)) % 1009)
    bb4 = TaskBlock("bb4", ("parts",), (ranks,), Finish(("r",)), joins=True)
    return TaskProgram("bb0", ("n", "width"), ("r",), t, (), (), (bb0, bb1, bb2, bb3, bb4))


def queens(free, columns, left, right, board):
    if columns == board:
        return 1
    solutions = 0
    while free != 0:
        queen = free & -free
        free = free ^ queen
        c, l, r = columns | queen, (left | queen) << 1, (right | queen) >> 1
        solutions += queens(board & ~(c | l | r), c, l, r, board)
    return solutions


def queens_sums() -> TaskProgram:
    """A loop that starts tasks which add to the destination of its own."""
    names = ("free", "columns", "left", "right")
    t = Types(dict.fromkeys((*names, "board", "r"), I32))
    q = {"function": "queens"}

    def place(free, columns, left, right, board):
        queen = free & -free
        c, l, r = columns | queen, (left | queen) << 1, (right | queen) >> 1
        return free ^ queen, board & ~(c | l | r), c, l, r

    more = t.prim("more", "free", lambda free: free != 0)
    full = t.prim("full", "columns board", lambda c, board: c == board)
    one, zero = t.prim("one", "", lambda: jnp.int32(1)), t.prim("zero", "", lambda: jnp.int32(0))
    bb0 = TaskBlock("bb0", names, (full, one), Fork("full", Finish(("one",)), jump("bb1", *names)), **q)
    bb1 = TaskBlock("bb1", names, (more, zero), Fork("more", jump("bb2", *names), Finish(("zero",))), **q)
    args = tuple(zip(names, ("inner", "c", "l", "r"), strict=True))
    bb2 = TaskBlock(
        "bb2",
        names,
        (t.prim("free inner c l r", " ".join((*names, "board")), place), SpawnInto(Start("bb0", args))),
        jump("bb1", "free", "columns", "left", "right"),
        **q,
    )
    return TaskProgram("bb0", (*names, "board"), ("r",), t, ("board",), (), (bb0, bb1, bb2), sums=frozenset({"queens"}))


def even(n, x):
    """Mutual recursion: floats and whole numbers, each function with results of its own."""
    if n <= 0:
        return x
    a, m = odd(n - 1, x * 0.5)
    b, k = odd(n - 3, x + 1.0)
    return a - b * np.float32(0.25) + np.float32(m - k)


def odd(n, x):
    if n <= 1:
        return x, n
    a = even(n - 2, x)
    b = even(n - 1, a)
    return a - b, n * 2


def mutual() -> TaskProgram:
    t = Types(n=I32, x=F32, a=F32, b=F32, m=I32, k=I32, r=F32)
    even_, odd_ = {"function": "even"}, {"function": "odd"}
    e0 = TaskBlock(
        "e0",
        ("n", "x"),
        (t.prim("c", "n", lambda n: n <= 0),),
        Fork("c", jump("e1", "x"), jump("e2", "n", "x")),
        **even_,
    )
    e1 = TaskBlock("e1", ("x",), (), Finish(("x",)), **even_)
    e2 = TaskBlock(
        "e2",
        ("n", "x"),
        (
            t.prim("n1", "n", lambda n: n - 1),
            t.prim("n3", "n", lambda n: n - 3),
            t.prim("x1", "x", lambda x: x * jnp.float32(0.5)),
            t.prim("x3", "x", lambda x: x + jnp.float32(1)),
            OpenFrame(),
            Spawn(("a", "m"), Start("o0", (("n", "n1"), ("x", "x1")))),
            Spawn(("b", "k"), Start("o0", (("n", "n3"), ("x", "x3")))),
        ),
        sync("e3"),
        **even_,
    )
    add = t.prim(
        "r", "a m b k", lambda a, m, b, k: a - b * jnp.float32(0.25) + jax.lax.convert_element_type(m - k, jnp.float32)
    )
    e3 = TaskBlock("e3", ("a", "m", "b", "k"), (add,), Finish(("r",)), joins=True, **even_)
    o0 = TaskBlock(
        "o0",
        ("n", "x"),
        (t.prim("d", "n", lambda n: n <= 1),),
        Fork("d", jump("o1", "x", "n"), jump("o2", "n", "x")),
        **odd_,
    )
    o1 = TaskBlock("o1", ("x", "n"), (), Finish(("x", "n")), **odd_)
    t["a2"] = t["b2"] = F32
    o2 = TaskBlock(
        "o2",
        ("n", "x"),
        (t.prim("n2", "n", lambda n: n - 2), OpenFrame(), Spawn(("a2",), Start("e0", (("n", "n2"), ("x", "x"))))),
        sync("o3", "n"),
        **odd_,
    )
    o3 = TaskBlock(
        "o3",
        ("a2", "n"),
        (t.prim("n1", "n", lambda n: n - 1), OpenFrame(), Spawn(("b2",), Start("e0", (("n", "n1"), ("x", "a2"))))),
        sync("o4", "a2", "n"),
        joins=True,
        **odd_,
    )
    end = t.prim("s", "a2 b2", lambda a, b: a - b)
    o4 = TaskBlock(
        "o4", ("a2", "b2", "n"), (end, t.prim("n4", "n", lambda n: n * 2)), Finish(("s", "n4")), joins=True, **odd_
    )
    return TaskProgram("e0", ("n", "x"), ("r",), t, (), (), (e0, e1, e2, e3, o0, o1, o2, o3, o4))
