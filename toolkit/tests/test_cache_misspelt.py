"""`forebay cache` tells of words that name nothing, and of nothing to do."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Forebay
from made_logs import Left, environ_with_tool


@pytest.fixture
def environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return environ_with_tool(environ, tmp_path)


@pytest.mark.parametrize(("verb", "code"), [("ls", 0), ("verify", 1), ("recover", 1), ("watch", 1)])
def test_a_file_that_is_misspelt_is_told(
    forebay: Forebay, left: Left, tmp_path: Path, verb: str, code: int
) -> None:
    left.leave("--committed-blocks", "10")
    answer = forebay("cache", verb, tmp_path / "typo.h5")
    assert answer.code == code
    assert f"{tmp_path}/typo.h5 does not exist" in answer.errors
    left.file.unlink()
    answer = forebay("cache", "ls", left.file)
    assert "does not exist" not in answer.errors  # There is a log of it.


@pytest.mark.parametrize("name", [b"out.dat", b"out \xff.dat"])
def test_a_file_that_is_gone_is_known_by_any_name_that_it_had(
    forebay: Forebay, left: Left, tmp_path: Path, name: bytes
) -> None:
    left = replace(left, file=left.file.with_name(os.fsdecode(name)))
    left.file.touch()
    left.leave("--committed-blocks", "10")
    left.file.unlink()
    (tmp_path / "link").symlink_to(tmp_path)
    named = tmp_path / "link" / left.file.name
    assert forebay("cache", "verify", named).code == 0
    answer = forebay("cache", "recover", "--into", tmp_path / "new", named)
    assert (answer.code, answer.errors) == (0, "")
    assert (tmp_path / "new").read_bytes() == left.data


def test_a_log_that_is_misspelt_is_told(forebay: Forebay, left: Left) -> None:
    left.leave("--committed-blocks", "10")
    assert forebay("cache", "verify", "--log", "log-0", left.local).code == 0
    answer = forebay("cache", "verify", "--log", "log-0", "--log", "log-7", left.local)
    assert (answer.code, answer.errors) == (1, "forebay: no log log-7 was found\n")


def test_a_lost_node_that_no_log_is_of_is_told(forebay: Forebay, left: Left) -> None:
    left.leave("--committed-blocks", "10")
    answer = forebay("cache", "recover", "--lost", "node-2", left.file)
    assert answer.code == 0
    assert "--lost node-2 names nothing here: no log is missing" in answer.errors


def test_what_cannot_be_dropped_is_told_as_json_too(forebay: Forebay, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = forebay("cache", "drop", "--json", "--yes", tmp_path / "empty")
    assert answer.code == 1
    assert json.loads(answer.output)["files"] == []
    assert "there is no log to drop" in answer.errors
