"""The part of the page that tells of a sweep. Its scatter, Pareto front and sorting are drawn in the browser
(report.js) from the figures that stand here; the sensitivities are computed here."""

import json
import re

from .report_charts import bar, escape, short, table

MOST_POINTS = 5000  # shown; all count for the sensitivities


def ranks(values):
    """Ranks from 1 on, ties with their mean."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    result, at = [0.0] * len(values), 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for index in order[at:end + 1]:
            result[index] = (at + end) / 2 + 1
        at = end + 1
    return result


def rank_correlation(xs, ys):
    """Spearman's; None if either does not vary."""
    rx, ry = ranks(xs), ranks(ys)
    mean = (len(xs) + 1) / 2
    covariance = sum((a - mean) * (b - mean) for a, b in zip(rx, ry))
    spread = (sum((a - mean) ** 2 for a in rx) * sum((b - mean) ** 2 for b in ry)) ** 0.5
    return covariance / spread if spread else None


def sensitivity(sweep, axis, metric):
    """(rank correlation or None, [(value, mean of the metric, points)..], range of those means / mean of all)."""
    a, m = index_of(sweep, axis), index_of(sweep, metric)
    pairs = [(point[a], point[m]) for point in sweep.points if point[a] is not None and point[m] is not None]
    if not pairs:
        return None, [], 0.0
    groups = {}
    for value, figure in pairs:
        groups.setdefault(value, []).append(figure)
    order = sorted(groups) if axis.is_number else sorted(groups, key=str)
    means = [(value, sum(groups[value]) / len(groups[value]), len(groups[value])) for value in order]
    overall = sum(figure for _, figure in pairs) / len(pairs)
    spread = max(mean for _, mean, _ in means) - min(mean for _, mean, _ in means)
    correlation = rank_correlation(*map(list, zip(*pairs))) if axis.is_number else None
    return correlation, means, spread / abs(overall) if overall else 0.0


def label(column):
    return f"{column.name}, {column.unit}" if column.unit and column.unit not in column.name else column.name


# Columns of a point that may be axes beside those of the specification.
POINT_AXES = ("trace", "protocol", "seed")
# What the table of points shows beside its axes and what the specification asked for; all else is in results.csv.
SHOWN = ("goodput_gbps", "message_rate_mpps", "put_to_completion_mean_ns", "put_to_completion_p50_ns",
         "put_to_completion_p99_ns", "on_chip_bytes", "bottleneck")


def index_of(sweep, column):
    return next(index for index, other in enumerate(sweep.columns) if other.name == column.name)


def varies(sweep, column):
    index = index_of(sweep, column)
    return len({point[index] for point in sweep.points}) > 1


def axes_of(sweep):
    """Axes that take more than one value."""
    return [column for column in sweep.columns
            if (column.kind == "axis" or column.name in POINT_AXES) and varies(sweep, column)]


def metrics_of(sweep):
    """Figures that vary."""
    return [column for column in sweep.columns
            if column.is_number and column.kind in ("result", "asked") and varies(sweep, column)]


def first_with(columns, *words):
    """The first column whose name has one of the words, earlier words first."""
    for word in words:
        for column in columns:
            if word in column.name:
                return column.name
    return None


def sensitivity_table(sweep, axes, metric):
    """One line an axis, the one that moves the metric farthest first."""
    rows = []
    found = [(axis, sensitivity(sweep, axis, metric)) for axis in axes]
    for axis, (correlation, means, spread) in sorted(found, key=lambda entry: -entry[1][2]):
        steps = [f"{short(value) if axis.is_number else value}: {short(mean)}" for value, mean, _ in means[:8]]
        steps += [".."] if len(means) > 8 else []
        text = "-" if correlation is None else f'<data class="num" value="{correlation:.6f}">{correlation:+.2f}</data>'
        rows.append([f"<code>{escape(axis.name)}</code>", f'<data class="num" value="{spread:.6f}">{spread:.1%}</data>',
                     text, escape("; ".join(steps))])
    return table(["key", "range of means", "rank correlation", "mean at each value"], rows)


def choice(columns, chosen, role, text):
    """A drop-down of columns."""
    options = "".join(f'<option value="{escape(column.name)}"{" selected" if column.name == chosen else ""}>'
                      f"{escape(label(column))}</option>" for column in columns)
    return f'<label>{text} <select data-role="{role}">{options}</select></label>'


def better(role, chosen):
    """A drop-down: what is better."""
    options = "".join(f'<option value="{word}"{" selected" if word == chosen else ""}>{word}</option>'
                      for word in ("lower", "higher"))
    return f'<label>better is <select data-role="{role}">{options}</select></label>'


def first_choices(metrics, numbers):
    """Names of the columns that stand across and up at first."""
    y = first_with(metrics, "put_to_completion_p50", "put_to_completion_mean", "latency", "time_ns") or metrics[0].name
    others = (column.name for column in numbers if column.name != y)
    return first_with(numbers, "on_chip_bytes", "on_chip", "bytes") or next(others, y), y


def data_of(sweep, axes):
    """What report.js draws, as JSON that cannot end the element in which it stands."""
    names = {axis.name for axis in axes}
    columns = [{"name": column.name, "label": label(column), "axis": column.name in names} for column in sweep.columns]
    data = {"columns": columns, "points": sweep.points[:MOST_POINTS]}
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


FRONT_NOTE = ('<p class="note">On the front (squares, joined by the dashed line) are the points to which no other is at least as '
              "good in both figures and better in one.</p>")
SENSITIVITY_NOTE = (
    '<p class="note">Range of means: how far the mean of the result moves over the values of a key, all else averaged, as a '
    "share of the mean of all points (one at a time). Rank correlation: Spearman\u2019s, from -1 to 1, over all points; it sees "
    "only what rises or falls throughout, and only keys with numbers.</p>")


def section(sweep, number):
    lost = problems(sweep)
    if not sweep.points:
        return "<p>The sweep has no finished point yet.</p>" + lost
    axes, metrics = axes_of(sweep), metrics_of(sweep)
    if not metrics:
        return f"<p>{len(sweep.points)} points, and no figure varies among them.</p>{lost}{points_table(sweep)}"
    numbers = metrics + [axis for axis in axes if axis.is_number]
    x, y = first_choices(metrics, numbers)
    left = f" The first {MOST_POINTS} are shown." if len(sweep.points) > MOST_POINTS else ""
    tables = "".join(f'<div data-metric="{escape(metric.name)}"{"" if metric.name == y else " hidden"}>'
                     + sensitivity_table(sweep, axes, metric) + "</div>" for metric in metrics)
    names = ", ".join(f"<code>{escape(axis.name)}</code>" for axis in axes) or "none"
    parts = [
        f'<div class="sweep" data-sweep="{number}"><p>{len(sweep.points)} points; keys that vary: {names}.{left}</p>{lost}',
        "<h3>Pareto front</h3>", FRONT_NOTE,
        f'<div class="controls">{choice(numbers, x, "x", "Across:")}{better("x-better", "lower")}',
        f'{choice(numbers, y, "y", "Up:")}{better("y-better", "higher" if "gbps" in y or "rate" in y else "lower")}</div>',
        '<div class="scatter"><noscript>The scatter needs scripts; the table below has its figures.</noscript></div>',
        '<div class="front"></div>',
        "<h3>What the result depends on</h3>",
        f'<div class="controls">{choice(metrics, y, "metric", "Result:")}</div>{tables}', SENSITIVITY_NOTE,
        f"<h3>What limited the points</h3>{limited_by(sweep)}",
        f"<h3>Points</h3>{points_table(sweep)}",
        f'<script type="application/json">{data_of(sweep, axes)}</script></div>']
    return "".join(parts)


def problems(sweep):
    """Points without a result, with their reasons."""
    if not sweep.problems:
        return ""
    count = "1 point has" if len(sweep.problems) == 1 else f"{len(sweep.problems)} points have"
    rows = [[str(point), escape(status), escape(reason or "")] for point, status, reason in sweep.problems[:100]]
    return (f'<div class="banner" role="note"><strong>\u26a0 {count} no result</strong> and left out of all that follows.'
            f"<details><summary>Which, and why</summary>{table(['point', 'status', 'reason'], rows, '')}</details></div>")


def limited_by(sweep):
    """How many points each unit or stage limited; instances of a kind count together."""
    at = next((index for index, column in enumerate(sweep.columns) if column.name == "bottleneck"), None)
    if at is None:
        return "<p>The sweep does not say.</p>"
    counts = {}
    for point in sweep.points:
        kind = re.sub(r"(?<=node)[0-9]+|(?<=link\.)[^.]+(?=\.)", "*", point[at] or "nothing")
        counts[kind] = counts.get(kind, 0) + 1
    rows = []
    for kind, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        figure = f'<data class="num" value="{count}">{count}</data>'
        rows.append([escape(kind), bar(count / len(sweep.points), figure, f"{kind}: {count} points")])
    return table(["limit", "points"], rows, "bars")


def points_table(sweep):
    axes = [axis.name for axis in axes_of(sweep)]
    shown = [index for index, column in enumerate(sweep.columns)
             if column.name == "point" or column.name in axes or column.name in SHOWN or column.kind == "asked"]
    rows = [[cell(point[index]) for index in shown] for point in sweep.points[:MOST_POINTS]]
    return (table([label(sweep.columns[index]) for index in shown], rows, "sortable points")
            + '<p class="note">All columns are in the sweep\u2019s results.csv and results.sqlite.</p>')


def cell(value):
    if value is None:
        return "-"
    if isinstance(value, (int, float)):
        return f'<data class="num" value="{value}">{short(value)}</data>'
    return escape(value)
