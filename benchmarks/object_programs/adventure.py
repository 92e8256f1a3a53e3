"""A text adventure: rooms with exits, a player with things, a script of commands."""


class Room:
    def __init__(self, name, description):
        self.name = name
        self.description = description
        self.exits = {}
        self.items = []
        self.locked = False

    def connect(self, direction, other):
        opposite = {"n": "s", "s": "n", "e": "w", "w": "e"}
        self.exits[direction] = other
        other.exits[opposite[direction]] = self


class Player:
    def __init__(self, room):
        self.room = room
        self.inventory = []
        self.moves = 0
        self.health = 3


class Game:
    def __init__(self, health):
        hall = Room("hall", "a dusty hall")
        kitchen = Room("kitchen", "smells of soup")
        cellar = Room("cellar", "dark and damp")
        vault = Room("vault", "full of gold")
        hall.connect("e", kitchen)
        kitchen.connect("s", cellar)
        hall.connect("n", vault)
        vault.locked = True
        kitchen.items.append("lamp")
        cellar.items.append("key")
        vault.items.append("gold")
        self.player = Player(hall)
        self.player.health = health
        self.state = "playing"
        self.log = []

    def say(self, text):
        self.log.append(text)

    def move(self, direction):
        here = self.player.room
        if direction not in here.exits:
            self.say("bump")
            return
        dest = here.exits[direction]
        if dest.locked:
            if "key" in self.player.inventory:
                dest.locked = False
                self.say("unlock")
            else:
                self.say("locked")
                return
        self.player.room = dest
        self.player.moves += 1
        if dest.name == "cellar" and "lamp" not in self.player.inventory:
            self.player.health -= 1
            self.say("ouch")
            if self.player.health <= 0:
                self.state = "dead"

    def take(self):
        room = self.player.room
        if not room.items:
            self.say("nothing")
            return
        item = room.items.pop()
        self.player.inventory.append(item)
        self.say("got " + item)
        if item == "gold":
            self.state = "won"

    def step(self, cmd):
        if cmd in "nsew":
            self.move(cmd)
        elif cmd == "t":
            self.take()
        elif cmd == "l":
            self.say(self.player.room.description)
        else:
            self.say("what?")


def solve(commands, health):
    game = Game(health)
    for cmd in commands:
        if game.state != "playing":
            break
        game.step(cmd)
    p = game.player
    return f"{game.state}:{p.room.name}:{p.moves}:{p.health}:{','.join(sorted(p.inventory))}:{'/'.join(game.log)}"


ENTRY = solve
EXAMPLES = [
    ("etstnwnt", 3),
    ("etstnwnwnt", 3),
    ("n", 2),
    ("esnsns", 3),
    ("lelsl", 1),
    ("estnwnt", 2),
    ("x?tt", 3),
    ("", 5),
]
