import contextlib
import zipfile

import numpy as np
import pytest

from zhat.errors import BadInput
from zhat.files.arrays import Spool, npz_names, read_npy, read_npz


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_arrays_of_an_archive_come_by_name_and_in_order(tmp_path):
    arrays = {
        "rows": np.arange(6.0).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "words": np.array(["a", "bc"]),
        "one": np.array(7),
        "none": np.empty((0, 3)),
        "fields": np.array([(1, 2.0)], dtype=[("größe", int), ("цвет", float)]),
    }
    np.savez(tmp_path / "x.npz", **arrays)
    assert npz_names(tmp_path / "x.npz") == list(arrays)
    for (name, array), found in zip(arrays.items(), read_npz(tmp_path / "x.npz", arrays), strict=True):
        assert np.array_equal(found, array), name
        assert found.dtype == array.dtype


def damaged(tmp_path, what):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, x=np.zeros((200, 3)))
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        content = archive.read("x.npy")
    if what == "flipped":
        data[60:80] = b"\xff" * 20
        path.write_bytes(bytes(data))
        return path
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        if what == "more than promised":
            archive.writestr("x.npy", content + bytes(10**8))
        elif what == "less than promised":
            archive.writestr("x.npy", content[:-8])
        elif what == "another name":
            archive.writestr("x.txt", content)
        elif what == "no header":
            archive.writestr("x.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((  ")
    return path


@pytest.mark.parametrize("what", ["flipped", "more than promised", "less than promised", "another name", "no header"])
def test_a_damaged_archive_gets_a_sentence(tmp_path, what):
    with pytest.raises(BadInput, match="must be an archive as numpy.savez writes it, but it cannot be read"):
        read_npz(damaged(tmp_path, what), ["x"])


def test_an_archive_is_not_unpacked_beyond_what_it_promises(tmp_path, monkeypatch):
    path = damaged(tmp_path, "more than promised")
    read = []
    original = zipfile.ZipExtFile.read
    monkeypatch.setattr(zipfile.ZipExtFile, "read", lambda self, n=-1: read.append(n) or original(self, n))
    with pytest.raises(BadInput, match="4800 bytes were promised and more came"):
        read_npz(path, ["x"])
    assert sum(n == 2**24 for n in read) == 1


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((  "])
def test_a_damaged_npy_gets_a_sentence(tmp_path, data):
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(BadInput, match="x.npy must hold one array of numbers as numpy.save writes it, but it cannot"):
        read_npy(tmp_path / "x.npy")


def test_a_header_that_promises_too_much_gets_a_sentence(tmp_path):
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8), }".ljust(117) + "\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + header.encode())
    with pytest.raises(BadInput, match="must hold one array as numpy.save writes it"):
        read_npy(tmp_path / "x.npy", "one array")


def test_a_file_of_another_length_than_it_promises_is_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((9, 3)))
    data = (tmp_path / "x.npy").read_bytes()
    for other in (data[:-8], data + bytes(8)):
        (tmp_path / "x.npy").write_bytes(other)
        with pytest.raises(BadInput, match=r"216 bytes were promised and (208|224) are there"):
            read_npy(tmp_path / "x.npy")


def test_an_array_that_no_disk_holds_is_refused_before_it_is_unpacked(tmp_path):
    with pytest.raises(ValueError, match="bytes are promised, and .* has .* left"):
        Spool().keep(iter([b""]), np.dtype(float), (10**15,))


def test_arrays_of_one_spool_share_one_descriptor():
    spool = Spool()
    arrays = [spool.keep([np.full(5, i).tobytes()], np.dtype(int), (5,)) for i in range(3)]
    assert [found[2:].tolist() for found in arrays] == [[i] * 3 for i in range(3)]
    assert {id(found.file) for found in arrays} == {id(spool)}


def test_an_archive_is_no_npy(tmp_path):
    (tmp_path / "x.npy").write_bytes(b"PK\x03\x04" + bytes(30))
    with pytest.raises(BadInput, match="x.npy must hold one array, but it is an archive of several. Name it .npz."):
        read_npy(tmp_path / "x.npy")


def test_damaged_bytes_never_end_in_a_traceback(tmp_path):
    random = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", np.ones((9, 3)))
    np.savez_compressed(tmp_path / "x.npz", x=np.ones((9, 3)))
    for name, read in (("x.npy", read_npy), ("x.npz", lambda path: read_npz(path, npz_names(path)))):
        whole = (tmp_path / name).read_bytes()
        for _ in range(200):
            some = np.frombuffer(whole, np.uint8).copy()
            some[random.integers(0, len(some), 8)] = random.integers(0, 256, 8)
            (tmp_path / name).write_bytes(some.tobytes())
            with contextlib.suppress(BadInput):
                read(tmp_path / name)
