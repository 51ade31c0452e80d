"""Result directories, read whole or not at all: of runs (`rvma run --out`), comparisons (`rvma compare --out`) and
sweeps (`rvma sweep`)."""

import csv
import io
import json
import math
import shlex
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from .quantities import unit_of_column
from .stats_shape import Wrong, check_compare, check_stats

STATS_SCHEMA = "rvma-stats/1"
COMPARE_SCHEMA = "rvma-compare/1"


class Unreadable(Exception):
    """A directory that holds no whole result; the text says why, and is for the user."""


@dataclass
class Run:
    name: str
    stats: dict
    series: list  # rows of series.csv, numbers; empty if the run had none
    links: list   # rows of links.csv, text
    group: str = ""  # the comparison that the run belongs to


@dataclass
class Comparison:
    name: str
    rows: list  # `runs` of compare.json


@dataclass
class Column:
    """A column of a sweep: `kind` is point, axis, result or asked (docs/reference/sweep.md)."""
    name: str
    unit: str = ""
    kind: str = "result"
    is_number: bool = True
    meaning: str = ""

    @property
    def key(self):
        """What is set: columns of axes with a unit end in it."""
        return self.name.removesuffix(f"_{self.unit}") if self.has_key_unit else self.name

    @property
    def has_key_unit(self):
        return self.kind == "axis" and unit_of_column(self.unit) != "" and self.name.endswith(f"_{self.unit}")


@dataclass
class Sweep:
    name: str
    columns: list
    points: list    # that ended well: rows, each a list in the order of `columns`
    problems: list  # (point, status, reason) of the others
    rows: list = None  # of all points, as `points`; None: there are no others


def read_text(path):
    """Bytes that are no UTF-8 (the name of a trace may have some) are kept; report_charts.escape() shows them."""
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        raise Unreadable(f"{path}: no such file") from None
    except OSError as failure:
        raise Unreadable(f"{path}: cannot be read: {failure}") from None


def read_json(path, schema, check):
    """`check` raises Wrong if it is not what it has to be."""
    text = read_text(path)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as failure:
        raise Unreadable(f"{path}:{failure.lineno}:{failure.colno}: is not whole JSON: {failure.msg}") from None
    except (ValueError, RecursionError) as failure:
        raise Unreadable(f"{path}: cannot be read: {failure}") from None
    if not isinstance(value, dict) or value.get("schema") != schema:
        raise Unreadable(f"{path}: is not of schema {schema}")
    try:
        check(value)
    except Wrong as wrong:
        raise Unreadable(f"{path}: {wrong}") from None
    return value


def read_csv(path, needed):
    """(line, row as a dictionary of text) each; an absent file is an empty one: older results lack some."""
    if not path.exists():
        return []
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    try:
        missing = [name for name in needed if name not in (reader.fieldnames or [])]
        if missing:
            raise Unreadable(f"{path}:1:1: the header has no column {missing[0]}")
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as failure:
        raise Unreadable(f"{path}:{reader.line_num + 1}:1: {failure}") from None
    for number, row in rows:
        if None in row or None in row.values():
            raise Unreadable(f"{path}:{number}:1: the row does not have the header's columns")
    return rows


def figure_in(path, line, column, text):
    """A figure of a table: finite, and not below 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise Unreadable(f"{path}:{line}:1: {column} is {text!r}; expected a number from 0")
    return value


def read_series(path):
    rows, before = [], 0.0
    for line, row in read_csv(path, ("time_ns", "goodput_gbps")):
        row = {column: figure_in(path, line, column, text) for column, text in row.items()}
        if row["time_ns"] <= before:
            raise Unreadable(f"{path}:{line}:1: time_ns is {row['time_ns']:g}; expected more than the row before")
        before = row["time_ns"]
        rows.append(row)
    return rows


def read_links(path):
    rows = read_csv(path, ("link", "packets"))
    for line, row in rows:
        figure_in(path, line, "packets", row["packets"])
    return [row for _, row in rows]


def read_run(directory, name, group=""):
    stats = read_json(directory / "stats.json", STATS_SCHEMA, check_stats)
    return Run(name, stats, read_series(directory / "series.csv"), read_links(directory / "links.csv"), group)


def on_chip_bytes(directory, point):
    """Of one NIC of a point, from its own stats.json; None if that does not say."""
    try:
        stats = json.loads((directory / "points" / str(point) / "stats.json").read_text(encoding="utf-8"))
        return stats["on_chip_bytes"]["total"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_sweep(directory, name):
    """results.sqlite: the tables `points` (one row a point) and `columns`."""
    path = directory / "results.sqlite"
    try:
        base = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        described = {row[0]: row for row in base.execute("select name, unit, kind, meaning from columns")}
        cursor = base.execute("select * from points")
        names = [entry[0] for entry in cursor.description]
        rows = [list(row) for row in cursor]
        base.close()
    except sqlite3.Error as failure:
        raise Unreadable(f"{path}: is not a whole result of a sweep: {failure}") from None
    missing = [column for column in names if column not in described]
    if missing or "point" not in names or "status" not in names:
        raise Unreadable(f"{path}: its tables are not those of a sweep")
    at = {column: index for index, column in enumerate(names)}
    problems = [(row[at["point"]], row[at["status"]], row[at["reason"]] if "reason" in at else "")
                for row in rows if row[at["status"]] != "ok"]
    every, rows = rows, [row for row in rows if row[at["status"]] == "ok"]
    columns = []
    for column in names:
        _, unit, kind, meaning = described[column]
        values = [row[at[column]] for row in rows if row[at[column]] is not None]
        is_number = bool(values) and all(isinstance(value, (int, float)) for value in values)
        columns.append(Column(column, unit or "", kind or "result", is_number, meaning or ""))
    if "on_chip_bytes" not in at and "id" in at:
        sizes = [on_chip_bytes(directory, row[at["id"]]) for row in rows]
        if any(size is not None for size in sizes):
            columns.append(Column("on_chip_bytes", "bytes", "result", True, "memory of one NIC as it is configured"))
            rows = [row + [size] for row, size in zip(rows, sizes)]
    return Sweep(name, columns, rows, problems, every)


def read_directory(directory):
    """The results below `directory`: runs, comparisons, sweeps. Raises Unreadable if there is none, or a broken one."""
    path = Path(directory)
    if not path.is_dir():
        raise Unreadable(f"{directory}: {'is not a directory' if path.exists() else 'no such directory'}")
    name = str(directory).rstrip("/") or "/"
    if (path / "compare.json").exists():
        value = read_json(path / "compare.json", COMPARE_SCHEMA, check_compare)
        runs = [read_run(path / row["name"], f"{name}/{row['name']}", name) for row in value["runs"]]
        return runs, [Comparison(name, value["runs"])], []
    if (path / "results.sqlite").exists():
        return [], [], [read_sweep(path, name)]
    if (path / "sweep.json").exists():
        raise Unreadable(f"{directory}: the sweep has not gathered its results: "
                         f"rvma sweep --gather {shlex.quote(name)} does it")
    if (path / "stats.json").exists():
        return [read_run(path, name)], [], []
    half = sorted(entry.name for entry in path.iterdir() if ".partial." in entry.name)
    if half:
        raise Unreadable(f"{directory}: holds {half[0]} and no stats.json: the run has not ended, or was killed")
    raise Unreadable(f"{directory}: holds no stats.json, compare.json or sweep; "
                     "expected a directory that rvma run --out, rvma compare --out or rvma sweep wrote")
