"""Lists of lists as matrices."""

from __future__ import annotations

import math

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("matrices", ROWS)


@row(([[1, 2], [3, 4]],), ([[5, 6], [7, 9]],), new=False)
def determinant_of_two_rows(m):
    return m[0][0] * m[1][1] - m[0][1] * m[1][0]


@row(([[1, 2], [3, 4]], [[5, 6], [7, 8]]), ([[0, 1], [1, 0]], [[2, 3], [4, 5]]))
def matrix_product(a, b):
    n = len(a)
    m = len(b[0])
    result = [[0] * m for _ in range(n)]
    for i in range(n):
        for j in range(m):
            for k in range(len(b)):
                result[i][j] += a[i][k] * b[k][j]
    return result


@row(([[1, 2, 3], [4, 5, 6]],), ([[7, 8, 9], [1, 2, 3]],), new=False)
def transpose(matrix):
    return [[matrix[j][i] for j in range(len(matrix))] for i in range(len(matrix[0]))]


@row(([[1, 2, 3], [4, 5, 6], [7, 8, 9]],), ([[3, 0, 1], [2, 2, 2], [1, 0, 0]],))
def spiral_order(matrix):
    out = []
    top, bottom, left, right = 0, len(matrix) - 1, 0, len(matrix[0]) - 1
    while top <= bottom and left <= right:
        for j in range(left, right + 1):
            out.append(matrix[top][j])
        top += 1
        for i in range(top, bottom + 1):
            out.append(matrix[i][right])
        right -= 1
        if top <= bottom:
            for j in range(right, left - 1, -1):
                out.append(matrix[bottom][j])
            bottom -= 1
        if left <= right:
            for i in range(bottom, top - 1, -1):
                out.append(matrix[i][left])
            left += 1
    return out


@row(([[1, 2], [3, 4]],), ([[5, 6], [7, 8]],))
def rotate_in_place(matrix):
    n = len(matrix)
    for i in range(n):
        for j in range(i + 1, n):
            matrix[i][j], matrix[j][i] = matrix[j][i], matrix[i][j]
    for line in matrix:
        line.reverse()
    return matrix


@row(([[1, 0, 1], [1, 1, 1]],), ([[1, 1, 1], [0, 1, 1]],))
def zero_rows_and_columns(grid):
    rows, columns = set(), set()
    for i, line in enumerate(grid):
        for j, x in enumerate(line):
            if x == 0:
                rows.add(i)
                columns.add(j)
    return [[0 if i in rows or j in columns else x for j, x in enumerate(line)] for i, line in enumerate(grid)]


@row(([[2.0, 1.0], [1.0, 3.0]], [3.0, 5.0]), ([[4.0, 0.0], [1.0, 2.0]], [8.0, 4.0]))
def gauss_elimination(a, b):
    n = len(b)
    for i in range(n):
        for k in range(i + 1, n):
            factor = a[k][i] / a[i][i]
            for j in range(i, n):
                a[k][j] -= factor * a[i][j]
            b[k] -= factor * b[i]
    x = [0.0] * n
    for i in range(n - 1, -1, -1):
        s = b[i]
        for j in range(i + 1, n):
            s -= a[i][j] * x[j]
        x[i] = s / a[i][i]
    return x


@row(([[1, 2], [3, 4]], 3), ([[1, 1], [1, 0]], 7))
def matrix_power(m, n):
    def multiply(a, b):
        return [[sum(a[i][k] * b[k][j] for k in range(len(b))) for j in range(len(b[0]))] for i in range(len(a))]

    result = [[1, 0], [0, 1]]
    while n:
        if n % 2:
            result = multiply(result, m)
        m = multiply(m, m)
        n //= 2
    return result


@row((3,), (1,), (4,))
def identity_and_trace(n):
    eye = [[1 if i == j else 0 for j in range(n)] for i in range(n)]
    return eye, sum(eye[i][i] for i in range(n))


@row(([[1, 2], [3, 4]],), ([[5, 5], [1, 0]],))
def row_and_column_sums(grid):
    return [sum(line) for line in grid], [sum(column) for column in zip(*grid)]


@row(([[0, 1, 0], [1, 1, 1], [0, 1, 0]],), ([[1, 1, 0], [1, 0, 0], [0, 0, 0]],))
def game_of_life(board):
    rows, columns = len(board), len(board[0])
    new = [[0] * columns for _ in range(rows)]
    for r in range(rows):
        for c in range(columns):
            alive = 0
            for dr in (-1, 0, 1):
                for dc in (-1, 0, 1):
                    if (dr, dc) != (0, 0) and 0 <= r + dr < rows and 0 <= c + dc < columns:
                        alive += board[r + dr][c + dc]
            new[r][c] = 1 if alive == 3 or (board[r][c] and alive == 2) else 0
    return new


@row(([[4.0, 12.0], [12.0, 37.0]],), ([[1.0, 2.0], [2.0, 1.0]],))
def cholesky_or_none(matrix):
    size = len(matrix)
    result = [[0.0] * size for _ in range(size)]
    for j in range(size):
        rest = matrix[j][j] - sum(result[j][k] ** 2 for k in range(j))
        if rest <= 0:
            return None
        result[j][j] = math.sqrt(rest)
        for i in range(j + 1, size):
            dot = sum(result[i][k] * result[j][k] for k in range(j))
            result[i][j] = (matrix[i][j] - dot) / result[j][j]
    return result


@row(([[1, 2], [3, 4]], [[5, 6], [7, 8]]), ([[1, 0], [2, 1]], [[0, 1], [1, 0]]))
def product_by_columns(a, b):
    return [[sum(x * y for x, y in zip(line, column)) for column in zip(*b)] for line in a]


@row(([[1, 2, 3], [4, 5, 6]],), ([[7, 8, 9], [1, 1, 1]],))
def turned_right(grid):
    return list(map(list, zip(*grid[::-1])))


@row(([[1, 2, 3], [4, 5, 6]],), ([[7, 8], [1, 2]],))
def spiral(matrix):
    found = []
    while matrix:
        found += matrix.pop(0)
        matrix = [list(line) for line in zip(*matrix)][::-1]
    return found


@row((2,), (3,))
def columns_after_a_change(n):
    rows = [[0, n], [n, 1]]
    for i in range(2):
        rows[i][i] += n
    return [list(column) for column in zip(*rows)], dict(zip(*rows)), max(zip(*rows))


@row((2, 3), (3, 2))
def cube_of_a_matrix_made_by_a_loop(n, m):
    a = [[0] * 2 for _ in range(2)]
    for i in range(2):
        a[i][i] += n
        a[0][i] += m
    return product_by_columns(a, product_by_columns(a, a))


@row((2,), (3,))
def a_column_of_marks(n):
    board = [["."] * 3 for _ in range(3)]
    for i in range(n):
        board[i][0] = "X" * (1 + i % 2)
    return any(all(mark != "." for mark in column) for column in zip(*board)), ["".join(c) for c in zip(*board)]


@row((2,), (3,))
def columns_of_lists_and_pairs(n):
    lists, pairs = [[[0], [n]], [[n], [1]]], [[(0, 1), (n, 2)], [(n, 3), (1, 4)]]
    for i in range(n):
        lists[i % 2][i % 2].append(i)
        pairs[i % 2][i % 2] = (i, n)
    return [len(c[0]) + len(c[1]) for c in zip(*lists)], [c[0][0] * c[1][1] for c in zip(*pairs)]


@row((2,), (3,))
def columns_with_names(n):
    rows, named = [[0, n], [n, 1]], []
    for i in range(n):
        rows[i % 2][i % 2] += i
        named = [("ab"[k], column) for k, column in enumerate(zip(*rows))]
    return [name + str(sum(column)) for name, column in named]
