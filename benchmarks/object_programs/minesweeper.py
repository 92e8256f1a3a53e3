"""Minesweeper: cells as objects, a board that reveals its neighbours."""


class Cell:
    def __init__(self, row, col):
        self.row = row
        self.col = col
        self.mine = False
        self.revealed = False
        self.flagged = False
        self.adjacent = 0

    def __str__(self):
        if self.flagged:
            return "F"
        if not self.revealed:
            return "#"
        if self.mine:
            return "*"
        return str(self.adjacent) if self.adjacent else "."


class Board:
    def __init__(self, size):
        self.size = size
        self.grid = [[Cell(r, c) for c in range(size)] for r in range(size)]
        self.exploded = False

    def neighbors(self, cell):
        for dr in (-1, 0, 1):
            for dc in (-1, 0, 1):
                r, c = cell.row + dr, cell.col + dc
                if (dr or dc) and 0 <= r < self.size and 0 <= c < self.size:
                    yield self.grid[r][c]

    def place(self, positions):
        for p in positions:
            self.grid[p // self.size % self.size][p % self.size].mine = True
        for row in self.grid:
            for cell in row:
                cell.adjacent = sum(1 for n in self.neighbors(cell) if n.mine)

    def reveal(self, r, c):
        cell = self.grid[r][c]
        if cell.revealed or cell.flagged:
            return 0
        cell.revealed = True
        if cell.mine:
            self.exploded = True
            return 1
        count = 1
        if cell.adjacent == 0:
            for n in self.neighbors(cell):
                count += self.reveal(n.row, n.col)
        return count

    def flag(self, r, c):
        cell = self.grid[r][c]
        if not cell.revealed:
            cell.flagged = not cell.flagged

    def won(self):
        return all(cell.revealed or cell.mine for row in self.grid for cell in row)

    def render(self):
        return "/".join("".join(str(cell) for cell in row) for row in self.grid)


def solve(mines, clicks, flag_at):
    board = Board(5)
    board.place(mines)
    if flag_at >= 0:
        board.flag(flag_at // 5, flag_at % 5)
    opened = 0
    for p in clicks:
        opened += board.reveal(p // 5, p % 5)
        if board.exploded:
            break
    status = "boom" if board.exploded else ("win" if board.won() else "open")
    return status, opened, board.render()


ENTRY = solve
EXAMPLES = [
    ([0, 4, 24], [12, 20, 1], -1),
    ([0, 4, 24], [0, 20, 1], -1),
    ([0, 4, 24], [0, 20, 1], 0),
    ([24, 24, 24], [0, 1, 2], -1),
    ([6, 12, 18], [0, 4, 20], 7),
    ([10, 11, 12], [0, 24, 13], 13),
    ([2, 7, 12], [4, 0, 22], -1),
    ([1, 3, 5], [6, 7, 8], 24),
]
