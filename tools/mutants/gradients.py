"""Defects in derivatives: pullbacks, tapes, the backward machine, elements of `vmap`."""

from __future__ import annotations

from tools.mutants.mutant import Mutant

LANES = "tests/gradients/test_gradients_lanes.py"
JAX = "tests/gradients/test_gradients_jax.py"
EDGES = "tests/gradients/test_gradients_edges.py"


def programs(*names: str) -> tuple[str, ...]:
    """Cotangents of these programs."""
    return tuple(f"tests/gradients/test_gradients.py::test_cotangents[{name}]" for name in names)


MUTANTS = (
    # forward
    Mutant(
        "forward-only-nothing",
        "transforms/forward_only.py",
        "    if not smooth:\n        return outcome\n",
        "    return outcome\n",
        'JAX says that a `while_loop` has no reverse mode where `strategy="local"` has none',
        ("tests/differential/test_local.py::TestDerivatives::test_backwards",),
    ),
    Mutant(
        "forward-only-axes",
        "transforms/forward_only.py",
        "return list(outs), list(axes)",
        "return list(outs), [0 if axis is None else axis for axis in axes]",
        "what does not differ between elements of a `vmap` is said to",
        ("tests/differential/test_local.py::TestDerivatives::test_what_elements_share",),
    ),
    # body, pull
    Mutant(
        "pull-unmasked",
        "transforms/tape/block_vjp.py",
        "if here is not None and not step.linear:",
        "if False:",
        "zero times an infinite derivative is NaN where a lane does not need a value",
        programs("not_looked_at"),
    ),
    Mutant(
        "pull-both-arms",
        "transforms/tape/block_vjp.py",
        "return here & (first if k == 1 else ~first)",
        "return here",
        "a step in an arm of a selection is undone in lanes that have not taken it",
        programs("steep_arms"),
    ),
    Mutant(
        "pull-sums-all",
        "transforms/tape/block_vjp.py",
        "return jnp.where(lane_mask(here, value), value, value[jnp.argmax(here)][None])",
        "return value",
        "records that do not need a product take part in the sum over records",
        programs("products_not_looked_at"),
    ),
    Mutant(
        "pull-store-by-lane",
        "transforms/tape/block_vjp.py",
        "{n: ct.sum(0) if isinstance(env[n], Common) else ct for n, ct in cotangents.items()}",
        "dict(cotangents)",
        "what lanes store of a shared value has a cotangent for each lane",
        programs("numbers_of_a_shared_matrix_are_stored"),
    ),
    Mutant(
        "body-all-linear",
        "transforms/tape/jaxpr_pieces.py",
        "return eqn.primitive.name in LINEAR or not any(map(_is_float, eqn.invars))",
        "return True",
        "every pullback counts as one that only moves cotangents",
        programs("not_looked_at"),
    ),
    Mutant(
        "pull-shared-unmasked",
        "transforms/backward.py",
        "operation.run.lanes, sheltered)[0]",
        "operation.run.lanes)[0]",
        "what is computed once for all lanes, and not needed, spoils gradients",
        ("tests/gradients/test_gradients.py::test_cotangents_of_what_lanes_share[not_looked_at]",),
    ),
    # back
    Mutant(
        "back-junk",
        "transforms/tape/backward_machine.py",
        "BackCode(k, block, risky, needs_lanes=risky)",
        "BackCode(k, block)",
        "inner loops are run again on records of lanes that are elsewhere",
        programs("loops_that_end_on_one_side"),
    ),
    Mutant(
        "back-as-written",
        "transforms/tape/backward_machine.py",
        "return {name: new.get(name, carry[name]) for name in self.written(code)}",
        "return new",
        "a block that only compares a number of an array leaves out the array",
        programs("only_compared"),
    ),
    # reverse
    Mutant(
        "reverse-failed-lanes",
        "transforms/backward.py",
        "(alive & ~ok) | left[FULL]",
        "(alive & ~alive) | left[FULL]",
        "lanes that failed have gradients of zero",
        (f"{LANES}::test_a_lane_that_fails_has_no_gradient",),
    ),
    Mutant(
        "reverse-full-tape",
        "transforms/backward.py",
        "(alive & ~ok) | left[FULL]",
        "alive & ~ok",
        "a tape that is full gives gradients of the records that it has",
        (f"{LANES}::TestTape",),
    ),
    Mutant(
        "reverse-poisons-all",
        "transforms/backward.py",
        "(alive & ~ok) | left[FULL]",
        "~ok | left[FULL]",
        "lanes that failed spoil what lanes share, though nobody looks at them",
        (f"{LANES}::test_a_lane_that_fails_does_not_disturb_who_leaves_it_out",),
    ),
    Mutant(
        "reverse-everybody-enters",
        "transforms/backward.py",
        "began = back.at_records(layout, began, jnp.where(alive, head, -1) if operation.skips else head)",
        "began = back.at_records(layout, began, head)",
        "lanes without cotangents are undone as well",
        (f"{LANES}::test_lanes_without_cotangents_change_nothing",),
        equivalent="their cotangents stay zero; it takes time only",
    ),
    Mutant(
        "reverse-max-tape",
        "transforms/recorded_run.py",
        "needed = -(-max(counts) // lanes)",
        "needed = max(counts) // lanes",
        "the number that PCB423 says is too small",
        (f"{LANES}::TestTape",),
    ),
    Mutant(
        "machine-tangents-of-failures",
        "runtime/vm/machine.py",
        "return spoilt(where, value), spoilt(where, tangents[1])",
        "return spoilt(where, value), tangents[1]",
        "tangents of lanes that failed are numbers",
        (f"{LANES}::test_a_lane_that_fails_has_no_gradient",),
    ),
    # vmap
    Mutant(
        "lifted-one-by-one",
        "transforms/primitive/batching.py",
        "        if not self.at_once:\n",
        "        if True:\n",
        "tangents of a tape are those of other records, if elements were recorded together",
        (f"{JAX}::test_vmap_of_derivatives[loop-hessian-x]",),
    ),
    Mutant(
        "fold-order",
        "transforms/primitive/lane_folding.py",
        "behind = jnp.moveaxis(array, axis, 1)",
        "behind = jnp.moveaxis(array, axis, 0)",
        "lanes and elements are exchanged on the way in",
        (f"{JAX}::test_vmap_of_derivatives[loop-grad-x]",),
    ),
    Mutant(
        "fold-back",
        "transforms/primitive/lane_folding.py",
        "return array.reshape(array.shape[0] // size, size, *array.shape[1:])",
        "return array.reshape(size, array.shape[0] // size, *array.shape[1:]).swapaxes(0, 1)",
        "lanes and elements are exchanged on the way out",
        (f"{JAX}::test_vmap_of_derivatives[loop-grad-x]",),
    ),
    # tape, kept
    Mutant(
        "rows-together",
        "transforms/tape/record_layout.py",
        "return first_lanes(mask, window.width)",
        "return None",
        "records are those of the first lanes, whoever takes part",
        ("tests/gradients/test_transforms.py::test_shared_matrices",),
    ),
    Mutant(
        "kept-first-chunk",
        "transforms/tape/uniform_cotangents.py",
        "for _ in range(2):",
        "for _ in range(1):",
        "of what is kept at the end, only the first records are used",
        ("tests/gradients/test_transforms.py::test_more_is_kept_at_the_end_than_one_pullback_takes",),
    ),
    Mutant(
        "marked-stride",
        "transforms/remat_run.py",
        "saved = _once(count % stride == 0, mark, saved)",
        "saved = _once(count % stride != 0, mark, saved)",
        "marks are made between their places",
        ("tests/gradients/test_transforms.py::test_shared_matrices",),
    ),
    # where JAX asks for something unusual
    Mutant(
        "backward-endless",
        "transforms/backward.py",
        "return (c[0] > 0) & blocks.live(c[1])",
        "return blocks.live(c[1])",
        "a tape that another way of a `cond` has left is undone for ever",
        (f"{EDGES}::test_elements_on_different_ways",),
    ),
    Mutant(
        "backward-stride",
        "transforms/backward.py",
        "return left[ELEMENTS].shape[-1] // self.run.elements if ELEMENTS in left else 1",
        "return 1",
        "where elements were recorded together, constants are those of other lanes",
        (f"{EDGES}::test_elements_that_share_a_matrix",),
    ),
    Mutant(
        "batch-of-nothing",
        "transforms/primitive/operation.py",
        "if size == 0:",
        "if size == -1:",
        "a `vmap` over no elements fails",
        (f"{EDGES}::test_vmap_over_no_elements[value-]",),
    ),
    Mutant(
        "run-gives-away",
        "transforms/run.py",
        "with keeping():",
        "if True:",
        "donated arguments are used up before their tangents are computed",
        (f"{EDGES}::test_tangents_of_donated_arguments",),
    ),
    Mutant(
        "linear-pushed",
        "transforms/primitive/jvp.py",
        "if any(t is not None for t in tangents[:first]):",
        "if True:",
        "what is linear is differentiated as if it were not",
        (f"{EDGES}::test_what_is_linear_is_its_own_derivative[loop]",),
    ),
    Mutant(
        "blame-nobody",
        "transforms/primitive/errors.py",
        "if found is not None:",
        "if False:",
        "what JAX does not differentiate has no line",
        (f"{EDGES}::test_what_jax_does_not_differentiate_has_a_line[jvp]",),
    ),
    # captured values
    Mutant(
        "captured-twice",
        "lowering/passes/lift_captures.py",
        "if known is value:",
        "if known is not value:",
        "different values that are captured are taken for one",
        ("tests/gradients/test_transforms.py::TestCaptured",),
    ),
    Mutant(
        "captured-unread",
        "lowering/passes/lift_captures.py",
        "if not finder.values:",
        "if True:",
        "captured values stay constants",
        ("tests/gradients/test_transforms.py::TestCaptured",),
    ),
)
