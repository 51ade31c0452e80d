"""The installation, as somebody else uses it: a package of its own, from which programs outside the tree are built.

BUILD, SOURCE: the trees that are installed from. CMAKE, GENERATOR and CMAKE_ARGUMENTS: how the programs are built.
"""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["BUILD"]).resolve()
SOURCE = pathlib.Path(os.environ["SOURCE"]).resolve()
CMAKE = os.environ["CMAKE"]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


class Installation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rvma-install-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = pathlib.Path(cls.folder.name) / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", cls.prefix)
        cls.share = cls.prefix / "share" / "rvma"

    def build_example(self, name):
        """The example as it was installed, built against the installation."""
        build = pathlib.Path(self.folder.name) / name
        run(CMAKE, "-S", self.share / "docs" / "examples" / name, "-B", build, "-G", os.environ["GENERATOR"],
            f"-DCMAKE_PREFIX_PATH={self.prefix}", *shlex.split(os.environ["CMAKE_ARGUMENTS"]))
        run(CMAKE, "--build", build)
        return build

    def test_a_platform_of_ones_own(self):
        said = run(self.build_example("platform") / "own_platform")
        for line in ("receiver: init_window ok", "receiver: post_buffer ok",
                     "receiver: completion word: head 0x7f0000, length 10000", "receiver: bytes as they were sent"):
            self.assertIn(line + "\n", said)
        self.assertRegex(said, r"sender: put ok, 10000 bytes, after [1-9][0-9]* ns\n")
        # The message, the completion word and two answers of calls: the bus saw all that memory got, and no more.
        self.assertIn(f"receiver's RNIC wrote {10000 + 16 + 2 * 16} bytes to the bus\n", said)

    def test_units_alone(self):
        build = self.build_example("units")
        table = run(build / "table_alone")
        full_after = int(re.search(r"full after (\d+) entries in 512 places and a stash of 8", table)[1])
        self.assertGreater(full_after, 0.9 * 512)
        self.assertIn("mailbox 7 is in slot 7\n", table)
        self.assertIn("inserted after 5 cycles\n", table)
        self.assertIn("the cycle before: miss, the cycle of the answer: hit\n", table)
        # Taken at 10 and 11 ns, a latency of 3.
        self.assertIn("message 0 is whole at 13 ns\nmessage 1 is whole at 14 ns\n"
                      "epoch 0 ends with 16 bytes in cycle 14\n2 updates\n", run(build / "counter_alone"))
        # Taken in cycles 10 and 11, a latency of 2.
        self.assertIn("write at 12 ns to 0x200: head 0x7000, length 64\n"
                      "write at 13 ns to 0x210: head 0x7100, length 64\n2 words\n", run(build / "completion_alone"))

    def test_the_program_and_its_traces(self):
        said = run(self.prefix / "bin" / "rvma", "run", self.share / "traces" / "pingpong.trace", "--check",
                   cwd=self.folder.name)
        self.assertIn("Check: passed", said)
        self.assertTrue((self.share / "rtl" / "rvma_table.v").is_file())
        self.assertTrue((self.share / "rtl" / "rvma_table_constants.vh").is_file())
        self.assertTrue((self.share / "docs" / "README.md").is_file())
        self.assertTrue((self.share / "wireshark" / "rvma.lua").is_file())

    def test_nothing_points_back_to_the_trees(self):
        trees = [str(tree).encode() for tree in (SOURCE, BUILD)]
        files = [file for file in self.prefix.rglob("*") if file.is_file()]
        self.assertGreater(len(files), 100)
        for file in files:
            content = file.read_bytes()
            for tree in trees:
                at = content.find(tree)
                self.assertEqual(at, -1, f"{file.relative_to(self.prefix)}: {content[max(at - 60, 0):at + 100]!r}")


if __name__ == "__main__":
    unittest.main()
