"""Functions that compiled primitives call: Python's operators and builtins on traced values."""

from types import ModuleType
from typing import Any

support: Any = ModuleType("support")
"""All of them by name: `operators.py` enters them, for the files that it imports."""
