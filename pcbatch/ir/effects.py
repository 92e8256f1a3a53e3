"""Effects of a primitive in Python that its value does not show; the front end notes them for the checks of ownership.

They stand at the operation, since passes before those checks copy, move and rename operations; `flatten` drops them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pcbatch.diagnostics.diagnostic import Loc


@dataclass(frozen=True, slots=True)
class Change:
    """A change in place that Python makes where lanes compute a new value.

    Attributes:
        position: that of the variable among the inputs of the expression.
        inner: whether an object inside the variable's own changes.
        sure: false for `x += v`, which changes an object of some types only.
        removes: whether the value of the operation has been taken out of the object.
        depth: the number of keys that lead to the parts that may become other objects; parts on the way to them stay.
        grows: whether all parts stay where they are, and more come behind them.
        augments: whether it is `x[i] += v`: if both are lists, the object at `x[i]` changes.
        unclear: whether the types of variables do not tell whether it does, as for `x[i] *= 2` and `x[i] += [1]`.
        method: whether a method makes the change: one of a class of the user's may change objects inside its own.
        spreads: whether elements of the other inputs are stored, and these themselves only by methods of the user's.
        decided: whether it is `x += v` that has been found to change an object, of one type at least.
    """

    position: int
    inner: bool = False
    sure: bool = True
    removes: bool = False
    depth: int = 1
    grows: bool = False
    augments: bool = False
    unclear: bool = False
    method: bool = False
    spreads: bool = False
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Effects:
    """The effects of one primitive.

    Attributes:
        changes: variables whose objects Python changes in place. The last destinations of the operation, one for each,
            receive the changed objects.
        takes: the positions of iterables of `for` loops of which the operation reads an element that is not read again.
        is_part: whether the value is the object at the keys `ins[1:]`, variables that nothing else assigns, in that of
            the variable `ins[0]`. Only the front end asks for that (`frontend/build/links.py`).
        syncs: whether the operation gives a variable the value that it has in Python after a change of a part.
        back: whether a part of a variable, which a call has changed by another name, is stored where it was.
        alone: likewise, and nothing else of the variable took part in that, so no object inside has moved.
        apart: whether the values are parts of the variable `ins[0]`, none of them at the place of another.
        same: whether the value is the object of the variable `ins[0]` itself, in another form.
        streams: the places of comprehensions, and of builtins that consume an iterable, which may be loops instead
            (`Decisions.expanded`).
    """

    changes: tuple[Change, ...] = ()
    takes: tuple[int, ...] = ()
    is_part: bool = False
    syncs: bool = False
    back: bool = False
    alone: bool = False
    apart: bool = False
    same: bool = False
    streams: tuple[Loc, ...] = field(default=(), compare=False)


NO_EFFECTS = Effects()
