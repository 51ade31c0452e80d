"""The columns of a sweep's results: where each comes from, its type, unit and meaning. docs/reference/sweep.md lists
them; figures that differ between machines (wall time, memory) are in host.csv instead."""

import re
from dataclasses import dataclass
from decimal import Decimal

INTEGER, REAL, TEXT = "INTEGER", "REAL", "TEXT"


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    unit: str
    kind: str  # point, axis, result, asked
    meaning: str
    source: object = None  # of a result: a path in stats.json, or a function of its numbers by path
    protocol: str = ""     # the only one whose runs have it


POINT = [
    Column("point", INTEGER, "", "point", "number of the point, from 0"),
    Column("id", TEXT, "", "point", "hash of program, configuration, trace, seed, protocol and options"),
    Column("trace", TEXT, "", "point", "trace, by its name in the specification"),
    Column("protocol", TEXT, "", "point", "rvma or rdma"),
    Column("seed", INTEGER, "", "point", "seed of the run"),
    Column("status", TEXT, "", "point", "ok, failed, bad_input, model_error, killed or not_run"),
    Column("reason", TEXT, "", "point", "why it is not ok"),
]

_STAGES = ("doorbell command retry turn window payload_read transmit fabric parse context address_conversion dma_write count "
           "completion_write visible total").split()
_ENDED = "ok no_mailbox closed bad_key stale no_buffer bounds busy timeout unfinished".split()
_PACKETS = ("sent delivered dropped duplicate retransmitted copied corrupt out_of_order ignored acknowledgements "
            "acknowledgements_dropped").split()
_STRUCTURES = ("translation_table windows buffers counters bindings peers page_cache receive_buffer transmit_buffer "
               "inline_payload").split()


def _number(name, type_, unit, path, meaning=""):
    return Column(name, type_, unit, "result", meaning or f"{path} of stats.json", path)


def unit_values(numbers, unit, key):
    """Of statistic `key` of every unit whose path ends in `unit`, digits at the end of its parts aside."""
    pattern = re.compile(rf"units\.(.*\.)?{re.escape(unit)}\d*(_boot\d+)?\.{re.escape(key)}")
    return [value for path, value in numbers.items() if pattern.fullmatch(path) and value is not None]


def _sum(unit, key):
    def of(numbers):
        return sum(unit_values(numbers, unit, key))
    return of


def _exchange_ns(numbers):
    requests = _sum("software", "requests")(numbers)
    total = Decimal(_sum("software", "exchange_ns")(numbers))
    return round(total / requests, 3) if requests else None


def _summed(name, unit, source_unit, key, meaning):
    return Column(name, INTEGER, unit, "result", meaning, _sum(source_unit, key))


def _without_peers(numbers):
    total, peers = numbers.get("on_chip_bytes.total"), numbers.get("on_chip_bytes.peers")
    return None if total is None or peers is None else total - peers


def _on_chip():
    """Of one NIC as it is configured. Delivery contexts are most of it and hide what else varies."""
    def column(name, meaning, source):
        return Column(name, INTEGER, "bytes", "result", meaning, source, "rvma")
    return [column("on_chip_bytes", "memory of one NIC as it is configured", "on_chip_bytes.total"),
            column("on_chip_bytes_without_peers", "the same without contexts of packet delivery", _without_peers),
            *(column(f"on_chip_bytes_{part}", f"on_chip_bytes.{part} of stats.json", f"on_chip_bytes.{part}")
              for part in _STRUCTURES)]


def _results():
    columns = [_number("time_ns", REAL, "ns", "sim.time_ns"), _number("cycles", INTEGER, "cycles", "sim.cycles"),
               _number("goodput_gbps", REAL, "Gb/s", "bandwidth_gbps.goodput"),
               _number("goodput_steady_gbps", REAL, "Gb/s", "bandwidth_gbps.goodput_steady"),
               _number("goodput_whole_run_gbps", REAL, "Gb/s", "bandwidth_gbps.goodput_whole_run"),
               _number("wire_gbps", REAL, "Gb/s", "bandwidth_gbps.wire"),
               _number("message_rate_mpps", REAL, "million/s", "message_rate_mpps")]
    for span in ("put_to_completion", "put_to_seen", "put_to_ack"):
        columns.append(_number(f"{span}_count", INTEGER, "", f"latency_ns.{span}.count"))
        columns += [_number(f"{span}_{figure}_ns", REAL, "ns", f"latency_ns.{span}.{figure}")
                    for figure in ("min", "mean", "p50", "p99", "p999", "max")]
    columns += [_number("bottleneck", TEXT, "", "bottleneck", "what limited the run"),
                _number("next_bottleneck", TEXT, "", "next.unit", "what limits once that is out of the way"),
                _number("next_share", REAL, "share", "next.share"),
                _number("busiest_unit", TEXT, "", "limits.0.unit", "the unit nearest to its bound"),
                _number("busiest_share", REAL, "share", "limits.0.share", "how near: its busy time / time")]
    columns += [_number(f"breakdown_{stage}_ns", REAL, "ns", f"breakdown_ns.{stage}") for stage in _STAGES]
    columns.append(_number("breakdown_samples", INTEGER, "", "breakdown_ns.samples"))
    columns += [_number(name, INTEGER, unit, f"totals.{name}") for name, unit in (
        ("puts", "puts"), ("puts_failed", "puts"), ("messages_opened", "messages"), ("messages_delivered", "messages"),
        ("bytes_delivered", "bytes"), ("completions", "completions"))]
    columns += [_number(f"ended_{status}", INTEGER, "puts", f"totals.ended.{status}") for status in _ENDED]
    columns += [_number(f"refusals_{reason}", INTEGER, "messages", f"totals.refusals.{reason}") for reason in _ENDED[1:-1]]
    columns += [_number(f"packets_{what}", INTEGER, "packets", f"totals.packets.{what}") for what in _PACKETS]
    columns += [
        _summed("wire_bytes", "bytes", "fabric", "wire_bytes", "on all links, each link counted by itself"),
        _summed("pcie_up_bytes", "bytes", "pcie", "upstream_wire_bytes", "on PCIe to the hosts, all nodes"),
        _summed("pcie_down_bytes", "bytes", "pcie", "downstream_wire_bytes", "on PCIe to the NICs, all nodes"),
        _summed("connection_ends", "ends", "software", "connections", "RDMA: ends of queue pairs brought up"),
        _summed("exchanges", "messages", "software", "requests", "RDMA: requests for an address"),
        Column("exchange_mean_ns", REAL, "ns", "result", "RDMA: mean time to their answers", _exchange_ns),
        _summed("control_messages", "messages", "software", "control_messages", "RDMA: between the software of two ranks"),
        _summed("control_bytes", "bytes", "software", "control_bytes", "RDMA: their bytes"),
        _number("nodes", INTEGER, "", "run.nodes"), _number("ranks", INTEGER, "", "run.ranks"),
        _number("topology", TEXT, "", "run.topology"), _number("operations", INTEGER, "", "run.operations"),
        _number("partial", INTEGER, "", "run.partial", "1: stopped before its end"),
        _number("check_failures", INTEGER, "", "check.failures"),
        *_on_chip(),
        _number("events", INTEGER, "", "sim.events", "notifications asked of the SystemC kernel"),
        _number("activations", INTEGER, "", "sim.activations", "of the model's processes"),
    ]
    return columns


RESULTS = _results()


def flatten(value, path="", into=None):
    """Every number, text and null of stats.json by its dotted path; entries of a list by their number."""
    into = {} if into is None else into
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        into[path] = int(value) if isinstance(value, bool) else value
        return into
    for name, inner in items:
        flatten(inner, f"{path}.{name}" if path else str(name), into)
    return into


def kind_of_unit(unit):
    """A unit's path without numbers of nodes, cores and links: node1.nic.parser.parse is nic.parser.parse."""
    unit = re.sub(r"^node\d+\.", "", unit)
    unit = re.sub(r"^fabric\.link\.[^.]+", "fabric.link", unit)
    return re.sub(r"(core|switch|_boot)\d+", lambda match: match.group(1) if match.group(1) != "_boot" else "", unit)


def shares(numbers):
    """Of each kind of unit, how near the busiest one came to its bound."""
    found = {}
    for index in range(len(numbers)):
        unit = numbers.get(f"limits.{index}.unit")
        if unit is None:
            return found
        found.setdefault(kind_of_unit(unit), numbers[f"limits.{index}.share"])  # the busiest come first
    return found


def asked_value(numbers, asked):
    """Of a column of the specification: the number at a path, or the sum or maximum over those that `*` matches."""
    if asked["how"] == "value":
        return numbers.get(asked["path"])
    pattern = re.compile(re.escape(asked["path"]).replace(r"\*", "[^.]*"))
    values = [value for path, value in numbers.items()
              if pattern.fullmatch(path) and isinstance(value, (int, Decimal))]
    if not values:
        return None
    return sum(values) if asked["how"] == "sum" else max(values)
