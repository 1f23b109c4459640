"""Files of configurations (docs/formats/configurations.md): named settings under which a command
can be run, compared with others, and which can be applied."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forebay import intent_file, stock_hints
from forebay.errors import ForebayError

FORMAT_VERSION = 1
FILE_NAME = "configurations.toml"  # what is looked for where no file is named

# What there is without a file: Forebay without words, and the MPI alone.
DEFAULT = "default"
STOCK = "stock"

ENGINES = ("forebay", "mpi")
_KEYS = frozenset({"description", "engine", "hints", "environment", "file"})
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Configuration:
    """One named set of settings. With `stock` the hints are for the MPI, else for Forebay."""

    name: str
    stock: bool = False
    description: str = ""
    hints: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    sections: list[dict[str, Any]] = field(default_factory=list)  # [[file]], as in an intent file

    @property
    def empty(self) -> bool:
        return not (self.hints or self.environment or self.sections)

    def as_json(self) -> dict[str, Any]:
        """As results have it: keys as in a file of configurations."""
        return {
            "engine": ENGINES[self.stock],
            "description": self.description,
            "hints": self.hints,
            "environment": self.environment,
            "file": self.sections,
        }


def configuration_of(name: str, entry: dict[str, Any]) -> Configuration:
    """What `as_json` told of one. Raises AttributeError, KeyError, TypeError, ValueError."""
    return Configuration(
        name=name,
        stock=entry["engine"] == "mpi",
        description=str(entry["description"]),
        hints={str(key): str(value) for key, value in entry["hints"].items()},
        environment={str(key): str(value) for key, value in entry["environment"].items()},
        sections=[dict(section) for section in entry["file"]],
    )


BUILT_IN = {
    DEFAULT: Configuration(DEFAULT, description="Forebay without further words"),
    STOCK: Configuration(STOCK, stock=True, description="the MPI library alone"),
}


def load(path: Path) -> dict[str, Configuration]:
    """The configurations of a file, with those that need none. Raises ForebayError, with the place,
    for whatever is not understood: what is not understood cannot be shown to be better."""
    content = intent_file.load(path)
    version = content.get("version")
    if version != FORMAT_VERSION or isinstance(version, bool):
        newer = isinstance(version, int) and version > FORMAT_VERSION
        raise ForebayError(
            f"{path} has version {version!r}, and this command reads {FORMAT_VERSION}",
            "Use the Forebay that wrote it, or a newer one."
            if newer
            else f"Write 'version = {FORMAT_VERSION}' into its first line.",
        )
    _only({"version", "about", "configuration"}, content, f"{path}")
    tables = content.get("configuration", {})
    _require(isinstance(tables, dict), f"{path}: 'configuration' is no table")
    found = dict(BUILT_IN)
    for name, table in tables.items():
        where = f"{path}: [configuration.{name}]"
        _require(_NAME.fullmatch(name) is not None, f"{where}: the name holds more than letters, "
                 "digits, '-', '_' and '.'")  # fmt: skip
        _require(name not in BUILT_IN, f"{where}: '{name}' is Forebay's own name")
        _require(isinstance(table, dict), f"{where} is no table")
        found[name] = _configuration(name, table, where)
    return found


def choose(names: Iterable[str], path: Path | None) -> list[Configuration]:
    """The named configurations, from `path`, or from the working directory's file if there is one.
    Raises ForebayError for a name that is not known."""
    here = Path(FILE_NAME)
    source = path or (here if here.exists() else None)
    known = load(source) if source else BUILT_IN
    chosen = []
    for name in names:
        if name not in known:
            place = f"in {source}" if source else f"there is no {FILE_NAME} here"
            raise ForebayError(
                f"no configuration is called '{name}' ({place})",
                f"Known are: {', '.join(known)}. Another file is named by --file.",
            )
        chosen.append(known[name])
    return chosen


def _configuration(name: str, table: dict[str, Any], where: str) -> Configuration:
    _only(_KEYS, table, where)
    engine = table.get("engine", ENGINES[0])
    _require(engine in ENGINES, f"{where}: engine is {engine!r}, not one of {', '.join(ENGINES)}")
    stock = engine == "mpi"
    description = table.get("description", "")
    _require(isinstance(description, str), f"{where}: the description is no text")
    hints = _texts(table.get("hints", {}), f"{where}: hints")
    environment = _texts(table.get("environment", {}), f"{where}: environment")
    for variable in environment:
        _require(
            _VARIABLE.fullmatch(variable) is not None,
            f"{where}: environment: {variable!r} is no name of a variable",
        )
    sections = table.get("file", [])
    _require(
        isinstance(sections, list) and all(isinstance(s, dict) for s in sections),
        f"{where}: 'file' is no [[configuration.{name}.file]]",
    )
    for section in sections:
        _section(section, where)
    _require(not (stock and sections), f"{where}: sections of files are for Forebay alone; "
             "engine is mpi")  # fmt: skip
    return Configuration(
        name=name,
        stock=stock,
        description=description,
        hints=stock_hints.in_bytes(hints) if stock else hints,
        environment=environment,
        sections=sections,
    )


def _section(section: dict[str, Any], where: str) -> None:
    _require(isinstance(section.get("path"), str), f"{where}: a section of files has no path")
    for key, value in section.items():
        values = value.values() if isinstance(value, dict) else [value]
        _require(
            all(_is_plain(v) for v in values),
            f"{where}: {key} = {value!r} is no text, number, truth value or list",
        )


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_plain(each) for each in value)
    return isinstance(value, (str, int))


def _texts(table: object, where: str) -> dict[str, str]:
    """Strings, integers and truth values as the strings that hints are."""
    if not isinstance(table, dict):
        raise _misfit(f"{where} is no table")
    found = {}
    for key, value in table.items():
        _require(isinstance(value, (str, int)), f"{where}: {key} = {value!r} is no text or number")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        _require(
            not re.search(r"[;\n\0]", f"{key}{text}"), f"{where}: {key} holds ';' or a new line"
        )
        found[key] = text
    return found


def _only(known: Iterable[str], table: dict[str, Any], where: str) -> None:
    unknown = [key for key in table if key not in known]
    _require(not unknown, f"{where}: '{', '.join(unknown)}' is not known; known are "
             f"{', '.join(sorted(known))}")  # fmt: skip


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise _misfit(message)


def _misfit(message: str) -> ForebayError:
    return ForebayError(message, "The page 'Configurations' of the documentation has the format.")


def sections_toml(configuration: Configuration) -> str:
    """The configuration as an intent file: its sections, and its hints as a last one for every
    file, since in the environment, too, they win over sections. Its variables are not in it."""
    lines = [f"version = {intent_file.FORMAT_VERSION}"]
    sections = list(configuration.sections)
    if configuration.hints:
        sections.append({"path": "*", **configuration.hints})
    for section in sections:
        lines += ["", "[[file]]"]
        lines += [_line(k, v) for k, v in section.items() if not isinstance(v, dict)]
        for key, table in section.items():
            if isinstance(table, dict):
                lines += ["", f"[file.{_key(key)}]", *(_line(k, v) for k, v in table.items())]
    return "\n".join(lines) + "\n"


def file_toml(configurations: Iterable[Configuration], about: dict[str, Any]) -> str:
    """A file of configurations."""
    lines = [f"version = {FORMAT_VERSION}", "", "[about]"]
    lines += [_line(key, value) for key, value in about.items()]
    for each in configurations:
        name = f"configuration.{_key(each.name)}"
        lines += ["", f"[{name}]"]
        if each.description:
            lines.append(_line("description", each.description))
        if each.stock:
            lines.append(_line("engine", ENGINES[True]))
        for key, table in (("hints", each.hints), ("environment", each.environment)):
            if table:
                pairs = ", ".join(_line(k, v) for k, v in table.items())
                lines.append(f"{key} = {{ {pairs} }}")
        for section in each.sections:
            lines += ["", f"[[{name}.file]]"]
            lines += [_line(k, v) for k, v in section.items() if not isinstance(v, dict)]
            for key, table in section.items():
                if isinstance(table, dict):
                    inner = f"{name}.file.{_key(key)}"
                    lines += ["", f"[{inner}]", *(_line(k, v) for k, v in table.items())]
    return "\n".join(lines) + "\n"


def _line(key: str, value: object) -> str:
    return f"{_key(key)} = {intent_file.toml_value(value)}"


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else intent_file.toml_value(key)
