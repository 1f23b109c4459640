"""`forebay apply`: a configuration as the lines that put it to use, and those that take it back."""

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.configurations import Configuration, sections_toml
from forebay.errors import ForebayError
from forebay.stock_hints import FOREBAY_ONLY, for_romio, stock_variables
from forebay.units import parse_size

_STRIPE_COUNT = ("striping_factor", "stripe_width")
_STRIPE_SIZE = ("striping_unit", "stripe_size")
_FIRST_SERVER = ("start_iodevice",)
_WILDCARDS = re.compile(r"[*?\[\\]")


@dataclass(frozen=True)
class Application:
    """What to copy. Lines of `use` and `undo` are for a shell."""

    name: str
    format: str
    lines: list[str]
    use: list[str]
    undo: list[str]

    def text(self) -> str:
        """Lines, and the rest as comments: a file that every reader of the format takes."""
        parts = [f"# {self.name}: use", *map(_comment, self.use)]
        parts += ["# undo", *map(_comment, self.undo)]
        return "\n".join([*self.lines, *parts]) + "\n"


def _comment(line: str) -> str:
    """Of a line in which the name of a directory may have line breaks of its own."""
    return "\n".join(f"#   {part}" for part in line.splitlines())


def _intent(configuration: Configuration, _directory: Path) -> Application:
    name = configuration.name
    if configuration.stock:
        raise ForebayError(
            f"'{name}' is for the MPI library, which reads no intent file",
            "Write --format sh, romio or slurm.",
        )
    _require(not configuration.environment, configuration, "variables, which no intent file holds")
    _require(
        bool(configuration.hints or configuration.sections), configuration,
        "no hint that an intent file could hold",
    )  # fmt: skip
    lines = sections_toml(configuration).rstrip("\n").split("\n")
    use = [f"forebay run --intent {name}.toml -- COMMAND"]
    return Application(name, "intent", lines, use, [f"rm {name}.toml"])


def _shell(configuration: Configuration, _directory: Path) -> Application:
    return _script(configuration, "sh", "COMMAND")


def _slurm(configuration: Configuration, _directory: Path) -> Application:
    return _script(configuration, "slurm", "srun ./program")


def _script(configuration: Configuration, shape: str, command: str) -> Application:
    """Lines for a shell, or for a batch script, before the command."""
    name = configuration.name
    lines: list[str] = []
    undo: list[str] = []
    variables = dict(configuration.environment)
    start = command if configuration.stock else f"forebay run -- {command}"
    if configuration.stock:
        romio = for_romio(configuration.hints)
        if romio:
            lines += _here(f"{name}.romio", [f"{key} {value}" for key, value in romio.items()])
            undo.append(f"rm {name}.romio")
        variables |= stock_variables(configuration.hints, None)
    elif configuration.hints:
        variables["FOREBAY_HINTS"] = ";".join(f"{k}={v}" for k, v in configuration.hints.items())
    if configuration.sections:
        sections = Configuration(name, sections=configuration.sections)
        lines += _here(f"{name}.toml", sections_toml(sections).rstrip("\n").split("\n"))
        undo.append(f"rm {name}.toml")
    lines += [f"export {key}={shlex.quote(value)}" for key, value in variables.items()]
    unset = list(variables)
    if configuration.sections:
        lines.append(f'export FOREBAY_INTENT="$PWD"/{name}.toml')
        unset.append("FOREBAY_INTENT")
    if configuration.stock and romio:
        lines.append(f'export ROMIO_HINTS="$PWD"/{name}.romio')
        unset.append("ROMIO_HINTS")
    if shape == "slurm":
        lines.append(start)
    if unset:
        undo.insert(0, f"unset {' '.join(unset)}")
    undo = undo or ["nothing is set"]
    if not configuration.stock:
        undo.append(f"start it without Forebay: {command}")
    return Application(name, shape, lines, [start], undo)


def _here(file: str, content: list[str]) -> list[str]:
    """Lines that make a file in the working directory."""
    end = "EOF"
    while end in content:
        end += "_"
    return [f"cat > {file} <<'{end}'", *content, end]


def _romio(configuration: Configuration, _directory: Path) -> Application:
    name = configuration.name
    known = {
        key: value
        for key, value in for_romio(configuration.hints).items()
        if not key.startswith(FOREBAY_ONLY)
    }
    _require(bool(known), configuration, "no hint for all files that ROMIO knows")
    lines = [f"{key} {value}" for key, value in known.items()]
    left_out = [key for key in configuration.hints if key not in known]
    left_out += [f"section of {section['path']}" for section in configuration.sections]
    left_out += list(configuration.environment)
    lines += [f"# not ROMIO's: {each}" for each in left_out]
    use = [f'export ROMIO_HINTS="$PWD"/{name}.romio', "COMMAND"]
    return Application(name, "romio", lines, use, ["unset ROMIO_HINTS", f"rm {name}.romio"])


def _lfs(configuration: Configuration, directory: Path) -> Application:
    """Striping of directories, which files that are made there take over. Raises ForebayError where
    files of one directory are to have several: it has one for all of them."""
    places: dict[str, dict[str, str]] = {}
    first: dict[str, str] = {}
    for section in configuration.sections:
        path = str(section["path"])
        parent = os.path.dirname(path)  # noqa: PTH120 - a pattern is no path
        place = str(directory) if not parent or _WILDCARDS.search(parent) else parent
        words = _striping(section)
        if not words:
            continue
        if places.setdefault(place, words) != words:
            raise ForebayError(
                f"configuration '{configuration.name}' stripes {first[place]} by "
                f"'{_options(places[place])}' and {path} by '{_options(words)}', and files of one "
                "directory get the same",
                "Have the program make them in directories of their own and give each the 'lfs "
                "setstripe' of its files; or write --format intent, by which the MPI stripes each.",
            )
        first.setdefault(place, path)
    for_all = _striping(configuration.hints)
    if for_all:
        places[str(directory)] = places.get(str(directory), {}) | for_all
    _require(bool(places), configuration, "no striping (striping_factor, striping_unit)")
    quoted = {shlex.quote(place): words for place, words in places.items()}
    # What a directory has may be the user's: setstripe replaces it, and -d removes any.
    lines = [f"lfs getstripe -d {place}" for place in quoted]
    lines += [f"lfs setstripe {_options(words)} {place}" for place, words in quoted.items()]
    use = [
        "keep what 'lfs getstripe -d' prints: the layout before this one",
        "files that are made from now on have it; those that are there keep theirs",
        "COMMAND",
    ]
    undo = [f"lfs setstripe -d {place}" for place in quoted]
    undo.append("and where 'lfs getstripe -d' printed a layout, set that again by 'lfs setstripe'")
    return Application(configuration.name, "lfs", lines, use, undo)


def _striping(hints: dict[str, Any]) -> dict[str, str]:
    """As options of 'lfs setstripe'."""
    words = {}
    for option, keys in (("-c", _STRIPE_COUNT), ("-S", _STRIPE_SIZE), ("-i", _FIRST_SERVER)):
        values = [str(hints[key]) for key in keys if key in hints]
        if values:
            words[option] = str(parse_size(values[-1])) if option == "-S" else values[-1]
    return words


def _options(words: dict[str, str]) -> str:
    return " ".join(f"{option} {shlex.quote(value)}" for option, value in words.items())


def _require(condition: bool, configuration: Configuration, has: str) -> None:
    if not condition:
        raise ForebayError(
            f"configuration '{configuration.name}' has {has}", "Another --format may say it."
        )


FORMATS: dict[str, Callable[[Configuration, Path], Application]] = {
    "intent": _intent,
    "sh": _shell,
    "romio": _romio,
    "lfs": _lfs,
    "slurm": _slurm,
}


def apply(configuration: Configuration, shape: str, directory: Path) -> Application:
    """The configuration in one of FORMATS. `directory`: where the program makes its files, as far
    as sections do not tell (lfs). Raises ForebayError where the format cannot say any of it."""
    if shape not in FORMATS:
        raise ForebayError(f"there is no format '{shape}'", f"Known are: {', '.join(FORMATS)}.")
    return FORMATS[shape](configuration, directory)
