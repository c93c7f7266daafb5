"""Every example runs as written and prints what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORDS = {
    "did_it_recover.py": "every condition holds",
    "your_own_arrays.py": "MCC",
    "your_own_images.py": "page: ",
    "your_own_world.py": "affine",
    "many_seeds.py": "7 R2",
    "three_objectives.py": "L1: Latents are recovered up to scaled permutation",
    "a_table_of_a_paper.py": "T2.3",
    "log_to_a_tracker.py": "lines of JSON, for instance {'step': 400, 'R2 up to orthogonal, seed 1': 0.99",
    "score_in_your_own_loop.py": "step 180  loss",
    "save_and_load.py": "own network: torch.Size([5, 3])",
    "recordings.py": "same after loading: True",
    "bounds_beside.py": "up to orthogonal: 0.9",
    "a_series_of_your_own.py": "held-out R2 of the latents from h: z1 0.99",
}


def test_every_example_is_tried():
    assert sorted(WORDS) == sorted(p.name for p in (ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("name", WORDS)
def test_an_example_runs(name, tmp_path):
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert WORDS[name] in ran.stdout
    assert not list(tmp_path.iterdir())
