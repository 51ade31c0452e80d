"""What should I make bigger? The limits of a run (docs/explanation/limits.md), turned into changes of configuration
keys and what each is expected to give."""

from .report_changes import MOST_FACTOR, Advice, change_of, config_value, places_needed, quantity, widened
from .report_latency import latency_advice
from .report_rate import rate_advice, store_advice


FAR_MORE = 4  # times the places that there are

# What widens structures that have no place but on the NIC.
NOT_SPILLING = {"bindings": [{"key": "nic.binding.on_chip", "effect": "proportional"}]}


def advise(run):
    """What to change, the best first; empty if nothing ran, or nothing that is known would help."""
    stats = run.stats
    verdict = stats["bottleneck"]
    row = next((row for row in stats["limits"] if row["unit"] == verdict), None)
    if row is not None:
        return rate_advice(stats, row)
    refusing = most_refusing(stats)
    if refusing and verdict in (refusing, "latency: retry"):
        return refusal_advice(stats, refusing)
    store = next((row for row in stats.get("stalls", []) if row["unit"] == verdict), None)
    if store is not None:
        return store_advice(stats, store)
    if not verdict or stats["breakdown_ns"]["samples"] == 0:
        return []
    return latency_advice(run)


def most_refusing(stats):
    """The structure that refused most messages, as the verdict has it; none if nothing was refused."""
    refused = {unit: about["refused"] for unit, about in stats["units"].items()
               if about.get("refused") and not unit.endswith(".delivery")}
    return max(refused, key=refused.get, default=None)


def refusal_advice(stats, structure):
    """More places, or more searches at a time, for what refused messages. What that gives is not predicted: they come again, and
    make others wait that are refused then."""
    row = next((row for row in stats["limits"] if row["unit"] == f"{structure}.fetch"), {})
    places = places_needed(stats, structure)
    advice = []
    for widening in row.get("widened_by", NOT_SPILLING.get(structure.rsplit(".", 1)[-1], [])):
        key, effect = widening["key"], widening["effect"]
        change = widened(stats, key, effect, MOST_FACTOR, places)
        if change is not None:
            why = f"{stats['units'][structure]['refused']:,} messages were refused by {structure}, and came again"
            advice.append(Advice([change_of(stats, key, change[0])], None, "time", why))
    # Places for all come first, unless they are far more than there are: then more searches do.
    is_much = [quantity(one.changes[0].new)[0] > FAR_MORE * quantity(one.changes[0].old)[0] for one in advice]
    return [one for _, one in sorted(zip(is_much, advice), key=lambda pair: pair[0])]


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
