"""The world: spaces, distributions, mixings and processes that draw latents and show observations."""

from zhat.dgp.augmenting import CropAndColour
from zhat.dgp.batch import Batch, encoder_input
from zhat.dgp.clusters import Clusters
from zhat.dgp.conditionals import Around, Conditional, VonMisesFisher
from zhat.dgp.marginals import Distribution, GeneralizedNormal, Laplace, Normal, Uniform
from zhat.dgp.mixing import AtMost, BestOf, Embedding, InvertibleMLP, Layers, Linear, Mixer, Mixing, Orthogonal
from zhat.dgp.pairs import Pairs
from zhat.dgp.process import Process, reseeded
from zhat.dgp.sectors import Sectors
from zhat.dgp.spaces import Box, Product, Real, Space, Sphere
from zhat.dgp.stored import Copies, Neighbours, Stored
from zhat.dgp.violating import Beside, Correlated, Either, Folded, Halves, Mixture

__all__ = [
    "Space",
    "Real",
    "Sphere",
    "Box",
    "Product",
    "Distribution",
    "Uniform",
    "Normal",
    "Laplace",
    "GeneralizedNormal",
    "Conditional",
    "Around",
    "VonMisesFisher",
    "Mixing",
    "Mixer",
    "Layers",
    "InvertibleMLP",
    "Linear",
    "Orthogonal",
    "Embedding",
    "BestOf",
    "AtMost",
    "Process",
    "reseeded",
    "Batch",
    "encoder_input",
    "Pairs",
    "Clusters",
    "Sectors",
    "Stored",
    "Neighbours",
    "Copies",
    "CropAndColour",
    "Correlated",
    "Mixture",
    "Either",
    "Halves",
    "Beside",
    "Folded",
]
