"""Differences of two results (regress_results.py), for a reader: all of them, or a line for each statistic."""

import csv
import re
from dataclasses import dataclass
from fractions import Fraction

from .regress_results import BLOCK, TABLES

INFINITE = float("inf")
# Groups of lines, in their order.
TOTALS, LATENCY, ROWS, UNITS, BUSY, REST = range(6)
_FIRST = ("totals", "bandwidth_gbps", "message_rate_mpps", "bottleneck", "next", "sim", "run", "check")
_HISTOGRAM = ("count", "min", "mean", "p50", "p99", "p999", "max")
_OF_HISTOGRAM = re.compile(rf"((?:latency_ns|units)\..*)\.({'|'.join(_HISTOGRAM)})")
_OF_UTILISATION = re.compile(r"limits\[(.*)\]\.(share|achieved|bound_gbps|bound_mpps|achieved_gbps|achieved_mpps)"
                             r"|units\.(.*)\.(share|busy_ns|bits|operations)")
_SMALL_SHARE = Fraction(1, 1000)  # of the time: moves with everything else


@dataclass
class Change:
    path: str
    before: str
    after: str

    @property
    def numbers(self):
        old, new = _number(self.before), _number(self.after)
        return None if old is None or new is None else (old, new)

    @property
    def weight(self):
        """By how much it changed, as a share of what it was."""
        if self.numbers is None or self.numbers[0] == 0:
            return INFINITE
        old, new = self.numbers
        return abs((new - old) / old)

    def text(self):
        """old -> new, difference, per cent."""
        if self.numbers is None:  # a text; where there is none, there was nothing and no 0
            before, after = ("nothing" if text == "0" else text for text in (self.before, self.after))
            return f"{before} -> {after}"
        old, new = self.numbers
        if old == 0:
            return f"{self.before} -> {self.after} (was 0)"
        return f"{self.before} -> {self.after} ({_decimal(new - old)}, {float(100 * (new - old) / abs(old)):+.3g} %)"


@dataclass
class Line:
    """One statistic of one unit. `size` orders lines of a group, the largest first."""
    group: int
    size: float
    name: str
    text: str

    @property
    def order(self):
        return self.group, -self.size, self.name


def changes(old, new):
    paths = sorted(old["stats"].keys() | new["stats"].keys())
    pairs = ((path, old["stats"].get(path, "0"), new["stats"].get(path, "0")) for path in paths)
    return [Change(*pair) for pair in pairs if pair[1] != pair[2]]


def all_differences(old, new):
    """A line for each change, in the order of the groups, the one that changed most by share first; then rows of tables."""
    lines = [Line(_group(change.path), change.weight, _shown(change.path), change.text()) for change in changes(old, new)]
    lines.sort(key=lambda line: line.order)
    rows = [row for name in TABLES for row in _table_differences(name, old["tables"].get(name), new["tables"].get(name))]
    return [f"{line.name}: {line.text}" for line in lines] + rows


def by_statistic(old, new):
    """A line for each statistic: totals, latency, tables, counts of units, then how busy units were; of units of one kind
    the one that changed most."""
    members = {}
    for change in changes(old, new):
        members.setdefault(_statistic(change.path), []).append(change)
    lines = [_line_of(name, found) for name, found in members.items()]
    small = [line for line in lines if _is_small(line)]
    lines = _by_kind([line for line in lines if not _is_small(line)])
    for name in TABLES:
        rows = _table_differences(name, old["tables"].get(name), new["tables"].get(name))
        if rows:
            first, _, text = rows[0].partition(": ")
            lines.append(Line(ROWS, 0, first, text + (f"; and {len(rows) - 1} more lines" if len(rows) > 1 else "")))
    lines.sort(key=lambda line: line.order)
    said = [f"{line.name}: {line.text}" for line in lines]
    if small:
        said.append(f"{len(small)} units' shares of time busy: by less than {float(_SMALL_SHARE)}")
    return said


# --------------------------------------------------------------------------------------------------------- statistics

def _group(path):
    if path.partition(".")[0].partition("[")[0] in _FIRST:
        return TOTALS
    if path.startswith(("latency_ns", "breakdown_ns", "latency_quantiles")):
        return LATENCY
    if _OF_UTILISATION.fullmatch(path):
        return BUSY
    return UNITS if path.startswith("units.") else REST


def _shown(path):
    return path.removeprefix("units.")


def _statistic(path):
    """What changes together: a histogram, a unit's utilisation, the points of a distribution; else the path itself."""
    if path.startswith("latency_quantiles."):
        return path.partition("[")[0]
    busy = _OF_UTILISATION.fullmatch(path)
    if busy:
        return f"busy {busy.group(1) or busy.group(3)}"
    histogram = _OF_HISTOGRAM.fullmatch(path)
    return histogram.group(1) if histogram else path


def _line_of(name, found):
    if name.startswith("latency_quantiles."):
        return Line(LATENCY, -1, name, f"{len(found)} figures of its points")  # behind what sums it up
    if name.startswith("busy "):
        return _utilisation(name.removeprefix("busy "), found)
    group = _group(found[0].path)
    size = max(change.weight for change in found)
    if len(found) == 1 and found[0].path == name:
        return Line(group, _rank(name, size), _shown(name), found[0].text())
    # 1. A histogram: its mean and its tail; where these stayed, what did change.
    by_name = {change.path.rpartition(".")[2]: change for change in found}
    wanted = [word for word in ("mean", "p99") if word in by_name] or [word for word in _HISTOGRAM if word in by_name][:2]
    return Line(group, _rank(name, size), _shown(name), ", ".join(f"{word} {by_name[word].text()}" for word in wanted))


def _rank(name, size):
    """Of the lines of a group: what the reader looks for stands before what merely changed much."""
    head = name.partition(".")[0]
    if head in _FIRST:
        return len(_FIRST) - _FIRST.index(head)
    if head == "latency_ns" or name == "breakdown_ns.total":
        return INFINITE
    return size


def _utilisation(unit, found):
    # `limits` has it within the measured region, which sorts before the unit's own, over the whole run.
    share = next((change for change in found if change.path.endswith("share") and change.numbers), None)
    if share is None:  # the share is rounded; only what it is made of changed
        return Line(BUSY, 0.0, unit, "busy for another time")
    return Line(BUSY, float(abs(share.numbers[1] - share.numbers[0])), unit, f"busy {share.text()}")


def _is_small(line):
    return line.group == BUSY and line.size < _SMALL_SHARE


def _by_kind(lines):
    """Units of one kind, whose paths differ in numbers, in one line: the one that changed most."""
    kinds = {}
    for line in sorted(lines, key=lambda line: line.order):
        kinds.setdefault((line.group, re.sub(r"\d+", "*", line.name)), []).append(line)
    folded = []
    for same in kinds.values():
        if len(same) > 1:
            same[0].text += f"; and {len(same) - 1} of its kind"
        folded.append(same[0])
    return folded


def _number(text):
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _decimal(value):
    """Exact, with a sign: every statistic has a finite number of decimals."""
    digits, scaled = 0, value
    while scaled.denominator != 1 and digits < 30:
        scaled *= 10
        digits += 1
    whole, part = divmod(abs(int(scaled)), 10**digits)
    return ("-" if value < 0 else "+") + str(whole) + (f".{part:0{digits}d}" if digits else "")


def _table_differences(name, old, new):
    if old == new:
        return []
    if old is None or new is None or old["header"] != new["header"]:
        return [f"{name}: other columns"]
    lines = []
    if old["rows"] != new["rows"]:
        lines.append(f"{name}: {old['rows']} -> {new['rows']} rows ({new['rows'] - old['rows']:+d})")
    if "text" in old and "text" in new:
        columns = next(csv.reader([old["header"]]))
        for number, (before, after) in enumerate(zip(old["text"], new["text"]), 2):
            if before != after:
                lines.append(_row_difference(f"{name}:{number}", columns, before, after))
    else:
        for block, (before, after) in enumerate(zip(old.get("digests", []), new.get("digests", []))):
            if before != after:
                lines.append(f"{name}: rows in lines {block * BLOCK + 2}..{(block + 1) * BLOCK + 1} differ")
    return lines or [f"{name}: rows differ"]


def _row_difference(place, columns, before, after):
    pairs = zip(columns, next(csv.reader([before])), next(csv.reader([after])))
    return f"{place}: " + ", ".join(f"{column} {old} -> {new}" for column, old, new in pairs if old != new)
