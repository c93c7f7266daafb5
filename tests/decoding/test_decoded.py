import os
from pathlib import Path

import numpy as np
import pytest
import torch

import zhat
from zhat.audit import decode, embeddings
from zhat.decoding.decoded import _halves
from zhat.errors import BadInput, TooFewRows, UnknownName
from zhat.metrics import Factor
from zhat.results import from_json, to_json


def planted(n=400, k=4, seed=0):
    random = np.random.default_rng(seed)
    h = random.normal(size=(n, k))
    known = {
        "position": h[:, 0] + 0.1 * random.normal(size=n),
        "angle": np.degrees(np.arctan2(h[:, 1], h[:, 2])) % 360,
        "side": np.where(h[:, 3] > 0, "left", "right"),
        "noise": random.normal(size=n),
    }
    return h, known


def test_planted_factors_are_found_and_noise_is_not():
    found = decode(*planted())
    assert [s.found for s in found.scores] == [True, True, True, False]
    assert [s.type for s in found.scores] == ["real", "circular", "categorical", "real"]
    assert found["position"].value > 0.95
    assert found.sentence.startswith(
        "3 of 4 factors can be read from h by a linear map: side best (balanced accuracy 0.9"
    )
    assert found.n_fit + found.n_read == found.n == 400
    assert found.split == "rows"
    assert zhat.decode is decode


def test_nothing_found_says_so():
    h, known = planted()
    text = str(decode(h, {"noise": known["noise"]}))
    assert text.startswith("No linear map reads any of 1 factor from h better than chance.")


def test_a_result_survives_json_and_the_same_seed_gives_it_again():
    h, known = planted()
    found = decode(h, known)
    assert from_json(to_json(found)) == found
    again = decode(torch.from_numpy(h), known)
    assert again.scores == found.scores
    assert decode(h, known, seed=1).scores != found.scores


def test_files_give_what_arrays_give_and_ids_join_rows(tmp_path):
    h, known = planted()
    np.save(tmp_path / "h.npy", h)
    lines = ["id," + ",".join(known)]
    lines += [f"{i}," + ",".join(str(c[i]) for c in known.values()) for i in np.random.default_rng(1).permutation(400)]
    (tmp_path / "f.csv").write_text("\n".join(lines))
    (tmp_path / "ids.txt").write_text("\n".join(str(float(i)) for i in range(400)))
    plain = decode(tmp_path / "h.npy", known)
    assert [s.value for s in plain.scores] == [s.value for s in decode(h, known).scores]
    joined = decode(tmp_path / "h.npy", tmp_path / "f.csv", ids=(tmp_path / "ids.txt", "id"))
    assert joined.n == 400
    assert joined["position"].value == pytest.approx(plain["position"].value)
    mixed = decode(tmp_path / "h.npy", tmp_path / "f.csv")  # in the wrong order nothing is left
    assert not mixed["position"].found


def test_too_few_rows_are_refused_with_the_number_needed():
    h, known = planted(100, 20)
    with pytest.raises(TooFewRows, match="100 rows cannot tell .* Bring at least 210 rows, .* --components 9") as error:
        decode(h, known)
    assert error.value.needed == 210
    assert decode(h, known, components=9).components == 9


def test_copies_stay_on_one_side_of_the_split():
    h, _ = planted(200)
    doubled = np.concatenate([h, h])
    fresh = np.random.default_rng(2).normal(size=200)
    twice = {"noise": np.concatenate([fresh, fresh])}
    held_out = _halves(embeddings(doubled), [Factor.real("noise", twice["noise"])], "auto", 0)[0]
    assert torch.equal(held_out[:200], held_out[200:])
    found = decode(doubled, twice)
    assert found.effective == 200
    assert "200 of 400 rows of h occur before; copies were kept on one side" in found.notes[0]
    assert not found["noise"].found
    assert "some were fitted and read" in decode(doubled, twice, split="rows").notes[0]


def test_sorted_rows_are_split_at_random_and_slow_series_in_pieces():
    h, known = planted(600)
    order = np.argsort(known["position"])
    only_sorted = decode(h[order], {"position": known["position"][order]})
    assert only_sorted.split == "rows"
    walk = np.random.default_rng(0).normal(size=(3000, 3)).cumsum(0) * 0.1
    series = decode(walk, {"noise": np.random.default_rng(1).normal(size=3000)})
    assert series.split == "pieces"
    assert series.effective < 500
    assert "neighbouring rows are alike beyond what the factors explain" in series.notes[0]
    assert "one by one as asked" in decode(walk, {"noise": walk[:, 0] ** 2}, split="rows").notes[0]


def test_a_constant_column_is_noted():
    h, known = planted()
    found = decode(np.concatenate([h, np.ones((400, 1))], 1), known)
    assert "1 of 5 columns of h have nothing to do with any factor, or are constant" in found.notes


def test_heat_maps_show_the_coordinates_that_matter():
    random = np.random.default_rng(0)
    h = random.normal(size=(1100, 100))
    found = decode(h, {"a": h[:, 90], "b": h[:, 3]})
    assert len(found.coordinates) == 64
    assert found.association[0][found.coordinates.index(90)] == pytest.approx(1.0)
    assert found.association[1][found.coordinates.index(3)] == pytest.approx(1.0)


def test_mistakes_get_a_sentence():
    h, known = planted()
    with pytest.raises(BadInput, match="h has 399 rows and factors has 400"):
        decode(h[:399], known)
    with pytest.raises(UnknownName, match="no split named 'half'. Known: auto, rows, pieces"):
        decode(h, known, split="half")
    with pytest.raises(UnknownName, match="no factor in factors named 'size'. Known: position"):
        decode(h, known, types={"size": "real"})
    with pytest.raises(UnknownName, match="no factor named 'size'"):
        decode(h, known)["size"]
    with pytest.raises(BadInput, match="`ids` is one name or a pair"):
        decode(h, known, ids=("a", "b", "c"))
    with pytest.raises(BadInput, match="`components` must be a whole number"):
        decode(h, known, components=0)
    with pytest.raises(BadInput, match="every row of the representation is the same|different rows"):
        decode(np.ones_like(h), known)


@pytest.mark.data
def test_position_and_scale_of_real_sprites_are_found_and_their_orientation_is_not():
    folder = Path(os.environ.get("ZHAT_DATA", "")) / "dsprites"
    if not folder.is_dir():
        pytest.skip("needs ZHAT_DATA to hold dsprites")
    with np.load(folder / "dsprites_random20k.npz") as archive:
        images = np.unpackbits(archive["images_packed"], axis=-1)
        values = archive["latents_values"]
    h = images.reshape(-1, 16, 4, 16, 4).mean((2, 4)).reshape(-1, 256)
    known = {"shape": values[:, 0], "scale": values[:, 1], "orientation": values[:, 2], "x": values[:, 3]}
    found = decode(h, known)
    assert [s.type for s in found.scores] == ["categorical", "real", "circular", "real"]
    assert [s.found for s in found.scores] == [True, True, False, True]
    assert found["x"].value > 0.8


def test_rows_with_empty_cells_are_left_out_of_both_files_and_counted(tmp_path):
    h = np.random.default_rng(0).normal(size=(200, 2))
    lines = [f"{a!r}" if i % 50 else "" for i, a in enumerate(h[:, 0].tolist())]
    (tmp_path / "f.csv").write_text("row,size\n" + "\n".join(f"{i},{line}" for i, line in enumerate(lines)) + "\n")
    with pytest.raises(BadInput, match="4 of its 200 rows have an empty cell"):
        decode(h, tmp_path / "f.csv")
    found = decode(h, tmp_path / "f.csv", gaps="drop")
    assert found.n == 196
    assert found["size"].value > 0.999
    assert "4 rows of f.csv have an empty cell and were left out" in found.notes
