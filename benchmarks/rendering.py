"""The renderer: pictures a second, memory of a picture, the floor; and how close it comes to Blender.

    python -m benchmarks.rendering [--data DIR] [--side 64] [--out FILE]      speed on this machine, GPU if there is one
    python -m benchmarks.rendering --truth --data DIR [--pictures 3800]       against 4,000 pictures of Blender
    python -m benchmarks.rendering --strip FILE --data DIR                    ten of Blender's pictures above ours
    python -m benchmarks.rendering --fit --data DIR                           constants of the lights, on 100 of them

DIR holds threedident_rerender/ (teapot.npz, full_4000.webp and its latents; reading the pictures needs Pillow). Without
it the jug is drawn. Results go to results/rendering/{speed,truth}.json.

Silhouettes: the pictures of Blender come without masks, so the same rule finds the object in both pictures. A pixel
belongs to the object if its linear colour is nearer to a colour of the object than to a colour of the ground. The
candidates are our colours of the 3 x 3 pixels around it: of the object alone, and of the ground as drawn without the
object. Pixels in which both colours are within 0.03 of each other are left out, and counted. A second number takes the
object in our picture from the mesh instead: pixels that it covers by half.
"""

import argparse
import json
import math
import platform
import statistics
import time
from dataclasses import asdict, replace
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch.nn import functional as F

from zhat.experiment.samples import png, tiled
from zhat.scenes import Jug, Teapot, blocks, rasterise, shadows, still_life
from zhat.scenes.pose import Pose
from zhat.scenes.shading import Light
from zhat.scenes.still_life import Stage
from zhat.scenes.views import posed

RESULTS = Path(__file__).parent.parent / "results" / "rendering"
FITTED = 200  # the first pictures; constants are fitted to these, truth is read on the others
FOLDER = "threedident_rerender"


def ssim(a, b):
    """Structural similarity of bytes (n, 3, h, w): uniform 7 x 7 windows, mean over windows and channels, (n,)."""
    a, b = a.float() / 255, b.float() / 255

    def mean(x):
        return F.avg_pool2d(x, 7, 1)

    ma, mb, unbiased = mean(a), mean(b), 49 / 48
    va, vb, both = ((mean(p * q) - r) * unbiased for p, q, r in ((a, a, ma * ma), (b, b, mb * mb), (a, b, ma * mb)))
    c1, c2 = 0.01**2, 0.03**2
    return ((2 * ma * mb + c1) * (2 * both + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2))).mean((1, 2, 3))


def blender(folder):
    """Latents and pictures of Blender, `(4000, 10)` and `(4000, 3, 64, 64)` bytes."""
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    whole = np.asarray(Image.open(folder / "full_4000.webp").convert("RGB"))
    pictures = whole.reshape(80, 64, 50, 64, 3).transpose(0, 2, 4, 1, 3).reshape(-1, 3, 64, 64)
    with np.load(folder / "full_4000_latents.npz") as held:
        return torch.from_numpy(held["raw"].astype(np.float32)), torch.from_numpy(pictures.copy())


def linear(x):
    """Bytes of the sRGB standard as linear light."""
    x = x.float() / 255
    return torch.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def around(x):
    """The 3 x 3 pixels around each pixel, `(n, c, h, w) -> (9, n, c, h, w)`."""
    n, c, h, w = x.shape
    return F.unfold(F.pad(x, (1, 1, 1, 1), mode="replicate"), 3).view(n, c, 9, h, w).permute(2, 0, 1, 3, 4)


def silhouettes(stage, z, ours, theirs):
    """Overlap of silhouettes, and of the mesh with theirs, `(n,)` each; the share of pixels that is left out."""
    pose = Pose(z, stage.reach, 2 * stage.side, stage.cells)
    keys = rasterise.splat(posed(pose.camera, pose.rotation, pose.location), stage.mesh, 2 * stage.side)
    views = posed(pose.lights, pose.rotation, pose.location).flatten(0, 1)
    maps = rasterise.splat(views, stage.mesh, stage.cells, far_side=True).view(3, len(z), stage.cells, stage.cells)
    soft = shadows.blurred((maps >= 0).float(), pose.softness(stage.light))
    ground = still_life.ground_colour(pose, stage._on(z.device)[1], soft, stage.light).clamp(0, 1).transpose(0, 1)
    place, colour = still_life.object_colour(pose, stage.mesh, keys, maps, stage.light)
    *summed, share = still_life.filtered(place, torch.cat([colour, torch.ones(1, len(place))]), keys.shape)
    thing = (torch.stack(summed, 1) / share.clamp_min(1e-6)[:, None]).clamp(0, 1)
    known = around((share > 0.25).float()[:, None])[:, :, 0] > 0  # enough of the object to know its colour
    told_apart = (share <= 0.25) | (((thing - ground) ** 2).sum(1) > 0.03**2)

    def found(x):
        to_thing = ((around(thing) - linear(x)) ** 2).sum(2).masked_fill(~known, 1e3).amin(0)
        return to_thing < ((around(ground) - linear(x)) ** 2).sum(2).amin(0)

    def overlap(a, b):
        return (a & b & told_apart).sum((1, 2)) / ((a | b) & told_apart).sum((1, 2))

    mesh, other = share >= 0.5, found(theirs)
    return overlap(found(ours), other), overlap(mesh, other), float((mesh & ~told_apart).sum() / mesh.sum())


def truth(data, pictures):
    """Structural similarity and overlap of silhouettes on pictures to which nothing was fitted."""
    folder = Path(data) / FOLDER
    z, theirs = blender(folder)
    z, theirs = z[FITTED : FITTED + pictures], theirs[FITTED : FITTED + pictures]
    stage = Teapot(file=str(folder / "teapot.npz")).build(10, torch.Generator())
    alike, overlap, of_mesh, error, left_out = [], [], [], [], []
    for rows, wanted in zip(z.split(50), theirs.split(50), strict=True):
        ours = stage(rows)
        alike.append(ssim(ours, wanted))
        error.append((ours.float() - wanted).abs().mean((1, 2, 3)))
        shared, meshed, out = silhouettes(stage, rows, ours, wanted)
        overlap.append(shared)
        of_mesh.append(meshed)
        left_out.append(out)
    found = {"pictures": len(z), "fitted on": FITTED, "light": asdict(stage.light)}
    measured = {
        "ssim": alike,
        "silhouettes' overlap": overlap,
        "overlap of the mesh": of_mesh,
        "mean error in bytes": error,
    }
    for name, parts in measured.items():
        values = torch.cat(parts)
        found[name] = {
            "median": round(float(values.median()), 4),
            "mean": round(float(values.mean()), 4),
            "lowest tenth": round(float(values.quantile(0.1)), 4),
            "lowest": round(float(values.min()), 4),
        }
    found["share of the object left out"] = round(statistics.fmean(left_out), 4)
    return found


def strip(data, path, pictures=10):
    """Pictures of Blender above ours."""
    folder = Path(data) / FOLDER
    z, theirs = (part[FITTED : FITTED + pictures] for part in blender(folder))
    ours = Teapot(file=str(folder / "teapot.npz")).build(10, torch.Generator())(z)
    path.write_bytes(png(tiled(torch.stack([theirs, ours]))))


def fit(data, pictures=100):
    """Coordinate descent of the squared error in bytes over the constants that the scene leaves open."""
    folder = Path(data) / FOLDER
    z, theirs = (part[:FITTED][:pictures] for part in blender(folder))
    mesh = Teapot(file=str(folder / "teapot.npz")).mesh()

    def loss(light):
        return float((Stage(mesh, 64, light)(z).float() - theirs).square().mean())

    light = Light()
    best = loss(light)
    widths = {"sun": 0.03, "lamp": 0.1, "spot": 0.03, "sheen": 0.4, "sun_radius": 0.2, "gloss": 0.2}
    for _ in range(4):
        for name in widths:
            for sign in (1, -1):
                other = replace(light, **{name: getattr(light, name) * math.exp(sign * widths[name])})
                if (now := loss(other)) < best:
                    best, light = now, other
                    print(f"{math.sqrt(best):.3f} bytes  {name} = {getattr(light, name):.4g}", flush=True)
                    break
            else:
                widths[name] /= 2
    return asdict(light)


def plainly(views, mesh, samples):
    """One triangle after the other: the reference that speed on a CPU is compared with; `(n, samples, samples)`."""
    out = np.full((len(views), samples, samples), -1, np.int64)
    near = np.full((len(views), samples, samples), -np.inf, np.float32)
    corners = np.concatenate([mesh.vertices.numpy(), np.ones((len(mesh.vertices), 1), np.float32)], 1)
    for n, view in enumerate(views.numpy()):
        a, b, w, t = view @ corners.T
        x, y, d = a / w, b / w, t / w
        for k, (i, j, m) in enumerate(mesh.triangles.tolist()):
            area = (x[j] - x[i]) * (y[m] - y[i]) - (x[m] - x[i]) * (y[j] - y[i])
            left, right = math.ceil(min(x[i], x[j], x[m]) - 0.5), math.floor(max(x[i], x[j], x[m]) - 0.5)
            top, bottom = math.ceil(min(y[i], y[j], y[m]) - 0.5), math.floor(max(y[i], y[j], y[m]) - 0.5)
            for row in range(max(top, 0), min(bottom, samples - 1) + 1):
                for column in range(max(left, 0), min(right, samples - 1) + 1):
                    px, py = column + 0.5 - x[i], row + 0.5 - y[i]
                    u = (px * (y[m] - y[i]) - py * (x[m] - x[i])) / area
                    v = (py * (x[j] - x[i]) - px * (y[j] - y[i])) / area
                    if u >= 0 and v >= 0 and u + v <= 1:
                        depth = d[i] + u * (d[j] - d[i]) + v * (d[m] - d[i])
                        if depth > near[n, row, column]:
                            near[n, row, column], out[n, row, column] = depth, k
    return out


def floor(triangles, side, samples_of_object):
    """Seconds for a picture on an H200: instructions of the formulas, one lane each, and bytes that must move."""
    lanes, clock, memory = 132 * 128, 1.755e9, 4.8e12
    corner, triangle, pixel, sample = 3 * 16, 60, 250, 500
    instructions = 4 * triangles * (corner + triangle) + side**2 * pixel + samples_of_object * sample
    cells = (2 * side) ** 2 + 3 * max(64, side) ** 2
    moved = 4 * cells * 2 + 4 * 3 * max(64, side) ** 2 * 2 + 3 * side**2  # keys: cleared, read; blurred maps; bytes
    return max(instructions / (lanes * clock), moved / memory)


def latents(n, device="cpu"):
    return (2 * torch.rand(n, 10, generator=torch.Generator().manual_seed(0)) - 1).to(device)


def on_gpu(stage, n):
    """Triton against plain torch, then pictures a second and memory."""
    z = latents(n, "cuda")
    few = z[:64]
    ours = stage.drawn(few)
    with mock.patch.object(still_life, "_implementation", return_value=still_life._Plain):
        plain = stage.drawn(few)
        started = _clock()
        stage.drawn(z[:512])
        by_torch = 512 / (_clock() - started)
    apart = (ours.int() - plain.int()).abs()
    found = {
        "Triton against torch, mean difference in bytes": float(apart.float().mean()),
        "share of bytes that differ by more than 2": float((apart > 2).float().mean()),
        "plain torch on the GPU, pictures a second": round(by_torch),
    }
    for block in (64, 128, 256, 512, 1024, 2048):
        with mock.patch.object(still_life, "ON_GPU", block):
            stage(z[: 4 * block])
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            stage(z[:block])
            peak = (torch.cuda.max_memory_allocated() - before) / block
            times = []
            for _ in range(5):
                started = _clock()
                stage(z)
                times.append(_clock() - started)
        found[f"block {block}"] = {
            "pictures a second": round(n / statistics.median(times)),
            "bytes a picture": int(peak),
        }
    rates = {int(k.split()[1]): v["pictures a second"] for k, v in found.items() if k.startswith("block")}
    found["pictures a second"] = max(rates.values())
    return found


def steps_on_gpu(stage, n=1024):
    """Milliseconds of each step of a block."""
    from zhat.scenes import fused

    z = latents(n, "cuda")
    mesh, ground = stage._on(z.device)
    pose = Pose(z, stage.reach, 2 * stage.side, stage.cells)
    seen = posed(pose.camera, pose.rotation, pose.location)
    lit = posed(pose.lights, pose.rotation, pose.location).flatten(0, 1)
    keys = fused.splat(seen, mesh, 2 * stage.side)
    maps = fused.splat(lit, mesh, stage.cells, far_side=True).view(3, n, stage.cells, stage.cells)
    soft = shadows.blurred((maps != -1).float(), pose.softness(stage.light))
    parts = {
        "pose": lambda: Pose(z, stage.reach, 2 * stage.side, stage.cells),
        "camera": lambda: fused.splat(seen, mesh, 2 * stage.side),
        "three lights": lambda: fused.splat(lit, mesh, stage.cells, far_side=True),
        "blur": lambda: shadows.blurred((maps != -1).float(), pose.softness(stage.light)),
        "picture": lambda: fused.picture(pose, mesh, ground, keys, maps, soft, stage.light),
    }
    found = {}
    for name, part in parts.items():
        times = []
        for _ in range(6):
            started = _clock()
            part()
            times.append(1e3 * (_clock() - started))
        found[name] = round(statistics.median(times[1:]), 3)
    return found


def _clock():
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def on_cpu(stage, n=128):
    """Pictures a second, and the depth buffers' time against one triangle after the other."""
    import resource

    z = latents(n)
    stage(z[:32])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    stage(z)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    pose = Pose(z[:16], stage.reach, 2 * stage.side, stage.cells)
    views = posed(pose.camera, pose.rotation, pose.location)
    with blocks.one_thread_each():
        rasterise.splat(views, stage.mesh, 2 * stage.side)
        started = time.process_time()
        ours = rasterise.splat(views, stage.mesh, 2 * stage.side)
        quick = (time.process_time() - started) / 16
        started = time.process_time()
        plain = plainly(views[:1], stage.mesh, 2 * stage.side)
        slow = time.process_time() - started
    bits = rasterise.id_bits(stage.mesh)
    same = np.where(ours[0] >= 0, ours[0] & ((1 << bits) - 1), -1) == plain[0]
    return {
        "pictures a second": round(n / wall),
        "threads": torch.get_num_threads(),
        "CPU milliseconds a picture": round(1e3 * cpu / n, 2),
        "bytes a picture, beyond the first": int(grown / n),
        "the camera's depth buffer, times as fast as triangle by triangle": round(slow / quick),
        "samples with the same triangle": round(float(same.mean()), 5),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--truth", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--strip", type=Path)
    parser.add_argument("--pictures", type=int, default=3800)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.strip:
        strip(asked.data, asked.strip)
        return
    if asked.fit:
        print(json.dumps(fit(asked.data), indent=1))
        return
    if asked.truth:
        found, path = truth(asked.data, asked.pictures), RESULTS / "truth.json"
    else:
        file = None if asked.data is None else str(Path(asked.data) / FOLDER / "teapot.npz")
        scene = Jug(side=asked.side) if file is None else Teapot(side=asked.side, file=file)
        stage = scene.build(10, torch.Generator())
        z = latents(256)
        pose = Pose(z, stage.reach, 2 * stage.side, stage.cells)
        keys = rasterise.splat(posed(pose.camera, pose.rotation, pose.location), stage.mesh, 2 * stage.side)
        shown = float((keys >= 0).float().sum((1, 2)).mean())
        path = RESULTS / ("speed_gpu.json" if torch.cuda.is_available() else "speed_cpu.json")
        found = {
            "scene": type(scene).__name__,
            "side": asked.side,
            "triangles": len(stage.mesh.triangles),
            "samples of the object in a picture": round(shown),
        }
        if torch.cuda.is_available():
            found["machine"] = torch.cuda.get_device_name()
            found |= on_gpu(stage, 16_384)
            found["milliseconds of a block of 1024"] = steps_on_gpu(stage)
            found["floor, pictures a second"] = round(1 / floor(len(stage.mesh.triangles), asked.side, shown))
        else:
            found["machine"] = f"{platform.machine()}, torch {torch.__version__}"
            found |= on_cpu(stage)
    print(json.dumps(found, indent=1))
    path = asked.out or path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
