"""From a specification to design points: traces written, every configuration checked and resolved by the program, each
point with the hash by which a finished one is found again."""

import hashlib
import itertools
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from .files import sha256_of
from .mistakes import Mistakes, quoted
from .quantities import INTEGER, SIZE, family_of, guess_family

_ID_DIGITS = 20


@dataclass
class Trace:
    """A trace file that points run."""
    label: str
    path: Path
    position: object
    sha256: str
    stamp: list  # size and time of change: what tells cheaply that it is still the same


@dataclass
class Point:
    id: str
    trace: Trace
    protocol: str
    seed: int
    values: dict  # text by axis, configuration keys as the program prints them
    sets: dict    # text by configuration key: what differs from the base configuration
    warnings: list


@dataclass
class Plan:
    points: list = field(default_factory=list)
    axes: list = field(default_factory=list)  # {"key", "family"}, family "" for words
    twins: int = 0  # points left out because another one is the same run


class _Planner:
    def __init__(self, spec, program, trace_directory, progress):
        self.spec, self.program, self.directory = spec, program, trace_directory
        self.progress = progress
        self.mistakes = Mistakes()
        self.mistakes.lines += spec.missing.lines
        self.topology_hashes = {}

    def plan(self):
        plan, ids = Plan(), set()
        combinations = [dict(itertools.chain.from_iterable(part.items() for part in parts))
                        for parts in itertools.product(*(block.points() for block in self.spec.blocks))]
        for trace_spec in self.spec.traces:
            groups = self.trace_groups(trace_spec, combinations)
            resolved = {protocol: self.resolved(trace_spec, groups, combinations, protocol)
                        for protocol in self.spec.protocols}
            for number, combination in enumerate(combinations):
                for protocol in self.spec.protocols:
                    trace, answer = resolved[protocol][number] or (None, None)
                    for seed in self.spec.seeds if answer else []:
                        point = self.point(trace, protocol, seed, combination, answer)
                        plan.twins += point.id in ids
                        if point.id not in ids:
                            plan.points.append(point)
                            ids.add(point.id)
        self.mistakes.raise_if_any()
        plan.axes = self.axes(plan)
        return plan

    # Traces.

    def trace_groups(self, trace_spec, combinations):
        """Numbers of the combinations that run each trace file: one file unless axes vary a generator's options."""
        by_options = {}
        for number, combination in enumerate(combinations):
            options = tuple((name, value) for name, value in combination.items() if name.startswith("gen."))
            by_options.setdefault(options, []).append(number)
        groups = []
        if trace_spec.file is not None and not trace_spec.file.is_file():
            return groups  # one of Spec.missing
        for options, numbers in by_options.items():
            try:
                groups.append((self.trace(trace_spec, options), numbers))
            except Mistakes as mistakes:
                self.add_generator_mistakes(trace_spec, options, mistakes)
            except OSError as failure:
                self.mistakes.add(trace_spec.position, f"traces: {quoted(trace_spec.label)} cannot be read: "
                                  f"{failure.strerror}")
        return groups

    def trace(self, trace_spec, options):
        path = trace_spec.file
        if path is None:
            arguments = list(trace_spec.generator)
            for name, value in options:
                arguments += ["--" + name[len("gen."):], value]
            digest = hashlib.sha256(json.dumps([self.program.sha256, arguments]).encode()).hexdigest()
            path = self.directory / f"{arguments[0]}-{digest[:_ID_DIGITS]}.trace"
            if not path.exists():
                self.directory.mkdir(parents=True, exist_ok=True)
                partial = path.with_name(f"{path.name}.partial.{os.getpid()}")
                try:
                    self.program.ask("gen", *arguments, "--output", partial)
                    os.replace(partial, path)
                finally:
                    partial.unlink(missing_ok=True)
        status = path.stat()
        return Trace(trace_spec.label, path.absolute(), trace_spec.position, sha256_of(path),
                     [status.st_size, status.st_mtime_ns])

    def add_generator_mistakes(self, trace_spec, options, mistakes):
        given = "".join(f" --{name[len('gen.'):]} {value}" for name, value in options)
        for line in mistakes.lines:
            what = line.split("error: ", 1)[-1]
            self.mistakes.add(trace_spec.position, f"traces: rvma gen {trace_spec.generator[0]} ..{given}: {what}"
                              if given else f"traces: {what}")

    # Configurations.

    def resolved(self, trace_spec, groups, combinations, protocol):
        """(trace, the program's answer) for each combination; the answer is None where it is wrong."""
        result, refused = [None] * len(combinations), {}
        base = [part for key, text in self.spec.sets.items() for part in ("--set", f"{key}={text}")]
        if self.spec.config:
            base += ["--config", self.spec.config]
        for trace, numbers in groups:
            sets = [[f"{key}={text}" for key, text in config_part(combinations[n]).items()] for n in numbers]
            try:
                answers = self.program.resolve(sets, *base, "--trace", trace.path, "--protocol", protocol)
                for number, answer in zip(numbers, answers, strict=True):
                    self.progress()
                    result[number] = (trace, self.digest(answer) if "config" in answer else None)
                    for error in answer.get("errors", []):
                        refused.setdefault((error["what"], error["expected"]), []).append(combinations[number])
            except Mistakes as mistakes:
                for line in mistakes.lines:
                    self.mistakes.add_lines(line)
                for number in numbers:
                    result[number] = (trace, None)
        for (what, expected), at in refused.items():
            self.refuse(what, expected, at, len(combinations), trace_spec)
        return result

    def refuse(self, what, expected, at, total, trace_spec):
        """A configuration that is wrong as a whole stands at the value of the axis that it speaks of."""
        position = trace_spec.position
        for block in self.spec.blocks:
            for name in block.names():
                if what.startswith(name + ":"):
                    position = block.positions.get((name, at[0][name]), block.positions[name])
        where = " ".join(f"{key}={text}" for key, text in at[0].items())
        if where:
            what += f" (with {where}" + (f", and at {len(at) - 1} more of {total} points)" if len(at) > 1 else ")")
        self.mistakes.add(position, what, expected)

    def digest(self, answer):
        """What is needed of an answer, without the whole configuration."""
        config = answer["config"]
        values = {key: _text(_at(config, key)) for block in self.spec.blocks for key in block.names()
                  if not key.startswith("gen.")}
        parts = [json.dumps(config)]
        if config["fabric"]["topology"] == "file":
            parts.append(self.topology_hash(config["fabric"]["file"]["path"]))
        # Of a key of the base configuration it is no news that a run does not need it.
        warnings = [text for text in answer["warnings"] if text.split(" ")[0] in {*values, *self.spec.sets}]
        return {"values": values, "sha256": hashlib.sha256("\n".join(parts).encode()).hexdigest(), "warnings": warnings}

    def topology_hash(self, path):
        if path not in self.topology_hashes:
            self.topology_hashes[path] = sha256_of(path)
        return self.topology_hashes[path]

    def point(self, trace, protocol, seed, combination, answer):
        spec = self.spec
        options = {"check": spec.check, "limit": spec.limit, "table": spec.table}
        identity = [self.program.sha256, answer["sha256"], trace.sha256, seed, protocol, options]
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:_ID_DIGITS]
        values = {name: answer["values"].get(name, text) for name, text in combination.items()}
        return Point(digest, trace, protocol, seed, values, config_part(combination), answer["warnings"])

    def axes(self, plan):
        found = []
        for name in self.spec.axes():
            texts = {point.values[name] for point in plan.points}
            of_type = self.program.keys[name]["type"] if name in self.program.keys else None
            families = {family_of(of_type, text) if of_type else guess_family(text) for text in texts}
            if families == {INTEGER, SIZE}:
                families = {SIZE}
            family = families.pop() if len(families) == 1 else None
            found.append({"key": name, "family": family.name if family else ""})
        return found


def config_part(combination):
    """The axes that are configuration keys."""
    return {name: text for name, text in combination.items() if not name.startswith("gen.")}


def _at(config, key):
    for name in key.split("."):
        config = config[name]
    return config


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)


def make_plan(spec, program, trace_directory, progress=lambda: None):
    """All points of `spec`, in order: traces, then axes, protocols and seeds, the last varying fastest. Traces are
    generated into `trace_directory`. Raises Mistakes if anything in any point is wrong. `progress` is called for each
    configuration that was checked."""
    return _Planner(spec, program, trace_directory, progress).plan()
