"""How often an audit finds the planted verdict, by rows for each column, columns and noise.

python -m benchmarks.audit_power                       writes results/audit/power.json
python -m benchmarks.audit_power --columns 1024 --rows-per-column 12 --repeats 4
python -m benchmarks.audit_power --kinds unrelated --columns 4 8 16 32 --rows-per-column 15 --noise 0.5 --repeats 250 \\
    --out results/audit/noise.json                     false alarms in 1,000 audits of noise

A planted pair is normal rows and their image under a map of exactly one class, with normal noise in standard deviations
of the image. "nonlinear, 5%" is a rotation with cubes that hold 5% of the variance and have no linear part; "bend of
0.5%, said" counts the sentence about a slight bend. Classes are found where `up_to` is the planted one.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from zhat.audit import audit

CLASSES = (
    "identity",
    "permutation",
    "signed permutation",
    "scaled permutation",
    "orthogonal",
    "similarity",
    "linear",
    "affine",
)
BENT = {"nonlinear, 5%": 0.05, "nonlinear, 2%": 0.02, "bend of 0.5%, said": 0.005}
KINDS = (*CLASSES, *BENT, "unrelated")


def rotation(d, random):
    return np.linalg.qr(random.normal(size=(d, d)))[0]


def planted(kind, n, d, noise, seed):
    random = np.random.default_rng([seed, n, d, KINDS.index(kind)])
    a = random.normal(size=(n, d)) + 0.5 * random.normal(size=d)
    order, signs, sizes = (
        np.eye(d)[np.roll(np.arange(d), 1)],
        np.where(np.arange(d) % 2, 1.0, -1.0),
        np.linspace(0.5, 2, d),
    )
    if kind == "unrelated":
        return a, random.normal(size=(n, d))
    if kind in BENT:
        a = random.normal(size=(n, d))
        b = (np.sqrt(1 - BENT[kind]) * a + np.sqrt(BENT[kind] / 6) * (a**3 - 3 * a)) @ rotation(d, random)
    else:
        maps = {"identity": np.eye(d), "permutation": order, "signed permutation": order * signs}
        maps |= {"scaled permutation": order * signs * sizes}
        maps |= {"orthogonal": rotation(d, random), "similarity": 1.7 * rotation(d, random)}
        maps["linear"] = maps["affine"] = rotation(d, random) * sizes @ rotation(d, random)
        b = a @ maps[kind] + (2 * random.normal(size=d) if kind == "affine" else 0)
    return a, b + noise * b.std() * random.normal(size=(n, d))


def found(kind, n, d, noise, seed):
    result = audit(*planted(kind, n, d, noise, seed))
    if kind in CLASSES:
        return result.up_to is not None and result.up_to.value == kind
    if kind == "bend of 0.5%, said":
        return any("bends slightly" in note for note in result.notes) or result.verdict == "nonlinear"
    return result.verdict == kind.split(",")[0]


def main(columns, per_column, noises, repeats, first, kinds, out):
    out = Path(out)
    kept = json.loads(out.read_text())["cases"] if out.exists() else []
    for d in columns:
        for rows in per_column:
            for noise in noises:
                case = {"columns": d, "rows_per_column": rows, "noise": noise}
                started = time.perf_counter()
                seen = {
                    kind: sum(found(kind, rows * d, d, noise, seed) for seed in range(first, first + repeats))
                    for kind in kinds
                }
                kept = [one for one in kept if any(one[name] != value for name, value in case.items())]
                kept.append({**case, "repeats": repeats, "seen": seen, "seconds": round(time.perf_counter() - started)})
                print(kept[-1], flush=True)
                kept.sort(key=lambda one: (one["columns"], one["rows_per_column"], one["noise"]))
                out.parent.mkdir(parents=True, exist_ok=True)
                each = (
                    " ".join(str(n) for n in sorted({one[k] for one in kept})) for k in ("columns", "rows_per_column")
                )
                command = "python -m benchmarks.audit_power --columns {} --rows-per-column {}".format(*each)
                if len(kinds) < len(KINDS):
                    command += f" --kinds {' '.join(repr(kind) for kind in kinds)} --repeats {repeats} --out {out.name}"
                out.write_text(json.dumps({"command": command, "cases": kept}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--rows-per-column", type=int, nargs="+", default=[12, 30, 100])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.1, 0.5])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1000, help="the first one")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--out", default=str(Path(__file__).parent.parent / "results" / "audit" / "power.json"))
    asked = parser.parse_args()
    main(asked.columns, asked.rows_per_column, asked.noise, asked.repeats, asked.seed, asked.kinds, asked.out)
