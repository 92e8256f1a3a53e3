"""Tiny text adventure: parse commands, walk through rooms, fight, collect things."""
from dataclasses import dataclass


class GameOver(Exception): ...


@dataclass
class Item:
    name: str
    weight: int
    bonus: int = 0

    def __str__(self):
        return f"{self.name} (+{self.bonus})" if self.bonus else self.name


@dataclass
class Monster:
    name: str
    hp: int
    attack: int

    def growl(self):
        return f"The {self.name} growls."


class Dragon(Monster):
    def growl(self):
        return super().growl().replace("growls", "ROARS") + " Fire!"


class Room:
    def __init__(self, title):
        self.title, self.exits, self.items, self.monster = title, {}, {}, None

    def describe(self):
        seen = ", ".join(map(str, self.items.values())) or "nothing"
        growl = self.monster.growl() if self.monster else "All is quiet."
        return f"{self.title}. You see {seen}. {growl} Exits: {'/'.join(sorted(self.exits))}"


def build_world():
    rooms = {t: Room(t) for t in ("Hall", "Cellar", "Tower", "Garden", "Crypt")}
    for a, d, b, back in [("Hall", "down", "Cellar", "up"), ("Hall", "up", "Tower", "down"),
                          ("Hall", "east", "Garden", "west"), ("Cellar", "north", "Crypt", "south")]:
        rooms[a].exits[d], rooms[b].exits[back] = rooms[b], rooms[a]
    for place, item in [("Hall", Item("lamp", 2)), ("Cellar", Item("sword", 6, 5)), ("Tower", Item("shield", 7, 2)),
                        ("Garden", Item("apple", 1)), ("Crypt", Item("crown", 4))]:
        rooms[place].items[item.name] = item
    for place, foe in ("Cellar", Monster("rat", 6, 2)), ("Tower", Monster("bat", 4, 3)), ("Crypt", Dragon("dragon", 25, 6)):
        rooms[place].monster = foe
    return rooms["Hall"]


class Hero:
    def __init__(self, start, hp):
        self.room, self.hp, self.bag, self.score = start, hp, {}, 0
        self.verbs = {"go": self.do_go, "take": self.do_take, "drop": self.do_drop, "fight": self.do_fight}

    def do_go(self, where):
        if self.room.monster and where != "up":
            self.hp -= self.room.monster.attack // 2
        self.room = self.room.exits[where]
        return self.room.describe()

    def do_take(self, what):
        if sum(i.weight for i in self.bag.values()) + self.room.items[what].weight > 14:
            return f"The {what} is too heavy."
        self.bag[what] = self.room.items.pop(what)
        self.score += 100 if what == "crown" else 10
        return f"Taken: {self.bag[what]}."

    def do_drop(self, what):
        self.room.items[what] = self.bag.pop(what)
        return what.capitalize() + " dropped."

    def do_fight(self, _):
        foe = self.room.monster
        if foe is None:
            return "You fight your shadow."
        foe.hp -= 3 + sum(i.bonus for i in self.bag.values())
        if foe.hp <= 0:
            self.room.monster, self.score = None, self.score + 25
            return f"The {foe.name} is dead."
        self.hp -= foe.attack - 2 * ("shield" in self.bag)
        return f"{foe.name}: {foe.hp}, you: {self.hp}"

    def obey(self, line):
        verb, _, noun = line.strip().lower().partition(" ")
        try:
            reply = self.verbs[verb](noun)
        except KeyError as e:
            reply = f"There is no {e.args[0]} here." if noun else f"I cannot {verb}."
        if self.hp <= 0:
            raise GameOver("You died.")
        if "crown" in self.bag and self.room.title == "Garden":
            raise GameOver("You escaped with the crown!")
        return reply


def solve(commands, hp):
    hero, log, ending = Hero(build_world(), hp), [], "You fell asleep."
    try:
        for line in commands:
            log.append(hero.obey(line))
    except GameOver as e:
        ending = str(e)
    return ending, hero.score, hero.hp, sorted(hero.bag), "\n".join(log)


def examples(n):
    import random
    r = random.Random(1010)
    words = ["go down", "go up", "go east", "go west", "go north", "go south", "take lamp", "take sword", "take Shield",
             "take apple", "drop lamp", "drop sword", "fight", " fight", "fight", "dance", "take crown"]
    quest = "go up;fight;fight;take shield;go down;go down;fight;fight;take sword;go north;fight;fight;fight;" \
            "fight;drop shield;take crown;go south;go up;go east".split(";")
    return [([c for c in quest if r.random() < 0.95] * (r.random() < 0.3) + r.choices(words, k=r.randint(10, 80)),
             r.randint(15, 60)) for _ in range(n)]
