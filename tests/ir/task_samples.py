"""Task programs in text form that several tests use."""

from __future__ import annotations

from pcbatch.ir.tasks import TaskProgram
from tests.oracles.text.parser import parse_program

FIB = """\
pcir 1 tasks
program entry=bb0 in=(n) out=(r) {
  n, r, t1, t2, left, right: i32[]   t0: bool[]
// function @fib
bb0(n):
  t0 = { n <= 1 }
  branch t0, jump bb1(), jump bb2(n=n)
bb1():
  r = { 1 }
  return r
bb2(n):
  t1 = { n - 2 }
  t2 = { n - 1 }
  frame
  spawn left = bb0(n=t1)
  spawn right = bb0(n=t2)
  sync bb3()
bb3(left, right) after sync:
  r = { left + right }
  return r
}
"""

# The first test of the callee is made by the caller, and the results are terms of one sum.
FIB_SUMS = """\
pcir 1 tasks
program entry=bb0 in=(n) out=(r) {
  sums (fib)
  n, r, one, t1, t2: i32[]   t0, u1, u2: bool[]
// function @fib
bb0(n):
  t0 = { n <= 1 }
  one = { 1 }
  branch t0, return one, jump bb2(n=n)
bb2(n):
  t1 = { n - 2 }
  t2 = { n - 1 }
  u1 = { t1 <= 1 }
  u2 = { t2 <= 1 }
  one = { 1 }
  spawn return += branch u1, give (one), bb2(n=t1)
  branch u2, return one, jump bb2(n=t2)
}
"""

# Like a TreeLSTM: two results for each node, the tree a constant of the example, a weight shared.
TREE = """\
pcir 1 tasks
program entry=encode in=(node, left, right, value, w) out=(h, c) {
  constants (left, right, value)
  shared (w, v)
  node, t1, t2: i32[]   left, right: i32[7]   value: f32[7]   w, v, h, c, l.h, l.c, r.h, r.c: f32[]
  t3, t4, t5: bool[]
prologue:
  v = { w + 1 }
// function @encode
encode(node):
  t5 = { left[node] < 0 }
  branch t5, jump leaf(node=node), jump inner(node=node)
inner(node):
  t1 = { left[node] }
  t2 = { right[node] }
  t3 = { left[t1] < 0 }
  t4 = { left[t2] < 0 }
  frame
  spawn l.h, l.c = branch t3, leaf(node=t1), inner(node=t1)
  spawn r.h, r.c = branch t4, leaf(node=t2), inner(node=t2)
  sync join(node=node)
join(l.h, l.c, r.h, r.c, node) after sync:
  h = { l.h * w + r.h * v + value[node] }
  c = { l.c - 2 * r.c + h }
  return h, c
leaf(node):
  h = { value[node] * w }
  c = { value[node] + v }
  return h, c
}
"""

# for i in range(n): total += fib(i), in one frame; fib is that of FIB_SUMS.
LOOP = """\
pcir 1 tasks
program entry=main in=(n) out=(total) {
  sums (fib)
  n, m, i, j, total, zero, t1, t2, one: i32[]   t: bool[]
// function @main
main(n):
  i = { 0 }
  zero = { 0 }
  frame
  spawn total = give (zero)
  jump head(n=n, i=i)
head(n, i) in frame:
  t = { i < n }
  branch t, jump body(n=n, i=i), sync done()
body(n, i) in frame:
  j = { i + 1 }
  spawn total += fib(m=i)
  jump head(n=n, i=j)
done(total) after sync:
  return total
// function @fib
fib(m):
  t = { m <= 1 }
  one = { 1 }
  branch t, return one, jump more(m=m)
more(m):
  t1 = { m - 2 }
  t2 = { m - 1 }
  spawn return += fib(m=t1)
  jump fib(m=t2)
}
"""

# A frame that is open across a branch and a loop: x = f(n); y = f(n + 1) if n is even, else n; a loop; x + y + k.
# The loop's result is saved, and f(n) counts down from n and adds.
ACROSS = """\
pcir 1 tasks
program entry=main in=(n) out=(r) {
  n, m, k, s, t, x, y, r, p: i32[]   even, go, low: bool[]
// function @main
main(n):
  even = { n % 2 == 0 }
  frame
  spawn x = f(m=n)
  branch even, jump yes(n=n), jump no(n=n)
yes(n) in frame:
  p = { n + 1 }
  k = { 0 }
  spawn y = f(m=p)
  jump loop(n=n, k=k)
no(n) in frame:
  k = { 1 }
  spawn y = give (n)
  jump loop(n=n, k=k)
loop(n, k) in frame:
  go = { k * k < n }
  s = { k + 1 }
  branch go, jump loop(n=n, k=s), sync end(k=k)
end(x, y, k) after sync:
  r = { 100 * x + 10 * y + k }
  return r
// function @f
f(m):
  low = { m <= 0 }
  t = { m - 1 }
  branch low, return m, jump f.call(m=m, t=t)
f.call(m, t):
  frame
  spawn x = f(m=t)
  sync f.end(m=m)
f.end(m, x) after sync:
  r = { m + x }
  return r
}
"""

# A node fails if it is 3 or 12; node n has the children 2n and 2n + 1 up to a limit. The order of failures shows.
FAILS = """\
pcir 1 tasks
program entry=walk in=(limit, bad, node) out=(r) {
  constants (limit, bad)
  limit, node, a, b, x, y, r: i32[]   bad: i32[2]   leaf, fails: bool[]
// function @walk
walk(node):
  leaf = { node > limit }
  branch leaf, return node, jump split(node=node)
split(node):
  a = { 2 * node }
  b = { 2 * node + 1 }
  frame
  spawn x = walk(node=a)
  spawn y = walk(node=b)
  sync join(node=node)
join(node, x, y) after sync:
  fails = { node in bad }
  r = { x + y }
  branch fails, jump fail(node=node), return r
fail(node):
  fail error ValueError("node ", node)
}
"""

# all = [0] * 8; for i in range(n): all[i] = fib(i)
ROWS = (
    LOOP.replace("one: i32[]", "one: i32[]   none, all: i32[8]")
    .replace("spawn total = give (zero)", "spawn all = give (none)")
    .replace("  zero = { 0 }\n", "  none = { np.zeros(8, np.int32) }\n")
    .replace("spawn total += fib(m=i)", "spawn all at i = fib(m=i)")
    .replace("done(total) after sync:\n", "done(all) after sync:\n  total = { all @ 50 ** np.arange(8) }\n")
    .replace("total, zero, ", "total, ")
)

EVERY = {
    "fib": FIB,
    "fib_sums": FIB_SUMS,
    "tree": TREE,
    "loop": LOOP,
    "rows": ROWS,
    "across": ACROSS,
    "fails": FAILS,
}


def tasks(text: str) -> TaskProgram:
    """Parse a task program."""
    program = parse_program(text)
    assert isinstance(program, TaskProgram)
    return program
