"""Rendered worlds: scenes that draw pictures from latents, as mixings of a process."""

from zhat.scenes.grid import SpriteGrid
from zhat.scenes.meshes import Mesh
from zhat.scenes.objects import SCENES, Jug, StillLife, Teapot
from zhat.scenes.periodic import Periodic
from zhat.scenes.sprites import Sprites
from zhat.scenes.traversal import traversal

__all__ = ["StillLife", "Jug", "Teapot", "SCENES", "Mesh", "traversal", "Periodic", "Sprites", "SpriteGrid"]
