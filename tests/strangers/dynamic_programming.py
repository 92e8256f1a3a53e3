"""Tables of dynamic programming."""

from __future__ import annotations

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("dynamic_programming", ROWS)


@row(([1, 2, 5], 11), ([2, 3, 7], 12))
def coin_change(s, n):
    m = len(s)
    table = [0] * (n + 1)
    table[0] = 1
    for coin_val in s:
        for j in range(coin_val, n + 1):
            table[j] += table[j - coin_val]
    return table[n]


@row((50, [10, 20, 30], [60, 100, 120]), (6, [2, 3, 1], [9, 2, 4]))
def knapsack(w, wt, val):
    n = len(wt)
    dp = [[0] * (w + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for w_ in range(1, w + 1):
            if wt[i - 1] <= w_:
                dp[i][w_] = max(val[i - 1] + dp[i - 1][w_ - wt[i - 1]], dp[i - 1][w_])
            else:
                dp[i][w_] = dp[i - 1][w_]
    return dp[n][w]


@row(([10, 22, 9, 33, 21, 50],), ([3, 2, 1, 0, -1, 9],))
def longest_increasing(arr):
    n = len(arr)
    lis = [1] * n
    for i in range(1, n):
        for j in range(i):
            if arr[i] > arr[j] and lis[i] < lis[j] + 1:
                lis[i] = lis[j] + 1
    return max(lis)


@row(([1, 2, 3], [2, 3, 4]), ([1, 5, 9], [5, 9, 1]))
def longest_common_subsequence(x, y):
    m = len(x)
    n = len(y)
    dp = [[0] * (n + 1) for _ in range(m + 1)]
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            match = 1 if x[i - 1] == y[j - 1] else 0
            dp[i][j] = max(dp[i - 1][j], dp[i][j - 1], dp[i - 1][j - 1] + match)
    return dp[m][n]


@row(([3, 34, 4, 12, 5, 2], 9), ([3, 34, 4, 12, 5, 2], 30))
def is_sum_subset(arr: list[int], required_sum: int) -> bool:
    arr_len = len(arr)
    subset = [[False] * (required_sum + 1) for _ in range(arr_len + 1)]
    for i in range(arr_len + 1):
        subset[i][0] = True
    for i in range(1, required_sum + 1):
        subset[0][i] = False
    for i in range(1, arr_len + 1):
        for j in range(1, required_sum + 1):
            if arr[i - 1] > j:
                subset[i][j] = subset[i - 1][j]
            if arr[i - 1] <= j:
                subset[i][j] = subset[i - 1][j] or subset[i - 1][j - arr[i - 1]]
    return subset[arr_len][required_sum]


@row(([1, 2, 5], 11), ([2], 3), ([3, 7], 14))
def fewest_coins(coins, amount):
    dp = [float("inf")] * (amount + 1)
    dp[0] = 0
    for coin in coins:
        for value in range(coin, amount + 1):
            dp[value] = min(dp[value], dp[value - coin] + 1)
    return -1 if dp[amount] == float("inf") else dp[amount]


@row(([1, 2, 3], [1, 3]), ([4, 4], [5, 6, 7]), ([1], [1]))
def edit_distance(a, b):
    m, n = len(a), len(b)
    dp = [[0] * (n + 1) for _ in range(m + 1)]
    for i in range(m + 1):
        dp[i][0] = i
    for j in range(n + 1):
        dp[0][j] = j
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            if a[i - 1] == b[j - 1]:
                dp[i][j] = dp[i - 1][j - 1]
            else:
                dp[i][j] = 1 + min(dp[i - 1][j], dp[i][j - 1], dp[i - 1][j - 1])
    return dp[-1][-1]


@row(([2, 7, 9, 3, 1],), ([5],), ([2, 1, 1, 2],))
def house_robber(nums):
    take = skip = 0
    for n in nums:
        take, skip = skip + n, max(take, skip)
    return max(take, skip)


@row((8, [1, 5, 8, 9, 10, 17, 17, 20]), (4, [1, 5, 8, 9]))
def rod_cutting(n, prices):
    best = [0] * (n + 1)
    for i in range(1, n + 1):
        best[i] = max(prices[j] + best[i - j - 1] for j in range(i))
    return best[n]


@row((3, 4), (1, 1), (5, 2))
def grid_paths(rows, columns):
    table = [[1] * columns for _ in range(rows)]
    for r in range(1, rows):
        for c in range(1, columns):
            table[r][c] = table[r - 1][c] + table[r][c - 1]
    return table[rows - 1][columns - 1]


@row(([40, 20, 30, 10, 30],), ([10, 20, 30],))
def matrix_chain(p):
    n = len(p) - 1
    cost = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            cost[i][j] = float("inf")
            for k in range(i, j):
                cost[i][j] = min(cost[i][j], cost[i][k] + cost[k + 1][j] + p[i] * p[k + 1] * p[j + 1])
    return cost[0][n - 1]


@row((5,), (7,), (1,))
def integer_partitions(m):
    memo = [[0 for _ in range(m)] for _ in range(m + 1)]
    for i in range(m + 1):
        memo[i][0] = 1
    for n in range(m + 1):
        for k in range(1, m):
            memo[n][k] += memo[n][k - 1]
            if n - k > 0:
                memo[n][k] += memo[n - k - 1][k]
    return memo[m][m - 1]


@row((4, 7), (1, 5), (3, 3))
def memoised_grid(n, m):
    memo = {}

    def go(i, j):
        if i == 0 or j == 0:
            return 1
        if (i, j) in memo:
            return memo[(i, j)]
        memo[(i, j)] = go(i - 1, j) + go(i, j - 1)
        return memo[(i, j)]

    return go(n - 1, m - 1)
