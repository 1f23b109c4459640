"""A spill file that is still being written: only what came since the last look is read."""

from collections.abc import Iterator
from pathlib import Path

from forebay.trace import spills
from forebay.trace.spills import Piece

# At a time: more than the largest piece.
_CHUNK_BYTES = 1 << 20


class SpillTail:
    """How far one file was read. It holds no descriptor: a run has a file for each process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged_bytes = 0
        self._at = 0

    def behind_bytes(self, size: int) -> int:
        """What of a file of `size` bytes was not read yet."""
        return max(0, size - self._at)

    def pieces(self) -> Iterator[Piece]:
        """Those that are whole by now, in their order. A piece that is being written comes with a
        later look. Raises OSError, and ForebayError for a later version's."""
        while True:
            before = self._at
            with self.path.open("rb") as file:
                file.seek(before)
                content = file.read(_CHUNK_BYTES)
            yield from self._pieces_in(content, before)
            if self._at == before or len(content) < _CHUNK_BYTES:
                return

    def _pieces_in(self, content: bytes, before: int) -> Iterator[Piece]:
        """Of what follows `before` in the file. Whoever takes one may come back for the rest."""
        at = 0
        while at < len(content):
            piece = spills.piece_at(content, at, self.path)
            if piece is not None:
                at = piece.end
                self._at = before + at
                yield piece
                continue
            following = self._following(content, at)
            if following is None:
                return
            self.damaged_bytes += following - at
            at = following
            self._at = before + at

    def _following(self, content: bytes, at: int) -> int | None:
        """Where to go on behind what is no whole piece; None: it may become one."""
        may_come = spills.may_begin(content, at) and len(content) - at < _CHUNK_BYTES
        following = content.find(spills.MAGIC, at + 1)
        while may_come and following >= 0:
            if spills.piece_at(content, following, self.path) is not None:
                return following
            following = content.find(spills.MAGIC, following + 1)
        if may_come:
            return None
        return following if following >= 0 else self._tail(content, at)

    @staticmethod
    def _tail(content: bytes, at: int) -> int:
        """Behind what is no piece, but for the last bytes, which may begin the next."""
        keep = len(spills.MAGIC) - 1
        for begin in range(max(at + 1, len(content) - keep), len(content)):
            if spills.may_begin(content, begin):
                return begin
        return len(content)
