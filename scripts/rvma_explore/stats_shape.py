"""What a whole stats.json holds (docs/reference/results.md), as far as reports and sweeps read it. It is checked once, where the
file is read: what comes after may rely on it."""

import math
from decimal import Decimal
from typing import NamedTuple

from .report_changes import config_value, quantity

_SHOWN = 40
_MOST = 10 ** 300  # of numbers, so that what is computed from them is one, too


class Wrong(Exception):
    """A member that is not as it has to be. The text names it."""


class Leaf(NamedTuple):
    what: str  # that was expected
    holds: object


class Optional(NamedTuple):
    shape: object


class Each(NamedTuple):
    """A dictionary of any names, but for those in `needed`; all values have the shape."""
    shape: object
    needed: tuple = ()


class Tree(NamedTuple):
    """A dictionary of such leaves, and of dictionaries like it."""
    leaf: Leaf


def _is_number(value):
    return type(value) in (int, float, Decimal) and 0 <= value < _MOST


NUMBER = Leaf("a number from 0", _is_number)
NUMBER_OR_NONE = Leaf("a number from 0, or null", lambda value: value is None or _is_number(value))
TEXT = Leaf("text", lambda value: isinstance(value, str))
FLAG = Leaf("true or false", lambda value: isinstance(value, bool))
FLAG_OR_NONE = Leaf("true, false or null", lambda value: value is None or isinstance(value, bool))
VALUE = Leaf("text, a number or a list", lambda value: isinstance(value, (str, bool, list)) or _is_number(value))
OCCURS = Leaf("once, each_link or each_switch", lambda value: value in ("once", "each_link", "each_switch"))


def _numbers(names):
    return {name: NUMBER for name in names.split()}


_LATENCY = _numbers("count min mean p50 p99 p999 max")
_SPANS = ("put_to_completion", "put_to_ack")
# Lists are of any length; a tuple has as many entries as it.
STATS = {
    "run": {**_numbers("ranks nodes seed"), "trace": TEXT, "topology": TEXT, "partial": FLAG, "problems": [TEXT]},
    "sim": _numbers("time_ns"),
    "totals": {**_numbers("puts completions"), "refusals": Each(NUMBER),
               "packets": Each(NUMBER, ("sent", "dropped", "retransmitted", "acknowledgements"))},
    "latency_ns": {**{span: _LATENCY for span in _SPANS}, "put_to_seen": Optional(_LATENCY)},
    "breakdown_ns": Each(NUMBER, tuple("samples doorbell command turn window payload_read transmit fabric parse context "
                                       "address_conversion dma_write count completion_write visible total".split())),
    "bandwidth_gbps": {**_numbers("goodput wire"), "goodput_steady": Optional(NUMBER_OR_NONE)},
    "message_rate_mpps": NUMBER,
    "limits": [{"unit": TEXT, "achieved": NUMBER, "share": NUMBER, "bound_gbps": Optional(NUMBER), "bound_mpps": Optional(NUMBER),
                "widened_by": Optional([{"key": TEXT, "effect": TEXT}])}],
    "stalls": Optional([{"unit": TEXT, "share": NUMBER, "stalls": NUMBER, "widened_by": Optional([{"key": TEXT, "effect": TEXT}])}]),
    "bottleneck": TEXT,
    "next": {"unit": TEXT, "share": NUMBER},
    "check": {"passed": FLAG_OR_NONE, "failures": NUMBER},
    "config": Tree(VALUE),
    "units": Each(Tree(NUMBER)),
    "latency_quantiles": Optional({span: Optional([(NUMBER, NUMBER)]) for span in _SPANS}),
    "waits": Optional([{"unit": TEXT, "stage": TEXT, "waited_ns": NUMBER}]),
    "shortened_by": Optional([{"stage": TEXT, "key": TEXT, "occurs": OCCURS}]),
    "key_ranges": Optional(Each(TEXT)),
    "on_chip_bytes": Optional(Each(NUMBER, ("total",))),
}
# Of units, where they have them: these are numbers, no dictionaries.
_COUNTS = "hits misses refused resident spilled decisions page_misses requests exchange_ns".split()
# Keys that predictions need whatever limits a run.
_KEYS = ("nic.clock", "nic.datapath", "host.core.clock", "host.pcie.read_latency", "host.pcie.write_latency",
         "host.page", "nic.reliability.rnr_delay")


def _shown(value):
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return ("{..}" if value else "{}") if isinstance(value, dict) else "[..]" if value else "[]"
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN - 2] + ".."


def _refuse(path, value, expected):
    raise Wrong(f"{path} is {_shown(value)}; expected {expected}")


def _under(path, name):
    return f"{path}.{name}" if path else str(name)


def _kind(path, value, kind, expected):
    if not isinstance(value, kind):
        _refuse(path, value, expected)


def _have(path, value, names):
    for name in names:
        if name not in value:
            raise Wrong(f"has no {_under(path, name)}")


def _holds(value, shape):
    """The short way to most members: no path is put together for them."""
    return isinstance(shape, Leaf) and shape.holds(value)


def _check(path, value, shape):
    if isinstance(shape, Leaf):
        if not shape.holds(value):
            _refuse(path, value, shape.what)
    elif isinstance(shape, Optional):
        _check(path, value, shape.shape)
    elif isinstance(shape, Each):
        _kind(path, value, dict, "an object")
        _have(path, value, shape.needed)
        for name, inner in value.items():
            if not _holds(inner, shape.shape):
                _check(_under(path, name), inner, shape.shape)
    elif isinstance(shape, Tree):
        _kind(path, value, dict, "an object")
        for name, inner in value.items():
            if not _holds(inner, shape.leaf):
                _check(_under(path, name), inner, shape if isinstance(inner, dict) else shape.leaf)
    elif isinstance(shape, dict):
        _kind(path, value, dict, "an object")
        _have(path, value, [name for name, inner in shape.items() if not isinstance(inner, Optional)])
        for name, inner in shape.items():
            if name in value:
                _check(_under(path, name), value[name], inner)
    else:
        _kind(path, value, list, "a list")
        if isinstance(shape, tuple) and len(value) != len(shape):
            _refuse(path, value, f"{len(shape)} entries")
        for at, entry in enumerate(value):
            _check(_under(path, at), entry, shape[at] if isinstance(shape, tuple) else shape[0])


def _check_key(stats, key):
    """A quantity of the configuration."""
    value = config_value(stats, key)
    if value is None:
        raise Wrong(f"has no config.{key}")
    _check_quantity(f"config.{key}", value, value)


def _check_quantity(path, value, text, is_positive=False):
    try:
        number = quantity(text)[0]
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf or (is_positive and number == 0):
        _refuse(path, value, "a quantity")


def _check_limits(stats):
    units = stats["units"]
    for at, row in enumerate(stats["limits"]):
        if "bound_gbps" not in row and "bound_mpps" not in row:
            raise Wrong(f"has no limits.{at}.bound_gbps or bound_mpps")
    for row in [*stats["limits"], *stats.get("stalls", [])]:
        for widening in row.get("widened_by", []):
            _check_key(stats, widening["key"])
            if widening["effect"] == "capacity":
                unit = row["unit"].removesuffix(".fetch")
                _have("units", units, [unit] if row["unit"].endswith(".fetch") else [])
                _have(f"units.{unit}", units.get(unit, {}), ("hits", "misses", "refused") if unit in units else ())
    if stats["bottleneck"] and not stats["limits"]:
        _refuse("limits", stats["limits"], "a row at least")


def _check_latency(stats):
    stages = stats["breakdown_ns"]
    for entry in stats.get("shortened_by", []):
        _check_key(stats, entry["key"])
        _have("breakdown_ns", stages, [entry["stage"]])
    for wait in stats.get("waits", []):
        _have("units", stats["units"], [wait["unit"]])
        _have(f"units.{wait['unit']}", stats["units"][wait["unit"]], ("misses",))
    length = float(sum(value for stage, value in stages.items() if stage not in ("samples", "total")))
    if stages["samples"] and not (stages["total"] > 0 and math.isclose(length, stages["total"], rel_tol=1e-3, abs_tol=0.1)):
        _refuse("breakdown_ns.total", stages["total"], f"the sum of the stages, {length:.12g}")


def check_stats(stats):
    """Raises Wrong unless `stats` is a whole stats.json of its schema, as read by `json`."""
    _check("", stats, STATS)
    for name, unit in stats["units"].items():
        for count in _COUNTS:
            if isinstance(unit.get(count), dict):
                _refuse(f"units.{name}.{count}", unit[count], NUMBER.what)
    for key in _KEYS:
        _check_key(stats, key)
    for key in ("nic.clock", "host.core.clock"):
        _check_quantity(f"config.{key}", config_value(stats, key), config_value(stats, key), is_positive=True)
    for key, text in stats.get("key_ranges", {}).items():
        if ".." in text:
            _check_quantity(f"key_ranges.{key}", text, text.split("..")[1])
    _check_limits(stats)
    _check_latency(stats)


def figures_of_compare(row):
    """Names of the figures of a run in compare.json: all but what it is, and tables that stats.json has as well."""
    return [name for name in row if name not in ("name", "partial", "breakdown_ns", "messages")]


def check_compare(comparison):
    """The same for compare.json."""
    _check("", comparison, {"runs": [{"name": TEXT, "partial": Optional(FLAG)}]})
    rows = comparison["runs"]
    if not rows:
        _refuse("runs", rows, "a run at least")
    for at, row in enumerate(rows):
        _have(f"runs.{at}", row, figures_of_compare(rows[0]))
        for name in figures_of_compare(row):
            _check(f"runs.{at}.{name}", row[name], NUMBER)
