"""Files that the program finds by name, and files that it does not touch."""

import json
import os
import pathlib
import stat
import subprocess
import threading

from system_test import RVMA, SystemTest

NOTHING = "rvma-trace 1\nranks 1\nrank 0\n  compute 1ns\n"


class Files(SystemTest):
    def test_what_is_read_is_not_overwritten(self):
        trace = self.tmp / "same.trace"
        trace.write_text(NOTHING)
        link = self.tmp / "link.trace"
        link.symlink_to(trace)
        for arguments in (("run", trace, "--pcap", trace), ("run", trace, "--timeline", link),
                          ("import", "--from", "goal", trace, "--output", trace)):
            with self.subTest(arguments=arguments):
                self.expect_error(self.rvma(*arguments), "is what is read; expected another file")
                self.assertEqual(trace.read_text(), NOTHING)

    def test_a_pipe_stays_one_and_gets_everything(self):
        pipe = self.tmp / "pipe"
        os.mkfifo(pipe)
        got = []
        reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
        reader.start()
        self.assertEqual(self.rvma("gen", "pingpong", "--output", pipe).status, 0)
        reader.join(timeout=60)
        self.assertTrue(got[0].startswith(b"rvma-trace 1\n"))
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))

    def test_a_report_follows_links_and_leaves_pipes(self):
        (self.tmp / "nothing.trace").write_text(NOTHING)
        self.assertEqual(self.rvma("run", self.tmp / "nothing.trace", "--out", self.tmp / "out", "--quiet").status, 0)
        real, link, pipe = (self.tmp / name for name in ("real.html", "link.html", "pipe.html"))
        link.symlink_to(real.name)
        self.assertEqual(self.rvma("report", self.tmp / "out", "--output", link).status, 0)
        self.assertTrue(link.is_symlink())
        self.assertIn("<html", real.read_text())
        os.mkfifo(pipe)
        got = []
        reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
        reader.start()
        self.assertEqual(self.rvma("report", self.tmp / "out", "--output", pipe).status, 0)
        reader.join(timeout=60)
        self.assertEqual(got, [real.read_text()])
        self.assertTrue(stat.S_ISFIFO(pipe.stat().st_mode))

    def test_a_preset_is_found_by_its_name_and_a_file_of_that_name_goes_first(self):
        def clock():
            result = subprocess.run([os.path.abspath(RVMA), "config", "--print", "--config", "aurora"],
                                    capture_output=True, text=True, cwd=self.tmp, check=True)
            return json.loads(result.stdout)["nic"]["clock"]

        self.assertEqual(clock(), "500MHz")
        pathlib.Path(self.tmp, "aurora").write_text('{"nic": {"clock": "2GHz"}}')
        self.assertEqual(clock(), "2GHz")
        self.expect_error(self.rvma("config", "--print", "--config", "auroro"), "auroro")
