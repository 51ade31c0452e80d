"""The program as its sub-commands in Python ask it: keys, configurations, generated traces."""

import json
import os
import subprocess
from pathlib import Path

from .files import sha256_of
from .mistakes import Mistakes, command_line_mistake


class Program:
    def __init__(self, path=None):
        self.path = Path(path or os.environ.get("RVMA", "")).absolute()
        if not os.access(self.path, os.X_OK) or self.path.is_dir():
            raise command_line_mistake(f"{self.path} cannot be run", "expected the program's path in RVMA")
        self.sha256 = sha256_of(self.path)
        self._keys = None

    def ask(self, *arguments, text=""):
        """Standard output; raises Mistakes with what it says on standard error where the input was wrong."""
        answer = subprocess.run([self.path, *map(str, arguments)], input=text, capture_output=True, text=True)
        if answer.returncode != 0:
            mistakes = Mistakes()
            mistakes.add_lines(answer.stderr or f"rvma: error: {arguments[0]} ended with status {answer.returncode}")
            raise mistakes
        return answer.stdout

    @property
    def keys(self):
        """All configuration keys in order: dictionaries of `rvma config --describe --json`, by key."""
        if self._keys is None:
            self._keys = {entry["key"]: entry for entry in json.loads(self.ask("config", "--describe", "--json"))}
        return self._keys

    def resolve(self, assignments, *options):
        """An answer of `rvma config --batch` (model/cli/config_batch.hpp) for each list of KEY=VALUE."""
        lines = "".join(json.dumps(entry) + "\n" for entry in assignments)
        return (json.loads(line) for line in self.ask("config", "--batch", "-", *options, text=lines).splitlines())


def shared_directory(name):
    """`presets` or `traces`, beside the Python packages in the installed and the built tree."""
    return Path(__file__).parent.parent.parent / name
