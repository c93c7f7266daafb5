import gzip

import numpy as np
import pytest

from zhat.errors import BadInput, UnknownName
from zhat.files import embeddings, joined
from zhat.files.tables import BLOCK, read_columns, read_rows


def written(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding=encoding)
    return path


def rows(path, ids=None):
    return np.concatenate([some for some, _ in read_rows(path, ids)]).tolist()


def test_a_byte_order_mark_costs_no_row(tmp_path):
    assert rows(written(tmp_path, "1,2\n3,4\n", "utf-8-sig")) == [[1, 2], [3, 4]]
    assert rows(written(tmp_path, "a,b\n3,4\n", "utf-8-sig")) == [[3, 4]]
    assert list(read_columns(written(tmp_path, "a,b\n3,4\n", "utf-8-sig"))[0]) == ["a", "b"]


def test_a_first_line_of_numbers_is_a_row_and_one_of_names_is_none(tmp_path):
    assert rows(written(tmp_path, "1,2\n3,4\n")) == [[1, 2], [3, 4]]
    assert rows(written(tmp_path, "x,y\n1,2\n3,4\n")) == [[1, 2], [3, 4]]
    assert str(rows(written(tmp_path, "nan,inf\n3,4\n"))) == "[[nan, inf], [3.0, 4.0]]"


@pytest.mark.parametrize("word", ["NA", "", "null", "N/A", "none", "?", "<NA>"])
def test_a_gap_in_the_first_line_does_not_make_it_a_header(tmp_path, word):
    sentence = f"first line of x.csv must name every column or hold numbers alone, but '{word}' stands there beside '1'"
    with pytest.raises(BadInput, match=sentence.replace("?", "\\?")):
        rows(written(tmp_path, f"1,{word}\n3,4\n"))
    with pytest.raises(BadInput, match="first line of x.csv must name every column"):
        rows(written(tmp_path, f"{word or ','}\n3\n"))


def test_a_first_line_that_mixes_words_and_numbers_is_refused_for_rows_and_columns(tmp_path):
    path = written(tmp_path, "0.5,red\n0.7,blue\n")
    for read in (rows, read_columns, embeddings):
        with pytest.raises(BadInput, match="but 'red' stands there beside '0.5'. Repair that line, or add"):
            read(path)


def test_a_column_of_ids_makes_the_first_line_a_header(tmp_path):
    path = written(tmp_path, "id,0,1\na,3,4\nb,5,6\n")  # as data frames without names are written
    assert rows(path, "id") == [[3, 4], [5, 6]]
    assert [ids for _, ids in read_rows(path, "id")] == [["a", "b"]]
    assert list(read_columns(path, "id")[0]) == ["id", "0", "1"]
    with pytest.raises(UnknownName, match="no column in x.csv named 'key'. Known: a, b"):
        rows(written(tmp_path, "a,b\n3,4\n"), "key")


def test_rows_come_in_blocks_and_a_bad_cell_is_found_between_its_lines(tmp_path):
    lines = [f"{i},{i}" for i in range(2 * BLOCK)]
    path = written(tmp_path, "\n".join(lines))
    assert [len(some) for some, _ in read_rows(path)] == [BLOCK, BLOCK]
    lines[-1] = "1,two"
    with pytest.raises(BadInput, match=f"between lines {BLOCK + 1} and {2 * BLOCK} could not convert string .*'two'"):
        rows(written(tmp_path, "\n".join(lines)))
    with pytest.raises(BadInput, match=f"between lines {BLOCK + 2} and {2 * BLOCK + 1} "):
        rows(written(tmp_path, "\n".join(["a,b", *lines])))


def test_ids_of_columns_stay_text(tmp_path):
    found, _ = read_columns(written(tmp_path, "id,size\n007,1\n8,2\n"), "id")
    assert found["id"].tolist() == ["007", "8"]
    assert found["size"].tolist() == [1.0, 2.0]


def test_files_that_are_no_text_get_a_sentence(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"1,2\n\xff\xfe,4\n")
    with pytest.raises(BadInput, match="must be a table of numbers, but it cannot be read"):
        rows(path)
    with pytest.raises(BadInput, match="must be a table, but it cannot be read"):
        read_columns(path)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_columns_of_arrow_files_are_named_and_whole(tmp_path, suffix):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'zhat[parquet]'")
    from tests.files.test_embeddings import put

    table = arrow.table({"size": [0.5, 1.5], "colour": ["red", "blue"]})
    found, gaps = read_columns(put(arrow, table, tmp_path / f"x{suffix}"))
    assert {name: values.tolist() for name, values in found.items()} == table.to_pydict()
    assert not any(own.any() for own in gaps.values())
    lacking = arrow.table({"size": [0.5, None], "colour": [None, "red"], "count": [1, 2]})
    found, gaps = read_columns(put(arrow, lacking, tmp_path / f"y{suffix}"))
    assert {name: own.tolist() for name, own in gaps.items()} == {
        "size": [False, True],
        "colour": [True, False],
        "count": [False, False],
    }
    assert [found["size"][0], np.isnan(found["size"][1]), *found["colour"]] == [0.5, True, "", "red"]
    twice = arrow.table([[1], [2]], names=["a", "a"])
    with pytest.raises(BadInput, match="each differently"):
        read_columns(put(arrow, twice, tmp_path / f"z{suffix}"))


def test_numbered_rows_of_two_tables_join(tmp_path):
    a = written(tmp_path, "id,x\n0,1\n1,2\n2,3\n")
    left = embeddings(a, ids="id")
    for ids in (["2", "0"], ["2.0", "0.0"], [2, 0]):
        first, second = joined(left, embeddings(np.array([[3.0], [1.0]]), ids=ids))
        assert first.block(slice(0, 2)).tolist() == second.block(slice(0, 2)).tolist() == [[1], [3]]


@pytest.mark.parametrize(("suffix", "separator"), [(".csv.gz", ","), (".tsv", "\t"), (".tsv.gz", "\t"), (".CSV", ",")])
def test_tabs_and_compressed_lines_are_read_as_plain_ones(tmp_path, suffix, separator):
    text = "id,x,y\na,1,2\nb,3,4\n".replace(",", separator).encode()
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith(".gz") else text)
    assert rows(path, "id") == [[1, 2], [3, 4]]
    assert read_columns(path, "id")[0]["y"].tolist() == [2, 4]
    found = embeddings(path, ids="id")
    assert found.ids.tolist() == ["a", "b"]


def test_a_compressed_table_that_was_cut_is_refused(tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 1000)[:-4])
    with pytest.raises(BadInput, match="must be a table of numbers, but it cannot be read"):
        rows(path)


def test_a_word_for_a_missing_value_is_a_gap_among_numbers_and_a_value_among_text(tmp_path):
    found, gaps = read_columns(written(tmp_path, "size,colour\n1,none\nNA,red\n3,\n"))
    assert gaps["size"].tolist() == [False, True, False]
    assert gaps["colour"].tolist() == [False, False, True]
    assert found["size"][[0, 2]].tolist() == [1, 3]
    assert found["colour"].tolist() == ["none", "red", ""]


def test_rows_with_an_empty_cell_are_refused_or_left_out_of_all_files(tmp_path):
    path = written(tmp_path, "x,y\n1,2\n3,\n5,6\n7,NA\n9,10\n")
    with pytest.raises(
        BadInput, match=r"x.csv has an empty cell \(row 1, column 1; row 0 is the first\). Fill it, or leave"
    ):
        embeddings(path)
    with pytest.raises(UnknownName, match="no way to treat empty cells named 'keep'. Known: refuse, drop"):
        embeddings(path, gaps="keep")
    dropped = embeddings(path, gaps="drop")
    assert (dropped.rows, dropped.left_out, dropped.kept.tolist()) == (3, 2, [0, 2, 4])
    whole = embeddings(np.arange(5.0)[:, None])
    left, right = joined(dropped, whole)
    assert left.block(slice(0, 3)).tolist() == [[1, 2], [5, 6], [9, 10]]
    assert right.block(slice(0, 3)).tolist() == [[0], [2], [4]]
    left, right = joined(
        embeddings(path, gaps="drop", ids=list("abcde")), embeddings(np.arange(2.0)[:, None], ids=["e", "b"])
    )
    assert (left.block(slice(0, 1)).tolist(), right.block(slice(0, 1)).tolist()) == ([[9, 10]], [[0]])
    with pytest.raises(BadInput, match="x.csv has 5 rows and an array has 3"):
        joined(dropped, embeddings(np.ones((3, 1))))
    with pytest.raises(BadInput, match="every row of x.csv has an empty cell"):
        embeddings(written(tmp_path, "x,y\n1,\n"), gaps="drop")


def test_a_folder_of_shards_counts_what_it_left_out(tmp_path):
    for i, text in enumerate(("1,2\n3,\n", "5,6\n", "7,8\n,9\n")):
        (tmp_path / f"{i}.csv").write_text("x,y\n" + text)
    found = embeddings(tmp_path, gaps="drop")
    assert (found.rows, found.left_out, found.kept.tolist()) == (3, 2, [0, 2, 3])
    assert found.block(slice(0, 3)).tolist() == [[1, 2], [5, 6], [7, 8]]
