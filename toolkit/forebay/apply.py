"""`forebay apply`: a configuration as the lines that put it to use, and those that take it back."""

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xxhash

from forebay.configurations import Configuration, sections_toml
from forebay.errors import ForebayError
from forebay.stock_hints import FOREBAY_ONLY, ROMIO_FILE, for_romio, stock_variables
from forebay.units import parse_size

_STRIPE_COUNT = ("striping_factor", "stripe_width")
_STRIPE_SIZE = ("striping_unit", "stripe_size")
_FIRST_SERVER = ("start_iodevice",)
_WILDCARDS = re.compile(r"[*?\[\\]")


@dataclass(frozen=True)
class Target:
    """Where the lines are for. `directory`: where the program makes its files, as far as sections
    do not tell. `file`: where the lines of a format that is a file will be; None: not known yet."""

    directory: Path = Path()
    file: Path | None = None

    def named(self, usual: str) -> str:
        """The file for a shell."""
        name = usual if self.file is None else str(self.file)
        return shlex.quote(f"./{name}" if name.startswith("-") else name)


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


def _intent(configuration: Configuration, target: Target) -> Application:
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
    file = target.named(f"{name}.toml")
    use = [f"forebay run --intent {file} -- COMMAND"]
    return Application(name, "intent", lines, use, [f"rm {file}"])


def _shell(configuration: Configuration, _target: Target) -> Application:
    return _script(configuration, "sh", "COMMAND")


def _slurm(configuration: Configuration, _target: Target) -> Application:
    return _script(configuration, "slurm", "srun ./program")


def _script(configuration: Configuration, shape: str, command: str) -> Application:
    """Lines for a shell, or for a batch script, before the command."""
    name = configuration.name
    variables = dict(configuration.environment)
    files: dict[str, tuple[str, list[str]]] = {}  # by the variable that names it
    start = command if configuration.stock else f"forebay run -- {command}"
    if configuration.stock:
        romio = [f"{key} {value}" for key, value in for_romio(configuration.hints).items()]
        if romio:
            files[ROMIO_FILE] = (_unlike_others(name, "romio", romio), romio)
        variables |= stock_variables(configuration.hints, None)
    elif configuration.hints:
        variables["FOREBAY_HINTS"] = ";".join(f"{k}={v}" for k, v in configuration.hints.items())
    if configuration.sections:
        sections = Configuration(name, sections=configuration.sections)
        content = sections_toml(sections).rstrip("\n").split("\n")
        files["FOREBAY_INTENT"] = (_unlike_others(name, "toml", content), content)
    lines = [line for file in files.values() for line in _here(*file)]
    words = {key: shlex.quote(value) for key, value in variables.items()}
    words |= {key: f'"$PWD"/{shlex.quote(file)}' for key, (file, _) in files.items()}
    for key, word in words.items():
        lines += _exported(key, word)
    undo = [_given_back(key) for key in words]
    undo += [f"rm {shlex.quote(file)}" for file, _ in files.values()]
    if shape == "slurm":
        lines.append(start)
    undo = undo or ["nothing is set"]
    if not configuration.stock:
        undo.append(f"start it without Forebay: {command}")
    return Application(name, shape, lines, [start], undo)


def _unlike_others(name: str, suffix: str, content: list[str]) -> str:
    """A name for a file in the working directory that no file with another content has."""
    whole = "\n".join(content).encode(errors="surrogatepass")
    return f"{name}-{xxhash.xxh64_hexdigest(whole)[:8]}.{suffix}"


_BEFORE = "forebay_before_"


def _exported(key: str, word: str) -> list[str]:
    """What the variable was before is kept, as a word behind `=`; empty: it was not set. Lines that
    are read a second time keep nothing more."""
    was = f"${{{key}+=${key}}}"
    return [f': "${{{_BEFORE}{key}={was}}}"', f"export {key}={word}"]


def _given_back(key: str) -> str:
    """A variable that was not set before is unset, and one of which nothing was kept stays."""
    kept = f"{_BEFORE}{key}"
    return (
        f"case ${{{kept}-none}} in =*) export {key}=\"${{{kept}#=}}\";; '') unset {key};; esac; "
        f"unset {kept}"
    )


def _here(file: str, content: list[str]) -> list[str]:
    """Lines that make a file in the working directory."""
    end = "EOF"
    while end in content:
        end += "_"
    return [f"cat > {shlex.quote(file)} <<'{end}'", *content, end]


def _romio(configuration: Configuration, target: Target) -> Application:
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
    file = target.named(f"{name}.romio")
    is_absolute = target.file is not None and target.file.is_absolute()
    use = [*_exported(ROMIO_FILE, file if is_absolute else f'"$PWD"/{file}'), "COMMAND"]
    return Application(name, "romio", lines, use, [_given_back(ROMIO_FILE), f"rm {file}"])


def _lfs(configuration: Configuration, target: Target) -> Application:
    """Striping of directories, which files that are made there take over. Raises ForebayError where
    files of one directory are to have several: it has one for all of them."""
    places: dict[str, dict[str, str]] = {}
    first: dict[str, str] = {}
    directory = target.directory
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


FORMATS: dict[str, Callable[[Configuration, Target], Application]] = {
    "intent": _intent,
    "sh": _shell,
    "romio": _romio,
    "lfs": _lfs,
    "slurm": _slurm,
}


def apply(
    configuration: Configuration, shape: str, directory: Path, file: Path | None = None
) -> Application:
    """The configuration in one of FORMATS. `directory`: where the program makes its files, as far
    as sections do not tell (lfs). `file`: where the lines will be, if that is known. Raises
    ForebayError where the format cannot say any of it."""
    if shape not in FORMATS:
        raise ForebayError(f"there is no format '{shape}'", f"Known are: {', '.join(FORMATS)}.")
    return FORMATS[shape](configuration, Target(directory, file))
