"""A breach of a rule of the IR, and the rules that the verifiers of all program types share (see `verifier`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pcbatch.ir.analysis.def_use import AnyOp
from pcbatch.ir.ops import ASSERTION, CAPACITY, ERROR, LIMIT, RETURN, Check, Move, Select
from pcbatch.ir.roles import writes
from pcbatch.ir.stack import Push
from pcbatch.ir.types import BOOL, ArrayType

RESERVED_LABELS = (RETURN, "prologue")

Names = frozenset[str]
Types = Mapping[str, ArrayType | None]


@dataclass(frozen=True, slots=True)
class Fault:
    """One breach of one rule; `rule` is its name in the module's list."""

    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message} [{self.rule}]"


def all_declared(mentioned: Iterable[tuple[str, str]], types: Types) -> Iterator[Fault]:
    """Report variables that are not declared, once for each place."""
    for where, name in dict.fromkeys(mentioned):
        if name not in types:
            yield Fault("declared", where, f"the variable {name} is not declared")


def distinct(names: Iterable[str], where: str, what: str) -> Iterator[Fault]:
    """Report names that occur twice."""
    for name, count in Counter(names).items():
        if count > 1:
            yield Fault("distinct", where, f"{name} occurs {count} times among the {what}")


def op_types(ops: Iterable[AnyOp], types: Types, where: str) -> Iterator[Fault]:
    """Report operations whose destinations or types do not fit."""
    for op in ops:
        yield from distinct(writes(op), where, "destinations")
        match op:
            case Move(dst=dst, src=src) | Push(dst=dst, src=src):
                yield from agree(dst, src, types, types, where)
            case Select():
                yield from is_bool(op.cond, types, where)
                yield from agree(op.dst, op.on_true, types, types, where)
                yield from agree(op.dst, op.on_false, types, types, where)
                yield from agree(op.on_true, op.on_false, types, types, where)
            case Check():
                yield from is_bool(op.failed, types, where)
                yield from known_kind(op.kind, where)
            case _:
                pass


def known_kind(kind: str, where: str) -> Iterator[Fault]:
    """Report a kind of failure that does not exist."""
    if kind not in (ASSERTION, ERROR, CAPACITY, LIMIT):
        yield Fault("kind", where, f"{kind} is no kind of failure")


def is_bool(name: str, types: Types, where: str) -> Iterator[Fault]:
    """Report a condition that is no `bool[]`."""
    known = types.get(name)
    if known is not None and (known.dtype, known.shape) != (BOOL.dtype, BOOL.shape):
        yield Fault("cond", where, f"the condition {name} is {known}, not {BOOL}")


def agree(a: str, b: str, types_a: Types, types_b: Types, where: str, rule: str = "types") -> Iterator[Fault]:
    """Report two variables whose types differ; the weak flag does not count."""
    left, right = types_a.get(a), types_b.get(b)
    if left is not None and right is not None and (left.dtype, left.shape) != (right.dtype, right.shape):
        yield Fault(rule, where, f"{a} is {left}, but {b} is {right}")
