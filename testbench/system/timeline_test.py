"""`rvma run --timeline`: the file is sound, its times are those of the other results, and it costs nothing."""

import collections
import decimal
import json
import os
import subprocess
import sys

from calls_test import FAULTS, settings
from rdma_test import EVERY_CALL, MANY
from system_test import PUT_ONCE, SOURCE, SystemTest

STAGES = ("doorbell command turn window payload_read transmit fabric parse context address_conversion dma_write count "
          "completion_write visible").split()
# Of stats.json: what the machine did, not the simulation.
OF_THE_MACHINE = ("wall_s", "packets_per_wall_s", "peak_rss_bytes")


def ps(us_or_ns, unit):
    """Exact: the files give times as decimals."""
    scaled = decimal.Decimal(us_or_ns) * {"us": 1_000_000, "ns": 1_000}[unit]
    assert scaled == int(scaled), us_or_ns
    return int(scaled)


class TimelineTest(SystemTest):
    def load(self, path):
        return json.loads(path.read_text(), parse_float=decimal.Decimal)

    def record(self, trace, *arguments, status=0, check=True):
        """A run with a timeline: its result, and the file after all that must hold of any was checked."""
        self.runs += 1
        path = self.tmp / f"timeline{self.runs}.json"
        run = self.run_file if isinstance(trace, os.PathLike) else self.run_text
        result = run(trace, "--timeline", path, *arguments, status=status, check=check)
        timeline = self.load(path)
        self.validate(timeline)
        self.assertEqual(list(self.tmp.glob("*.partial*")), [])
        return result, timeline

    def validate(self, timeline):
        events = timeline["traceEvents"]
        names = {(e["pid"], e["tid"]) for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        processes = {e["pid"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
        timed = [e for e in events if e["ph"] != "M"]
        times = [ps(e["ts"], "us") for e in timed]
        self.assertEqual(times, sorted(times))
        for event in timed:
            self.assertIn(event["ph"], "XCbestfi")
            if event["ph"] in "Xstf":
                self.assertIn((event["pid"], event["tid"]), names)
            if event.get("s") != "g":
                self.assertIn(event["pid"], processes)
        self.check_tracks(timed)
        self.check_flows(timed)
        begun = collections.Counter((e["name"], e["id"]) for e in timed if e["ph"] == "b")
        self.assertEqual(begun, collections.Counter((e["name"], e["id"]) for e in timed if e["ph"] == "e"))
        self.assertTrue(all(n == 1 for n in begun.values()))
        self.assertEqual(len(begun), timeline["otherData"]["messages"])
        for level in (e["args"]["packets"] for e in timed if e["ph"] == "C"):
            self.assertGreaterEqual(level, 0)

    def check_tracks(self, events):
        """A unit is at one thing at a time, and at nothing for longer than the packet is there."""
        tracks = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                begin, length = ps(event["ts"], "us"), ps(event["dur"], "us")
                self.assertGreaterEqual(length, 0)
                self.assertEqual(begin + length, ps(event["args"]["left_ns"], "ns"))
                self.assertGreaterEqual(begin, ps(event["args"]["entered_ns"], "ns"))
                tracks[event["pid"], event["tid"]].append((begin, begin + length))
        for slices in tracks.values():
            for (_, end), (begin, _) in zip(slices, slices[1:]):
                self.assertGreaterEqual(begin, end)

    def check_flows(self, events):
        slices = collections.defaultdict(list)
        flows = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                slices[event["pid"], event["tid"]].append((ps(event["ts"], "us"), ps(event["args"]["left_ns"], "ns")))
            elif event["ph"] in "stf":
                flows[event["name"], event["id"]].append(event)
        for flow in flows.values():
            phases = "".join(event["ph"] for event in flow)
            self.assertRegex(phases, "^st*f$")
            for event in flow:
                at = ps(event["ts"], "us")
                self.assertTrue(any(begin <= at < end for begin, end in slices[event["pid"], event["tid"]]), event)

    @staticmethod
    def slices(timeline, stage=None):
        return [e for e in timeline["traceEvents"] if e["ph"] == "X" and stage in (None, e["cat"])]

    @staticmethod
    def flows(timeline):
        return sum(e["ph"] == "s" for e in timeline["traceEvents"])

    @staticmethod
    def events(timeline):
        return [e for e in timeline["traceEvents"] if e["ph"] != "M" and e.get("s") != "g"]


class Timeline(TimelineTest):
    def test_times_are_those_of_the_other_results(self):
        trace = self.generate("pingpong", "--size", "10000", "--iterations", "20")
        for arguments in ([], ["--protocol", "rdma"], ["--table", "both"]):
            with self.subTest(arguments=arguments):
                result, timeline = self.record(trace, *arguments)
                puts = result.rows("puts.csv")
                messages = {e["id"]: e for e in timeline["traceEvents"] if e["ph"] == "b"}
                ends = {e["id"]: e for e in timeline["traceEvents"] if e["ph"] == "e"}
                self.assertEqual(
                    sorted((row["rank"], row["dest"], row["mailbox"], row["size"], row["status"], row["tries"],
                            ps(row["issue_ns"], "ns"), ps(row["ack_ns"], "ns")) for row in puts),
                    sorted((str(e["args"]["rank"]), str(e["args"]["dest"]), e["args"]["mailbox"],
                            str(e["args"]["bytes"]), e["args"]["status"], str(e["args"]["tries"]), ps(e["ts"], "us"),
                            ps(ends[number]["ts"], "us")) for number, e in messages.items()))
                self.assertEqual(self.flows(timeline), len(puts))
                self.check_breakdown(result, timeline)
                last = "count" if "rdma" in arguments else "visible"
                self.assertEqual(sorted(ps(e["args"]["left_ns"], "ns") for e in self.slices(timeline, last)),
                                 sorted(ps(row["time_ns"], "ns") for row in result.rows("completions.csv")))

    def check_breakdown(self, result, timeline):
        """Of one message an epoch: the stages of the last packet add up to the breakdown, to the last digit."""
        last = {}
        for event in self.slices(timeline, "dma_write"):
            args = event["args"]
            if args["message"] not in last or args["left_ns"] > last[args["message"]][0]:
                last[args["message"]] = (args["left_ns"], args["sequence"])
        sums = dict.fromkeys(STAGES, 0)
        for event in self.slices(timeline):
            args = event["args"]
            if args.get("sequence", last[args["message"]][1]) == last[args["message"]][1]:
                sums[event["cat"]] += ps(args["left_ns"], "ns") - ps(args["entered_ns"], "ns")
        stats = result.stats()
        samples = stats["latency_ns"]["put_to_completion"]["count"]
        self.assertEqual(samples, len(last))
        total = before = 0
        for stage in STAGES:
            total += sums[stage]
            self.assertEqual(ps(str(stats["breakdown_ns"][stage]), "ns"), total // samples - before, stage)
            before = total // samples

    def test_it_changes_nothing_of_a_run(self):
        trace = self.generate("pingpong", "--size", "5000", "--iterations", "50")
        for arguments in ([], ["--protocol", "rdma"]):
            plain = self.run_file(trace, *arguments)
            recorded, _ = self.record(trace, *arguments, "--pcap", self.tmp / "p.pcapng")
            one, other = plain.stats(), recorded.stats()
            for stats in (one, other):
                for key in OF_THE_MACHINE:
                    del stats["sim"][key]
            self.assertEqual(one, other)
            for name in ("puts.csv", "completions.csv", "calls.csv", "links.csv"):
                self.assertEqual((plain.out / name).read_bytes(), (recorded.out / name).read_bytes())

    def test_same_run_same_bytes(self):
        trace = self.generate("random", "--count", "30")
        paths = [self.tmp / "a.json", self.tmp / "b.json"]
        for path in paths:
            self.run_file(trace, "--timeline", path)
        self.assertEqual(paths[0].read_bytes(), paths[1].read_bytes())

    def test_sound_whatever_happens(self):
        faults = settings(FAULTS)
        for arguments in ([], faults, ["--protocol", "rdma"], ["--protocol", "rdma", *faults]):
            for text in (EVERY_CALL, MANY):
                with self.subTest(arguments=arguments, trace=text[:40]):
                    # Reordering breaks what RDMA promises about bytes; --check would say so.
                    reorders = len(arguments) > 2 and arguments[0] == "--protocol"
                    result, timeline = self.record(text, *arguments, check=not reorders)
                    self.assertEqual(timeline["otherData"]["messages"], len(result.rows("puts.csv")) - self.failed(result))
        shipped = [("sender-crash.trace", ["--config", SOURCE / "traces/sender-crash.json"]), ("incast.trace", [])]
        for name, arguments in shipped:
            with self.subTest(trace=name):
                self.record(SOURCE / "traces" / name, *arguments)

    @staticmethod
    def failed(result):
        """Calls that failed: no NIC heard of them."""
        return result.stats()["totals"]["puts_failed"]

    def test_events_of_the_receiver_and_of_nodes(self):
        result, timeline = self.record(MANY, "--set", "fabric.faults.corrupt=0.05", "--set", "workload.seed=3")
        corrupt = result.stats()["totals"]["packets"]["corrupt"]
        self.assertGreater(corrupt, 0)
        notes = collections.Counter(e["name"] for e in timeline["traceEvents"] if e["ph"] == "i")
        self.assertEqual(notes["packet ignored: crc"], corrupt)
        _, timeline = self.record(SOURCE / "traces/sender-crash.trace", "--config", SOURCE / "traces/sender-crash.json")
        notes = collections.Counter(e["name"] for e in timeline["traceEvents"] if e["ph"] == "i")
        self.assertEqual(notes["loses power"], 1, notes)
        self.assertEqual(notes["restarts as incarnation 2"], 1, notes)


    def draw(self, *arguments):
        script = SOURCE.resolve() / "scripts" / "draw-timeline"
        return subprocess.run([sys.executable, script, *map(str, arguments)], capture_output=True, text=True)

    def test_what_is_no_timeline_is_not_drawn(self):
        self.record(PUT_ONCE.format(size=64))
        (whole,) = self.tmp.glob("timeline*.json")
        picture = self.tmp / "picture.svg"
        self.assertEqual(self.draw(whole, picture).returncode, 0)
        self.assertIn("</svg>", picture.read_text())
        picture.unlink()
        for name, data, said in (("text", b"What a lovely day", "expected a timeline"), ("list", b"[]", "expected a timeline"),
                                 ("bytes", bytes(range(128, 256)), "expected a timeline"), ("cut", whole.read_bytes()[:300], "expected a timeline"),
                                 ("number", b'{"traceEvents": 3}', "an event is not one"), ("events", b'{"traceEvents": [3]}', "an event is not one"),
                                 ("thin", b'{"traceEvents": [{"ph": "X"}]}', "an event is not one"),
                                 ("empty", b'{"traceEvents": []}', "nothing is drawn")):
            (self.tmp / name).write_bytes(data)
            self.not_drawn(self.tmp / name, picture, f"{name}: {said}")
        self.not_drawn(self.tmp, picture, "Is a directory")
        self.not_drawn(self.tmp / "nope", picture, "nope: No such file or directory")
        self.not_drawn(whole, self.tmp / "no" / "picture.svg", "no/picture.svg: No such file or directory")

    def not_drawn(self, timeline, picture, said):
        with self.subTest(timeline=timeline.name, picture=picture.name):
            done = self.draw(timeline, picture)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, f"^draw-timeline: error: .*{said}")
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertFalse(picture.exists())


class TimelineBounds(TimelineTest):
    def test_a_window(self):
        trace = self.generate("stream", "--size", "8KiB", "--count", "200")
        _, whole = self.record(trace)
        _, timeline = self.record(trace, "--timeline-window", "5us..8us")
        begin, end = 5_000_000, 8_000_000
        inside = [e for e in self.slices(whole) if ps(e["args"]["left_ns"], "ns") > begin
                  and ps(e["args"]["entered_ns"], "ns") < end]
        self.assertGreater(len(inside), 100)
        self.assertLess(len(inside), len(self.slices(whole)))
        stay = lambda e: (e["name"], e["cat"], e["args"]["entered_ns"], e["args"]["left_ns"])
        self.assertEqual(sorted(map(stay, inside)), sorted(map(stay, self.slices(timeline))))
        self.assertEqual((timeline["otherData"]["from_ns"], timeline["otherData"]["to_ns"]), (5000, 8000))
        for open_window in ("5us..", "..8us", ".."):
            self.record(trace, "--timeline-window", open_window)

    def test_a_sample(self):
        trace = self.generate("stream", "--size", "8KiB", "--count", "100")
        _, whole = self.record(trace)
        _, timeline = self.record(trace, "--timeline-sample", "7")
        numbers = {e["id"] for e in timeline["traceEvents"] if e["ph"] == "b"}
        self.assertEqual(numbers, {n for n in (e["id"] for e in whole["traceEvents"] if e["ph"] == "b") if n % 7 == 0})
        self.assertEqual({e["args"]["message"] for e in self.slices(timeline) if "message" in e["args"]}, numbers)

    def test_a_limit(self):
        trace = self.generate("stream", "--size", "8KiB", "--count", "200")
        for limit in (100, 1000, 3000):
            result, timeline = self.record(trace, "--timeline-limit", limit)
            about = timeline["otherData"]
            self.assertLessEqual(len(self.events(timeline)), limit)
            self.assertGreater(len(self.events(timeline)), limit / 3)
            self.assertGreater(about["dropped_events"], 0)
            marks = [e for e in timeline["traceEvents"] if e.get("s") == "g"]
            self.assertEqual([e["name"] for e in marks], [f"limit of {limit} events: nothing later is drawn"])
            self.assertEqual(ps(marks[0]["ts"], "us"), ps(about["full_at_ns"], "ns"))
            self.assertIn("rvma: note: --timeline: its limit of", result.stderr)
        result, timeline = self.record(trace)
        self.assertEqual(timeline["otherData"]["dropped_events"], 0)
        self.assertNotIn("note:", result.stderr)

    def test_a_run_that_fails_still_has_its_timeline(self):
        stuck = PUT_ONCE.format(size=64).replace("threshold=64", "threshold=128")
        for arguments, reason in (([], "rank 1 waits for b"), (["--limit", "2us"], "--limit reached")):
            result, timeline = self.record(stuck, *arguments, status=1)
            self.assertTrue(any(reason in line for line in timeline["otherData"]["problems"]), result.stderr)
            marks = [e["name"] for e in timeline["traceEvents"] if e.get("s") == "g"]
            self.assertTrue(any(reason in mark for mark in marks), marks)
        _, timeline = self.record(stuck, status=1)
        (message,) = [e for e in timeline["traceEvents"] if e["ph"] == "b"]
        self.assertEqual(message["args"]["status"], "ok")  # it was counted; its epoch is not complete
        self.assertEqual(self.flows(timeline), 1)

    def test_bad_options(self):
        trace = self.tmp / "t.trace"
        trace.write_text(PUT_ONCE.format(size=64))
        path = self.tmp / "t.json"
        for arguments, parts in (
            (["--timeline-window", "5..7us"], ["--timeline-window:", "unit"]),
            (["--timeline-window", "5us"], ["--timeline-window: '5us' is no window", "FROM..TO"]),
            (["--timeline-window", "7us..5us"], ["--timeline-window: '7us..5us' is empty"]),
            (["--timeline-sample", "0"], ["--timeline-sample: '0' is too small"]),
            (["--timeline-sample", "x"], ["--timeline-sample:"]),
            (["--timeline-limit", "99"], ["--timeline-limit: '99' is too small", "100"]),
        ):
            with self.subTest(arguments=arguments):
                result = self.rvma("run", trace, "--timeline", path, *arguments)
                self.expect_error(result, "rvma: error: " + parts[0], *parts[1:])
                self.assertEqual(result.stdout, "")
                self.assertFalse(path.exists())
        self.expect_error(self.rvma("run", trace, "--timeline-window", "1us..2us"),
                          "rvma: error: --timeline-window: nothing is recorded; expected --timeline FILE")
        self.expect_error(self.rvma("run", trace, "--timeline", self.tmp), "is a directory")
        self.expect_error(self.rvma("run", trace, "--timeline", path, "--pcap", path), "--pcap: the same file")
        missing = self.tmp / "none" / "t.json"
        result = self.rvma("run", trace, "--timeline", missing)
        self.expect_error(result, str(missing), "cannot be created")
        self.assertEqual(result.stdout, "", "the run had begun")
