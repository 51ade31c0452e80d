"""Mistakes of the user as the program itself tells them: `FILE:LINE:COLUMN: error: what; expected`, the first 20, then
how many more there were."""

import sys
from dataclasses import dataclass

SHOWN = 20
_QUOTED = 64


@dataclass(frozen=True)
class Position:
    """`line` and `column` from 1, the column in bytes; line 0: the command line, and only `source` is printed."""
    source: str
    line: int = 0
    column: int = 0

    def __str__(self):
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


class Mistakes(Exception):
    """Collects mistakes; raise it to end with them."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def add(self, position, what, expected=""):
        line = f"{position}: error: {what}" + (f"; {expected}" if expected else "")
        if line not in self.lines:
            self.lines.append(line)

    def add_lines(self, text):
        """Errors that the program has already put into this form."""
        self.lines += [line for line in text.splitlines() if line and line not in self.lines]

    def raise_if_any(self):
        if self.lines:
            raise self

    def print(self, out=None):
        out = out or sys.stderr
        for line in self.lines[:SHOWN]:
            print(line, file=out)
        hidden = len(self.lines) - SHOWN
        if hidden > 0:
            print(f"... and {hidden} more {'error' if hidden == 1 else 'errors'}", file=out)


def command_line_mistake(what, expected=""):
    """A Mistakes with one of the command line."""
    mistakes = Mistakes()
    mistakes.add(Position("rvma"), f"sweep: {what}", expected)
    return mistakes


def quoted(text):
    """In single quotes, control characters escaped, cut to 64 characters."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
    return f"'{shown}'" if len(shown) <= _QUOTED else f"'{shown[:_QUOTED - 3]}...'"


def nearest_name(name, known):
    """The entry of `known` that `name` is a likely slip of, or "": the program's rule (model/base/error.cpp)."""
    best, best_distance = "", 0
    for candidate in known:
        limit = max(1, len(candidate) // 3)
        if not name or abs(len(name) - len(candidate)) > limit:
            continue
        distance = _edit_distance(name.lower(), candidate.lower())
        if distance <= limit and distance < max(len(name), len(candidate)) and (not best or distance < best_distance):
            best, best_distance = candidate, distance
    return best


def nearest_hint(name, known):
    """What to put behind "unknown ...": the nearest name, or all of a few."""
    nearest = nearest_name(name, known)
    return f"did you mean {quoted(nearest)}?" if nearest else "expected one of " + ", ".join(known)


def _edit_distance(a, b):
    """Insertion, deletion, substitution and the swap of two neighbours, each at cost 1."""
    before_previous, previous = [], list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            cost = min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before_previous[j - 2] + 1)
            current.append(cost)
        before_previous, previous = previous, current
    return previous[-1]
