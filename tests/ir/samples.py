"""Programs in text form that several tests use."""

from __future__ import annotations

from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.stack import StackProgram
from tests.oracles.text.parser import parse_program

FIB_CFG = """\
pcir 1 cfg
func @fib(n: i32[]) -> (r: i32[]) {
  t0: bool[]   t1, left, t2, right: i32[]
bb0:
  t0 = { n <= 1 }
  branch t0, bb1, bb2
bb1:
  r = { 1 }
  return
bb2:
  t1 = { n - 2 }
  left = call @fib(t1)
  t2 = { n - 1 }
  right = call @fib(t2)
  r = { left + right }
  return
}
"""

FIB_STACK = """\
pcir 1 stack
program entry=bb0 in=(n) out=(r) {
  n: i32[] reg+stack   r: i32[] reg   left: i32[] stack   n0: i32[] temp   t0: bool[] temp
// function @fib
bb0:
  t0 = { n <= 1 }
  branch t0, bb1, bb2
bb1:
  update r = { 1 }
  return
bb2:
  n0 = n
  update n = { n - 2 }
  push n = n0
  pushjump bb0, ret=bb3
bb3:
  pop n
  update n = { n - 1 }
  push left = r
  pushjump bb0, ret=bb4
bb4:
  pop left
  update r = { left + r }
  return
}
"""

GCD_CFG = """\
pcir 1 cfg
func @gcd(a: i32[], b: i32[]) -> (a: i32[]) {
  t: bool[]   c: i32[]
head:
  t = { b != 0 }
  branch t, body, return
body:
  c = a
  a = b
  b = { c % b }
  jump head
}
"""

GCD_STACK = """\
pcir 1 stack
program entry=head in=(a, b) out=(a) {
  a, b: i32[] reg   t: bool[] temp   c: i32[] temp
head:
  t = { b != 0 }
  branch t, body, return
body:
  c = a
  update a = b
  update b = { c % b }
  jump head
}
"""

PARITY_CFG = """\
pcir 1 cfg
entry @odd
func @even(n: i32[]) -> (r: bool[]) {
  z: bool[]   m: i32[]
bb0:
  z = { n == 0 }
  branch z, bb1, bb2
bb1:
  r = z
  return
bb2:
  m = { n - 1 }
  r = call @odd(m)
  return
}
func @odd(n: i32[]) -> (r: bool[]) {
  z: bool[]   m: i32[]
bb0:
  z = { n == 0 }
  branch z, bb1, bb2
bb1:
  r = { False }
  return
bb2:
  m = { n - 1 }
  r = call @even(m)
  return
}
"""

# Calls that are tail calls in the source, in a chain that is not recursive.
CHAIN_CFG = """\
pcir 1 cfg
func @top(x: f32[]) -> (y: f32[]) {
bb0:
  y = call @middle(x)
  y = call @leaf(y)
  return
}
func @middle(x: f32[]) -> (y: f32[]) {
bb0:
  y = call @leaf(x)
  return
}
func @leaf(x: f32[]) -> (y: f32[]) {
bb0:
  y = { x * 2 }
  return
}
func @unused(x: f32[]) -> (y: f32[]) {
bb0:
  y = call @unused(x)
  return
}
"""

# f(x) calls itself in tail position after it has called g; g's body is entered by a call and by a tail jump.
TAIL_STACK = """\
pcir 1 stack
program entry=f in=(x) out=(r) {
  x: i32[] reg+stack   half: i32[] shared   r: i32[] reg   t: bool[] temp
prologue:
  half = { 7 // 2 }
// function @f
f:
  t = { x > half }
  branch t, deep, g
deep:
  push x
  pushjump g, ret=back
back:
  pop x
  update x = { x - r }
  jump f
// function @g
g:
  update r = { x // 2 }
  return
}
"""

# A block that goes on, calls or returns. The call keeps x, and its callee calls nothing.
FORK_STACK = """\
pcir 1 stack
program entry=f in=(x) out=(r) {
  x: i32[] reg+stack   r: i32[] reg   t, u: bool[] temp
// function @f
f:
  t = { x > 9 }
  u = { x > 3 }
  push x
  update r = { x * 2 }
  branch t, g, (branch u, call g ret=back, return)
back:
  pop x
  update r = { r + x }
  return
// function @g
g:
  update x = { x + 1 }
  update r = x
  return
}
"""

# Two ways to fail, and a print; what a failure shows has a register.
FAIL_CFG = """\
pcir 1 cfg
func @check(x: f32[]) -> (y: f32[]) {
  t, u: bool[]   half: f32[]
bb0:
  print("x = ", x:(".3f"), "\\n")
  t = { x > 0 }
  branch t, bb1, low
low:
  fail assertion AssertionError()
bb1:
  u = { x < 100 }
  branch u, good, bad
good:
  y = { x * 2 }
  return
bad:
  half = { x / 2 }
  fail error ValueError("half of // {", x, " is ", half!r:(">9"), "\\u2028")
}
"""

FAIL_STACK = """\
pcir 1 stack
program entry=bb0 in=(x) out=(y) {
  x, y, half: f32[] reg   t, u: bool[] temp
// function @check
bb0:
  print("x = ", x:(".3f"), "\\n")
  t = { x > 0 }
  branch t, bb1, low
low:
  fail assertion AssertionError()
bb1:
  u = { x < 100 }
  branch u, good, bad
good:
  update y = { x * 2 }
  return
bad:
  update half = { x / 2 }
  fail error ValueError("half of // {", x, " is ", half!r:(">9"), "\\u2028")
}
"""

EVERY = {
    "fib_cfg": FIB_CFG,
    "fib_stack": FIB_STACK,
    "gcd_cfg": GCD_CFG,
    "gcd_stack": GCD_STACK,
    "parity_cfg": PARITY_CFG,
    "chain_cfg": CHAIN_CFG,
    "tail_stack": TAIL_STACK,
    "fork_stack": FORK_STACK,
    "fail_cfg": FAIL_CFG,
    "fail_stack": FAIL_STACK,
}


def cfg(text: str) -> CfgProgram:
    """Parse a CFG program."""
    program = parse_program(text)
    assert isinstance(program, CfgProgram)
    return program


def stack(text: str) -> StackProgram:
    """Parse a stack program."""
    program = parse_program(text)
    assert isinstance(program, StackProgram)
    return program
