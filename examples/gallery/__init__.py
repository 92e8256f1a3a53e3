"""Twenty first programs, each compared with something that does not use pcbatch; see README.md."""

NAMES = (
    "quicksort",
    "json_tokens",
    "sudoku",
    "simpson",
    "random_walk",
    "newton",
    "mandelbrot",
    "edit_distance",
    "forest",
    "arithmetic",
    "kd_tree",
    "quicksort_lists",
    "primes",
    "maze",
    "dijkstra",
    "queens",
    "knapsack",
    "lru_cache",
    "rpn",
    "derivative",
)
