"""Which cases of a test that is marked `share` a usual run takes."""


def in_share(number: int, one_in: int, *places: int) -> bool:
    """One of each `one_in` cases in a row (or those of these places), of each row others, so that parameters vary."""
    return (number - number // one_in) % one_in in (places or (0,))
