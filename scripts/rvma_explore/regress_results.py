"""Results of a run in the form in which they are stored and compared."""

import hashlib
import json
from fractions import Fraction

SCHEMA = "rvma-expected/1"
TABLES = ("completions.csv", "puts.csv", "calls.csv")
BLOCK = 100  # rows of one digest
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
        table["digests"] = [hashlib.sha256("\n".join(body[at:at + BLOCK]).encode()).hexdigest()[:16]
                            for at in range(0, len(body), BLOCK)]
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


def is_expectation(path):
    """Whether a file says of itself that it is one."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(raw, dict) and raw.get("schema") == SCHEMA


def _split(path):
    """What a statistic belongs to (`units.node0.nic.parser.parse`), and the rest, with the dot."""
    at = max(path.rfind("."), 0)
    return path[:at], path[at:]
