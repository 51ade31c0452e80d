"""The shipped presets, as docs/reference/configuration.md says they are used."""

import re
import unittest

from system_test import SOURCE, SystemTest

PRESETS = SOURCE / "model/platform/presets"


class Presets(SystemTest):
    def setUp(self):
        super().setUp()
        self.text = (SOURCE / "docs/reference/configuration.md").read_text(encoding="utf-8")

    def run_words(self, words):
        return self.rvma("run", *[SOURCE / word if "/" in word else word for word in words], "--quiet")

    def test_the_page_names_them_all_and_its_commands_work(self):
        for preset in PRESETS.glob("*.json"):
            self.assertIn(f"`{preset.name}`", self.text)
        commands = re.findall(r"^build/bin/rvma run (.*)$", self.text, re.MULTILINE)
        self.assertGreaterEqual(len(commands), 4)
        for command in commands:
            with self.subTest(command):
                self.assertEqual(self.run_words(command.split()).status, 0)

    def test_an_unknown_name_is_answered_with_all_that_there_are(self):
        names = ", ".join(sorted(preset.stem for preset in PRESETS.glob("*.json")))
        self.assertIn("aurora", names)
        for words in (["run", SOURCE / "traces/random.trace"], ["compare", SOURCE / "traces/random.trace"], ["config"]):
            with self.subTest(words):
                self.expect_error(self.rvma(*words, "--config", "auroa"),
                                  "auroa:1:1: error: the file cannot be read: No such file or directory; "
                                  f"expected a configuration file, or a preset: {names}\n")
                # A path is no name of one.
                result = self.rvma(*words, "--config", "./auroa")
                self.expect_error(result, "./auroa:1:1: error: the file cannot be read: No such file or directory\n")

    def test_aurora_has_too_few_nodes_and_nothing_else_is_wrong(self):
        """Without what the page adds, and with another topology."""
        for trace, ranks in (("random", 6), ("incast", 8)):
            with self.subTest(trace):
                words = [f"traces/{trace}.trace", "--config", "aurora"]
                self.expect_error(self.run_words(words), f"torus holds 2 nodes, not {ranks}", "fabric.torus.dims")
                self.assertEqual(self.run_words([*words, "--set", "fabric.topology=star"]).status, 0)


if __name__ == "__main__":
    unittest.main()
