"""The list of behaviours for `tools/cases.py`: a group, a sentence, and the node ids of the tests that show it.

`programs(...)` stands for named programs of `tests/programs`, each compared with plain Python in every lane: on 1, 2, 7
and 64 lanes, and with the strategy "local". An id without brackets stands for all parameters of its test.
"""

from __future__ import annotations

from dataclasses import dataclass

_DIFFERENTIAL = "tests/differential/test_differential.py"
_LANGUAGE = "tests/language/test_cases_language.py"
_JAX = "tests/language/test_cases_jax.py"
_PAPER = "tests/language/test_cases_paper.py"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One line of the table."""

    group: str
    text: str
    tests: tuple[str, ...]


def programs(*names: str) -> tuple[str, ...]:
    """The comparisons of these programs with plain Python."""
    kinds = ("test_default_options_on_every_lane_count", "test_local_strategy")
    return tuple(f"{_DIFFERENTIAL}::{kind}[{name}]" for name in names for kind in kinds)


def golden(*names: str) -> tuple[str, ...]:
    """The messages about these programs of `tests/errors`."""
    return tuple(f"tests/diagnostics/test_golden_errors.py::test_rendering[{name}]" for name in names)


def of(file: str, *tests: str) -> tuple[str, ...]:
    """Tests of one file."""
    return tuple(f"{file}::{test}" for test in tests)


def frontend(file: str, *tests: str) -> tuple[str, ...]:
    """Tests of one file of `tests/frontend`."""
    return of(f"tests/frontend/test_{file}.py", *tests)


def language(*tests: str) -> tuple[str, ...]:
    """Tests of `tests/language/test_language.py`."""
    return of("tests/language/test_language.py", *tests)


_STATEMENTS = {
    "`while`": programs("countdown", "collatz", "newton_sqrt"),
    "`for i in range(n)` with bounds of the lane": programs(
        "for_range", "for_range_two_bounds", "for_range_bounds_once"
    ),
    "ranges that count down": programs("for_range_negative_step"),
    "ranges with a step of the lane; a step of zero raises": (
        *programs("range_with_a_step_of_the_lane", "guarded_steps"),
        *frontend("support", "test_range_length_with_a_step_of_the_lane"),
    ),
    "`for row in array`": programs("for_rows"),
    "`for` over tuples": (
        *programs("loop_over_a_display", "loop_over_different_shapes"),
        f"{_LANGUAGE}::test_loops_over_known_values[tuple]",
    ),
    "`for` over lists": (*programs("list_that_grows"), f"{_LANGUAGE}::test_loops_over_known_values[list]"),
    "`for` over dicts": (*programs("loop_over_a_dict"), f"{_LANGUAGE}::test_loops_over_known_values[dict]"),
    "`zip`": programs("loop_over_two_arrays", "loop_with_enumerate_and_zip"),
    "`enumerate`": programs("for_enumerate", "for_enumerate_start_unpack"),
    "`reversed`": programs("loop_over_reversed_range"),
    "`break`": programs("for_break_keeps_value"),
    "`continue`": programs("for_continue", "continue_in_while"),
    "`else` on `for`": of(_LANGUAGE, "test_else_of_both_kinds_of_loops"),
    "`else` on `while`": (*programs("while_else"), *of(_LANGUAGE, "test_else_of_both_kinds_of_loops")),
    "`x += 1` and its kin": (
        *programs("augmented"),
        *frontend("statements", "test_augmented_and_annotated_assignment"),
    ),
    "`del`": programs("deleted_and_assigned_again"),
    "`pass`, docstrings, annotations": of(_LANGUAGE, "test_docstrings_annotations_and_pass"),
    "`match` on values": programs("match_on_numbers"),
    "`match` on tuples": programs("match_on_structure", "match_with_return_and_break"),
    "starred unpacking": programs("starred_targets"),
    "`pcbatch.unroll`": (*programs("unrolled_recursion", "nested_unrolled_loops"), *language("TestUnrolling")),
    "`assert` for each lane, with its message; status ASSERTION": (
        *programs("assert_at_entry", "message_of_many_kinds"),
        *of("tests/language/test_fail.py", "test_status_and_values", "test_the_message"),
    ),
    '`raise SomeError("...")`': (
        *programs("raise_in_a_loop", "raise_in_recursion", "several_kinds"),
        *golden("PCB904_raise"),
    ),
    "`print` for active lanes only": (
        *of(_LANGUAGE, "test_prints_of_active_lanes_only"),
        *of("tests/language/test_print.py", "test_lanes_print_what_the_plain_function_prints", "test_the_exact_text"),
    ),
    "`jax.debug.print` for active lanes only": of(_LANGUAGE, "test_prints_of_active_lanes_only"),
    "a function without `return` is refused": golden("PCB110", "PCB110_bare_return", "PCB111"),
}

_EXPRESSIONS = {
    "`and`, `or`, `not` with short circuit": programs("short_circuit", "short_circuit_values", "short_circuit_loop"),
    "ternaries": programs("ternaries", "calls_in_nested_ternaries"),
    "chained comparisons": programs("chained_comparisons"),
    "subscripts and slices": programs("slices_and_subscripts"),
    "`.at[].set`": programs("bubble_sort", "write_through_recursion"),
    "walrus": programs("walrus_in_conditions", "walrus_and_evaluation_order"),
    "f-strings in messages": of(_LANGUAGE, "test_messages_are_f_strings_of_the_lane"),
    "comprehensions of known length": (
        *programs("comprehension_inside"),
        *of(_LANGUAGE, "test_comprehensions_of_known_length"),
    ),
    "known Python values: strings, None, closures, `if x is None`, isinstance": (
        *programs("optional_value", "loop_over_strings"),
        *of(_LANGUAGE, "test_known_values_decide_while_compiling"),
    ),
    "a local with the name of a module global": (
        *programs("global_shadowed"),
        *of(_LANGUAGE, "test_a_local_may_have_the_name_of_a_global"),
        *golden("PCB201_global"),
    ),
    "dicts": programs("dict_values", "dict_through_callee"),
    "tuples": programs("tuple_values"),
    "namedtuples": programs("namedtuple_through_callee", "namedtuple_nested"),
    "dataclasses": programs("dataclass_values"),
    "registered pytrees": programs("pytree_argument"),
}

_FUNCTIONS = {
    "keyword and default arguments": programs("defaults_and_keyword_only", "default_reassigned"),
    "`*args` of fixed length": (
        *programs("any_number_of_arguments"),
        *language("test_any_number_of_arguments_of_the_entry"),
    ),
    "recursion through keyword arguments": programs("keyword_recursion"),
    "mutual recursion, calls in conditions and arguments": programs(
        "three_cycle", "calls_in_conditions", "calls_in_arguments"
    ),
    "closures": programs("cell_read", "closure_attributes", "mutual_closure"),
    "nested `def`": programs("nested_gradient"),
    "lambdas": programs("lambda_inside", "lambda_entry"),
    "methods with a static self": (
        *programs("method_of_a_constant_object", "recursive_method"),
        *language("TestMethods"),
    ),
    "`@staticmethod`": language("TestMethods::test_static_methods_either_way"),
    "`@classmethod`": language("TestMethods::test_class_methods_either_way"),
    "a batched function as a static argument": language("TestFunctionsAsValues::test_static_argument_of_the_entry"),
    "a batched function in a module-level table": (
        *programs("functions_as_arguments"),
        *of(_LANGUAGE, "test_functions_from_a_table"),
    ),
    "`functools.partial` of a batched function": of(
        _LANGUAGE,
        "test_a_partial_of_a_batched_function",
        "test_a_partial_that_fixes_more_than_named_parameters",
        "test_a_partial_that_does_not_fit_is_refused",
    ),
    "helpers without decorator are primitives": (
        *programs("helper_reductions"),
        *of(_LANGUAGE, "test_a_helper_without_decorator_is_a_primitive"),
    ),
    "a helper that branches on a lane is refused, with `batch` or `inline` as the way out": golden("PCB305"),
    "batches of no lanes": (*of(_LANGUAGE, "test_no_lanes"), *of("tests/runtime/test_limits.py", "TestZeroLanes")),
}

_SOURCES = {
    "functions from notebooks": frontend(
        "sources", "test_a_session_of_ipython", "test_names_of_notebook_cells", "test_a_cell_that_runs_twice"
    ),
    "functions from `exec` with linecache": frontend("source", "test_exec_with_linecache"),
    "files with CRLF": frontend(
        "sources", "test_forms_of_files[crlf]", "test_forms_of_files[byte order mark and crlf]"
    ),
    "files with tabs": frontend("sources", "test_forms_of_files[tabs]"),
    "non-ASCII identifiers": frontend(
        "sources", "test_whole_programs_with_other_alphabets", "test_identifiers_are_normalised_as_python_does"
    ),
    "decorators above ours": frontend("sources", "test_decorators_above"),
    "decorators below ours": frontend("sources", "test_decorators_below"),
    "functions in classes and functions": frontend("source", "test_methods_and_functions_in_functions"),
}

_TYPES = {
    "joins where paths meet": of("tests/types/test_types.py", "test_the_rule", "test_a_join_is_what_where_gives"),
    "weak scalars": programs("weak_accumulator", "weak_integer_product", "weak_against_small"),
    "integers become floats": (
        *programs("call_result_is_widened", "primitive_is_widened"),
        *of(_LANGUAGE, "test_one_variable_through_many_types"),
    ),
    "bools and integers": programs("bool_arithmetic", "boolean_loop_variable", "equal_constants_of_other_types"),
    "complex numbers": programs("complex_values", "mandelbrot"),
    "typed PRNG keys": (
        *programs("random_walk", "random_tree", "key_carried_as_result"),
        *of("tests/differential/test_local.py", "test_typed_keys_through_host_calls"),
    ),
    "64-bit mode on and off": (*programs("fib_i64", "fib_f64"), *of("tests/runtime/test_limits.py", "TestDtypes")),
    "bfloat16 and float16": (
        *programs("half_precision"),
        *of("tests/types/test_types.py", "test_failed_lanes_of_every_kind_of_type"),
    ),
}

_BATCHING = {
    "arms whose loops end on their own side only: never under vmap, here they do": (
        *of(_JAX, "test_arms_with_loops_that_end_on_their_own_side_only"),
        *of("tests/runtime/test_limits.py", "TestJunk::test_loops_that_end_only_on_their_own_side"),
    ),
    "an arm that no lane takes is not run": of(_JAX, "test_an_arm_that_no_lane_takes_is_not_run"),
    "a dear arm is run for nobody": of(_JAX, "test_a_dear_arm_is_not_visited"),
    "a conditional per lane is no selection": of(
        "tests/language/test_fail.py", "test_an_arm_that_fails_is_not_turned_into_a_selection"
    ),
    "recursion on values of a lane": of(_JAX, "test_recursion_on_values"),
    "recursion under `jit`": of(
        _DIFFERENTIAL, *(f"test_under_jit[{name}]" for name in ("fib", "ackermann", "is_even"))
    ),
    "recursion of any depth": of("tests/runtime/test_limits.py", "TestGrowth::test_deep_recursion"),
    "products over lanes stay one matrix product": (
        *of(_JAX, "test_products_of_lanes_with_a_shared_matrix_are_one_product"),
        *of("tests/runtime/test_hlo.py", "test_shared_matrix_is_one_gemm", "test_closed_over_matrix_is_one_gemm"),
    ),
    "a lane that is done does no work": of(_JAX, "test_an_iteration_count_of_its_own"),
}

_FIRST = {
    "fib of (6, 7, 8, 9) and (3, 7, 4, 5), four dtypes, both strategies, and `.plain`": of(_PAPER, "test_fib"),
    "even and odd by mutual recursion, of 0 too": of(_PAPER, "test_even_and_odd_including_zero"),
    "`a, b, c = [1, 2, 3]`": (*of(_PAPER, "test_a_destructured_list_of_numbers"), *programs("destructuring")),
    "nested destructuring": programs("destructuring_nested"),
    "results that are ignored": programs("ignored_call_results"),
    "namedtuples as arguments, through helpers and callees, as results": (
        *of(_PAPER, "test_pea_nuts"),
        *programs("namedtuple_through_callee"),
    ),
    "leaves of different rank": programs("leaves_of_different_rank"),
    "one-armed and nested `if`, `if True:`": (
        *of(_PAPER, "test_one_armed_nested_and_constant_conditions"),
        *programs("nested_ifs", "constant_conditions"),
    ),
    "helpers that reduce over axes of one example": programs("helper_reductions"),
    "tail recursion (iota_sum) in constant stack": of(
        "tests/runtime/test_counts.py", "test_tail_recursion_keeps_nothing", "test_tail_calls_run_in_constant_stack"
    ),
    "subtractive gcd with swapped parameters": (
        *of(_PAPER, "test_gcd_with_its_parameters_swapped"),
        *programs("gcd_subtractive"),
    ),
    "the addition of fib runs exactly 20 times": of(
        "tests/runtime/test_counts.py",
        "test_the_addition_in_fib_runs_twenty_times",
        "test_counts_do_not_depend_on_the_emitter",
    ),
    "a helper is traced once for each place and signature": of(
        "tests/runtime/test_counts.py", "test_a_helper_is_traced_once_per_signature"
    ),
    "one compilation per signature": of(
        "tests/runtime/test_counts.py", "test_a_signature_is_compiled_once_and_several_are_kept"
    ),
    "pea nuts": (*of(_PAPER, "test_pea_nuts"), *programs("pea_nuts", "pea_nuts_closed")),
    "masked pushes and pops against a model": of("tests/runtime/test_frames.py", "test_against_a_model"),
    "NUTS keeps its target, its chains and its invariants": ("tests/examples/test_nuts.py",),
}

_GROUPS = {
    "Statements": _STATEMENTS,
    "Expressions and values": _EXPRESSIONS,
    "Functions": _FUNCTIONS,
    "Sources": _SOURCES,
    "Types": _TYPES,
    "What batching by vmap cannot do": _BATCHING,
    "What the first implementation was tested with": _FIRST,
}
BEHAVIOURS = tuple(Behaviour(group, text, tests) for group, found in _GROUPS.items() for text, tests in found.items())
