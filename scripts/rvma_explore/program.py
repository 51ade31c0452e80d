"""The program as its sub-commands in Python ask it: keys, configurations, generated traces."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from .files import partial_of, sha256_of
from .mistakes import Mistakes, command_line_mistake


class Program:
    def __init__(self, path=None):
        self.path = Path(path or os.environ.get("RVMA", "")).absolute()
        if not os.access(self.path, os.X_OK) or self.path.is_dir():
            raise command_line_mistake(f"{self.path} cannot be run", "expected the program's path in RVMA")
        self.sha256 = sha256_of(self.path)
        self._keys = None

    def copy_to(self, path):
        """Copies the program whole and makes the copy what it is from now on: it stays the same whatever becomes of the
        original. Raises Mistakes if the original is no longer what it was, or the copy cannot be run."""
        path = Path(path).absolute()
        if not path.exists() or sha256_of(path) != self.sha256 or not os.access(path, os.X_OK):
            path.parent.mkdir(exist_ok=True)
            with partial_of(path) as partial:
                shutil.copyfile(self.path, partial)
                partial.chmod(0o755)
        if sha256_of(path) != self.sha256:
            raise command_line_mistake(f"{self.path} has changed meanwhile", "expected to start the same command again")
        if not os.access(path, os.X_OK):
            raise command_line_mistake(f"{path} cannot be run, as the sweep has to", "expected --out on another file system")
        self.path = path

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
