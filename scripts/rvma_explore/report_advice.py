"""What should I make bigger? The limits of a run (docs/explanation/limits.md), turned into changes of configuration
keys and what each is expected to give."""

import math
import re
from dataclasses import dataclass

# One step at a time: what lies beyond twice a bound depends on what the run does not show.
MOST_FACTOR = 2.0

UNITS = {
    "Gbps": 1e9, "Mbps": 1e6, "Tbps": 1e12, "kbps": 1e3, "bps": 1.0, "GB/s": 8e9, "MB/s": 8e6,
    "GHz": 1e9, "MHz": 1e6, "kHz": 1e3, "Hz": 1.0,
    "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30,
    "ps": 1e-3, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9,
    "cyc": 1.0, "": 1.0,
}
QUANTITY = re.compile(r"([0-9.]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-z/]*)$")


@dataclass
class Advice:
    """One change. `gain` is how many times as good `measure` becomes: rates by that factor, times divided by it."""
    key: str
    old: str
    new: str
    gain: float
    measure: str  # "rate" or "time"
    why: str
    then: str     # what limits afterwards; empty if not known


def quantity(text):
    """Value in bits/s, Hz, bytes, ns, cycles or plain, and the unit's spelling."""
    match = QUANTITY.match(str(text).strip())
    if match is None or match.group(2) not in UNITS:
        raise ValueError(f"{text!r} is no quantity")
    return float(match.group(1)) * UNITS[match.group(2)], match.group(2)


def spelled(value, unit):
    """In the unit given, three significant digits, rounded up; whole where the unit is counted."""
    scaled = value / UNITS[unit]
    if unit in ("", "B", "cyc", "ps"):
        return f"{math.ceil(scaled - 1e-9)}{unit}"
    digits = 10.0 ** (math.floor(math.log10(scaled)) - 2)
    return f"{round(math.ceil(scaled / digits - 1e-9) * digits, 9):.12g}{unit}"


def config_value(stats, key):
    """The key's resolved value as it is printed; None if there is no such key."""
    value = stats["config"]
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value


def greatest(stats, key):
    """Upper end of the key's range; None if it has none."""
    text = stats.get("key_ranges", {}).get(key, "")
    return quantity(text.split("..")[1])[0] if ".." in text else None


def widened(stats, key, effect, factor, places=0):
    """(new value as text, factor of the bound that it gives), or None if the key cannot grow."""
    old = config_value(stats, key)
    value, unit = quantity(old)
    most = greatest(stats, key)
    if effect == "inverse":
        if value <= 0:
            return None
        new = value / factor
        scaled = new / UNITS[unit]
        text = f"{scaled:.3g}{unit}" if unit not in ("", "ps", "cyc") else f"{max(1, math.floor(scaled))}{unit}"
        after = quantity(text)[0]
        return (text, value / after) if 0 < after < value else None
    if effect == "capacity":
        new = float(places)
    elif effect == "steps":
        new = value + math.ceil(math.log2(factor) - 1e-9)
    elif effect == "powers_of_two":
        new = value * 2.0 ** math.ceil(math.log2(factor) - 1e-9)
    else:
        new = value * factor
    if effect in ("capacity", "steps", "powers_of_two") and most is not None and new > most:
        new = most
    text = spelled(new, unit)
    after = quantity(text)[0]
    if most is not None and after > most:
        return None
    if after <= value:
        return None
    if effect == "capacity":
        return (text, math.inf) if after >= places else None
    return text, 2.0 ** (after - value) if effect == "steps" else after / value


def fills_datapath(stats, row):
    """Whether packets are long enough for a wider datapath to matter: the bound is the width's, not the packets'."""
    clock = quantity(config_value(stats, "nic.clock"))[0]
    width = quantity(config_value(stats, "nic.datapath"))[0]
    return row.get("bound_gbps", 0) * 1e9 >= 0.9 * clock * width * 8


def kind_of(path):
    """As the model's without_numbers(): units of one kind are alternatives."""
    return re.sub(r"[0-9-]", "", path)


def places_needed(stats, unit):
    """Entries of a structure that spills, those in host memory included; 0 if the unit is none."""
    about = stats["units"].get(unit, {})
    return about.get("resident", 0) + about.get("spilled", 0)


def factor_of(row, key, factor):
    return factor if any(widening["key"] == key for widening in row.get("widened_by", [])) else 1.0


def rate_advice(stats, row):
    """Changes that raise the bound of the unit that was busy nearly all the time."""
    advice = []
    for widening in row.get("widened_by", []):
        key, effect = widening["key"], widening["effect"]
        if effect == "width":
            if not fills_datapath(stats, row):
                continue
            effect = "proportional"
        others = [other for other in stats["limits"]
                  if kind_of(other["unit"]) != kind_of(row["unit"]) and factor_of(other, key, 2.0) == 1.0]
        rest = max(others, key=lambda other: other["share"], default=None)
        headroom = row["share"] / rest["share"] if rest and rest["share"] > 0 else MOST_FACTOR
        change = widened(stats, key, effect, min(MOST_FACTOR, max(headroom, 1.01)),
                         places_needed(stats, row["unit"].rsplit(".", 1)[0]))
        if change is None:
            continue
        text, factor = change
        after = max([row["share"] / factor] + ([rest["share"]] if rest else []) +
                    [other["share"] / factor for other in stats["limits"] if factor_of(other, key, 2.0) != 1.0])
        gain = min(row["share"] / after, MOST_FACTOR if effect == "capacity" else factor)
        is_next = rest is not None and row["share"] / factor <= rest["share"]
        advice.append(Advice(key, str(config_value(stats, key)), text, gain, "rate",
                             f"{row['unit']} was busy {row['share']:.1%} of the time",
                             rest["unit"] if is_next else row["unit"]))
    return advice


def mean_links(run):
    """Links that a packet crosses, on average over all packets and acknowledgements."""
    packets = run.stats["totals"]["packets"]
    sent = packets["sent"] + packets["acknowledgements"]
    return sum(int(row["packets"]) for row in run.links) / sent if sent and run.links else 1.0


def time_of(stats, key):
    """A key's time in ns; cycles are of the clock that the key belongs to."""
    value, unit = quantity(config_value(stats, key))
    if unit != "cyc":
        return value
    clock = "host.core.clock" if key.startswith("host.core") else "nic.clock"
    return value * 1e9 / quantity(config_value(stats, clock))[0]


def retry_time(stats, unit):
    """Of the mean put-to-completion time: what messages waited after the structure had refused them, at most `turn`."""
    about = stats["units"].get(unit, {})
    puts = stats["totals"]["puts"]
    if not about.get("refused") or not puts:
        return 0.0
    delay = time_of(stats, "nic.reliability.rnr_delay")
    stages = stats["breakdown_ns"]
    way = stages["total"] - stages["turn"]  # each try goes to the receiver, and its refusal comes back
    return min(stages["turn"], about["refused"] / puts * (delay + way))


def wait_advice(stats):
    """Places for what was waited for in host memory, the longest wait first."""
    advice = []
    stages = stats["breakdown_ns"]
    rows = {row["unit"]: row for row in stats["limits"]}
    for wait in sorted(stats.get("waits", []), key=lambda wait: -wait["waited_ns"]):
        row = rows.get(wait["unit"] + ".fetch")
        if row is None or stages["total"] <= 0:
            continue
        about = stats["units"][wait["unit"]]
        saved = stages.get(wait["stage"], 0) + retry_time(stats, wait["unit"])
        for widening in row.get("widened_by", []):
            if widening["effect"] != "capacity":
                continue
            key = widening["key"]
            change = widened(stats, key, "capacity", 1.0, places_needed(stats, wait["unit"]))
            if change is None or any(one.key == key for one in advice):
                continue
            refused = f", {about['refused']} refused" if about.get("refused") else ""
            advice.append(Advice(key, str(config_value(stats, key)), change[0],
                                 stages["total"] / max(stages["total"] - saved, 1e-9), "time",
                                 f"{wait['unit']}: {about['misses']} waited for host memory{refused}", ""))
    return advice


def latency_advice(run):
    """Keys that a message's way consists of, each halved; the one that saves most first."""
    stats = run.stats
    stages = stats["breakdown_ns"]
    times = {"once": 1.0, "each_link": mean_links(run), "each_switch": mean_links(run) - 1.0}
    saved, where = {}, {}
    for entry in stats.get("shortened_by", []):
        key, stage = entry["key"], entry["stage"]
        each = time_of(stats, key) / 2 * times[entry["occurs"]]
        saved[key] = saved.get(key, 0.0) + min(each, stages[stage] / 2)
        where.setdefault(key, []).append(stage)
    advice = []
    for key in sorted(saved, key=lambda key: -saved[key]):
        if saved[key] < stages["total"] * 0.005:
            continue
        change = widened(stats, key, "inverse", 2.0)
        if change is None:
            continue
        shorter = saved[key] * 2 * (1 - 1 / change[1])
        why = f"part of {' and '.join(where[key])}: {2 * saved[key]:.3f} of {stages['total']:.3f} ns"
        advice.append(Advice(key, str(config_value(stats, key)), change[0],
                             stages["total"] / (stages["total"] - shorter), "time", why, ""))
    return advice


def advise(run):
    """What to change, the best first; empty if nothing ran, or nothing that is known would help."""
    stats = run.stats
    verdict = stats["bottleneck"]
    row = next((row for row in stats["limits"] if row["unit"] == verdict), None)
    if row is not None:
        return rate_advice(stats, row)
    if not verdict or stats["breakdown_ns"]["samples"] == 0:
        return []
    advice = wait_advice(stats) + latency_advice(run)
    return sorted(advice, key=lambda one: -one.gain)


def spilled_structures(stats):
    """(unit, key, hits, misses, refused, places, places needed) of each structure that did not hold all its entries."""
    found = []
    for row in stats["limits"]:
        if not row["unit"].endswith(".fetch"):
            continue
        unit = row["unit"][:-len(".fetch")]
        about = stats["units"].get(unit, {})
        key = next((one["key"] for one in row.get("widened_by", []) if one["effect"] == "capacity"), None)
        if key is not None and (about.get("misses") or about.get("refused")):
            found.append((unit, key, about["hits"], about["misses"], about["refused"], config_value(stats, key),
                          places_needed(stats, unit)))
    return found
