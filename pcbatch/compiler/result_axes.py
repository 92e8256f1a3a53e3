"""The axes of the lanes in the leaves of a program's result."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax

from pcbatch.call.out_axes import checked, is_axis
from pcbatch.compiler.pipeline import Stages
from pcbatch.data.host.host_forms import container_leaves, in_host_form
from pcbatch.data.host.ragged_forms import places
from pcbatch.lowering.analysis.divergence import same_results
from pcbatch.lowering.typing.leaves import array_leaves
from pcbatch.lowering.typing.pytree import flatten


@dataclass(frozen=True)
class OutAxes:
    """The axes of the lanes in the leaves of a result, inferred when they are first asked for: inside a `vmap`, whose
    elements may differ in what their lanes share, nobody asks.

    Attributes:
        function: the name of the function, for messages.
        stages: the program.
        wanted: the option `out_axes`.
        shared: the parameters that all lanes share.
    """

    function: str
    stages: Stages
    wanted: Any
    shared: frozenset[str]

    @cached_property
    def leaves(self) -> tuple[int | None, ...]:
        """The axis in each leaf, None where it comes without lanes.

        Raises:
            UsageError: the option does not fit the result.
        """
        result = self.stages.result
        assert result is not None
        if is_axis(self.wanted) and self.wanted == 0:
            return (0,) * len(result.leaves)
        shared = {leaf for p in self.shared for leaf, _ in array_leaves(p, self.stages.params[p])}
        same = same_results(self.stages.cfg, frozenset(shared))
        return checked(self.function, self.wanted, result, same, self.containers)

    @cached_property
    def containers(self) -> tuple[bool, ...]:
        """The mask of the leaves that are parts of lists, dicts or sets of the lanes."""
        result = self.stages.result
        assert result is not None
        return tuple(container_leaves(jax.tree.unflatten(result.tree, list(range(len(result.leaves))))))


def with_forms(tree: Any) -> Any:
    """Return the structure of results with the forms of containers, if these have the same leaves in the same order;
    None where a form computes with them."""
    leaves = [object() for _ in range(tree.num_leaves)]
    with suppress(AttributeError, TypeError):  # of objects that are no arrays
        found, forms = flatten(in_host_form(jax.tree.unflatten(tree, leaves)))
        return forms if found == leaves and places(forms) is not None else None
    return None
