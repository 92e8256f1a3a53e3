"""Defects in what a visit of a block reads, computes and writes: windows, parts, frames, words."""

from __future__ import annotations

from tools.mutants.mutant import OPTIONS, Mutant, law, on

COUNTS = ("tests/runtime/test_counts.py",)
FULL = ("tests/runtime/test_limits.py::TestStackFull",)
FRAMES = ("tests/runtime/test_frames.py",)
GROWTH = ("tests/runtime/test_limits.py::TestGrowth",)
JUNK = ("tests/runtime/test_limits.py::TestJunk",)
MODES = ("tests/runtime/test_modes.py",)
PARTS = ("tests/runtime/test_indexed_access.py",)
STEPS = ("tests/runtime/test_limits.py::TestStepLimit",)
WINDOW = ("tests/runtime/test_lane_window.py",)
WORDS = ("tests/runtime/test_word_packing.py",)
XLA = ("tests/runtime/test_xla_options.py",)
MANY = on(
    OPTIONS, "fib", "is_even", "gcd_subtractive", "catalan", "tak", "hanoi", "count_primes", "local_survives_call"
)

MUTANTS = (
    # window
    Mutant(
        "window-write-all",
        "runtime/vm/lane_window.py",
        "else lane_mask(mask, new), new, array)",
        "else lane_mask(mask | True, new), new, array)",
        "a block updates the registers of all lanes",
        (*WINDOW, *law("countdown")),
    ),
    Mutant(
        "window-other-lane",
        "runtime/vm/lane_window.py",
        "number = jnp.where(mask[lane], lane, lanes)",
        "number = jnp.where(mask[lane], lane, found)",
        "places that are left over stand for lanes that are elsewhere",
        WINDOW,
    ),
    Mutant(
        "window-no-loan",
        "runtime/vm/lane_window.py",
        "jnp.argmax(here).astype(jnp.int32)) if careful",
        "jnp.argmin(here).astype(jnp.int32)) if careful",
        "lanes borrow from one that is elsewhere itself",
        (*WINDOW, *JUNK),
    ),
    Mutant(
        "window-nobody",
        "runtime/vm/lane_window.py",
        "lender = jnp.minimum(index[0], lanes - 1)",
        "lender = index[0]",
        "a window on nobody reads a lane that does not exist",
        WINDOW,
    ),
    # parts
    Mutant(
        "parts-store-all",
        "runtime/vm/indexed_access.py",
        "lanes = window.targets(mask).reshape(",
        "lanes = window.targets(window.here).reshape(",
        "a store happens for lanes that do not take part",
        PARTS,
    ),
    Mutant(
        "parts-load-place",
        "runtime/vm/indexed_access.py",
        "axis_size=window.width)(window.source, *values)",
        "axis_size=window.width)(jnp.arange(window.width, dtype=jnp.int32), *values)",
        "a load reads the lane of the place's number",
        PARTS,
    ),
    Mutant(
        "parts-mode",
        "runtime/vm/indexed_access.py",
        'eqn.params["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP',
        'eqn.params["mode"] != jax.lax.GatherScatterMode.CLIP',
        "a scatter that promises its index is masked by one out of range",
        PARTS,
    ),
    Mutant(
        "parts-no-index",
        "runtime/vm/indexed_access.py",
        "return drops and bool(eqn.invars[1].aval.size)",
        "return drops",
        "a scatter without an index is taken for one that can be masked",
        PARTS,
    ),
    Mutant(
        "parts-other-name",
        "runtime/vm/indexed_access.py",
        "return len(outs) == 1 and self.op.dsts[outs[0]] == name and not",
        "return len(outs) == 1 and not",
        "a store into a copy counts as one into the register itself",
        PARTS,
    ),
    Mutant(
        "parts-narrow-index",
        "runtime/vm/indexed_access.py",
        "return dtype if integer_limits(dtype)[1] >= LIMIT else jnp.int32",
        "return dtype",
        "lanes beyond 255 are not told apart by an index of one byte",
        PARTS,
    ),
    Mutant(
        "parts-start-wraps",
        "runtime/vm/indexed_access.py",
        "return jnp.clip(index, 0, min(last, integer_limits(index.dtype)[1])).astype(jnp.int32)",
        "return index.astype(jnp.int32)",
        "a slice that starts at a great number starts at the front",
        PARTS,
    ),
    Mutant(
        "parts-given-back",
        "runtime/vm/indexed_access.py",
        "outs = [look(v) if k in stored else moved(look(v), window) for",
        "outs = [look(v) if k in stored else look(v) for",
        "a register that is given back under another name is that of all lanes",
        PARTS,
    ),
    # frames
    Mutant(
        "frames-write-all",
        "runtime/vm/frames.py",
        "index = jnp.where(mask, row * window.lanes + window.source, nowhere)",
        "index = jnp.where(mask | True, row * window.lanes + window.source, nowhere)",
        "a push happens in every lane",
        (*FRAMES, *law("fib", "catalan")),
    ),
    Mutant(
        "frames-caller",
        "runtime/vm/frames.py",
        "part = self._gather(carry[buffer], window, depth + 1, low, high)",
        "part = self._gather(carry[buffer], window, depth, low, high)",
        "a pop reads the frame of the caller",
        FRAMES,
    ),
    Mutant(
        "frames-hull",
        "runtime/vm/frames.py",
        "part[:, column.start - low : column.stop - low]",
        "part[:, : column.stop - column.start]",
        "a variable is read from the columns of the first",
        FRAMES,
    ),
    Mutant(
        "frames-runs",
        "runtime/vm/frames.py",
        "if runs and runs[-1][1] == low:",
        "if runs and runs[-1][1] <= low:",
        "columns that are apart are written as if they were adjacent",
        FRAMES,
    ),
    Mutant(
        "frames-overlap",
        "runtime/vm/frames.py",
        "out[v] |= body - {v}",
        "out[v] |= set()",
        "variables of one body share columns",
        FRAMES,
    ),
    Mutant(
        "frames-grow-below",
        "runtime/vm/frames.py",
        "return jnp.concatenate([rows, more])",
        "return jnp.concatenate([more, rows])",
        "new frames come below the old ones",
        (*FRAMES, *GROWTH),
    ),
    # words
    Mutant(
        "words-value",
        "runtime/vm/word_packing.py",
        "bits = value if value.dtype == unsigned else jax.lax.bitcast_convert_type(value, unsigned)",
        "bits = value.astype(unsigned)",
        "values are converted instead of kept",
        WORDS,
    ),
    Mutant(
        "words-complex",
        "runtime/vm/word_packing.py",
        "return jax.lax.complex(halves[..., 0], halves[..., 1])",
        "return jax.lax.complex(halves[..., 1], halves[..., 0])",
        "a complex number comes back with its parts swapped",
        WORDS,
    ),
    Mutant(
        "words-truth",
        "runtime/vm/word_packing.py",
        "return (words != 0).reshape(shape)",
        "return (words == 0).reshape(shape)",
        "what was true comes back false",
        WORDS,
    ),
    # code
    Mutant(
        "code-parted",
        "runtime/vm/block_body.py",
        "env[v] = Whole(here) if v in self.parted else",
        "env[v] = Whole(here) if v not in self.parted else",
        "registers that are touched in part are moved whole",
        ("tests/runtime/test_hlo.py::test_writing_a_row_touches_one_row",),
    ),
    Mutant(
        "window-turned-mask",
        "runtime/vm/lane_window.py",
        "index = (..., self.source) if turned else self.source",
        "index = self.source",
        "lanes are looked up along the first axis of arrays that have them last",
        WINDOW,
    ),
    Mutant(
        "code-turned-matrices",
        "runtime/vm/block_body.py",
        "rows = {v for code in codes for v in (*code.parted, *_in_rows(code.block))}",
        "rows = {v for code in codes for v in code.parted}",
        "what matrix products read is kept with the lanes last",
        ("tests/runtime/test_hlo.py::test_small_arrays_have_the_lanes_last",),
    ),
    Mutant(
        "code-nothing-turned",
        "runtime/vm/block_body.py",
        "return bool(shape) and 0 < math.prod(shape) <= SMALL",
        "return False",
        "small arrays are kept with the lanes first",
        ("tests/runtime/test_hlo.py::test_small_arrays_have_the_lanes_last",),
    ),
    # layout
    Mutant(
        "layout-narrow-pc",
        "runtime/vm/layout.py",
        "if self.nowhere <= np.iinfo(t).max)",
        "if self.exit <= np.iinfo(t).max)",
        "program counters of lanes that failed do not fit",
        ("tests/runtime/test_modes.py::test_many_blocks",),
    ),
    Mutant(
        "layout-first-address",
        "runtime/vm/frames.py",
        'made["frames"].at[:lanes, 0].set(exit_)',
        'made["frames"].at[:lanes, 0].set(0)',
        "the outermost return leads to the first block",
        FRAMES,
    ),
    # emit
    Mutant(
        "base-steps-late",
        "runtime/vm/step.py",
        'window.read(carry["steps"]) >= layout.max_steps)',
        'window.read(carry["steps"]) > layout.max_steps)',
        "`max_steps` allows one block more",
        STEPS,
    ),
    Mutant(
        "base-depth-late",
        "runtime/vm/step.py",
        "leap.enters & (new > room)",
        "leap.enters & (new > room + 1)",
        "a call is made though the stack is full",
        FULL,
    ),
    Mutant(
        "base-fork",
        "runtime/vm/step.py",
        "pc=jnp.where(cond, a.pc, b.pc),",
        "pc=jnp.where(cond, b.pc, a.pc),",
        "a branch goes the other way",
        law("countdown", "fib"),
    ),
    Mutant(
        "base-nobody-enters",
        "runtime/vm/step.py",
        "enters=choose(a.enters, b.enters, nobody),",
        "enters=choose(a.enters, b.enters, ~nobody),",
        "a lane that does not call opens a frame",
        law("fib"),
    ),
    Mutant(
        "base-steps-all",
        "runtime/vm/step.py",
        'window.read(carry["steps"]) + 1, mask)',
        'window.read(carry["steps"]) + 1, mask | True)',
        "steps are those of the machine, not of the lane",
        STEPS,
    ),
    Mutant(
        "guard-repeats-nobody",
        "runtime/emit/guard.py",
        "1 if self.code.risky else turns",
        "turns",
        "an inner loop runs once more when all lanes have left",
        MODES,
    ),
    Mutant(
        "guard-strips-again",
        "runtime/emit/guard.py",
        'left = left.at[window.index].set(False, mode="drop")',
        "left = waits(new, self.code)",
        "lanes that come back are run again in the same visit",
        (*MODES, *COUNTS),
    ),
    Mutant(
        "guard-untested",
        "runtime/emit/guard.py",
        "            go = block == code.index\n",
        "            go = wanted(carry, code)\n",
        "blocks run that the policy did not name",
        COUNTS,
    ),
    Mutant(
        "mask-not-held",
        "runtime/emit/mask.py",
        'held = jnp.where(block == code.index, carry["pc"], nowhere)',
        'held = carry["pc"]',
        "blocks run that the policy did not name, and lanes are put back",
        (*COUNTS, *on(OPTIONS, "fib", "is_even", "gcd_subtractive"), "tests/runtime/test_limits.py"),
    ),
    Mutant(
        "mask-not-put-back",
        "runtime/emit/mask.py",
        'pc = jnp.where(block == code.index, out["pc"], carry["pc"])',
        'pc = out["pc"]',
        "lanes that were held back stay nowhere",
        COUNTS,
    ),
    Mutant(
        "port-save-all",
        "runtime/vm/frames.py",
        "out[buffer] = row, mask if parts else jnp.zeros_like(mask)",
        "out[buffer] = row, mask | True if parts else jnp.zeros_like(mask)",
        "a block saves variables of all lanes",
        FRAMES,
    ),
    Mutant(
        "port-new-depth",
        "runtime/emit/port.py",
        'frames.put(carry, window, carry["depth"], rows)',
        'frames.put(carry, window, small["depth"], rows)',
        "values are saved at the depth after the jump",
        MANY,
    ),
    Mutant(
        "port-nobody",
        "runtime/emit/port.py",
        "if not code.needs_lanes:",
        "if True:",
        "an inner loop runs with no lane waiting for it",
        MODES,
    ),
    # xla
    Mutant(
        "xla-one-thread",
        "runtime/costs/xla_options.py",
        "if kernel * lanes >= WORTH_SPLITTING else",
        "if kernel * lanes > 1e30 else",
        "kernels worth splitting are kept on one thread",
        XLA,
    ),
    Mutant(
        "xla-asked-in-a-trace",
        "runtime/costs/xla_options.py",
        "with jax.ensure_compile_time_eval():",
        "if True:",
        "an option is taken for unknown because it was asked for inside a trace",
        XLA,
    ),
)
