"""All CPU benchmarks, written to results/benchmarks.json: python -m benchmarks."""

import json
import platform
from pathlib import Path

import torch

from benchmarks import scores, training_step, vmf_sampling

out = {
    "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}",
    "vmf_sampling": vmf_sampling.main(),
    "scores": scores.main(),
    "training_step": training_step.main(),
}
path = Path(__file__).parent.parent / "results" / "benchmarks.json"
path.write_text(json.dumps(out, indent=1) + "\n")
print(f"written to {path}")
