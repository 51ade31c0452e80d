"""How far each key of a sweep moves a figure."""

from typing import NamedTuple

from .quantities import text_of_column

# A number with more values than this, and few points at each, is taken in ranges: else the mean of a value is that of a point
# or two, and their range is chance.
MOST_VALUES = 8
LEAST_AT_A_VALUE = 8
MOST_RANGES = 5


class Span(NamedTuple):
    """Values of a key that are taken together, both ends included."""
    low: float
    high: float


class Sensitivity(NamedTuple):
    correlation: float  # Spearman's; None if the key is no number, or either does not vary
    means: list         # (value or Span, mean of the figure, points)
    spread: float       # range of those means / mean of all
    explained: float    # share of the variance of the figure's ranks that the key has, less what chance gives it: 0..1


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


def index_of(sweep, column):
    return next(index for index, other in enumerate(sweep.columns) if other.name == column.name)


def grouped(pairs, is_number):
    """(value or Span, figures) in order, of (value, figure)."""
    groups = {}
    for value, figure in pairs:
        groups.setdefault(value, []).append(figure)
    groups = sorted(groups.items(), key=lambda group: group[0] if is_number else str(group[0]))
    if is_number and len(groups) > MOST_VALUES and len(pairs) < LEAST_AT_A_VALUE * len(groups):
        return ranges(groups, len(pairs))
    return groups


def ranges(groups, count):
    """As many points in each, as far as points of one value stay together."""
    wanted = max(2, min(MOST_RANGES, count // LEAST_AT_A_VALUE))
    result, low, figures, left = [], None, [], count
    for value, more in groups:
        low = value if not figures else low
        figures = figures + more
        if len(figures) * (wanted - len(result)) >= left:
            result.append((Span(low, value), figures))
            left -= len(figures)
            figures = []
    return result


def explained_share(groups, correlation):
    """Omega squared of the figures' ranks: a few points far out do not decide it. Where each group is one point, the square
    of the correlation stands for it."""
    figures = ranks([figure for _, group in groups for figure in group])
    if len(groups) < 2:
        return 0.0
    if len(figures) == len(groups):
        return (correlation or 0.0) ** 2
    left = iter(figures)
    groups = [(value, [next(left) for _ in group]) for value, group in groups]
    overall = sum(figures) / len(figures)
    means = [sum(group) / len(group) for _, group in groups]
    between = sum(len(group) * (mean - overall) ** 2 for (_, group), mean in zip(groups, means))
    within = sum((figure - mean) ** 2 for (_, group), mean in zip(groups, means) for figure in group)
    chance = within / (len(figures) - len(groups))
    total = between + within + chance
    return max(0.0, (between - (len(groups) - 1) * chance) / total) if total else 0.0


def sensitivity(sweep, axis, metric):
    """Sensitivity of a metric, over the points that have both."""
    a, m = index_of(sweep, axis), index_of(sweep, metric)
    pairs = [(point[a], point[m]) for point in sweep.points if point[a] is not None and point[m] is not None]
    if not pairs:
        return Sensitivity(None, [], 0.0, 0.0)
    groups = grouped(pairs, axis.is_number)
    means = [(value, sum(figures) / len(figures), len(figures)) for value, figures in groups]
    overall = sum(figure for _, figure in pairs) / len(pairs)
    spread = max(mean for _, mean, _ in means) - min(mean for _, mean, _ in means)
    correlation = rank_correlation(*map(list, zip(*pairs))) if axis.is_number else None
    return Sensitivity(correlation, means, spread / abs(overall) if overall else 0.0, explained_share(groups, correlation))


def exact(value):
    """A key's value as it was, not rounded."""
    if isinstance(value, Span):
        return f"{exact(value.low)}..{exact(value.high)}"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def as_set(axis, value):
    """The same with its unit, as it can be pasted behind `KEY=`."""
    if isinstance(value, Span):
        return f"{as_set(axis, value.low)}..{as_set(axis, value.high)}"
    return text_of_column(value, axis.unit) if axis.has_key_unit and axis.is_number else exact(value)
