"""Judges that compare trained models with each other: word models, and the layers of language models."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, ClassVar

import torch
from scipy import stats
from torch import Tensor, nn

from zhat import randomness
from zhat.datasets import Corpus
from zhat.equivalence import LINEAR
from zhat.errors import BadInput
from zhat.experiment.against import mean_loss
from zhat.experiment.judges import Evidence
from zhat.experiment.scoring import numbers
from zhat.experiment.settings import Budget, Row
from zhat.files import local_folder, read_model, read_tokenizer
from zhat.metrics import CCA, Moments, align, divergence
from zhat.metrics.similarity import principal_components
from zhat.results import Agreement, Judgement, Measured, WordMap

TRAINING_LOSS = "training loss"


@dataclass(frozen=True, eq=False)
class Model:
    """A model that can be compared: trained here, or given by the user.

    Attributes:
        name: of the model.
        encoder: in evaluation mode.
        objective: the trained objective; None for a model that was given.
        row: what it was trained from; None for a model that was given.
        tokenize: for a model that was given, a text as the numbers it reads.
        seed: of its initial weights.
    """

    name: str
    encoder: nn.Module
    objective: Any = None
    row: Row | None = None
    tokenize: Callable[[str], list[int]] | None = None
    seed: int = 0


@dataclass(frozen=True)
class WordsAgree:
    """Word models of the same row are the same up to a linear map: mean CCA of words g(y) and of contexts f(x).

    Theory speaks of models with equal probabilities, and trainings may end in different minima. Of more than two models
    of a row, the two with the lowest loss on training rows are therefore compared as well, drawn and judged; the mean
    over all pairs stands beside, and how far apart the probabilities of each pair are.

    Attributes:
        frequent: compare so many of the most frequent words; fewer where the vocabulary has fewer.
        drawn: numbers of the words that the figure shows, for models of two dimensions.
        consistent: rows whose objective is the canonical form; the claim is about them.
        least: the mean CCA that counts as agreement.
        read: training rows on which losses are compared, in batches of 1,024. Minima may differ by a thousandth of a
            nat, which a few batches do not tell. Budgets that judge nothing read `budget.rows`.
    """

    frequent: int
    drawn: range
    consistent: tuple[str, ...]
    least: float = 0.95
    read: int = 2**19
    load: ClassVar[None] = None

    def __call__(self, evidence: Evidence) -> Judgement:
        """Compare the models of each row."""
        if not evidence.finished:
            return Judgement(claim=evidence.open)
        device, budget = evidence.device, evidence.chosen[0].budget(evidence.budget)
        by_row: dict[str, list[Model]] = {}
        for model in evidence.models():
            by_row.setdefault(model.row.name, []).append(model)
        every, lowest, maps = [], {}, []
        agreements: list[Agreement] = []
        for row in evidence.chosen:
            losses = [self._loss(m, row, budget, device) for m in by_row[row.name]]
            values = tuple(losses)
            evidence.readings[row.name] = {TRAINING_LOSS: Measured(None, values, values, digits=4)}
            mine = [m for _, m in sorted(zip(losses, by_row[row.name], strict=True), key=lambda pair: pair[0])]
            contexts = row.process.held_out.sample(  # type: ignore[attr-defined]
                budget.rows, generator=randomness.generator(0, "compare", device)
            )
            words = [m.objective.rows.detach().to(device)[1 : self.frequent + 1] for m in mine]
            f = [m.encoder(contexts.x[0]).detach() for m in mine]
            apart = _apart(f, mine)
            for what, sides in ((f"{len(words[0]):,} words, g(y)", words), ("held-out contexts, f(x)", f)):
                pairs = [_cca(a, b) for a, b in combinations(sides, 2)]
                found = [replace(_agreement(row.title, what, mine, pairs), apart=apart)]
                if len(mine) > 2:
                    two = replace(_agreement(row.title, what, mine[:2], pairs[:1]), apart=apart[:1])
                    found.append(replace(two, chosen=f"the two lowest losses of {len(mine)}"))
                agreements += found
                if sides is words:
                    every.append(found[0])
                    lowest[row.name] = found[-1]
            if words[0].shape[1] == 2 and len(mine) > 1:
                names = [row.process.corpus.vocabulary[i] for i in self.drawn]  # type: ignore[attr-defined]
                places = [i - 1 for i in self.drawn]
                maps.append(word_map(row.title, names, places, words[0], words[1]))
        holds, claim = self._claim(every, lowest)
        if evidence.open:
            holds, claim = None, evidence.open
        return Judgement(claim=claim, holds=holds, agreements=tuple(agreements), words=tuple(maps))

    def _loss(self, model: Model, row: Row, budget: Budget, device: torch.device) -> float:
        """The loss on training rows, the same ones for every model."""
        rows = self.read if budget.judged else budget.rows
        batch = min(rows, 1024)
        return mean_loss(model.encoder, model.objective, row.process, device, batch=batch, batches=rows // batch)

    def _claim(self, every: Sequence[Agreement], lowest: Mapping[str, Agreement]) -> tuple[bool | None, str]:
        """Whether words agree, from all pairs of each row and from the pair that is judged, by the row's name."""
        judged = [lowest[name] for name in self.consistent if name in lowest]
        titles = sorted({a.group for a in judged})
        asked = f". At least {self.least} is asked of {', '.join(titles)}" if titles else ""
        said = "; ".join(_said(a, b) for a, b in zip(every, lowest.values(), strict=True))
        holds = min(a.mean for a in judged) >= self.least if judged else None
        return holds, f"mean CCA of words: {said}{asked}"


def _said(every: Agreement, lowest: Agreement) -> str:
    if lowest is every:
        return f"{every.mean:.3f} for {every.group}"
    rank = stats.spearmanr(every.apart, every.values).statistic
    return (
        f"{lowest.mean:.3f} for {every.group} (the two lowest losses; all {len(every.values)} pairs: {every.mean:.3f}, "
        f"rank correlation with the distance between probabilities {rank:.2f})"
    )


def _apart(f: Sequence[Tensor], models: Sequence[Model]) -> tuple[float, ...]:
    """How far apart the probabilities of every pair of word models are; log-weights are one more column."""
    assert models[0].row is not None, "word models are trained here"
    shares = models[0].row.process.corpus.frequencies()  # type: ignore[attr-defined]
    ones = f[0].new_ones(len(f[0]), 1)
    heads = [
        torch.cat([m.objective.rows, m.objective.log_weights(shares)[:, None]], 1).detach().to(ones) for m in models
    ]
    found = divergence([torch.cat([each, ones], 1) for each in f], heads)
    return tuple(float(found[i, j]) for i, j in combinations(range(len(f)), 2))


def word_map(title: str, words: Sequence[str], places: Sequence[int], first: Tensor, second: Tensor) -> WordMap:
    """Some words before and after the best linear map of the second model onto the first.

    The map is fitted by least squares in the direction in which it is used, over all rows of the tables.
    """
    a, b = ((t.double() - t.double().mean(0)) / t.double().std(0) for t in (first, second))
    mapped = align(Moments.of(a, b), LINEAR)(b)
    return WordMap(title, tuple(words), *(numbers(t[list(places)]) for t in (a, b, mapped)))


@dataclass(frozen=True)
class LayersAgree:
    """Hidden states of language models, layer by layer from the last: standardised SVCCA over all pairs of models.

    Attributes:
        components: how many principal components; at most one less than the narrowest model has columns, because a
            norm at the end of a model takes one direction away.
        most: how many layers, counted from the last.
        every: layers that the figure shows and the claim orders: the last, the one `every` before it, and so on.
        published: published means by (components, layers before the last), for the models named in `of`.
        of: names of those models.
        twice: pairs, by their place in `of`, over which the paper averages; one of them counts twice.
        corpus: what given models read.
        window: given models read as many words as there are in `budget.rows` windows of this length.
        load: makes a model of a name that the user gives instead of the trained ones.
    """

    components: tuple[int, ...] = (16, 64, 256, 768)
    most: int = 13
    every: int = 4
    published: tuple[tuple[int, tuple[float, ...]], ...] = ()
    of: tuple[str, ...] = ()
    twice: tuple[tuple[int, int], ...] = ()
    corpus: Corpus | None = None
    window: int = 256
    load: Callable[[str], Model] | None = None

    def __call__(self, evidence: Evidence) -> Judgement:
        """Compare all pairs of models, and of the same models before training."""
        if not evidence.finished:
            return Judgement(claim=evidence.open)
        device, budget = evidence.device, evidence.chosen[0].budget(evidence.budget)
        models: tuple[Model, ...] = evidence.models()
        if len(models) < 2:
            raise BadInput("a family is compared pair by pair, but one model came. Leave --row out, or name two rows.")
        found = self._compared(models, budget, device)
        if all(model.row is not None for model in models):
            before = self._compared([_untrained(model, device) for model in models], budget, device)
            found = [replace(a, untrained=b.mean) for a, b in zip(found, before, strict=True)]
        holds, claim = (None, evidence.open) if evidence.open else self._claim(found)
        return Judgement(claim=claim, holds=holds, agreements=tuple(found))

    def _compared(self, models: Sequence[Model], budget: Budget, device: torch.device) -> list[Agreement]:
        """One agreement for each number of components and each layer."""
        states = tuple(self._states(models, budget, device))
        narrowest = min(layers[0].shape[1] for layers in states)
        kept = {min(k, narrowest - 1): k for k in reversed(self.components)}  # and what was asked for
        groups = [f"{k} components" for k in sorted(kept)]
        agreements: list[Agreement] = []
        for before in range(min(self.most, *(len(layers) for layers in states))):
            name = "last" if before == 0 else f"last - {before}"
            sides = [principal_components(layers[-1 - before], max(kept), standardised=True) for layers in states]
            pairs = [_svcca(a, b, sorted(kept)) for a, b in combinations(sides, 2)]
            for k, group, scores in zip(sorted(kept), groups, zip(*pairs, strict=True), strict=True):
                found = replace(_agreement(group, name, models, scores), before=before, shown=before % self.every == 0)
                agreements.append(self._beside_published(found, kept[k], before, models))
        return sorted(agreements, key=lambda a: groups.index(a.group))

    def _beside_published(self, agreement: Agreement, k: int, before: int, models: Sequence[Model]) -> Agreement:
        if tuple(m.name for m in models) != self.of:
            return agreement
        means = dict(self.published).get(k, ())
        values = dict(zip(combinations(range(len(models)), 2), agreement.values, strict=True))
        known = agreement.shown and before // self.every < len(means)
        return replace(
            agreement,
            published=means[before // self.every] if known else None,
            by_paper=statistics.fmean(values[pair] for pair in self.twice),
        )

    def _claim(self, agreements: Sequence[Agreement]) -> tuple[bool, str]:
        """The last layer agrees best, and agreement falls with every `every` layers before it."""
        groups = list(dict.fromkeys(a.group for a in agreements))
        falls, said = [], []
        for group in groups:
            shown = [a.mean for a in agreements if a.group == group and a.shown]
            falls.append(all(a > b for a, b in pairwise(shown)))
            said.append(f"{group} {(' > ' if falls[-1] else ', ').join(f'{v:.3f}' for v in shown)}")
        judged = falls[:-1] or falls  # with all directions of the narrowest model it is not what the paper claims
        return all(judged), (
            f"mean correlation of the last layer and of every {self.every}th before it: {'; '.join(said)}. The last is "
            "to agree best and the others less the further they are, for all but the largest number of components"
        )

    def _states(self, models: Sequence[Model], budget: Budget, device: torch.device) -> Iterator[list[Tensor]]:
        """The last layers of every model for the same words, each `(words, width)`, the very last one last."""
        read: list[Tensor] = []
        for model in models:
            if model.row is not None:
                generator = randomness.generator(0, "compare", device)
                held_out = model.row.process.held_out  # type: ignore[attr-defined]
                windows = held_out.sample(budget.rows, generator=generator).x[0]
                yield stacked(model.encoder.hidden_states, windows.split(16), self.most)  # type: ignore[arg-type]
                continue
            texts = self._texts(model, budget)
            if read and not (len(read) == len(texts) and all(map(torch.equal, read, texts))):
                raise BadInput(
                    f"{model.name} and {models[0].name} cut text into different pieces, so their states belong to "
                    "different rows. Give models that share a tokenizer."
                )
            read = texts
            yield stacked(_hidden(model.encoder), [ids[None].to(device) for ids in texts], self.most)

    def _texts(self, model: Model, budget: Budget) -> list[Tensor]:
        """Held-out paragraphs as a given model reads them, one after the other, until there are enough words."""
        assert self.corpus is not None and model.tokenize is not None, "a given model reads texts"  # noqa: PT018
        longest = getattr(getattr(model.encoder, "config", None), "max_position_embeddings", 1024)
        left = budget.rows * self.window
        texts: list[Tensor] = []
        for paragraph in (p for text in self.corpus.held_out_text() for p in text.split("\n\n")):
            ids = torch.tensor(model.tokenize(paragraph.strip())[: min(longest, left)], dtype=torch.long)
            if len(ids):
                texts.append(ids)
                left -= len(ids)
            if not left:
                break
        return texts


def _untrained(model: Model, device: torch.device) -> Model:
    """The same model with its initial weights."""
    assert model.row is not None, "a model that was trained here"
    encoder: nn.Module = randomness.build(model.row.encoder, model.seed, "encoder")
    return replace(model, encoder=encoder.to(device).eval())


def _hidden(encoder: nn.Module) -> Callable[[Tensor], Sequence[Tensor]]:
    return lambda ids: encoder(input_ids=ids, output_hidden_states=True).hidden_states


@torch.no_grad()
def stacked(hidden_states: Callable[[Any], Sequence[Tensor]], texts: Sequence[Any], most: int) -> list[Tensor]:
    """The last layers of some texts, `(n, T, width)` each, as rows of one matrix for each layer."""
    found = [[h.flatten(0, -2).float() for h in hidden_states(text)[-most:]] for text in texts]
    return [torch.cat(layer) for layer in zip(*found, strict=True)]


def pretrained(name: str) -> Model:
    """A language model of Hugging Face from this machine: a name in its cache, or a folder. Nothing is fetched.

    Args:
        name: for instance "gpt2".
    """
    folder = local_folder(name)
    encoder, tokenizer = read_model(folder), read_tokenizer(folder)
    return Model(Path(name).name, encoder, tokenize=lambda text: tokenizer(text)["input_ids"])


Read = tuple[float, Sequence[float], float, int]
"""Mean correlation of a pair of models, its correlations, chance, rows."""


def _cca(a: Tensor, b: Tensor) -> Read:
    score = CCA()(a, b)
    assert score.chance is not None, "rows were shuffled"
    return score.value, score.per_latent, score.chance, score.n


def _svcca(a: Tensor, b: Tensor, components: Sequence[int]) -> list[Read]:
    """SVCCA of two models from their principal components, for several numbers of them."""
    generator = randomness.generator(0, "shuffle")
    far = b[torch.randperm(len(b), generator=generator).to(b.device)]
    near, chance = a.T @ b, a.T @ far
    out = []
    for k in components:
        rho, by_chance = (torch.linalg.svdvals(cross[:k, :k]).clamp(0, 1) for cross in (near, chance))
        out.append((float(rho.mean()), rho.tolist(), float(by_chance.mean()), len(a)))
    return out


def _agreement(group: str, name: str, models: Sequence[Model], pairs: Sequence[Read]) -> Agreement:
    """What all pairs of some models say together."""
    if not pairs:
        raise BadInput("models are compared pair by pair, but one model came. Ask for at least two seeds.")
    values, each, chance, n = zip(*pairs, strict=True)
    return Agreement(
        group=group,
        name=name,
        pairs=tuple((a.name, b.name) for a, b in combinations(models, 2)),
        values=values,
        chance=statistics.fmean(chance),
        coefficients=tuple(round(statistics.fmean(rho), 5) for rho in zip(*each, strict=True)),
        n=n[0],
    )
