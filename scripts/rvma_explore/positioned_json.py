"""JSON with comments and trailing commas, as the configuration has it, every value with its place in the file."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from .mistakes import Mistakes, Position, quoted

_MAX_DEPTH = 32
_MAX_BYTES = 16 << 20
_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {"true": ("boolean", True), "false": ("boolean", False), "null": ("null", None)}


@dataclass
class Node:
    """`kind`: object, list, text, number, boolean, null. A number's value is its text, as it was written."""
    kind: str
    value: object
    position: Position
    names: dict = field(default_factory=dict)  # of an object: where each name stands

    def text(self):
        """A scalar as `rvma --set` reads it; None for anything else."""
        if self.kind == "boolean":
            return "on" if self.value else "off"
        return self.value if self.kind in ("text", "number") else None


class _Fault(Exception):
    def __init__(self, offset, what, expected=""):
        super().__init__(what)
        self.offset, self.what, self.expected = offset, what, expected


class _Parser:
    def __init__(self, text, source):
        self.text, self.source, self.at = text, source, 0
        self.line_starts = [0] + [match.end() for match in re.finditer("\n", text)]

    def position(self, offset):
        line = bisect_right(self.line_starts, offset)
        return Position(self.source, line, len(self.text[self.line_starts[line - 1]:offset].encode()) + 1)

    def skip(self):
        self.at = _BLANK.match(self.text, self.at).end()
        if self.text.startswith("/*", self.at):
            raise _Fault(self.at, "the comment has no end", "expected */")

    def fail(self):
        if self.at >= len(self.text):
            raise _Fault(len(self.text), "the JSON text ends too early", "expected the end of an open value or list")
        rest = self.text[self.at:].splitlines()[0]
        raise _Fault(self.at, f"malformed JSON at {quoted(rest)}")

    def document(self):
        self.skip()
        root = self.value(0)
        self.skip()
        if self.at < len(self.text):
            raise _Fault(self.at, f"text after the end: {quoted(self.text[self.at:].splitlines()[0])}")
        return root

    def value(self, depth):
        if depth > _MAX_DEPTH:
            raise _Fault(self.at, "lists and sections are nested too deep", f"expected at most {_MAX_DEPTH} levels")
        start, first = self.at, self.text[self.at:self.at + 1]
        position = self.position(start)
        if first == "{":
            return self.object(position, depth)
        if first == "[":
            return self.list(position, depth)
        if first == '"':
            return Node("text", self.string(), position)
        for word, (kind, value) in _WORDS.items():
            if self.text.startswith(word, start):
                self.at += len(word)
                return Node(kind, value, position)
        number = _NUMBER.match(self.text, start)
        if not number:
            self.fail()
        self.at = number.end()
        return Node("number", number.group(), position)

    def string(self):
        begin, parts = self.at, []
        self.at += 1
        while True:
            plain = _PLAIN.match(self.text, self.at)
            if plain:
                parts.append(plain.group())
                self.at = plain.end()
            mark = self.text[self.at:self.at + 1]
            if mark == '"':
                self.at += 1
                return "".join(parts)
            if mark != "\\":
                raise _Fault(begin, "the text has no end", 'expected "')
            parts.append(self.escape())

    def escape(self):
        letter = self.text[self.at + 1:self.at + 2]
        if letter in _ESCAPES and letter:
            self.at += 2
            return _ESCAPES[letter]
        code = re.compile(r"\\u([0-9a-fA-F]{4})").match(self.text, self.at)
        if not code or 0xd800 <= int(code.group(1), 16) < 0xe000:
            raise _Fault(self.at, "unknown escape in a text", r"expected \" \\ \/ \b \f \n \r \t or \uXXXX")
        self.at = code.end()
        return chr(int(code.group(1), 16))

    def members(self, end, member):
        """Calls `member` for each entry up to the bracket `end`; a comma may stand before it."""
        self.at += 1
        self.skip()
        while self.text[self.at:self.at + 1] != end:
            member()
            self.skip()
            if self.text[self.at:self.at + 1] == ",":
                self.at += 1
                self.skip()
            elif self.text[self.at:self.at + 1] != end:
                self.fail()
        self.at += 1

    def object(self, position, depth):
        node = Node("object", {}, position)

        def member():
            place = self.at
            if self.text[place:place + 1] != '"':
                self.fail()
            name = self.string()
            if name in node.value:
                raise _Fault(place, f"{quoted(name)} is given twice", f"first on line {node.names[name].line}")
            self.skip()
            if self.text[self.at:self.at + 1] != ":":
                self.fail()
            self.at += 1
            self.skip()
            node.names[name] = self.position(place)
            node.value[name] = self.value(depth + 1)

        self.members("}", member)
        return node

    def list(self, position, depth):
        node = Node("list", [], position)
        self.members("]", lambda: node.value.append(self.value(depth + 1)))
        return node


def parse(text, source):
    """The root of JSON text; raises Mistakes with the place of what is malformed. `source` names the text."""
    parser = _Parser(text, source)
    try:
        return parser.document()
    except _Fault as fault:
        mistakes = Mistakes()
        mistakes.add(parser.position(fault.offset), fault.what, fault.expected)
        raise mistakes from None


def load(path):
    """The root of a file; raises Mistakes, at 1:1 for what concerns the whole file."""
    mistakes, start = Mistakes(), Position(str(path), 1, 1)
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as failure:
        mistakes.add(start, f"the file cannot be read: {failure.strerror}")
        raise mistakes from None
    if len(data) > _MAX_BYTES:
        mistakes.add(start, "the file is too large", "expected at most 16MiB")
    elif data.startswith(b"version https://git-lfs.github.com/spec/"):
        mistakes.add(start, "the file is a Git LFS pointer, not its content", "fetch it with: git lfs pull")
    elif data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        mistakes.add(start, "the file is compressed", "expected JSON")
    elif not data.strip():
        mistakes.add(start, "the file is empty", "expected JSON, {} at least")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            mistakes.add(start, "the file is binary", "expected JSON")
    mistakes.raise_if_any()
    return parse(text, str(path))
