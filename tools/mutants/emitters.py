"""Defects in the emitters and in what chooses among them."""

from __future__ import annotations

from tools.mutants.mutant import OPTIONS, Mutant, law, on

RUNTIME = ("tests/runtime/test_limits.py",)
FULL = ("tests/runtime/test_limits.py::TestStackFull",)
STEPS = ("tests/runtime/test_limits.py::TestStepLimit",)
GROWTH = ("tests/runtime/test_limits.py::TestGrowth",)
JUNK = ("tests/runtime/test_limits.py::TestJunk",)
STORES = ("tests/language/test_regressions.py",)
COUNTS = ("tests/runtime/test_counts.py",)
# Which of the first three combinations of options a program meets is its place in the registry, modulo 3.
MANY = on(
    OPTIONS, "fib", "is_even", "gcd_subtractive", "catalan", "tak", "hanoi", "count_primes", "local_survives_call"
)
LOOPS = law("countdown", "gcd_while", "collatz")

MUTANTS = (
    # emit
    Mutant(
        "emit-pick",
        "runtime/emit/__init__.py",
        '== "cpu" else "port"',
        '!= "cpu" else "port"',
        "the automatic emitter is the one of the other platform",
        ("tests/runtime/test_limits.py::TestMachine",),
    ),
    Mutant(
        "emit-names",
        "runtime/emit/__init__.py",
        '"port": Port(), "mask": Mask()',
        '"port": Port(), "mask": Guard()',
        "the emitter `mask` is another one",
        ("tests/runtime/test_limits.py::TestMachine",),
    ),
)
