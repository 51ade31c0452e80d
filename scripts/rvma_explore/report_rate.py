"""What a run gains that a busy unit limited: docs/explanation/limits.md, "What to make bigger", has the rule."""

from .report_changes import MOST_FACTOR, Advice, change_of, config_value, kind_of, places_needed, quantity, widened

# Measured, as the rule's document says, on 116 changes of shipped configurations: a direction of PCIe is not busier than
# that with pages of so many bytes, since page lists are read between payloads; and the shares of units that work side by
# side add up as powers of no less than LEAST_POWER.
MOST_BUSY_PCIE = ((2 * 1024 * 1024, 1.0), (64 * 1024, 0.97), (0, 0.95))
LEAST_POWER, MOST_POWER = 16.0, 200.0
LIMITS_FROM = 0.75  # the share from where on a unit limits, as in model/report/limits.cpp
SMALL_GAIN = 1.05   # below it a change of two keys is offered as well
LEAST_FACTOR = 1.1  # what is not worth a new part is no advice


def fills_datapath(stats, row):
    """Whether packets are long enough for a wider datapath to matter: the bound is the width's, not the packets'."""
    clock = quantity(config_value(stats, "nic.clock"))[0]
    width = quantity(config_value(stats, "nic.datapath"))[0]
    return row.get("bound_gbps", 0) * 1e9 >= 0.9 * clock * width * 8


def scaled_share(row):
    """How near the unit came to what it can reach."""
    return min(1.0, row["share"] / row.get("most_busy", 1.0))


def has_key(row, key):
    return any(widening["key"] == key for widening in row.get("widened_by", []))


def busiest_of_kinds(stats):
    """A row for each kind of unit, the busiest first."""
    page = quantity(config_value(stats, "host.page"))[0]
    most_busy = next(share for least, share in MOST_BUSY_PCIE if page >= least)
    best = {}
    for row in stats["limits"]:
        kind = kind_of(row["unit"])
        if kind not in best or row["share"] > best[kind]["share"]:
            is_pcie = row["unit"].endswith((".pcie.upstream", ".pcie.downstream"))
            best[kind] = {**row, "most_busy": most_busy if is_pcie else 1.0}
    return sorted(best.values(), key=lambda row: -scaled_share(row))


def share_after(row, factors):
    """With each key of `factors` raising the bounds of the units that it widens by its factor."""
    share = scaled_share(row)
    for key, factor in factors.items():
        share /= factor if has_key(row, key) else 1.0
    return share


def norm(shares, power):
    return sum(share**power for share in shares) ** (1 / power) if shares else 0.0


def power_of(shares):
    """The power at which the shares' norm is the whole time; the least one if they do not fill it."""
    low, high = LEAST_POWER, MOST_POWER
    if norm(shares, low) <= 1:
        return low
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if norm(shares, middle) > 1 else (low, middle)
    return low


def predicted(rows, factors):
    """How many times the rate, with each key of `factors` raised by its factor.

    A unit that is not the busiest still costs: its busy time does not lie wholly within that of the others. That is the
    norm of the shares, with the power at which it explains this run. What it does not explain is nobody's, and stays."""
    before = [scaled_share(row) for row in rows]
    power = power_of(before)
    whole = norm(before, power)
    rest = max(0.0, 1.0 - whole)
    return (whole + rest) / (rest + norm([share_after(row, factors) for row in rows], power))


def step(stats, row, widening, others):
    """(new value, its factor) of one key: up to where the busiest unit of `others` takes over, from LEAST_FACTOR to MOST_FACTOR."""
    key, effect = widening["key"], widening["effect"]
    if effect == "width":
        if not fills_datapath(stats, row):
            return None
        effect = "proportional"
    rest = max((scaled_share(other) for other in others), default=0.0)
    headroom = scaled_share(row) / rest if rest > 0 else MOST_FACTOR
    return widened(stats, key, effect, min(MOST_FACTOR, max(headroom, LEAST_FACTOR)),
                   places_needed(stats, row["unit"].rsplit(".", 1)[0]))


def limits_after(rows, factors):
    """The unit that comes nearest to its bound afterwards."""
    return max(rows, key=lambda row: share_after(row, factors))["unit"]


def because(row):
    if "stalls" in row:
        return f"{row['unit']}: {row['share']:.1%} of the time something waited for room"
    return f"{row['unit']} was busy {row['share']:.1%} of the time"


def single_advice(stats, row, rows):
    """Each key of one unit by itself."""
    advice = []
    for widening in row.get("widened_by", []):
        key = widening["key"]
        change = step(stats, row, widening, [other for other in rows if not has_key(other, key)])
        if change is None:
            continue
        text, factor = change
        gain = min(predicted(rows, {key: factor}), MOST_FACTOR if widening["effect"] == "capacity" else factor)
        advice.append(Advice([change_of(stats, key, text)], gain, "rate", because(row), limits_after(rows, {key: factor})))
    return advice


def pair_advice(stats, row, rows):
    """The busiest unit and the next one together: where they are nearly alike, neither helps by itself."""
    for first in row.get("widened_by", []):
        nexts = [other for other in rows if not has_key(other, first["key"]) and other.get("widened_by")]
        for second in nexts[0]["widened_by"] if nexts else []:
            rest = [other for other in nexts if not has_key(other, second["key"])]
            one, two = step(stats, row, first, rest), step(stats, nexts[0], second, rest)
            if one is None or two is None:
                continue
            factors = {first["key"]: one[1], second["key"]: two[1]}
            return [Advice([change_of(stats, first["key"], one[0]), change_of(stats, second["key"], two[0])],
                           predicted(rows, factors), "rate", f"{because(row)}, {nexts[0]['unit']} {nexts[0]['share']:.1%}",
                           limits_after(rows, factors))]
    return []


def store_advice(stats, row):
    """A store was full with something waiting, and no unit busy: with twice the places twice as much is under way, until a
    unit has no time left."""
    return single_advice(stats, row, [*busiest_of_kinds(stats), row])


def rate_advice(stats, row):
    """Changes that raise the bound of the unit that was busy nearly all the time, and of those that are as busy nearly."""
    rows = busiest_of_kinds(stats)
    named = single_advice(stats, row, rows)
    keys = {key for one in named for key in one.keys}
    others = []
    for other in rows:
        if scaled_share(other) < LIMITS_FROM or kind_of(other["unit"]) == kind_of(row["unit"]):
            continue
        for one in single_advice(stats, other, rows):
            if keys.isdisjoint(one.keys):
                others.append(one)
                keys.update(one.keys)
    named.sort(key=lambda one: -one.gain)
    others = sorted((one for one in others if one.gain >= 1.005), key=lambda one: -one.gain)
    best = max((one.gain for one in named + others), default=1.0)
    pair = pair_advice(stats, row, rows) if best < SMALL_GAIN else []
    return [one for one in pair if one.gain > best * 1.02] + named + others
