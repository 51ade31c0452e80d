#!/usr/bin/env python3
"""Proves the properties of table_properties.v for small shapes of the core, shows that they can fail and that their
situations are reached. Prints a table; exit 1 on any surprise. docs/how-to/prove-the-verilog-table.md tells more."""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from arguments import at_least  # noqa: E402  (found only now)

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RTL = ROOT / "rtl"
PAGE = ROOT / "docs/how-to/prove-the-verilog-table.md"
RESULTS = "## Results\n"  # the page's last section
ABSTRACTED = {"rvma_table_memory.v", "rvma_table_fill.v", "rvma_table_hash.v"}
PROPERTIES = {
    1: "no false hit",
    2: "a stored key is found in every cycle",
    3: "fixed latency",
    4: "handshake",
    5: "full changes nothing",
    6: "answers of commands",
    7: "between commands",
}


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    latency: int
    stash: int = 1
    protection: int = 0
    banks: int = 2
    rows: int = 4
    slots: int = 1
    max_kicks: int = 2

    def parameters(self):
        return {
            "Banks": self.banks, "Rows": self.rows, "Slots": self.slots, "Stash": self.stash,
            "MaxKicks": self.max_kicks, "Latency": self.latency, "Protection": self.protection,
        }

    def step_depth(self, after=None):
        """The longest command, then Latency cycles or `after`, at the end of which p4_step_ends is due."""
        longest = 5 + 4 * self.max_kicks + self.banks * self.slots * (self.max_kicks + 1)
        return max(longest, 1 + self.rows) + (after or self.latency)


def probes(shape):
    memories = [f"banks.g_bank[{b}].g_slot[{s}].memory.words" for b in range(shape.banks) for s in range(shape.slots)]
    memories.reverse()
    return {
        "watched_key": "core.filler.watched_key",
        "watched_rows": "core.filler.watched_rows",
        "fill_busy": "core.fill_busy",
        "state": "core.commands.state_q",
        "sweep": "core.commands.sweep_q",
        "sweep_row": "core.commands.sweep_row_q",
        "entries": "core.commands.entries_q",
        "running": "core.commands.running_q",
        "clear": "core.clear",
        "write": "core.write",
        "write_all": "core.write_all",
        "writes": "core.writes",
        "writes_all": "core.writes_all",
        "locations": "core.write_locations",
        "words": "core.write_words",
        "stash": "core.stash.g_stash.words_q",
        "a": ",".join(f"core.lookups.{memory}" for memory in memories),
        "b": ",".join(f"core.commands.{memory}" for memory in memories),
    }


# Keys are only compared and values only copied, so a proof for narrow ones holds for wide ones: the manual tells why.
WIDTHS = {"MAILBOX_BITS": 3, "PID_BITS": 1, "VALUE_BITS": 1}


def narrow_rtl(work):
    """A copy of the core's files whose words are narrow; returns its directory."""
    copy = work / "rtl"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for file in [*RTL.glob("*.v"), *RTL.glob("*.vh")]:
        shutil.copy(file, copy)
    constants = copy / "rvma_table_constants.vh"
    widths = dict(WIDTHS)
    widths["KEY_BITS"] = widths["MAILBOX_BITS"] + widths["PID_BITS"]
    widths["VALID_BIT"] = widths["KEY_BITS"] + widths["VALUE_BITS"]
    widths["PARITY_BIT"] = widths["VALID_BIT"] + 1
    text = constants.read_text(encoding="utf-8")
    for name, width in widths.items():
        text, count = re.subn(rf"(`define RVMA_TABLE_{name}) \d+", rf"\1 {width}", text)
        if count != 1:
            sys.exit(f"{constants}: RVMA_TABLE_{name} is not there once")
    constants.write_text(text, encoding="utf-8")
    return copy


def run(command, log):
    """Returns the exit status and the seconds of processor time: those of the clock say little on a busy machine."""
    with open(log, "w", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return process.returncode, usage.ru_utime + usage.ru_stime


def run_yosys(work, script):
    """Returns the exit status, the seconds and the log."""
    (work / "model.ys").write_text("\n".join(script) + "\n", encoding="utf-8")
    log = work / "yosys.log"
    status, seconds = run(["yosys", "-q", "-s", str(work / "model.ys")], log)
    return status, seconds, log.read_text(encoding="utf-8")


def read_core(rtl, top, parameters, more=(), define=""):
    """Commands that leave `top` flat, with the abstract parts in place of the core's own."""
    files = [str(f) for f in sorted(rtl.glob("*.v")) if f.name not in ABSTRACTED]
    files += [str(HERE / f) for f in ("abstract_memory.v", "abstract_fill.v", "abstract_hash.v", *more)]
    chparam = " ".join(f"-chparam {name} {value}" for name, value in parameters.items())
    return [f"read_verilog -formal {define} -I{rtl} {' '.join(files)}", f"hierarchy -check -top {top} {chparam}",
            f"rename -top {top}", "proc", "flatten"]


def synthesize(work, rtl, task):
    """Writes model.aig or model.smt2; returns the seconds."""
    parameters = dict(task.shape.parameters(), FromReset=int(task.from_reset), Only=task.only)
    define = "-DFORMAL_CONCRETE_HASH" if task.concrete_hash else ""
    script = [
        *read_core(rtl, "table_properties", parameters, ["table_properties.v"], define),
        "select -module table_properties",
        *[f"connect -set probe_{name} {signal}" for name, signal in probes(task.shape).items()],
        "select -clear", "check -assert", "opt -full", "async2sync", "dffunmap", "memory_map",
        "setundef -undriven -anyseq",
    ]
    if task.engine == "abc":
        script += ["chformal -cover -remove", "techmap", "opt_clean", "dffunmap", "simplemap", "abc -g AND -fast",
                   "opt_clean", f"write_aiger -zinit -map {work / 'model.map'} {work / 'model.aig'}"]
    else:
        script += ["opt_clean", f"write_smt2 -wires {work / 'model.smt2'}"]
    status, seconds, log = run_yosys(work, script)
    if status != 0:
        sys.exit(f"{work / 'yosys.log'}:\n{log[-2000:]}")
    return seconds


@dataclasses.dataclass
class Task:
    what: str
    shape: Shape
    depth: int
    from_reset: bool
    expected: str  # "proved" | "fails" | "reached"
    only: int = 0
    concrete_hash: bool = False
    engine: str = "abc"  # "abc" | "z3" | "structure"
    edits: tuple = ()  # of the broken core: (file, from, to)
    outcome: str = ""
    seconds: float = 0.0

    def line(self):
        mark = "" if self.passed() else "   <-- SURPRISE"
        return f"{self.what:112} {self.shape.name:8} {self.depth:5} {self.seconds:7.1f} s  {self.outcome}{mark}"

    def row(self):
        return f"| {self.what} | {self.shape.name} | {self.depth} | {self.seconds:.0f} | {self.outcome} |"

    def passed(self):
        return self.outcome.split()[0] == self.expected


def broken_rtl(task, work):
    """The core's files with the task's edits."""
    rtl = narrow_rtl(work)
    for file, old, new in task.edits:
        text = (rtl / file).read_text(encoding="utf-8")
        if text.count(old) != 1:
            sys.exit(f"broken core '{task.what}': {file} does not have once: {old}")
        (rtl / file).write_text(text.replace(old, new), encoding="utf-8")
    return rtl


def execute(task, work):
    work.mkdir(parents=True, exist_ok=True)
    rtl = broken_rtl(task, work)
    if task.engine == "structure":
        return no_path_from_inputs(task, work, rtl)
    task.seconds = synthesize(work, rtl, task)
    task.seconds += bmc3(task, work) if task.engine == "abc" else smtbmc(task, work)
    return task


def bmc3(task, work):
    log = work / "abc.log"
    # fold: assumptions become part of what is proved.
    _, seconds = run(["yosys-abc", "-c", f"read_aiger {work / 'model.aig'}; fold; strash; bmc3 -F {task.depth + 1}"], log)
    text = log.read_text(encoding="utf-8")
    asserted = re.search(r"Output \d+ of miter \S+ was asserted in frame (\d+)", text)
    clean = re.search(r"No output asserted in (\d+) frames", text)
    if asserted:
        task.outcome = f"{'reached' if task.only > 100 else 'fails'} in cycle {asserted.group(1)}"
    elif clean and int(clean.group(1)) > task.depth:
        task.outcome = "proved"
    else:
        task.outcome = f"undecided: {text[-300:]}"
    return seconds


def smtbmc(task, work):
    log = work / "smtbmc.log"
    # unroll: without it z3 does not come to an end. noincr: each cycle anew is faster for proofs.
    mode = ["-c"] if task.expected == "reached" else ["--noincr"]
    _, seconds = run(["yosys-smtbmc", "-s", task.engine, "--unroll", *mode, "--noprogress", "-t", str(task.depth + 1),
                      str(work / "model.smt2")], log)
    text = log.read_text(encoding="utf-8")
    failed = re.search(r"Assert failed in \w+: (\w+)", text)
    cycles = [int(cycle) for cycle in re.findall(r"(?:Reached cover statement at|Checking assertions in) .*?step (\d+)", text)]
    if "Status: PASSED" in text and task.expected == "reached":
        task.outcome = f"reached in cycles {min(cycles)} to {max(cycles)}"
    elif "Status: PASSED" in text:
        task.outcome = "proved"
    elif failed:
        task.outcome = f"fails in cycle {max(cycles)}: {failed.group(1)}"
    else:
        task.outcome = f"undecided: {text[-1000:]}"
    return seconds


def no_path_from_inputs(task, work, rtl):
    """No output of the core depends on an input of the same cycle: of what is left without its registers, no output is
    connected to an input."""
    status, task.seconds, log = run_yosys(work, [
        *read_core(rtl, "rvma_table", task.shape.parameters()), "opt_clean",
        "select -assert-min 50 t:$*dff*", "delete t:$*dff*",
        # clk_i and rst_ni apart.
        "select -assert-none o:* %ci* i:lookup_* i:command_* i:reset_seed_i %u %u %i",
    ])
    task.outcome = "proved" if status == 0 else "fails" if "selection is not empty" in log else f"undecided: {log[-300:]}"
    return task


COMMAND, STASH, LOOKUP = "rvma_table_command.v", "rvma_table_stash.v", "rvma_table_lookup.v"
# What is wrong, the property that must find it, and the edits.
BROKEN = (
    ("a row compared without its pid bits hits", 1,
     (("rvma_table_check.v", "word_i[`RVMA_TABLE_KEY_BITS-1:0] == key_i",
       "word_i[`RVMA_TABLE_MAILBOX_BITS-1:0] == key_i[`RVMA_TABLE_MAILBOX_BITS-1:0]"),)),
    ("an erased entry stays in copy A", 1,
     (("rvma_table.v", ".write_i(writes[ReadDelay+1] && !bank_write_location[LocationBits-1])",
       ".write_i(writes[ReadDelay+1] && !bank_write_location[LocationBits-1] && "
       "write_words[(ReadDelay+1)*WordBits+`RVMA_TABLE_VALID_BIT])"),)),
    ("a lookup hits while the table is swept", 1,
     ((LOOKUP, "assign hit_o = good && |select_hits;", "assign hit_o = select_valid && |select_hits;"),)),
    ("no forwarding of a write that meets the read", 2,
     ((LOOKUP, "word = forward_q ? forward_word_q", "word = 1'b0 ? forward_word_q"),)),
    ("the last entry of a path is not copied before it is overwritten", 2,
     ((COMMAND, "else if (first_write_q) write_word_o = in_hand_q;", "else if (first_write_q) write_word_o = word;"),)),
    ("the stash is not looked at", 2,
     ((STASH, "assign lookup_hit_o = |lookup_hits;", "assign lookup_hit_o = 1'b0;"),)),
    ("a seed is loaded into a table with entries", 2,
     ((COMMAND, "if (entries_q == 32'd0) begin", "if (1'b1) begin"),)),
    ("a lookup waits while a command writes", 3,
     ((LOOKUP, "assign valid_o = select_valid;", "assign valid_o = select_valid && !write_i;"),)),
    ("an answer is valid for two cycles", 4,
     ((COMMAND, "answer_valid_q <= answer_valid_d;",
       "answer_valid_q <= answer_valid_d || (answer_valid_q && answer_status_q == `RVMA_TABLE_FULL);"),)),
    ("ready is low in the cycle of an answer", 4,
     ((COMMAND, "assign ready_o = idle && !clear_i;", "assign ready_o = idle && !clear_i && !answer_valid_q;"),)),
    ("an insertion with a path of most kicks never ends", 4,
     ((COMMAND, "is_insert && !(path_empty && found) && !bank_empty && path_full", "1'b0"),)),
    ("an insertion all of whose candidates are on its path never ends", 4,
     ((COMMAND, ": state_q == StPick && on_path && last_try;", ": 1'b0;"),)),
    ("a loaded seed is never answered", 4,
     ((COMMAND, "(!fill_busy_i || fill_last_i);", "(!fill_busy_i || fill_last_i) && !running_q;"),)),
    ("a search writes before it knows", 5,
     ((COMMAND, "assign write_o = state_q == StWrite ||", "assign write_o = state_q == StWrite || path_push ||"),)),
    ("full clears a row", 5,
     ((COMMAND, "assign write_all_o = sweep_q;",
       "assign write_all_o = sweep_q || (answer_valid_d && answer_status_d == `RVMA_TABLE_FULL);"),)),
    ("an existing key is inserted again", 6,
     ((COMMAND, "wire found = bank_hit || stash_hit_i;", "wire found = bank_hit;"),)),
    ("an entry is moved to the wrong row", 7,
     ((COMMAND, "if (state_q == StRead) rows_q <= hashed_rows;",
       "if (state_q == StRead) rows_q <= path_empty ? hashed_rows : ~hashed_rows;"),)),
)

# What is reached, and in how many cycles from reset; None: in one command from a state between commands, as the
# insertions that fill the table first are too many for a search.
SITUATIONS = {
    101: ("a lookup hits", 14),
    102: ("an insertion kicks", 30),
    103: ("an insertion kicks twice", None),
    104: ("a lookup hits while its entry is in two places", None),
    105: ("an insertion into the stash", None),
    106: ("full", None),
    107: ("exists", 20),
    108: ("an entry is erased", 20),
    109: ("a value is updated", 20),
    110: ("busy", 20),
    111: ("a seed is loaded", 12),
    112: ("a flush of a table with entries", 20),
}


STEP = "prove: all, one step of the induction over commands"
RESET = "prove: all, from reset"
SHAPES = (Shape("latency1", 1), Shape("latency2", 2, stash=2, protection=1), Shape("latency3", 3, max_kicks=3))


def quick_tasks():
    shape = SHAPES[0]
    return [Task(STEP, shape, shape.step_depth(), False, "proved"), Task(RESET, shape, 14, True, "proved")]


def all_tasks():
    tasks = []
    for shape in SHAPES:
        tasks.append(Task(STEP, shape, shape.step_depth(), False, "proved"))
        tasks.append(Task(RESET, shape, 19, True, "proved"))
        tasks.append(Task("prove: 4 no output depends on an input of its cycle", shape, 0, False, "proved", engine="structure"))
    # Again by another engine, which needs long for a longer step.
    shape = Shape("one kick", 1, max_kicks=1)
    tasks.append(Task(f"{STEP}; z3", shape, shape.step_depth(), False, "proved", engine="z3"))
    shape = SHAPES[0]
    tasks.append(Task(f"{RESET}; z3", shape, 14, True, "proved", engine="z3"))
    tasks.append(Task("reach: all that follows, as covers; z3", shape, shape.step_depth(7), False, "reached", 100,
                      concrete_hash=True, engine="z3"))
    tasks.append(Task("broken: any: the stash is not looked at; z3", shape, shape.step_depth(), False, "fails", engine="z3",
                      edits=((STASH, "assign lookup_hit_o = |lookup_hits;", "assign lookup_hit_o = 1'b0;"),)))
    for what, only, edits in BROKEN:
        # Candidates that are on the path already need three kicks.
        shape = SHAPES[2] if "candidates" in what else SHAPES[0]
        tasks.append(Task(f"broken: {only} {PROPERTIES[only]}: {what}", shape, shape.step_depth(7), False, "fails", only,
                          edits=edits))
    tasks.append(Task("broken: 4 handshake: the sweep after reset never ends", SHAPES[0], 14, True, "fails", 4,
                      edits=((COMMAND, "else if (sweep_row_q == LastRow) sweep_q <= 1'b0;", ""),)))
    tasks.append(Task("broken: 4 handshake: ready depends on valid", SHAPES[0], 0, False, "fails", engine="structure",
                      edits=((COMMAND, "assign ready_o = idle && !clear_i;", "assign ready_o = idle && valid_i;"),)))
    for only, (what, depth) in SITUATIONS.items():
        tasks.append(Task(f"reach: {what}", SHAPES[0], depth or SHAPES[0].step_depth(7), depth is not None, "reached",
                          only, concrete_hash=True))
    return tasks


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="tasks whose name contains this")
    parser.add_argument("--quick", action="store_true", help="proofs of one shape, the one from reset of a smaller depth")
    parser.add_argument("--write", action="store_true", help="write the results into the manual, if none is a surprise")
    parser.add_argument("--jobs", type=at_least(1), default=2, help="tasks at a time (2)")
    options = parser.parse_args()
    if options.write and (options.quick or options.only):
        parser.error("--write is for the whole")
    for tool in ("yosys", "yosys-abc") if options.quick else ("yosys", "yosys-abc", "yosys-smtbmc", "z3"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} was not found")

    tasks = quick_tasks() if options.quick else all_tasks()
    tasks = [task for task in tasks if options.only in task.what + task.shape.name]
    if not tasks:
        sys.exit("no such task")

    print(f"{'task':112} {'shape':8} depth  processor  outcome")
    with tempfile.TemporaryDirectory(prefix="rvma-formal-") as directory:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            futures = [pool.submit(execute, task, pathlib.Path(directory) / str(i)) for i, task in enumerate(tasks)]
            for future in concurrent.futures.as_completed(futures):
                print(future.result().line(), flush=True)
    surprises = [task for task in tasks if not task.passed()]
    print(f"{len(tasks)} tasks, {sum(task.seconds for task in tasks):.0f} s of processor, {len(surprises)} surprises")
    if options.write and not surprises:
        write_results(tasks)
    return 1 if surprises else 0


def write_results(tasks):
    version = subprocess.run(["yosys", "-V"], capture_output=True, text=True, check=True).stdout.split(" (")[0]
    head = PAGE.read_text(encoding="utf-8").partition(RESULTS)[0]
    rows = "\n".join(task.row() for task in tasks)
    PAGE.write_text(f"""{head}{RESULTS}
Made by `scripts/formal --write` with {version}: do not edit. {len(tasks)} tasks, {sum(task.seconds for task in tasks):.0f} s of processor.

| task | shape | depth | seconds | outcome |
|---|---|---|---|---|
{rows}
""", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
