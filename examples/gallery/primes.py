"""The sieve of Eratosthenes: a list of flags whose length is the lane's, assigned to, and a list as the result."""

from __future__ import annotations

import numpy as np

import pcbatch
from examples.in_python import check


@pcbatch.batch
def primes(n):
    """The primes up to `n`."""
    prime = [True] * (n + 1)
    for i in range(2, n + 1):
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
    return [i for i in range(2, n + 1) if prime[i]]


def main(lanes: int = 100) -> None:
    """Sieve up to 1, 2, 3 ..., which asks for longer lists than the first program has room for."""
    found = check(primes, np.arange(1, lanes + 1))
    print(f"primes: {len(found[-1])} primes up to {lanes}, and those up to each number below, all as in plain Python")


if __name__ == "__main__":
    main()
