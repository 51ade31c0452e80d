"""The specification of a sweep, read and checked by itself: docs/reference/sweep.md is its reference."""

import math
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from . import positioned_json
from .mistakes import Mistakes, Position, nearest_hint, quoted
from .program import shared_directory
from .quantities import INTEGER, SIZE, TIME
from .sweep_axes import AxesReader

SCHEMA = "rvma-sweep/1"
PROTOCOLS = ("rvma", "rdma")
TABLES = ("model", "rtl", "both")
KEEP = ("stats", "all")
_MAX_SEED = 2 ** 64 - 1


@dataclass
class TraceSpec:
    """A trace of the specification: a file, or the arguments of `rvma gen`."""
    label: str
    position: Position
    file: Path = None
    generator: list = None


@dataclass
class Spec:
    source: str
    position: Position
    config: Path = None
    sets: dict = field(default_factory=dict)  # text by key
    traces: list = field(default_factory=list)
    protocols: list = field(default_factory=lambda: ["rvma"])
    seeds: list = field(default_factory=lambda: [1])
    check: bool = False
    table: str = "model"
    limit: str = ""
    wall_limit: str = ""
    memory_limit: str = ""
    retries: int = 2
    keep: str = "stats"  # of what a run writes
    blocks: list = field(default_factory=list)
    columns: list = field(default_factory=list)  # {"path", "how"}
    missing: Mistakes = None  # traces that are not there: told together with what is wrong in the others

    def points(self):
        """How many design points, without making them."""
        return (math.prod(block.count() for block in self.blocks) * len(self.traces) * len(self.protocols)
                * len(self.seeds))

    def axes(self):
        """Names of all axes, in order."""
        return [name for block in self.blocks for name in block.names()]


class _Reader:
    def __init__(self, root, path, program):
        self.root, self.directory, self.program = root, path.parent, program
        self.mistakes = Mistakes()
        self.spec = Spec(str(path), root.position)
        self.spec.missing = Mistakes()

    def read(self):
        if self.root.kind != "object":
            self.mistakes.add(self.root.position, "the specification is not an object", "expected { }")
            raise self.mistakes
        readers = {name[len("read_"):]: getattr(self, name) for name in dir(self) if name.startswith("read_")}
        for name, node in self.root.value.items():
            if name in readers:
                readers[name](node)
            else:
                self.mistakes.add(self.root.names[name], f"unknown key {quoted(name)}", nearest_hint(name, readers))
        self.check_together()
        if self.mistakes.lines:
            self.mistakes.lines += self.spec.missing.lines
        self.mistakes.raise_if_any()
        return self.spec

    # Each returns None after a mistake.

    def scalar(self, node, name, expected):
        text = node.text()
        if text is None:
            self.mistakes.add(node.position, f"{name}: a {node.kind} stands where one value belongs", expected)
        return text

    def one_of(self, node, name, known):
        text = self.scalar(node, name, "expected one of " + ", ".join(known))
        if text is not None and text not in known:
            self.mistakes.add(node.position, f"{name}: {quoted(text)} is unknown", nearest_hint(text, known))
            return None
        return text

    def quantity(self, node, name, family, expected):
        text = self.scalar(node, name, expected)
        if text is None:
            return None
        try:
            family.parse(text)
        except ValueError:
            self.mistakes.add(node.position, f"{name}: {quoted(text)} is no {family.name}", expected)
            return None
        return text

    def integer(self, node, name, low, high):
        expected = f"expected an integer, {low}..{high}"
        text = self.quantity(node, name, INTEGER, expected)
        if text is not None and not low <= INTEGER.parse(text) <= high:
            self.mistakes.add(node.position, f"{name}: {text} is out of range", expected)
            return None
        return None if text is None else INTEGER.parse(text)

    def entries(self, node, name, expected):
        """Of a list that is not empty; a single value may stand for a list of one."""
        if node.kind != "list":
            return [node]
        if not node.value:
            self.mistakes.add(node.position, f"{name}: the list is empty", expected)
        return node.value

    # One for each key.

    def read_schema(self, node):
        self.one_of(node, "schema", [SCHEMA])

    def read_config(self, node):
        text = self.scalar(node, "config", "expected the path of a configuration file")
        if text is None:
            return
        self.spec.config = self.directory / text
        if not self.spec.config.is_file():
            self.mistakes.add(node.position, f"config: no such file: {quoted(self.spec.config.absolute())}",
                              "expected a path relative to the specification")

    def read_preset(self, node):
        names = sorted(path.stem for path in shared_directory("presets").glob("*.json"))
        text = self.one_of(node, "preset", names)
        if text is not None:
            self.spec.config = shared_directory("presets") / f"{text}.json"

    def read_traces(self, node):
        expected = 'expected traces: paths, or {"gen": "pingpong --size 64"}'
        for entry in self.entries(node, "traces", expected):
            trace = self.trace(entry, expected)
            if trace is None:
                continue
            if any(trace.label == other.label for other in self.spec.traces):
                self.mistakes.add(entry.position, f"traces: {quoted(trace.label)} is given twice",
                                  'expected another "name"')
            self.spec.traces.append(trace)

    def trace(self, node, expected):
        if node.kind != "object":
            text = self.scalar(node, "traces", expected)
            return None if text is None else self.trace_file(node, text, text)
        for name in node.value:
            if name not in ("file", "gen", "name"):
                self.mistakes.add(node.names[name], f"traces: unknown key {quoted(name)}",
                                  nearest_hint(name, ["file", "gen", "name"]))
        if ("file" in node.value) == ("gen" in node.value):
            self.mistakes.add(node.position, 'traces: neither or both of "file" and "gen"', expected)
            return None
        which = "file" if "file" in node.value else "gen"
        text = self.scalar(node.value[which], f"traces: {which}", expected)
        label = self.scalar(node.value["name"], "traces: name", "expected text") if "name" in node.value else text
        if text is None or label is None:
            return None
        if which == "file":
            return self.trace_file(node.value["file"], label, text)
        return self.trace_generator(node.value["gen"], label, text)

    def trace_file(self, node, label, text):
        path = self.directory / text
        if not path.is_file():
            self.spec.missing.add(node.position, f"traces: no such file: {quoted(path.absolute())}",
                                  "expected a path relative to the specification")
        return TraceSpec(label, node.position, file=path)

    def trace_generator(self, node, label, text):
        try:
            words = shlex.split(text)
        except ValueError as failure:
            self.mistakes.add(node.position, f"traces: gen: {failure}")
            return None
        if not words or any(word.split("=")[0] in ("--output", "-h", "--help") for word in words):
            self.mistakes.add(node.position, f"traces: gen: {quoted(text)} writes no trace here",
                              "expected a pattern and its options, without --output")
            return None
        return TraceSpec(label, node.position, generator=words)

    def read_set(self, node):
        if node.kind != "object":
            self.mistakes.add(node.position, "set: not an object", 'expected { "KEY": VALUE }')
            return
        axes = AxesReader(self.program, self.mistakes)
        for key, value in node.value.items():
            if axes.known(key, node.names[key]):
                text = axes.literal(key, value)
                if text is not None:
                    self.spec.sets[key] = text
        axes.check_literals()

    def read_protocols(self, node):
        found = [self.one_of(entry, "protocols", PROTOCOLS) for entry in self.entries(node, "protocols", "expected rvma")]
        self.spec.protocols = list(dict.fromkeys(found))

    def read_seeds(self, node):
        if node.kind == "object":
            bounds = {name: self.integer(node.value[name], f"seeds: {name}", 0, _MAX_SEED)
                      for name in ("from", "to") if name in node.value}
            if set(node.value) != {"from", "to"}:
                self.mistakes.add(node.position, "seeds: not a range", 'expected {"from": 1, "to": 5}')
            elif None not in bounds.values():
                self.spec.seeds = range(bounds["from"], bounds["to"] + 1)
                if not self.spec.seeds:
                    self.mistakes.add(node.position, "seeds: the range is empty", '"from" is above "to"')
            return
        found = [self.integer(entry, "seeds", 0, _MAX_SEED) for entry in self.entries(node, "seeds", "expected seeds")]
        self.spec.seeds = list(dict.fromkeys(found))

    def read_check(self, node):
        if node.kind != "boolean":
            self.mistakes.add(node.position, "check: neither true nor false")
        self.spec.check = node.value

    def read_table(self, node):
        self.spec.table = self.one_of(node, "table", TABLES)

    def read_limit(self, node):
        self.spec.limit = self.quantity(node, "limit", TIME, "expected a simulated time, such as 10ms")

    def read_wall_limit(self, node):
        self.spec.wall_limit = self.quantity(node, "wall_limit", TIME, "expected a time in s, ms, .., such as 600s")

    def read_memory_limit(self, node):
        self.spec.memory_limit = self.quantity(node, "memory_limit", SIZE, "expected a size, such as 2GiB")

    def read_retries(self, node):
        self.spec.retries = self.integer(node, "retries", 0, 100)

    def read_keep(self, node):
        self.spec.keep = self.one_of(node, "keep", KEEP)

    def read_axes(self, node):
        reader = AxesReader(self.program, self.mistakes)
        self.spec.blocks = [block for entry in self.entries(node, "axes", 'expected {"grid": {..}}')
                            if (block := reader.block(entry)) is not None]
        reader.check_literals()

    def read_columns(self, node):
        expected = 'expected a path in stats.json, such as "units.node0.nic.table.lookups", or {"sum": "PATH"}'
        for entry in node.value if node.kind == "list" else [node]:
            how = "value"
            if entry.kind == "object" and len(entry.value) == 1 and next(iter(entry.value)) in ("sum", "max"):
                how, entry = next(iter(entry.value.items()))
            if entry.kind != "text" or not entry.value:
                self.mistakes.add(entry.position, "columns: not a path", expected)
            elif how == "value" and "*" in entry.value:
                self.mistakes.add(entry.position, f"columns: {quoted(entry.value)} may be several numbers",
                                  'expected {"sum": "PATH"} or {"max": "PATH"}')
            else:
                self.spec.columns.append({"path": entry.value, "how": how})

    def check_together(self):
        spec, names = self.spec, self.root.names
        if "traces" not in self.root.value:
            self.mistakes.add(self.root.position, "there are no traces", 'expected "traces": ["FILE", {"gen": ".."}]')
        if "config" in names and "preset" in names:
            self.mistakes.add(names["preset"], "preset: there is a config already", "expected one of them")
        for block in spec.blocks:
            for name in block.names():
                if name in spec.sets:
                    self.mistakes.add(block.positions[name], f"{name} is an axis, and set as well", "expected one of them")
        if spec.table in ("rtl", "both") and "rdma" in spec.protocols:
            self.mistakes.add(names["table"], "table: the RDMA baseline has no translation table",
                              'expected "protocols": ["rvma"]')
        self.check_generator_axes()

    def check_generator_axes(self):
        for block in self.spec.blocks:
            for name in block.names():
                for trace in self.spec.traces if name.startswith("gen.") else []:
                    option = "--" + name[len("gen."):]
                    if trace.generator is None:
                        self.mistakes.add(trace.position, f"traces: {quoted(trace.label)} is a file, and {name} an axis",
                                          'expected {"gen": ".."}')
                    elif any(word.split("=")[0] == option for word in trace.generator):
                        self.mistakes.add(trace.position, f"traces: gen: {option} is given, and {name} is an axis",
                                          "expected one of them")


def read_spec(path, program):
    """A Spec that is right by itself: names, types, units, ranges, files (of traces: see Spec.missing). Raises Mistakes with all that is wrong."""
    return _Reader(positioned_json.load(path), Path(path), program).read()
