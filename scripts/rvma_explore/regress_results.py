"""Results of a run in the form in which they are stored and compared."""

import csv
import hashlib
import json
from fractions import Fraction

SCHEMA = "rvma-expected/1"
TABLES = ("completions.csv", "puts.csv", "calls.csv")
_BLOCK = 100  # rows of one digest
_WHOLE_ROWS = 200  # of a table up to so many rows all are stored

# What is no result of the modelled hardware: where files lie, how fast this machine is, how much work the simulation
# was, and the configuration, which the suite gives.
_LEFT_OUT = {"schema", "config", "run.trace", "sim.wall_s", "sim.packets_per_wall_s", "sim.peak_rss_bytes",
             "sim.events", "sim.activations"}


class _Number(str):
    """The digits of a JSON number, as they stand in the file: nothing is rounded on the way."""


def read(directory):
    """Statistics and tables of `rvma run --out directory`."""
    text = (directory / "stats.json").read_text()
    raw = json.loads(text, parse_float=_Number, parse_int=_Number)
    stats = {}
    _flatten(raw, "", stats)
    tables = {name: _table((directory / name).read_text()) for name in TABLES}
    return {"stats": stats, "tables": tables}


def _flatten(value, path, stats):
    """Every leaf by its path, as text. A 0 is left out: a statistic that is new and counts nothing changes nothing."""
    if path in _LEFT_OUT:
        return
    if isinstance(value, dict):
        for key, member in value.items():
            _flatten(member, f"{path}.{key}" if path else key, stats)
    elif isinstance(value, list):
        for place, member in enumerate(value):
            # The order of limits[] follows from the shares in it.
            key = member.pop("unit") if isinstance(member, dict) and "unit" in member else str(place)
            _flatten(member, f"{path}[{key}]", stats)
    elif not (isinstance(value, _Number) and Fraction(value) == 0):
        stats[path] = str(value) if isinstance(value, str) else json.dumps(value)


def _table(text):
    rows = text.splitlines()
    table = {"header": rows[0] if rows else "", "rows": max(len(rows) - 1, 0)}
    body = rows[1:]
    if len(body) <= _WHOLE_ROWS:
        table["text"] = body
    else:
        table["digests"] = [hashlib.sha256("\n".join(body[at:at + _BLOCK]).encode()).hexdigest()[:16]
                            for at in range(0, len(body), _BLOCK)]
    return table


def dump(results):
    """JSON with a line for each unit, so that a review shows what changed."""
    groups = {}
    for path, value in results["stats"].items():
        group, leaf = _split(path)
        groups.setdefault(group, {})[leaf] = value
    lines = [f"{json.dumps(group)}: {json.dumps(members)}" for group, members in sorted(groups.items())]
    tables = [f"{json.dumps(name)}: {json.dumps(table, indent=0)}" for name, table in results["tables"].items()]
    return (f'{{\n"schema": "{SCHEMA}",\n"stats": {{\n' + ",\n".join(lines) + '\n},\n"tables": {\n' +
            ",\n".join(tables) + "\n}\n}\n")


def parse(text):
    """What dump() wrote. ValueError: it is something else."""
    raw = json.loads(text)
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise ValueError(f"the schema is not {SCHEMA}")
    stats = {}
    for group, members in raw["stats"].items():
        for leaf, value in members.items():
            stats[group + leaf] = value
    return {"stats": stats, "tables": raw["tables"]}


def _split(path):
    """What a statistic belongs to (`units.node0.nic.parser.parse`), and the rest, with the dot."""
    at = max(path.rfind("."), 0)
    return path[:at], path[at:]


# --------------------------------------------------------------------------------------------------------- differences

def differences(old, new):
    """Lines for the reader: statistics, the one that changed most by share first, then rows of tables."""
    changed = []
    for path in old["stats"].keys() | new["stats"].keys():
        before, after = old["stats"].get(path, "0"), new["stats"].get(path, "0")
        if before != after:
            changed.append(_change(path, before, after))
    changed.sort(key=lambda change: (-change[0], change[1]))
    lines = [line for _, _, line in changed]
    for name in TABLES:
        lines += _table_differences(name, old["tables"].get(name), new["tables"].get(name))
    return lines


def _number(text):
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _change(path, before, after):
    """Its weight, its path, and a line: name, old -> new, difference, per cent."""
    old, new = _number(before), _number(after)
    if old is None or new is None:  # a text; where there is none, there was nothing and no 0
        before, after = ("nothing" if text == "0" else text for text in (before, after))
    shown = f"{path.removeprefix('units.')}: {before} -> {after}"
    if old is None or new is None:
        return float("inf"), path, shown
    if old == 0:
        return float("inf"), path, f"{shown} (was 0)"
    share = (new - old) / abs(old)
    return abs(share), path, f"{shown} ({_decimal(new - old)}, {float(100 * share):+.3g} %)"


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
                lines.append(f"{name}: rows in lines {block * _BLOCK + 2}..{(block + 1) * _BLOCK + 1} differ")
    return lines or [f"{name}: rows differ"]


def _row_difference(place, columns, before, after):
    pairs = zip(columns, next(csv.reader([before])), next(csv.reader([after])))
    return f"{place}: " + ", ".join(f"{column} {old} -> {new}" for column, old, new in pairs if old != new)
