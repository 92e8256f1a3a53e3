"""Choosing a plan by measurement within a budget of seconds.

race.py       candidates that are measured in turn, the slower half dropped after each round
tolerance.py  whether a candidate's result is that of the defaults
"""
