r"""How bright a point is: direct light on a rubber surface.

The surface is a mixture of a diffuse and a rough glossy part, after the material of the 3DIdent scene. With the Fresnel
reflectances $F_1$ and $F_2$ (indices 1.25 and 1.55) of the angle between view $v$ and normal $n$, a light from the
direction $l$ with irradiance $E$ (before the cosine) gives

$$\text{colour} \cdot \frac{(1 - F_1)(1 - F_2 + s F_2)}{\pi} \, E \cos_l
+ 0.8 \, F_1 \, E \, \frac{D(h) \, G}{4 \cos_v}$$

where $D$ and $G$ are the GGX distribution and Smith's masking of half vectors $h$ for the roughness 0.59. Vectors are
`(3, …)` here: components first, so that each of them is one block of memory.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

ALPHA = 0.59**2  # GGX width of a roughness of 0.59
WHITE = 0.8  # reflectance of the glossy part


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The scalar product over the first axis."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def unit(a: Tensor) -> Tensor:
    """The vector of length 1 in the same direction."""
    return a * torch.rsqrt(dot(a, a))


def fresnel(cosine: Tensor, index: float) -> Tensor:
    r"""The share of unpolarised light that a smooth dielectric reflects.

    $$F = \tfrac12 \left(\tfrac{g - c}{g + c}\right)^2
        \left(1 + \left(\tfrac{c (g + c) - 1}{c (g - c) + 1}\right)^2\right), \qquad g^2 = \text{index}^2 - 1 + c^2$$
    """
    c = cosine
    g = (index * index - 1 + c * c).sqrt()
    a, b = (g - c) / (g + c), (c * (g + c) - 1) / (c * (g - c) + 1)
    return 0.5 * a * a * (1 + b * b)


def weights(cos_view: Tensor, sheen: float) -> tuple[Tensor, Tensor]:
    """The weights of the diffuse and of the glossy part."""
    outer, inner = fresnel(cos_view, 1.25), fresnel(cos_view, 1.55)
    return (1 - outer) * (1 - (1 - sheen) * inner) / math.pi, WHITE * outer


def glossy(normal: Tensor, view: Tensor, light: Tensor, cos_view: Tensor, cos_light: Tensor) -> Tensor:
    """D G / (4 cos_v): reflected radiance for one unit of irradiance before the cosine; 0 for light from behind."""
    half = unit(view + light)
    squared = ALPHA * ALPHA
    cos_half = dot(normal, half)
    peak = cos_half * cos_half * (squared - 1) + 1
    d = squared / (math.pi * peak * peak)
    masking_view = cos_view + (squared + (1 - squared) * cos_view * cos_view).sqrt()
    masking_light = cos_light + (squared + (1 - squared) * cos_light * cos_light).sqrt()
    return d * cos_light / (masking_view * masking_light)  # G / (4 cos_v) = cos_l / (the two sums)


def srgb(linear: Tensor) -> Tensor:
    """Linear light from 0 to 1 as bytes of the sRGB standard."""
    x = linear.clamp(0, 1)
    curved = torch.where(x <= 0.0031308, 12.92 * x, 1.055 * x.clamp_min(1e-8).pow(1 / 2.4) - 0.055)
    return (255 * curved + 0.5).to(torch.uint8)


def hue(angle: Tensor, saturation: float) -> Tensor:
    """Linear red, green and blue of a hue (radians) of that saturation and full value, `(…) -> (3, …)`."""
    turn = angle / (2 * math.pi)
    shifted = torch.stack([turn, turn - 1 / 3, turn - 2 / 3]) * 6  # red peaks at 0, green at 2, blue at 4 sixths
    distance = torch.remainder(shifted + 3, 6) - 3
    return 1 - saturation * (1 - (2 - distance.abs()).clamp(0, 1))
