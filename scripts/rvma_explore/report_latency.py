"""What a run gains that was limited by the latency of single messages: docs/explanation/limits.md, "What to make bigger"."""

from .report_changes import MOST_FACTOR, Advice, change_of, places_needed, time_of, widened
from .report_rate import busiest_of_kinds, has_key

LEAST_PART = 0.005  # of the mean time: what saves less is not worth a line
RETRIES_RULE = 0.1  # of the mean time: where retries take more, nothing is predicted

# The units that a message waits for in its stages, in the order of its way; kinds as kind_of() names them end so.
QUEUES = (
    (".pcie.downstream", ("payload_read",)),
    (".egress.datapath", ("transmit",)),
    (".wire", ("transmit", "fabric")),
    (".parser.parse", ("parse",)),
    (".payload_writer.write", ("dma_write",)),
    (".pcie.upstream", ("dma_write", "completion_write")),
)


def mean_links(run):
    """Links that a packet crosses, on average over all packets and acknowledgements."""
    packets = run.stats["totals"]["packets"]
    sent = packets["sent"] + packets["acknowledgements"]
    return sum(int(row["packets"]) for row in run.links) / sent if sent and run.links else 1.0


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
            if change is None or any(key in one.keys for one in advice):
                continue
            refused = f", {about['refused']} refused" if about.get("refused") else ""
            # Refused messages come again, and make others wait that are refused then: no run shows what it would be without.
            gain = None if retry_time(stats, wait["unit"]) > stages["total"] * RETRIES_RULE else \
                stages["total"] / max(stages["total"] - saved, 1e-9)
            advice.append(Advice([change_of(stats, key, change[0])], gain, "time",
                                 f"{wait['unit']}: {about['misses']} waited for host memory{refused}", stages=(wait["stage"],)))
    return sorted(advice, key=lambda one: one.gain is not None)


def total_of(stats, unit, figure):
    """Over all units whose path ends so."""
    return sum(about.get(figure, 0) for path, about in stats["units"].items() if path.endswith(unit))


def is_rdma(stats):
    return any(path.endswith(".software") for path in stats["units"])


def messages_before(stats):
    """Of RDMA's software, before the write of a put: a question for the address and its answer, for the puts that ask."""
    puts = stats["totals"]["puts"]
    return 2 * total_of(stats, ".software", "requests") / puts if puts else 0.0


def missed_translations(stats):
    """The part of packets whose page had to be read from host memory first."""
    misses = sum(total_of(stats, unit, "page_misses") for unit in (".nic.conversion", ".nic.receive"))
    decisions = sum(total_of(stats, unit, "decisions") for unit in (".nic.conversion", ".nic.receive"))
    return min(1.0, misses / decisions) if decisions else 0.0


def fixed_parts(run):
    """(stage, key, time in ns of which half is saved by halving the key) of one message's way."""
    stats = run.stats
    stages = stats["breakdown_ns"]
    times = {"once": 1.0, "each_link": mean_links(run), "each_switch": mean_links(run) - 1.0}
    parts = []
    for entry in stats.get("shortened_by", []):
        stage, key = entry["stage"], entry["key"]
        if stage == "visible" and not stages[stage] and is_rdma(stats):
            stage = "count"  # RDMA's software counts, when it sees what the NIC wrote
        parts.append((stage, key, min(time_of(stats, key) * times[entry["occurs"]], stages[stage])))
    read, write = (time_of(stats, f"host.pcie.{kind}_latency") for kind in ("read", "write"))
    parts.append(("address_conversion", "host.pcie.read_latency",
                  min(read, stages["address_conversion"]) * missed_translations(stats)))
    for stage in {wait["stage"] for wait in stats.get("waits", [])}:  # for entries that have to be read
        parts.append((stage, "host.pcie.read_latency", stages.get(stage, 0.0)))
    # A read does not pass earlier writes (model/host/pcie.cpp): where writes take longer, that is what it waits for.
    if stages["payload_read"] >= write > read:
        parts.append(("payload_read", "host.pcie.write_latency", min(write, 2 * (write - read))))
    return [part for part in parts if part[2] > 0]


def fixed_advice(run):
    """Keys that a message's way consists of, each halved."""
    stats = run.stats
    stages = stats["breakdown_ns"]
    total = stages["total"]
    times, where = {}, {}
    for stage, key, time in fixed_parts(run):
        times[key] = times.get(key, 0.0) + time
        where.setdefault(key, []).append(stage)
    others = messages_before(stats)
    advice = []
    for key, once in times.items():
        more = min(others * once, stages["doorbell"])
        change = widened(stats, key, "inverse", 2.0) if (once + more) / 2 >= total * LEAST_PART else None
        if change is None:
            continue
        why = f"part of {' and '.join(where[key])}: {once:.0f} of {total:.0f} ns"
        if more >= 0.01 * total:
            why += f", and {more:.0f} ns of doorbell, for {others:.1f} more messages of software"
        advice.append(Advice([change_of(stats, key, change[0])], total / (total - (once + more) * (1 - 1 / change[1])), "time",
                             why, verb="shorter", stages=tuple(where[key])))
    return advice


def queues(run):
    """(row, stages, [ns]) of units that messages wait for or pass through, with what is not fixed in those stages.

    A wait before a busier unit is none of this one's: without it the message would wait there."""
    stats = run.stats
    stages = stats["breakdown_ns"]
    fixed = {}
    for stage, _, time in fixed_parts(run):
        fixed[stage] = fixed.get(stage, 0.0) + time
    rows = busiest_of_kinds(stats)
    way = []
    for suffix, names in QUEUES:
        row = max((row for row in rows if row["unit"].endswith(suffix)), key=lambda row: row["share"], default=None)
        if row is not None:
            way.append((row, names, [max(0.0, stages[name] - fixed.get(name, 0.0)) for name in names]))
    return way


def queue_advice(run):
    """Keys that raise the rate of what messages waited for."""
    stats = run.stats
    total = stats["breakdown_ns"]["total"]
    way = queues(run)
    keys = {widening["key"]: widening["effect"] for row, _, _ in way for widening in row.get("widened_by", [])
            if widening["effect"] not in ("width", "capacity")}
    advice = []
    for key, effect in keys.items():
        waited, units = {}, []
        for at, (row, names, lengths) in enumerate(way):
            later = [other["share"] for other, _, _ in way[at + 1:] if not has_key(other, key)]
            if has_key(row, key) and row["share"] >= max(later, default=0.0):
                waited.update(zip(names, lengths))
                others = [other["share"] for other, _, _ in way if not has_key(other, key)]
                # The wait for earlier messages is before all units; under RDMA it is for software, too.
                if not is_rdma(run.stats) and row["share"] >= max(others, default=0.0):
                    waited["turn"] = max(waited.get("turn", 0.0), run.stats["breakdown_ns"]["turn"] * row["share"])
                units.append(f"{row['unit']} ({row['share']:.1%} busy)")
        change = widened(stats, key, effect, MOST_FACTOR)
        if change is None or sum(waited.values()) / 2 < total * LEAST_PART:
            continue
        text, factor = change
        saved = sum(waited.values()) * (1 - 1 / factor)
        why = f"{' and '.join(waited)}: {sum(waited.values()):.0f} of {total:.0f} ns are waiting for, or in, {' and '.join(units)}"
        advice.append(Advice([change_of(stats, key, text)], total / (total - saved), "time", why, stages=tuple(waited)))
    return advice


def latency_advice(run):
    """What helps most first; among equals, what shortens the stage that the verdict names."""
    verdict = run.stats["bottleneck"].removeprefix("latency: ").split(" ")[0]
    advice = wait_advice(run.stats)
    if any(one.gain is None for one in advice):
        return advice
    if verdict != "window":  # a window opens and closes with congestion: that is not predicted
        advice += fixed_advice(run) + queue_advice(run)
    return sorted(advice, key=lambda one: (-round(one.gain, 2), verdict not in one.stages, -one.gain))
