"""A row of a published table from Python: what `zhat reproduce zimmermann2021 --row T2.3 --budget smoke` does."""

import tempfile

from zhat.experiment import reproduce
from zhat.papers import paper
from zhat.report.comparison import markdown

(table,) = paper("zimmermann2021").numbered("table", "2")
with tempfile.TemporaryDirectory() as folder:
    for result in reproduce(table, rows=["T2.3"], budget="smoke", seeds=1, out=folder):
        print(markdown(result))
