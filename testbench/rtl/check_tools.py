"""The Verilog core under one tool: no finding for any legal shape, an error for each illegal parameter.

Shapes are those of rtl/shapes.txt and a few more at the edges of what is legal.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

PARAMETERS = ["Banks", "Rows", "Slots", "Stash", "MaxKicks", "Latency", "Protection"]
EDGES = [
    (8, 1024, 4, 64, 256, 3, 1),
    (2, 4, 1, 0, 0, 1, 1),
    (2, 1 << 20, 1, 2, 4, 1, 1),
    (7, 128, 3, 1, 1, 2, 0),
]
ILLEGAL = [
    ("Banks", 1), ("Banks", 9), ("Rows", 2), ("Rows", 100), ("Rows", 1 << 21), ("Slots", 0), ("Slots", 5),
    ("Stash", 65), ("MaxKicks", 257), ("Latency", 0), ("Latency", 4), ("Protection", 2), ("PlaceBits", 3),
    ("UsedBits", 3),
]


def listed_shapes(rtl):
    shapes = []
    with open(os.path.join(rtl, "shapes.txt"), encoding="utf-8") as file:
        for line in file:
            fields = line.split("#")[0].split()
            if fields:
                shapes.append(tuple(map(int, fields[1:7])) + ({"none": 0, "parity": 1}[fields[7]],))
    return shapes


class Verilator:
    def __init__(self, program, rtl):
        self.base = [program, "--lint-only", "-Wall", f"-I{rtl}", "--top-module", "rvma_table"]
        self.top = os.path.join(rtl, "rvma_table.v")

    def run(self, parameters):
        return self.base + [f"-G{name}={value}" for name, value in parameters.items()] + [self.top]

    def findings(self, parameters, output):
        return output


class Icarus:
    def __init__(self, program, rtl):
        self.base = [program, "-g2005", "-Wall", f"-I{rtl}", "-s", "rvma_table", "-o", os.devnull]
        self.sources = sources(rtl)

    def run(self, parameters):
        return self.base + [f"-Prvma_table.{name}={value}" for name, value in parameters.items()] + self.sources

    def findings(self, parameters, output):
        return output


class Yosys:
    """Also that all memories are found, and no latch."""

    def __init__(self, program, rtl):
        self.program = program
        self.read = f"read_verilog -I{rtl} {' '.join(sources(rtl))}"

    def run(self, parameters):
        chparam = " ".join(f"-chparam {name} {value}" for name, value in parameters.items())
        script = "; ".join([
            self.read, f"hierarchy -check -top rvma_table {chparam}", "proc", "check -assert",
            "select -assert-none t:$dlatch* t:$adlatch* t:$sr*", "flatten", "opt_clean", "memory -nomap",
            f"select -assert-count {self.memories(parameters)} t:$mem_v2",
        ])
        return [self.program, "-q", "-p", script]

    @staticmethod
    def memories(parameters):
        return 2 * parameters.get("Banks", 4) * parameters.get("Slots", 2) + 2 * 10

    def findings(self, parameters, output):
        # -q prints the notes of passes that run others; warnings and errors are what counts.
        return "\n".join(line for line in output.splitlines() if re.search(r"warning|error", line, re.I))


def sources(rtl):
    return sorted(os.path.join(rtl, name) for name in os.listdir(rtl) if name.endswith(".v"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", required=True, choices=["verilator", "yosys", "iverilog"])
    parser.add_argument("--program", required=True)
    parser.add_argument("--rtl", required=True)
    arguments = parser.parse_args()
    arguments.rtl = os.path.abspath(arguments.rtl)
    tool = {"verilator": Verilator, "yosys": Yosys, "iverilog": Icarus}[arguments.tool](
        arguments.program, arguments.rtl)
    failures = 0

    def run(parameters):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run(tool.run(parameters), cwd=directory, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    shapes = listed_shapes(arguments.rtl) + EDGES
    for shape in shapes:
        parameters = dict(zip(PARAMETERS, shape))
        code, output = run(parameters)
        findings = tool.findings(parameters, output).strip()
        if code != 0 or findings:
            failures += 1
            print(f"{parameters}: exit {code}\n{findings or output}")
    for name, value in ILLEGAL:
        code, output = run({name: value})
        if code == 0 or "rvma_table_error_" not in output:
            failures += 1
            print(f"{name}={value} was not refused by its check: exit {code}\n{output[-2000:]}")
    print(f"{arguments.tool}: {len(shapes)} shapes, {len(ILLEGAL)} illegal parameters, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
