"""The parts of the page that tell of runs."""

from . import report_advice, report_latency
from .report_changes import kind_of
from .report_charts import SMALL, bar, byte_unit, escape, lines, ns, short, table, time_unit
from .stats_shape import figures_of_compare

STAGES_NOTE = ("Each stage begins where the one before ends; lengths are means over {samples} completions. "
               "<q>turn</q> is the wait behind others.")

WINDOW_ADVICE = ('<p class="advice">Make it bigger: what may be on its way to a peer, <code>nic.reliability.window</code> or '
                 '<code>nic.reliability.messages</code>; if congestion control holds packets back, what they met on their way '
                 '(busiest: {unit}, {share:.1%}) or <code>nic.congestion.target</code>. What that gives is not predicted.</p>')

GOODPUT_NOTE = ("Each step of the goodput is the mean of {interval}. A packet counts as a whole where its end entered memory: where a step is "
                "as short as a few packets, it may lie above the rate of the link.")

PEAKS_NOTE = "Queues: the most that any node's had in each interval of {interval}."

PREDICTION_NOTE = ('<p class="note">Each line is one change by itself, predicted from this run alone. Rates: from how busy all units were; '
                   "times: from the part of the mean that the key stands for. Tried with the shipped traces and configurations, "
                   "the gain was within 3 percentage points of what is said (5 where RDMA waits for software), or within a fifth of "
                   "the rate or time where more than 20 % is said. Where ranks wait for one another in rounds (halo3d, sweep3d, "
                   "alltoall), a change moves when all later messages are sent: there it was off by up to a third.</p>")


# ------------------------------------------------------------------------------------------------- pieces
def figure_of(stats, path):
    value = stats
    for part in path.split("."):
        value = value[part]
    return value


def figure(stats, path, shown=None):
    """A figure of stats.json: as it stands there in the element's value, readable in its text."""
    value = figure_of(stats, path)
    text = "-" if value is None else shown(value) if shown else short(value)
    return f'<data class="num" data-key="{path}" value="{"" if value is None else value}">{text}</data>'


def state(stats):
    """(word, class): what is to be thought of the run as a whole."""
    if stats["run"]["partial"]:
        return "partial", "bad"
    if stats["run"]["problems"] or stats["check"]["passed"] is False:
        return "failed", "bad"
    return ("checked", "good") if stats["check"]["passed"] else ("complete", "")


def badge(stats):
    word, css = state(stats)
    mark = {"bad": "\u26a0 ", "good": "\u2713 "}.get(css, "")
    return f'<span class="badge {css}">{mark}{word}</span>'


def trace_name(stats):
    name = stats["run"]["trace"]
    return f'<span title="{escape(name)}">{escape(name.rsplit("/", 1)[-1])}</span>'


def change(advice):
    return " and ".join(f"<code>{escape(one.key)}</code> from {escape(one.old)} to {escape(one.new)}" for one in advice.changes)


def gain_text(advice):
    if advice.gain is None:
        return ("rate" if advice.measure == "rate" else "mean put to completion") + ": better, but by how much is not predicted"
    settings = escape(" ".join(f"{one.key}={one.new}" for one in advice.changes))
    figure_ = f'<data data-gain="{advice.measure}" data-set="{settings}" value="{advice.gain:.6f}">{advice.gain:.2f}</data>'
    return f"rate \u00d7{figure_}" if advice.measure == "rate" else f"mean put to completion \u00f7{figure_}"


# ------------------------------------------------------------------------------------------------- all runs
def summary(runs):
    head = ["run", "state", "trace", "nodes", "simulated", "goodput, Gb/s", "messages, M/s", "put to completion: mean", "p50",
            "p99", "limited by", "what to change"]
    rows = []
    for number, run in enumerate(runs):
        stats = run.stats
        advice = report_advice.advise(run)
        rows.append([f'<a href="#run{number}">{escape(run.name)}</a>', badge(stats), trace_name(stats),
                     figure(stats, "run.nodes"), figure(stats, "sim.time_ns", ns),
                     figure(stats, "bandwidth_gbps.goodput"), figure(stats, "message_rate_mpps"),
                     figure(stats, "latency_ns.put_to_completion.mean", ns),
                     figure(stats, "latency_ns.put_to_completion.p50", ns),
                     figure(stats, "latency_ns.put_to_completion.p99", ns), escape(stats["bottleneck"] or "nothing"),
                     f"{change(advice[0])}: {gain_text(advice[0])}" if advice else "-"])
    return table(head, rows)


def flat(config, prefix=""):
    for key, value in config.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def cumulative(title, named):
    """`named`: (name, latency quantiles of stats.json: [per mille, ns] each)."""
    unit, size = time_unit(max((value for _, points in named for _, value in points), default=0))
    curves = [(name, [(value / size, parts / 10) for parts, value in points]) for name, points in named]
    return lines(title, curves, f"{unit} (logarithmic)", "% of samples", is_step=False, x_log=True, y_top=100)


def comparison(runs):
    parts = []
    for path, title, unit in (("bandwidth_gbps.goodput", "Goodput", "Gb/s"), ("message_rate_mpps", "Messages", "M/s"),
                              ("latency_ns.put_to_completion.mean", "Put to completion, mean", ""),
                              ("latency_ns.put_to_completion.p99", "Put to completion, p99", ""),
                              ("sim.time_ns", "Simulated time", "")):
        shown = short if unit else ns
        most = max((figure_of(run.stats, path) for run in runs), default=0) or 1
        rows = [[escape(run.name), bar(figure_of(run.stats, path) / most, figure(run.stats, path, shown),
                                       f"{run.name}: {title} {shown(figure_of(run.stats, path))} {unit}".rstrip())]
                for run in runs]
        parts.append(f"<div><h3>{title}{', ' if unit else ''}{unit}</h3>{table(['run', 'figure'], rows, 'bars')}</div>")
    chart = cumulative("Put to completion of all runs: per cent of samples at or below a time",
                       [(run.name, run.stats.get("latency_quantiles", {}).get("put_to_completion", [])) for run in runs])
    configs = [dict(flat(run.stats["config"])) for run in runs]
    keys = [key for key in configs[0] if len({str(config.get(key)) for config in configs}) > 1]
    differences = (table(["key"] + [run.name for run in runs],
                         [[f"<code>{key}</code>"] + [escape(config.get(key, "-")) for config in configs] for key in keys])
                   if keys else "<p>All runs have the same configuration.</p>")
    stages = [stage for stage in runs[0].stats["breakdown_ns"] if stage != "samples"]
    by_stage = table(["stage, mean"] + [run.name for run in runs],
                     [[stage] + [figure(run.stats, f"breakdown_ns.{stage}", ns) for run in runs] for stage in stages])
    return (f'<div class="grid2">{"".join(parts)}</div>'
            + (f"<h3>Latency distributions</h3>{chart}" if chart else "")
            + f"<h3>Configuration keys that differ</h3>{differences}"
            + f"<details><summary>Where the time of a put goes, side by side</summary>{by_stage}</details>")


def protocols(one):
    """compare.json as it stands."""
    keys = figures_of_compare(one.rows[0])
    rows = [[f"<code>{key}</code>"] + [f'<data class="num" value="{row[key]}">{(ns if key.endswith("_ns") else short)(row[key])}</data>'
                                       for row in one.rows] for key in keys]
    return table(["figure"] + [row["name"] + (" (partial)" if row.get("partial") else "") for row in one.rows], rows)


# ------------------------------------------------------------------------------------------------- one run
def problems(stats):
    lines_ = list(stats["run"]["problems"])
    if stats["check"]["passed"] is False:
        lines_.append(f"{stats['check']['failures']} checks failed")
    if not lines_:
        return ""
    word = "Partial: the run did not reach its end, and figures cover what was simulated." if stats["run"]["partial"] else \
        "The run failed."
    return f'<div class="banner" role="note"><strong>\u26a0 {word}</strong><ul>' + \
        "".join(f"<li>{escape(line)}</li>" for line in lines_) + "</ul></div>"


def tiles(stats):
    packets = stats["totals"]["packets"]
    entries = [("Goodput", figure(stats, "bandwidth_gbps.goodput") + " Gb/s"),
               ("Messages", figure(stats, "message_rate_mpps") + " M/s"),
               ("Put to completion, mean", figure(stats, "latency_ns.put_to_completion.mean", ns)),
               ("p99", figure(stats, "latency_ns.put_to_completion.p99", ns)),
               ("Put to acknowledgement, p50", figure(stats, "latency_ns.put_to_ack.p50", ns)),
               ("Completions", figure(stats, "totals.completions", str)),
               ("Simulated", figure(stats, "sim.time_ns", ns))]
    if packets["dropped"] or packets["retransmitted"]:
        entries.append(("Packets lost, sent again", figure(stats, "totals.packets.dropped", str) + ", " +
                        figure(stats, "totals.packets.retransmitted", str)))
    refused = {reason: count for reason, count in stats["totals"]["refusals"].items() if count}
    if refused:
        entries.append(("Refused messages", ", ".join(f"{reason} {count}" for reason, count in refused.items())))
    return '<dl class="tiles">' + "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in entries) + "</dl>"


def exchange(stats):
    """Under RDMA the stage doorbell is more than a doorbell."""
    if not report_latency.messages_before(stats):
        return ""
    each = report_latency.total_of(stats, ".software", "exchange_ns") / stats["totals"]["puts"]
    return (f'<p class="note">This <q>doorbell</q> holds what RDMA does before the write: on average {ns(each)} a put to connect and to '
            f"ask for the address, with {report_latency.messages_before(stats):.2g} messages more than the put's own. "
            "<code>rdma.exchange=advertised</code> avoids asking where a window has one sender, and its buffers one message each.</p>")


def bottleneck(run):
    stats = run.stats
    if not stats["bottleneck"]:
        return "<p>Nothing was delivered: nothing limited the run.</p>"
    text = f'<p>Limited by <strong>{escape(stats["bottleneck"])}</strong>'
    if stats["next"]["unit"]:
        text += f', then by {escape(stats["next"]["unit"])} ({stats["next"]["share"]:.1%})'
    text += ".</p>"
    if stats["bottleneck"].startswith("latency: doorbell"):
        text += exchange(stats)
    advice = report_advice.advise(run)
    if advice:
        first = advice[0]
        then = f", then <strong>{escape(first.then)}</strong> limits" if first.then else ""
        text += f'<p class="advice">Make it {first.verb}: {change(first)} \u2192 {gain_text(first)}{then}.</p>'
        text += table(["change", "expected", "because", "then limits"],
                      [[change(one), gain_text(one), escape(one.why), escape(one.then or "not known")] for one in advice], "")
        text += PREDICTION_NOTE
    elif stats["bottleneck"].startswith("latency: window"):
        text += WINDOW_ADVICE.format(unit=escape(stats["limits"][0]["unit"]), share=stats["limits"][0]["share"])
    else:
        text += '<p class="advice">No configuration key is known to widen that.</p>'
    spilled = report_advice.spilled_structures(stats)
    if spilled:
        text += "<h4>What did not fit on the NIC</h4>" + table(
            ["structure", "key", "hits", "misses", "refused", "places", "places for all"],
            [[escape(unit), f"<code>{key}</code>"] + [str(value) for value in rest] for unit, key, *rest in spilled])
    return text


def utilisation(stats):
    """The busiest of each kind of unit, as the summary of `rvma run` has it, and all others behind."""
    rows, more, kinds = [], [], set()
    for limit in stats["limits"]:
        bound = "bound_gbps" if "bound_gbps" in limit else "bound_mpps"
        unit = "Gb/s" if bound == "bound_gbps" else "M/s"
        keys = ", ".join(f"<code>{one['key']}</code>" for one in limit.get("widened_by", [])) or "-"
        did_any = limit["achieved"] or limit[bound]  # else it was busy with other things than what its bound counts
        achieved = f'{short(limit["achieved"])} of {short(limit[bound])} {unit}' if did_any else "-"
        tip = f'{limit["achieved"]} of {limit[bound]} {unit}' if did_any else f'busy {limit["share"]:.1%}'
        text = f'<data class="num" data-unit="{escape(limit["unit"])}" value="{limit["share"]}">{limit["share"]:.1%}</data>'
        row = [escape(limit["unit"]),
               bar(limit["share"], text, f'{limit["unit"]}: {tip}', css="hot" if limit["share"] >= 0.75 else ""), achieved, keys]
        kind = kind_of(limit["unit"])
        (more if kind in kinds or len(rows) >= 10 else rows).append(row)
        kinds.add(kind)
    head = ["unit", "busy", "achieved of bound", "widened by"]
    text = table(head, rows, "bars")
    if more:
        text += f"<details><summary>{len(more)} more units</summary>{table(head, more[:400], 'bars')}</details>"
    return text


def waterfall(stats):
    stages = stats["breakdown_ns"]
    if not stages["samples"]:
        return "<p>No put completed an epoch: there is nothing to split.</p>"
    total, start, rows = stages["total"] or 1, 0.0, []
    for stage, value in stages.items():
        if stage in ("samples", "total"):
            continue
        keys = ", ".join(f"<code>{one['key']}</code>" for one in stats.get("shortened_by", []) if one["stage"] == stage)
        rows.append([stage, bar(value / total, figure(stats, f"breakdown_ns.{stage}", ns) + f" {value / total:.1%}",
                                f"{stage}: {ns(value)}, {value / total:.2%}", start / total), keys or "-"])
        start += value
    rows.append(["total", figure(stats, "breakdown_ns.total", ns), ""])
    return f'<p class="note">{STAGES_NOTE.format(samples=stages["samples"])}</p>' + \
        table(["stage", "mean time", "of which"], rows, "bars")


def distribution(stats):
    chart = cumulative("Latency distribution: per cent of samples at or below a time",
                       [(name, stats.get("latency_quantiles", {}).get(key, []))
                        for key, name in (("put_to_completion", "put to completion"), ("put_to_ack", "put to acknowledgement"))])
    columns = ["count", "min", "mean", "p50", "p99", "p999", "max"]
    seen = [("put_to_seen", "put to seen by a core")] if (stats["latency_ns"].get("put_to_seen") or {}).get("count") else []
    rows = [[name] + [figure(stats, f"latency_ns.{key}.{column}", str if column == "count" else ns) for column in columns]
            for key, name in (("put_to_completion", "put to completion"), *seen, ("put_to_ack", "put to acknowledgement"))]
    return chart + table(["latency"] + columns, rows, "")


def means(rows, column, most=256):
    """(end in ns, mean) of a rate over so many neighbouring rows that there are no more than `most`: more cannot be told
    apart in a picture, and traffic that comes and goes would be a black area."""
    together = -(-len(rows) // most)
    start, points = 0.0, []
    for at in range(0, len(rows), together):
        work, begin = 0.0, start
        for row in rows[at:at + together]:
            work += row[column] * (row["time_ns"] - start)
            start = row["time_ns"]
        points.append((start, work / (start - begin)))
    return points


def peaks(rows, column, most=256):
    """(end in ns, greatest) of a level over as many neighbouring rows as means() takes."""
    together = -(-len(rows) // most)
    groups = [rows[at:at + together] for at in range(0, len(rows), together)]
    return [(group[-1]["time_ns"], max(row[column] for row in group)) for group in groups]


def over_time(run):
    """Bandwidth, and what was in queues, from series.csv."""
    if not run.series:
        return "<p>The run has no series.csv: nothing is known of its course.</p>"
    name, size = time_unit(run.series[-1]["time_ns"])
    def from_zero(points, scale=1.0):
        return [(0.0, points[0][1] / scale)] + [(at / size, value / scale) for at, value in points]
    rates = means(run.series, "goodput_gbps")
    text = lines("Goodput over simulated time", [("goodput", from_zero(rates))], name, "Gb/s")
    text += f'<p class="note">{GOODPUT_NOTE.format(interval=ns(rates[0][0]))}</p>'
    small = []
    for column in run.series[0]:
        most = max(row[column] for row in run.series)
        if column in ("time_ns", "delivered_bytes", "goodput_gbps", "packets") or most == 0:
            continue
        unit, scale, is_count = "entries", 1.0, column in ("refusals", "retransmitted")
        if column.endswith("_bytes"):
            unit, scale = byte_unit(most)
        points = [(row["time_ns"], row[column]) for row in run.series] if is_count else peaks(run.series, column)
        title = f'{column.replace("node.nic.", "")}, at most {short(most / scale)}{"" if is_count else " " + unit}'
        small.append(f"<div><h4>{escape(title)}</h4>"
                     + lines(f"{column} over simulated time", [(column, from_zero(points, scale))], name,
                             "in the interval" if is_count else unit, size=SMALL) + "</div>")
    if not small:
        return text
    note = PEAKS_NOTE.format(interval=ns(peaks(run.series, "time_ns")[0][0]))
    return text + f'<p class="note">{note}</p><div class="grid3">{"".join(small)}</div>'


def details(run, number):
    stats = run.stats
    about = (f'{stats["run"]["ranks"]} ranks on {stats["run"]["nodes"]} nodes, {escape(stats["run"]["topology"])}, '
             f'seed {stats["run"]["seed"]}')
    parts = [f'<p>{badge(stats)} {escape(stats["run"]["trace"])}: {about}</p>', problems(stats), tiles(stats),
             "<h3>What limits it, and what to make bigger</h3>", bottleneck(run),
             "<h3>How near each unit came to its bound</h3>", utilisation(stats),
             "<h3>Where the time of a put goes</h3>", waterfall(stats),
             "<h3>Latency</h3>", distribution(stats),
             "<h3>Over simulated time</h3>", over_time(run),
             f'<details><summary>Configuration</summary>'
             + table(["key", "value"], [[f"<code>{key}</code>", escape(value)] for key, value in flat(stats["config"])])
             + "</details>"]
    return "".join(parts)
