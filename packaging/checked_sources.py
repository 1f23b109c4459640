"""checked_sources.py BUILD: the sources that clang-tidy checks, each followed by a null byte.

All that the build in BUILD compiles for users. Where sources are compiled several at a time, these
are the files that include them.
"""

import json
import sys
from pathlib import Path

_ROOMS = ("core", "testbed", "toolkit")
_TEST_ENDINGS = ("_test", "_fuzz", "_bench")


def _is_checked(entry: dict[str, str], root: Path, build: Path) -> bool:
    source = Path(entry["file"])
    base = build if source.is_relative_to(build) else root
    if source.suffix not in (".cpp", ".cxx") or not source.is_relative_to(base):
        return False
    inside = source.relative_to(base)
    return (
        inside.parts[0] in _ROOMS
        and "tests" not in inside.parts
        and not inside.stem.endswith(_TEST_ENDINGS)
    )


def main() -> None:
    build = Path(sys.argv[1]).resolve()
    commands = json.loads((build / "compile_commands.json").read_text())
    root = Path.cwd()
    files = {entry["file"] for entry in commands if _is_checked(entry, root, build)}
    sys.stdout.write("".join(f"{file}\0" for file in sorted(files)))


if __name__ == "__main__":
    main()
