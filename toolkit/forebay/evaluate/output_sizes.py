"""Whether runs of a command leave as many bytes each time."""

from forebay.file_checks import RunFiles


def output_sizes(files: RunFiles) -> dict[str, int]:
    """Bytes of each file that was written through MPI; where there is none, of the others."""
    through_mpi = {path: h.bytes for path, h in files.mpi.items() if h is not None}
    return through_mpi or {path: h.bytes for path, h in files.others.items() if h is not None}


def difference(name: str, before: dict[str, int], now: dict[str, int]) -> str:
    """How the sizes after two runs of configuration `name` differ, in words."""
    path = next(path for path in {**before, **now} if before.get(path) != now.get(path))

    def told(sizes: dict[str, int]) -> str:
        return f"{sizes[path]} bytes" if path in sizes else "not there"

    return f"{path}: {told(before)} after one run of '{name}', {told(now)} after another"
