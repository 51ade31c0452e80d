"""Values along an axis, and how the axes of a block make design points. Everything is exact or decimal arithmetic on
seeded integers, so the same specification gives the same points on every machine."""

import random
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

SCALES = ("linear", "log", "power_of_two")
_PRECISE = Context(prec=40)
_BITS = 53


@dataclass
class Choice:
    """A list of values, as text."""
    values: list

    def grid(self):
        return list(self.values)

    def at(self, share):
        return self.values[int(share * len(self.values))]


@dataclass
class Range:
    """From `low` to `high`, both included, in base units of `family`; values are `low` plus multiples of `step`."""
    family: object
    low: int
    high: int
    scale: str = "linear"
    step: int = 1
    steps: int = 0  # of a grid; 0: as many as `step` gives

    def powers(self):
        """Of two, within the range."""
        first = max(self.low, 1) - 1
        return [1 << n for n in range(first.bit_length(), self.high.bit_length()) if self.low <= 1 << n <= self.high]

    def values(self):
        """Of its grid, in base units."""
        if self.scale == "power_of_two":
            return self.powers()
        if not self.steps:
            return list(range(self.low, self.high + 1, self.step))
        if self.steps == 1:
            return [self.low]
        return [self._between(Fraction(i, self.steps - 1)) for i in range(self.steps)]

    def count(self):
        """Of values() without making them."""
        if self.scale == "power_of_two":
            return len(self.powers())
        return self.steps or (self.high - self.low) // self.step + 1

    def grid(self):
        return [self.family.print(value) for value in self.values()]

    def at(self, share):
        """The value at a share from 0 to 1 (exclusive) of the range, by its scale."""
        if self.scale == "power_of_two":
            powers = self.powers()
            return self.family.print(powers[int(share * len(powers))])
        if self.scale == "linear":  # each value is as likely as the others, the ends included
            places = (self.high - self.low) // self.step + 1
            return self.family.print(self.low + int(share * places) * self.step)
        return self.family.print(self._between(share))

    def _between(self, share):
        """`share` 0 is low, 1 is high; rounded to the nearest value of the range, half up."""
        if self.scale == "log":
            exact = _PRECISE.multiply(_log_ratio(self.low, self.high), _PRECISE.divide(share.numerator, share.denominator))
            distance = Fraction(_PRECISE.multiply(_PRECISE.exp(exact), self.low)) - self.low
        else:
            distance = share * (self.high - self.low)
        places = min(int(distance / self.step + Fraction(1, 2)), (self.high - self.low) // self.step)
        return self.low + places * self.step


def _log_ratio(low, high):
    return _PRECISE.ln(_PRECISE.divide(Decimal(high), Decimal(low)))


def _shares(name, seed, count):
    """`count` numbers from 0 to 1 (exclusive). Each axis has a stream of its own: another axis changes none of them."""
    source = random.Random(f"{seed}/{name}")
    return [Fraction(source.getrandbits(_BITS), 1 << _BITS) for _ in range(count)]


def random_points(axes, count, seed):
    """`axes`: Choice or Range by name. Independent, uniform on each axis's scale."""
    shares = {name: _shares(name, seed, count) for name in axes}
    return [{name: axis.at(shares[name][i]) for name, axis in axes.items()} for i in range(count)]


def latin_hypercube_points(axes, count, seed):
    """On each axis, exactly one point in each `count`-th of its scale, in an order of its own."""
    columns = {}
    for name, axis in axes.items():
        within, order = _shares(name, seed, count), _shares(name + "/order", seed, count)
        strata = sorted(range(count), key=lambda i, order=order: (order[i], i))
        columns[name] = [axis.at((strata[i] + within[i]) / count) for i in range(count)]
    return [{name: columns[name][i] for name in axes} for i in range(count)]


def grid_points(axes):
    """Every combination; the last axis varies fastest."""
    points = [{}]
    for name, axis in axes.items():
        values = axis.grid()
        points = [{**point, name: value} for point in points for value in values]
    return points


def zip_points(axes):
    """The first values of all axes, then the second ones, ..; all have the same number of them."""
    return [dict(zip(axes, values)) for values in zip(*(axis.grid() for axis in axes.values()), strict=True)]
