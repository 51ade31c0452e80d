"""The part of the page that tells of a sweep. Its scatter, Pareto front and sorting are drawn in the browser
(report.js) from the figures that stand here; the sensitivities are computed here."""

import json
from collections import Counter

from . import report_sweep_answer
from .quantities import unit_of_column
from .report_charts import bar, escape, short, table
from .report_sensitivity import MOST_RANGES, MOST_VALUES, as_set, exact, index_of, sensitivity
from .sweep_effects import idle_axes

MOST_POINTS = 5000  # shown; all count for the sensitivities


def label(column):
    return f"{column.name}, {column.unit}" if column.unit and column.unit not in column.name else column.name


# Columns of a point that may be axes beside those of the specification.
POINT_AXES = ("trace", "protocol", "seed")
# What the table of points shows beside its axes and what the specification asked for; all else is in results.csv.
SHOWN = ("goodput_gbps", "message_rate_mpps", "put_to_completion_mean_ns", "put_to_completion_p50_ns",
         "put_to_completion_p99_ns", "on_chip_bytes", "on_chip_bytes_without_peers", "bottleneck")


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


def spread_of(sweep, column):
    """Range of a column's numbers, as a share of the greatest."""
    at = index_of(sweep, column)
    values = [point[at] for point in sweep.points if isinstance(point[at], (int, float))]
    greatest = max(map(abs, values), default=0)
    return (max(values) - min(values)) / greatest if greatest else 0.0


def sensitivity_table(sweep, axes, metric):
    """One line an axis, the one that explains most first."""
    rows = []
    found = [(axis, sensitivity(sweep, axis, metric)) for axis in axes]
    for axis, told in sorted(found, key=lambda entry: (-entry[1].explained, -entry[1].spread)):
        steps = [f"{as_set(axis, value)}: {short(mean)}" for value, mean, _ in told.means[:8]]
        steps += [".."] if len(told.means) > 8 else []
        text = ("-" if told.correlation is None
                else f'<data class="num" value="{told.correlation:.6f}">{told.correlation:+.2f}</data>')
        rows.append([f"<code>{escape(axis.key)}</code>", f'<data class="num" value="{told.explained:.6f}">{told.explained:.0%}</data>',
                     text, f'<data class="num" value="{told.spread:.6f}">{told.spread:.1%}</data>', escape("; ".join(steps))])
    return table(["key", "explains", "rank correlation", "range of means", "mean at each value, or range of values"], rows)


def choice(columns, chosen, role, text):
    """A drop-down of columns."""
    options = "".join(f'<option value="{escape(column.name)}" data-better="{better_of(column.name)}"'
                      f'{" selected" if column.name == chosen else ""}>{escape(label(column))}</option>' for column in columns)
    return f'<label>{text} <select data-role="{role}">{options}</select></label>'


def better(role, chosen):
    """A drop-down: what is better."""
    options = "".join(f'<option value="{word}"{" selected" if word == better_of(chosen) else ""}>{word}</option>'
                      for word in ("lower", "higher"))
    return f'<label>better is <select data-role="{role}">{options}</select></label>'


def better_of(name):
    """Whether a lower or a higher figure is better, as far as its name tells. Of two points with the same time, the one that
    did more for it is better: an option of the generator counts as work done."""
    is_work = name.startswith(("gen.", "bytes_delivered", "messages_delivered", "completions", "ended_ok"))
    return "higher" if is_work or "gbps" in name or "message_rate" in name else "lower"


# What stands across and up at first: the first that varies by more than LEAST_SPREAD.
LEAST_SPREAD = 0.01
ACROSS = ("on_chip_bytes_without_peers", "on_chip_bytes")
UP = ("put_to_completion_p50_ns", "put_to_completion_mean_ns", "time_ns")


def first_choices(sweep, metrics, numbers):
    """Names of the columns that stand across and up at first: cost against time, else work or rate against time, else what
    there is."""
    spreads = {column.name: spread_of(sweep, column) for column in numbers}
    telling = [name for name, spread in spreads.items() if spread > LEAST_SPREAD]

    def first(*names):
        return next((name for name in names if name in telling), None)

    work = [name for name in telling if name.startswith("gen.")]
    up = first(*UP) or first("goodput_gbps") or max((metric.name for metric in metrics), key=spreads.get)
    rest = [column.name for column in numbers if column.kind == "axis" and column.name in telling]
    across = first(*(name for name in (*ACROSS, *work, "goodput_gbps", *rest) if name != up))
    return across or next((name for name in spreads if name != up), up), up


def data_of(sweep, axes):
    """What report.js draws, as JSON that cannot end the element in which it stands."""
    names = {axis.name for axis in axes}
    columns = [{"name": column.name, "label": label(column), "axis": column.name in names, "key": column.key,
                "suffix": unit_of_column(column.unit) if column.has_key_unit and column.is_number else ""} for column in sweep.columns]
    data = {"columns": columns, "points": sweep.points[:MOST_POINTS]}
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


FRONT_NOTE = ('<p class="note">On the front (squares, joined by the dashed line) are the points to which no other is at least as '
              "good in both figures and better in one.</p>")
SENSITIVITY_NOTE = (
    '<p class="note">Explains: the share of the differences between the points (of their ranks) that this key has by itself, less '
    "what chance would give it. Rank correlation: Spearman\u2019s, from -1 to 1; it sees only what rises or falls throughout, and "
    "only keys with numbers. Range of means: how far the mean of the result moves over the values of a key, all else averaged, as a "
    f"share of the mean of all points. A number with more than {MOST_VALUES} values and few points at each is taken in up to "
    f"{MOST_RANGES} ranges of about as many points.</p>")


def section(sweep, number):
    lost = problems(sweep)
    if not sweep.points:
        return f"<p>{nothing(sweep)}</p>{lost}"
    axes, metrics = axes_of(sweep), metrics_of(sweep)
    if not metrics:
        return f"<p>{len(sweep.points)} points, and no figure varies among them.</p>{lost}{points_table(sweep)}"
    numbers = metrics + [axis for axis in axes if axis.is_number]
    x, y = first_choices(sweep, metrics, numbers)
    left = f" The first {MOST_POINTS} are shown." if len(sweep.points) > MOST_POINTS else ""
    tables = "".join(f'<div data-metric="{escape(metric.name)}"{"" if metric.name == y else " hidden"}>'
                     f'<p class="printed">Result: <strong>{escape(label(metric))}</strong></p>'
                     + sensitivity_table(sweep, axes, metric) + "</div>" for metric in metrics)
    names = ", ".join(f"<code>{escape(axis.key)}</code>" for axis in axes) or "none"
    telling = [metric for metric in metrics if spread_of(sweep, metric) > LEAST_SPREAD]
    parts = [
        f'<div class="sweep" data-sweep="{number}"><p>{len(sweep.points)} points; keys that vary: {names}.{left}</p>{lost}'
        f"{idle(sweep)}",
        "<h3>What to make bigger</h3>", report_sweep_answer.answer(sweep, axes, telling), report_sweep_answer.NOTE,
        "<h3>Pareto front</h3>", FRONT_NOTE,
        f'<div class="controls">{choice(numbers, x, "x", "Across:")}{better("x-better", x)}',
        f'{choice(numbers, y, "y", "Up:")}{better("y-better", y)}</div>',
        '<div class="scatter"><noscript>The scatter needs scripts; the table below has its figures.</noscript></div>',
        '<div class="front"></div>',
        "<h3>What the result depends on</h3>",
        f'<div class="controls">{choice(metrics, y, "metric", "Result:")}</div>{tables}', SENSITIVITY_NOTE,
        f"<h3>What limited the points</h3>{limited_by(sweep)}",
        f"<h3>Points</h3>{points_table(sweep)}",
        f'<script type="application/json">{data_of(sweep, axes)}</script></div>']
    return "".join(parts)


def nothing(sweep):
    """Why there is no point to show."""
    if all(status == "not_run" for _, status, _ in sweep.problems):
        return "The sweep has no finished point yet."
    counts = Counter(status for _, status, _ in sweep.problems)
    told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.most_common())
    reasons = Counter(reason for _, _, reason in sweep.problems if reason).most_common(1)
    why = f" The reason of {reasons[0][1]}: {escape(reasons[0][0])}" if reasons else ""
    return f"<strong>No point ended well</strong>: of {len(sweep.problems)}, {told}.{why}"


def idle(sweep):
    """Keys that changed nothing."""
    idle_names = idle_axes(sweep.columns, sweep.points if sweep.rows is None else sweep.rows)
    names = ", ".join(f"<code>{escape(column.key)}</code>" for column in sweep.columns if column.name in idle_names)
    return f'<p class="idle">Had no effect (points that differ only in it have the same figures): {names}.</p>' if names else ""


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
    limits = report_sweep_answer.limits_of(sweep)
    if not limits:
        return "<p>The sweep does not say.</p>"
    rows = []
    for kind, count in limits:
        figure = f'<data class="num" value="{count}">{count}</data>'
        rows.append([escape(kind), bar(count / len(sweep.points), figure, f"{kind}: {count} points")])
    return table(["limit", "points"], rows, "bars")


def points_table(sweep):
    axes = [axis.name for axis in axes_of(sweep)]
    shown = [index for index, column in enumerate(sweep.columns)
             if column.name == "point" or column.name in axes or column.name in SHOWN or column.kind == "asked"]
    rows = [[cell(point[index], sweep.columns[index].kind != "axis") for index in shown]
            for point in sweep.points[:MOST_POINTS]]
    return (table([label(sweep.columns[index]) for index in shown], rows, "sortable points")
            + '<p class="note">All columns are in the sweep\u2019s results.csv and results.sqlite.</p>')


def cell(value, is_rounded):
    if value is None:
        return "-"
    is_rounded = is_rounded and not (isinstance(value, int) and abs(value) < 10 ** 9)
    if isinstance(value, (int, float)):
        return f'<data class="num" value="{value}">{short(value) if is_rounded else exact(value)}</data>'
    return escape(value)
