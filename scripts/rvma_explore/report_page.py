"""The report as one HTML page: no network, no other file, and all of it readable without scripts but for sweeps."""

from pathlib import Path

from . import report_runs, report_sweep
from .report_charts import escape

HERE = Path(__file__).resolve().parent


def page(title, runs, comparisons, sweeps):
    """`runs`: Run, `comparisons`: Comparison, `sweeps`: Sweep, as report_load gives them."""
    sections = []  # (anchor, heading, html)
    if runs:
        sections.append(("summary", "Summary", report_runs.summary(runs)))
    if len(runs) > 1:
        sections.append(("comparison", "Comparison", report_runs.comparison(runs)))
    for number, one in enumerate(comparisons):
        sections.append((f"protocols{number}", f"RVMA and RDMA: {one.name}", report_runs.protocols(one)))
    for number, sweep in enumerate(sweeps):
        sections.append((f"sweep{number}", f"Sweep: {sweep.name}", report_sweep.section(sweep, number)))
    for number, run in enumerate(runs):
        sections.append((f"run{number}", run.name, report_runs.details(run, number)))
    links = "".join(f'<li><a href="#{anchor}">{escape(heading)}</a></li>' for anchor, heading, _ in sections)
    body = "".join(f'<section id="{anchor}"><h2>{escape(heading)}</h2>{text}</section>'
                   for anchor, heading, text in sections)
    style = (HERE / "report.css").read_text(encoding="utf-8")
    script = (HERE / "report.js").read_text(encoding="utf-8")
    return ("<!DOCTYPE html>\n"
            f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>\n{style}</style></head><body>"
            f'<header><h1>{escape(title)}</h1><nav aria-label="Sections"><ul>{links}</ul></nav></header>'
            f'<main>{body}</main><div id="tip" role="tooltip" hidden></div>'
            f"<script>\n{script}</script></body></html>\n")
