"""The program as its sub-commands in Python ask it: keys, configurations, generated traces."""

import json
import os
import shutil
import subprocess
import tempfile
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
        _raise_if_failed(arguments[0], answer.returncode, answer.stderr)
        return answer.stdout

    @property
    def keys(self):
        """All configuration keys in order: dictionaries of `rvma config --describe --json`, by key."""
        if self._keys is None:
            self._keys = {entry["key"]: entry for entry in json.loads(self.ask("config", "--describe", "--json"))}
        return self._keys

    def resolve(self, assignments, *options):
        """An answer of `rvma config --batch` (model/cli/config_batch.hpp) for each list of KEY=VALUE, one after another while
        the program works on the next: of a million points, all answers would not fit into memory."""
        with tempfile.TemporaryFile("w+") as questions, tempfile.TemporaryFile("w+") as said:
            questions.writelines(json.dumps(entry) + "\n" for entry in assignments)
            questions.seek(0)
            with subprocess.Popen([self.path, "config", "--batch", "-", *map(str, options)], stdin=questions, stdout=subprocess.PIPE,
                                  stderr=said, text=True) as child:
                try:
                    for line in child.stdout:
                        yield json.loads(line)
                except BaseException:  # nobody wants the rest
                    child.kill()
                    raise
            said.seek(0)
            _raise_if_failed("config", child.returncode, said.read())


def _raise_if_failed(command, status, said):
    if status != 0:
        mistakes = Mistakes()
        mistakes.add_lines(said or f"rvma: error: {command} ended with status {status}")
        raise mistakes


def shared_directory(name):
    """`presets` or `traces`, beside the Python packages in the installed and the built tree."""
    return Path(__file__).parent.parent.parent / name
