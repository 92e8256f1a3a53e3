"""Strict settings for the whole suite: what users may turn on must not break pcbatch.

Mixed ranks and mixed dtypes are refused (the machine must be explicit about its own), warnings are errors
(`setup.cfg`), there are two devices, and Hypothesis is reproducible. Most of the time goes into compiling, so LLVM's
optimiser is off (the passes of XLA itself are not), and XLA's thread pools are, because pytest-xdist already uses every
core. Flags in the environment win: `XLA_FLAGS=--xla_backend_optimization_level=3` is what users have.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("PCBATCH_ON_FAILURE", "ignore")  # JAX keeps no program that can warn in its persistent cache
os.environ["XLA_FLAGS"] = " ".join(
    [
        *("--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"),
        *("--xla_cpu_multi_thread_eigen=false", "--xla_cpu_parallel_codegen_split_count=1"),
        os.environ.get("XLA_FLAGS", ""),
    ]
)

import hypothesis
import jax
import pytest

# Tests press Ctrl-C, which what a shell has started in the background ignores.
signal.signal(signal.SIGINT, signal.default_int_handler)

jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile("explore", hypothesis.settings.get_profile("ci"), derandomize=False)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` writes the expected renderings of errors anew; `--full` runs every case of every suite."""
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/errors/*.err")
    parser.addoption("--full", action="store_true", help="every program in every suite, all seeds: half an hour")


# Long suites that run what shorter ones have run already, on other programs, lane counts or machines.
REPEATED = (
    "tests/examples/",
    "tests/differential/test_fuzz.py",
    "tests/runs/test_map.py::TestEveryProgram",
    "tests/differential/test_independence.py",
    "tests/diagnostics/test_pages.py::test_the_good_program_runs",
    "tests/language/test_fail.py::test_the_others_are_not_disturbed",
    "tests/language/test_language_doc.py",
    "tests/runs/test_killed_runs.py",
    "tests/language/test_print.py::test_lanes_print_what_the_plain_function_prints",
    "tests/types/test_types.py::test_what_runs_has",
    "tests/types/test_types.py::test_straight_programs",
    "tests/types/test_types.py::test_a_join_is_what_where_gives",
    "tests/ir/test_export.py::test_dot_strings_are_closed",
    "tests/ir/test_text.py::test_parsing_what_was_printed",
    "tests/differential/test_differential.py::test_default_options_on_every_lane_count",
    "tests/differential/test_differential.py::test_schedules_and_emitters",
    "tests/differential/test_differential.py::test_all_schedules_and_emitters",
    "tests/differential/test_differential.py::test_local_strategy",
    "tests/differential/test_differential.py::test_under_jit",
    "tests/runs/test_runs.py::TestAdvance::test_every_program",
    "tests/runtime/test_schedule.py::test_modes",
    "tests/runtime/test_schedule.py::test_policies",
)


# Long as well, and no more is run of the package than in others: its lines are not counted here either.
LONG = (
    "tests/runtime/test_frames.py",
    "tests/runtime/test_modes.py",
    "tests/suite/test_benchmarks.py",
    "tests/runtime/test_hlo.py",
    "tests/runtime/test_ratchets.py",
    "tests/language/test_regressions.py",
    "tests/lowering/test_unroll_threefry.py",
    "tests/gradients/test_gradients.py",
    "tests/gradients/test_gradients_jax.py",
    "tests/differential/test_independence.py",
    "tests/types/test_types.py",
    "tests/language/test_builtins.py",
    "tests/language/test_cases_jax.py",
    "tests/language/test_cases_language.py",
    "tests/language/test_cases_paper.py",
)
# Suites of which a usual run takes one case in so many (0: none), unless `--full` asks for all. Every named program is
# in one of the first five: ways to run it that are not the default one.
SHARES = {
    "tests/differential/test_differential.py::test_under_jit": 6,
    "tests/differential/test_differential.py::test_local_strategy": 6,
    "tests/differential/test_differential.py::test_schedules_and_emitters": 3,
    "tests/runs/test_map.py::TestEveryProgram::test_fewer_lanes": 6,
    "tests/runtime/test_schedule.py::test_modes": 6,
    "tests/examples/test_gallery.py::test_program": 3,
    "tests/runtime/test_frames.py::test_against_a_model": 0,
    "tests/runtime/test_frames.py::test_some_variables_are_read_as_all_are": 2,
    "tests/runtime/test_modes.py::test_a_policy_may_name_a_block_that_no_lane_waits_for": 2,
    "tests/runtime/test_modes.py::test_an_inner_loop_does_not_run_when_all_lanes_have_left": 2,
    "tests/runtime/test_modes.py::test_arrays_without_elements": 2,
    "tests/runtime/test_modes.py::test_keys_complex_numbers_and_truth_through_frames": 4,
    "tests/runtime/test_modes.py::test_narrow_types_in_every_mode": 10,
    "tests/runtime/test_modes.py::test_stores_in_part_beside_calls": 10,
    "tests/runtime/test_indexed_access.py::TestStores::test_one_element": 2,
    "tests/runtime/test_word_packing.py::test_all_bits_come_back": 3,
    "tests/api/test_aot.py::TestExport::test_every_program": 24,
    "tests/api/test_aot.py::TestExport::test_symbolic": 4,
    "tests/api/test_out_axes.py::TestWithoutLanes::test_never_claims_too_much": 10,
    "tests/suite/test_benchmarks.py::test_every_way_to_solve_a_problem_agrees": 4,
    "tests/language/test_builtins.py::test_scalars": 4,
    "tests/language/test_builtins.py::test_what_to_write_for_math": 4,
    "tests/language/test_cases_jax.py::test_an_arm_that_no_lane_takes_is_not_run": 2,
    "tests/language/test_cases_paper.py::test_fib": 4,
    "tests/diagnostics/test_pages.py::test_the_good_program_runs": 4,
    "tests/compiler/test_compile_growth.py::test_the_passes_are_linear": 6,
    "tests/compiler/test_compile_growth.py::test_what_xla_gets_is_linear": 6,
    "tests/differential/test_differential.py::test_all_schedules_and_emitters": 16,
    "tests/differential/test_differential.py::test_every_stage_verifies_and_interprets": 3,
    "tests/differential/test_differential.py::test_local_strategy_on_other_lane_counts": 4,
    "tests/lowering/test_unroll_threefry.py::TestBits::test_bits_of_every_width_and_shape": 3,
    "tests/lowering/test_unroll_threefry.py::TestBits::test_arrays_of_keys": 2,
    "tests/lowering/test_unroll_threefry.py::TestBits::test_keys": 4,
    "tests/lowering/test_unroll_threefry.py::TestPrograms::test_lanes_draw_what_the_plain_function_draws": 2,
    "tests/language/test_fail.py::test_the_others_are_not_disturbed": 2,
    "tests/diagnostics/test_followed_helps.py::test_it_works": 3,
    "tests/differential/test_fuzz.py::test_a_wrong_stage_is_named_and_the_program_shrunk": 0,
    "tests/differential/test_fuzz.py::test_all_stages_mean_what_plain_python_means": 20,
    "tests/differential/test_fuzz.py::test_batched_programs_mean_what_plain_python_means": 20,
    "tests/differential/test_fuzz.py::test_derivatives_are_those_of_plain_python": 20,
    "tests/gradients/test_gradients.py::test_cotangents": 40,
    "tests/gradients/test_gradients.py::test_cotangents_however_it_runs": 140,
    "tests/gradients/test_gradients.py::test_cotangents_of_what_lanes_share": 40,
    "tests/gradients/test_gradients.py::test_cotangents_under_jit": 70,
    "tests/gradients/test_gradients.py::test_elements_of_vmap": 70,
    "tests/gradients/test_gradients.py::test_in_64_bits": 70,
    "tests/gradients/test_gradients.py::test_tangents": 70,
    "tests/gradients/test_gradients_edges.py::test_elements_on_different_ways": 12,
    "tests/gradients/test_gradients_edges.py::test_export_for_any_number_of_lanes": 4,
    "tests/gradients/test_gradients_edges.py::test_export_with_a_matrix_that_lanes_share": 2,
    "tests/gradients/test_gradients_edges.py::test_vmap_over_no_elements": 4,
    "tests/gradients/test_gradients_edges.py::test_what_is_linear_is_its_own_derivative": 4,
    "tests/gradients/test_gradients_jax.py::test_derivatives": 40,
    "tests/gradients/test_gradients_jax.py::test_gradients_of_what_holds_a_batch": 40,
    "tests/gradients/test_gradients_jax.py::test_gradients_of_vmap": 12,
    "tests/gradients/test_gradients_jax.py::test_numerically": 4,
    "tests/gradients/test_gradients_jax.py::test_reverse_mode_of_derivatives_is_refused": 6,
    "tests/gradients/test_gradients_jax.py::test_vmap_of_derivatives": 60,
    "tests/gradients/test_gradients_jax.py::test_vmap_of_vmap": 0,
    "tests/gradients/test_gradients_lanes.py::test_a_lane_alone": 10,
    "tests/gradients/test_gradients_lanes.py::test_a_lane_that_fails_has_no_gradient": 2,
    "tests/gradients/test_gradients_lanes.py::test_lanes_without_cotangents_change_nothing": 20,
    "tests/gradients/test_gradients_lanes.py::test_no_lanes": 4,
    "tests/gradients/test_gradients.py::test_the_others_give_no_floating_numbers": 4,
    "tests/differential/test_fuzz.py::test_programs_hold_every_construct": 0,
    "tests/diagnostics/test_helper_helps.py::test_it_works": 2,
    "tests/runtime/test_hlo.py::test_a_sampler_copies_no_frames": 2,
    "tests/runtime/test_hlo.py::test_frames_are_not_copied_in_a_program_of_the_users": 2,
    "tests/runtime/test_hlo.py::test_neither_frames_nor_arrays_are_copied_in_the_loop": 4,
    "tests/differential/test_independence.py::test_debug_nans_does_not_see_inactive_lanes": 9,
    "tests/differential/test_independence.py::test_debug_nans_raises_for_what_a_lane_returns": 3,
    "tests/differential/test_independence.py::test_other_lanes_change_nothing": 12,
    "tests/runs/test_killed_runs.py::test_going_on_after_sigkill": 3,
    "tests/differential/test_local.py::TestHost::test_the_limit_is_that_of_the_other_strategy": 0,
    "tests/differential/test_local.py::TestStaged::test_steps_of_a_lane_do_not_depend_on_the_others": 0,
    "tests/runs/test_map.py::TestEveryProgram::test_chunks": 18,
    "tests/runs/test_map.py::TestEveryProgram::test_inside_jit": 12,
    "tests/runs/test_map.py::TestGrowth::test_deep_recursion": 4,
    "tests/runs/test_map.py::TestGrowth::test_in_every_width": 6,
    "tests/language/test_print.py::test_lanes_print_what_the_plain_function_prints": 6,
    "tests/runtime/test_ratchets.py::test_gallery": 3,
    "tests/runs/test_runs.py::TestAdvance::test_every_program": 14,
    "tests/runtime/test_schedule.py::TestPoliciesOfUsers::test_running_nothing_ends_all_the_same": 2,
    "tests/runtime/test_schedule.py::TestPoliciesOfUsers::test_they_can_be_ours": 2,
    "tests/runtime/test_schedule.py::test_modes_under_other_policies": 5,
    "tests/runtime/test_schedule.py::test_policies": 6,
    "tests/language/test_sweep.py::test_a_lane_gives_what_python_gives_or_is_refused": 6,
    "tests/language/test_surprises.py::test_a_long_expression_in_the_file": 0,
    "tests/types/test_types.py::test_a_join_is_what_where_gives": 4,
    "tests/types/test_types.py::test_straight_programs_have_the_types_of_vmap": 3,
    "tests/types/test_types.py::test_what_runs_has_the_type_and_the_values_of_the_plain_function": 4,
    "tests/examples/test_treelstm_peers.py::test_all_ways_to_train_agree": 0,
    "tests/examples/test_treelstm_train.py::TestTraining::test_a_step_by_pcbatch_is_that_by_hand": 0,
    "tests/examples/test_treelstm.py::test_every_lane_has_its_own_gradient": 0,
    "tests/examples/test_treelstm.py::test_the_gradient_of_the_batched_recursion": 2,
    "tests/examples/test_treelstm_train.py::TestResuming::test_so_it_is_with_the_gradient_of_the_recursion": 0,
    "tests/examples/test_treelstm_peers.py::test_the_backward_pass_by_hand": 2,
    "tests/runtime/test_jax_modes.py::test_checking_leaks": 0,
    "tests/runtime/test_jax_modes.py::test_checking_leaks_in_map_and_jvp": 0,
    "tests/runtime/test_ratchets.py::test_named_programs": 6,
    "tests/compiler/test_persistent_cache.py::test_every_process_makes_the_same_program": 0,
    "tests/api/test_pytrees.py::TestStructures::test_in_and_out": 3,
    "tests/api/test_pytrees.py::TestWeakTypes::test_straight_lines_are_as_under_vmap": 3,
    "tests/api/test_pytrees.py::TestStructures::test_shared": 3,
    "tests/api/test_out_axes.py::TestOutAxes::test_as_vmap": 2,
    "tests/devices/test_meshes.py::test_inside_shard_map_and_outside_again": 2,
    "tests/lowering/test_rng_by_lane.py::test_lanes_draw_what_the_plain_function_draws": 3,
    "tests/runtime/test_limits.py::TestMachine::test_a_run_in_chunks": 3,
    "tests/language/test_regressions.py::test_inner_loop_in_a_block_that_no_lane_waits_for": 2,
    "tests/language/test_cases_jax.py::test_arms_with_loops_that_end_on_their_own_side_only": 4,
    "tests/runtime/test_indexed_access.py::TestStores::test_any_type": 3,
    "tests/runtime/test_indexed_access.py::TestLoads::test_one_element": 3,
    "tests/examples/test_nuts.py::test_devices_do_not_change_a_chain": 0,
    "tests/examples/test_nuts_adapt.py::test_warm_up_learns_scale_and_step": 0,
    "tests/examples/test_treelstm_train.py::TestResuming::test_killed_at_any_moment": 0,
    "tests/examples/test_treelstm_peers.py::test_all_ways_to_the_classes_agree": 0,
    "tests/runtime/test_xla_options.py::test_the_same_without_the_option": 0,
    "tests/report/test_profile.py::TestExplanation::test_equal_in_every_process": 0,
    "tests/gradients/test_gradients_jax.py::test_without_jit_and_with_debug_nans": 0,
    "tests/lowering/test_rng_by_lane.py::test_draws_have_derivatives_all_around": 2,
    "tests/runs/test_map.py::test_any_sizes_of_an_iterator": 0,
    "tests/devices/test_meshes.py::test_stacks_grow_on_several_devices": 0,
    "tests/runtime/test_jax_modes.py::test_default_device": 0,
}

# Files whose tests compile a machine each: of other suites with several cases there, a usual run takes one in three.
DEAR = (
    "tests/examples/",
    "tests/lowering/test_rng_by_lane.py",
    "tests/runtime/",
    "tests/api/test_aot.py",
    "tests/api/test_api.py",
    "tests/api/test_out_axes.py",
    "tests/suite/test_benchmarks.py",
    "tests/language/test_builtins.py",
    "tests/lowering/test_unroll_threefry.py",
    "tests/language/test_fail.py",
    "tests/test_gradients",
    "tests/runtime/test_hlo.py",
    "tests/differential/test_independence.py",
    "tests/runtime/test_jax_modes.py",
    "tests/differential/test_local.py",
    "tests/runs/test_map.py",
    "tests/compiler/test_persistent_cache.py",
    "tests/language/test_print.py",
    "tests/report/test_profile.py",
    "tests/api/test_pytrees.py",
    "tests/language/test_regressions.py",
    "tests/test_runs",
    "tests/runtime/test_limits.py",
    "tests/runtime/test_schedule.py",
    "tests/report/test_named_scopes.py",
    "tests/gradients/test_transforms.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long suites can be left out by the name of a marker; of some a usual run takes a share."""
    for item in items:
        if item.nodeid.startswith(REPEATED):
            item.add_marker("repeated")
    named = any("::" in argument for argument in config.args)  # somebody wants just that
    if not (config.getoption("full") or named):
        cases, counted = Counter(item.nodeid.partition("[")[0] for item in items), Counter[str]()
        chosen = [not _is_left_out(item, counted, cases) for item in items]
        left = [item for item, keep in zip(items, chosen, strict=True) if not keep]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item, keep in zip(items, chosen, strict=True) if keep]


def _is_left_out(item: pytest.Item, counted: Counter[str], cases: Counter[str]) -> bool:
    """`counted`: the cases of each suite so far; `cases`: how many there are."""
    suite = item.nodeid.partition("[")[0]
    share = SHARES.get(suite, 3 if suite.startswith(DEAR) and cases[suite] >= 3 else 1)
    counted[suite] += 1
    offset = list(SHARES).index(suite) if suite in SHARES else 0
    return share == 0 or (counted[suite] + offset) % share != 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Lines are not counted in the long suites where counting is dear: by the tracer of coverage on Python 3.11.

    (Not by pytest-cov's `no_cover`: stopping its tracer lets that of the process go on, which costs as much.)
    """
    tracer = sys.gettrace()
    if not type(tracer).__module__.startswith("coverage") or not item.nodeid.startswith((*REPEATED, *SHARES, *LONG)):
        return (yield)
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]
    try:
        return (yield)
    finally:
        sys.settrace(tracer)
        threading.settrace(tracer)


@pytest.fixture(autouse=True)
def dtype_promotion(request: pytest.FixtureRequest) -> Iterator[None]:
    """Strict dtype promotion, unless the test is marked `promotion("standard")`."""
    marker = request.node.get_closest_marker("promotion")
    with jax.numpy_dtype_promotion(marker.args[0] if marker else "strict"):
        yield
