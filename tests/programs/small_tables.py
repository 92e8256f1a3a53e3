"""What small random programs are made of: statements and expressions with holes, by the kind of data that they need.

A hole in capitals (`$LIST`) is a variable, the same one wherever it stands in one template, `$LIST2` perhaps another; in
small letters (`$int`) it is an expression. `$new_int` is a new variable, which the `$block` after it may read. `@` before
a template stands for the condition that its first container is not empty, which most of its uses test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Table = Mapping[str, Sequence[str]]

# Kinds of data: the name of the variable, and what tells all about it (as results of programs).
KINDS: Mapping[str, tuple[str, str]] = {
    "int": ("x", "$V"),
    "flt": ("f", "$V"),
    "list": ("xs", "$V"),
    "flist": ("fs", "$V"),
    "grid": ("g", "$V"),
    "map": ("d", "$V"),
    "lmap": ("m", "[k + sum(v) for k, v in $V.items()]"),
    "set": ("s", "sorted($V)"),
    "deque": ("q", "list($V)"),
    "pairs": ("ps", "[u * 50 + v for u, v in $V]"),
    "tmap": ("t", "[u * 90 + v * 9 + w for (u, v), w in $V.items()]"),
    "count": ("c", "[u * 90 + v for u, v in $V.items()]"),
    "opt": ("o", "(-50 if $V is None else $V)"),
    "node": ("r", "(-60 if $V is None else $V.word)"),
    "cell": ("e", "shown($V)"),
    "text": ("w", "[len($V), *[int(v) for v in $V]]"),
}

NEW: Table = {
    "int": ("$int",),
    "flt": ("$flt",),
    "list": (
        "[]", "[]", "[$val]", "[$val, $val]", "[$val] * ($INT % 6)", "list(range($INT % 6))", "[v * 2 for v in range($INT % 5)]",
        "[v for v in range(5) if v != $INT]", "$LIST[:]", "$LIST + [$val]", "sorted($LIST)", "$LIST[::-1]", "$LIST[$lit:]",
        "list($DEQUE)", "sorted($SET)", "list($MAP)", "list($MAP.values())", "[u for u, v in $PAIRS]", "[v for r in $GRID for v in r]",
        "[v for v in $LIST if v > $lit]", "sorted($LIST, key=lambda v: (v % 3, v))", "[u + v for u, v in zip($LIST, $LIST2)]",
        "[len(v) for v in $GRID]", "list(reversed($LIST))", "[i for i, v in enumerate($LIST) if v % 2]", "[0] * len($LIST)",
        "[ord(v) % 10 for v in $TEXT]", "$LIST.copy()", "[$val for v in range($INT % 3) for u in range(2)]", "$LIST[-$lit:]",
        "sorted($LIST, reverse=True)[:3]", "[max(u, v) for u in $LIST[:2] for v in $LIST2[:2]]", "[v if v > 1 else $val for v in $LIST]",
    ),
    "flist": (
        "[]", "[$flt]", "[$flt, $flt]", "[0.0] * ($INT % 5)", "[v * 0.5 for v in $FLIST]", "$FLIST[:]", "$FLIST + [$flt]",
        "[f * $FLT for f in $FLIST if f > 0.0]", "[v + 0.5 for v in $LIST]", "sorted($FLIST)", "$FLIST[::-1]", "$FLIST[1:]",
        "[u * v for u, v in zip($FLIST, $FLIST2)]", "[$FLT * i for i in range($INT % 4)]",
    ),
    "grid": (
        "[]", "[[] for _ in range(3)]", "[[0] * 2 for _ in range(2)]", "[[$val] * ($INT % 4) for _ in range($INT % 4)]", "[[$val], [$val, $val]]",
        "[r[:] for r in $GRID]", "[[i, i + 1] for i in range($INT % 4)]", "[$LIST[:], []]", "[[$val]]", "[[v] for v in $LIST]",
        "[list(v) for v in zip($LIST, $LIST2)]", "[[i * j for j in range(i)] for i in range(4)]", "$GRID + [[$val]]", "[r[::-1] for r in $GRID]",
    ),
    "map": (
        "{}", "{}", "{$val: $val}", "{i: i * 3 % 7 for i in range($INT % 5)}", "{v: i for i, v in enumerate($LIST)}", "dict($MAP)", "{1: 2, $val: 3}",
        "{k: v for k, v in $MAP.items() if v != $INT}", "{v: k for k, v in $MAP.items()}", "dict(zip($LIST, $LIST2))", "$MAP | {$val: $val}",
    ),
    "lmap": ("{}", "{0: [], 1: [$val]}", "{i: [] for i in range(3)}", "{i: [i] for i in range($INT % 4)}", "{$val: [$val, $val]}"),
    "set": ("set()", "{$val, $val}", "set($LIST)", "{v % 3 for v in range($INT % 6)}", "$SET | {$val}", "$SET - $SET2", "set($SET)", "{v for v in $LIST if v > 0}"),
    "deque": ("deque()", "deque([$val])", "deque($LIST)", "deque([$val, $val, $val])", "deque(v for v in $LIST if v)", "deque([$val], maxlen=3)"),
    "pairs": (
        "[]", "[($val, $val)]", "[(i, i * i % 7) for i in range($INT % 5)]", "list(enumerate($LIST))", "list($MAP.items())", "sorted($MAP.items())",
        "list(zip($LIST, $LIST2))", "[(v, i) for i, v in enumerate($LIST)]", "sorted($PAIRS, key=lambda p: p[1])", "[(v, u) for u, v in $PAIRS]",
    ),
    "tmap": ("{}", "{($val, $val): $val}", "{(i, 0): i for i in range(3)}", "{(i, j): i + j for i in range(2) for j in range($INT % 3)}", "{p: 1 for p in $PAIRS}"),
    "count": ("Counter($LIST)", "defaultdict(int)", "Counter()", "Counter(v % 3 for v in range($INT % 6))", "defaultdict(int, {1: 2})"),
    "opt": ("None", "None", "$int", "None if $bool else $int", "$MAP.get($val)", "$LIST[0] if $LIST else None", "$OPT", "next((v for v in $LIST if v > $INT), None)"),
    "node": ("$NODE", "None if $NODE is None else $NODE.left", "$NODE and $NODE.right", "$NODE2 if $bool else $NODE"),
    "cell": ("None", "Cell($int)", "Cell($int, $CELL)", "Cell($int, Cell($int))", "$CELL", "$CELL and $CELL.next", "Cell($INT) if $bool else None", "Cell($int, None)"),
    "text": ("''", "str($INT)", "'31'", "'7' * ($INT % 4)", "$TEXT + str($lit)", "''.join(str(v % 10) for v in $LIST)", "'12' if $bool else '9'"),
}  # fmt: skip

INT: Sequence[str] = (
    "$INT + $int", "$INT - $int", "$INT * $lit", "($int) // $pos", "($int) % $pos", "max($INT, $int)", "min($int, $lit)", "abs($int)", "-$INT",
    "($int if $bool else $int)", "($bool) + 1", "int($bool)", "divmod($INT, $pos)[1]", "($INT and $int)", "($INT or $int)",
    "len($LIST)", "sum($LIST)", "@$LIST[0]", "@$LIST[-1]", "@$LIST[$INT % len($LIST)]", "@max($LIST)", "@min($LIST)", "$LIST.count($val)", "sum($LIST[$lit:])",
    "sum(v for v in $LIST if v > $INT)", "len([v for v in $LIST if v != $INT])", "sum(1 for v in $LIST if v % 2 == 0)", "@$LIST.index($LIST[-1])",
    "@$LIST.pop()", "@$LIST.pop(0)", "any(v > 3 for v in $LIST) + 1", "sum([u * v for u, v in zip($LIST, $LIST2)]) % 97", "sum($LIST[::2])", "max($LIST, default=$lit)",
    "max([v * $lit % 7 for v in $LIST], default=0)", "@max($LIST, key=lambda v: (v % 4, v))", "@sorted($LIST)[$INT % len($LIST)]", "$LIST[$INT]", "sum($LIST[:$INT])",
    "len($GRID)", "sum(sum(r) for r in $GRID)", "@len($GRID[0])", "@sum($GRID[-1])", "@sum($GRID[$INT % len($GRID)])", "max([len(r) for r in $GRID], default=0)", "$GRID[$lit][0]",
    "len($MAP)", "sum($MAP.values())", "sum($MAP)", "$MAP.get($val, $int)", "($MAP[$INT] if $INT in $MAP else $int)", "sum(k * v % 13 for k, v in $MAP.items())", "$MAP.pop($val, $lit)",
    "@max($MAP.values())", "@min($MAP)", "$MAP[$val]", "@max($MAP, key=lambda k: ($MAP[k], k))", "$MAP.setdefault($val, $lit)", "@next(iter($MAP))",
    "len($LMAP)", "sum(len(v) for v in $LMAP.values())", "len($LMAP.get($val, []))", "sum(sum(v) for k, v in $LMAP.items() if k > 0)",
    "len($SET)", "sum($SET)", "@max($SET)", "@min($SET)", "sum(v for v in $SET if v > 1)", "len($SET & $SET2)", "(1 if $SET <= $SET2 else 2)",
    "len($DEQUE)", "@$DEQUE[0]", "@$DEQUE[-1]", "@$DEQUE.popleft()", "@$DEQUE.pop()", "sum($DEQUE)", "@$DEQUE[$INT % len($DEQUE)]", "$DEQUE.count($val)",
    "len($PAIRS)", "@$PAIRS[0][1]", "@$PAIRS[-1][0]", "sum(u - v for u, v in $PAIRS)", "@max($PAIRS)[1]", "@$PAIRS.pop()[0]", "@min($PAIRS, key=lambda p: p[1])[0]",
    "len($TMAP)", "$TMAP.get(($val, $val), $lit)", "sum($TMAP.values())", "(1 if ($INT, 0) in $TMAP else 2)", "sum(u * w % 7 for (u, v), w in $TMAP.items())",
    "len($COUNT)", "$COUNT[$val]", "sum($COUNT.values())", "max($COUNT.values(), default=0)",
    "($OPT if $OPT is not None else $int)", "(0 if $OPT is None else $OPT + 1)", "($OPT or $int)", "($OPT is None) * 2",
    "(0 if $NODE is None else $NODE.word)", "($NODE.word if $NODE else $int)", "($NODE.left.word if $NODE is not None and $NODE.left is not None else 1)", "$NODE.word", "($NODE is $NODE2) + 0",
    "(0 if $CELL is None else $CELL.value)", "($CELL.value if $CELL else $int)", "($CELL is $CELL2) + 0", "$CELL.value", "($CELL.next.value if $CELL is not None and $CELL.next is not None else 3)",
    "len($TEXT)", "int($TEXT or '4')", "@int($TEXT[0])", "@int($TEXT[-1])", "$TEXT.count('1')", "('1' in $TEXT) + 0", "@ord($TEXT[0]) % 7", "sum(int(v) for v in $TEXT)",
    "int($flt)", "($FLT > $flt) + 1", "round($FLT)", "int($FLT // 1)", "len($FLIST)", "sum(1 for v in $FLIST if v > $FLT)",
    "$CALL_int", "$CALL_int", "$CALL_int", "$STEP",
)  # fmt: skip

FLOAT: Sequence[str] = (
    "$FLT + $flt", "$FLT - $flt", "$FLT * $flt * 0.5", "$FLT * 0.75", "-$FLT", "abs($flt)", "max($FLT, $flt)", "min($FLT, $flt)", "$FLT / (1.0 + abs($flt))", "math.sin($flt)",
    "math.exp(-abs($flt))", "math.sqrt(1.0 + abs($flt))", "math.tanh($flt)", "math.log(2.0 + abs($flt))", "($flt if $bool else $flt)", "$INT * 0.25", "($FLT - 1.0) ** 2 * 0.25",
    "sum($FLIST)", "@$FLIST[0]", "@$FLIST[-1]", "@$FLIST[$INT % len($FLIST)]", "@max($FLIST)", "@min($FLIST)", "sum([v * v for v in $FLIST]) * 0.25", "max($FLIST, default=$flt)",
    "sum(u * v for u, v in zip($FLIST, $FLIST2))", "@$FLIST.pop()", "sum(v for v in $FLIST if v > 0.0)", "@sum($FLIST) / len($FLIST)", "sum($FLIST[1:])", "$FLIST[$lit]", "@sorted($FLIST)[0]",
    "$CALL_flt", "$CALL_flt",
)  # fmt: skip

BOOL: Sequence[str] = (
    "$INT > $lit", "$INT == $int", "$int < $INT", "$INT % 2 == 0", "$INT != $lit", "$lit <= $INT < 5", "not $INT", "$bool and $bool", "$bool or $bool", "not ($bool)",
    "$LIST", "not $LIST", "$val in $LIST", "$val not in $LIST", "len($LIST) > $lit", "$LIST == $LIST2", "$LIST != [1]", "all(v > 0 for v in $LIST)", "any(v == $INT for v in $LIST)", "$LIST < $LIST2",
    "$GRID", "$GRID == $GRID2", "[1] in $GRID", "$LIST in $GRID", "$MAP", "$val in $MAP", "$val not in $MAP", "$MAP == $MAP2", "$val in $LMAP", "$SET", "$val in $SET", "$SET <= $SET2", "$SET == $SET2",
    "$DEQUE", "$val in $DEQUE", "len($DEQUE) > $lit", "($val, $lit) in $PAIRS", "$PAIRS", "($lit, $val) in $TMAP", "$COUNT[$val] > 1", "$val in $COUNT",
    "$OPT is None", "$OPT is not None", "$OPT", "$OPT == $INT", "$NODE is None", "$NODE is not None", "$NODE", "$NODE is $NODE2", "$CELL is None", "$CELL is not None", "$CELL is $CELL2", "not $CELL",
    "$TEXT", "$TEXT == '1'", "'7' in $TEXT", "$TEXT < '5'", "$TEXT != str($INT)", "$FLT > $flt", "$FLT <= 0.5", "$FLIST", "$CALL_int > 1",
)  # fmt: skip

STATEMENTS: Table = {
    "int": ("$INT = ($int) % 97", "$INT = ($int) % 97", "$INT += $lit", "$INT -= $lit", "$INT, $INT2 = $val, $val", "$INT, $INT2 = $INT2, $INT", "$INT = ($INT * $lit + $val) % 53"),
    "flt": ("$FLT = $flt", "$FLT = $flt", "$FLT = $FLT * 0.5 + $flt", "$FLT += $flt", "$FLT *= 0.5", "$FLT, $FLT2 = $FLT2, $FLT"),
    "list": (
        "$LIST.append($val)", "$LIST.append($val)", "$LIST.append($val)", "@$LIST[0] = $val", "@$LIST[-1] = $val", "@$LIST[$INT % len($LIST)] = $val", "@$LIST[$INT % len($LIST)] += $lit",
        "@$INT = $LIST.pop()", "@$INT = $LIST.pop(0)", "@$LIST.pop($INT % len($LIST))", "@del $LIST[0]", "@del $LIST[-1]", "$LIST.extend([$val, $val])", "$LIST.extend($LIST2[:2])", "$LIST += [$val]",
        "$LIST += $LIST2[:2]", "$LIST.insert($lit, $val)", "$LIST.insert($INT, $val)", "$LIST.reverse()", "$LIST.sort()", "$LIST.sort(reverse=True)", "$LIST.sort(key=lambda v: (v % 3, v))", "$LIST.clear()",
        "@$LIST.remove($LIST[0])", "$LIST.remove($val)", "$LIST[$INT] = $val", "$LIST = $new", "$LIST = $new", "$LIST = $LIST2", "$LIST[1:2] = [$val, $val]", "$LIST[:$lit] = []", "del $LIST[::2]", "del $LIST[1:]",
        "@$LIST[0], $LIST[-1] = $LIST[-1], $LIST[0]", "$LIST2 = $LIST", "@$LIST.append($LIST[0])", "$LIST *= 2", "@$LIST.append($LIST.pop(0))", "$LIST = $LIST[1:] + [$val]", "del $LIST[$INT]", "$LIST[::2] = [$val] * len($LIST[::2])",
        "@$INT, $INT2 = $LIST[0], $LIST[-1]", "@$INT, *$LIST2 = $LIST", "heapq.heappush($LIST, $val)", "$LIST.extend(v + 1 for v in $LIST2[:3])", "$LIST = [v % 9 for v in $LIST if v != $INT]",
        "for $new_int in $LIST:\n    $block", "for $new_int in $LIST[:]:\n    $block", "for $new_int, $new2_int in enumerate($LIST):\n    $block", "for $new_int, $new2_int in zip($LIST, $LIST2):\n    $block",
        "while $LIST:\n    $new_int = $LIST.pop()\n    $block", "while len($LIST) > 2:\n    $LIST.pop(0)\n    $block", "for $new_int in reversed($LIST):\n    $block", "for $new_int in range(len($LIST)):\n    $LIST[$new_int] = $val\n    $block",
        "for $new_int in $LIST:\n    if $bool:\n        break\n    $block\nelse:\n    $block", "for $new_int in $LIST[::-1]:\n    if $bool:\n        continue\n    $block", "for $new_int in sorted($LIST):\n    $block",
        "for $new_int in range($INT % 5):\n    $LIST.append(($new_int * 3 + $lit) % 11)",
    ),
    "flist": (
        "$FLIST.append($flt)", "$FLIST.append($flt)", "@$FLIST[0] = $flt", "@$FLIST[$INT % len($FLIST)] = $flt", "@$FLIST[-1] += $flt", "@$FLIST[$INT % len($FLIST)] *= 0.5", "@$FLT = $FLIST.pop()", "$FLIST.extend([$flt, $FLT])",
        "$FLIST = $new", "$FLIST += [$flt]", "$FLIST.insert($lit, $flt)", "$FLIST.reverse()", "$FLIST.sort()", "@del $FLIST[0]", "for $new_flt in $FLIST:\n    $block", "while $FLIST:\n    $new_flt = $FLIST.pop()\n    $block",
        "for $new_int in range(len($FLIST)):\n    $FLIST[$new_int] = $FLIST[$new_int] * 0.5 + $flt", "for $new_int, $new2_flt in enumerate($FLIST):\n    $block", "@$FLIST[0], $FLIST[-1] = $FLIST[-1], $FLIST[0]", "$FLIST2 = $FLIST",
    ),
    "grid": (
        "$GRID.append([$val])", "$GRID.append([])", "@$GRID[0].append($val)", "@$GRID[-1].append($val)", "@$GRID[$INT % len($GRID)].append($val)", "@$GRID[$INT % len($GRID)] = [$val]", "@$GRID.pop()", "@$GRID[0] = $GRID[-1][:]",
        "for $new_list in $GRID:\n    $new_list.append($val)", "for $new_list in $GRID:\n    $block", "for $new_list in $GRID:\n    if $new_list:\n        $new_list[0] = $val", "$GRID = $new", "$GRID.append($LIST)", "$GRID.append($LIST[:])",
        "@$new_list = $GRID[0]\n$new_list.append($val)", "@$new_list = $GRID[$INT % len($GRID)]\n$new_list.append($val)", "@$LIST = $GRID[-1]", "$GRID.reverse()", "@del $GRID[0]", "$GRID = $GRID2", "$GRID[$lit][$lit] = $val",
        "@$GRID[$INT % len($GRID)] += [$val]", "for $new_int in range(len($GRID)):\n    $GRID[$new_int].append($new_int)", "$GRID.sort()", "$GRID[$lit][-1] += 1", "@$GRID[0], $GRID[-1] = $GRID[-1], $GRID[0]", "$GRID.insert(0, [$val, $val])",
        "for $new_int, $new2_list in enumerate($GRID):\n    $new2_list.insert(0, $new_int)", "@$GRID[-1].extend($GRID[0])", "@$INT = $GRID[0].pop()", "@$GRID[0].sort()", "$GRID = [r + [$lit] for r in $GRID]", "@del $GRID[-1][:1]",
        "while $GRID:\n    $new_list = $GRID.pop()\n    $block", "$GRID.extend([[$val], []])", "@$GRID[0].clear()", "@$GRID.append($GRID.pop(0))",
    ),
    "map": (
        "$MAP[$val] = $val", "$MAP[$val] = $val", "$MAP[$val] = $MAP.get($INT, 0) + 1", "if $INT in $MAP:\n    del $MAP[$INT]", "if $INT in $MAP:\n    $MAP[$INT] += 1\nelse:\n    $MAP[$INT] = 1", "$INT = $MAP.pop($val, $lit)", "$MAP.setdefault($val, $val)",
        "$MAP.update({$val: $val})", "$MAP.clear()", "$MAP = $new", "$MAP = $MAP2", "del $MAP[$val]", "$MAP[$val] += 1", "for $new_int in $MAP:\n    $block", "for $new_int, $new2_int in $MAP.items():\n    $block", "for $new_int in list($MAP):\n    $MAP[$new_int] = $val",
        "for $new_int in sorted($MAP):\n    $block", "for $new_int in $LIST:\n    $MAP[$new_int] = $MAP.get($new_int, 0) + 1", "$MAP.update($MAP2)", "@$MAP.popitem()", "for $new_int in $MAP.values():\n    $block", "while $MAP:\n    $new_int, $new2_int = $MAP.popitem()\n    $block",
        "for $new_int in list($MAP):\n    if $new_int > $lit:\n        del $MAP[$new_int]", "$MAP |= {$val: $lit}",
    ),
    "lmap": (
        "$LMAP.setdefault($val, []).append($val)", "if $INT in $LMAP:\n    $LMAP[$INT].append($val)\nelse:\n    $LMAP[$INT] = [$val]", "$LMAP[$val] = [$val]", "if $INT in $LMAP:\n    del $LMAP[$INT]", "for $new_int, $new2_list in $LMAP.items():\n    $block", "$LMAP = $new",
        "for $new_list in $LMAP.values():\n    $new_list.append($val)", "if $INT not in $LMAP:\n    $LMAP[$INT] = []\n$LMAP[$INT].append($val)", "$LMAP[$val] = $LIST[:]", "$LMAP[$val].append($val)", "for $new_int in $LIST:\n    $LMAP.setdefault($new_int % 3, []).append($new_int)",
    ),
    "set": (
        "$SET.add($val)", "$SET.add($val)", "$SET.discard($val)", "$SET.remove($val)", "$SET |= {$val}", "$SET &= $SET2", "$SET -= {$val}", "$SET ^= {$val, $lit}", "$SET = $new", "$SET = $SET2", "for $new_int in $SET:\n    $block", "for $new_int in sorted($SET):\n    $block", "$SET.clear()",
        "$SET.update($LIST)", "$SET.update([$val, $val])", "if $INT in $SET:\n    $SET.remove($INT)\nelse:\n    $SET.add($INT)", "for $new_int in $LIST:\n    if $new_int in $SET:\n        break\n    $SET.add($new_int)", "$SET = $SET | $SET2",
    ),
    "deque": (
        "$DEQUE.append($val)", "$DEQUE.append($val)", "$DEQUE.appendleft($val)", "$DEQUE.appendleft($val)", "@$INT = $DEQUE.popleft()", "@$INT = $DEQUE.pop()", "$DEQUE.rotate($lit)", "$DEQUE.rotate($INT)", "$DEQUE.rotate(-1)", "$DEQUE.extend([$val, $val])", "$DEQUE.extendleft([$val, $val])", "$DEQUE.clear()",
        "$DEQUE = $new", "@$DEQUE[0] = $val", "@$DEQUE[-1] = $val", "for $new_int in $DEQUE:\n    $block", "while $DEQUE:\n    $new_int = $DEQUE.popleft()\n    $block", "$DEQUE.reverse()", "@$DEQUE[$INT % len($DEQUE)] += 1", "$DEQUE.extend($LIST)", "$DEQUE.popleft()",
        "$new_int = 3\nwhile $DEQUE and $new_int:\n    $new_int -= 1\n    $DEQUE.append($DEQUE.popleft())\n    $block", "@$DEQUE.append($DEQUE[0])", "$DEQUE = $DEQUE2",
    ),
    "pairs": (
        "$PAIRS.append(($val, $val))", "$PAIRS.append(($val, $val))", "@$INT, $INT2 = $PAIRS[-1]", "@$INT, $INT2 = $PAIRS.pop()", "@$PAIRS[0] = ($val, $val)", "$PAIRS.sort()", "$PAIRS = $new", "for $new_int, $new2_int in $PAIRS:\n    $block", "$PAIRS.sort(key=lambda p: (p[1], p[0]))",
        "while $PAIRS:\n    $new_int, $new2_int = $PAIRS.pop()\n    $block", "$PAIRS.reverse()", "@$PAIRS[-1] = ($PAIRS[0][1], $val)", "heapq.heappush($PAIRS, ($val, $val))", "for $new_int, ($new2_int, $new3_int) in enumerate($PAIRS):\n    $block", "$PAIRS.extend(zip($LIST, $LIST2))",
    ),
    "tmap": (
        "$TMAP[$val, $val] = $val", "$TMAP[$INT, $INT2] = $val", "$TMAP[($val, 0)] = $val", "if ($INT, 0) in $TMAP:\n    del $TMAP[$INT, 0]", "$TMAP = $new", "for ($new_int, $new2_int), $new3_int in $TMAP.items():\n    $block", "$TMAP[$INT, 0] = $TMAP.get(($INT, 0), 0) + 1", "for $new_int in $TMAP.values():\n    $block",
    ),
    "count": ("$COUNT[$val] += 1", "$COUNT[$val] += $lit", "$COUNT[$val] = $val", "for $new_int in $LIST:\n    $COUNT[$new_int] += 1", "$COUNT = $new", "for $new_int, $new2_int in $COUNT.items():\n    $block", "if $INT in $COUNT:\n    del $COUNT[$INT]"),
    "opt": ("$OPT = None", "$OPT = $new", "$OPT = $new", "if $OPT is None:\n    $OPT = $int\n    $block", "if $OPT is not None:\n    $INT = ($OPT + 1) % 97\n    $block", "if $OPT is not None and $OPT > $lit:\n    $OPT = None", "$OPT = $OPT or $val", "if $OPT is None or $OPT < $INT:\n    $OPT = $INT"),
    "node": ("$NODE = $new", "if $NODE is not None:\n    $NODE = $NODE.left\n    $block", "$new_int = 4\nwhile $NODE is not None and $new_int:\n    $new_int -= 1\n    $NODE = $NODE.right\n    $block", "if $NODE:\n    $INT = $NODE.word\n    $block", "$NODE = $NODE.left"),
    "cell": (
        "$CELL = $new", "$CELL = $new", "$CELL = Cell($int, $CELL)", "if $CELL is not None:\n    $CELL.value = $int\n    $block", "if $CELL is not None:\n    $CELL.next = Cell($int)", "if $CELL is not None:\n    $CELL.next = $CELL2", "if $CELL is not None:\n    $CELL = $CELL.next\n    $block", "if $CELL:\n    $CELL.value += 1",
        "$new_int = 4\nwhile $CELL is not None and $new_int:\n    $new_int -= 1\n    $CELL = $CELL.next\n    $block", "for $new_int in range($INT % 4):\n    $CELL = Cell($new_int, $CELL)", "$CELL2 = $CELL", "$CELL.value = $int", "if $CELL is not None and $CELL.next is not None:\n    $CELL.next.value = $int", "for $new_int in $LIST:\n    $CELL = Cell($new_int, $CELL)",
    ),
    "text": ("$TEXT += str($lit)", "$TEXT += '1'", "$TEXT = $new", "$TEXT = $TEXT[::-1]", "$TEXT = $TEXT[1:]", "$TEXT = str($INT % 7) + $TEXT", "for $new_text in $TEXT:\n    $block", "$TEXT = $TEXT.replace('1', '22')"),
}  # fmt: skip

ANYWHERE: Sequence[str] = (
    "if $bool:\n    $block", "if $bool:\n    $block\nelse:\n    $block", "if $bool:\n    $block\nelif $bool:\n    $block\nelse:\n    $block", "for $new_int in range($INT % 5):\n    $block", "for $new_int in range(3):\n    $block",
    "for $new_int in range(1, $INT % 6, 2):\n    if $bool:\n        break\n    $block\nelse:\n    $block", "$new_int = 3\nwhile $new_int > 0:\n    $new_int -= 1\n    $block", "$new_int = $INT % 4\nwhile $new_int > 0 and $bool:\n    $new_int -= 1\n    $block\nelse:\n    $block",
    "try:\n    $block\nexcept $EXC:\n    $block", "try:\n    $block\nexcept $EXC:\n    $block\nelse:\n    $block", "try:\n    $block\nfinally:\n    $block", "try:\n    $block\nexcept $EXC:\n    $block\nfinally:\n    $block", "try:\n    $block\n    raise $RAISED\nexcept $EXC:\n    $block", "for $new_int in range($INT % 4):\n    try:\n        $block\n    except $EXC:\n        break",
    "if $bool:\n    raise $RAISED", "if $bool:\n    return $RESULT", "assert $bool", "$CALL_none", "$CALL_none", "for $new_int in range($INT % 4):\n    if $bool:\n        continue\n    $block", "for $new_int in $GEN:\n    $block", "$INT = sum($GEN) % 97", "$INT = $STEP % 97",
    "if ($new_int := ($int) % 97) > $lit:\n    $block", "match $INT:\n    case 0 | 1:\n        $block\n    case _:\n        $block", "for $new_int in range($INT % 3):\n    for $new2_int in range(2):\n        $block",
    "while True:\n    $INT -= 7\n    if $INT < 0 or $bool:\n        break\n    $block",
)  # fmt: skip

EXCEPTIONS = ("IndexError", "KeyError", "ValueError", "ZeroDivisionError", "Exception", "LookupError", "(IndexError, KeyError)", "AttributeError", "(ValueError, LookupError)", "TypeError")
RAISED = ("ValueError('no')", "KeyError(1)", "IndexError('far')", "ZeroDivisionError", "RuntimeError('why')")
