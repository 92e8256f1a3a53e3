"""Backtracking over choices that are taken back."""

from __future__ import annotations

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("backtracking", ROWS)


@row((4,), (5,), (6,))
def queens(n):
    def safe(board, row, col):
        for i in range(row):
            if board[i] == col or abs(board[i] - col) == row - i:
                return False
        return True

    def solve(board, row):
        if row == n:
            return 1
        count = 0
        for col in range(n):
            if safe(board, row, col):
                board[row] = col
                count += solve(board, row + 1)
        return count

    return solve([0] * n, 0)


@row(([1, 2, 3],), ([5, 1, 4],))
def permutations_count(nums):
    result = []

    def backtrack(start):
        if start == len(nums):
            result.append(nums[:])
            return
        for i in range(start, len(nums)):
            nums[start], nums[i] = nums[i], nums[start]
            backtrack(start + 1)
            nums[start], nums[i] = nums[i], nums[start]

    backtrack(0)
    return len(result)


@row(([2, 3, 6, 7], 7), ([2, 3], 6))
def combination_sums(candidates, target):
    result = []

    def search(start, rest, path):
        if rest == 0:
            result.append(path[:])
            return
        for i in range(start, len(candidates)):
            if candidates[i] > rest:
                continue
            path.append(candidates[i])
            search(i, rest - candidates[i], path)
            path.pop()

    search(0, target, [])
    return result


@row(([1, 2, 3],), ([5, 6],))
def power_set(nums):
    subsets = [[]]
    for n in nums:
        subsets += [old + [n] for old in subsets]
    return subsets


@row((4, 2), (5, 3))
def combinations_of(n, k):
    out = []

    def extend(start, chosen):
        if len(chosen) == k:
            out.append(chosen.copy())
            return
        for i in range(start, n + 1):
            chosen.append(i)
            extend(i + 1, chosen)
            chosen.pop()

    extend(1, [])
    return out


@row(([3, 34, 4, 12], 16), ([5, 10], 7))
def subset_sum_by_recursion(nums, target):
    def go(i, rest):
        if rest == 0:
            return True
        if i == len(nums) or rest < 0:
            return False
        return go(i + 1, rest - nums[i]) or go(i + 1, rest)

    return go(0, target)


@row(([[1, 1, 0], [0, 1, 0], [0, 1, 1]],), ([[1, 0], [1, 1]],))
def rat_in_a_maze(maze):
    n = len(maze)
    visited = [[0] * n for _ in range(n)]

    def walk(r, c):
        if r == n - 1 and c == n - 1:
            visited[r][c] = 1
            return True
        if 0 <= r < n and 0 <= c < n and maze[r][c] == 1 and not visited[r][c]:
            visited[r][c] = 1
            if walk(r + 1, c) or walk(r, c + 1) or walk(r - 1, c) or walk(r, c - 1):
                return True
            visited[r][c] = 0
        return False

    return walk(0, 0), visited


@row((3,), (2,), (1,))
def balanced_parentheses(n):
    def count(opened, closed):
        if closed == n:
            return 1
        total = 0
        if opened < n:
            total += count(opened + 1, closed)
        if closed < opened:
            total += count(opened, closed + 1)
        return total

    return count(0, 0)


@row(([1, 2, 3],), ([4, 0, 9],))
def permutations_by_swaps(nums):
    found = []

    def swap(i, j):
        nums[i], nums[j] = nums[j], nums[i]

    def extend(k):
        if k == len(nums):
            found.append(nums[0] * 100 + nums[1] * 10 + nums[2])
            return
        for i in range(k, len(nums)):
            swap(k, i)
            extend(k + 1)
            swap(k, i)

    extend(0)
    return found
