"""`forebay intent`: what is declared is what will be read, and what is written is understood."""

import itertools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import Forebay
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay import hdf5_extents, intent_file, root_extents
from forebay.errors import ForebayError
from forebay.intent_file import DeclaredReads, coalesced
from forebay.root_extents import Order

READS = '[[file]]\npath = "*.dat"\nwillneed = [[0, 0]]\n'
Extents = list[tuple[int, int]]


@pytest.mark.parametrize(
    ("intent", "speaks"),
    [
        (READS, True),
        ('[[file]]\npath = "a"\nbudget = "1MiB"\n', True),
        ('[[file]]\npath = "a"\ncache = "1MiB"\n', True),
        ('[[file]]\npath = "a"\n[file.cache]\nmode = "enable"\n', False),
        ('[[file]]\npath = "a"\ncb_nodes = 2\n', False),
        ("file = 3\n", False),
        ("no toml [", False),
    ],
)
def test_an_intent_speaks_of_reads_by_its_keys(tmp_path: Path, intent: str, speaks: bool) -> None:
    path = tmp_path / "intent.toml"
    path.write_text(intent)
    assert intent_file.declares_reads(path) is speaks
    assert not intent_file.declares_reads(tmp_path / "none.toml")


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20))))
def test_coalesced_reads_are_the_same_bytes_in_the_same_order(extents: Extents) -> None:
    def first_seen(some: Extents) -> list[int]:
        return list(
            dict.fromkeys(b for offset, length in some for b in range(offset, offset + length))
        )

    result = coalesced(extents)
    assert first_seen(result) == first_seen(extents)
    assert all(length > 0 for _, length in result)
    assert all(b[0] != a[0] + a[1] for a, b in itertools.pairwise(result))


def test_a_gap_is_read_with_its_neighbours() -> None:
    assert coalesced([(0, 10), (15, 5), (40, 1)], gap=5) == [(0, 20), (40, 1)]


@settings(deadline=None)
@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1)
    | st.binary(min_size=1).map(lambda name: os.fsdecode(name.replace(b"\0", b""))),
    st.lists(st.tuples(st.integers(0, 2**60), st.integers(1, 2**60)), max_size=5),
)
def test_what_is_written_is_toml_whatever_the_path(name: str, extents: Extents) -> None:
    path = Path("/data") / name.lstrip("/")
    text = intent_file.as_toml([DeclaredReads(path, extents)], f"a comment\n{name}\ud800")
    (section,) = tomllib.loads(text)["file"]
    assert section["willneed"] == [list(extent) for extent in extents]
    # fnmatch: a character behind a backslash stands for itself; ours: or a byte, by its number.
    plain = re.sub(
        rb"\\(?:x([89a-f][0-9a-f])|(.))",
        lambda found: found[2] or bytes.fromhex(found[1].decode()),
        section["path"].encode(),
        flags=re.DOTALL,
    )
    assert plain == os.fsencode(path.absolute())


def test_show_tells_figures_and_finds_what_is_no_pair(forebay: Forebay, tmp_path: Path) -> None:
    path = tmp_path / "intent.toml"
    path.write_text(
        '[[file]]\npath = "*.dat"\nwillneed = [[100, 50], ["1KiB", 24], [0, 100]]\n'
        'budget = "8MiB"\n[[file]]\npath = "b"\nwillneed = [[5], [1, 2, 3], "all"]\n'
    )
    answer = forebay("intent", "show", str(path))
    assert answer.code == 1
    assert "will be read: 3 extents, 174 B; 1 go back" in answer.output
    assert "budget = 8MiB" in answer.output
    assert "no pairs of offset and length: 3" in answer.output
    path.write_text("[[file]\n")
    answer = forebay("intent", "show", str(path))
    assert answer.code == 2
    assert "no TOML" in answer.errors


def test_show_names_what_nobody_knows(forebay: Forebay, tmp_path: Path) -> None:
    path = tmp_path / "intent.toml"
    path.write_text(
        '[[file]]\nwillneed = [[0, 0]]\n[[file]]\npath = "a"\nbuget = "1MiB"\ncb_nodes = 2\n'
    )
    answer = forebay("intent", "show", str(path))
    assert answer.code == 1
    assert f"{path}:1: path" in answer.output
    assert f"{path}:5: buget" in answer.output
    assert "section 2 (a) has a key buget: budget?" in answer.output
    assert "cb_nodes: " not in answer.output


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ("[[fiel]]\npath = 'a'", 3),
        ("willneed = [[0, 1], [-5, 1]]", 3),
        ("budget = '0 apples'", 3),
        ("policy = 'foo'", 3),
        ("gap = 'many'", 3),
        ("block = -3", 3),
        ("cb_nodes = 'many'", 3),
    ],
)
def test_show_tells_what_a_run_would(
    forebay: Forebay, tmp_path: Path, wrong: str, line: int
) -> None:
    path = tmp_path / "intent.toml"
    path.write_text(f"[[file]]\npath = 'a'\n{wrong}\n")
    answer = forebay("intent", "show", str(path))
    assert answer.code == 1
    assert f"{path}:{line}: " in answer.output


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"version = 2\n", ":1: version 2"),
        (b"[[file]]\npath = 'a'\nwillneed = [[0, 18446744073709551616]]\n", ":3, column"),
        (b"[[file]]\npath = 'a\xff'\n", ":2: the byte 0xff"),
    ],
)
def test_show_refuses_what_has_no_effect_as_a_whole(
    forebay: Forebay, tmp_path: Path, content: bytes, told: str
) -> None:
    path = tmp_path / "intent.toml"
    path.write_bytes(content)
    answer = forebay("intent", "show", str(path))
    assert answer.code == 2
    assert f"{path}{told}" in answer.errors


def test_a_run_tells_of_sections_that_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "intent.toml"
    path.write_text(f"{READS}[[fiel]]\npath = 'z'\n[[file]]\nwillneed = [[0, 0]]\n")
    told = intent_file.unseen_mistakes(path)
    assert told == [
        f"{path}: fiel is not known: [[file]] sections and version = 1 are",
        f"{path}: section 2 has no path: a pattern of the files that it is for",
    ]


def test_nothing_is_declared_of_what_is_not_stored(forebay: Forebay, tmp_path: Path) -> None:
    out = tmp_path / "reads.toml"
    answer = forebay("intent", "from-trace", str(tmp_path), "-o", str(out))
    assert answer.code == 2
    assert "there is nothing to declare" in answer.errors
    assert not out.exists()


def _bytes_at(path: Path, extents: Extents) -> bytes:
    content = path.read_bytes()
    return b"".join(content[offset : offset + length] for offset, length in extents)


def test_datasets_of_hdf5_are_where_the_extents_say(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "fields.h5"
    chunked = np.arange(64 * 48, dtype="<i8").reshape(64, 48)
    plain = np.arange(1000, dtype="<f8")
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("fields/chunked", chunked.shape, "<i8", chunks=(16, 12))
        for row in reversed(range(0, 64, 16)):  # on the device in another order than in the array
            dataset[row : row + 16] = chunked[row : row + 16]
        file["fields/plain"] = plain
        file.create_dataset("empty", (10, 10), "<f8", chunks=(5, 5))
    chunks = [chunked[r : r + 16, c : c + 12] for r in range(0, 64, 16) for c in range(0, 48, 12)]
    stored = b"".join(np.ascontiguousarray(chunk).tobytes() for chunk in chunks)
    reads = hdf5_extents.extents_of(path, ["fields/chunked"])
    assert _bytes_at(path, reads.extents) == stored
    reads = hdf5_extents.extents_of(path, ["fields"])
    assert _bytes_at(path, reads.extents) == stored + plain.tobytes()
    assert hdf5_extents.extents_of(path, ["empty"]).extents == []
    with pytest.raises(ForebayError, match="no dataset fields/other"):
        hdf5_extents.extents_of(path, ["fields/other"])
    (tmp_path / "text").write_text("no HDF5")
    with pytest.raises(ForebayError, match="cannot be read as HDF5"):
        hdf5_extents.extents_of(tmp_path / "text", ["fields"])


def test_the_user_block_of_an_hdf5_file_is_counted_once_whatever_the_library_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "fields.mat"
    values = np.arange(32, dtype="<i8")
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("chunked", data=values, chunks=(8,))
        file["plain"] = values
    chunked = hdf5_extents.extents_of(path, ["chunked"]).extents
    plain = hdf5_extents.extents_of(path, ["plain"]).extents
    assert _bytes_at(path, chunked) == _bytes_at(path, plain) == values.tobytes()
    # By a library of the other kind: only what it says of chunks is shifted.
    counts = hdf5_extents._chunks_count_the_user_block()
    monkeypatch.setattr(hdf5_extents, "_chunks_count_the_user_block", lambda: not counts)
    shift = 512 if counts else -512
    shifted = hdf5_extents.extents_of(path, ["chunked"]).extents
    assert shifted == [(offset + shift, length) for offset, length in chunked]
    assert hdf5_extents.extents_of(path, ["plain"]).extents == plain


def test_what_is_no_dataset_or_cannot_be_opened_is_an_error_that_says_so(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "fields.h5"
    with h5py.File(path, "w") as file:
        file["type"] = np.dtype("<f8")
        file["plain"] = np.arange(1000)
        name_at = h5py.h5o.get_info(file["plain"].id).addr
    with pytest.raises(ForebayError, match=r"type of .* is a type of data, and no"):
        hdf5_extents.extents_of(path, ["type"])
    content = bytearray(path.read_bytes())
    content[name_at : name_at + 64] = b"\xff" * 64
    path.write_bytes(content)
    with pytest.raises(ForebayError, match="cannot be read as HDF5") as refused:
        hdf5_extents.extents_of(path, ["plain"])
    assert "\n" not in refused.value.message


class _Index:
    """Of three chunks, as older h5py tell it: each by going through the index."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.chunks = [
            SimpleNamespace(chunk_offset=(place,), byte_offset=100 * place, size=80)
            for place in (1, 0, 2)
        ]

    def get_num_chunks(self) -> int:
        return len(self.chunks)

    def get_chunk_info(self, number: int) -> SimpleNamespace:
        self.asked.append(number)
        return self.chunks[number]


class _IteratedIndex(_Index):
    def chunk_iter(self, see: Callable[[SimpleNamespace], None]) -> None:
        for chunk in self.chunks:
            see(chunk)


def test_the_chunks_of_a_dataset_are_gone_through_once_where_h5py_can() -> None:
    for index, asked in ((_Index(), [0, 1, 2] * 2), (_IteratedIndex(), [])):
        dataset = SimpleNamespace(chunks=(1,), id=index)
        assert hdf5_extents._stored(dataset, 0) == [(0, 80), (100, 80), (200, 80)]
        assert hdf5_extents._stored(dataset, 512) == [(512, 80), (612, 80), (712, 80)]
        assert index.asked == asked


def test_branches_of_root_are_where_the_extents_say(tmp_path: Path) -> None:
    uproot = pytest.importorskip("uproot")
    path = tmp_path / "events.root"
    random = np.random.default_rng(1)
    with uproot.recreate(path) as file:
        tree = file.mktree("Events", {"x": "f8", "y": "f8", "z": "i4"})
        for _ in range(4):
            tree.extend({"x": random.random(500), "y": random.random(500), "z": np.arange(500)})
    reads = root_extents.extents_of(path, "Events", ["x"], Order.ENTRY, buffer=1)
    both = root_extents.extents_of(path, "Events", ["x", "y"], Order.ENTRY, buffer=1)
    assert (len(reads.extents), reads.origin) == (4, "format")
    assert len(root_extents.extents_of(path, "Events", [], Order.BRANCH).extents) >= 4
    assert sum(length for _, length in both.extents) > 2 * 4 * 500 * 7  # no gain by compression
    whole = root_extents.extents_of(path, "Events", ["x"], Order.ENTRY, buffer=512)
    assert [offset for offset, _ in whole.extents] == [offset for offset, _ in reads.extents]
    assert all(length % 512 == 0 for _, length in whole.extents)
    with uproot.open(path) as file:
        before = file["Events"].arrays(["y", "z"], library="np")
    damaged = bytearray(path.read_bytes())
    for offset, length in reads.extents:
        damaged[offset : offset + length] = bytes(length)
    path.write_bytes(damaged)
    with uproot.open(path) as file:
        after = file["Events"].arrays(["y", "z"], library="np")
        assert all((before[name] == after[name]).all() for name in ("y", "z"))
        with pytest.raises(Exception, match=r".+"):
            file["Events"].arrays(["x"], library="np")
    with pytest.raises(ForebayError, match="no tree Other"):
        root_extents.extents_of(path, "Other", [], Order.ENTRY)
    with pytest.raises(ForebayError, match="no branch q"):
        root_extents.extents_of(path, "Events", ["q"], Order.ENTRY)


def test_what_is_no_tree_is_an_error_that_names_the_trees(tmp_path: Path) -> None:
    uproot = pytest.importorskip("uproot")
    path = tmp_path / "mixed.root"
    with uproot.recreate(path) as file:
        file["counts"] = np.histogram(np.arange(10.0), bins=4)
        file.mkrntuple("Tuple", {"x": np.arange(10.0)})
        file.mktree("below/Events", {"x": "f8"}).extend({"x": np.arange(10.0)})
    for name, kind in (("counts", r"TH1\w"), ("Tuple", "ROOT::RNTuple"), ("below", "TDirectory")):
        with pytest.raises(ForebayError, match=f"{name} of .* is a {kind}, and no") as refused:
            root_extents.extents_of(path, name, [], Order.ENTRY)
        assert refused.value.advice == "Its trees: below/Events."


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_root_file_is_an_error_or_another_answer(tmp_path: Path, seed: int) -> None:
    """Never an exception of uproot's or of its reading of what is no number."""
    uproot = pytest.importorskip("uproot")
    path = tmp_path / "events.root"
    random = np.random.default_rng(seed)
    with uproot.recreate(path) as file:
        file.mktree("Events", {"x": "f8"}).extend({"x": random.random(500)})
    content = bytearray(path.read_bytes())
    begin = int(random.integers(0, len(content) - 400))
    content[begin : begin + 400] = random.bytes(400)
    path.write_bytes(content)
    try:
        reads = root_extents.extents_of(path, "Events", [], Order.ENTRY)
    except ForebayError as refused:
        assert "\n" not in refused.message  # noqa: PT017 - it may also be read
    else:
        assert all(offset + length <= len(content) for offset, length in reads.extents)


def test_the_command_writes_an_intent_file(forebay: Forebay, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["data"] = np.arange(100)
    out = tmp_path / "reads.toml"
    answer = forebay(
        "intent", "from-hdf5", str(tmp_path / "a.h5"), "--dataset", "data", "-o", str(out)
    )
    assert answer.code == 0, answer.errors
    (section,) = tomllib.loads(out.read_text())["file"]
    assert section["path"] == str(tmp_path / "a.h5")
    assert section["willneed"][0][1] == 800
    assert "1 extents, 800 B" in answer.errors
    answer = forebay("intent", "from-hdf5", str(tmp_path / "a.h5"), "--dataset", "no")
    assert answer.code == 2
    assert "no dataset no" in answer.errors


def test_show_reads_a_pipe_once(environ: dict[str, str]) -> None:
    command = [sys.executable, "-m", "forebay", "intent", "show", "/dev/stdin"]
    answer = subprocess.run(
        command,
        input=READS + "buget = 1\n",
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1, answer.stderr
    assert "/dev/stdin:4: buget" in answer.stdout
    assert "will be read: 1 extents" in answer.stdout
