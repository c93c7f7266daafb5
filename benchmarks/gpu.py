"""The training step on a GPU: correctness first, then milliseconds, bytes and the floor they are measured against.

    python -m benchmarks.gpu [--no-check] [--tiles] [--out FILE]
    python -m benchmarks.gpu --against results/zimmermann2021/gpu.json      # whole steps in bf16, beside an earlier run

B = 6144, d = 10, five seeds stacked, the papers' encoder; then batch normalisation, by our kernels and by torch. Prints
a table; --tiles also times tile shapes. The check compiles some forty kernels, half a minute; tests/kernels checks more
shapes.
"""

import argparse
import json
import statistics
from importlib import import_module
from itertools import pairwise
from unittest import mock

import torch
from torch.nn import functional as F

from zhat.dgp import Around, Box, InvertibleMLP, Laplace, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.fresh import Fresh
from zhat.kernels import fused, hidden, normalised_layer, pairwise_logsumexp, reference
from zhat.objectives import InfoNCE, NegativeLp
from zhat.papers import reizinger2024, zimmermann2021
from zhat.training import Recipe
from zhat.training.optimisers import make_optimiser
from zhat.training.stack import Stack
from zhat.training.step import make_step
from zhat.training.stream import Stream

SEEDS, BATCH, DIM = 5, 6144, 10
POWERS = {"dot": None, "p=1": 1.0, "p=2": 2.0, "p=3": 3.0}
GPU = torch.device("cuda")


def milliseconds(function, repeats=20, warm=3):
    """Median time of a call, by events."""
    for _ in range(warm):
        function()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)


def relative(a, b):
    a, b = a.detach().double(), b.detach().double()
    return float((a - b).norm() / b.norm())


def check():
    """Kernels against float64 on fresh random shapes; the largest relative errors of value and gradient."""
    worst = {}
    generator = torch.Generator().manual_seed(0)
    for power in (None, 1.0, 1.5, 2.0, 3.0):
        for n, m, d, size in ((130, 259, 3, 1e-3), (513, 300, 10, 1.0)):
            for same, skip in ((True, False), (False, True)):
                x = size * torch.randn(2, n, d, generator=generator, dtype=torch.float64)
                y = size * torch.randn(2, m, d, generator=generator, dtype=torch.float64)
                up = torch.randn(2, n, generator=generator, dtype=torch.float64)
                errors = []
                results = []
                for function, dtype, device in (
                    (reference.pairwise_logsumexp, torch.float64, "cuda"),
                    (pairwise_logsumexp, torch.float32, "cuda"),
                ):
                    a = x.to(device, dtype).requires_grad_()
                    b = a if same else y.to(device, dtype).requires_grad_()
                    out = function(a, b, power=power, scale=0.7, skip_diagonal=skip)
                    grads = torch.autograd.grad((out * up.to(out)).sum(), [a] if same else [a, b])
                    results.append((out, *grads))
                for wanted, got in zip(*results, strict=True):
                    slack = max(1.0, float(wanted.detach().abs().max())) if wanted.ndim == 2 else None
                    if slack is not None:
                        errors.append(float((got.detach().double() - wanted.detach()).abs().max()) / slack)
                    else:
                        errors.append(relative(got, wanted))
                key = f"power {power}"
                worst[key] = max(worst.get(key, 0.0), *errors)
    for dtype in (torch.float32, torch.bfloat16):
        widths = (10, 100, 500, 500, 100)
        tensors = [torch.randn(3, 700, 10, generator=generator)]
        for a, b in pairwise(widths):
            tensors += [torch.randn(3, b, a, generator=generator) / a**0.5, torch.randn(3, b, generator=generator)]
        up = torch.randn(3, 700, 100, generator=generator)
        exact = [t.to(GPU, torch.float64).requires_grad_() for t in tensors]
        out = exact[0]
        for weight, bias in zip(exact[1::2], exact[2::2], strict=True):
            out = F.leaky_relu(torch.baddbmm(bias[:, None], out, weight.transpose(1, 2)), 0.01)
        wanted = torch.autograd.grad((out * up.to(out)).sum(), exact)
        ours = [t.to(GPU).requires_grad_() for t in tensors]
        got = hidden._Hidden.apply(ours[0], (0.01, dtype), *ours[1:])[0]
        mine = torch.autograd.grad((got.float() * up.to(GPU)).sum(), ours)
        worst[f"hidden {dtype}"] = max(relative(got, out), *(relative(a, b) for a, b in zip(mine, wanted, strict=True)))
    worst["normalised"] = check_normalised(generator)
    for key, value in worst.items():
        print(f"  {key:24} {value:.1e}")
    return worst


def check_normalised(generator):
    """A layer with batch normalisation against float64: the largest relative error of values and gradients."""
    x, up = torch.randn(3, 700, 10, generator=generator), torch.randn(3, 700, 250, generator=generator)
    weight = torch.randn(3, 250, 10, generator=generator)
    bias, scale, shift, mean, variance = torch.rand(5, 3, 250, generator=generator)
    results = []
    for function, dtype in ((layer_by_torch, torch.float64), (layer_by_hand, torch.float32)):
        tensors = [t.to(GPU, dtype).requires_grad_() for t in (x, weight, scale, shift)]
        out = function(*tensors, *(t.to(GPU, dtype) for t in (bias, mean, variance)))
        results.append((*out, *torch.autograd.grad((out[0] * up.to(out[0])).sum(), tensors)))
    return max(relative(got, wanted) for wanted, got in zip(*results, strict=True))


def layer_by_hand(x, weight, scale, shift, bias, mean, variance):
    def one(x, weight, scale, shift, bias, mean, variance):
        how = {"momentum": 0.1, "eps": 1e-5, "slope": 0.01}
        return normalised_layer(x, (weight, bias), (scale, shift), (mean, variance), **how)

    return torch.func.vmap(one)(x, weight, scale, shift, bias, mean, variance)


def layer_by_torch(x, weight, scale, shift, bias, mean, variance):
    a = torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))
    mean, variance = mean.clone(), variance.clone()
    members = zip(a, mean, variance, scale, shift, strict=True)
    v = torch.stack([F.batch_norm(*t, training=True, momentum=0.1, eps=1e-5) for t in members])
    return F.leaky_relu(v, 0.01), mean, variance


def ceilings():
    a = torch.randn(8192, 8192, device=GPU)
    low = a.bfloat16()
    big = torch.empty(2**30, device=GPU)
    target = torch.empty_like(big)
    torch.set_float32_matmul_precision("high")
    out = {
        "bf16_tflops": 2 * 8192**3 / milliseconds(lambda: low @ low, 10) / 1e9,
        "tf32_tflops": 2 * 8192**3 / milliseconds(lambda: a @ a, 10) / 1e9,
        "copy_tbs": 2 * big.numel() * 4 / milliseconds(lambda: target.copy_(big), 10) / 1e9,
    }
    torch.set_float32_matmul_precision("highest")
    return out


def tiles():
    """Times of tile shapes; the winners are written into the kernels' _forward_tile and _pull_tile."""
    h = torch.rand(SEEDS, BATCH, DIM, device=GPU)
    g = torch.rand(SEEDS, BATCH, device=GPU)
    before = fused._forward_tile, fused._pull_tile
    for name, power in POWERS.items():
        line = []
        for shape in ((16, 128, 4), (16, 64, 4), (32, 64, 4), (8, 128, 4), (32, 64, 8), (8, 64, 2), (16, 32, 2)):
            fused._forward_tile = lambda d, shape=shape: shape
            line.append((milliseconds(lambda power=power: fused.forward(h, h, power, 1.0, False)) / SEEDS, shape))
        level = fused.forward(h, h, power, 1.0, False)
        print(f"  {name} forward:", *(f"{shape}: {t:.3f}" for t, shape in sorted(line)), flush=True)
        line = []
        for shape in (
            (8, 128, 4),
            (16, 64, 4),
            (16, 32, 4),
            (8, 64, 4),
            (8, 64, 2),
            (4, 128, 4),
            (16, 32, 2),
            (32, 16, 4),
        ):
            fused._pull_tile = lambda d, shape=shape: shape
            call = lambda power=power, level=level: fused.pull(h, h, power, 1.0, False, (level, g), (level, g))  # noqa: E731
            line.append((milliseconds(call) / SEEDS, shape))
        print(f"  {name} pull:   ", *(f"{shape}: {t:.3f}" for t, shape in sorted(line)), flush=True)
    fused._forward_tile, fused._pull_tile = before


def parts():
    """Times of the pieces of a step, per seed."""
    out = {}
    h = torch.rand(SEEDS, BATCH, DIM, device=GPU)
    g = torch.rand(SEEDS, BATCH, device=GPU)
    for name, power in POWERS.items():
        level = fused.forward(h, h, power, 1.0, False)
        out[f"{name} forward"] = milliseconds(lambda power=power: fused.forward(h, h, power, 1.0, False)) / SEEDS
        call = lambda power=power, level=level: fused.pull(h, h, power, 1.0, False, (level, g), (level, g))  # noqa: E731
        out[f"{name} backward"] = milliseconds(call) / SEEDS
    widths = (10, 100, 500, 500, 500, 500, 100)
    x = torch.randn(SEEDS, 2 * BATCH, 10, device=GPU)
    parameters = []
    for a, b in pairwise(widths):
        weight = torch.randn(SEEDS, b, a, device=GPU) / a**0.5
        parameters += [weight.requires_grad_(), torch.randn(SEEDS, b, device=GPU).requires_grad_()]
    up = torch.randn(SEEDS, 2 * BATCH, 100, device=GPU)
    for dtype, tf32 in ((torch.bfloat16, False), (torch.float32, True), (torch.float32, False)):
        torch.set_float32_matmul_precision("high" if tf32 else "highest")

        def both(dtype=dtype):
            y = hidden._Hidden.apply(x, (0.01, dtype), *parameters)[0]
            torch.autograd.grad(y, parameters, up.to(y.dtype))

        name = "tf32" if tf32 else str(dtype).removeprefix("torch.")
        out[f"hidden layers, both ways, {name}"] = milliseconds(both) / SEEDS
        torch.set_float32_matmul_precision("highest")
    return out


def setting(power):
    space = Sphere(DIM) if power is None else Box(DIM)
    conditional = VonMisesFisher(1.0) if power is None else Around(Laplace(space, 0.05))
    world = Pairs(Uniform(space), conditional, InvertibleMLP())
    objective = InfoNCE() if power is None else InfoNCE(NegativeLp(power))
    return world, objective, Fresh(mlp, DIM, DIM, onto=space)


def step_time(power, precision, seeds=SEEDS, batch=BATCH, graph=True, blocks=4):
    """Milliseconds of a whole training step for each seed, drawing included, and peak bytes."""
    return timed(*setting(power), precision, seeds, batch, graph, blocks)


def timed(world, objective, encoder, precision, seeds, batch, graph=True, blocks=4, muon=None):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    stack = Stack(encoder, objective, tuple(range(seeds)), GPU)
    stream = Stream((world,) * seeds, tuple(range(seeds)), batch, GPU, noise=stack.noise)
    adam = make_optimiser(stack.parameters, Recipe(1, lr=1e-4, muon=muon), GPU, stack.linear_weights())
    step = make_step(stack, stream, adam, GPU, precision, graph)
    step.run(0, [1.0] * stream.length)
    torch.cuda.synchronize()
    times = []
    for i in range(1, blocks + 1):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        step.run(i * stream.length, [1.0] * stream.length)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / stream.length / seeds)
    return statistics.median(times), torch.cuda.max_memory_allocated()


def batch_norm():
    """A whole step of reizinger2024's row R2.1a, all seeds: milliseconds and bytes, normalised by torch and by hand."""
    row = next(row for row in reizinger2024.TABLE_2.rows if row.name == "R2.1a")
    recipe = row.budget("fast").recipe
    module = import_module("zhat.encoders.mlp")  # the name `zhat.encoders.mlp` is the function in it
    out = {"seeds": SEEDS, "batch": recipe.batch, "precision": recipe.precision}
    for name, can in (("plain", lambda x: False), ("fused", module.can_normalise)):
        with mock.patch.object(module, "can_normalise", can):
            each, memory = timed(row.process, row.objective, row.encoder, recipe.precision, SEEDS, recipe.batch)
        out[name], out[f"{name}_bytes"] = SEEDS * each, memory
    return out | {"ratio": out["plain"] / out["fused"]}


def turned():
    """A whole step of rows that use Muon, all seeds: milliseconds with Adam alone and with Muon."""
    out = {}
    for table, name in ((zimmermann2021.TABLE_2, "T2.5"), (reizinger2024.TABLE_3_PAST, "R3.3p")):
        row = table.row(name)
        recipe = row.budget("fast").recipe
        setting = (row.process, row.objective, row.encoder, recipe.precision, SEEDS, recipe.batch)
        adam, muon = (SEEDS * timed(*setting, muon=how)[0] for how in (None, recipe.muon))
        out[name] = {"seeds": SEEDS, "batch": recipe.batch, "adam": adam, "muon": muon, "ratio": muon / adam}
    return out


def floor(power, ceiling):
    """The least time of a step for each seed: products at the measured rate, pairs at the rate of float32 lanes."""
    weights = sum(
        a * b for a, b in zip((10, 100, 500, 500, 500, 500, 100), (100, 500, 500, 500, 500, 100, 10), strict=True)
    )
    products = 3 * 2 * 2 * BATCH * weights / (ceiling["bf16_tflops"] * 1e12)
    per_pair = {None: 2 * DIM, 1.0: 4 * DIM, 2.0: 4 * DIM, 3.0: 5 * DIM}[power]  # fused multiply-adds, both ways
    return 1e3 * (products + BATCH**2 * per_pair / (132 * 128 * 1.755e9))


def beside(earlier):
    """Whole steps in bf16, all seeds, and their ratio to those of an earlier run."""
    out = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "steps": {}}
    for name, power in POWERS.items():
        before = earlier["steps"][name]["bf16"]
        now, _ = step_time(power, "bf16")
        out["steps"][name] = {"bf16": now, "earlier": before, "ratio": now / before}
        print(f"  {name:5} {now:.3f} ms per seed, earlier {before:.3f}, ratio {now / before:.3f}", flush=True)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", help="JSON of an earlier run; only whole steps in bf16 are timed")
    parser.add_argument("--tiles", action="store_true")
    parser.add_argument("--no-check", action="store_true")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    if arguments.against:
        with open(arguments.against) as file:
            out = beside(json.load(file))
        if arguments.out:
            with open(arguments.out, "w") as file:
                json.dump(out, file, indent=1)
        return
    out = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    print(out["device"], "torch", out["torch"])
    print("largest relative errors against float64:")
    out["errors"] = {} if arguments.no_check else check()
    out["ceilings"] = ceilings()
    print("ceilings:", {k: round(v, 1) for k, v in out["ceilings"].items()}, flush=True)
    if arguments.tiles:
        print("tiles, ms per seed:")
        tiles()
    out["parts"] = parts()
    print("parts, ms per seed:")
    for key, value in out["parts"].items():
        print(f"  {key:40} {value:.3f}", flush=True)
    print(f"whole step, ms per seed, B = {BATCH}, {SEEDS} seeds:")
    out["steps"] = {}
    for name, power in POWERS.items():
        least = floor(power, out["ceilings"])
        line = {"floor": least}
        for precision in ("bf16", "tf32"):
            line[precision], line[f"{precision}_bytes"] = step_time(power, precision)
        line["bf16, one seed"], _ = step_time(power, "bf16", seeds=1)
        line["bf16, no graph"], _ = step_time(power, "bf16", graph=False, blocks=1)
        out["steps"][name] = line
        shown = (f"{k} {v / 1e9:.2f} GB" if "bytes" in k else f"{k} {v:.3f}" for k, v in line.items())
        print(
            f"  {name:5}",
            ", ".join(shown),
            f"-> the floor is {100 * least / line['bf16']:.0f}%",
            flush=True,
        )
    line = out["batch_norm"] = batch_norm()
    print(
        f"batch normalisation, whole step of R2.1a, B = {line['batch']}, {SEEDS} seeds, {line['precision']}: "
        f"plain {line['plain']:.3f} ms, fused {line['fused']:.3f} ms, ratio {line['ratio']:.2f}",
        flush=True,
    )
    out["muon"] = turned()
    for name, line in out["muon"].items():
        print(
            f"Muon, whole step of {name}, B = {line['batch']}, {SEEDS} seeds: Adam {line['adam']:.3f} ms, "
            f"Muon {line['muon']:.3f} ms, ratio {line['ratio']:.2f}",
            flush=True,
        )
    big, memory = step_time(1.0, "bf16", seeds=1, batch=65_536, blocks=2)
    out["batch_65536"] = {"ms": big, "bytes": memory}
    print(f"B = 65,536, p = 1, one seed: {big:.1f} ms, {memory / 1e9:.2f} GB")
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump(out, file, indent=1)


if __name__ == "__main__":
    main()
