"""scripts/study at its smallest size: it runs, its tables say what they have to, and page and charts can be written from it."""

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

from system_test import RVMA, SOURCE, SystemTest


class Study(SystemTest):
    def study(self, *arguments):
        """The script's tables, by name: rows of cells."""
        done = subprocess.run([sys.executable, self.script, "--program", os.path.abspath(RVMA), "--out", self.tmp / "study", *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        tables = {}
        for block in done.stdout.strip().split("\n\n"):
            name, *lines = block.split("\n")
            tables[name] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        return tables

    def setUp(self):
        super().setUp()
        # A copy of what it writes to: the page stays as it is.
        (self.tmp / "scripts").mkdir()
        (self.tmp / "docs/explanation").mkdir(parents=True)
        self.script = self.tmp / "scripts/study"
        shutil.copy(SOURCE / "scripts/study", self.script)
        shutil.copy(SOURCE / "docs/explanation/study.md", self.tmp / "docs/explanation/study.md")

    def test_the_smallest_size(self):
        tables = self.study("--write")
        self.assertEqual(set(tables), {"latency", "reuse", "halo3d", "sweep3d", "many"})

        # 1. A put's way: where order is kept RDMA needs its software, and where it is not another message.
        first = {row[0]: float(row[1]) for row in tables["latency"][2:]}
        self.assertEqual(first["RVMA adaptive"], first["RVMA ordered"])
        self.assertLess(first["RVMA ordered"], first["RDMA ordered, advertised"])
        self.assertLess(first["RDMA ordered, advertised"], first["RDMA adaptive, advertised"])
        self.assertEqual(first["RDMA adaptive, tracking NIC, advertised"], first["RDMA ordered, advertised"])
        self.assertLess(first["RDMA adaptive, advertised"], first["RDMA adaptive, per put"])

        # 2. Set-up: connection and registration.
        reuse = {row[0]: [float(cell.replace(",", "")) for cell in row[1:]] for row in tables["reuse"][2:]}
        self.assertGreater(reuse["RDMA ordered"][0], 20)
        self.assertLess(reuse["RVMA ordered"][0], 5)
        self.assertGreater(reuse["RDMA ordered"][3], 5 * reuse["RVMA ordered"][3])

        # 3. Motifs: the whole is the layer's part times the NIC's, and both are there.
        for motif in ("halo3d", "sweep3d"):
            with self.subTest(motif):
                (row,) = tables[motif][2:]
                ordered, adaptive, tracking, *_, layer, whole, whole_adaptive, _ = map(float, row[4:])
                self.assertAlmostEqual(whole / (layer * ordered), 1, delta=0.02)
                self.assertAlmostEqual(whole_adaptive / (layer * adaptive), 1, delta=0.02)
                self.assertGreater(layer, 1.5)
                self.assertGreater(adaptive, 1.1)
                self.assertLess(max(ordered, tracking), 1.15)

        # 4. Many clients: RVMA's shared mailbox needs a buffer or two, RDMA a queue pair for each.
        many = {(row[0], row[1]): row[2:] for row in tables["many"][2:]}
        self.assertTrue(many["one for all", "RVMA"][0].startswith("1 mailboxes, 2 buffers"), many)
        self.assertIn("64 mailboxes, 64 buffers", many["one each", "RVMA"][0])
        for mailboxes in ("one for all", "one each"):
            self.assertTrue(many[mailboxes, "RDMA"][0].startswith("65 queue pairs"), many)
            self.assertIn(", 256 receives", many[mailboxes, "RDMA"][0])
            self.assertGreater(int(many[mailboxes, "RDMA"][4]), 64)
        self.assertEqual(many["one each", "RVMA"][1], f"{64 * (60 + 43 + 28):,}")
        self.assertEqual(many["one each", "RDMA"][1], f"{65 * 64 + 64 * 64 + 256 * 40:,}")
        self.assertEqual(many["one for all", "RVMA"][4], "0")
        self.assertGreater(int(many["one each", "RVMA"][4]), 64)

        # 5. What --write has written.
        page = (self.tmp / "docs/explanation/study.md").read_text()
        for name in tables:
            self.assertIn(f"<!-- table {name} -->\n| ", page)
        self.assertIn(" | ".join(tables["reuse"][2]), page)
        svg = xml.etree.ElementTree.parse(self.tmp / "docs/explanation/study/latency.svg").getroot()
        labels = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("RDMA adaptive, per put", labels)

        # 6. A second call runs nothing again.
        before = self.points()
        self.assertEqual(self.study(), tables)
        self.assertEqual(self.points(), before)

    def points(self):
        return {path: path.stat().st_mtime_ns for path in (self.tmp / "study").glob("small/*/points/*.json")}


class StudyPage(SystemTest):
    """docs/explanation/study.md, as it is."""

    def test_tables_are_filled_and_charts_are_there(self):
        page = (SOURCE / "docs/explanation/study.md").read_text()
        marks = re.findall(r"<!-- table (\w+) -->\n(\|[^\n]*\|\n){3}", page)
        self.assertEqual({name for name, _ in marks}, {"latency", "reuse", "halo3d", "sweep3d", "many"})
        for chart in re.findall(r"\]\((study/[^)]*\.svg)\)", page):
            self.assertTrue((SOURCE / "docs/explanation" / chart).is_file(), chart)
