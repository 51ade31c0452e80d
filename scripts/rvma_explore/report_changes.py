"""Changes of configuration keys, and the pieces that predictions of what they give share."""

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
class Change:
    key: str
    old: str
    new: str


@dataclass
class Advice:
    """Changes that are made together. `gain` is how many times as good `measure` becomes: rates by that factor, times
    divided by it; None if that is not predicted."""
    changes: list
    gain: float | None
    measure: str  # "rate" or "time"
    why: str
    then: str = ""   # what limits afterwards; empty if not known
    verb: str = "bigger"
    stages: tuple = ()  # of a message's way, that become shorter

    @property
    def keys(self):
        return [one.key for one in self.changes]


def change_of(stats, key, new):
    return Change(key, str(config_value(stats, key)), new)


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


def kind_of(path):
    """As the model's without_numbers(): units of one kind are alternatives."""
    return re.sub(r"[0-9-]", "", path)


def places_needed(stats, unit):
    """Entries of a structure that spills, those in host memory included; 0 if the unit is none."""
    about = stats["units"].get(unit, {})
    return about.get("resident", 0) + about.get("spilled", 0)


def time_of(stats, key):
    """A key's time in ns; cycles are of the clock that the key belongs to."""
    value, unit = quantity(config_value(stats, key))
    if unit != "cyc":
        return value
    clock = "host.core.clock" if key.startswith("host.core") else "nic.clock"
    return value * 1e9 / quantity(config_value(stats, clock))[0]
