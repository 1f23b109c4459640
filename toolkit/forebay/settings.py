"""What the user declares for a run under Forebay, and the runtime's variables it becomes
(docs/formats/report.md, "Environment of the runtime")."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from forebay.errors import ForebayError


@dataclass(frozen=True)
class Settings:
    """The declarations of one command line."""

    mpi: str = "auto"
    intent: Path | None = None
    hints: dict[str, str] = field(default_factory=dict)
    ranks_per_node: int | None = None


def parse_hints(pairs: list[str]) -> dict[str, str]:
    """["cb_nodes=2", "a=1;b=2"] as a mapping; a later value of a key wins. Raises ForebayError."""
    hints: dict[str, str] = {}
    for text in (part for pair in pairs for part in pair.split(";")):
        if not text.strip():
            continue
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ForebayError(
                f"'{text}' is no hint", "Write key=value, for example --hint cb_nodes=2."
            )
        hints[key.strip()] = value.strip()
    return hints


def runtime_variables(
    settings: Settings,
    mode: str,
    report_dir: Path,
    environ: Mapping[str, str],
    count_storage: bool = False,
) -> dict[str, str]:
    """The variables for a run in `mode` (engine, observe). Hints add to an FOREBAY_HINTS that is
    set already and win over it, as they stand later."""
    variables = {"FOREBAY_MODE": mode, "FOREBAY_REPORT_DIR": str(report_dir)}
    # A program with AddressSanitizer in it refuses to start behind anything that is preloaded.
    sanitizer = [environ["ASAN_OPTIONS"]] if environ.get("ASAN_OPTIONS") else []
    variables["ASAN_OPTIONS"] = ":".join([*sanitizer, "verify_asan_link_order=0"])
    if count_storage:
        variables["FOREBAY_COUNT_STORAGE"] = "1"
    if mode != "engine":
        return variables
    inherited = environ.get("FOREBAY_HINTS", "").strip(";")
    own = [f"{key}={value}" for key, value in settings.hints.items()]
    hints = ";".join([*([inherited] if inherited else []), *own])
    if hints:
        variables["FOREBAY_HINTS"] = hints
    intent = settings.intent.resolve() if settings.intent else environ.get("FOREBAY_INTENT")
    if intent:
        variables["FOREBAY_INTENT"] = str(intent)
    ranks_per_node = settings.ranks_per_node or environ.get("FOREBAY_RANKS_PER_NODE")
    if ranks_per_node:
        variables["FOREBAY_RANKS_PER_NODE"] = str(ranks_per_node)
    if "FOREBAY_LIBRARY_DIR" in environ:
        variables["FOREBAY_LIBRARY_DIR"] = environ["FOREBAY_LIBRARY_DIR"]
    return variables
