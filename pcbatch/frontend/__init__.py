"""The front end: from plain Python functions to the CFG IR. The only part that knows gast."""

from __future__ import annotations

from pcbatch.frontend.compile import compile_functions as compile_functions
from pcbatch.frontend.source.assigned_items import assigned_items as assigned_items
from pcbatch.frontend.source.assigned_items import ast_text as ast_text
