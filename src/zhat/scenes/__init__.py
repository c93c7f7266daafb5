"""Scenes: mixings that draw pictures of latents."""

from zhat.scenes.grid import SpriteGrid
from zhat.scenes.sprites import Sprites

__all__ = ["Sprites", "SpriteGrid"]
