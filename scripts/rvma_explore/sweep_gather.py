"""Results of a sweep, finished or not, as one CSV and one SQLite file with the same numbers."""

import contextlib
import csv
import errno
import io
import json
import sqlite3
from decimal import Decimal
from pathlib import Path

from . import sweep_columns as columns_of
from .files import partial_of, write_whole
from .mistakes import command_line_mistake, nearest_name, quoted
from .quantities import INTEGER as PLAIN
from .quantities import family_of
from .sweep_columns import INTEGER, REAL, TEXT, Column
from .sweep_effects import idle_axes
from .sweep_point import is_damaged, read_result

MANIFEST_SCHEMA = "rvma-sweep-points/1"
_NAMED = 20  # damaged points
_SQLITE_MAX = 2 ** 63 - 1
_HOST = (("wall_s", "sim.wall_s"), ("packets_per_wall_s", "sim.packets_per_wall_s"),
         ("peak_rss_bytes", "sim.peak_rss_bytes"))


def read_manifest(directory):
    """sweep.json of a sweep's directory; raises Mistakes if there is none."""
    path = Path(directory) / "sweep.json"
    try:
        manifest = json.loads(path.read_text())
    except (OSError, ValueError) as failure:
        raise command_line_mistake(f"{path} cannot be read: {failure}", "expected a directory of rvma sweep") from None
    if not isinstance(manifest, dict) or manifest.get("schema") != MANIFEST_SCHEMA:
        raise command_line_mistake(f"{path} is not of schema {MANIFEST_SCHEMA}")
    if not all(isinstance(manifest.get(part), list) for part in ("axes", "columns", "points")):
        raise command_line_mistake(f"{path} is not whole", "expected what rvma sweep writes; the same sweep writes it again")
    return manifest


class _Gatherer:
    def __init__(self, directory):
        self.directory = Path(directory)
        self.manifest = read_manifest(directory)
        self.axes = [(axis["key"], _axis_column(axis), axis["family"]) for axis in self.manifest["axes"]]
        self.asked = self.manifest["columns"]
        self.known_paths = set()
        self.rows, self.host_rows, self.kinds = [], [], set()
        self.notes, self.damaged = [], []

    def gather(self):
        for number, point in enumerate(self.manifest["points"]):
            self.add(number, point)
        self.note_damaged()
        columns = self.columns()
        columns = [self.typed(column) for column in columns]
        self.note_idle_axes(columns)
        self.write_csv("results.csv", [column.name for column in columns],
                       ([row.get(column.name) for column in columns] for row in self.rows))
        self.write_csv("columns.csv", ["name", "type", "unit", "kind", "meaning"],
                       ([c.name, c.type, c.unit, c.kind, c.meaning] for c in columns))
        self.write_csv("host.csv", ["point", "tries", "elapsed_s", *(name for name, _ in _HOST)], self.host_rows)
        self.write_sqlite(columns)
        return self.rows

    def add(self, number, point):
        outcome, stats = read_result(self.directory, point["id"])
        if outcome is None:
            if is_damaged(self.directory, point["id"]):
                self.damaged.append(point["id"])
            outcome = {"status": "not_run", "reason": ""}
        row = {"point": number, "id": point["id"], "trace": point["trace"], "protocol": point["protocol"],
               "seed": point["seed"], "status": outcome["status"], "reason": outcome["reason"]}
        for key, column, family in self.axes:
            text = point["values"][key]
            kind = family_of(family, text)
            row[column.name] = kind.in_column(kind.parse(text)) if kind else text
        numbers = self.numbers(stats) if stats is not None else {}
        for column in columns_of.RESULTS if numbers else []:
            if column.protocol not in ("", point["protocol"]):
                continue
            row[column.name] = numbers.get(column.source) if isinstance(column.source, str) else column.source(numbers)
        for kind, share in columns_of.shares(numbers).items():
            self.kinds.add(kind)
            row[f"share.{kind}"] = share
        for asked in self.asked:
            row[_asked_name(asked)] = columns_of.asked_value(numbers, asked)
        self.rows.append(row)
        if outcome["status"] != "not_run":
            self.host_rows.append([number, outcome.get("tries"), outcome.get("elapsed_s"),
                                   *(numbers.get(path) for _, path in _HOST)])

    def numbers(self, stats):
        numbers = columns_of.flatten(stats)
        if self.asked and len(self.known_paths) < 200_000:
            self.known_paths.update(numbers)
        return numbers

    def columns(self):
        shares = [Column(f"share.{kind}", REAL, "share", "result",
                         "how near the busiest unit of this kind came to its bound: its busy time / time")
                  for kind in sorted(self.kinds)]
        asked = [Column(_asked_name(entry), REAL, _unit_of(entry["path"]), "asked",
                        ("" if entry["how"] == "value" else entry["how"] + " of ") + f"{entry['path']} of stats.json")
                 for entry in self.asked]
        for entry, column in zip(self.asked, asked):
            if self.known_paths and all(row[column.name] is None for row in self.rows):
                nearest = nearest_name(entry["path"], sorted(self.known_paths))
                self.notes.append(f"columns: {quoted(entry['path'])} is in no result"
                                  + (f"; did you mean {quoted(nearest)}?" if nearest else ""))
        return [*columns_of.POINT, *(column for _, column, _ in self.axes), *columns_of.RESULTS, *shares, *asked]

    def note_damaged(self):
        points = self.directory / "points"
        for point_id in self.damaged[:_NAMED]:
            self.notes.append(f"the results of {points / point_id} are damaged: the point counts as not run")
        if len(self.damaged) > _NAMED:
            self.notes.append(f"the results of {len(self.damaged) - _NAMED} more points are damaged")
        if self.damaged:
            self.notes.append("rvma sweep with the same specification runs what is damaged again")

    def note_idle_axes(self, columns):
        rows = [[row.get(column.name) for column in columns] for row in self.rows]
        keys = {column.name: key for key, column, _ in self.axes}
        self.notes += [f"{keys[name]} had no effect: points that differ only in it have the same figures"
                       for name in idle_axes(columns, rows)]

    def typed(self, column):
        """With the type that its values allow: integers of 64 bits without sign, and words, are text."""
        values = [row[column.name] for row in self.rows if row.get(column.name) is not None]
        type_ = column.type
        if any(isinstance(value, str) for value in values) or any(
                isinstance(value, int) and value > _SQLITE_MAX for value in values):
            type_ = TEXT
        elif column.kind == "asked" and all(isinstance(value, int) for value in values):
            type_ = INTEGER
        return Column(column.name, type_, column.unit, column.kind, column.meaning, column.source)

    def write_csv(self, name, header, rows):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([["" if value is None else str(value) for value in row] for row in rows])
        write_whole(self.directory / name, text.getvalue())

    def write_sqlite(self, columns):
        """The file's bytes depend on its content alone (and on SQLite's version)."""
        path = self.directory / "results.sqlite"
        try:
            with partial_of(path) as partial, contextlib.closing(sqlite3.connect(partial, isolation_level=None)) as base:
                self.fill(base, columns)
        except sqlite3.Error as failure:
            raise OSError(errno.EIO, f"cannot be written: {failure}", str(path)) from None

    def fill(self, base, columns):
        base.execute("PRAGMA journal_mode = OFF")
        base.execute("BEGIN")
        base.execute("CREATE TABLE columns (name TEXT PRIMARY KEY, type TEXT, unit TEXT, kind TEXT, meaning TEXT)")
        base.executemany("INSERT INTO columns VALUES (?, ?, ?, ?, ?)",
                         [(c.name, c.type, c.unit, c.kind, c.meaning) for c in columns])
        base.execute("CREATE TABLE points (" + ", ".join(f'"{c.name}" {c.type}' for c in columns) + ")")
        base.executemany(f"INSERT INTO points VALUES ({', '.join('?' * len(columns))})",
                         ([_sql(row.get(c.name), c.type) for c in columns] for row in self.rows))
        base.execute("COMMIT")


def _sql(value, type_):
    if value is None:
        return None
    return str(value) if type_ == TEXT else float(value) if type_ == REAL else int(value)


def _axis_column(axis):
    key, family = axis["key"], family_of(axis["family"], "")
    if family is None:
        return Column(key, TEXT, "", "axis", "axis of the sweep")
    unit = family.column_unit
    type_ = INTEGER if family.column_factor == 1 else REAL
    return Column(f"{key}_{unit}" if unit and family is not PLAIN else key, type_, unit, "axis", "axis of the sweep")


def _asked_name(asked):
    return asked["path"] if asked["how"] == "value" else f"{asked['how']}.{asked['path']}"


def _unit_of(path):
    last = path.rsplit(".", 1)[-1]
    for end, unit in (("_ns", "ns"), ("_bytes", "bytes"), ("_gbps", "Gb/s"), ("_mpps", "million/s"), ("share", "share")):
        if last.endswith(end):
            return unit
    return ""


def gather(directory):
    """Writes results.csv, results.sqlite, columns.csv and host.csv of a sweep's directory. Returns the rows, in the order
    of the points, and notes for the user."""
    gatherer = _Gatherer(directory)
    return gatherer.gather(), gatherer.notes
