"""The unit of a function whose tree is rewritten in simpler words, one kind of construct after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType

from pcbatch.frontend.source.callee import Statics, Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.make_unit import make_unit
from pcbatch.frontend.source.rewrites.boxes.boxed_functions import write_boxes
from pcbatch.frontend.source.rewrites.caught_exceptions import write_caught
from pcbatch.frontend.source.rewrites.cells import write_cells
from pcbatch.frontend.source.rewrites.clear_changes import call_methods, name_receivers, write_changes
from pcbatch.frontend.source.rewrites.function_tables import write_out_choices
from pcbatch.frontend.source.rewrites.function_values import write_function_values
from pcbatch.frontend.source.rewrites.kept.grouped_elements import write_groups
from pcbatch.frontend.source.rewrites.kept.kept_generators import write_kept
from pcbatch.frontend.source.rewrites.kept.named_generators import write_named_generators
from pcbatch.frontend.source.rewrites.kept.tuple_displays import write_tuples
from pcbatch.frontend.source.rewrites.mapped_calls import write_out
from pcbatch.frontend.source.rewrites.memos import write_memos
from pcbatch.frontend.source.rewrites.method_calls import write_out_methods
from pcbatch.frontend.source.rewrites.none_defaults import write_none_defaults
from pcbatch.frontend.source.rewrites.starred_calls import write_starred
from pcbatch.frontend.source.rewrites.stored_defaults import write_stored_defaults
from pcbatch.frontend.source.tree import Node
from pcbatch.frontend.source.unasked_orders import forget_orders

REWRITINGS = (
    write_named_generators,
    call_methods,
    write_memos,
    write_stored_defaults,
    write_caught,
    write_groups,
    name_receivers,
    write_out,
    write_out_choices,
    write_starred,
    write_kept,
    write_cells,
    write_tuples,
    write_function_values,
    write_out_methods,
    write_changes,
)


def in_simple_words(
    fn: FunctionType,
    helpers: Helpers,
    statics: Statics,
    target: Target,
    first: Sequence[Callable[[Unit], Node]] = (),
    last: Sequence[Callable[[Unit], Node]] = (),
) -> Unit:
    """Return the unit of a function, as `make_unit` does, after these rewritings of its tree between others."""
    unit = make_unit(fn, helpers, statics, target)
    rewritings: list[Callable[[Unit], Node]] = [
        write_boxes,
        *first,
        partial(write_none_defaults, statics=statics),
        *REWRITINGS,
        *last,
        partial(forget_orders, make_unit=lambda function: make_unit(function, helpers, {})),
    ]
    for rewriting in rewritings:
        if (node := rewriting(unit)) is not unit.node:
            unit = make_unit(fn, helpers, statics, target, node)
    helpers.units.append(unit)
    return unit
