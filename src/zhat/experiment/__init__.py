"""From a setting to records and tables: declare rows, train what is missing, set it beside the published numbers."""

from zhat.experiment.agreeing import LayersAgree, WordsAgree, pretrained
from zhat.experiment.alike import Alike, Chance, FirstComponents, LeastAlike, LinearR2, TwoRoads
from zhat.experiment.family import Compared, Family, Model
from zhat.experiment.readings import HeadOffScale, HeadToVectors, OffScale, Reading, Trained
from zhat.experiment.reproducing import forget, reproduce, verdict
from zhat.experiment.running import run, seconds_per_step
from zhat.experiment.scoring import score
from zhat.experiment.settings import Budget, Paper, Row, Sweep, Table

__all__ = [
    "score",
    "run",
    "reproduce",
    "verdict",
    "forget",
    "seconds_per_step",
    "Budget",
    "Row",
    "Table",
    "Sweep",
    "Family",
    "Model",
    "Compared",
    "WordsAgree",
    "LayersAgree",
    "pretrained",
    "Paper",
    "Reading",
    "Trained",
    "HeadToVectors",
    "OffScale",
    "HeadOffScale",
    "Alike",
    "LeastAlike",
    "Chance",
    "FirstComponents",
    "LinearR2",
    "TwoRoads",
]
