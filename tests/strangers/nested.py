"""Lists of lists that are changed in place: rows taken out, swapped, rolled over and gone over."""

from __future__ import annotations

from tests.strangers.rows import Row, table

ROWS: list[Row] = []
row = table("nested", ROWS)


def _hanoi(n, a, b, c):
    if n == 0:
        return
    _hanoi(n - 1, a, c, b)
    c.append(a.pop())
    _hanoi(n - 1, b, a, c)


@row(([[1, 3], [2, 6], [8, 10]],), ([[1, 4], [4, 5], [0, 0]],))
def merge_intervals2(intervals):
    intervals.sort()
    out = []
    for iv in intervals:
        if not out or out[-1][-1] < iv[0]:
            out.append(iv)
        else:
            out[-1][-1] = max(out[-1][-1], iv[-1])
    return out


@row(([[0, 3, 100], [3, 0, 1], [100, 1, 0]],), ([[0, 9, 2], [9, 0, 3], [2, 3, 0]],))
def floyd_listmap(graph):
    dist = list(map(list, graph))
    n = len(graph)
    for k in range(n):
        for i in range(n):
            row_i = dist[i]
            for j in range(n):
                if row_i[j] > row_i[k] + dist[k][j]:
                    row_i[j] = row_i[k] + dist[k][j]
    return dist


@row(([[0, 1, 0], [1, 1, 1], [0, 1, 0]], 2), ([[1, 1, 0], [1, 0, 0], [0, 0, 0]], 3))
def life(board, gens):
    rows, cols = len(board), len(board[0])
    for _ in range(gens):
        new = [[0] * cols for _ in range(rows)]
        for r in range(rows):
            for c in range(cols):
                live = 0
                for dr in (-1, 0, 1):
                    for dc in (-1, 0, 1):
                        if (dr or dc) and 0 <= r + dr < rows and 0 <= c + dc < cols:
                            live += board[r + dr][c + dc]
                if live == 3 or (live == 2 and board[r][c]):
                    new[r][c] = 1
        board = new
    return board


@row(([[1, 2], [3, 4]],), ([[5, 6, 7], [8, 9, 1], [2, 3, 4]],))
def rotate_reverse_rows(matrix):
    n = len(matrix)
    for i in range(n):
        for j in range(i):
            matrix[i][j], matrix[j][i] = matrix[j][i], matrix[i][j]
    for r in matrix:
        r.reverse()
    return matrix


@row(([[1, 2], [3, 4]],), ([[5, 6, 7], [8, 9, 1], [2, 3, 4]],))
def flip_and_sort_rows(m):
    n = len(m)
    for i in range(n // 2):
        m[i], m[n - 1 - i] = m[n - 1 - i], m[i]
    for line in m:
        line.sort()
    return m


@row(([1, 2, 3],), ([4, 5],))
def permutations_slices(nums):
    out = []

    def rec(path, rest):
        if not rest:
            out.append(path)
            return
        for i in range(len(rest)):
            rec(path + [rest[i]], rest[:i] + rest[i + 1 :])

    rec([], nums)
    return out


@row(([1, 2, 3],), ([4, 5],))
def subsets_backtrack(nums):
    res = []

    def backtrack(start, path):
        res.append(list(path))
        for i in range(start, len(nums)):
            path.append(nums[i])
            backtrack(i + 1, path)
            path.pop()

    backtrack(0, [])
    return res


@row((4,), (9,), (1,))
def rolling_rows(n):
    prev = [0] * (n + 1)
    prev[0] = 1
    for i in range(1, n + 1):
        cur = [0] * (n + 1)
        for j in range(n + 1):
            cur[j] = prev[j]
            if j >= i:
                cur[j] += cur[j - i]
        prev = cur
    return prev[n]


@row(([1, 2, 3], [2, 3, 4]), ([4, 5], [5, 4, 5]))
def lcs_swap(a, b):
    m, n = len(a), len(b)
    prev = [0] * (n + 1)
    curr = [0] * (n + 1)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            if a[i - 1] == b[j - 1]:
                curr[j] = prev[j - 1] + 1
            else:
                curr[j] = max(prev[j], curr[j - 1])
        prev, curr = curr, prev
    return prev[n]


@row(([[0, 3, 2], [0, 0, 1], [0, 0, 0]],), ([[0, 9, 2], [9, 0, 3], [2, 3, 0]],))
def max_flow(cap):
    n = len(cap)
    flow = [[0] * n for _ in range(n)]
    total = 0
    while True:
        parent = [-1] * n
        parent[0] = 0
        queue = [0]
        while queue:
            u = queue.pop(0)
            for v in range(n):
                if parent[v] == -1 and cap[u][v] - flow[u][v] > 0:
                    parent[v] = u
                    queue.append(v)
        if parent[n - 1] == -1:
            return total
        d = 10**6
        v = n - 1
        while v != 0:
            u = parent[v]
            d = min(d, cap[u][v] - flow[u][v])
            v = u
        v = n - 1
        while v != 0:
            u = parent[v]
            flow[u][v] += d
            flow[v][u] -= d
            v = u
        total += d


@row((4, [(0, 1), (1, 2), (0, 3)]), (3, [(2, 1), (1, 0), (2, 0)]))
def toposort(n, edges):
    graph = [[] for _ in range(n)]
    indeg = [0] * n
    for u, v in edges:
        graph[u].append(v)
        indeg[v] += 1
    order = [i for i in range(n) if indeg[i] == 0]
    for u in order:
        for v in graph[u]:
            indeg[v] -= 1
            if indeg[v] == 0:
                order.append(v)
    return order


@row((4, [(0, 1), (1, 2), (0, 3)]), (3, [(2, 1), (1, 0), (2, 0)]))
def undirected(n, edges):
    graph = {i: [] for i in range(4)}
    for u, v in edges:
        graph[u].append(v)
        graph[v].append(u)
    seen = [False] * n
    stack = [0]
    out = []
    while stack:
        x = stack.pop()
        if seen[x]:
            continue
        seen[x] = True
        out.append(x)
        for y in graph[x]:
            if not seen[y]:
                stack.append(y)
    return out


@row(([[1, 2], [0], [0]],), ([[2], [], [0]],))
def symmetric_in_place(graph):
    n = len(graph)
    for u in range(n):
        for v in graph[u]:
            if u not in graph[v]:
                graph[v].append(u)
    return graph


@row(
    ([[1, 0, 0, 4], [0, 4, 1, 0], [0, 1, 4, 0], [4, 0, 0, 1]],),
    ([[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 0]],),
)
def sudoku4(board):
    def ok(r, c, v):
        for k in range(4):
            if board[r][k] == v or board[k][c] == v:
                return False
        for i in range(2):
            for j in range(2):
                if board[r // 2 * 2 + i][c // 2 * 2 + j] == v:
                    return False
        return True

    def solve():
        for r in range(4):
            for c in range(4):
                if board[r][c] == 0:
                    for v in range(1, 5):
                        if ok(r, c, v):
                            board[r][c] = v
                            if solve():
                                return True
                            board[r][c] = 0
                    return False
        return True

    solve()
    return board


@row(([[0.0, 2.0, 1.0], [1.0, 1.0, 3.0]],), ([[2.0, 1.0, 5.0], [4.0, 0.0, 4.0]],))
def gauss_pivot(m):
    n = len(m)
    for i in range(n):
        best = i
        for k in range(i + 1, n):
            if abs(m[k][i]) > abs(m[best][i]):
                best = k
        m[i], m[best] = m[best], m[i]
        for k in range(i + 1, n):
            f = m[k][i] / m[i][i]
            for j in range(i, n + 1):
                m[k][j] -= f * m[i][j]
    x = [0.0] * n
    for i in reversed(range(n)):
        s = m[i][n]
        for j in range(i + 1, n):
            s -= m[i][j] * x[j]
        x[i] = s / m[i][i]
    return x


@row(([[3, 1], [1, 9], [2, 2]],), ([[5, 5], [4, 4], [6, 0]],))
def bubble_rows(rows):
    n = len(rows)
    for i in range(n):
        for j in range(n - 1 - i):
            if rows[j][0] > rows[j + 1][0]:
                rows[j], rows[j + 1] = rows[j + 1], rows[j]
    rows[0][0] = 100
    return rows


@row(([[1, 1, 0], [1, 0, 1]], 0, 0, 2), ([[0, 0, 0], [1, 0, 1]], 1, 1, 7))
def flood_fill(image, sr, sc, color):
    start = image[sr][sc]
    if start == color:
        return image

    def fill(r, c):
        if r < 0 or c < 0 or r >= len(image) or c >= len(image[0]) or image[r][c] != start:
            return
        image[r][c] = color
        fill(r + 1, c)
        fill(r - 1, c)
        fill(r, c + 1)
        fill(r, c - 1)

    fill(sr, sc)
    return image


@row(([[1, 1, 0], [1, 0, 1]],), ([[0, 0, 0], [1, 0, 1]],))
def first_of_each_row(m):
    for row in m:
        row[0] = 1
    return m


@row(([[1, 1, 0], [1, 0, 1]], 1), ([[0, 0, 0], [1, 0, 1]], 0))
def row_taken_out(grid, i):
    row = grid[i]
    for j in range(len(row)):
        row[j] = row[j] + 1
    return grid


@row(([[1, 1, 0], [1, 0, 1]],), ([[0, 0, 0], [1, 0, 1]],))
def enumerate_rows(m):
    for i, row in enumerate(m):
        row.append(i)
    return m


@row(([1, 2], 3), ([4], 2))
def pad_param(x, k):
    x += [0] * k
    return x


@row(([3, 1, 2],), ([4, 4, 1, 7],))
def group_by_parity(xs):
    groups = {0: [], 1: []}
    for x in xs:
        g = groups[x % 2]
        g.append(x)
    return groups[0], groups[1]


@row(([3, 1, 2],), ([4, 4, 1, 7],))
def buckets(xs):
    b = [[] for _ in range(3)]
    for x in xs:
        b[x % 3].append(x)
    for bucket in b:
        bucket.sort()
    out = []
    for bucket in b:
        out.extend(bucket)
    return out


@row(([[1, 0], [1, 1]],), ([[0, 0, 0], [1, 0, 1]],))
def zero_matrix(matrix):
    zr, zc = [], []
    for i in range(len(matrix)):
        for j in range(len(matrix[0])):
            if matrix[i][j] == 0:
                zr.append(i)
                zc.append(j)
    for i in zr:
        matrix[i] = [0] * len(matrix[0])
    for r in matrix:
        for j in zc:
            r[j] = 0
    return matrix


@row((5,), (8,))
def fib_pair(n):
    a, b = [0], [1]
    for _ in range(n):
        a, b = b, [a[0] + b[0]]
    b[0] += 1
    return a[0] + b[0]


@row(([4, 3, 2],), ([9, 1],))
def merge_sort_inplace(arr):
    def sort(a):
        if len(a) > 1:
            mid = len(a) // 2
            left = a[:mid]
            right = a[mid:]
            sort(left)
            sort(right)
            i = j = k = 0
            while i < len(left) and j < len(right):
                if left[i] < right[j]:
                    a[k] = left[i]
                    i += 1
                else:
                    a[k] = right[j]
                    j += 1
                k += 1
            while i < len(left):
                a[k] = left[i]
                i += 1
                k += 1
            while j < len(right):
                a[k] = right[j]
                j += 1
                k += 1

    sort(arr)
    return arr


@row((3,), (2,))
def hanoi(n):
    a = list(range(n, 0, -1))
    b = []
    c = []
    _hanoi(n, a, b, c)
    return c


@row(([1, 2, 3, 4], 2), ([5, 6, 7], 1))
def chunk(xs, k):
    out = []
    cur = []
    for x in xs:
        cur.append(x)
        if len(cur) == k:
            out.append(cur)
            cur = []
    if cur:
        out.append(cur)
    return out


@row(([1, 1, 2, 2, 2],), ([5, 6, 7],))
def run_length_last(xs):
    out = [[xs[0], 0]]
    for x in xs:
        last = out[-1]
        if last[0] == x:
            last[1] += 1
        else:
            out.append([x, 1])
    return out
