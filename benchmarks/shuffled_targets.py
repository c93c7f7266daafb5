"""How often either test of reizinger2024, Figure 3, finds a target that is not there: the numbers of docs/.

python -m benchmarks.shuffled_targets --data DIR

Targets of all images are shuffled against the features of one network, and read from them as in Figure 3m, with ten
splits. Writes results/reizinger2024/shuffled_targets.json.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import torch
from scipy import stats

from zhat.datasets import ImageNetX
from zhat.datasets.place import VARIABLE
from zhat.metrics import binary

OUT = Path(__file__).parent.parent / "results" / "reizinger2024" / "shuffled_targets.json"
LEVELS = (0.05, 0.05 / 85)  # of one test, and what is left of it for 17 targets and 5 models


def tried(shuffles, splits=10):
    """p-values of both tests, one for each shuffled target."""
    found = ImageNetX("efficientnet_lite0", marks="all").whole()
    scaled = binary.positive_on_average(found.features.numpy())
    order = np.random.default_rng(0)
    ours, by_paper = [], []
    for _ in range(shuffles):
        y = (found.targets.numpy() > 0)[order.permutation(len(found.names))]
        p, accuracy = np.zeros((splits, y.shape[1])), np.zeros((splits, y.shape[1]))
        for seed in range(splits):
            fit, read = binary.split_for_all(y, seed)
            (guesses,) = binary.discriminated(found.features, y, fit, read)
            for i in range(y.shape[1]):
                p[seed, i] = binary.by_shuffling(binary.counts(y[:, i], read, guesses[:, i]))
                accuracy[seed, i] = binary.balanced_logistic(scaled, y[:, i], *binary.split(y[:, i], seed))
        ours += [binary.of_splits(list(one)) for one in p.T]
        varies = accuracy.std(0) > 0
        by_paper += list(np.where(varies, stats.ttest_1samp(accuracy + 0.0, 0.5).pvalue, 1.0))
    return np.array(ours), np.array(by_paper)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--shuffles", type=int, default=6)
    asked = parser.parse_args()
    os.environ[VARIABLE] = asked.data
    began = time.perf_counter()
    ours, by_paper = tried(asked.shuffles)
    kept = {
        "command": "python -m benchmarks.shuffled_targets --data DIR",
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}",
        "seconds": round(time.perf_counter() - began),
        "targets": len(ours),
        "levels": LEVELS,
        "ours": [int((ours <= level).sum()) for level in LEVELS],
        "by_paper": [int((by_paper <= level).sum()) for level in LEVELS],
    }
    OUT.write_text(json.dumps(kept, indent=1) + "\n")
    print(json.dumps(kept))
