"""Games and searches."""

from benchmarks.fifty_lines.program import Program, each, integers


def tic_tac_toe(first, second):
    """The outcome of noughts and crosses after two given moves, by alpha and beta."""
    lines = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))

    def won(board):
        for a, b, c in lines:
            if board[a] != 0 and board[a] == board[b] and board[b] == board[c]:
                return board[a]
        return 0

    def search(board, player, alpha, beta, left):
        winner = won(board)
        if winner != 0:
            return winner * (left + 1)
        if left == 0:
            return 0
        best = -20 * player
        for square in range(9):
            if board[square] != 0:
                continue
            board[square] = player
            value = search(board, -player, alpha, beta, left - 1)
            board[square] = 0
            if player > 0:
                if value > best:
                    best = value
                if best > alpha:
                    alpha = best
            else:
                if value < best:
                    best = value
                if best < beta:
                    beta = best
            if alpha >= beta:
                break
        return best

    board = [0] * 9
    board[first] = 1
    board[(first + 1 + second) % 9] = -1
    board[(first + 3 + second) % 9] = 1
    if board[4] == 0:
        board[4] = -1
    left = 0
    for square in board:
        if square == 0:
            left += 1
    return search(board, 1, -20, 20, left)


def knights(size, row, column):
    """How far a knight gets by Warnsdorff's rule."""
    board = [[-1] * 6 for _ in range(6)]
    moves = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))

    def free(r, c):
        return 0 <= r < size and 0 <= c < size and board[r][c] < 0

    def onward(r, c):
        count = 0
        for dr, dc in moves:
            if free(r + dr, c + dc):
                count += 1
        return count

    step = 0
    r, c = row % size, column % size
    board[r][c] = 0
    while step < size * size - 1:
        best = 9
        to_r, to_c = -1, -1
        for dr, dc in moves:
            nr, nc = r + dr, c + dc
            if not free(nr, nc):
                continue
            count = onward(nr, nc)
            if count < best:
                best = count
                to_r, to_c = nr, nc
        if to_r < 0:
            break
        r, c = to_r, to_c
        step += 1
        board[r][c] = step
    checksum = 0
    for i in range(size):
        for j in range(size):
            if board[i][j] >= 0:
                checksum += board[i][j] * (i + 2 * j)
    return step + 1, checksum


def blackjack(deck, limit):
    """Chips after some rounds of blackjack with a dealer who draws to 17, and a player who draws to a limit."""

    def worth(hand):
        total, aces = 0, 0
        for card in hand:
            if card == 1:
                aces += 1
                total += 11
            elif card > 10:
                total += 10
            else:
                total += card
        while total > 21 and aces > 0:
            total -= 10
            aces -= 1
        return total

    chips, bet = 20, 1
    top = 0
    streak = 0
    while top + 10 < len(deck) and chips > 0:
        player = [deck[top], deck[top + 2]]
        dealer = [deck[top + 1], deck[top + 3]]
        top += 4
        while worth(player) < limit and top < len(deck):
            player.append(deck[top])
            top += 1
        mine = worth(player)
        if mine > 21:
            chips -= bet
            streak = 0
            bet = 1
            continue
        while worth(dealer) < 17 and top < len(deck):
            dealer.append(deck[top])
            top += 1
        theirs = worth(dealer)
        if theirs > 21 or mine > theirs:
            chips += bet
            streak += 1
            if streak >= 2:
                bet = min(bet + 1, chips)
        elif mine < theirs:
            chips -= bet
            streak = 0
            bet = 1
    return chips, top


PROGRAMS = (
    Program(tic_tac_toe, each(integers(0, 9), integers(0, 5))),
    Program(knights, each(integers(4, 7), integers(0, 6), integers(0, 6))),
    Program(blackjack, each(integers(1, 14, 40), integers(12, 19))),
)
