"""Python's operators, builtins and library functions on values of a lane."""

from types import ModuleType
from typing import Any

support: Any = ModuleType("support")
"""All of them by name: `frontend/support/operators.py` enters them, for the files that it imports."""
