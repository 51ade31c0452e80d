"""`rvma run --pcap`: the file is sound pcapng, and what tshark shows of it with the project's dissector is what the
other results say. Needs tshark (scripts/setup installs it)."""

import collections
import csv
import io
import random
import re
import shutil
import struct
import subprocess

from calls_test import FAULTS, settings
from rdma_test import EVERY_CALL, MANY
from system_test import PUT_ONCE, SOURCE, SystemTest

DISSECTOR = SOURCE / "scripts/wireshark/rvma.lua"
RDMA = ["--protocol", "rdma"]
OUT, IN = 2, 1
CRC_ERROR = 1 << 24
MUTANTS = 400


class Capture:
    """A pcapng file, read as the format's draft has it; anything that is not so is an assertion."""

    def __init__(self, path):
        self.interfaces, self.packets, self.statistics = [], [], {}
        data = path.read_bytes()
        at = 0
        while at < len(data):
            kind, length = struct.unpack_from("<II", data, at)
            assert length % 4 == 0 and at + length <= len(data), (at, length)
            assert struct.unpack_from("<I", data, at + length - 4)[0] == length
            body = data[at + 8 : at + length - 4]
            if at == 0:
                assert kind == 0x0A0D0D0A and body[:8] == bytes.fromhex("4d3c2b1a01000000"), "no section header"
            elif kind == 1:
                link, _, snap = struct.unpack_from("<HHI", body)
                assert link == 1
                self.interfaces.append((snap, self.options(body[8:])))
            elif kind == 6:
                self.packets.append(self.packet(body))
            elif kind == 5:
                self.statistics[struct.unpack_from("<I", body)[0]] = self.options(body[12:])
            else:
                raise AssertionError(f"block {kind}")
            at += length

    @staticmethod
    def options(data):
        options = {}
        at = 0
        while True:
            code, length = struct.unpack_from("<HH", data, at)
            if code == 0:
                assert (length, at + 4) == (0, len(data))
                return options
            options[code] = data[at + 4 : at + 4 + length]
            at += 4 + length + -length % 4

    def packet(self, body):
        interface, high, low, kept, length = struct.unpack_from("<IIIII", body)
        options = self.options(body[20 + kept + -kept % 4 :])
        (flags,) = struct.unpack("<I", options[2])
        return {"interface": self.interfaces[interface][1][2].decode(), "ns": high << 32 | low, "length": length,
                "bytes": body[20 : 20 + kept], "direction": flags & 3, "bad_crc": bool(flags & CRC_ERROR),
                "comment": options.get(1, b"").decode()}


def number(option):
    return struct.unpack("<Q", option)[0]


class PcapTest(SystemTest):
    def capture(self, trace, *arguments, status=0, check=True):
        self.runs += 1
        path = self.tmp / f"capture{self.runs}.pcapng"
        run = self.run_text if isinstance(trace, str) else self.run_file
        result = run(trace, "--pcap", path, *arguments, status=status, check=check)
        capture = Capture(path)
        times = [packet["ns"] for packet in capture.packets]
        self.assertEqual(times, sorted(times))
        return result, path, capture

    def tshark(self, path, *arguments, fields=()):
        """Rows by field name, with the dissector of this tree only."""
        program = shutil.which("tshark")
        self.assertIsNotNone(program, "tshark is not installed: scripts/setup does it")
        command = [program, "-n", "-X", f"lua_script:{DISSECTOR}", "-o", "ip.check_checksum:TRUE", "-o",
                   "udp.check_checksum:TRUE", "-r", path, *arguments]
        if fields:
            command += ["-T", "fields", "-E", "header=y", "-E", "separator=,", "-E", "quote=d", "-E", "occurrence=a",
                        "-E", "aggregator=;", *[part for name in fields for part in ("-e", name)]]
        process = subprocess.run(command, capture_output=True, timeout=200, env={"HOME": str(self.tmp), "PATH": "/usr/bin:/bin"})
        errors = process.stderr.decode()
        self.assertEqual(process.returncode, 0, errors)
        self.assertNotIn("Lua", errors)
        output = process.stdout.decode()
        return list(csv.DictReader(io.StringIO(output))) if fields else output

    def expect_sound(self, path, but=""):
        """Checksums right, nothing malformed, no expert information, but of packets that match `but`."""
        # From a note on: comments on packets are expert information, too.
        right = ("ip.checksum.status == 1 and udp.checksum.status == 1 and rvma.crc.good == 1 and "
                 "not _ws.expert.severity >= 0x400000")
        wrong = f"not ({right})" + (f" and not ({but})" if but else "")
        self.assertEqual(self.tshark(path, "-Y", wrong), "")


class Pcap(PcapTest):
    FIELDS = ("rvma.source_node", "rvma.destination_node", "rvma.type", "rvma.mailbox", "rvma.key", "rvma.message",
              "rvma.packet_index", "rvma.message_length", "rvma.offset", "rvma.payload_length", "rvma.sequence",
              "frame.time_epoch", "frame.interface_name", "frame.packet_flags_direction")

    def test_fields_are_what_was_put(self):
        trace = self.generate("random", "--count", "25", "--size", "20000")
        result, path, capture = self.capture(trace)
        self.expect_sound(path)
        rows = self.tshark(path, "-Y", "rvma.type == 1 and frame.packet_flags_direction == 2", fields=self.FIELDS)
        messages = collections.defaultdict(list)
        for row in rows:
            self.assertEqual(row["frame.interface_name"], "node" + row["rvma.source_node"])
            messages[row["rvma.source_node"], row["rvma.destination_node"], row["rvma.message"]].append(row)
        seen = []
        for (source, destination, _), packets in messages.items():
            first = packets[0]
            size = int(first["rvma.message_length"])
            self.assertEqual(sum(int(row["rvma.payload_length"]) for row in packets), size)
            self.assertEqual([int(row["rvma.packet_index"]) for row in packets], list(range(len(packets))))
            for name in ("rvma.mailbox", "rvma.key", "rvma.message_length", "rvma.offset"):
                self.assertEqual({row[name] for row in packets}, {first[name]})
            seen.append((source, destination, first["rvma.mailbox"], size))
        puts = result.rows("puts.csv")
        self.assertGreater(len(puts), 50)
        self.assertEqual({row["tries"] for row in puts}, {"1"})
        self.assertEqual(sorted(seen),
                         sorted((row["rank"], row["dest"], row["mailbox"], int(row["size"])) for row in puts))
        # Times: nothing leaves before its put is issued.
        begun = min(float(row["issue_ns"]) for row in puts)
        self.assertGreaterEqual(float(rows[0]["frame.time_epoch"]) * 1e9, begun - 1)
        self.check_counts(result, capture)

    def check_counts(self, result, capture):
        """Packets that left and arrived are those of stats.json, units and totals."""
        stats = result.stats()
        left = collections.Counter(p["interface"] for p in capture.packets if p["direction"] == OUT)
        arrived = collections.Counter(p["interface"] for p in capture.packets if p["direction"] == IN)
        for interface, (snap, options) in enumerate(capture.interfaces):
            name = options[2].decode()
            egress = stats["units"][name + ".nic.egress"]
            parser = stats["units"][name + ".nic.parser"]
            self.assertEqual(left[name], egress["data_packets"] + egress["acknowledgements"])
            self.assertEqual(arrived[name],
                             parser["data_packets"] + parser["ack_packets"] + parser["corrupt_packets"])
            self.assertEqual(options[9], b"\x09")
            self.assertEqual(number(capture.statistics[interface][4]), left[name] + arrived[name])
            self.assertEqual(number(capture.statistics[interface][5]), 0)
        packets = stats["totals"]["packets"]
        self.assertEqual(sum(left.values()), packets["sent"] + packets["acknowledgements"])

    def test_every_kind_of_packet_of_both_protocols(self):
        for arguments, kinds in (([], {1: "data", 2: "ack", 3: "get"}), (RDMA, {2: "ack", 4: "rdma"})):
            with self.subTest(arguments=arguments):
                result, path, capture = self.capture(EVERY_CALL, *arguments)
                self.expect_sound(path)
                self.check_counts(result, capture)
                rows = self.tshark(path, fields=("rvma.type", "rvma.rdma.operation", "rvma.rdma.queue_pair",
                                                 "rvma.rdma.address", "rvma.rdma.key", "rvma.get.length",
                                                 "rvma.get.mailbox", "rvma.ack.outcome", "rvma.payload_length"))
                self.assertEqual({int(row["rvma.type"]) for row in rows}, set(kinds))
                if not arguments:
                    asked = [int(row["rvma.get.length"]) for row in rows if row["rvma.type"] == "3"]
                    gets = [int(row["size"]) for row in result.rows("puts.csv") if row["kind"] == "get"]
                    self.assertEqual(sorted(set(asked)), sorted(set(gets)))
                    told = {outcome for row in rows for outcome in row["rvma.ack.outcome"].split(";") if outcome}
                    self.assertGreaterEqual(told, {"1", "2", "4", "7"})  # ok, no_mailbox, bad_key, bounds
                    continue
                operations = collections.Counter(int(row["rvma.rdma.operation"]) for row in rows
                                                 if row["rvma.type"] == "4")
                self.assertGreaterEqual(set(operations), {2, 3, 4, 5})
                for row in rows:
                    if row["rvma.rdma.operation"] == "4" or (row["rvma.rdma.operation"] in ("1", "2")
                                                             and row["rvma.payload_length"] != "0"):
                        self.assertNotEqual(int(row["rvma.rdma.address"], 16), 0)
                        self.assertNotEqual(int(row["rvma.rdma.key"], 16), 0)

    def test_rdma_writes_carry_the_puts(self):
        trace = self.generate("pingpong", "--size", "10000", "--iterations", "10")
        result, path, _ = self.capture(trace, *RDMA)
        rows = self.tshark(path, "-Y", "(rvma.rdma.operation == 1 or rvma.rdma.operation == 2) and "
                           "frame.packet_flags_direction == 2 and rvma.payload_length",
                           fields=("rvma.source_node", "rvma.packet_index", "rvma.message_length", "rvma.payload_length"))
        puts = result.rows("puts.csv")
        self.assertEqual(sum(int(row["rvma.payload_length"]) for row in rows), sum(int(row["size"]) for row in puts))
        self.assertEqual(sorted((row["rvma.source_node"], row["rvma.message_length"]) for row in rows
                                if row["rvma.packet_index"] == "0" and row["rvma.message_length"] != "0"),
                         sorted((row["rank"], row["size"]) for row in puts))

    def test_payload_bytes(self):
        _, path, _ = self.capture(PUT_ONCE.format(size=64).replace("size=64\n  wait p", "size=64 seed=5\n  wait p"))
        (row,) = self.tshark(path, "-Y", "rvma.payload and frame.packet_flags_direction == 2",
                             fields=("rvma.payload",))
        self.assertEqual(row["rvma.payload"].replace(":", ""), bytes((5 * 131 + i * 7) % 256 for i in range(64)).hex())

    def test_damaged_lost_and_repeated_packets(self):
        result, path, capture = self.capture(MANY, "--set", "fabric.faults.corrupt=0.05", *settings(FAULTS))
        stats = result.stats()
        packets = stats["totals"]["packets"]
        self.check_counts(result, capture)
        damaged = [p for p in capture.packets if p["bad_crc"]]
        self.assertEqual(len(damaged), sum(stats["units"][f"node{n}.nic.parser"]["corrupt_packets"] for n in (0, 1)))
        self.assertGreater(len(damaged), 0)
        self.assertEqual({p["comment"] for p in damaged}, {"damaged on its way: shown with an inverted CRC"})
        self.assertEqual({p["direction"] for p in damaged}, {IN})
        again = [p for p in capture.packets if p["comment"] == "sent again"]
        self.assertEqual(len(again), packets["retransmitted"])
        self.expect_sound(path, but="rvma.crc.good == 0")
        bad = self.tshark(path, "-Y", "rvma.crc.good == 0 and rvma.bad_crc", fields=("frame.number",))
        self.assertEqual(len(bad), len(damaged))

    def test_the_same_whatever_the_table_is(self):
        trace = self.generate("pingpong", "--size", "100", "--iterations", "10")
        files = [self.capture(trace, *arguments)[1].read_bytes() for arguments in ([], [], ["--table", "both"])]
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0], files[2])


class PcapBounds(PcapTest):
    def test_nodes_limit_and_length(self):
        trace = self.generate("incast", "--ranks", "4", "--size", "5000")
        result, path, whole = self.capture(trace)
        _, _, some = self.capture(trace, "--pcap-nodes", "1-2,0")
        self.assertEqual([options[2].decode() for _, options in some.interfaces], ["node0", "node1", "node2"])
        self.assertEqual(some.packets, [p for p in whole.packets if p["interface"] != "node3"])
        limited, _, first = self.capture(trace, "--pcap-limit", "10")
        self.assertEqual(first.packets, whole.packets[:10])
        dropped = sum(number(options[5]) for options in first.statistics.values())
        self.assertEqual(dropped, len(whole.packets) - 10)
        self.assertIn(f"rvma: note: --pcap: {dropped} of {len(whole.packets)} packets came after its limit of 10",
                      limited.stderr)
        self.assertNotIn("note:", result.stderr)
        _, path, short = self.capture(trace, "--pcap-snaplen", "106")
        self.assertEqual([p["bytes"] for p in short.packets], [p["bytes"][:106] for p in whole.packets])
        self.assertEqual([p["length"] for p in short.packets], [p["length"] for p in whole.packets])
        cut = self.tshark(path, "-Y", "rvma.cut and rvma.mailbox", fields=("rvma.payload_length",))
        self.assertEqual(len(cut), sum(p["length"] > 106 and p["bytes"][42] & 15 == 1 for p in short.packets))
        self.assertEqual({row["rvma.payload_length"] for row in cut}, {"4096", "904"})

    def test_a_run_that_fails_still_has_its_packets(self):
        stuck = PUT_ONCE.format(size=64).replace("threshold=64", "threshold=128")
        _, _, capture = self.capture(stuck, status=1)
        self.assertGreater(len(capture.packets), 0)
        for options in capture.statistics.values():
            self.assertRegex(options[1].decode(), r"\.trace:7:3: error: rank 1 waits for b$")

    def test_bad_options(self):
        trace = self.tmp / "t.trace"
        trace.write_text(PUT_ONCE.format(size=64))
        path = self.tmp / "t.pcapng"
        for arguments, parts in (
            (["--pcap-nodes", "x"], ["--pcap-nodes: 'x' is no node", "0,3,8-15"]),
            (["--pcap-nodes", "1-0"], ["--pcap-nodes: '1-0' is no node"]),
            (["--pcap-nodes", ""], ["--pcap-nodes: '' is no node"]),
            (["--pcap-nodes", "0-2"], ["--pcap-nodes: there is no node 2", "0 to 1"]),
            (["--pcap-limit", "0"], ["--pcap-limit: '0' is too small"]),
            (["--pcap-snaplen", "105"], ["--pcap-snaplen: '105' is too small", "106"]),
            (["--pcap-snaplen", "262145"], ["--pcap-snaplen:", "262144"]),
        ):
            with self.subTest(arguments=arguments):
                result = self.rvma("run", trace, "--pcap", path, *arguments)
                self.expect_error(result, "rvma: error: " + parts[0], *parts[1:])
                self.assertFalse(path.exists())
        self.expect_error(self.rvma("run", trace, "--pcap-nodes", "0"),
                          "rvma: error: --pcap-nodes: nothing is recorded; expected --pcap FILE")
        result = self.rvma("run", trace, "--pcap", self.tmp / "none" / "t.pcapng")
        self.expect_error(result, "cannot be created")
        self.assertEqual(result.stdout, "", "the run had begun")


class Dissector(PcapTest):
    """Whatever bytes come, the dissector shows what is there and says what is wrong."""

    def frames(self):
        frames = []
        for arguments in ([], RDMA):
            _, _, capture = self.capture(EVERY_CALL, *arguments, *settings(FAULTS[:2]), check=False)
            by_shape = {(p["bytes"][42], p["length"]): p["bytes"] for p in capture.packets}
            frames += by_shape.values()
        return frames

    def write(self, frames):
        """A classic capture with nanoseconds, of frames with their lengths on the wire."""
        path = self.tmp / "mutants.pcap"
        with open(path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
            for i, (frame, length) in enumerate(frames):
                file.write(struct.pack("<IIII", 0, i, len(frame), length) + frame)
        return path

    @staticmethod
    def with_lengths(frame):
        """The frame with IPv4 and UDP lengths as long as it is: so the dissector gets all of it."""
        frame = bytearray(frame)
        struct.pack_into(">H", frame, 16, len(frame) - 14)
        struct.pack_into(">H", frame, 38, len(frame) - 34)
        struct.pack_into(">H", frame, 40, 0)  # no UDP checksum
        return bytes(frame)

    def test_mutants(self):
        seed = 20261130
        print(f"Dissector: seed {seed}")
        choice = random.Random(seed)
        originals = self.frames()
        self.assertGreater(len(originals), 12)
        mutants = []
        for _ in range(MUTANTS):
            frame = bytearray(choice.choice(originals))
            what = choice.randrange(4)
            if what == 0:
                frame = frame[: choice.randrange(42, len(frame) + 1)]
            if what == 1:
                frame += choice.randbytes(choice.randrange(1, 40))
            if what == 2:
                frame = frame[:42] + choice.randbytes(choice.randrange(0, 200))
                if len(frame) > 42:
                    frame[42] = choice.choice([0x11, 0x12, 0x13, 0x14, frame[42]])
            if what != 2 and len(frame) > 42:
                for _ in range(choice.randrange(0 if what < 2 else 1, 5)):
                    frame[choice.randrange(42, min(len(frame), 140))] = choice.randrange(256)
            frame = self.with_lengths(frame)
            kept = frame if choice.random() < 0.8 else frame[: choice.randrange(42, len(frame) + 1)]
            mutants.append((kept, len(frame)))
        output = self.tshark(self.write(mutants), "-V", "-O", "rvma")
        self.assertNotIn("Lua Error", output)
        self.assertEqual(output.count("Frame "), MUTANTS)
        rows = self.tshark(self.write(mutants), fields=("rvma", "_ws.expert.severity", "rvma.crc.good"))
        for (kept, length), row in zip(mutants, rows):
            unharmed = kept[42:] in [frame[42:] for frame in originals]
            if not unharmed and len(kept) > 42:
                self.assertNotEqual(row["_ws.expert.severity"], "", kept.hex())
                self.assertNotEqual(row["rvma.crc.good"], "1")

    def test_what_is_said_of_each_mistake(self):
        frames = self.frames()
        data = next(f for f in frames if f[42] == 0x11 and len(f) > 200)
        ack = next(f for f in frames if f[42] == 0x12 and f[45] > 0)
        rdma = next(f for f in frames if f[42] == 0x14 and f[102] in (1, 2))

        def changed(frame, at, value):
            frame = bytearray(frame)
            frame[at] = value
            return bytes(frame)

        cases = [
            ("", data), ("", ack), ("", rdma),
            ("version", changed(data, 42, 0x21)), ("type", changed(data, 42, 0x15)), ("type", changed(data, 42, 0x10)),
            ("reserved", changed(data, 43, 1)), ("crc", changed(data, 150, data[150] ^ 1)),
            ("reserved", changed(ack, 73, 1)), ("length", changed(ack, 71, 9)), ("length", changed(ack, 45, ack[45] - 1)),
            ("operation", changed(rdma, 102, 6)), ("reserved", changed(rdma, 104, 1)),
            *[("truncated", self.with_lengths(data[:length])) for length in (43, 50, 90, 104)],
        ]
        names = {name: "rvma.truncated" if name == "truncated" else "rvma.bad_" + name for name, _ in cases if name}
        path = self.write([(frame, len(frame)) for _, frame in cases])
        rows = self.tshark(path, fields=("frame.number", *names.values()))
        for (name, frame), row in zip(cases, rows):
            with self.subTest(name=name, frame=frame[:110].hex()):
                said = {short for short, field in names.items() if row[field]}
                # Who changes bytes also breaks the CRC.
                self.assertEqual(said - {"crc"} if name != "crc" else said, {name} - {""})
        path = self.write([(data[:80], len(data)), (data[:50], len(data)), (data, len(data))])
        cut = self.tshark(path, "-Y", "rvma.cut", fields=("frame.number",))
        self.assertEqual([row["frame.number"] for row in cut], ["1", "2"])


class PcapManual(PcapTest):
    """docs/how-to/see-what-happened.md, as it is written."""

    def setUp(self):
        super().setUp()
        self.text = (SOURCE / "docs/how-to/see-what-happened.md").read_text(encoding="utf-8")

    def captures(self):
        """Made with the commands of the page."""
        commands = re.findall(r"^build/bin/rvma (run docs/examples/packets/.*)$", self.text, re.MULTILINE)
        made = {}
        for command in commands:
            words = [SOURCE / word if word.startswith("docs/") else word for word in command.split()]
            name = words[words.index("--pcap") + 1]
            words[words.index("--pcap") + 1] = made[name] = self.tmp / name
            self.assertEqual(self.rvma(*words, "--quiet").status, 0)
        return made

    def test_each_filter_finds_something(self):
        made = self.captures()
        rows = re.findall(r"^\| `(.*)` \| `(\w+\.pcapng)` \|", self.text, re.MULTILINE)
        self.assertEqual({name for _, name in rows}, set(made))
        self.assertGreaterEqual(len(rows), 8)
        for wanted, name in rows:
            with self.subTest(wanted):
                found = self.tshark(made[name], "-Y", wanted).count("\n")
                self.assertGreater(found, 0)
                self.assertLess(found, self.tshark(made[name]).count("\n"))

    def test_the_command_for_the_fields_lists_them(self):
        (command,) = re.findall(r"^tshark (.*-G .*) \| grep rvma$", self.text, re.MULTILINE)
        words = [word.replace("scripts/wireshark/rvma.lua", str(DISSECTOR)) for word in command.split()]
        process = subprocess.run([shutil.which("tshark"), *words], capture_output=True, text=True, timeout=200,
                                 env={"HOME": str(self.tmp), "PATH": "/usr/bin:/bin"})
        for field in ("rvma.mailbox", "rvma.ack.outcome", "rvma.rdma.operation"):
            self.assertIn(f"\t{field}\t", process.stdout)
