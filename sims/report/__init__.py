"""The report: captions of figures, the page of one run, and its overview in Markdown. No JAX."""

from sims.report.captions import render_caption
from sims.report.overview import write_overview
from sims.report.page import write_report
from sims.report.seeds import other_seeds

__all__ = ["other_seeds", "render_caption", "write_overview", "write_report"]
