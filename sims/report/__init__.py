"""The report: captions of figures, the page of one run, and its overview in Markdown. No JAX."""

from sims.report.captions import render_caption
from sims.report.overview import write_overview
from sims.report.page import write_report

__all__ = ["render_caption", "write_overview", "write_report"]
