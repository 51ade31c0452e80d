"""The manifest of a regression suite, regress.json: which runs there are. docs/how-to/regress.md describes it."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from . import positioned_json, regress_results
from .mistakes import Mistakes, Position, nearest_hint, quoted

MANIFEST = "regress.json"
EXPECTED = "expected"
SCHEMA = "rvma-regress/1"
WORK = "{work}"  # in arguments: the scratch directory of the run
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SOURCES = ("trace", "gen", "import")
_PROTOCOLS = ("rvma", "rdma")
_TABLES = ("model", "rtl")
_MAX_SEED = 2**64 - 1


@dataclass(frozen=True)
class Run:
    """One run, with an expectation of its own unless it is one of several tables that must all give the same."""
    name: str
    expectation: str  # name of its file, without directory and ending
    position: Position
    trace: str = ""  # in the suite's directory, or:
    gen: tuple = ()  # arguments of `rvma gen`, or
    imported: tuple = ()  # of `rvma import`
    preset: str = "default"
    config: str = ""
    settings: tuple = ()
    protocol: str = "rvma"
    table: str = "model"
    seed: int = 1
    check: bool = True


@dataclass
class Suite:
    directory: Path
    runs: list = field(default_factory=list)

    def expectation_path(self, run):
        return self.directory / EXPECTED / f"{run.expectation}.json"

    def stale_expectations(self):
        """Expectations of no run, by name. What is none, by name or by schema, is somebody else's."""
        known = {self.expectation_path(run).name for run in self.runs}
        folder = self.directory / EXPECTED
        return sorted(path for path in folder.glob("*.json")
                      if path.name not in known and path.is_file() and regress_results.is_expectation(path))


class _Reader:
    def __init__(self, directory, presets):
        self.directory, self.presets = directory, presets
        self.mistakes = Mistakes()
        self.suite = Suite(directory)
        self.names = {}

    def read(self):
        path = self.directory / MANIFEST
        root = positioned_json.load(path)
        if not self.is_kind(root, "object", "the manifest"):
            return
        self.known(root, {"schema", "runs"})
        schema = root.value.get("schema")
        if schema is None or schema.value != SCHEMA:
            self.mistakes.add(schema.position if schema else root.position, "unknown schema of the manifest",
                              f"expected \"schema\": \"{SCHEMA}\"")
        runs = root.value.get("runs")
        if runs is None:
            self.mistakes.add(root.position, "the manifest has no \"runs\"", "expected a list of runs")
        elif self.is_kind(runs, "list", "\"runs\""):
            if not runs.value:
                self.mistakes.add(runs.position, "\"runs\" is empty", "expected at least one run")
            for node in runs.value:
                self.entry(node)

    def entry(self, node):
        if not self.is_kind(node, "object", "a run"):
            return
        self.known(node, {"name", *_SOURCES, "presets", "config", "set", "protocols", "tables", "seeds", "check"})
        name = self.text(node, "name", "")
        if not _NAME.fullmatch(name):
            self.mistakes.add(node.value["name"].position if "name" in node.value else node.position,
                              f"a run's name is {quoted(name)}", "expected letters a-z, digits, '.', '-' and '_'")
        given = [source for source in _SOURCES if source in node.value]
        if len(given) != 1:
            self.mistakes.add(node.position, f"{quoted(name)} has {' and '.join(given) or 'nothing to run'}",
                              "expected one of trace, gen and import")
        common = dict(position=node.position, trace=self.file(node, "trace"), gen=self.texts(node, "gen", ()),
                      imported=self.texts(node, "import", ()), config=self.file(node, "config"),
                      settings=self.texts(node, "set", ()), check=self.flag(node, "check", True))
        presets = self.choices(node, "presets", ("default", *self.presets))
        protocols = self.choices(node, "protocols", _PROTOCOLS)
        tables = self.choices(node, "tables", _TABLES)
        seeds = self.seeds(node)
        if "rdma" in protocols and "rtl" in tables:
            self.mistakes.add(node.value["tables"].position, "the RDMA baseline has no translation table",
                              "expected tables model, or a run of its own for rdma")
        if common["config"] and presets != ("default",):
            self.mistakes.add(node.value["config"].position, f"{quoted(name)} has presets and a config",
                              "expected one of them")
        for preset in presets:
            for protocol in protocols:
                for seed in seeds:
                    self.add(name, preset, protocol, seed, (len(presets), len(protocols), len(seeds)), tables, common)

    def add(self, name, preset, protocol, seed, counts, tables, common):
        """A part of the name for each list that has several entries."""
        parts = [part for count, part in zip(counts, (preset, protocol, f"seed{seed}")) if count > 1]
        expectation = ".".join([name, *parts])
        for table in tables:
            run = Run(name=expectation + (f".{table}" if len(tables) > 1 else ""), expectation=expectation,
                      preset=preset, protocol=protocol, table=table, seed=seed, **common)
            for key in {run.name, expectation}:
                first = self.names.setdefault(key, (name, common["position"]))
                if first[1] != common["position"]:
                    self.mistakes.add(common["position"], f"a second run {quoted(key)}",
                                      f"expected another name; line {first[1].line} has this one")
            self.suite.runs.append(run)

    # -------------------------------------------------------------------------------------------------- values

    def is_kind(self, node, kind, what):
        if node.kind == kind:
            return True
        self.mistakes.add(node.position, f"{what} is a {node.kind}", f"expected a {kind}")
        return False

    def known(self, node, names):
        for name in node.value:
            if name not in names:
                self.mistakes.add(node.names[name], f"unknown key {quoted(name)}", nearest_hint(name, sorted(names)))

    def text(self, node, key, default):
        value = node.value.get(key)
        return value.value if value is not None and self.is_kind(value, "text", f"\"{key}\"") else default

    def flag(self, node, key, default):
        value = node.value.get(key)
        return value.value if value is not None and self.is_kind(value, "boolean", f"\"{key}\"") else default

    def file(self, node, key):
        """A file in the suite's directory."""
        name = self.text(node, key, "")
        if name and not name.startswith(WORK) and not (self.directory / name).is_file():
            self.mistakes.add(node.value[key].position, f"there is no file {quoted(name)}",
                              f"expected one in {self.directory}")
        return name

    def texts(self, node, key, default):
        value = node.value.get(key)
        if value is None or not self.is_kind(value, "list", f"\"{key}\""):
            return default
        if not value.value:
            self.mistakes.add(value.position, f"\"{key}\" is empty", "expected at least one text")
        return tuple(entry.value for entry in value.value if self.is_kind(entry, "text", f"an entry of \"{key}\""))

    def choices(self, node, key, known):
        chosen = self.texts(node, key, known[:1])
        for entry, text in zip(node.value[key].value if key in node.value else (), chosen):
            if text not in known:
                self.mistakes.add(entry.position, f"unknown {key[:-1]} {quoted(text)}", nearest_hint(text, known))
            elif chosen.count(text) > 1:
                self.mistakes.add(entry.position, f"{quoted(text)} is given twice", "expected it once")
        return chosen

    def seeds(self, node):
        value = node.value.get("seeds")
        if value is None or not self.is_kind(value, "list", "\"seeds\""):
            return (1,)
        seeds = []
        for entry in value.value:
            if entry.kind == "number" and entry.value.isdigit() and int(entry.value) <= _MAX_SEED:
                seeds.append(int(entry.value))
            else:
                self.mistakes.add(entry.position, "a seed is no integer of 64 bits", "expected 0..2^64-1")
        if not value.value:
            self.mistakes.add(value.position, "\"seeds\" is empty", "expected at least one seed")
        return tuple(seeds)


def load(directory, presets):
    """The suite of `directory`; raises Mistakes. `presets`: the directory of named configurations."""
    names = sorted(path.stem for path in Path(presets).glob("*.json"))
    if not os.path.isdir(directory):
        mistakes = Mistakes()
        mistakes.add(Position(str(directory), 1, 1), "there is no such directory", f"expected one with a {MANIFEST}")
        raise mistakes
    reader = _Reader(Path(directory), names)
    reader.read()
    reader.mistakes.raise_if_any()
    return reader.suite
