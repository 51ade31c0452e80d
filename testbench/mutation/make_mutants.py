"""Puts faults into the Verilog table with Yosys: one flat netlist that holds them all.

Its input fault_i chooses one; with 0 the netlist is the design. Leaves in --out:

    mutants.v    the netlist, module rvma_table
    faults.txt   one fault a line: NUMBER, what it is, FILE:LINE of its cell; with tabs between

What a fault is does not depend on line numbers or on names that Yosys makes up: MODE TYPE.PORT[BIT] NET, where NET is the
signal at that bit of the cell's port, or the instance and the source text of the cell if the signal has no name.

Left out, because they are no faults of the hardware or cannot make a difference whatever the test:
    - bits that are constant, or that nothing reads
    - the logic with which rvma_table_memory.v spoils what is read at a collision: it is there in simulations only
    - the clocks of memories and the unused enables of their asynchronous reads: Yosys cannot write them as Verilog
    - inversions on condition of a bit that decides the result of the cell by itself: an input of an OR if another one
      is 1, of an AND if another one is 0
    - outputs of the stash's flip-flops: the bench flips the bits stored there. The same fault at their inputs, and where
      their outputs are used, may be chosen.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from arguments import at_least  # noqa: E402  (found only now)

TOP = "rvma_table"
CONTROL = "fault_i"
CONSTANT = re.compile(r"filler\.word_q\[\d\]")  # a byte value takes one word if rows are few: nothing to count
STASH = re.compile(r"stash\.g_stash\.words_q\[\d+\]")
ORS = ("$reduce_or", "$reduce_bool", "$logic_not", "$logic_and", "$logic_or")  # of the bits of each input
ANDS = ("$reduce_and",)
FLIP_FLOP = re.compile(r"\$a?dffe?")


def run_yosys(yosys, rtl, script):
    """In the directory of the sources, so that no path of this machine gets into the names of cells."""
    done = subprocess.run([yosys, "-q", "-s", script], cwd=rtl, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.exit(f"{yosys} -s {script}: exit {done.returncode}\n{done.stdout}")


def write(path, text):
    """Leaves a file of that text alone: what depends on it need not be made again."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Netlist:
    def __init__(self, path, rtl):
        self.rtl = rtl
        self.sources = {}
        with open(path, encoding="utf-8") as file:
            module = json.load(file)["modules"][TOP]
        self.cells = module["cells"]
        self.readers = collections.Counter()
        for port in module["ports"].values():
            if port["direction"] == "output":
                self.readers.update(port["bits"])
        for cell in self.cells.values():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "input":
                    self.readers.update(bits)
        self.names = {}
        for name, net in module["netnames"].items():
            if net["hide_name"]:
                continue
            for offset, bit in enumerate(net["bits"]):
                text = f"{name}[{offset}]" if len(net["bits"]) > 1 else name
                old = self.names.get(bit)
                # One and the same for every run: the shortest, of these the first one.
                if old is None or (len(text), text) < (len(old), old):
                    self.names[bit] = text
                if STASH.fullmatch(text):
                    self.names[bit] = text

    def place(self, cell):
        """FILE:LINE of a cell: the innermost one, as the instances around it are listed too."""
        places = []
        for part in self.cells[cell]["attributes"].get("src", "").split("|"):
            found = re.match(r"([^:]+):(\d+)", part)
            if found:
                places.append((found.group(1), int(found.group(2))))
        if not places:
            return None
        # Modules are named after their place in the hierarchy by nobody, so take what is no instance of a module.
        for file, line in places:
            if not re.match(r"\s*(rvma_table_\w+( \w+)?|\) \w+) #?\(", self.text(file, line)):
                return file, line
        return places[0]

    def text(self, file, line):
        if file not in self.sources:
            with open(os.path.join(self.rtl, file), encoding="utf-8") as source:
                self.sources[file] = source.read().splitlines()
        return self.sources[file][line - 1]

    def describe(self, mode, cell, port, bit):
        net = self.names.get(self.cells[cell]["connections"][port][bit])
        if net is None:
            place = self.place(cell)
            path = re.match(r"\$flatten\\(.*?)\.?\$", cell)
            text = " ".join(self.text(*place).split("//")[0].split()) if place else ""
            net = f"({path.group(1) if path else ''}: {text})".replace("\\", "")
        return f"{mode} {self.cells[cell]['type']}.{port}[{bit}] {net}"

    def why_not(self, mode, cell, port, bit):
        """Why a fault there is left out; None if it is not."""
        kind = self.cells[cell]["type"]
        net = self.cells[cell]["connections"][port][bit]
        if not isinstance(net, int) or CONSTANT.fullmatch(self.names.get(net, "")):
            return "constant bit"
        if self.cells[cell]["port_directions"][port] == "output" and self.readers[net] == 0:
            return "bit that nothing reads"
        if self.cells[cell]["port_directions"][port] == "input" and (
                kind in ORS and mode == "cnot1" or kind in ANDS and mode == "cnot0"):
            return "bit that does not matter when it is inverted"
        if kind in ("$memrd", "$memwr_v2") and port in ("CLK", "EN") and (kind, port) != ("$memwr_v2", "EN"):
            return "clock or enable of a memory"
        if FLIP_FLOP.fullmatch(kind) and port == "Q" and STASH.fullmatch(self.names.get(net, "")):
            return "output of the stash's flip-flops"
        place = self.place(cell)
        if place and place[0] == "rvma_table_memory.v" and kind in ("$xor", "$eq", "$logic_and"):
            return "spoiling of collisions"
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--yosys", required=True)
    parser.add_argument("--rtl", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--faults", type=at_least(1), required=True)
    parser.add_argument("--seed", type=at_least(0), required=True)
    parser.add_argument("parameters", nargs="+", metavar="NAME=VALUE")
    arguments = parser.parse_args()
    rtl = os.path.abspath(arguments.rtl)
    out = os.path.abspath(arguments.out)
    os.makedirs(out, exist_ok=True)

    sources = sorted(name for name in os.listdir(rtl) if name.endswith(".v"))
    parameters = " ".join("-chparam " + " ".join(text.split("=")) for text in arguments.parameters)
    script = os.path.join(out, "list.ys")
    # Without opt_dff and -purge: the registers keep the names by which the bench finds what it flips. More candidates
    # than are wanted, as some are left out.
    write(script, f"""read_verilog -DRVMA_TABLE_SPOIL_COLLISIONS -I. {' '.join(sources)}
hierarchy -check -top {TOP} {parameters}
proc
flatten
opt_expr
opt_clean
wreduce
opt -full -noff
opt_clean
write_rtlil {out}/design.il
write_json {out}/design.json
mutate -list {3 * arguments.faults} -seed {arguments.seed} -o {out}/candidates.txt
""")
    run_yosys(arguments.yosys, rtl, script)

    netlist = Netlist(os.path.join(out, "design.json"), rtl)
    left_out = collections.Counter()
    chosen = []
    with open(os.path.join(out, "candidates.txt"), encoding="utf-8") as file:
        for line in file:
            mode, cell, port, bit = re.match(
                r"mutate -mode (\S+) -module \S+ -cell (\S+) -port (\S+) -portbit (\d+)", line).groups()
            cell = cell.removeprefix("\\")
            port = port.removeprefix("\\")
            reason = netlist.why_not(mode, cell, port, int(bit))
            if reason:
                left_out[reason] += 1
                continue
            place = netlist.place(cell)
            chosen.append((line.split(" -wire")[0].split(" -src")[0].removeprefix("mutate").strip(),
                           netlist.describe(mode, cell, port, int(bit)), "%s:%d" % place if place else "?"))
            if len(chosen) == arguments.faults:
                break
    if len(chosen) < arguments.faults:
        sys.exit(f"no more than {len(chosen)} faults were found")

    width = len(chosen).bit_length()
    script = os.path.join(out, "mutate.ys")
    # Beside the output: the netlist is written anew only if it changes.
    write(script, f"read_rtlil {out}/design.il\nmutate -ctrl {CONTROL} {width} 0 -mode none\n" + "".join(
        f"mutate -ctrl {CONTROL} {width} {number} {fault}\n" for number, (fault, _, _) in enumerate(chosen, 1)) +
          f"opt_clean\nwrite_verilog -noattr {out}/new.v\n")
    run_yosys(arguments.yosys, rtl, script)
    with open(os.path.join(out, "new.v"), encoding="utf-8") as file:
        write(os.path.join(out, "mutants.v"), file.read())
    os.remove(os.path.join(out, "new.v"))
    write(os.path.join(out, "faults.txt"),
          "".join(f"{number}\t{what}\t{place}\n" for number, (_, what, place) in enumerate(chosen, 1)))
    print(f"{len(chosen)} faults; left out: " +
          (", ".join(f"{count} at a {reason}" for reason, count in sorted(left_out.items())) or "none"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
