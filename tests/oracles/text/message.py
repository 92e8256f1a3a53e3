"""The reading of the text form of a message (see `pcbatch/ir/message.py`)."""

from __future__ import annotations

import json
import re

from pcbatch.ir.message import Field, Message, Part

_FIELD = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)(?:!([rsacql]))?(:\()?")
_COMMA = re.compile(r", *")


def parse(line: str, start: int) -> tuple[Message, int]:
    """Read the text form of a message, with a parenthesis at `line[start]`.

    Returns the message and the position after its closing parenthesis; raises ValueError for other text.
    """
    parts: list[Part] = []
    position = start + 1
    while not line.startswith(")", position):
        if parts:
            comma = _COMMA.match(line, position)
            if comma is None:
                raise ValueError("expected , or ) in the message")
            position = comma.end()
        part, position = _parse_part(line, position)
        parts.append(part)
    return tuple(parts), position + 1


def _parse_part(line: str, position: int) -> tuple[Part, int]:
    if line.startswith('"', position):
        try:
            value, end = json.JSONDecoder().raw_decode(line, position)
        except json.JSONDecodeError:
            raise ValueError("a text of the message is never closed") from None
        return str(value), end
    field = _FIELD.match(line, position)
    if field is None:
        raise ValueError('expected a variable or a "text" in the message')
    if not field[3]:
        return Field(field[1], field[2] or ""), field.end()
    spec, end = parse(line, field.end() - 1)
    return Field(field[1], field[2] or "", spec), end
