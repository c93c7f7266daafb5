"""The two steps of drawing that take the time, as Triton kernels: which triangle is seen where, and how bright it is.

`splat` has one lane for each triangle. Triangles of these pictures cover about one sample, so each lane walks through
the few samples between its corners and puts its key into the map with an atomic maximum. `picture` shades the object
with one lane for each sample, then the ground with one lane for each pixel, which also gathers the samples around it.
The formulas are those of `zhat.scenes.rasterise`, `shading` and `shadows`; the names are the same.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from zhat.scenes.meshes import Mesh
from zhat.scenes.pose import CAMERA, GROUND, LAMP, TANGENT, Pose
from zhat.scenes.rasterise import EMPTY, SEAM, id_bits, steps
from zhat.scenes.shading import ALPHA, INDICES, Light
from zhat.scenes.shadows import BIAS
from zhat.scenes.still_life import TAPS, Ground

TRIANGLES, PIXELS, WARPS = 128, 128, 4  # lanes and warps of a program


def splat(views: Tensor, mesh: Mesh, samples: int, *, far_side: bool = False) -> Tensor:
    """The key of the nearest triangle at each sample, `(n, samples, samples)`; see `rasterise.splat`."""
    bits, count = id_bits(mesh), len(mesh.triangles)
    keys = torch.full((len(views), samples, samples), EMPTY, dtype=torch.int32, device=views.device)
    _splat[(triton.cdiv(count, TRIANGLES), len(views))](
        views.contiguous(),
        mesh.corners,
        keys,
        count,
        samples,
        float(steps(bits)),
        SEAM=SEAM,
        BITS=bits,
        FAR_SIDE=far_side,
        BLOCK=TRIANGLES,
        num_warps=WARPS,
    )
    return keys


def picture(pose: Pose, mesh: Mesh, ground: Ground, keys: Tensor, maps: Tensor, soft: Tensor, light: Light) -> Tensor:
    """Light, shadow and colour for what the camera sees, `(n, 3, side, side)` bytes; see `still_life.picture`."""
    n, side, cells, bits = len(keys), ground.points.shape[-1], maps.shape[-1], id_bits(mesh)
    parts = (pose.rotation.flatten(1), pose.location, pose.spot, pose.aim, pose.hues.permute(2, 1, 0).flatten(1))
    poses = torch.cat([*parts, pose.lights.permute(1, 0, 2, 3).flatten(1)], 1)  # (n, 75)
    middle, edge = light.edge
    shared = {
        "SIDE": side,
        "CELLS": cells,
        "SPOT_POWER": light.spot,
        "WIDTH": 5 * light.spot_radius**2,
        "MIDDLE": middle,
        "EDGE": edge,
        "ALPHA2": ALPHA**2,
        "PI": math.pi,
        "BLOCK": PIXELS,
        "num_warps": WARPS,
    }
    things = torch.empty(n, 3, 2 * side, 2 * side, device=keys.device)
    _object[(triton.cdiv(4 * side * side, PIXELS), n)](
        poses,
        mesh.corners,
        keys,
        maps,
        things,
        n,
        len(mesh.triangles),
        BITS=bits,
        STEPS=float(steps(bits)),
        SUN=light.sun,
        LAMP_POWER=light.lamp,
        SHEEN=light.sheen,
        GLOSS=light.gloss,
        OUTER=INDICES[0],
        INNER=INDICES[1],
        BIAS=BIAS,
        CAMERA=CAMERA,
        TANGENT=TANGENT,
        LAMP=LAMP,
        HALF=math.sqrt(0.5),
        **shared,
    )
    out = torch.empty(n, 3, side, side, dtype=torch.uint8, device=keys.device)
    _picture[(triton.cdiv(side * side, PIXELS), n)](
        poses, ground.table, keys, soft, things, out, n, GROUND=GROUND, NEAR_TAP=TAPS[1], FAR_TAP=TAPS[0], **shared
    )
    return out


@triton.jit
def _splat(
    views,
    corners,
    keys,
    count,
    samples,
    levels,
    SEAM: tl.constexpr,
    BITS: tl.constexpr,
    FAR_SIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    picture = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = i < count
    m = views + picture * 16
    x0, y0, d0, ahead0 = _corner(m, corners, i, count, here)
    x1, y1, d1, ahead1 = _corner(m, corners + 3 * count, i, count, here)
    x2, y2, d2, ahead2 = _corner(m, corners + 6 * count, i, count, here)
    low_x, high_x = tl.minimum(tl.minimum(x0, x1), x2), tl.maximum(tl.maximum(x0, x1), x2)
    low_y, high_y = tl.minimum(tl.minimum(y0, y1), y2), tl.maximum(tl.maximum(y0, y1), y2)
    last = (samples - 1).to(tl.float32)
    left, right = tl.maximum(tl.ceil(low_x - 0.5), 0.0), tl.minimum(tl.floor(high_x - 0.5), last)
    top, bottom = tl.maximum(tl.ceil(low_y - 0.5), 0.0), tl.minimum(tl.floor(high_y - 0.5), last)
    x1, y1, x2, y2 = x1 - x0, y1 - y0, x2 - x0, y2 - y0
    area = x1 * y2 - x2 * y1
    drawn = here & ahead0 & ahead1 & ahead2 & (right >= left) & (bottom >= top)
    drawn &= (area > 0.0) if FAR_SIDE else (area != 0.0)
    scale = 1.0 / tl.where(drawn, area, 1.0)
    ux, uy, vx, vy = y2 * scale, -x2 * scale, -y1 * scale, x1 * scale
    ox, oy = left + 0.5 - x0, top + 0.5 - y0
    u0, v0 = ux * ox + uy * oy, vx * ox + vy * oy
    wide = tl.where(drawn, right - left + 1.0, 1.0).to(tl.int32)
    cells = tl.where(drawn, wide * (bottom - top + 1.0).to(tl.int32), 0)
    first = keys + picture * samples * samples + top.to(tl.int32) * samples + left.to(tl.int32)
    most = tl.max(cells, 0)
    step = 0
    while step < most:
        row = step // wide
        column = step - row * wide
        fx, fy = column.to(tl.float32), row.to(tl.float32)
        u = u0 + ux * fx + uy * fy
        v = v0 + vx * fx + vy * fy
        covered = (step < cells) & (u >= -SEAM) & (v >= -SEAM) & (u + v <= 1.0 + SEAM)
        nearness = d0 + (d1 - d0) * u + (d2 - d0) * v
        level = (tl.minimum(tl.maximum(nearness, 0.0), 1.0) * levels).to(tl.int32)
        tl.atomic_max(first + row * samples + column, (level << BITS) | i, mask=covered, sem="relaxed")
        step += 1


@triton.jit
def _corner(m, corners, i, count, here):
    x = tl.load(corners + i, mask=here, other=0.0)
    y = tl.load(corners + count + i, mask=here, other=0.0)
    z = tl.load(corners + 2 * count + i, mask=here, other=0.0)
    a, b, w, t = _seen(m, x, y, z)
    ahead = w > 1e-3
    w = 1.0 / tl.where(ahead, w, 1.0)
    return a * w, b * w, t * w, ahead


@triton.jit
def _seen(m, x, y, z):
    a = tl.load(m) * x + tl.load(m + 1) * y + tl.load(m + 2) * z + tl.load(m + 3)
    b = tl.load(m + 4) * x + tl.load(m + 5) * y + tl.load(m + 6) * z + tl.load(m + 7)
    w = tl.load(m + 8) * x + tl.load(m + 9) * y + tl.load(m + 10) * z + tl.load(m + 11)
    t = tl.load(m + 12) * x + tl.load(m + 13) * y + tl.load(m + 14) * z + tl.load(m + 15)
    return a, b, w, t


@triton.jit
def _clamped(x):
    return tl.minimum(tl.maximum(x, 0.0), 1.0)


@triton.jit
def _fresnel(c, INDEX: tl.constexpr):
    g = tl.sqrt(INDEX * INDEX - 1.0 + c * c)
    a = (g - c) / (g + c)
    b = (c * (g + c) - 1.0) / (c * (g - c) + 1.0)
    return 0.5 * a * a * (1.0 + b * b)


@triton.jit
def _glossy(nx, ny, nz, vx, vy, vz, lx, ly, lz, cos_view, cos_light, ALPHA2: tl.constexpr, PI: tl.constexpr):
    hx, hy, hz = vx + lx, vy + ly, vz + lz
    cos_half = (nx * hx + ny * hy + nz * hz) / tl.sqrt(hx * hx + hy * hy + hz * hz)
    peak = cos_half * cos_half * (ALPHA2 - 1.0) + 1.0
    masking_view = cos_view + tl.sqrt(ALPHA2 + (1.0 - ALPHA2) * cos_view * cos_view)
    masking_light = cos_light + tl.sqrt(ALPHA2 + (1.0 - ALPHA2) * cos_light * cos_light)
    return (ALPHA2 / PI) * cos_light / (peak * peak * masking_view * masking_light)


@triton.jit
def _from_spot(
    tx,
    ty,
    tz,
    aim_x,
    aim_y,
    aim_z,
    POWER: tl.constexpr,
    WIDTH: tl.constexpr,
    MIDDLE: tl.constexpr,
    EDGE: tl.constexpr,
):
    squared = tx * tx + ty * ty + tz * tz
    ahead = -(tx * aim_x + ty * aim_y + tz * aim_z)
    aside = tl.sqrt(tl.maximum(squared - ahead * ahead, 0.0))
    width = tl.sqrt(WIDTH + EDGE * ahead * EDGE * ahead)
    x = _clamped((MIDDLE * ahead - aside) / width + 0.5)
    shrink = 1.0 / tl.sqrt(squared)
    return POWER * x * x * (3.0 - 2.0 * x) / squared, tx * shrink, ty * shrink, tz * shrink


@triton.jit
def _ground_lit(m, soft, x, y, here, GROUND: tl.constexpr, CELLS: tl.constexpr):
    """The share of a light that reaches the ground: its blurred map, between four cells."""
    a, b, w, _ = _seen(m, x, y, GROUND)
    ahead = here & (w > 0.0)
    w = 1.0 / tl.where(ahead, w, 1.0)
    px, py = a * w - 0.5, b * w - 0.5
    near = ahead & (px > -1.0) & (py > -1.0) & (px < CELLS) & (py < CELLS)
    px, py = tl.where(near, px, 0.0), tl.where(near, py, 0.0)
    left, top = tl.floor(px), tl.floor(py)
    fx, fy = px - left, py - top
    column, row = left.to(tl.int32), top.to(tl.int32)
    dark = tl.zeros_like(px)
    for k in tl.static_range(4):
        dx, dy = k % 2, k // 2
        c, r = column + dx, row + dy
        inside = near & (c >= 0) & (c < CELLS) & (r >= 0) & (r < CELLS)
        share = (fx if dx == 1 else 1.0 - fx) * (fy if dy == 1 else 1.0 - fy)
        dark += share * tl.load(soft + r * CELLS + c, mask=inside, other=0.0)
    return 1.0 - dark


@triton.jit
def _object_lit(
    m, keys, x, y, z, outside, here, CELLS: tl.constexpr, BITS: tl.constexpr, STEPS: tl.constexpr, BIAS: tl.constexpr
):
    """The share of a light that reaches the object: four cells of its map vote."""
    a, b, w, t = _seen(m, x, y, z)
    ahead = here & (w > 0.0)
    w = 1.0 / tl.where(ahead, w, 1.0)
    px, py = a * w - 0.5, b * w - 0.5
    level = (t * w + BIAS) * STEPS
    near = ahead & (px > -1.0) & (py > -1.0) & (px < CELLS) & (py < CELLS)
    px, py = tl.where(near, px, 0.0), tl.where(near, py, 0.0)
    left, top = tl.floor(px), tl.floor(py)
    fx, fy = px - left, py - top
    column, row = left.to(tl.int32), top.to(tl.int32)
    dark = tl.zeros_like(px)
    for k in tl.static_range(4):
        dx, dy = k % 2, k // 2
        c, r = column + dx, row + dy
        inside = near & (c >= 0) & (c < CELLS) & (r >= 0) & (r < CELLS)
        share = (fx if dx == 1 else 1.0 - fx) * (fy if dy == 1 else 1.0 - fy)
        nearest = tl.load(keys + r * CELLS + c, mask=inside, other=-1) >> BITS
        dark += tl.where(inside & (nearest.to(tl.float32) > level), share, 0.0)
    return tl.where(outside, 1.0 - dark, 0.0)


@triton.jit
def _srgb(x):
    x = _clamped(x)
    curved = 1.055 * tl.exp2(tl.log2(tl.maximum(x, 1e-8)) / 2.4) - 0.055
    return (255.0 * tl.where(x <= 0.0031308, 12.92 * x, curved) + 0.5).to(tl.uint8)


@triton.jit(do_not_specialize=["n"])
def _object(
    poses,
    corners,
    keys,
    maps,
    out,
    n,
    count,
    SIDE: tl.constexpr,
    CELLS: tl.constexpr,
    SPOT_POWER: tl.constexpr,
    WIDTH: tl.constexpr,
    MIDDLE: tl.constexpr,
    EDGE: tl.constexpr,
    ALPHA2: tl.constexpr,
    PI: tl.constexpr,
    BITS: tl.constexpr,
    STEPS: tl.constexpr,
    SUN: tl.constexpr,
    LAMP_POWER: tl.constexpr,
    SHEEN: tl.constexpr,
    GLOSS: tl.constexpr,
    OUTER: tl.constexpr,
    INNER: tl.constexpr,
    BIAS: tl.constexpr,
    CAMERA: tl.constexpr,
    TANGENT: tl.constexpr,
    LAMP: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Colours of the samples that show the object; what lies at the others in `out` is left as it is."""
    picture = tl.program_id(1).to(tl.int64)
    sample = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    every = 4 * SIDE * SIDE
    key = tl.load(keys + picture * every + sample, mask=sample < every, other=-1)
    shown = key >= 0
    if tl.max(shown.to(tl.int32), 0) > 0:
        i, j = sample // (2 * SIDE), sample % (2 * SIDE)
        p = poses + picture * 75
        spot_x, spot_y, spot_z = tl.load(p + 12), tl.load(p + 13), tl.load(p + 14)
        aim_x, aim_y, aim_z = tl.load(p + 15), tl.load(p + 16), tl.load(p + 17)
        object_r, object_g, object_b = tl.load(p + 18), tl.load(p + 19), tl.load(p + 20)
        spot_r, spot_g, spot_b = tl.load(p + 21), tl.load(p + 22), tl.load(p + 23)
        m = p + 27
        each = CELLS * CELLS
        sun_keys, lamp_keys = maps + picture * each, maps + (n + picture) * each
        spot_keys = maps + (2 * n + picture) * each
        r00, r01, r02 = tl.load(p), tl.load(p + 1), tl.load(p + 2)
        r10, r11, r12 = tl.load(p + 3), tl.load(p + 4), tl.load(p + 5)
        r20, r21, r22 = tl.load(p + 6), tl.load(p + 7), tl.load(p + 8)
        cx, cy, cz = tl.load(p + 9), tl.load(p + 10), tl.load(p + 11)
        wx, wy, wz = CAMERA - cx, -cy, CAMERA - cz
        sx0, sy0, sz0 = r00 * wx + r10 * wy + r20 * wz, r01 * wx + r11 * wy + r21 * wz, r02 * wx + r12 * wy + r22 * wz
        triangle = tl.where(shown, key & ((1 << BITS) - 1), 0)
        # The ray, in the world and in the object's own frame.
        across = TANGENT * ((2.0 * j.to(tl.float32) + 1.0) / (2 * SIDE) - 1.0)
        up = TANGENT * (1.0 - (2.0 * i.to(tl.float32) + 1.0) / (2 * SIDE))
        gx, gy, gz = -HALF - HALF * up, across, -HALF + HALF * up
        dx = r00 * gx + r10 * gy + r20 * gz
        dy = r01 * gx + r11 * gy + r21 * gz
        dz = r02 * gx + r12 * gy + r22 * gz
        c = corners + triangle
        ax, ay, az = tl.load(c), tl.load(c + count), tl.load(c + 2 * count)
        c += 3 * count
        bx, by, bz = tl.load(c) - ax, tl.load(c + count) - ay, tl.load(c + 2 * count) - az
        c += 3 * count
        ex, ey, ez = tl.load(c) - ax, tl.load(c + count) - ay, tl.load(c + 2 * count) - az
        px, py, pz = dy * ez - dz * ey, dz * ex - dx * ez, dx * ey - dy * ex
        determinant = bx * px + by * py + bz * pz
        scale = 1.0 / tl.where(shown & (determinant != 0.0), determinant, 1.0)
        sx, sy, sz = sx0 - ax, sy0 - ay, sz0 - az
        qx, qy, qz = sy * bz - sz * by, sz * bx - sx * bz, sx * by - sy * bx
        u = _clamped(scale * (sx * px + sy * py + sz * pz))
        v = _clamped(scale * (dx * qx + dy * qy + dz * qz))
        ox, oy, oz = ax + u * bx + v * ex, ay + u * by + v * ey, az + u * bz + v * ez
        x = r00 * ox + r01 * oy + r02 * oz + cx
        y = r10 * ox + r11 * oy + r12 * oz + cy
        z = r20 * ox + r21 * oy + r22 * oz + cz
        s = 1.0 - u - v
        c += 3 * count
        ox, oy, oz = s * tl.load(c), s * tl.load(c + count), s * tl.load(c + 2 * count)
        c += 3 * count
        ox, oy, oz = ox + u * tl.load(c), oy + u * tl.load(c + count), oz + u * tl.load(c + 2 * count)
        c += 3 * count
        ox, oy, oz = ox + v * tl.load(c), oy + v * tl.load(c + count), oz + v * tl.load(c + 2 * count)
        nx = r00 * ox + r01 * oy + r02 * oz
        ny = r10 * ox + r11 * oy + r12 * oz
        nz = r20 * ox + r21 * oy + r22 * oz
        shrink = 1.0 / tl.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = nx * shrink, ny * shrink, nz * shrink
        outside = determinant > 0.0

        shrink = -1.0 / tl.sqrt(gx * gx + gy * gy + gz * gz)
        gx, gy, gz = gx * shrink, gy * shrink, gz * shrink
        cos_view = tl.maximum(nx * gx + ny * gy + nz * gz, 0.02)
        outer, inner = _fresnel(cos_view, OUTER), _fresnel(cos_view, INNER)
        matt = (1.0 - outer) * (1.0 - (1.0 - SHEEN) * inner) / PI
        shiny = GLOSS * outer

        cosine = tl.maximum(nz, 0.0)
        lit = SUN * _object_lit(m, sun_keys, x, y, z, outside, shown, CELLS, BITS, STEPS, BIAS)
        white_d = lit * cosine
        white_g = lit * _glossy(nx, ny, nz, gx, gy, gz, 0.0, 0.0, 1.0, cos_view, cosine, ALPHA2, PI)

        lx, ly, lz = -x, -y, LAMP - z
        squared = tl.maximum(lx * lx + ly * ly + lz * lz, 0.05)
        shrink = 1.0 / tl.sqrt(squared)
        lx, ly, lz = lx * shrink, ly * shrink, lz * shrink
        cosine = tl.maximum(nx * lx + ny * ly + nz * lz, 0.0)
        lit = LAMP_POWER * tl.maximum(lz, 0.0) / squared
        lit *= _object_lit(m + 16, lamp_keys, x, y, z, outside, shown, CELLS, BITS, STEPS, BIAS)
        white_d += lit * cosine
        white_g += lit * _glossy(nx, ny, nz, gx, gy, gz, lx, ly, lz, cos_view, cosine, ALPHA2, PI)

        lit, lx, ly, lz = _from_spot(
            spot_x - x, spot_y - y, spot_z - z, aim_x, aim_y, aim_z, SPOT_POWER, WIDTH, MIDDLE, EDGE
        )
        cosine = tl.maximum(nx * lx + ny * ly + nz * lz, 0.0)
        lit *= _object_lit(m + 32, spot_keys, x, y, z, outside, shown, CELLS, BITS, STEPS, BIAS)
        spot_d = matt * lit * cosine
        spot_s = shiny * lit * _glossy(nx, ny, nz, gx, gy, gz, lx, ly, lz, cos_view, cosine, ALPHA2, PI)
        white_d, white_g = matt * white_d, shiny * white_g
        object_red = object_r * (white_d + spot_r * spot_d) + white_g + spot_r * spot_s
        object_green = object_g * (white_d + spot_g * spot_d) + white_g + spot_g * spot_s
        object_blue = object_b * (white_d + spot_b * spot_d) + white_g + spot_b * spot_s
        there = out + picture * 3 * every + sample
        tl.store(there, object_red, mask=shown)
        tl.store(there + every, object_green, mask=shown)
        tl.store(there + 2 * every, object_blue, mask=shown)


@triton.jit(do_not_specialize=["n"])
def _picture(
    poses,
    table,
    keys,
    soft,
    things,
    out,
    n,
    SIDE: tl.constexpr,
    CELLS: tl.constexpr,
    SPOT_POWER: tl.constexpr,
    WIDTH: tl.constexpr,
    MIDDLE: tl.constexpr,
    EDGE: tl.constexpr,
    ALPHA2: tl.constexpr,
    PI: tl.constexpr,
    GROUND: tl.constexpr,
    NEAR_TAP: tl.constexpr,
    FAR_TAP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The ground's colour of each pixel, what lies before it at the 4 x 4 samples around, and bytes of both."""
    picture = tl.program_id(1).to(tl.int64)
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = pixel < SIDE * SIDE
    area = SIDE * SIDE
    p = poses + picture * 75
    spot_x, spot_y, spot_z = tl.load(p + 12), tl.load(p + 13), tl.load(p + 14)
    aim_x, aim_y, aim_z = tl.load(p + 15), tl.load(p + 16), tl.load(p + 17)
    spot_r, spot_g, spot_b = tl.load(p + 21), tl.load(p + 22), tl.load(p + 23)
    ground_r, ground_g, ground_b = tl.load(p + 24), tl.load(p + 25), tl.load(p + 26)
    m = p + 27
    each = CELLS * CELLS
    sun_soft, lamp_soft = soft + picture * each, soft + (n + picture) * each
    spot_soft = soft + (2 * n + picture) * each
    x = tl.load(table + pixel, mask=here, other=0.0)
    y = tl.load(table + area + pixel, mask=here, other=0.0)
    vx = tl.load(table + 2 * area + pixel, mask=here, other=0.0)
    vy = tl.load(table + 3 * area + pixel, mask=here, other=0.0)
    vz = tl.load(table + 4 * area + pixel, mask=here, other=1.0)
    diffuse = tl.load(table + 5 * area + pixel, mask=here, other=0.0)
    gloss = tl.load(table + 6 * area + pixel, mask=here, other=0.0)
    by_sun = _ground_lit(m, sun_soft, x, y, here, GROUND, CELLS)
    by_lamp = _ground_lit(m + 16, lamp_soft, x, y, here, GROUND, CELLS)
    by_spot = _ground_lit(m + 32, spot_soft, x, y, here, GROUND, CELLS)
    white_d = tl.load(table + 7 * area + pixel, mask=here, other=0.0) * by_sun
    white_g = tl.load(table + 8 * area + pixel, mask=here, other=0.0) * by_sun
    white_d += tl.load(table + 9 * area + pixel, mask=here, other=0.0) * by_lamp
    white_g += tl.load(table + 10 * area + pixel, mask=here, other=0.0) * by_lamp
    irradiance, lx, ly, lz = _from_spot(
        spot_x - x, spot_y - y, spot_z - GROUND, aim_x, aim_y, aim_z, SPOT_POWER, WIDTH, MIDDLE, EDGE
    )
    irradiance *= by_spot
    spot_d = diffuse * irradiance * lz
    spot_s = gloss * irradiance * _glossy(0.0, 0.0, 1.0, vx, vy, vz, lx, ly, lz, vz, lz, ALPHA2, PI)
    ground_r = ground_r * (white_d + spot_r * spot_d) + white_g + spot_r * spot_s
    ground_g = ground_g * (white_d + spot_g * spot_d) + white_g + spot_g * spot_s
    ground_b = ground_b * (white_d + spot_b * spot_d) + white_g + spot_b * spot_s

    covered = tl.zeros_like(x)
    red, green, blue = tl.zeros_like(x), tl.zeros_like(x), tl.zeros_like(x)
    row, column = pixel // SIDE, pixel % SIDE
    every = 4 * area
    samples, colours = keys + picture * every, things + picture * 3 * every
    for k in tl.static_range(16):
        i, j = 2 * row + (k // 4 - 1), 2 * column + (k % 4 - 1)
        inside = here & (i >= 0) & (i < 2 * SIDE) & (j >= 0) & (j < 2 * SIDE)
        weight = (NEAR_TAP if (k // 4 == 1) | (k // 4 == 2) else FAR_TAP) * (
            NEAR_TAP if (k % 4 == 1) | (k % 4 == 2) else FAR_TAP
        )
        sample = i * (2 * SIDE) + j
        shown = tl.load(samples + sample, mask=inside, other=-1) >= 0
        covered += tl.where(shown, weight, 0.0)
        red += weight * tl.load(colours + sample, mask=shown, other=0.0)
        green += weight * tl.load(colours + every + sample, mask=shown, other=0.0)
        blue += weight * tl.load(colours + 2 * every + sample, mask=shown, other=0.0)
    red += (1.0 - covered) * ground_r
    green += (1.0 - covered) * ground_g
    blue += (1.0 - covered) * ground_b
    there = out + picture * 3 * area + pixel
    tl.store(there, _srgb(red), mask=here)
    tl.store(there + area, _srgb(green), mask=here)
    tl.store(there + 2 * area, _srgb(blue), mask=here)
