"""Pages: one self-contained HTML file from what a record holds."""

from zhat.report.html import render, write

__all__ = ["write", "render"]
