"""What should I make bigger? As a sweep's own points answer it."""

import re
from collections import Counter

from .report_charts import escape, short
from .report_sensitivity import as_set, index_of, sensitivity

_LEAST_GAIN = 1.02       # times as good, of the means
_LEAST_EXPLAINED = 0.02  # of the variance, beyond chance
_ENOUGH = 1.02           # what is nearer to the best than this is as good
_MOST_KEYS = 3
# What is asked for: (words, columns that tell it, the first that varies counts; whether higher is better).
GOALS = (("For a higher rate", ("goodput_gbps", "message_rate_mpps"), True),
         ("For less time", ("put_to_completion_mean_ns", "put_to_completion_p50_ns", "time_ns"), False))


def kind_of(bottleneck):
    """Instances of a kind count together."""
    return re.sub(r"(?<=node)[0-9]+|(?<=link\.)[^.]+(?=\.)", "*", bottleneck or "nothing")


def limits_of(sweep):
    """(kind, points that it limited), the most first; empty if the sweep does not say."""
    at = next((index for index, column in enumerate(sweep.columns) if column.name == "bottleneck"), None)
    if at is None:
        return []
    counts = Counter(kind_of(point[at]) for point in sweep.points)
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))


def best_step(means, is_higher_better):
    """(the worst group, the first on the way from it to the best one that is as good, times as good)."""
    def goodness(entry):
        return entry[1] if is_higher_better else -entry[1]

    worst, best = min(means, key=goodness), max(means, key=goodness)
    start, end = means.index(worst), means.index(best)
    way = means[start:end + 1] if start <= end else means[end:start + 1][::-1]
    target = next(entry for entry in way if ratio(entry[1], best[1], is_higher_better) < _ENOUGH)
    return worst, target, ratio(worst[1], target[1], is_higher_better)


def ratio(before, after, is_higher_better):
    """Times as good."""
    low, high = (before, after) if is_higher_better else (after, before)
    return high / low if low > 0 else 1.0


def steps_for(sweep, axes, metric, is_higher_better):
    """(axis, worst group, good group, times as good), the key that explains most first; only what is more than chance."""
    found = []
    for axis in axes:
        told = sensitivity(sweep, axis, metric)
        if len(told.means) < 2 or told.explained < _LEAST_EXPLAINED:
            continue
        worst, target, gain = best_step(told.means, is_higher_better)
        if gain >= _LEAST_GAIN:
            found.append((told.explained, axis, worst, target, gain))
    return [entry[1:] for entry in sorted(found, key=lambda entry: -entry[0])]


def varied_together(sweep, axes):
    """Axes in lists: all of a list tell the same points apart (`zip`), so that no point says which of them counts."""
    lists = {}
    for axis in axes:
        at, first = index_of(sweep, axis), {}
        pattern = tuple(first.setdefault(point[at], number) for number, point in enumerate(sweep.points))
        lists.setdefault(pattern, []).append(axis)
    return list(lists.values())


def sentence(axis, others, metric, worst, target, gain):
    unit = f" {metric.unit}" if metric.unit else ""
    points = f"{worst[2]} and {target[2]} points"
    together = " together with " + ", ".join(f"<code>{escape(other.key)}</code>" for other in others) if others else ""
    return (f"<code>{escape(axis.key)}</code> from {escape(as_set(axis, worst[0]))} to "
            f"<strong>{escape(as_set(axis, target[0]))}</strong>{together}: "
            f'<data class="num" data-step="{escape(axis.name)}" value="{gain:.6f}">\u00d7{gain:.2f}</data> '
            f"({escape(metric.name)} {short(worst[1])} \u2192 {short(target[1])}{escape(unit)}, means of {points})")


def answer(sweep, axes, varying):
    """`axes`: what may be changed; `varying`: figures whose differences matter."""
    keys = [axis for axis in axes if axis.kind == "axis" and not axis.name.startswith("gen.")]
    others = {axis.name: rest for axis, *rest in varied_together(sweep, keys)}
    keys = [axis for axis in keys if axis.name in others]
    lines = [] if keys else ["<p>No configuration key varies in this sweep.</p>"]
    for words, names, is_higher_better in GOALS:
        metric = next((column for name in names for column in varying if column.name == name), None)
        steps = steps_for(sweep, keys, metric, is_higher_better) if metric else []
        if steps:
            told = "".join(f"<li>{sentence(axis, others[axis.name], metric, *rest)}</li>"
                           for axis, *rest in steps[:_MOST_KEYS])
            lines.append(f"<p><strong>{words}:</strong></p><ol>{told}</ol>")
    if not lines:
        lines.append("<p>No key of this sweep moves the rate or the time by more than chance.</p>")
    limits = limits_of(sweep)[:3]
    if limits:
        told = "; ".join(f"{escape(kind)} limited {count}" for kind, count in limits)
        lines.append(f"<p>Of {len(sweep.points)} points, {told}.</p>")
    return '<div class="advice">' + "".join(lines) + "</div>" if lines else ""


NOTE = ('<p class="note">Measured in this sweep: the means of the points with a key\u2019s worst value and with the first that is as '
        "good as its best (within 2 %), whatever their other keys are. Keys whose effect is no more than chance are left out. What "
        "one run would gain: see its own report (rvma report DIR/points/ID).</p>")
