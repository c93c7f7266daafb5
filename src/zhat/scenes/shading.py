r"""How bright a point is: direct light on a rubber surface.

The surface is a mixture of a diffuse and a rough glossy part, after the material of the 3DIdent scene. With the Fresnel
reflectances $F_1$ and $F_2$ (indices 1.25 and 1.55) of the angle between view $v$ and normal $n$, a light from the
direction $l$ with irradiance $E$ (before the cosine) gives

$$\text{colour} \cdot \frac{(1 - F_1)(1 - (1 - s) F_2)}{\pi} \, E \cos_l
+ g \, F_1 \, E \, \frac{D(h) \, G}{4 \cos_v}$$

where $D$ and $G$ are the GGX distribution and Smith's masking of half vectors $h$ for the roughness 0.59.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from zhat.scenes.vectors import dot, unit

ALPHA = 0.59**2  # GGX width of a roughness of 0.59
INDICES = (1.25, 1.55)  # of refraction, of the glossy coat and of the sheen below it


@dataclass(frozen=True)
class Light:
    """How bright and how wide the lights are, and what the surface does with it.

    The sizes are those of the 3DIdent scene. Its brightness, in Blender's units, is 0.5 W/m² of sun, 39.3 W of lamp,
    of which 1 / π goes along the axis, and 3000 W of spotlight, of which 1 / 4π goes in every direction of its cone.
    Sun, lamp, sheen and gloss are fitted to 200 pictures of Blender, from there on; `sun_radius` is too, because the
    scene does not say it (`python -m benchmarks.rendering --fit`).

    Attributes:
        sun: irradiance of the sun.
        sun_radius: half the angle of the sun's disc, in radians.
        lamp: intensity of the square lamp along its axis.
        lamp_side: its side.
        spot: intensity of the spotlight.
        spot_radius: its radius.
        cone: half the opening angle of the spotlight, in radians.
        blend: share of the cone, in cosines, over which it fades.
        sheen: s, how much of the light that the lower Fresnel layer reflects comes back in the colour.
        gloss: g, reflectance of the glossy part.
    """

    sun: float = 0.512
    sun_radius: float = 0.1
    lamp: float = 13.1
    lamp_side: float = 1.0
    spot: float = 3000 / (4 * math.pi)
    spot_radius: float = 0.5
    cone: float = math.radians(17.5)
    blend: float = 0.1
    sheen: float = 0.093
    gloss: float = 0.448

    @property
    def edge(self) -> tuple[float, float]:
        """The middle and the width of the cone's edge, as tangents of the angle to its axis."""
        outer = math.cos(self.cone)
        inner = math.tan(math.acos(outer + self.blend * (1 - outer)))
        return (math.tan(self.cone) + inner) / 2, math.tan(self.cone) - inner


def from_spot(there: Tensor, aim: Tensor, light: Light) -> tuple[Tensor, Tensor]:
    r"""Irradiance from the spotlight before the cosine, and the direction to it.

    The edge of the cone is smooth, and the lamp has a radius of r. Both widen the edge; a cubic step of the same
    variance stands for both. At the distance a along the axis it is $\sqrt{5 r^2 + (a \Delta)^2}$ wide, where $\Delta$
    is the width of the cone's own edge in tangents.

    Args:
        there: from the points to the spotlight, `(3, …)`.
        aim: the direction in which it shines, `(3, …)`.
        light: how bright and how wide.
    """
    middle, edge = light.edge
    squared = dot(there, there)
    ahead = -dot(there, aim)
    aside = (squared - ahead * ahead).clamp_min(0).sqrt()
    width = (5 * light.spot_radius**2 + (edge * ahead) ** 2).sqrt()
    x = ((middle * ahead - aside) / width + 0.5).clamp(0, 1)
    return light.spot * x * x * (3 - 2 * x) / squared, there * torch.rsqrt(squared)


def from_lamp(there: Tensor, light: Light) -> tuple[Tensor, Tensor]:
    """Irradiance from the square lamp, which shines down, before the cosine, and the direction to it."""
    squared = dot(there, there).clamp_min(0.05)  # a point of the object may touch the lamp
    to_lamp = there * torch.rsqrt(squared)
    return light.lamp * to_lamp[2].clamp_min(0) / squared, to_lamp


def fresnel(cosine: Tensor, index: float) -> Tensor:
    r"""The share of unpolarised light that a smooth dielectric reflects.

    $$F = \tfrac12 \left(\tfrac{g - c}{g + c}\right)^2
        \left(1 + \left(\tfrac{c (g + c) - 1}{c (g - c) + 1}\right)^2\right), \qquad g^2 = \text{index}^2 - 1 + c^2$$
    """
    c = cosine
    g = (index * index - 1 + c * c).sqrt()
    a, b = (g - c) / (g + c), (c * (g + c) - 1) / (c * (g - c) + 1)
    return 0.5 * a * a * (1 + b * b)


def weights(cos_view: Tensor, light: Light) -> tuple[Tensor, Tensor]:
    """The weights of the diffuse and of the glossy part."""
    outer, inner = (fresnel(cos_view, index) for index in INDICES)
    return (1 - outer) * (1 - (1 - light.sheen) * inner) / math.pi, light.gloss * outer


def glossy(normal: Tensor, view: Tensor, light: Tensor, cos_view: Tensor, cos_light: Tensor) -> Tensor:
    """D G / (4 cos_v): reflected radiance for one unit of irradiance before the cosine; 0 for light from behind."""
    half = unit(view + light)
    squared = ALPHA * ALPHA
    cos_half = dot(normal, half)
    peak = cos_half * cos_half * (squared - 1) + 1
    masking_view = cos_view + (squared + (1 - squared) * cos_view * cos_view).sqrt()
    masking_light = cos_light + (squared + (1 - squared) * cos_light * cos_light).sqrt()
    # G / (4 cos_v) = cos_l / (the two sums)
    return squared / math.pi * cos_light / (peak * peak * masking_view * masking_light)


def srgb(linear: Tensor) -> Tensor:
    """Linear light from 0 to 1 as bytes of the sRGB standard."""
    x = linear.clamp(0, 1)
    curved = torch.where(x <= 0.0031308, 12.92 * x, 1.055 * x.clamp_min(1e-8).pow(1 / 2.4) - 0.055)
    return (255 * curved + 0.5).to(torch.uint8)


def hue(angle: Tensor, saturation: float) -> Tensor:
    """Linear red, green and blue of a hue (in radians; red is 0) of that saturation and value 1, `(…) -> (3, …)`."""
    sixths = angle * (3 / math.pi)
    away = torch.stack([sixths, sixths - 2, sixths - 4])  # from red, green and blue
    away = (torch.remainder(away + 3, 6) - 3).abs()
    return 1 - saturation * (1 - (2 - away).clamp(0, 1))
