"""Quantities with units as exact integers of a base unit, the way the program reads and prints them
(model/base/value_text.cpp). The program decides what is right; this reads what it has accepted."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

_SIZE = {"B": 1, **{f"{p}B": 1000 ** i for i, p in enumerate("kMGTPE", 1)},
         **{f"{p}iB": 1024 ** i for i, p in enumerate("KMGTPE", 1)}}
_TIME = {"ps": 1, "ns": 10 ** 3, "us": 10 ** 6, "ms": 10 ** 9, "s": 10 ** 12}
_RATE = {**{f"{p}bps": 1000 ** i for i, p in enumerate(["", "k", "M", "G", "T"])},
         **{f"{p}B/s": 8 * 1000 ** i for i, p in enumerate(["", "k", "M", "G", "T"])}}
_CLOCK = {"Hz": 10 ** 6, "kHz": 10 ** 9, "MHz": 10 ** 12, "GHz": 10 ** 15}


@dataclass(frozen=True, eq=False)
class Family:
    """A kind of quantity. In results it is a column of `column_unit`, of which one is `column_factor` base units."""
    name: str
    units: dict
    finest: int = 1  # base units of the least step that a value can be written in
    column_unit: str = ""
    column_factor: int = 1
    bare: bool = False  # a number without a unit means something

    def parse(self, text):
        """In base units; ValueError if it is no such quantity."""
        text = text.strip()
        if self.bare and text.isdigit():
            return int(text)
        if self.bare and text[:2].lower() == "0x":
            return int(text, 16)
        if self is PROBABILITY:
            return _whole(Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text), 10 ** 9)
        digits = text.rstrip("".join(set("".join(self.units))))
        unit = text[len(digits):]
        if unit not in self.units or not digits[:1].isdigit():
            raise ValueError(text)
        return _whole(Fraction(digits), self.units[unit])

    def print(self, value):
        """The text that reads back to `value`."""
        if self is PROBABILITY:
            return decimal_text(Fraction(value, 10 ** 9))
        if not self.units:
            return str(value)
        whole = [(factor, unit) for unit, factor in self.units.items() if value % factor == 0 and value >= factor]
        if whole:
            factor, unit = max(whole)
            return f"{value // factor}{unit}"
        unit = next(iter(self.units))
        return decimal_text(Fraction(value, self.units[unit])) + unit

    def in_column(self, value):
        """An int or a Decimal, exactly, in `column_unit`."""
        if self.column_factor == 1:
            return value
        return Decimal(decimal_text(Fraction(value, self.column_factor)))


def _whole(number, factor):
    value = number * factor
    if value.denominator != 1 or value < 0:
        raise ValueError(str(number))
    return int(value)


def decimal_text(fraction):
    """A fraction whose denominator divides a power of ten, as a decimal without trailing zeros."""
    digits, scale = fraction, 0
    while digits.denominator != 1:
        digits, scale = digits * 10, scale + 1
    text = str(digits.numerator).rjust(scale + 1, "0")
    return f"{text[:-scale]}.{text[-scale:]}" if scale else text


SIZE = Family("size", _SIZE, column_unit="bytes", bare=True)
TIME = Family("time", _TIME, column_unit="ns", column_factor=10 ** 3)
RATE = Family("rate", _RATE, column_unit="gbps", column_factor=10 ** 9)
CLOCK = Family("clock", _CLOCK, finest=10 ** 6, column_unit="mhz", column_factor=10 ** 12)
CYCLES = Family("cycles", {"cyc": 1}, column_unit="cycles", bare=True)
INTEGER = Family("integer", {}, bare=True)
PROBABILITY = Family("probability", {}, column_factor=10 ** 9)

_OF_TYPE = {family.name: family for family in (SIZE, TIME, RATE, CLOCK, CYCLES, INTEGER, PROBABILITY)}


def family_of(type_name, text):
    """The family of a value of a key of type `type_name`, as `rvma config --describe` names it; None for words."""
    if type_name == "time or cycles":
        return CYCLES if text.endswith("cyc") else TIME
    return _OF_TYPE.get(type_name)


def guess_family(text):
    """The family of a generator's option, which no schema describes; None for words."""
    for family in (INTEGER, TIME, RATE, CLOCK, SIZE):
        try:
            family.parse(text)
            return family
        except ValueError:
            continue
    return None


_PASTED = {"bytes": "B", "ns": "ns", "gbps": "Gbps", "mhz": "MHz", "cycles": "cyc"}
_BIT_RATE = Family("rate", {unit: factor for unit, factor in _RATE.items() if unit.endswith("bps")}, column_unit="gbps",
                   column_factor=10 ** 9)
_OF_COLUMN = {family.column_unit: family for family in (SIZE, TIME, _BIT_RATE, CLOCK, CYCLES)}


def unit_of_column(unit):
    """The unit that numbers of a column of `unit` can be set with; "" if it is no unit of axes."""
    return _PASTED.get(unit, "")


def text_of_column(number, unit):
    """A number of a column of `unit` as it can be set, in the unit in which it is shortest; None if it is no unit of axes."""
    family = _OF_COLUMN.get(unit)
    return family and family.print(round(Fraction(number) * family.column_factor))
