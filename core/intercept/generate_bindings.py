#!/usr/bin/env python3
"""Writes the wrappers of one MPI's MPI_File_* functions from that MPI's own mpi.h.

The header is preprocessed by the C compiler and its MPI_File_* prototypes are read, so that handle
types are the real ones and `_c` variants appear where the MPI has them. Four files are written:

* real_functions.inc -- FOREBAY_REAL(name, result, parameters) for each function that Forebay calls:
  the table of the MPI's own functions is declared from it;
* implementations.inc -- prototypes of the hand-written functions (see OWN);
* wrappers.inc -- a wrapper for each function that takes a file handle, and the list that joins
  names and wrappers;
* traced_names.inc -- the names by which a trace knows the calls.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Functions that core/intercept/mpi implements by hand, for files that Forebay carries out itself.
# A large-count variant shares the implementation of its plain twin.
OWN = (
    frozenset(
        f"{kind}{form}"
        for kind in ("read", "write")
        for form in (
            "",
            "_at",
            "_all",
            "_at_all",
            "_shared",
            "_ordered",
            "_all_begin",
            "_all_end",
            "_at_all_begin",
            "_at_all_end",
            "_ordered_begin",
            "_ordered_end",
        )
    )
    | frozenset(
        f"i{kind}{form}"
        for kind in ("read", "write")
        for form in ("", "_at", "_all", "_at_all", "_shared")
    )
    | frozenset(
        (
            "get_byte_offset",
            "get_info",
            "get_position",
            "get_position_shared",
            "get_size",
            "get_view",
            "preallocate",
            "seek",
            "seek_shared",
            "set_atomicity",
            "set_info",
            "set_size",
            "set_view",
            "sync",
        )
    )
)

# Of those, the ones that also see files which pass through for now, because they may end that or
# must be known when it ends.
ALWAYS_OWN = frozenset(("set_atomicity", "set_info", "set_view"))

# Functions that change what a trace tells of an opening, and how it is told, in the names that the
# parameters have by their place.
TRACED_CHANGES = {
    "set_view": "trace_view(file, {1}, {2}, {3}, {4}); trace_hints(file, {0}, {5});",
    "set_info": "trace_hints(file, {0}, {1});",
}

# Functions that set the individual file pointer, and to which place, in etypes, if they succeed.
SETS_POINTER = {
    "seek": "{2} == MPI_SEEK_SET ? {1} : TracedPosition::unknown",
    "set_view": "0",
}

# Functions whose wrapper is hand-written as a whole, since they make or end a handle.
WHOLE = frozenset(("open", "close"))

# Functions that act on no open file, or only on its error handler: the MPI's own stands in the
# slot. The standard ABI of MPI 5 has fromint and toint in place of f2c and c2f.
UNTOUCHED = frozenset(
    (
        "c2f",
        "call_errhandler",
        "create_errhandler",
        "delete",
        "f2c",
        "fromint",
        "get_errhandler",
        "set_errhandler",
        "toint",
    )
)


@dataclass(frozen=True)
class Prototype:
    """One function: `name` without MPI_File_, and its parameters as (declaration, name)."""

    name: str
    result: str
    parameters: tuple[tuple[str, str], ...]

    @property
    def declared(self) -> str:
        return ", ".join(declaration for declaration, _ in self.parameters)

    @property
    def arguments(self) -> str:
        return ", ".join(name for _, name in self.parameters)

    @property
    def base(self) -> str:
        return self.name.removesuffix("_c")


def preprocess(compiler: str, include_dirs: list[str], definitions: list[str]) -> str:
    """The text of mpi.h after the preprocessor, without line markers."""
    options = [f"-I{path}" for path in include_dirs] + [f"-D{name}" for name in definitions]
    command = [compiler, "-E", "-P", "-x", "c", *options, "-"]
    return subprocess.run(
        command, input="#include <mpi.h>\n", capture_output=True, text=True, check=True
    ).stdout


def read_prototypes(header: str) -> list[Prototype]:
    """The MPI_File_* prototypes of a preprocessed header, by name.

    mpi.h declares these functions one by one, with named parameters and no function pointers but
    through typedefs, so a declaration is `result name ( parameters ) ;` once attributes are gone.
    """
    attribute = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
    text = re.sub(r"\s+", " ", attribute.sub("", header))
    found: dict[str, Prototype] = {}
    for match in re.finditer(
        r"(?<=[;}])(?: extern)? ?(int|MPI_File|MPI_Fint) MPI_File_(\w+) ?\(([^()]*)\) ?(?=;)", text
    ):
        result, name, parameters = match.groups()
        found[name] = Prototype(name, result, tuple(map(read_parameter, parameters.split(","))))
    return [found[name] for name in sorted(found)]


def read_parameter(declaration: str) -> tuple[str, str]:
    """("const void *buf", "buf") from " const void *buf"."""
    declaration = declaration.strip()
    match = re.search(r"(\w+)$", declaration)
    if match is None or match.group(1) == declaration:
        raise ValueError(f"a parameter without a name: {declaration!r}")
    return declaration, match.group(1)


def call_class(name: str) -> str:
    """The class under which a call is timed and counted (docs/formats/report.md)."""
    for prefix, result in (
        ("write", "write"),
        ("iwrite", "write"),
        ("read", "read"),
        ("iread", "read"),
        ("sync", "sync"),
    ):
        if name.startswith(prefix):
            return result
    return "other"


def traced_pointer(name: str) -> str:
    """By which file pointer a call moves data, as a trace tells it."""
    if re.fullmatch(r"i?(read|write)(_at)(_all)?(_begin)?", name):
        return "explicit_offset"
    if re.fullmatch(r"i?(read|write)(_shared|_ordered)(_begin)?", name):
        return "shared"
    if re.fullmatch(r"i?(read|write)(_all)?(_begin)?", name):
        return "individual"
    return "none"


def traced_arguments(function: Prototype, number: int) -> str:
    """What a trace tells of a call, as the members of TracedArguments."""
    members = [f".call = {number}", f".file = {function.parameters[0][1]}"]
    members.append(f".pointer = TracedPointer::{traced_pointer(function.base)}")
    names = dict(function.parameters)
    for declaration, member in (
        ("MPI_Offset offset", "offset"),
        ("MPI_Offset size", "offset"),
        ("int count", "count"),
        ("MPI_Count count", "count"),
        ("MPI_Datatype datatype", "datatype"),
    ):
        if declaration in names:
            members.append(f".{member} = {names[declaration]}")
    if status_of(function):
        members.append(f".status = {status_of(function)}")
    if writes_told(function):
        members.append(".writes = true")
    if place := SETS_POINTER.get(function.base):
        members.append(".sets_pointer = true")
        members.append(
            f".pointer_after = {place.format(*(name for _, name in function.parameters))}"
        )
    return "{" + ", ".join(members) + "}"


def status_of(function: Prototype) -> str:
    """The name of the parameter that takes the status of a call that moved data, or nothing."""
    if function.base not in OWN or not re.match(r"read|write", function.base):
        return ""
    return next((name for text, name in function.parameters if "MPI_Status" in text), "")


def writes_told(function: Prototype) -> bool:
    """Whether a call is told how much to write, and has written that when it returns."""
    declarations = [declaration for declaration, _ in function.parameters]
    return (
        function.base.startswith("write")
        and "MPI_Datatype datatype" in declarations
        and status_of(function) != ""
    )


def own_parameters(function: Prototype) -> str:
    """The parameters of a hand-written function: the open file instead of its handle, and a count
    that is wide in both variants."""
    rest = [
        "MPI_Count count" if declaration == "int count" else declaration
        for declaration, _ in function.parameters[1:]
    ]
    return ", ".join(["OpenFile& file", *rest])


def own_arguments(function: Prototype) -> str:
    return ", ".join(["file", *(name for _, name in function.parameters[1:])])


def wrapper(function: Prototype, number: int) -> str:
    """The C++ text of one wrapper; `number` is the place of its name in a trace."""
    handle = function.parameters[0][1]
    real = f"[&] {{ return real().{function.name}({function.arguments}); }}"
    entry = "intercept"
    if function.base in OWN:
        entry += "<Passing::to_own>" if function.base in ALWAYS_OWN else "<Passing::to_mpi>"
    after = ""
    if change := TRACED_CHANGES.get(function.base):
        names = [name for _, name in function.parameters]
        after = f", [&](TracedFile& file) {{ {change.format(*names)} }}"
    own = ""
    if function.base in OWN:
        own = f", [&](OpenFile& file) {{ return own::{function.base}({own_arguments(function)}); }}"
    lines = [f"{function.result} wrapped_{function.name}({function.declared}) noexcept {{"]
    if status := status_of(function):
        seen = "seen_write_status" if writes_told(function) else "seen_status"
        lines += ["  MPI_Status seen;", f"  {status} = {seen}({status}, seen);"]
    lines += [
        f"  return traced({traced_arguments(function, number)}, [&] {{",
        f"    return {entry}({handle}, CallClass::{call_class(function.name)}, {real}{own});",
        "  }" + after + ");",
        "}",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--compiler", required=True, help="C compiler that preprocesses mpi.h")
    parser.add_argument("--include", action="append", default=[], help="directory of mpi.h")
    parser.add_argument("--define", action="append", default=[], help="macro that mpi.h wants")
    parser.add_argument("--output", type=Path, required=True, help="directory to write into")
    options = parser.parse_args()

    functions = read_prototypes(preprocess(options.compiler, options.include, options.define))
    known = {function.name for function in functions}
    missing = (OWN | WHOLE | {"call_errhandler"}) - known
    if missing:
        print(f"mpi.h declares no MPI_File_{sorted(missing)[0]}", file=sys.stderr)
        return 1
    wrapped = [function for function in functions if function.name not in UNTOUCHED]

    called = {function.name for function in wrapped} | {"call_errhandler"}

    note = "// Written by core/intercept/generate_bindings.py.\n"
    traced_names = list(dict.fromkeys(function.base for function in wrapped))

    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "real_functions.inc").write_text(
        note
        + "".join(
            f"FOREBAY_REAL({function.name}, {function.result}, ({function.declared}))\n"
            for function in functions
            if function.name in called
        )
    )
    (options.output / "implementations.inc").write_text(
        note
        + "".join(
            f"int {function.name}({own_parameters(function)});\n"
            for function in functions
            if function.name in OWN
        )
    )
    (options.output / "wrappers.inc").write_text(
        note
        + "\n\n".join(
            wrapper(function, traced_names.index(function.base))
            for function in wrapped
            if function.name not in WHOLE
        )
        + "\n\nconst Binding bindings[] = {\n"
        + "".join(
            f'    {{"MPI_File_{function.name}", '
            f"reinterpret_cast<void (*)()>(wrapped_{function.name})}},\n"
            for function in wrapped
        )
        + "};\n"
    )
    (options.output / "traced_names.inc").write_text(
        note + "".join(f'"MPI_File_{name}",\n' for name in traced_names)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
