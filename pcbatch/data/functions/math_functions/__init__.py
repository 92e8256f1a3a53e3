"""The functions of `math`, `cmath` and parts of `statistics` on numbers of a lane."""
