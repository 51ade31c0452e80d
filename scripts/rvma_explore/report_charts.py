"""Charts as SVG text, with colours from the page's style sheet, so that they follow dark mode and print."""

import html
import math

LARGE, SMALL = (640, 230), (340, 170)  # width and height, in pixels where they are not scaled
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 40
# Lines are told apart by dashes, and by their labels, not by colour alone.
DASHES = ["", "7 3", "2 3", "9 3 2 3", "1 4"]
COLOURS = 5  # c0 .. of the style sheet
ROOM = 0.03  # of a logarithmic axis, before its least value and behind its greatest


def escape(text):
    """For HTML. Bytes of names that were no UTF-8 are shown as \\xNN."""
    whole = str(text).encode("utf-8", errors="surrogateescape").decode("utf-8", errors="backslashreplace")
    return html.escape(whole, quote=True)


def short(value):
    """At most four significant digits."""
    if value == 0:
        return "0"
    if abs(value) >= 1e6 or abs(value) < 1e-3:
        return f"{value:.3g}"
    text = f"{value:.4g}" if abs(value) < 10000 else f"{value:.0f}"
    return text


def time_unit(most_ns):
    """(name, ns) of the unit in which times up to `most_ns` read best."""
    for name, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if most_ns >= 2 * size:
            return name, size
    return "ns", 1.0


def byte_unit(most):
    """(name, bytes) of the unit in which sizes up to `most` read best."""
    for name, size in (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10)):
        if most >= 2 * size:
            return name, size
    return "bytes", 1.0


def ns(value):
    name, size = time_unit(value)
    return f"{short(value / size)} {name}"


def ticks(low, high, about=5):
    """Round numbers from low to high."""
    if high <= low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / about))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= about + 1)
    first = math.ceil(low / step - 1e-9)
    return [round(step * i, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def log_ticks(low, high):
    marks = []
    for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        marks += [m * 10.0**exponent for m in (1, 2, 5) if low <= m * 10.0**exponent <= high]
    if len(marks) > 8:
        marks = [mark for mark in marks if math.log10(mark) == round(math.log10(mark))]
    return marks or [low, high]


class Axis:
    def __init__(self, low, high, start, end, is_log=False):
        self.low, self.high, self.start, self.end, self.is_log = low, high, start, end, is_log

    def at(self, value):
        if self.is_log:
            share = math.log(max(value, self.low) / self.low) / (math.log(self.high / self.low) or 1.0)
        else:
            share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.start + share * (self.end - self.start), 2)

    def marks(self):
        return log_ticks(self.low, self.high) if self.is_log else ticks(self.low, self.high)


def frame(x, y, x_label, y_label, size):
    width, height = size
    bottom = height - BOTTOM
    parts = []
    for mark in y.marks():
        at = y.at(mark)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{width - RIGHT}" y1="{at}" y2="{at}"/>'
                     f'<text class="tick" text-anchor="end" x="{LEFT - 6}" y="{at + 4}">{short(mark)}</text>')
    for mark in x.marks():
        at = x.at(mark)
        parts.append(f'<line class="axis" x1="{at}" x2="{at}" y1="{bottom}" y2="{bottom + 4}"/>'
                     f'<text class="tick" text-anchor="middle" x="{at}" y="{bottom + 16}">{short(mark)}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{width - RIGHT}" y1="{bottom}" y2="{bottom}"/>')
    parts.append(f'<text text-anchor="middle" x="{(LEFT + width - RIGHT) / 2}" y="{height - 6}">{escape(x_label)}</text>'
                 f'<text text-anchor="middle" transform="translate(13 {(TOP + bottom) / 2}) rotate(-90)">'
                 f"{escape(y_label)}</text>")
    return "".join(parts)


def chart(title, x, y, x_label, y_label, body, size):
    width, height = size
    return (f'<svg class="chart" role="img" viewBox="0 0 {width} {height}" aria-label="{escape(title)}">'
            f"<title>{escape(title)}</title>{frame(x, y, x_label, y_label, size)}{body}</svg>")


def path_of(points, x, y, is_step):
    words = []
    for index, (px, py) in enumerate(points):
        if index == 0:
            words.append(f"M{x.at(px)} {y.at(py)}")
        elif is_step:
            words.append(f"V{y.at(py)}H{x.at(px)}")
        else:
            words.append(f"L{x.at(px)} {y.at(py)}")
    return "".join(words)


def line_style(index):
    """Attributes of the line of that number: after as many as there are colours, each with the next dash."""
    dash = DASHES[(index + index // COLOURS) % len(DASHES)]
    return f'class="line c{index % COLOURS}" stroke-dasharray="{dash}"'


def log_range(values):
    """(low, high) of a logarithmic axis: no value lies on its ends, where a line that is upright would not be seen."""
    low = min((value for value in values if value > 0), default=1e-3)
    high = max(max(values), low)
    if high / low < 1.05:
        return low * 0.9, high * 1.1
    room = (high / low) ** ROOM
    return low / room, high * room


def lines(title, named, x_label, y_label, is_step=True, x_log=False, y_top=None, size=LARGE):
    """`named`: (name, [(x, y)..]) each; a legend stands above if there are several."""
    named = [(name, points) for name, points in named if points]
    if not named:
        return ""
    xs = [px for _, points in named for px, _ in points]
    ys = [py for _, points in named for _, py in points]
    low, high = log_range(xs) if x_log else (min(xs), max(xs))
    x = Axis(low, high, LEFT, size[0] - RIGHT, x_log)
    y = Axis(0, (y_top or max(ys)) or 1, size[1] - BOTTOM, TOP)
    body = ""
    for index, (name, points) in enumerate(named):
        body += (f'<path {line_style(index)} d="{path_of(points, x, y, is_step)}">'
                 f"<title>{escape(name)}</title></path>")
    legend = ""
    if len(named) > 1:
        legend = '<p class="legend">' + "".join(
            f'<span><svg width="34" height="10" aria-hidden="true"><path {line_style(index)} d="M1 5H33"/></svg> {escape(name)}</span>'
            for index, (name, _) in enumerate(named)) + "</p>"
    return legend + chart(title, x, y, x_label, y_label, body, size)


def bar(share, text, tip, start=0.0, css=""):
    """One bar of a table: from `start` on, as shares of the whole width; `text` says it in figures beside it."""
    left, width = max(0.0, min(1.0, start)) * 100, max(0.0, min(1.0, share)) * 100
    return (f'<span class="track" data-tip="{escape(tip)}" tabindex="0"><span class="bar {css}" '
            f'style="margin-left:{left:.3f}%;width:{width:.3f}%"></span></span><span class="figure">{text}</span>')


def table(head, rows, css="sortable"):
    """`head`: texts; `rows`: lists of HTML."""
    cells = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    body = "".join("<tr>" + "".join(f'<th scope="row">{cell}</th>' if i == 0 else f"<td>{cell}</td>"
                                    for i, cell in enumerate(row)) + "</tr>" for row in rows)
    return (f'<div class="scroll"><table class="{css}"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
            "</div>")
