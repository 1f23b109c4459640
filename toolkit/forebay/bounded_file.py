"""Files that a user names, read whole: of a device there may be no end."""

from pathlib import Path

#: Larger ones are none of ours.
BYTES_MOST = 256 << 20


def content_of(path: Path) -> bytes | None:
    """None where there is more than BYTES_MOST. Raises OSError."""
    with path.open("rb") as file:
        content = file.read(BYTES_MOST + 1)
    return content if len(content) <= BYTES_MOST else None
