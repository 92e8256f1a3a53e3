"""The types of values in lane code, for the reader: tracers of JAX have no static type, so to mypy each is `Any`."""

from typing import Any

Value = Any  # what a variable of a lane may hold: a number, an array, a container, an object, a pytree of these
Num = Any  # a number or a bool: of Python or NumPy where it is known while compiling, else a scalar of the lane
Index = Any  # an integer that counts: an index, a length, a number of elements; in brackets a slice too, as in Python
Flag = Any  # a bool of Python, or bool[] of the lane
Column = Any  # an array that has an entry for each element of a container, along the first axis behind its lead
Columns = Any  # the elements of a container: a pytree whose leaves are columns
