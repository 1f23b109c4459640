"""pyarrow without pandas, for commands that need nothing of it."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa


class _PandasIsNotThere(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)


def leave_pandas_out() -> None:
    """As the first value is made or taken out, pyarrow imports pandas wherever that is installed:
    half a second of a processor, or three where its modules are not compiled yet. It looks once.
    Who asks it for a DataFrame later gets one, for then it looks again."""
    finder = _PandasIsNotThere()
    sys.meta_path.insert(0, finder)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(finder)
