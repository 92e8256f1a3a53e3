"""Connect four, and a search of moves with pruning."""


class Board:
    ROWS = 4
    COLS = 4
    NEED = 3

    def __init__(self):
        self.columns = [[] for _ in range(self.COLS)]
        self.moves = []

    def at(self, r, c):
        if 0 <= c < self.COLS and 0 <= r < len(self.columns[c]):
            return self.columns[c][r]
        return "."

    def legal(self):
        return [c for c in (1, 2, 0, 3) if len(self.columns[c]) < self.ROWS]

    def play(self, c, who):
        if c not in self.legal():
            raise ValueError(f"column {c} is full")
        self.columns[c].append(who)
        self.moves.append(c)

    def undo(self):
        c = self.moves.pop()
        self.columns[c].pop()

    def wins(self):
        if not self.moves:
            return False
        c = self.moves[-1]
        r = len(self.columns[c]) - 1
        who = self.columns[c][r]
        for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
            run = 1
            for sign in (1, -1):
                k = 1
                while self.at(r + sign * k * dr, c + sign * k * dc) == who:
                    run += 1
                    k += 1
            if run >= self.NEED:
                return True
        return False

    def __str__(self):
        return "/".join("".join(self.at(r, c) for c in range(self.COLS)) for r in reversed(range(self.ROWS)))


def other(who):
    return "O" if who == "X" else "X"


class Searcher:
    def __init__(self):
        self.visited = 0

    def negamax(self, board, who, depth, alpha, beta):
        self.visited += 1
        if board.wins():
            return -10 - depth, None
        if depth == 0 or not board.legal():
            return 0, None
        best, best_move = -1000, None
        for c in board.legal():
            board.play(c, who)
            score = -self.negamax(board, other(who), depth - 1, -beta, -alpha)[0]
            board.undo()
            if score > best:
                best, best_move = score, c
            alpha = max(alpha, score)
            if alpha >= beta:
                break
        return best, best_move


def solve(opening, depth):
    board = Board()
    who = "X"
    try:
        for ch in opening:
            board.play(int(ch), who)
            if board.wins():
                return f"{who} already won", 0, 0, str(board)
            who = other(who)
    except ValueError as e:
        return str(e), -1, 0, str(board)
    search = Searcher()
    score, move = search.negamax(board, who, depth, -1000, 1000)
    if move is None:
        return "no move", score, search.visited, str(board)
    board.play(move, who)
    return f"{who} plays {move}", score, search.visited, str(board)


ENTRY = solve
EXAMPLES = [
    ("", 2),
    ("12", 3),
    ("0101", 3),
    ("01010", 3),
    ("00000", 3),
    ("1203", 3),
    ("120", 0),
    ("3120", 3),
]
