"""The report: captions of figures, the table of answers and the page of one run. No JAX."""

from sims.report.page import write_report

__all__ = ["write_report"]
