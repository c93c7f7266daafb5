"""How often `theory.examine` is right about planted worlds: family, intervals, false rejections, violations.

python -m benchmarks.examine                      writes results/theory/examine.json
python -m benchmarks.examine --worlds 20 --fits 20 --uniform 100

Worlds: 200 over spaces, families, dimensions 2 to 50 and 1,000 to 100,000 rows. Fits: more worlds of 1,000 to 5,000
rows for the coverage of the 95% intervals of p and the concentration. A family counts as told where the answer is not
"cannot tell"; normal noise that was projected counts as von Mises-Fisher where its density is within 15% of it.
Uniform: rows without pairs for false rejections at level 5%. Violations: one condition is broken by a stated amount. A
sphere of 100,000 rows is timed.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch

from zhat import randomness
from zhat.dgp import Around, Box, GeneralizedNormal, Laplace, Normal, Real, Sphere, Uniform, VonMisesFisher
from zhat.theory import examine
from zhat.theory.uniformity import in_box, on_sphere

OUT = Path(__file__).parent.parent / "results" / "theory" / "examine.json"
KINDS = (
    "sphere von Mises-Fisher",
    "sphere von Mises-Fisher",
    "sphere projected Laplace",
    "sphere projected normal",
    "box Laplace",
    "box normal",
    "box generalised normal",
    "unbounded Laplace",
    "unbounded normal",
    "unbounded generalised normal",
)
DIMS = (2, 3, 5, 10, 20, 50)
POWERS = {"Laplace": 1.0, "normal": 2.0}


def planted(kind, i, most=100_000):
    """A world of that kind, by a number of its own."""
    random = np.random.default_rng([100, i, KINDS.index(kind)])
    d = int(random.choice(DIMS[:5] if kind.startswith("sphere projected") else DIMS))
    n = round(10 ** random.uniform(3, math.log10(most)))
    n = max(n, 20 * d)
    g = randomness.generator(i, kind)
    space, _, family = kind.partition(" ")
    p, kappa = POWERS.get(family, float(random.choice([1.5, 3.0]))), float(d * 10 ** random.uniform(-0.3, 1.5))
    if space == "sphere":
        z = Uniform(Sphere(d)).sample(n, generator=g)
        scale = float(random.uniform(0.1, 0.5)) / math.sqrt(d)
        law = {
            "von Mises-Fisher": lambda: VonMisesFisher(kappa),
            "projected Laplace": lambda: Around(Laplace(Sphere(d), scale)),
            "projected normal": lambda: Around(Normal(Sphere(d), scale)),
        }[family]()
    else:
        where = Box(d, -1.0, 1.0) if space == "box" else Real(d)
        z = (Uniform(where) if space == "box" else Normal(where)).sample(n, generator=g)
        law = Around(GeneralizedNormal(where, p, float(random.uniform(0.05, 0.4))))
    return (
        {"kind": kind, "space": space, "family": family, "d": d, "n": n, "p": p, "kappa": kappa},
        z,
        law.sample(z, generator=g),
    )


def judged(kind, i, most=100_000):
    """What was found about it, beside what was planted."""
    world, z, near = planted(kind, i, most)
    started = time.perf_counter()
    found = examine(z, near)
    family = found.families[0]
    truth = world["p"] if family.parameter == "exponent" else world["kappa"]
    inside = None
    if family.low is not None and (family.parameter == "exponent" or world["family"] == "von Mises-Fisher"):
        inside = bool(family.low <= truth <= family.high)
    answer = found.findings[[f.condition.endswith(("conditional", "one family")) for f in found.findings].index(True)]
    alike = world["family"] == "projected normal" and answer.holds == "yes"  # within what matters of von Mises-Fisher
    return {
        **world,
        "found_space": "+".join(space.shape for space in found.spaces),
        "found": family.name,
        "right": family.name == world["family"] or (alike and family.name == "von Mises-Fisher"),
        "told": family.name != "cannot tell" and answer.holds != "unknown",
        "inside": inside,
        "uniform": found["uniform marginal"].p_value,
        "answers": {f.condition: f.holds for f in found.findings},
        "seconds": round(time.perf_counter() - started, 2),
    }


def rejected(i):
    """The p-value of uniformity of uniform rows, on a sphere or in a box."""
    random = np.random.default_rng([101, i])
    d, n = int(random.choice(DIMS)), round(10 ** random.uniform(3, 3.7))
    space = Sphere(d) if i % 2 else Box(d)
    z = Uniform(space).sample(n, generator=randomness.generator(i, "uniform")).double().numpy()
    if i % 2:
        return on_sphere(z / np.linalg.norm(z, axis=1, keepdims=True))[0]
    return in_box(z)[0]


def violations(n=10_000):
    """Answers where one condition is broken by a stated amount, three worlds each."""

    def sphere(i, change_z=lambda z: z, kappa=lambda z: 20.0, stretch=None):
        g = randomness.generator(i, "violation")
        z = Sphere(5).project(change_z(Uniform(Sphere(5)).sample(n, generator=g).double()))
        k = torch.as_tensor(kappa(z)).double().expand(n)
        noise = torch.randn(n, 5, generator=g, dtype=torch.float64) / k.sqrt()[:, None]
        if stretch is not None:
            noise = noise * torch.tensor(stretch, dtype=torch.float64)
        return z, Sphere(5).project(z + noise - (noise * z).sum(1, keepdim=True) * z)

    def box(i, change_z=lambda z: z, scale=lambda z: 0.1, mix=None):
        g = randomness.generator(i, "violation")
        z = change_z(torch.rand(n, 4, generator=g, dtype=torch.float64))
        noise = torch.randn(n, 4, generator=g, dtype=torch.float64)
        if mix is not None:
            noise = noise @ torch.linalg.cholesky(torch.full((4, 4), mix) + (1 - mix) * torch.eye(4)).double().T
        near = z + scale(z) * noise
        inside = ((near >= 0) & (near <= 1)).all(1)
        return z[inside], near[inside]

    wide = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.5], dtype=torch.float64)
    cases = {
        "sphere, one axis stretched by 1.2": (
            "uniform marginal",
            lambda i: sphere(i, lambda z: z * torch.tensor([1.2, 1, 1, 1, 1])),
        ),
        "sphere, shifted by 0.2": ("uniform marginal", lambda i: sphere(i, lambda z: z + 0.2 * torch.eye(5)[0])),
        "sphere, concentration 20 exp(0.5 z1)": (
            "one concentration everywhere",
            lambda i: sphere(i, kappa=lambda z: 20 * (0.5 * 5**0.5 * z[:, 0]).exp()),
        ),
        "sphere, noise 1.5 times as wide along one axis": (
            "one concentration in all directions",
            lambda i: sphere(i, stretch=wide),
        ),
        "box, coordinates correlated by 0.3": (
            "uniform marginal",
            lambda i: box(i, lambda z: torch.cat([z[:, :1], 0.3 * z[:, :1] + 0.7 * z[:, 1:2], z[:, 2:]], 1)),
        ),
        "box, density 0.5 + z": ("uniform marginal", lambda i: box(i, lambda z: (2 * z + 0.25).sqrt() - 0.5)),
        "unbounded, scale exp(0.3 z1)": (
            "one concentration everywhere",
            lambda i: _real(i, n, lambda z: (0.3 * z[:, :1]).exp()),
        ),
        "unbounded, scales 1 to 1.6": (
            "one concentration in all directions",
            lambda i: _real(i, n, lambda z: torch.tensor([1.0, 1.2, 1.4, 1.6])),
        ),
        "unbounded, z' around 0.9 z": ("centred at the anchor", lambda i: _real(i, n, lambda z: 0.5, pull=0.9)),
        "unbounded, steps correlated by 0.4": (
            "steps independent in each column",
            lambda i: _real(i, n, lambda z: 0.5, mix=0.4),
        ),
        "unbounded, mixture of two scales": (
            "conditional of one family",
            lambda i: _real(i, n, lambda z: torch.where(torch.rand(n, 1, generator=_g(i)) < 0.1, 2.0, 0.3)),
        ),
    }
    return {
        name: {"condition": condition, "answers": [examine(*make(i))[condition].holds for i in range(100, 103)]}
        for name, (condition, make) in cases.items()
    }


def _g(i):
    return randomness.generator(i, "mixture")


def _real(i, n, scale, pull=1.0, mix=None):
    g = randomness.generator(i, "violation")
    z = torch.randn(n, 4, generator=g)
    noise = torch.randn(n, 4, generator=g)
    if mix is not None:
        noise = noise @ torch.linalg.cholesky(torch.full((4, 4), mix) + (1 - mix) * torch.eye(4)).T
    return z, pull * z + scale(z) * noise


def share(values):
    """A mean with its standard error, in percent."""
    values = [float(v) for v in values]
    mean = sum(values) / len(values)
    return {
        "percent": round(100 * mean, 2),
        "standard_error": round(100 * math.sqrt(max(mean * (1 - mean), 1e-12) / len(values)), 2),
        "of": len(values),
    }


def main(worlds, fits, uniform, out):
    started = time.perf_counter()
    found = []
    for i in range(worlds):
        found.append(judged(KINDS[i % len(KINDS)], i))
        print({k: found[-1][k] for k in ("kind", "d", "n", "found_space", "found", "inside", "seconds")}, flush=True)
    told = [w for w in found if w["told"]]
    more = [judged(k, 10_000 + i, 5_000) for i in range(fits) for k in ("sphere von Mises-Fisher", KINDS[4 + i % 6])]
    covered = {
        name: [w["inside"] for w in found + more if w["inside"] is not None and (w["space"] == "sphere") == sphere]
        for name, sphere in (("concentration", True), ("exponent", False))
    }
    p_values = [rejected(i) for i in range(uniform)]
    z, near = planted_sphere()
    begun = time.perf_counter()
    examine(z, near)
    timed = round(time.perf_counter() - begun, 2)
    result = {
        "worlds": len(found),
        "space_right": share([w["found_space"] == w["space"] for w in found]),
        "told": share([w["told"] for w in found]),
        "family_right_where_told": share([w["right"] for w in told]),
        "by_kind": {
            k: {
                "right": sum(w["right"] for w in found if w["kind"] == k),
                "told": sum(w["told"] for w in told if w["kind"] == k),
                "of": sum(w["kind"] == k for w in found),
            }
            for k in dict.fromkeys(KINDS)
        },
        "intervals_that_hold_the_truth": {name: share(inside) for name, inside in covered.items()},
        "false_rejections_of_uniformity_at_5_percent": share([p < 0.05 for p in p_values]),
        "by_space": {
            name: share([p < 0.05 for p in p_values[start::2]]) for name, start in (("box", 0), ("sphere", 1))
        },
        "false_no_among_answers": share(
            [a == "no" for w in found for c, a in w["answers"].items() if true_there(w, c)]
        ),
        "violations": violations(),
        "seconds_for_a_sphere_of_100000_rows": timed,
        "wrong": [w for w in found if (w["told"] and not w["right"]) or w["found_space"] != w["space"]],
        "seconds": round(time.perf_counter() - started),
    }
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    Path(out).write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "wrong"}, indent=1))


def true_there(world, condition):
    """Whether a condition holds in a planted world."""
    if condition == "uniform marginal":
        return world["space"] != "unbounded"
    if condition == "von Mises-Fisher conditional":
        return world["family"] == "von Mises-Fisher"
    return condition != "one concentration in all directions" or "projected Laplace" not in world["family"]


def planted_sphere():
    """100,000 rows on a sphere in ten dimensions."""
    g = randomness.generator(0, "timed")
    z = Uniform(Sphere(10)).sample(100_000, generator=g)
    return z, VonMisesFisher(20.0).sample(z, generator=g)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--uniform", type=int, default=1500)
    parser.add_argument("--out", default=str(OUT))
    main(**vars(parser.parse_args()))
