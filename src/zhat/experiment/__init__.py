"""From a setting to records and tables: declare rows, train what is missing, set it beside the published numbers."""

from zhat.experiment.against import Against, Also, Factors, Latents, Peers, Twin
from zhat.experiment.alike import Alike, Chance, FirstComponents, LeastAlike, LinearR2, TwoRoads
from zhat.experiment.decoded import Decoded
from zhat.experiment.judges import Along, Evidence, Judge, Verdicts, verdict
from zhat.experiment.peers import LayersAgree, Model, WordsAgree, pretrained
from zhat.experiment.readings import HeadOffScale, HeadToVectors, OffScale, Reading, Shortest, Trained
from zhat.experiment.reproducing import forget, reproduce
from zhat.experiment.running import run, seconds_per_step
from zhat.experiment.scoring import score
from zhat.experiment.settings import Budget, Paper, Part, Row
from zhat.experiment.targets import Targets, TargetsRead

__all__ = [
    "score",
    "run",
    "reproduce",
    "verdict",
    "forget",
    "seconds_per_step",
    "Budget",
    "Row",
    "Part",
    "Paper",
    "Against",
    "Latents",
    "Factors",
    "Decoded",
    "Twin",
    "Peers",
    "Targets",
    "Judge",
    "Evidence",
    "Verdicts",
    "Along",
    "WordsAgree",
    "LayersAgree",
    "TargetsRead",
    "Model",
    "pretrained",
    "Reading",
    "Trained",
    "HeadToVectors",
    "OffScale",
    "HeadOffScale",
    "Also",
    "Shortest",
    "Alike",
    "LeastAlike",
    "Chance",
    "FirstComponents",
    "LinearR2",
    "TwoRoads",
]
