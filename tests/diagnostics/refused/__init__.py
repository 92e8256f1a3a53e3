"""Refusals that strangers meet, each with the program that a reader of the help alone writes.

python -m tests.diagnostics.refused        how many of these programs run as plain Python does
"""

from tests.diagnostics.refused.lists import ROWS as LISTS
from tests.diagnostics.refused.outside import ROWS as OUTSIDE
from tests.diagnostics.refused.values import ROWS as VALUES

ROWS = [*OUTSIDE, *LISTS, *VALUES]
