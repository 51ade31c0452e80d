#!/usr/bin/env python3
"""Synthesizes the translation table for several shapes and targets and writes a page of the manual. Every figure in its
tables comes from the tools' output."""

import argparse
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RTL = ROOT / "rtl"
PAGE = ROOT / "docs/reference/units/translation-table-synthesis.md"


@dataclasses.dataclass(frozen=True)
class Shape:
    banks: int
    rows: int
    slots: int
    stash: int
    max_kicks: int
    latency: int
    protection: int = 1

    def name(self):
        protection = "parity" if self.protection else "none"
        return (f"{self.banks} x {self.rows} x {self.slots} | {self.stash} | {self.max_kicks} | {self.latency} | "
                f"{protection}")

    def chparam(self):
        return (f"-chparam Banks {self.banks} -chparam Rows {self.rows} -chparam Slots {self.slots} "
                f"-chparam Stash {self.stash} -chparam MaxKicks {self.max_kicks} -chparam Latency {self.latency} "
                f"-chparam Protection {self.protection}")


SMALLEST = Shape(2, 4, 1, 1, 2, 2, 0)
GENERIC = [SMALLEST, Shape(2, 16, 2, 4, 6, 1), Shape(3, 64, 3, 5, 8, 3), Shape(4, 512, 2, 8, 32, 1),
           Shape(4, 512, 2, 8, 32, 2), Shape(4, 512, 2, 8, 32, 3), Shape(4, 8192, 2, 8, 32, 2)]
FPGA = [SMALLEST, Shape(3, 64, 3, 5, 8, 3), Shape(4, 512, 2, 8, 32, 1), Shape(4, 512, 2, 8, 32, 2),
        Shape(4, 8192, 2, 8, 32, 2)]


# The part has 32 block RAMs of 4 Kbit, of which the hash memories of the whole core take 20.
ROUTED = Shape(2, 4, 1, 0, 0, 2, 0)
ROUTED_HALF = Shape(2, 256, 1, 4, 8, 2)


def half_chparam(shape, module):
    """Parameters of a module that holds one of the two copies, as rvma_table.v gives them."""
    index = (shape.banks - 1).bit_length() + (shape.rows - 1).bit_length() + max((shape.slots - 1).bit_length(), 1)
    values = {"Banks": shape.banks, "Rows": shape.rows, "Slots": shape.slots, "Stash": shape.stash,
              "Protection": shape.protection, "LocationBits": 1 + index}
    values.update({"Latency": shape.latency} if module == "rvma_table_lookup" else
                  {"MaxKicks": shape.max_kicks, "UsedBits": 10})
    return " ".join(f"-chparam {name} {value}" for name, value in values.items())


class Tools:
    def __init__(self, work):
        self.work = work

    def run(self, command, name):
        start = time.monotonic()
        log = self.work / f"{name}.log"
        with open(log, "w", encoding="utf-8") as out:
            status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
        text = log.read_text(encoding="utf-8")
        if status != 0:
            sys.exit(f"{command[0]} failed for {name}:\n{text[-2000:]}")
        print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
        return text

    def yosys(self, name, lines):
        script = self.work / f"{name}.ys"
        script.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self.run(["yosys", "-s", str(script)], name)

    def cells(self, name):
        modules = json.loads((self.work / f"{name}.json").read_text(encoding="utf-8"))["modules"]
        return next(iter(modules.values()))["num_cells_by_type"]


def read(shape=None):
    files = " ".join(str(file) for file in sorted(RTL.glob("*.v")))
    return [f"read_verilog -I{RTL} {files}", f"hierarchy -check -top rvma_table {shape.chparam() if shape else ''}",
            "rename -top rvma_table"]


def count(cells, pattern):
    return sum(number for cell, number in cells.items() if re.fullmatch(pattern, cell))


def generic(tools, index, shape):
    """Gates and flip-flops, memories left as they are; the longest path from one flip-flop or memory to the next."""
    name = f"generic-{index}"
    text = tools.yosys(name, [
        *read(shape), "synth -top rvma_table -flatten -run begin:fine", "opt -full",
        "techmap", "opt -fast", "dfflegalize -cell $_DFF_P_ x -cell $_DFFE_PP_ x -cell $_DFF_PN?_ x -cell $_DFFE_PN?P_ x",
        "abc -fast -g AND,NAND,OR,NOR,XOR,XNOR,MUX", "opt_clean", f"tee -o {tools.work / name}.json stat -json",
        "dump -o " + str(tools.work / f"{name}.mem") + " t:$mem_v2",
        "delete t:$mem_v2", "ltp -noff",
    ])
    cells = tools.cells(name)
    dump = (tools.work / f"{name}.mem").read_text(encoding="utf-8")
    sizes = [int(s, 0) for s in re.findall(r"parameter \\SIZE (\d+)", dump)]
    widths = [int(w, 0) for w in re.findall(r"parameter \\WIDTH (\d+)", dump)]
    bits = sum(s * w for s, w in zip(sizes, widths))
    flip_flops = count(cells, r"\$_.*DFF.*_")
    gates = count(cells, r"\$_(AND|NAND|OR|NOR|XOR|XNOR|MUX|NOT)_")
    levels = re.findall(r"Longest topological path in \S+ \(length=(\d+)\)", text)[-1]
    return f"| {shape.name()} | {len(sizes)} | {bits} | {flip_flops} | {gates} | {levels} |"


def xilinx(tools, index, shape):
    name = f"xilinx-{index}"
    text = tools.yosys(name, [*read(shape), "synth_xilinx -family xc7 -top rvma_table -flatten -noiopad -noclkbuf",
                              f"tee -o {tools.work / name}.json stat -json", "ltp -noff"])
    cells = tools.cells(name)
    luts = count(cells, r"LUT\d")
    ram = count(cells, r"RAM\d+[XM].*|RAM\d+M")
    levels = re.findall(r"Longest topological path in \S+ \(length=(\d+)\)", text)[-1]
    return (f"| {shape.name()} | {count(cells, 'RAMB36E1')} | {count(cells, 'RAMB18E1')} | {ram} | {luts} | "
            f"{count(cells, 'FD[RSCP]E(_1)?')} | {levels} |")


def wrapper(tools, module, chparam):
    """Verilog around `module` with its inputs from one shift register and its outputs through another, so that it fits
    the pins of a small FPGA."""
    ports_file = tools.work / "ports.json"
    tools.yosys("ports", [read()[0], f"hierarchy -check -top {module} {chparam}", f"rename -top {module}", "proc",
                          f"write_json {ports_file}"])
    ports = json.loads(ports_file.read_text(encoding="utf-8"))["modules"][module]["ports"]
    ports = {name: port for name, port in ports.items() if name not in ("clk_i", "rst_ni")}
    widths = {"input": 0, "output": 0}
    connections = [".clk_i(clk_i)", ".rst_ni(rst_ni)"]
    for name, port in ports.items():
        direction = port["direction"]
        connections.append(f".{name}({direction}s[{widths[direction]}+:{len(port['bits'])}])")
        widths[direction] += len(port["bits"])
    return f"""module serial (input clk_i, input rst_ni, input serial_i, input load_i, output serial_o);
  reg [{widths["input"] - 1}:0] inputs;
  reg [{widths["output"] - 1}:0] taken;
  wire [{widths["output"] - 1}:0] outputs;
  always @(posedge clk_i) begin
    inputs <= {{inputs, serial_i}};
    taken <= load_i ? outputs : taken << 1;
  end
  assign serial_o = taken[{widths["output"] - 1}];
  wrapped_core core ({", ".join(connections)});
endmodule
"""


def place_and_route(tools, what, module, shape, chparam):
    name = f"ice40-{module}"
    source = tools.work / f"{name}.v"
    source.write_text(wrapper(tools, module, chparam), encoding="utf-8")
    netlist = tools.work / f"{name}-netlist.json"
    tools.yosys(name, [
        read()[0], f"hierarchy -check -top {module} {chparam}", "rename -top wrapped_core", f"read_verilog {source}",
        f"synth_ice40 -abc2 -top serial -flatten -json {netlist}", f"tee -o {tools.work / name}.json stat -json"])
    cells = tools.cells(name)
    text = tools.run(["nextpnr-ice40", "--hx8k", "--package", "ct256", "--json", str(netlist), "--seed", "1",
                      "--pcf-allow-unconstrained", "--freq", "60", "--timing-allow-fail"], f"{name}-route")
    frequency = float(re.findall(r"Max frequency for clock '[^']*': ([0-9.]+) MHz", text)[-1])
    used = dict(re.findall(r"(ICESTORM_LC|ICESTORM_RAM):\s+(\d+)/", text))
    return (f"| {what} | {shape.name()} | {used['ICESTORM_RAM']} | {used['ICESTORM_LC']} | "
            f"{count(cells, 'SB_LUT4')} | {count(cells, 'SB_DFF.*')} | {frequency:.1f} MHz |")


def version(command):
    return subprocess.run(command, capture_output=True, text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest shape only; writes nothing")
    options = parser.parse_args()
    for tool in ("yosys", "nextpnr-ice40"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} was not found")
    yosys_version = version(["yosys", "-V"]).stdout.split(" (")[0].strip()
    nextpnr = version(["nextpnr-ice40", "--version"])
    nextpnr_version = re.search(r"Version ([^)\s]+)", nextpnr.stdout + nextpnr.stderr).group(1)

    with tempfile.TemporaryDirectory(prefix="rvma-synthesis-") as directory:
        tools = Tools(pathlib.Path(directory))
        generic_rows = [generic(tools, i, s) for i, s in enumerate(GENERIC[:1] if options.quick else GENERIC)]
        xilinx_rows = [xilinx(tools, i, s) for i, s in enumerate(FPGA[:1] if options.quick else FPGA)]
        routed = [place_and_route(tools, "whole core", "rvma_table", ROUTED, ROUTED.chparam())]
        if not options.quick:
            routed += [place_and_route(tools, what, module, ROUTED_HALF, half_chparam(ROUTED_HALF, module))
                       for what, module in (("lookups alone", "rvma_table_lookup"), ("commands alone", "rvma_table_command"))]

    shape_head = "banks x rows x slots | stash | kicks | latency | protection"
    page = f"""# Translation table, synthesized

Made by `scripts/synthesis` with {yosys_version} and nextpnr-ice40 {nextpnr_version}: do not edit, run it after a change
of `rtl/`. The shapes are parameters of [the core](translation-table-rtl.md); *default* is 4 x 512 x 2 with latency 2.

Every table exists twice, so that lookups never wait for commands: copy A is read by lookups, copy B by commands. Each
memory has one write and one read port; a memory of one write and two read ports would take as many block RAMs.

## Generic gates

`synth -flatten` without mapping of memories, `abc` to gates of two inputs and multiplexers. *Longest path*: gates
between two registers or memories. With latency 1, ten hash memories are read asynchronously and their access comes on
top of it.

| {shape_head} | memories | memory bits | flip-flops | gates | longest path |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(generic_rows)}

## FPGA with large block RAMs

`synth_xilinx -family xc7`. *Longest path*: primitives between two registers or memories, carry chains and multiplexers
counted one each and memories read asynchronously included. LUT RAM: primitives.

| {shape_head} | block RAM 36 Kbit | block RAM 18 Kbit | LUT RAM | LUTs | flip-flops | longest path |
|---|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(xilinx_rows)}

## Placed and routed

`synth_ice40 -abc2`, `nextpnr-ice40 --hx8k --package ct256 --seed 1`, with the ports behind shift registers, which are
counted too. The part has 7680 logic cells and 32 block RAMs of 4 Kbit, of which the hash memories of the whole core take
20: the largest whole core that fits is a tiny one with its entries in flip-flops. So the two halves, each with its own
copy of hash and banks, are placed alone as well, with entries in block RAM. The frequency is the tool's estimate of the
slowest path from register to register; this FPGA family is a slow one (40 nm).

| what | {shape_head} | block RAMs | logic cells | LUTs | flip-flops | frequency |
|---|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(routed)}
"""
    if options.quick:
        print("\n".join([*generic_rows, *xilinx_rows, *routed]))
        return 0
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
