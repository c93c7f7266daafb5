"""Rendered worlds: scenes that draw pictures from latents, as mixings of a process."""

from zhat.scenes.meshes import Mesh
from zhat.scenes.objects import Jug, StillLife, Teapot
from zhat.scenes.periodic import Periodic
from zhat.scenes.room import Room
from zhat.scenes.room_grid import RoomGrid
from zhat.scenes.sprite_grid import SpriteGrid
from zhat.scenes.sprites import Sprites
from zhat.scenes.traversal import SCENES, Scene, drawn_again, traversal

__all__ = [
    "Scene",
    "StillLife",
    "Jug",
    "Teapot",
    "Periodic",
    "Room",
    "RoomGrid",
    "Sprites",
    "SpriteGrid",
    "SCENES",
    "Mesh",
    "traversal",
    "drawn_again",
]
