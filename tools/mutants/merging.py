"""Defects in the passes that make fewer, bigger blocks."""

from __future__ import annotations

from tools.mutants.mutant import Mutant, law

GRAFT = "tests/lowering/test_superblocks.py"
INLINE = ("tests/lowering/test_auto_inline.py",)
ANALYSES = ("tests/ir/test_analyses.py",)
SLOTS = (f"{GRAFT}::TestSlots",)
SPECULATION = (f"{GRAFT}::TestSpeculation",)
THREADING = (f"{GRAFT}::TestThreading",)

MUTANTS = (
    # graft
    Mutant(
        "graft-conditions",
        "lowering/passes/superblocks.py",
        "self.end = _replaced(rename_terminator(end, lambda v: old.get(v, v)), path, edge)",
        "self.end = _replaced(end, path, edge)",
        "a copy decides by the condition that it has overwritten itself whether it was meant",
        SPECULATION,
    ),
    Mutant(
        "graft-selects-others",
        "lowering/passes/superblocks.py",
        "Select(v, test, v, old[v]) if sign else Select(v, test, old[v], v)",
        "Select(v, test, old[v], v) if sign else Select(v, test, v, old[v])",
        "lanes that a copy was not meant for get what it writes",
        SPECULATION,
    ),
    Mutant(
        "graft-slots-of-others",
        "lowering/passes/superblocks.py",
        "& facts.kept(leaf) for leaf in elsewhere",
        "& frozenset() for leaf in elsewhere",
        "a copy pushes to a slot that lanes which go elsewhere are going to pop",
        SLOTS,
    ),
    Mutant(
        "graft-anything",
        "lowering/passes/superblocks.py",
        "return op_cost(op) if harmless(op) else math.inf",
        "return 0.0",
        "dear operations and inner loops are copied and run for all lanes",
        SPECULATION,
    ),
    Mutant(
        "graft-prints",
        "lowering/passes/superblocks.py",
        "            case Print():\n                return math.inf\n",
        "            case Print():\n                return 0.0\n",
        "a block that prints is copied",
        (f"{GRAFT}::TestAfterTheOnlyWay",),
    ),
    # splice
    Mutant(
        "splice-first-push",
        "lowering/passes/concat_blocks.py",
        "            if op.dst in again:\n                continue\n",
        "",
        "a block pushes to one slot twice",
        SLOTS,
    ),
    Mutant(
        "splice-stale-slot",
        "lowering/passes/concat_blocks.py",
        "held = {op.dst: new(op.dst) for op in then if isinstance(op, Pop) and op.dst in known}",
        "held = {}",
        "a block pops a slot that it has pushed to before",
        SLOTS,
    ),
    # simplify_stack
    Mutant(
        "thread-without-frame",
        "lowering/passes/simplify_stack.py",
        "PushJump(leaf.target, ret) if isinstance(leaf, Jump) else Jump(ret)",
        "leaf if isinstance(leaf, Jump) else Jump(ret)",
        "a callee that was entered past its first block returns to the caller's caller",
        THREADING,
    ),
    Mutant(
        "thread-two-places",
        "lowering/passes/simplify_stack.py",
        "len({call.loc for call in calls(edge)}) <= 1",
        "True",
        "a lane that finds the stack full names the wrong call",
        SPECULATION,
    ),
    # auto_inline
    Mutant(
        "inline-recursion",
        "lowering/passes/auto_inline.py",
        "kept = recursive(program) | {program.entry}",
        "kept = frozenset({program.entry})",
        "a function that calls itself is put into others, calls and all",
        INLINE,
    ),
    Mutant(
        "inline-loops",
        "lowering/passes/auto_inline.py",
        " or loops(function):",
        ":",
        "a loop is copied to every call of it",
        INLINE,
    ),
    # slots_live_in
    Mutant(
        "slots-dead",
        "ir/liveness.py",
        "popped[label] | (live - pushed[label])",
        "popped[label]",
        "a slot is dead where the next block does not pop it",
        (*ANALYSES, *law("queens", "catalan")),
    ),
)
