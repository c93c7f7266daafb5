"""Rendered worlds: scenes that draw pictures from latents, as mixings of a process."""

from zhat.scenes.grid import SpriteGrid
from zhat.scenes.meshes import Mesh
from zhat.scenes.objects import Jug, StillLife, Teapot
from zhat.scenes.periodic import Periodic
from zhat.scenes.sprites import Sprites

__all__ = ["StillLife", "Jug", "Teapot", "Mesh", "Periodic", "Sprites", "SpriteGrid"]
