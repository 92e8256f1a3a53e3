"""Kernels of a trip: the counter, and bounds that may only fall."""

from __future__ import annotations

import pytest

from benchmarks.kernels import PROGRAMS, count
from benchmarks.trip_kernels import Kernels, per_trip

LANES = 64
# Lower a bound whenever a program needs fewer; XLA's versions differ by a few. A draw of `slice` is a kernel of its
# own, which makes more of them and a faster program (docs/users/performance.md).
BOUNDS = {"collatz": 24, "fib": 23, "ackermann": 43, "queens": 52, "slice": 129, "shortest-ways": 67, "oscillator": 28}

MODULE = """
HloModule jit_f

%fused (p: s32[8]) -> s32[8] {
  ROOT %m = s32[8]{0} multiply(%p, %p)
}

%inner_body (p: (pred[], s32[8])) -> (pred[], s32[8]) {
  %p = (pred[], /*index=1*/s32[8]{0}) parameter(0)
  %x = s32[8]{0} get-tuple-element(%p), index=1
  %f.1 = s32[8]{0} fusion(%x), kind=kLoop, calls=%fused
  %f.2 = pred[] fusion(%x), kind=kLoop, calls=%fused
  ROOT %t = (pred[], s32[8]{0}) tuple(%f.2, %f.1)
}

%inner_cond (p: (pred[], s32[8])) -> pred[] {
  ROOT %c = pred[] get-tuple-element(%p), index=0
}

%body (p: (pred[], s32[8])) -> (pred[], s32[8]) {
  %p = (pred[], s32[8]{0}) parameter(0)
  %copy.1 = pred[] copy(%q)
  ROOT %w = (pred[], s32[8]{0}) while(%p), condition=%inner_cond, body=%inner_body
}

%cond (p: (pred[], s32[8])) -> pred[] {
  ROOT %f.3 = pred[] fusion(%x), kind=kLoop, calls=%fused
}

ENTRY %main (a: s32[8]) -> s32[8] {
  %a = s32[8]{0} parameter(0)
  %f.4 = s32[8]{0} fusion(%a), kind=kLoop, calls=%fused
  %w = (pred[], s32[8]{0}) while(%t), condition=%cond, body=%body
  ROOT %r = s32[8]{0} get-tuple-element(%w), index=1
}
"""


def test_a_trip_is_the_body_of_the_outer_loop_with_inner_loops_counted_once():
    assert per_trip(MODULE) == Kernels(kernels=4, copies=1, loops=1, bytes=32 + 1 + 1 + 1)


def test_a_module_without_a_loop_has_no_kernels_per_trip():
    assert per_trip(MODULE.replace(" while(", " call(")) == Kernels(0, 0, 0, 0)


@pytest.mark.share(2)
@pytest.mark.parametrize("name", BOUNDS)
def test_kernels_of_a_trip_do_not_become_more(name: str):
    assert count(PROGRAMS[name], LANES).kernels <= BOUNDS[name]


def test_every_program_has_a_bound():
    assert set(BOUNDS) == set(PROGRAMS)
