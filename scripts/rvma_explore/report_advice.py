"""What should I make bigger? The limits of a run (docs/explanation/limits.md), turned into changes of configuration
keys and what each is expected to give."""

from .report_changes import config_value, places_needed
from .report_latency import latency_advice
from .report_rate import rate_advice, store_advice


def advise(run):
    """What to change, the best first; empty if nothing ran, or nothing that is known would help."""
    stats = run.stats
    verdict = stats["bottleneck"]
    row = next((row for row in stats["limits"] if row["unit"] == verdict), None)
    if row is not None:
        return rate_advice(stats, row)
    store = next((row for row in stats["stalls"] if row["unit"] == verdict), None)
    if store is not None:
        return store_advice(stats, store)
    if not verdict or stats["breakdown_ns"]["samples"] == 0:
        return []
    return latency_advice(run)


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
