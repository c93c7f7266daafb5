"""Pages and tables from what records and results hold."""

from zhat.report.audit import write_audit
from zhat.report.comparison import write_comparison
from zhat.report.decode import write_decode
from zhat.report.examined import write_examined
from zhat.report.html import render, write

__all__ = ["write", "render", "write_comparison", "write_audit", "write_decode", "write_examined"]
