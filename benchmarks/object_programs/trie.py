"""A trie of words, with counts of prefixes."""


class TrieNode:
    def __init__(self):
        self.children = {}
        self.is_word = False
        self.count = 0


class Trie:
    def __init__(self):
        self.root = TrieNode()
        self.size = 0

    def insert(self, word):
        node = self.root
        for ch in word:
            if ch not in node.children:
                node.children[ch] = TrieNode()
            node = node.children[ch]
            node.count += 1
        if not node.is_word:
            node.is_word = True
            self.size += 1

    def find(self, prefix):
        node = self.root
        for ch in prefix:
            node = node.children.get(ch)
            if node is None:
                return None
        return node

    def __contains__(self, word):
        node = self.find(word)
        return node is not None and node.is_word

    def suggestions(self, prefix, limit):
        start = self.find(prefix)
        if start is None:
            return []
        found = []

        def walk(node, path):
            if len(found) >= limit:
                return
            if node.is_word:
                found.append(path)
            for ch in sorted(node.children):
                walk(node.children[ch], path + ch)

        walk(start, prefix)
        return found


def solve(text, prefix, limit):
    trie = Trie()
    for raw in text.lower().split():
        word = raw.strip(".,;!?")
        if word:
            trie.insert(word)
    hits = trie.suggestions(prefix, limit)
    if not hits:
        return f"no match for '{prefix}' among {trie.size} words"
    node = trie.find(prefix)
    mark = "*" if prefix in trie else ""
    return f"{prefix}{mark}[{node.count}]: " + ", ".join(hits)


ENTRY = solve
EXAMPLES = [
    ("the cat catches the catfish", "cat", 5),
    ("the cat catches the catfish", "cat", 2),
    ("apple apply ape apex app", "ap", 10),
    ("apple apply ape apex app", "app", 3),
    ("Hello, help! helmet held.", "hel", 3),
    ("Hello, help! helmet held.", "z", 3),
    ("a ab abc abcd abcde", "abc", 1),
    ("", "q", 4),
]
