"""Games and boards: moves, searches of positions, cells that live and die."""

from __future__ import annotations

from benchmarks.cpython_programs.program import Program, entering

PROGRAMS: list[Program] = []
program = entering(PROGRAMS)


def _moves(rng):
    board = [0] * 16
    for cell in rng.sample(range(16), 4):
        board[cell] = rng.choice((2, 4))
    return board, "".join(rng.choice("LRUD") for _ in range(rng.randint(4, 10))), rng.randint(1, 10**4)


def _slide(line):
    tiles = [tile for tile in line if tile > 0]
    out = []
    gained = 0
    k = 0
    while k < len(tiles):
        if k + 1 < len(tiles) and tiles[k] == tiles[k + 1]:
            out.append(2 * tiles[k])
            gained += 2 * tiles[k]
            k += 2
        else:
            out.append(tiles[k])
            k += 1
    return out + [0] * (4 - len(out)), gained


@program("2048, a text of moves", _moves)
def play_2048(cells, moves, seed):
    board = [cells[4 * r : 4 * r + 4] for r in range(4)]
    score = 0
    for move in moves:
        moved = False
        for k in range(4):
            if move == "L" or move == "R":
                line = board[k][:]
            else:
                line = [board[r][k] for r in range(4)]
            if move == "R" or move == "D":
                line = line[::-1]
            new, gained = _slide(line)
            score += gained
            if new != line:
                moved = True
            if move == "R" or move == "D":
                new = new[::-1]
            for j in range(4):
                if move == "L" or move == "R":
                    board[k][j] = new[j]
                else:
                    board[j][k] = new[j]
        if moved:
            empty = [(r, c) for r in range(4) for c in range(4) if board[r][c] == 0]
            seed = (seed * 75 + 74) % 65537
            r, c = empty[seed % len(empty)]
            board[r][c] = 4 if seed % 10 == 0 else 2
    return score, max(max(row) for row in board)


_LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def _position(rng):
    board = [0] * 9
    for k, cell in enumerate(rng.sample(range(9), rng.choice((4, 5, 6)))):
        board[cell] = 1 if k % 2 == 0 else 2
    return (board,)


def _wins(board, player):
    return any(board[a] == player and board[b] == player and board[c] == player for a, b, c in _LINES)


def _alpha_beta(board, player, alpha, beta, known):
    if _wins(board, 3 - player):
        return -1
    if 0 not in board:
        return 0
    key = (tuple(board), player)
    if key in known:
        return known[key]
    best = -2
    for cell in range(9):
        if board[cell] == 0:
            board[cell] = player
            value = -_alpha_beta(board, 3 - player, -beta, -alpha, known)
            board[cell] = 0
            if value > best:
                best = value
            alpha = max(alpha, best)
            if alpha >= beta:
                break
    known[key] = best
    return best


@program("alpha-beta with a table, tic-tac-toe", _position)
def tic_tac_toe(cells):
    board = list(cells)
    player = 1 if board.count(1) == board.count(2) else 2
    known = {}
    value = _alpha_beta(board, player, -2, 2, known)
    return value, len(known)


def _dungeon(rng):
    rows = ["".join(rng.choice("....#$t") for _ in range(8)) for _ in range(8)]
    return "\n".join(rows), "".join(rng.choice("FFFLRU") for _ in range(rng.randint(20, 60)))


@program("robot in a dungeon, driven by a text", _dungeon)
def dungeon(plan, commands):
    grid = plan.split("\n")
    x, y, heading = 0, 0, 0
    health, gold = 10, 0
    taken = set()
    for command in commands:
        if command == "L":
            heading = (heading + 3) % 4
        elif command == "R":
            heading = (heading + 1) % 4
        elif command == "U":
            heading = (heading + 2) % 4
        else:
            dx, dy = [(1, 0), (0, 1), (-1, 0), (0, -1)][heading]
            if 0 <= x + dx < len(grid[0]) and 0 <= y + dy < len(grid) and grid[y + dy][x + dx] != "#":
                x += dx
                y += dy
                if grid[y][x] == "$" and (x, y) not in taken:
                    taken.add((x, y))
                    gold += 1
                elif grid[y][x] == "t":
                    health -= 3
                    if health <= 0:
                        break
    return x, y, gold, health


def _soup(rng):
    return [[1 if rng.random() < 0.4 else 0 for _ in range(6)] for _ in range(6)], rng.randint(1, 2)


@program("game of life, 6 x 6", _soup)
def life(cells, generations):
    rows, columns = len(cells), len(cells[0])
    for _ in range(generations):
        new = []
        for r in range(rows):
            line = []
            for c in range(columns):
                neighbours = 0
                for dr in (-1, 0, 1):
                    for dc in (-1, 0, 1):
                        if (dr or dc) and 0 <= r + dr < rows and 0 <= c + dc < columns:
                            neighbours += cells[r + dr][c + dc]
                line.append(1 if neighbours == 3 or (neighbours == 2 and cells[r][c]) else 0)
            new.append(line)
        if new == cells:
            break
        cells = new
    return sum(map(sum, cells))
