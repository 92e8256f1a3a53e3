"""Requests: the arguments of one example each. Those of one kind can be answered by one call."""

from __future__ import annotations

import operator
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from pcbatch.ask.answers import Outcome, Values
from pcbatch.ask.arena import Row
from pcbatch.ask.leaves import check_axis, leaves_of, own_leaf, shared_leaf, told, type_of
from pcbatch.ask.likeness import Likeness, likeness
from pcbatch.call.arguments import Arguments
from pcbatch.call.array_leaves import has_hash
from pcbatch.call.out_axes import axes_by_name, leaf_axes
from pcbatch.call.signature import bind, signature
from pcbatch.compiler.program import Program
from pcbatch.data.host.making import ragged
from pcbatch.jax_settings import settings
from pcbatch.lowering.typing.abstract_values import Known
from pcbatch.options import Options
from pcbatch.runtime.vm.raw_result import RawResult

HELD = 4  # of the arguments that requests share, so many sets are kept alive


class AskedPrograms(Protocol):
    """The programs of a function, as far as this folder needs them: `Programs`."""

    @property
    def options(self) -> Options:
        """The options of the function."""

    @property
    def fixed(self) -> tuple[Any, ...]:
        """The object of a method, which comes before the arguments."""

    @property
    def cache(self) -> dict[Any, Any]:
        """The compiled programs, which no other function has."""

    @property
    def recent(self) -> deque[Any]:
        """The latest `Repeated`, of all objects of a method; they keep alive what they share."""


class Asked(Protocol):
    """The function that is asked, as far as this folder needs it: a `Batched`."""

    __name__: str
    fn: Any

    @property
    def _programs(self) -> AskedPrograms:
        """The programs of the function, which tell it from others, and the object of a method."""

    def _arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], alone: bool = False
    ) -> tuple[Program, Arguments]:
        """Return the program for a batch, and its arguments as leaves; `alone`: lanes may run one after the other."""

    def _values(self, program: Program, raw: RawResult) -> Values:
        """Return the results of a run."""

    def _error(self, program: Program, raw: RawResult, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BaseException:
        """Return the error of a run of one example that has failed."""

    def _begun(self, args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float | None) -> Callable[[], Outcome]:
        """Begin a batch, and return what waits for its end."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The value of one example, or the error that it ended with."""

    value: Any
    error: BaseException | None = None

    def get(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error.with_traceback(None)  # one error may be that of many
        return self.value


@dataclass(frozen=True, slots=True)
class Kind:
    """The common part of requests that one call can answer.

    Attributes:
        asked: the function.
        held: what they share, and the object of a method.
        types: the structure of the arguments, types and shapes of what differs between examples.
        axes: of each leaf of each argument the axis for the examples; None: shared.
        trees: the structure of each argument, by name; None: a static one.
        shared: the shared leaves as they were when they were asked with, and static arguments. They are kept so that no
            other object gets their identity.
        settings: of JAX, where it was asked.
        keep: whether results stay on the device.
    """

    asked: Asked = field(compare=False)
    held: Hashable = field(repr=False)
    types: Hashable
    axes: dict[str, tuple[int | None, ...]] = field(compare=False, repr=False)
    trees: dict[str, Any] = field(compare=False, repr=False)
    shared: dict[str, Any] = field(compare=False, repr=False)
    settings: Hashable = field(repr=False)
    keep: bool

    @property
    def key(self) -> Hashable:
        """The key of the kind among those of its function; no object is kept alive by it."""
        return self.held, self.types


@dataclass(slots=True, eq=False)
class Request:
    """The arguments of one example, and the answer to it.

    Attributes:
        kind: what it has in common with others.
        leaves: the leaves of the arguments that are the example's own, in order.
        deliver: called with the answer, in the thread that runs batches.
        since: the time of `time.monotonic` at which it was made.
        dropped: whether nobody waits for the answer any more.
        passed: how many batches of other kinds went before it.
    """

    kind: Kind
    leaves: tuple[Any, ...]
    deliver: Callable[[Answer], None] = lambda answer: None
    since: float = field(default_factory=time.monotonic)
    dropped: bool = False
    passed: int = 0

    def settle(self, answer: Answer) -> None:
        """Deliver the answer, if somebody waits for it."""
        if not self.dropped:
            self.deliver(answer)


def request_of(asked: Asked, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool) -> Request:
    """Make a request.

    Args:
        asked: the function.
        args, kwargs: the arguments of ONE example, as the plain function takes them.
        keep: whether the result stays on the device.

    Raises:
        UsageError: arguments that do not fit the function, or that JAX cannot hold.
    """
    programs, now = asked._programs, settings()
    for repeated in () if kwargs else programs.recent.copy():  # other threads may ask meanwhile
        like = repeated.kind.keep is keep and repeated.kind.settings == now
        if like and (leaves := repeated.leaves(programs.fixed, args)) is not None:
            return Request(repeated.kind, leaves)
    request = _new_request(asked, args, kwargs, keep)
    if not kwargs and (repeatable := Repeated.of(request.kind, args)) is not None:
        _remember(programs.recent, repeatable)
    return request


def _remember(recent: deque[Any], new: Repeated) -> None:
    """Put a request in front of the latest ones, which keep alive what few of them share."""
    recent.appendleft(new)
    latest = recent.copy()
    held = list(dict.fromkeys(each.kind.held for each in latest))
    if len(held) > HELD:
        kept = [each for each in latest if each.kind.held in held[:HELD]]
        recent.clear()
        recent.extend(kept)  # what another thread adds meanwhile is remembered the next time


@dataclass(frozen=True, slots=True)
class Repeated:
    """A request that others repeat with other arrays: most do, and looking at them in full takes longer than a request
    of a small function does.

    Attributes:
        kind: of all of them.
        arguments: place, name and likeness of each, those first that are not shared: they are told apart sooner.
    """

    kind: Kind
    arguments: list[tuple[int, str, Likeness]]

    @staticmethod
    def of(kind: Kind, args: tuple[Any, ...]) -> Repeated | None:
        """Return what repeats a request; None where only a look at all of its arguments can tell."""
        if len(kind.trees) != len(args) or any(tree is None for tree in kind.trees.values()):
            return None
        found = [(name, likeness(arg, iter(kind.axes[name]))) for name, arg in zip(kind.trees, args, strict=True)]
        like = [(place, name, part) for place, (name, part) in enumerate(found) if part is not None]
        is_shared = {name: all(axis is None for axis in axes) for name, axes in kind.axes.items()}
        return Repeated(kind, sorted(like, key=lambda each: is_shared[each[1]])) if len(like) == len(args) else None

    def leaves(self, fixed: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the leaves of a request with these arguments, behind the object of a method; None if it is another."""
        other = any(map(operator.is_not, fixed, self.kind.asked._programs.fixed))
        if other or len(args) != len(self.arguments):
            return None
        own: list[list[Any]] = [[] for _ in args]
        if not all(is_like(args[place], own[place]) for place, _, is_like in self.arguments):
            return None
        named = zip(self.kind.trees, own, strict=True)
        return tuple([own_leaf(name, leaf) for name, leaves in named for leaf in leaves])


def _new_request(asked: Asked, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool) -> Request:
    programs = asked._programs
    args = (*programs.fixed, *args)
    bound = bind(asked.fn, args, kwargs)
    passed = list(bound.arguments)[len(programs.fixed) :]
    axes = axes_by_name(asked.fn, programs.options, bound, len(args))
    held: list[Any] = [*map(id, programs.fixed)]  # a method is another object at each use
    types: list[Any] = [id(programs.cache)]
    own: list[Any] = []
    axes_of: dict[str, tuple[int | None, ...]] = {}
    trees: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for name in passed:
        value = bound.arguments[name]
        if name in programs.options.static_argnames:
            trees[name], axes_of[name], shared[name] = None, (), value
            held.append((name, Known(value) if has_hash(value) else id(value)))
            continue
        leaves, trees[name] = leaves_of(value)
        axes_of[name] = tuple(leaf_axes(name, axes[name], jax.tree.unflatten(trees[name], range(len(leaves)))))
        shared[name] = []
        for leaf, axis in zip(leaves, axes_of[name], strict=True):
            shared[name].append(shared_leaf(name, leaf) if axis is None else None)
            if axis is None:
                held.append(told(shared[name][-1]))
            else:
                own.append(own_leaf(name, leaf))
                check_axis(name, own[-1], axis)
                types.append(type_of(own[-1]))
        types.append((name, trees[name], axes_of[name]))
    return Request(Kind(asked, tuple(held), tuple(types), axes_of, trees, shared, settings(), keep), tuple(own))


def stacked(requests: Sequence[Request], size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Make the arguments of one call for requests of one kind; the last one is repeated up to `size` examples."""
    kind = requests[0].kind
    rows = [request.leaves for request in requests]
    columns: Iterator[list[Any]] = map(list, zip(*rows, *[rows[-1]] * (size - len(rows)), strict=True))
    values: dict[str, Any] = {}
    for name, tree in kind.trees.items():
        if tree is None:
            values[name] = kind.shared[name]
            continue
        leaves = [
            known if axis is None else _column(next(columns), axis)
            for axis, known in zip(kind.axes[name], kind.shared[name], strict=True)
        ]
        values[name] = jax.tree.unflatten(tree, leaves)
    bound = signature(kind.asked.fn).bind_partial()
    fixed = kind.asked._programs.fixed
    bound.arguments.update({**dict(zip(bound.signature.parameters, fixed, strict=False)), **values})
    return bound.args[len(fixed) :], bound.kwargs


def _column(leaves: list[Any], axis: int) -> Any:
    match leaves[0]:
        case Row():
            return leaves[0].arena.gathered(leaves, axis)
        case str() | bytes() | list():
            return ragged(leaves)
        case jax.Array() if jnp.issubdtype(leaves[0].dtype, jax.dtypes.extended):
            return jnp.stack(leaves, axis)
    return np.stack([np.asarray(leaf) for leaf in leaves], axis)
