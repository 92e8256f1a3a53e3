"""Checks become branches, which show values as they were when the check was made."""

from __future__ import annotations

from pcbatch.ir.text.printer import print_program
from pcbatch.ir.verifier import verify
from pcbatch.lowering.cfg_passes import lower_checks
from tests.ir.samples import cfg

PROGRAM = """pcir 1 cfg
func @f(n: i32[]) -> (r: i32[]) {
  bad: bool[]
bb0:
  bad = { n > 3 }
  check bad, error ValueError("n is ", n)
  n = { n + 1 }
  r = { n * 2 }
  return
}
"""


def test_a_message_shows_the_values_of_its_time() -> None:
    lowered = lower_checks.run(cfg(PROGRAM))
    assert verify(lowered) == ()
    text = print_program(lowered)
    assert text.index("n.t0 = n") < text.index("n = { n + 1 }")
    assert 'fail error ValueError("n is ", n.t0)' in text
