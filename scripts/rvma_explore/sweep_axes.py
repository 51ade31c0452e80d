"""The axes of a sweep's specification: blocks of keys, each with the values that it takes."""

import math
from dataclasses import dataclass, field

from . import sampling
from .mistakes import nearest_hint, quoted
from .quantities import INTEGER, family_of, guess_family

KINDS = ("grid", "zip", "list", "random", "latin_hypercube")
_SAMPLED = {"random": sampling.random_points, "latin_hypercube": sampling.latin_hypercube_points}
_RANGE = ("from", "to", "scale", "steps", "step")
_MAX_COUNT = 10 ** 9
_MOST_STEPS = 100_000


@dataclass
class Block:
    """Axes that make points together; blocks multiply."""
    kind: str
    position: object
    axes: dict = field(default_factory=dict)       # Choice or Range by name; none in a list
    listed: list = field(default_factory=list)     # of a list: its points
    samples: int = 0
    seed: int = 1
    positions: dict = field(default_factory=dict)  # of each axis, and of (axis, text) for each written value

    def names(self):
        return list(self.listed[0]) if self.kind == "list" else list(self.axes)

    def count(self):
        if self.kind == "list":
            return len(self.listed)
        if self.kind == "grid":
            return math.prod(_length(axis) for axis in self.axes.values())
        return _length(next(iter(self.axes.values()))) if self.kind == "zip" else self.samples

    def points(self):
        if self.kind == "list":
            return self.listed
        if self.kind in _SAMPLED:
            return _SAMPLED[self.kind](self.axes, self.samples, self.seed)
        return (sampling.grid_points if self.kind == "grid" else sampling.zip_points)(self.axes)


def _length(axis):
    return len(axis.values) if isinstance(axis, sampling.Choice) else axis.count()


class AxesReader:
    """Reads blocks into Block; what is wrong goes to `mistakes`, and then the block or axis is None."""

    def __init__(self, program, mistakes):
        self.keys, self.program, self.mistakes = program.keys, program, mistakes
        self.literals = []  # (key, text, position), for the program to judge
        self.seen = {}

    def known(self, name, position):
        """Whether `name` is an axis that there is."""
        if name in self.keys and name != "workload.seed" or name.startswith("gen.") and name != "gen.output":
            return True
        if name == "workload.seed":
            self.mistakes.add(position, "workload.seed is no axis", 'expected "seeds" of the specification')
        elif name == "gen.output":
            self.mistakes.add(position, "gen.output: the sweep says where traces go")
        else:
            self.mistakes.add(position, f"unknown key {quoted(name)}", self.hint(name))
        return False

    def hint(self, name):
        last = name.rsplit(".", 1)[-1]
        elsewhere = [key for key in self.keys if key.rsplit(".", 1)[-1] == last]
        hint = nearest_hint(name, list(self.keys))
        if hint.startswith("did"):
            return hint
        return f"did you mean {quoted(elsewhere[0])}?" if elsewhere else "see rvma config --describe"

    def literal(self, key, node):
        """A written value as text, noted for check_literals()."""
        text = node.text()
        if text is None:
            self.mistakes.add(node.position, f"{key}: a {node.kind} stands where one value belongs",
                              "expected text, a number, true or false")
            return None
        if not key.startswith("gen."):
            self.literals.append((key, text, node.position))
        return text

    def check_literals(self):
        """Type, unit and range of all written values, by the program's own rules."""
        answers = self.program.resolve([f"{key}={text}"] for key, text, _ in self.literals)
        for (_, _, position), answer in zip(self.literals, answers, strict=True):
            for error in answer["errors"] if answer.get("values") else []:
                self.mistakes.add(position, error["what"].removeprefix("--set "), error["expected"])
        self.literals = []

    def block(self, node):
        kinds = [kind for kind in KINDS if node.kind == "object" and kind in node.value]
        if len(kinds) != 1:
            self.mistakes.add(node.position, "axes: not one block", "expected { } with one of " + ", ".join(KINDS))
            return None
        kind = kinds[0]
        block = Block(kind, node.position)
        allowed = [kind] + (["count", "seed"] if kind in _SAMPLED else [])
        for name in node.value:
            if name not in allowed:
                self.mistakes.add(node.names[name], f"axes: {quoted(name)} is not of a {kind} block",
                                  nearest_hint(name, allowed))
        if kind in _SAMPLED:
            self.read_sampled(node, block)
        good = self.read_list(node.value[kind], block) if kind == "list" else self.read_axes(node.value[kind], block)
        return block if good else None

    def read_sampled(self, node, block):
        for name, low in (("count", 1), ("seed", 0)):
            if name not in node.value:
                if name == "count":
                    self.mistakes.add(node.position, f"axes: {block.kind} has no count", 'expected "count": 20')
                continue
            entry = node.value[name]
            try:
                number = INTEGER.parse(entry.text() or "")
            except ValueError:
                number = -1
            if not low <= number <= _MAX_COUNT:
                self.mistakes.add(entry.position, f"axes: {name} is no number from {low} to {_MAX_COUNT}")
                continue
            if name == "count":
                block.samples = number
            else:
                block.seed = number

    def note_axis(self, name, position, block):
        """Whether the axis is known and new."""
        if not self.known(name, position):
            return False
        if name in self.seen:
            self.mistakes.add(position, f"{name} is an axis already", f"first on line {self.seen[name].line}")
            return False
        self.seen[name] = position
        block.positions[name] = position
        return True

    def read_list(self, node, block):
        """A list of points, all with the same keys."""
        if node.kind != "list" or not node.value or any(e.kind != "object" or not e.value for e in node.value):
            self.mistakes.add(node.position, "axes: not a list of points", 'expected [{"KEY": VALUE}, ..]')
            return False
        first = node.value[0]
        good = all([self.note_axis(name, first.names[name], block) for name in first.value])
        for entry in node.value:
            for name in sorted(set(entry.value) ^ set(first.value)):
                where = entry.names.get(name, entry.position)
                self.mistakes.add(where, f"axes: {quoted(name)} is not in every point of the list",
                                  "expected the same keys in all")
                good = False
            point = {name: self.literal(name, value) for name, value in entry.value.items()} if good else {}
            for name, text in point.items():
                block.positions[name, text] = entry.value[name].position
            block.listed.append(point)
        return good and all(None not in point.values() for point in block.listed)

    def read_axes(self, node, block):
        if node.kind != "object" or not node.value:
            self.mistakes.add(node.position, f"axes: the {block.kind} is empty", 'expected {"KEY": [VALUES]}')
            return False
        good = True
        for name, value in node.value.items():
            axis = self.read_axis(name, value, block) if self.note_axis(name, node.names[name], block) else None
            good = good and axis is not None
            block.axes[name] = axis
        lengths = {name: _length(axis) for name, axis in block.axes.items()} if good and block.kind == "zip" else {}
        for name, length in lengths.items():
            if length != next(iter(lengths.values())):
                self.mistakes.add(block.positions[name], f"axes: zip of unequal lengths: {name} has {length} values, and "
                                  f"{next(iter(lengths))} has {next(iter(lengths.values()))}")
                good = False
        return good

    def read_axis(self, name, node, block):
        if node.kind == "object":
            return self.read_range(name, node, block)
        entries = node.value if node.kind == "list" else [node]
        if not entries:
            self.mistakes.add(node.position, f"{name}: the list is empty", "expected at least one value")
            return None
        values = [self.literal(name, entry) for entry in entries]
        if None in values:
            return None
        for text, entry in zip(values, entries):
            if (name, text) in block.positions and block.kind == "grid":
                self.mistakes.add(entry.position, f"{name}: {quoted(text)} is given twice")
            block.positions[name, text] = entry.position
        return sampling.Choice(values)

    def read_range(self, name, node, block):
        for member in node.value:
            if member not in _RANGE:
                self.mistakes.add(node.names[member], f"{name}: unknown key {quoted(member)}", nearest_hint(member, _RANGE))
        missing = [member for member in ("from", "to") if member not in node.value]
        if missing:
            self.mistakes.add(node.position, f"{name}: a range without {quoted(missing[0])}",
                              'expected {"from": A, "to": B}')
            return None
        ends = [self.literal(name, node.value[member]) for member in ("from", "to")]
        if None in ends:
            return None
        family = self.family(name, ends)
        if family is None:
            about = self.keys.get(name, {}).get("type", "words")
            self.mistakes.add(node.position, f"{name}: there is nothing between {quoted(ends[0])} and {quoted(ends[1])}",
                              f"expected a list of values ({about})")
            return None
        try:
            low, high = map(family.parse, ends)
        except ValueError:
            return None  # the program says so of the end that is wrong
        axis = sampling.Range(family, low, high, step=family.finest)
        return axis if self.shape_range(name, node, block, axis) else None

    def family(self, name, ends):
        of_type = self.keys[name]["type"] if name in self.keys else None
        families = {family_of(of_type, end) if of_type else guess_family(end) for end in ends}
        return families.pop() if len(families) == 1 else None

    def shape_range(self, name, node, block, axis):
        """Scale, step and number of steps; whether they are right."""
        count = len(self.mistakes.lines)
        wrong = self.mistakes.add
        if axis.low > axis.high:
            wrong(node.value["from"].position, f"{name}: the range is empty", '"from" is above "to"')
        axis.scale = node.value["scale"].text() if "scale" in node.value else "linear"
        if axis.scale not in sampling.SCALES:
            wrong(node.value["scale"].position, f"{name}: unknown scale", nearest_hint(axis.scale or "", sampling.SCALES))
        if axis.scale == "log" and axis.low == 0:
            wrong(node.value["from"].position, f"{name}: a log scale has no 0", 'expected "from" above 0')
        if "step" in node.value:
            axis.step = self.number(name, node.value["step"], axis.family)
        if "steps" in node.value:
            axis.steps = self.number(name, node.value["steps"], INTEGER)
        self.check_steps(name, node, block, axis)
        if len(self.mistakes.lines) != count:
            return False
        if axis.scale == "power_of_two" and not axis.powers():
            wrong(node.position, f"{name}: there is no power of two in the range")
        values = axis.values() if 0 < axis.steps <= _MOST_STEPS else []  # the count of points bounds the rest
        if len(set(values)) != len(values):
            wrong(node.value["steps"].position, f"{name}: {len(values)} steps give {len(set(values))} different values",
                  "expected fewer")
        return len(self.mistakes.lines) == count

    def check_steps(self, name, node, block, axis):
        sampled, given = block.kind in _SAMPLED, [member for member in ("step", "steps") if member in node.value]
        if axis.scale == "power_of_two" and given:
            self.mistakes.add(node.names[given[0]], f"{name}: powers of two have no {given[0]}")
        elif sampled and "steps" in given:
            self.mistakes.add(node.names["steps"], f"{name}: {block.kind} takes any value of the range", "expected no steps")
        elif not sampled and axis.scale == "linear" and len(given) != 1 and axis.family is not INTEGER:
            self.mistakes.add(node.position, f"{name}: how many values is not said", 'expected "steps": 5, or a "step"')
        elif not sampled and axis.scale == "log" and "steps" not in given:
            self.mistakes.add(node.position, f"{name}: how many values is not said", 'expected "steps": 5')

    def number(self, name, node, family):
        """At least 1 base unit; 1 after a mistake."""
        try:
            value = family.parse(node.text() or "")
        except ValueError:
            value = 0
        if not 0 < value <= 2 ** 63:
            self.mistakes.add(node.position, f"{name}: {quoted(node.text() or node.kind)} is no step",
                              f"expected a {family.name} above 0")
            return 1
        return value
