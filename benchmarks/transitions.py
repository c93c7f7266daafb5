"""How sparse natural transitions are: exponents of the steps of pedestrians, KITTI Masks.

python -m benchmarks.transitions --data DIR      writes results/zimmermann2021/transitions.json and transitions.svg
"""

import argparse
import json
import math
import os
from dataclasses import asdict
from pathlib import Path

import torch

from zhat.datasets import KITTIMasks
from zhat.datasets.place import VARIABLE
from zhat.report import figures
from zhat.theory import fit_exponent

OUT = Path(__file__).parent.parent / "results" / "zimmermann2021"
FACTORS = ("vertical place", "horizontal place", "area")
LAGS = (1, 5, 20)


def density(s, p):
    """The log-density, base 10, of a generalised normal distribution with standard deviation 1."""
    scale = math.sqrt(math.gamma(1 / p) / math.gamma(3 / p))
    return (math.log(p / (2 * scale * math.gamma(1 / p))) - (abs(s) / scale) ** p) / math.log(10)


def chart(steps, p, name):
    """The log-density of standardised steps beside the fitted, the Laplace and the normal distribution."""
    size = ((steps - steps.median()) / steps.std()).abs()
    edges = torch.linspace(0, 6, 49)
    counts = torch.histc(size, 48, 0, 6)
    middle = ((edges[1:] + edges[:-1]) / 2).tolist()
    seen = [(m, math.log10(float(c) / len(size) / 2 / 0.125)) for m, c in zip(middle, counts, strict=True) if c]
    series = [("steps", *zip(*seen, strict=True))]
    for title, q in ((f"p = {p:.2f}", p), ("Laplace", 1.0), ("normal", 2.0)):
        shown = [(m, d) for m in middle if (d := density(m, q)) > -4.5]
        series.append((title, *zip(*shown, strict=True)))
    return figures.lines(series, f"step of the {name}, in standard deviations", "log10 density", y_range=(-4.5, 1.0))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="the folder of recorded data; the variable ZHAT_DATA if not given")
    data = parser.parse_args().data
    if data:
        os.environ[VARIABLE] = data
    out = {}
    charts = []
    for lag in LAGS:
        steps, track = KITTIMasks(lag, part="all").transitions()
        for j, name in enumerate(FACTORS):
            fit = fit_exponent(steps[:, j], groups=track, resolution=1.0 if name == "area" else 0.0)
            out[f"{name}, {lag} frames"] = asdict(fit)
            print(f"{name:<17} {lag:>2} frames later: {fit}", flush=True)
            if lag == 1:
                charts.append((chart(steps[:, j], fit.value, name), f"{name}: exponent {fit.value:.2f}."))
    OUT.joinpath("transitions.json").write_text(json.dumps(out, indent=1) + "\n")
    OUT.joinpath("transitions.svg").write_text(figures.alone(figures.panels(charts)))
    print(f"written to {OUT}")


if __name__ == "__main__":
    main()
