import json
import time

import pytest

from zhat import runs
from zhat.demo import DEMO, demo
from zhat.equivalence import AFFINE, ORTHOGONAL
from zhat.results import from_json


def test_the_demo_keeps_its_promise(tmp_path):
    told = []
    records = demo(tmp_path, progress=lambda *now: told.append(now))
    assert len(records) == 3
    for record in records:
        assert record.learned[AFFINE].value >= 0.98
        assert record.learned[ORTHOGONAL].value >= 0.98
        assert record.raw[AFFINE].value < 0.9
        assert record.learned[AFFINE].chance < 0.05
    assert told[-1][0] == DEMO.budget("demo").recipe.steps
    assert (tmp_path / "report.html").stat().st_size > 20_000
    assert from_json((tmp_path / "results.json").read_text()) == records
    assert json.loads((tmp_path / "results.json").read_text())[0]["kind"] == "Record"
    assert len(list(runs.scan(tmp_path / "runs"))) == 3
    started = time.perf_counter()
    assert demo(tmp_path) == records
    assert time.perf_counter() - started < 5  # a second start shows the finished result


@pytest.mark.slow
def test_no_seed_of_the_demo_gets_stuck(tmp_path):
    for record in demo(tmp_path, seeds=tuple(range(10, 18))):
        assert record.learned[ORTHOGONAL].value >= 0.98, f"seed {record.seed}"
