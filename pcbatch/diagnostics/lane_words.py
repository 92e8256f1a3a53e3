"""Words for values of lanes in messages: of classes of this package and of JAX, users know nothing."""

from __future__ import annotations

import re
from typing import Any

WORDS = {
    "LaneText": "text",
    "LaneList": "list",
    "LaneTuple": "tuple",
    "LaneBytes": "bytes",
    "LaneByteArray": "bytearray",
    "LaneDeque": "deque",
    "LaneQueue": "Queue",
    "LaneStack": "LifoQueue",
    "LaneDict": "dict",
    "LaneSet": "set",
    "LaneFrozenSet": "frozenset",
    "LaneRange": "range",
    "LaneIterator": "iterator",
    "OrderedKeys": "dict",
    "DictView": "dict view",
    "RecordList": "list",
    "MemberValue": "Enum member",
    "_Bucket": "list",
}
REFERENCES = ("Ref", "MemberValue")
TRACER = re.compile(r"'?(DynamicJaxprTracer|JitTracer|BatchTracer)'?( object)?(?!\()")
TYPED = re.compile(r"'?\b(?:DynamicJaxprTracer|JitTracer|BatchTracer)\(~?(\w+\[[\d,]*\])\)'?")
METHOD = re.compile(rf"\b({'|'.join(WORDS)})\.(\w+)\(\)")
SHOWN = re.compile(rf"\b({'|'.join(WORDS)})\(")
OBJECT = re.compile(rf"'?\b({'|'.join(WORDS)})\b'?( object)?")
ARTICLE = re.compile(rf"\ban? (?='?({'|'.join(WORDS)}|\w+Tracer)\b'?)")
NODES = re.compile(r"PyTreeDef\(CustomNode\((\w+)\[.*?\], \[[*, ]*\]\)\) of ([^`]*)")


def readable(text: str) -> str:
    """Return a message of Python or JAX with "a list of the lane" and the like in place of names of classes."""
    text = ARTICLE.sub("", text)
    text = TYPED.sub(r"\1 of the lane", text)
    text = TRACER.sub("a value of the lane", text)
    text = METHOD.sub(lambda found: f"`{found[2]}()` of a {WORDS[found[1]]} of the lane", text)
    text = SHOWN.sub(lambda found: f"{WORDS[found[1]]}(", text)
    text = OBJECT.sub(lambda found: f"a {WORDS[found[1]]} of the lane", text)
    return NODES.sub(r"\1(\2)", text)


def type_name(value: Any) -> str:
    """Return the name that Python has for the type of a value, which may be one of a lane."""
    name = type(value).__name__
    if name in REFERENCES:
        return repr(value)  # the name of the user's class
    return getattr(value, "python_name", WORDS.get(name, name))
