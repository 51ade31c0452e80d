"""Numbers on the command lines of the test programs in Python."""

import argparse


def at_least(least):
    """A type for argparse: an integer of at least `least`; otherwise an error that says so, and exit status 2."""

    def convert(text):
        # int() itself would take "1_0" and " 1".
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}'; expected an integer of at least {least}")
        return int(text)

    return convert
