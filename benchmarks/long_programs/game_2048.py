"""Play 2048 with a greedy one-ply player on a list-of-lists board."""

LEFT, RIGHT, UP, DOWN = "LRUD"


def slide_row(row):
    """Slide a row to the left; return (new row, points)."""
    tiles = [x for x in row if x]
    merged, points, i = [], 0, 0
    while i < len(tiles):
        if i + 1 < len(tiles) and tiles[i] == tiles[i + 1]:
            merged.append(tiles[i] * 2)
            points += tiles[i] * 2
            i += 2
        else:
            merged.append(tiles[i])
            i += 1
    return merged + [0] * (len(row) - len(merged)), points


def transpose(board):
    return [list(col) for col in zip(*board)]


def mirror(board):
    return [row[::-1] for row in board]


def slide_left(board):
    rows, total = [], 0
    for row in board:
        new, pts = slide_row(row)
        rows.append(new)
        total += pts
    return rows, total


def move(board, direction):
    if direction == LEFT:
        return slide_left(board)
    if direction == RIGHT:
        rows, pts = slide_left(mirror(board))
        return mirror(rows), pts
    if direction == UP:
        new, pts = slide_left(transpose(board))
        return transpose(new), pts
    new, pts = slide_left(mirror(transpose(board)))
    return transpose(mirror(new)), pts


def empty_cells(board):
    return [(r, c) for r, row in enumerate(board) for c, v in enumerate(row) if v == 0]


def smoothness(board):
    rough = 0
    for grid in (board, transpose(board)):
        for row in grid:
            rough += sum(abs(a.bit_length() - b.bit_length()) for a, b in zip(row, row[1:]))
    return -rough


def evaluate(board, pts):
    score = 2.5 * len(empty_cells(board)) + 0.7 * smoothness(board) + 0.05 * pts
    corners = (board[0][0], board[0][-1], board[-1][0], board[-1][-1])
    return score + 4 if max(map(max, board)) in corners else score


class Game:
    def __init__(self, size, seed):
        self.board = [[0] * size for _ in range(size)]
        self.seed = seed & 0x7FFFFFFF
        self.score, self.history = 0, []
        self.spawn()
        self.spawn()

    def rand(self, n):
        self.seed = (self.seed * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.seed >> 8) % n

    def spawn(self):
        cells = empty_cells(self.board)
        r, c = cells[self.rand(len(cells))]
        self.board[r][c] = 4 if self.rand(10) == 0 else 2

    def best_move(self):
        best = None
        for d in "LURD":
            new, pts = move(self.board, d)
            value = evaluate(new, pts)
            if new != self.board and (best is None or value > best[0]):
                best = (value, d, new, pts)
        return best

    def step(self):
        choice = self.best_move()
        if choice is None:
            return False
        _, d, self.board, pts = choice
        self.score += pts
        self.history.append(d)
        self.spawn()
        return True


def solve(size, seed, max_moves):
    game = Game(size, seed)
    moves = 0
    while moves < max_moves and game.step():
        moves += 1
    top = max(v for row in game.board for v in row)
    return game.score, top, moves, "".join(game.history[-12:]), [v for row in game.board for v in row]


def examples(n):
    import random
    r = random.Random(202)
    return [(r.choice([3, 4, 4, 4]), r.randrange(1, 1 << 30), r.randint(2, 10)) for _ in range(n)]
