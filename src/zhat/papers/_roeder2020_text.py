"""The figures of Roeder et al. 2020 that are about text: Figure 1, word models; Figure 4, language models.

The paper prints no tables. Figure 1 shows words of two models; Figure 4 shows curves, digitised by us from the stored
figure of the official notebook. What the paper leaves open is in `docs/roeder2020_text.md`.
"""

from __future__ import annotations

from dataclasses import replace

from zhat.datasets import CentreWords, Corpus, Windows
from zhat.encoders import GPT, ContextSum
from zhat.experiment import Budget, LayersAgree, Part, Peers, Row, WordsAgree, pretrained
from zhat.fresh import Fresh
from zhat.objectives import NegativeSampling, NextWord, WordSoftmax
from zhat.training import Constant, Recipe

NOVELS = Corpus("text_english_novels/novels95.jsonl.xz", words=8192)

# --- Figure 1: two word models

CONTEXTS = CentreWords(NOVELS, length=5)


def word_budgets(steps: int, seeds: int, lr: float) -> tuple[Budget, ...]:
    """The paper's 50,000 steps of at most 200 windows at a rate of 0.003; ours; one of a few seconds."""
    return (
        Budget("paper", Recipe(50_000, 200, 0.003, Constant(), together=1), seeds=seeds, rows=20_000),
        Budget("fast", Recipe(steps, 8192, lr, together=1), seeds=seeds, rows=20_000),
        Budget("smoke", Recipe(20, 256, lr, together=1), seeds=2, batches=2, rows=1000, judged=False),
    )


def words(name: str, title: str, dim: int, objective: Fresh, scale: float, *, seeds: int = 2, lr: float = 0.01) -> Row:
    """Word models of one kind."""
    encoder = Fresh(ContextSum, NOVELS.words, dim, scale=scale)
    return Row(name, title, CONTEXTS, encoder, objective, word_budgets(6_000, seeds, lr), against=Peers())


def softmax(dim: int) -> Fresh:
    """The canonical form, with offsets that begin at the words' frequencies."""
    return Fresh(WordSoftmax, dim, NOVELS.words, frequencies=NOVELS.frequencies)


FIGURE_1 = Part(
    paper="roeder2020",
    label="Figure 1",
    caption="Two log-bilinear word models, trained apart on the same text: where they put words, before and after a "
    "linear map of one onto the other, and how alike all frequent words and held-out contexts are.",
    score="mean CCA",
    rows=(
        words(
            "W2n",
            "2 dimensions, negative sampling (the paper's)",
            2,
            Fresh(NegativeSampling, 2, NOVELS.words),
            0.001,
            seeds=16,
        ),
        words("W2", "2 dimensions, softmax", 2, softmax(2), 0.1, seeds=16, lr=0.05),
        words("W64", "64 dimensions, softmax", 64, softmax(64), 0.1),
    ),
    judge=WordsAgree(frequent=2000, drawn=range(71, 91), consistent=("W2",)),
)

# --- Figure 4: hidden states of language models

LENGTH = 256  # words in a window


def language_model(width: int, depth: int, seeds: int) -> Row:
    """Language models of one size; wider ones are deeper, as in the family that the paper compares.

    A step is 128 windows of 256 words, and 2,000 steps are 65 million words, about four times the text. The paper
    trains no language model; its budget here is ten times ours.
    """
    alone = Recipe(2_000, 128, precision="bf16", graph=False, together=1)
    budgets = (
        Budget("paper", replace(alone, steps=20_000), seeds=seeds, rows=215),
        Budget("fast", alone, seeds=seeds, rows=215),
        Budget("smoke", replace(alone, steps=3, batch=2), seeds=seeds, batches=1, rows=24, judged=False),
    )
    encoder = Fresh(GPT, NOVELS.words, width=width, depth=depth, length=LENGTH)
    title = f"{depth} blocks of width {width}"
    return Row(f"G{width}", title, Windows(NOVELS, LENGTH), encoder, NextWord(), budgets, against=Peers())


FIGURE_4 = Part(
    paper="roeder2020",
    label="Figure 4",
    caption="Hidden states of language models trained apart, layer by layer: canonical correlations of their first "
    "principal components, averaged over all pairs of models. The last layer is the one that theory speaks of.",
    score="SVCCA",
    rows=(language_model(256, 12, seeds=2), language_model(320, 16, seeds=1), language_model(384, 20, seeds=1)),
    judge=LayersAgree(
        components=(16, 64, 256, 768),
        of=("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"),
        published=(
            (16, (0.89, 0.81, 0.74, 0.64)),
            (64, (0.84, 0.75, 0.69, 0.63)),
            (256, (0.68, 0.66, 0.61, 0.55)),
            (768, (0.55, 0.55, 0.53, 0.48)),
        ),
        twice=((0, 1), (1, 2), (2, 3), (1, 3), (0, 2), (0, 2)),
        corpus=NOVELS,
        window=LENGTH,
        load=pretrained,
    ),
)

NOTES = (
    "Figure 1 in the paper reads a Billion Word corpus in 8k subwords; here it is 95 English novels in the 8,192 "
    "most frequent lower-case words. The paper gives no number for it.",
    "The notebook draws the table g of words, not the contexts f that the caption names, and fits the map in the "
    "other direction than it uses it. Here it is fitted in the direction in which it is used, and f stands beside.",
    "Noise words of negative sampling are drawn by frequency; which ones the paper draws is not known, nor is its "
    "optimiser.",
    "Figure 4 in the paper compares four pretrained GPT-2 models on sentences of the Penn Treebank. Without "
    "--models the family is trained here on the novels. Published means stand beside those four models only; they "
    "are read off a plot, to about 0.02.",
    "The notebook counts the pair small and large twice and leaves out small and extra large; both averages are "
    "given for those four models.",
)
