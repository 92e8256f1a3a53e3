"""Values whose type may become wider while what they store stays as it is, as references to records do."""

from __future__ import annotations

from typing import Any


class Joinable:
    """A node of a pytree whose static data is a type, and of which None is one of the values."""

    __slots__ = ()

    def covering(self, other: Any) -> Any:
        """Return the static data that covers this value and another one, which may be None; None if there is none."""
        raise NotImplementedError

    def equals_plain(self, other: Any) -> bool:
        """Return whether this value may equal another one that is not joinable."""
        return False

    def tied(self, other: Any) -> Any:
        """Return whether the order of two tuples hangs on what follows these parts of theirs; None if `==` tells."""
        return None

    def like(self, other: Any) -> Any:
        """Return another value as one that may stand beside this one, where there is a form of it that may."""
        return other

    def typed(self, static: Any) -> Any:
        """Return this value with other static data."""
        raise NotImplementedError

    def classes(self) -> tuple[type, ...]:
        """Return the classes of the objects that this value may stand for."""
        return ()

    def only_class(self) -> type | None:
        """Return the class of all objects that this value may stand for; None if there are several, or none."""
        found = self.classes()
        return found[0] if len(found) == 1 else None

    def has_no_order(self, other: Any) -> Any:
        """Return whether `self < other` raises a TypeError, other than of what the two lead to."""
        raise NotImplementedError

    def ordered(self, op: Any, other: Any) -> Any:
        """Return `op(self, other)`; anything where it has no order."""
        raise NotImplementedError

    def present(self) -> Any:
        """Return this value where it is not None; the lane stops where it is."""
        return self

    @property
    def identity(self) -> Any:
        """The number that tells apart what this value may stand for; that of None is less than zero."""
        raise NotImplementedError

    @property
    def types(self) -> tuple[type, ...]:
        """The classes of the objects that this value, or those in a column, may stand for."""
        return self.classes()

    @property
    def may_be_none(self) -> bool:
        """Whether this value may stand for None."""
        return True

    def assumed(self) -> Any:
        """Return this value where it is not None; where it is, anything is read of it."""
        return self

    @staticmethod
    def none(static: Any, shape: tuple[int, ...]) -> Any:
        """Return what None is stored as: an array of a shape of them."""
        raise NotImplementedError


def joined(a: Any, a_lead: tuple[int, ...], b: Any, b_lead: tuple[int, ...]) -> tuple[Any, Any] | None:
    """Return two values, of which one is joinable, with the type that covers both; None if there is none."""
    if isinstance(a, Joinable) and not b_lead:
        b = a.like(b)
    elif isinstance(b, Joinable) and not a_lead:
        a = b.like(a)
    one, other = (a, b) if isinstance(a, Joinable) else (b, a)
    static = one.covering(other) if other is None or isinstance(other, Joinable) else None
    if static is None:
        return None
    x, y = (one.none(static, k) if v is None else v.typed(static) for v, k in ((a, a_lead), (b, b_lead)))
    return x, y
