"""Defects in the passes on the merged program."""

from __future__ import annotations

from tools.mutants.mutant import OPTIONS, PASSES, STAGES, Mutant, law, on

COUNTS = "tests/runtime/test_counts.py"
UNROLLED = "tests/lowering/test_unroll_threefry.py"
RATCHET = "tests/runtime/test_ratchets.py::test_named_programs"
SAVES = law("local_survives_call", "catalan", "tak", "hofstadter_female", "recursion_in_while_body")
CALLS = law("fib", "is_even", "mutual_tail_calls", "swapped_parameters", "catalan", "callee_without_recursion")
BRANCHES = law("nested_ifs", "elif_chain", "ternaries", "boolean_conditions", "short_circuit", "constant_conditions")
MERGES = (*law("swap_in_loop", "fib", "catalan", "hofstadter_female", "namedtuple_through_callee"), PASSES)

MUTANTS = (
    # shared
    Mutant(
        "shared-varying",
        "lowering/passes/hoist_uniform.py",
        "if not isinstance(op, Prim) or VARYING in ins:",
        "if not isinstance(op, Prim):",
        "a value that differs between lanes is computed once for all",
        law("pea_nuts", "shared_becomes_varying"),
    ),
    Mutant(
        "shared-reassigned",
        "lowering/passes/hoist_uniform.py",
        "p if p in shared and p not in computed else VARYING",
        "p if p in shared else VARYING",
        "a shared parameter that lanes change stays shared",
        law("shared_counter", "shared_grows_in_recursion"),
    ),
    Mutant(
        "shared-two-definitions",
        "lowering/passes/hoist_uniform.py",
        "if n > 1)",
        "if n > 2)",
        "two definitions of a variable count as one value",
        (PASSES,),
    ),
    Mutant(
        "shared-last-definition",
        "lowering/passes/hoist_uniform.py",
        "new = root if old is None or old == root else VARYING",
        "new = root if old is None else old",
        "of several values that a variable may have the first counts",
        law("shared_pair_swapped", "shared_becomes_varying"),
    ),
    Mutant(
        "shared-slots",
        "lowering/passes/hoist_uniform.py",
        "                # The slot belongs to dst, so what is kept there must agree with dst.\n"
        "                join(dst, roots.get(src))\n",
        "                pass\n",
        "what a slot keeps need not agree with its variable",
        ("tests/lowering/test_passes.py",),
    ),
    Mutant(
        "shared-loops",
        "lowering/passes/hoist_uniform.py",
        "block.label != program.entry and _loops(op)",
        "False",
        "a loop is hoisted out of the branch that keeps it from running for ever",
        ("tests/language/test_regressions.py",),
    ),
    # merge_registers
    Mutant(
        "merge-interfering",
        "lowering/passes/register_coalescing.py",
        "a == b or b in conflicts[a] or {a, b}",
        "a == b or {a, b}",
        "registers that live at the same time are merged",
        MERGES,
    ),
    Mutant(
        "merge-parameters-live",
        "lowering/passes/register_coalescing.py",
        "        clash(v, at_entry - {v})\n",
        "        pass\n",
        "parameters count as not interfering at the entry",
        law("fib", "catalan"),
        "what else lives at the entry is a caller's, and was compared where the call wrote the parameter",
    ),
    Mutant(
        "merge-siblings",
        "lowering/passes/register_coalescing.py",
        "(set(after) | set(writes(op))) - {v,",
        "set(after) - {v,",
        "two results of one operation may share a register",
        law("fib", "catalan"),
        "an operation without a live result has gone by then, and a live one conflicts with the others",
    ),
    Mutant(
        "merge-frames",
        "lowering/passes/register_coalescing.py",
        " or {a, b} <= framed or",
        " or",
        "two variables with frames share them",
        ("tests/lowering/test_passes.py",),
    ),
    Mutant(
        "merge-forgets",
        "lowering/passes/register_coalescing.py",
        "                    conflicts[a].add(c)\n",
        "",
        "a merged register forgets what its second half interferes with",
        ("tests/lowering/test_passes.py",),
    ),
    # simplify_stack
    Mutant(
        "simplify-stack-merge",
        "lowering/passes/simplify_stack.py",
        "if target in (entry, current.label) or named[target] != 1 or target in gone:",
        "if target in (entry, current.label) or target in gone:",
        "a block that others jump to is merged away",
        law("countdown", "fib", "gcd_subtractive"),
    ),
    Mutant(
        "simplify-stack-returns",
        "lowering/passes/simplify_stack.py",
        "{block.label: targets(block.terminator) for block in blocks}",
        "{block.label: targets(block.terminator)[:1] for block in blocks}",
        "blocks that a jump names second count as unused",
        law("fib"),
    ),
    # storage
    Mutant(
        "storage-crossing",
        "lowering/passes/storage_classes.py",
        "    registers.update(v for names in stack_live_in(program).values() for v in names)\n",
        "",
        "a value that crosses blocks has no register",
        law("countdown"),
    ),
    Mutant(
        "storage-null",
        "lowering/passes/storage_classes.py",
        "Storage.TEMP if name in read else Storage.NULL",
        "Storage.NULL",
        "a temporary counts as never read",
        law("countdown"),
    ),
    Mutant(
        "storage-frames",
        "lowering/passes/storage_classes.py",
        "Storage.REG_STACK if name in registers else Storage.STACK",
        "Storage.REG_STACK",
        "a variable that is only saved keeps a register",
        (RATCHET, "tests/lowering/test_passes.py"),
    ),
    # order
    Mutant(
        "order-expensive-first",
        "lowering/passes/block_layout.py",
        "    order += last\n",
        "    order = [*last, *order]\n",
        "the expensive block comes first, so lanes do not gather before it",
        (COUNTS, "tests/examples/test_nuts.py::test_no_chain_waits_at_a_trajectory"),
    ),
    Mutant(
        "order-entry",
        "lowering/passes/block_layout.py",
        "entry=new[program.entry]",
        'entry="bb0"',
        "a run starts at the first block whatever the entry",
        (*law("nested_gradient"), "tests/lowering/test_passes.py"),
    ),
    Mutant(
        "order-schedule",
        "lowering/passes/block_layout.py",
        'return "drain" if expensive_blocks(program) else "sweep"',
        'return "sweep" if expensive_blocks(program) else "drain"',
        "the automatic schedule is the other one",
        (COUNTS, "tests/examples/test_nuts.py::test_no_chain_waits_at_a_trajectory"),
    ),
    # cost, frequency
    Mutant(
        "cost-products-free",
        "lowering/analysis/cost.py",
        "return 0.5 * out * float(math.prod(eqn.invars[0].aval.shape[d] for d in contract))",
        "return 0.0",
        "matrix products cost nothing",
        (f"{PASSES}::TestOrder", COUNTS, "tests/examples/test_nuts.py::test_no_chain_waits_at_a_trajectory"),
    ),
    Mutant(
        "cost-no-inner-loops",
        "lowering/analysis/cost.py",
        'e.primitive.name in ("while", *HOST) or any(map(minds_junk, inner_jaxprs(e)))',
        'e.primitive.name in ("while", *HOST)',
        "a loop inside another primitive is not seen",
        ("tests/runtime/test_limits.py::TestJunk", "tests/language/test_regressions.py"),
    ),
    Mutant(
        "frequency-flat",
        "lowering/analysis/block_frequency.py",
        "dict.fromkeys(component, level)",
        "dict.fromkeys(component, 1)",
        "inner loops count as often as outer ones",
        (COUNTS, "tests/lowering/test_passes.py"),
    ),
    Mutant(
        "frequency-no-returns",
        "lowering/analysis/block_frequency.py",
        "[*direct, *returns.get(block.label, ())]",
        "direct",
        "nothing follows a return, so recursion is no loop",
        (COUNTS, "tests/lowering/test_passes.py"),
    ),
    # the order of blocks never changes a value
    Mutant(
        "order-source",
        "lowering/passes/block_layout.py",
        'graph if schedule == "sweep" else source',
        "graph",
        "policies that name one block get the order of a sweep",
        (
            f"{PASSES}::TestOrder",
            f"{COUNTS}::test_the_addition_in_fib_runs_twenty_times",
            *on(OPTIONS, "fib"),
            *on(STAGES, "fib"),
        ),
    ),
    # draws_unrolled
    Mutant(
        "draws-setting-of-now",
        "lowering/passes/unroll_threefry.py",
        'return bool(getattr(getattr(eqn, "ctx", None), "threefry_partitionable", current))',
        "return bool(current)",
        "draws follow the setting of the compilation, not that of their line",
        (f"{UNROLLED}::TestPlaces::test_the_setting_is_that_of_the_line",),
    ),
    Mutant(
        "draws-any-key",
        "lowering/passes/unroll_threefry.py",
        "if draw is None or eqn.invars[0].aval.dtype not in (np.uint32, _key_dtype()):",
        "if draw is None:",
        "keys of every kind are taken for threefry's",
        (f"{UNROLLED}::TestLeftAlone",),
    ),
    Mutant(
        "draws-rotations",
        "lowering/passes/unroll_threefry.py",
        "in ROTATIONS[group % 2]",
        "in ROTATIONS[0]",
        "the hash is another one",
        (f"{UNROLLED}::TestTrust::test_this_jax_agrees",),
    ),
    Mutant(
        "draws-trusted",
        "lowering/passes/unroll_threefry.py",
        "_as_call(draw, eqn) if self._trusted(_partitionable(eqn)) else None",
        "_as_call(draw, eqn)",
        "draws are unrolled whether or not JAX's have the same bits",
        (f"{UNROLLED}::TestTrust::test_then_programs_stay_as_they_are",),
    ),
    Mutant(
        "draws-setting-forgotten",
        "lowering/typing/jax_types.py",
        '    "jax_threefry_partitionable",\n',
        "",
        "a program compiled for one layout of draws is used under the other",
        (f"{UNROLLED}::TestPrograms::test_a_setting_that_changes_between_calls",),
    ),
    Mutant(
        "cost-draws-free",
        "lowering/analysis/cost.py",
        'name if name == "threefry2x32" else',
        'name if name == "threefry" else',
        "an unrolled draw is cheaper than one that is not",
        (f"{UNROLLED}::TestCosts",),
    ),
)
