#!/usr/bin/env python3
"""Synthesizes the translation table for the shapes of rtl/shapes.txt and writes docs/reference/synthesis.md. Every
figure in its tables comes from the tools' output."""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RTL = ROOT / "rtl"
PAGE = ROOT / "docs/reference/synthesis.md"


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    banks: int
    rows: int
    slots: int
    stash: int
    max_kicks: int
    latency: int
    protection: int

    def columns(self):
        protection = "parity" if self.protection else "none"
        return (f"{self.name} | {self.banks} x {self.rows} x {self.slots} | {self.stash} | {self.max_kicks} | "
                f"{self.latency} | {protection}")

    def parameters(self):
        return {"Banks": self.banks, "Rows": self.rows, "Slots": self.slots, "Stash": self.stash,
                "MaxKicks": self.max_kicks, "Latency": self.latency, "Protection": self.protection}

    def memories(self):
        """Two copies of the banks and of the hash: what the core's header comment says."""
        return 2 * self.banks * self.slots + 2 * 10

    def memory_bits(self):
        row_bits = (self.rows - 1).bit_length()
        return 2 * (self.banks * self.slots * self.rows * (97 + self.protection) + 10 * 256 * self.banks * row_bits)


MOST_SECONDS = 1800  # of processor, for one run of a tool

# iCE40 HX8K: 32 block RAMs of 4 Kbit, of which the hash memories of the whole core take 20. A memory of entries takes 7,
# so one of the four of the smallest core fits too: without it the flip-flops fill the part, and the placer fails.
TINY_IN_BLOCK_RAM = "core.lookups.banks.g_bank[0]*"
TINY = Shape("tiny", 2, 4, 1, 0, 0, 2, 0)
HALF = Shape("half", 2, 256, 1, 4, 8, 2, 0)
HEAD = "shape | banks x rows x slots | stash | kicks | latency | protection"


def shapes():
    lines = [line.split("#")[0].split() for line in (RTL / "shapes.txt").read_text(encoding="utf-8").splitlines()]
    shapes = [Shape(line[0], *map(int, line[1:7]), int(line[7] == "parity")) for line in lines if line]
    return sorted(shapes, key=lambda shape: shape.memory_bits())


def half_parameters(shape, module):
    """Parameters of a module that holds one of the two copies, as rvma_table.v gives them."""
    index = (shape.banks - 1).bit_length() + (shape.rows - 1).bit_length() + max((shape.slots - 1).bit_length(), 1)
    values = dict(shape.parameters(), LocationBits=1 + index)
    if module == "rvma_table_lookup":
        del values["MaxKicks"]
    else:
        del values["Latency"]
        values["UsedBits"] = 10
    return values


def limit_time():
    """A placer that does not come to an end is a failure, not a wait."""
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))


class Tools:
    def __init__(self, work, rtl):
        self.work = work
        self.rtl = rtl

    def run(self, command, name):
        log = self.work / f"{name}.log"
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, preexec_fn=limit_time)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        text = log.read_text(encoding="utf-8")
        if process.returncode != 0:
            sys.exit(f"{command[0]} failed for {name}:\n{text[-2000:]}")
        print(f"{name}: {usage.ru_utime + usage.ru_stime:.0f} s of processor", flush=True)
        return text

    def yosys(self, name, lines):
        script = self.work / f"{name}.ys"
        script.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self.run(["yosys", "-s", str(script)], name)

    def read(self, top="rvma_table", parameters=None):
        files = " ".join(str(file) for file in sorted(self.rtl.glob("*.v")))
        chparam = " ".join(f"-chparam {name} {value}" for name, value in (parameters or {}).items())
        return [f"read_verilog -I{self.rtl} {files}", f"hierarchy -check -top {top} {chparam}", f"rename -top {top}"]

    def cells(self, name):
        """Number of cells by type."""
        modules = json.loads((self.work / f"{name}.json").read_text(encoding="utf-8"))["modules"]
        return next(iter(modules.values()))["num_cells_by_type"]


def count(cells, pattern):
    return sum(number for cell, number in cells.items() if re.fullmatch(pattern, cell))


def refuse(cells, pattern, name, what):
    found = sorted(cell for cell in cells if re.fullmatch(pattern, cell))
    if found:
        sys.exit(f"{name}: {what}: {' '.join(found)}")


def longest(text, name):
    found = re.findall(r"Longest topological path in \S+ \(length=(\d+)\)", text)
    if not found or int(found[-1]) == 0:
        sys.exit(f"{name}: no longest path")
    return int(found[-1])


def generic(tools, shape):
    """Gates and flip-flops; memories are found, counted, and left as they are."""
    name = f"generic-{shape.name}"
    text = tools.yosys(name, [
        *tools.read(parameters=shape.parameters()), "synth -top rvma_table -flatten -run begin:fine", "opt -full",
        "techmap", "opt -fast", "dfflegalize -cell $_DFF_P_ x -cell $_DFFE_PP_ x -cell $_DFF_PN?_ x -cell $_DFFE_PN?P_ x "
        "-cell $_DLATCH_P_ x", "abc -fast -g AND,NAND,OR,NOR,XOR,XNOR,MUX", "opt_clean",
        f"tee -o {tools.work / name}.json stat -json", f"dump -o {tools.work / name}.mem t:$mem_v2",
        "delete t:$mem_v2 t:$_*DFF*", "ltp",
    ])
    cells = tools.cells(name)
    refuse(cells, r"\$.*(latch|LATCH|SR).*", name, "latches")
    refuse(cells, r"\$(?!mem_v2$)[^_].*", name, "cells that are no gates")
    dump = (tools.work / f"{name}.mem").read_text(encoding="utf-8")
    sizes = [int(size) for size in re.findall(r"parameter \\SIZE (\d+)", dump)]
    widths = [int(width) for width in re.findall(r"parameter \\WIDTH (\d+)", dump)]
    bits = sum(size * width for size, width in zip(sizes, widths))
    if (len(sizes), bits) != (shape.memories(), shape.memory_bits()):
        sys.exit(f"{name}: {len(sizes)} memories of {bits} bits, not {shape.memories()} of {shape.memory_bits()}")
    flip_flops = count(cells, r"\$_S?DFF.*_")
    gates = count(cells, r"\$_(AND|NAND|OR|NOR|XOR|XNOR|MUX|NOT)_")
    return f"| {shape.columns()} | {len(sizes)} | {bits:,} | {flip_flops} | {gates} | {longest(text, name)} |"


def xilinx(tools, shape):
    name = f"xilinx-{shape.name}"
    text = tools.yosys(name, [
        *tools.read(parameters=shape.parameters()), "synth_xilinx -family xc7 -top rvma_table -flatten -noiopad -noclkbuf",
        f"tee -o {tools.work / name}.json stat -json", "delete t:FD* t:RAMB*", "ltp"])
    cells = tools.cells(name)
    refuse(cells, r"\$.*", name, "cells that are not mapped")
    refuse(cells, r"LD[CP]E.*", name, "latches")
    return (f"| {shape.columns()} | {count(cells, 'RAMB36E1')} | {count(cells, 'RAMB18E1')} | {count(cells, 'RAM[0-9]+[XM].*')} "
            f"| {count(cells, 'LUT[0-9]')} | {count(cells, 'FD[RSCP]E(_1)?')} | {longest(text, name)} |")


def wrapper(tools, module, parameters):
    """Verilog around `module` with its inputs from one shift register and its outputs through another, so that it fits
    the pins of a small FPGA."""
    ports_file = tools.work / "ports.json"
    tools.yosys("ports", [*tools.read(module, parameters), "proc", f"write_json {ports_file}"])
    ports = json.loads(ports_file.read_text(encoding="utf-8"))["modules"][module]["ports"]
    widths = {"input": 0, "output": 0}
    connections = [".clk_i(clk_i)", ".rst_ni(rst_ni)"]
    for name, port in ports.items():
        if name not in ("clk_i", "rst_ni"):
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


def place_and_route(tools, what, module, shape, parameters, in_block_ram=""):
    """`in_block_ram`: memories that go there although Yosys finds them too small."""
    name = f"ice40-{module}"
    source = tools.work / f"{name}.v"
    source.write_text(wrapper(tools, module, parameters), encoding="utf-8")
    netlist = tools.work / f"{name}-netlist.json"
    synth = "synth_ice40 -abc2 -top serial -flatten"
    tools.yosys(name, [
        *tools.read(module, parameters)[:2], "rename -top wrapped_core", f"read_verilog {source}",
        f"{synth} -run begin:map_ram",
        *([f'setattr -set ram_style "block" t:$mem_v2 serial/{in_block_ram} %i'] if in_block_ram else []),
        f"{synth} -run map_ram: -json {netlist}", f"tee -o {tools.work / name}.json stat -json"])
    cells = tools.cells(name)
    refuse(cells, r"\$.*", name, "cells that are not mapped")
    text = tools.run(["nextpnr-ice40", "--hx8k", "--package", "ct256", "--json", str(netlist), "--seed", "1",
                      "--pcf-allow-unconstrained", "--freq", "60", "--timing-allow-fail"],
                     f"{name}-route")
    frequencies = re.findall(r"Max frequency for clock '[^']*': ([0-9.]+) MHz", text)
    if not frequencies:
        sys.exit(f"{name}: no frequency")
    used = dict(re.findall(r"(ICESTORM_LC|ICESTORM_RAM):\s+(\d+)/", text))
    return (f"| {what} | {shape.columns().partition(' | ')[2]} | {used['ICESTORM_RAM']} | {used['ICESTORM_LC']} | "
            f"{count(cells, 'SB_LUT4')} | {count(cells, 'SB_DFF.*')} | {float(frequencies[-1]):.1f} MHz |")


def version(command, pattern):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return re.search(pattern, done.stdout + done.stderr).group(1)


def table(head, rows):
    return "\n".join([f"| {head} |", "|---" * (head.count("|") + 1) + "|", *rows])


def page(generic_rows, xilinx_rows, routed_rows):
    yosys = version(["yosys", "-V"], r"(Yosys \S+)")
    nextpnr = version(["nextpnr-ice40", "--version"], r"Version ([^)\s]+)")
    return f"""# The Verilog table, synthesized

Made by `scripts/synthesis` with {yosys} and nextpnr-ice40 {nextpnr}: do not edit, run it after a change of `rtl/`. The
shapes are those of `rtl/shapes.txt`, which are parameters of [the core](units/translation-table-rtl.md).

Every table exists twice, so that lookups never wait for commands: copy A is read by lookups, copy B by commands. Each
memory has one write and one read port; a memory of one write and two read ports would take as many block RAMs.

## Generic gates

`synth -flatten` with memories left as they are, `abc` to gates of two inputs and multiplexers. *Longest path* (`ltp`):
gates between two registers or memories. With latency 1, ten hash memories are read asynchronously; their access comes
on top of it. The script refuses a latch, and any other number or size of memories than the core's header states.

{table(HEAD + " | memories | memory bits | flip-flops | gates | longest path", generic_rows)}

## FPGA with large block RAMs

`synth_xilinx -family xc7`. *Longest path* (`ltp`): primitives between two registers or block RAMs, each carry chain
element and multiplexer counted as one, LUT RAM included. It is a count of levels, not a delay. The script refuses a
latch and a cell that is not mapped.

{table(HEAD + " | block RAM 36 Kbit | block RAM 18 Kbit | LUT RAM | LUTs | flip-flops | longest path", xilinx_rows)}

## Placed and routed

`synth_ice40 -abc2`, then `nextpnr-ice40 --hx8k --package ct256 --seed 1`: Lattice iCE40 HX8K, 7680 logic cells and 32
block RAMs of 4 Kbit. The ports are behind shift registers, which are counted too. The hash memories of a whole core
take 20 of the block RAMs, a memory of entries 7, whatever its rows: of the four memories of the smallest core one, that
of bank 0 in copy A, is made to go there (`ram_style`), the other three are flip-flops. Larger cores do not fit this part.
So the two halves, each with its own copy of hash and banks, are also placed and routed alone, with more rows. The
frequency is nextpnr's estimate of the slowest path from register to register; pins are not constrained.

{table("what | " + HEAD.partition(" | ")[2] + " | block RAMs | logic cells | LUTs | flip-flops | frequency", routed_rows)}
"""


# Wrong cores, and what must be said of them.
WRONG = {
    "latch": ("rvma_table_stash.v", "        command_value = {ValueBits{1'b0}};\n", "", "latches"),
    "memory": ("rvma_table_banks.v", ".write_i(write_all_i || (write_i && write_bank_i == Bank && write_slot_i == Slot))",
               ".write_i(1'b0)", "memories of"),
}


def refused(tools, wrong):
    """Whether the smallest shape of a core that is made wrong is refused for the right reason."""
    file, old, new, reason = WRONG[wrong]
    rtl = tools.work / "rtl"
    shutil.copytree(RTL, rtl)
    text = (rtl / file).read_text(encoding="utf-8")
    if text.count(old) != 1:
        sys.exit(f"{file} does not have once: {old}")
    (rtl / file).write_text(text.replace(old, new), encoding="utf-8")
    try:
        generic(Tools(tools.work, rtl), shapes()[0])
    except SystemExit as refusal:
        print(refusal)
        return reason in str(refusal)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest shape, not routed; writes nothing")
    parser.add_argument("--wrong", choices=WRONG, help="the smallest shape of a wrong core: 0 if it is refused")
    parser.add_argument("--page", type=pathlib.Path, default=PAGE, help="write this file")
    options = parser.parse_args()
    quick = options.quick or options.wrong
    for tool in ("yosys",) if quick else ("yosys", "nextpnr-ice40"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} was not found")

    with tempfile.TemporaryDirectory(prefix="rvma-synthesis-") as directory:
        tools = Tools(pathlib.Path(directory), RTL)
        if options.wrong:
            return 0 if refused(tools, options.wrong) else 1
        generic_rows = [generic(tools, shape) for shape in (shapes()[:1] if quick else shapes())]
        xilinx_rows = [xilinx(tools, shape) for shape in (shapes()[:1] if quick else shapes())]
        if quick:
            print("\n".join(generic_rows + xilinx_rows))
            return 0
        routed_rows = [place_and_route(tools, "whole core", "rvma_table", TINY, TINY.parameters(), TINY_IN_BLOCK_RAM)]
        for what, module in (("lookups alone", "rvma_table_lookup"), ("commands alone", "rvma_table_command")):
            routed_rows.append(place_and_route(tools, what, module, HALF, half_parameters(HALF, module)))
    options.page.write_text(page(generic_rows, xilinx_rows, routed_rows), encoding="utf-8")
    print(f"{options.page} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
