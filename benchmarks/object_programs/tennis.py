"""The score of a tennis match: players and sets as objects."""


class Player:
    def __init__(self, name):
        self.name = name
        self.points = 0
        self.games = 0
        self.sets = 0
        self.total = 0


class TennisMatch:
    NAMES = ["love", "fifteen", "thirty", "forty"]

    def __init__(self, name_a, name_b, best_of=3):
        self.a = Player(name_a)
        self.b = Player(name_b)
        self.best_of = best_of
        self.history = []

    def opponent(self, player):
        return self.b if player is self.a else self.a

    def is_tiebreak(self):
        return self.a.games == 6 and self.b.games == 6

    def winner(self):
        for p in (self.a, self.b):
            if p.sets > self.best_of // 2:
                return p
        return None

    def point(self, player):
        if self.winner() is not None:
            raise RuntimeError("match is over")
        player.points += 1
        player.total += 1
        rival = self.opponent(player)
        need = 7 if self.is_tiebreak() else 4
        if player.points >= need and player.points - rival.points >= 2:
            self.win_game(player, rival)

    def win_game(self, player, rival):
        tiebreak = self.is_tiebreak()
        player.games += 1
        player.points = rival.points = 0
        if tiebreak or (player.games >= 6 and player.games - rival.games >= 2):
            self.history.append(f"{self.a.games}-{self.b.games}")
            player.sets += 1
            player.games = rival.games = 0

    def score(self):
        a, b = self.a.points, self.b.points
        if self.is_tiebreak():
            return f"tiebreak {a}-{b}"
        if a >= 3 and b >= 3:
            if a == b:
                return "deuce"
            return f"advantage {(self.a if a > b else self.b).name}"
        if a == b:
            return f"{self.NAMES[a]}-all"
        return f"{self.NAMES[a]}-{self.NAMES[b]}"


def solve(points, repeat, best_of):
    match = TennisMatch("Ann", "Bea", best_of)
    wasted = 0
    for ch in points * repeat:
        try:
            match.point(match.a if ch == "A" else match.b)
        except RuntimeError:
            wasted += 1
    winner = match.winner()
    if winner:
        return f"{winner.name} wins {' '.join(match.history)} (+{wasted})"
    return f"{' '.join(match.history)}|{match.a.games}:{match.b.games}|{match.score()}|{match.a.total}"


ENTRY = solve
EXAMPLES = [
    ("AAB", 1, 3),
    ("AAAA", 13, 3),
    ("ABABAB", 1, 3),
    ("ABABABA", 1, 3),
    ("AAAABBBB", 7, 3),
    ("BBBBB", 6, 1),
    ("AAAABBBBB", 12, 3),
    ("AB", 1, 5),
]
