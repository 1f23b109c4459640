"""Goal: each house rule catches what it is for and lets the allowed neighbour pass.

Method: small samples, one offending and one innocent, against the rule alone.
"""

from __future__ import annotations

import pytest
import tidy_rules as rules


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("core/plan/file_domains.hpp", "#include <thread>"),
        ("core/plan/file_domains.cpp", "#include <atomic>"),
        ("core/plan/file_domains.cpp", "#include <chrono>"),
        ("core/plan/file_domains.cpp", "#include <sys/stat.h>"),
        ("core/plan/file_domains.cpp", '#include "core/storage/file.hpp"'),
        ("core/model/hints.hpp", "#include <unistd.h>"),
        ("core/model/hints.hpp", "# include <atomic>"),
        ("core/model/hints.hpp", '#include "core/plan/file_domains.hpp"'),
        ("core/storage/posix_file.cpp", '#include "core/plan/file_domains.hpp"'),
        ("core/storage/posix_file.cpp", '#include "core/engine/collective/exchange.hpp"'),
        ("core/engine/collective/exchange.cpp", '#include "core/intercept/table.hpp"'),
        ("core/plan/file_domains_test.cpp", '#include "core/storage/file.hpp"'),
    ],
)
def test_a_room_that_looks_through_a_wall_is_reported(path: str, line: str) -> None:
    (complaint,) = rules.wall_complaints(path, f"#pragma once\n{line}\n")
    assert complaint.startswith(f"{path}:2: ")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("core/plan/file_domains.hpp", '#include "core/model/extent.hpp"'),
        ("core/plan/file_domains_test.cpp", "#include <chrono>"),
        ("core/model/counters.hpp", "#include <atomic>"),
        ("core/storage/posix_file.cpp", "#include <unistd.h>"),
        ("core/engine/collective/file.cpp", '#include "core/plan/file_domains.hpp"'),
        ("core/intercept/mpi/file.cpp", '#include "core/engine/collective/exchange.hpp"'),
    ],
)
def test_what_a_room_may_see_passes(path: str, line: str) -> None:
    assert rules.wall_complaints(path, line + "\n") == []


def test_mpi_is_seen_only_at_its_two_places() -> None:
    line = "#include <mpi.h>\n"
    assert rules.mpi_complaints("core/engine/collective/schedule.cpp", line)
    assert rules.mpi_complaints("core/storage/posix_file.cpp", line)
    assert rules.mpi_complaints("core/intercept/trampoline.cpp", line)
    assert not rules.mpi_complaints("core/engine/collective/mpi_exchange.cpp", line)
    assert not rules.mpi_complaints("core/intercept/mpi/file.cpp", line)
    assert not rules.mpi_complaints("proxies/lattice4d.cpp", line)


def test_defining_an_mpi_symbol_outside_intercept_is_reported() -> None:
    definition = (
        "// wraps MPI_File_open\n"
        'extern "C" {\n'
        "int MPI_File_write_at(MPI_File fh, MPI_Offset offset,\n"
        "                      const void *buffer) noexcept {\n"
    )
    path = "core/engine/collective/mpi_exchange.cpp"
    (complaint,) = rules.mpi_definition_complaints(path, definition)
    assert complaint.startswith(f"{path}:3: defines MPI_File_write_at")
    assert not rules.mpi_definition_complaints("core/intercept/mpi/data_calls.cpp", definition)


def test_calling_and_declaring_mpi_symbols_is_no_definition() -> None:
    text = (
        "int MPI_File_sync(MPI_File fh);\n"
        "void f() {\n"
        "  if (MPI_Comm_rank(comm, &rank) != MPI_SUCCESS) {\n"
        "  }\n"
        "  return MPI_File_close(&file);\n"
        "}\n"
    )
    assert not rules.mpi_definition_complaints("core/engine/collective/a.cpp", text)


def test_quoted_includes_start_at_the_root() -> None:
    assert rules.include_root_complaints("core/plan/a.cpp", '#include "a.hpp"\n')
    assert rules.include_root_complaints("core/plan/a.cpp", '#include "../model/extent.hpp"\n')
    assert not rules.include_root_complaints("core/plan/a.cpp", '#include "core/plan/a.hpp"\n')
    assert not rules.include_root_complaints("core/plan/a.cpp", "#include <fmt/format.h>\n")
    assert not rules.include_root_complaints("core/plan/a.cpp", '#include "generated.inc"\n')


def test_drawers_are_reported() -> None:
    assert rules.folder_complaints("core/utils/strings.hpp")
    assert rules.folder_complaints("toolkit/forebay/helpers.py")
    assert not rules.folder_complaints("core/model/extent.hpp")


def test_long_files_need_a_reason() -> None:
    text = "x\n" * (rules.LINES_MAX + 1)
    assert rules.length_complaints("core/plan/a.cpp", text, {})
    assert not rules.length_complaints("core/plan/a.cpp", text, {"core/plan/a.cpp": "a table"})
    assert not rules.length_complaints("core/plan/a.cpp", "x\n" * rules.LINES_MAX, {})


@pytest.mark.parametrize(
    "line",
    [
        "// TO" + "DO: later",
        "# FIX" + "ME",
        "see /wor" + "k/tree/core",
        "cd /ho" + "me/alice/forebay",
        'path = "/ro' + 'ot/.cache"',
    ],
)
def test_unfinished_work_and_machine_paths_are_reported(line: str) -> None:
    assert len(rules.text_complaints("a.cpp", "\n" + line + "\n")) == 1


@pytest.mark.parametrize(
    "line", ["mkstemp(name.XXXXXX)", "https://example.org/work/page", "mpirun --allow-run-as-root"]
)
def test_innocent_text_passes(line: str) -> None:
    assert not rules.text_complaints("a.cpp", line)


def test_a_format_names_its_version_and_checksum() -> None:
    assert len(rules.format_complaints("docs/formats/a.md", "# A\n")) == 2
    assert not rules.format_complaints("docs/formats/a.md", "# A, version 1\n\nChecksum: XXH64\n")
