"""The methods of texts of the lane that ask for kinds of characters, or change the case of letters."""

from __future__ import annotations

import jax.numpy as jnp

from pcbatch.data.checks import limit
from pcbatch.data.origins import number
from pcbatch.data.texts.text import Text
from pcbatch.data.values import Value


class Letters(Text):
    """A text of the lane that knows letters: those of ASCII, and a lane with others stops."""

    __slots__ = ()
    strip: Value

    # Kinds of characters; of those beyond ASCII nothing is known.

    def isdigit(self) -> Value:
        """Return whether all characters are digits, and there is one."""
        return self._all("0", "9")

    isdecimal = isnumeric = isdigit

    def isalpha(self) -> Value:
        """Return whether all characters are letters, and there is one."""
        return self._all("a", "z", "A", "Z")

    def isalnum(self) -> Value:
        """Return whether all characters are letters or digits, and there is one."""
        return self._all("a", "z", "A", "Z", "0", "9")

    def islower(self) -> Value:
        """Return whether there are small letters and no capital ones."""
        return number(jnp.any(self._letters("a", "z")) & ~jnp.any(self._letters("A", "Z")))

    def isupper(self) -> Value:
        """Return whether there are capital letters and no small ones."""
        return number(jnp.any(self._letters("A", "Z")) & ~jnp.any(self._letters("a", "z")))

    def istitle(self) -> Value:
        """Return whether capital letters, and only these, begin words, and there is one."""
        capital, after = self._letters("A", "Z"), self._after_letters()
        return number(jnp.any(capital) & ~jnp.any(capital & after) & ~jnp.any(self._letters("a", "z") & ~after))

    def isprintable(self) -> Value:
        """Return whether no character is one that controls."""
        return number(jnp.all(self._letters(" ", "~") | ~self.valid()))

    def isidentifier(self) -> Value:
        """Return whether the text may be a name: letters, digits and `_`, and no digit first."""
        letters = self._letters("a", "z") | self._letters("A", "Z") | self._letters("_", "_")
        whole = jnp.all(letters | self._letters("0", "9") | ~self.valid())
        return number(whole & letters[0])

    def isspace(self) -> Value:
        """Return whether all characters are white space, and there is one."""
        limit(jnp.all((self.codes < 128) | ~self.valid()), "the text has letters beyond ASCII")
        return number(jnp.logical_and(self.length > 0, self.strip().length == 0))

    def isascii(self) -> Value:
        """Return whether all characters are those of ASCII."""
        return number(jnp.all((self.codes < 128) | ~self.valid()))

    def _all(self, *bounds: str) -> Value:
        limit(jnp.all((self.codes < 128) | ~self.valid()), "the text has letters beyond ASCII")
        inside = jnp.zeros(self.codes.shape, bool)
        for low, high in zip(bounds[::2], bounds[1::2], strict=True):
            inside |= (self.codes >= ord(low)) & (self.codes <= ord(high))
        return number(jnp.logical_and(self.length > 0, jnp.all(inside | ~self.valid())))

    def upper(self) -> Value:
        """Return the text in capital letters."""
        return self._shifted("a", "z", ord("A") - ord("a"))

    def lower(self) -> Value:
        """Return the text in small letters."""
        return self._shifted("A", "Z", ord("a") - ord("A"))

    casefold = lower

    def swapcase(self) -> Value:
        """Return the text with capital letters for small ones and the other way round."""
        return self._cased(~self._letters("A", "Z"))

    def capitalize(self) -> Value:
        """Return the text with a capital letter first and small ones behind it."""
        return self._cased(jnp.arange(self.codes.shape[0]) == 0)

    def title(self) -> Value:
        """Return the text with a capital letter at the start of each word."""
        return self._cased(~self._after_letters())

    def _after_letters(self) -> Value:
        """The mask of the characters behind a letter."""
        return jnp.roll(self._letters("a", "z") | self._letters("A", "Z"), 1) & (jnp.arange(self.codes.shape[0]) > 0)

    def _cased(self, capital: Value) -> Value:
        """The text with capital letters at some places and small ones at the others."""
        return self.made(jnp.where(capital, self.upper().codes, self.lower().codes), self.length)

    def _letters(self, low: str, high: str) -> Value:
        """The mask of the characters in a range of ASCII."""
        limit(jnp.all((self.codes < 128) | ~self.valid()), "the text has letters beyond ASCII")
        return (self.codes >= ord(low)) & (self.codes <= ord(high)) & self.valid()

    def _shifted(self, low: str, high: str, by: int) -> Value:
        limit(jnp.all((self.codes < 128) | ~self.valid()), "the text has letters beyond ASCII")
        inside = (self.codes >= ord(low)) & (self.codes <= ord(high))
        return self.made(jnp.where(inside, self.codes + by, self.codes), self.length)
