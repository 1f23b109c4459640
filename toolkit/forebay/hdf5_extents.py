"""Where the datasets of an HDF5 file lie, by the file's own index: what will be read of it, without
a run that learns it. Needs h5py."""

from pathlib import Path
from typing import Any

from forebay.errors import ForebayError, first_line
from forebay.intent_file import HOW_ELSE, DeclaredReads, Extent, coalesced


def extents_of(path: Path, datasets: list[str]) -> DeclaredReads:
    """The stored bytes of `datasets`, or of all datasets below a group, one dataset after the
    other; the chunks of each in the order of their place in the array, as a program reads them that
    goes through it. Raises ForebayError."""
    try:
        import h5py
    except ImportError as error:
        raise ForebayError(
            "h5py is not installed, which reads the index of an HDF5 file",
            "Install it: pip install 'forebay[formats]', or pip install h5py.",
        ) from error
    extents: list[Extent] = []
    try:
        with h5py.File(path, "r") as file:
            for name in datasets:
                if name not in file:
                    known = ", ".join(sorted(file)[:8])
                    raise ForebayError(
                        f"{path} has no dataset {name}", f"At its top there are: {known}."
                    )
                found = file[name]
                if isinstance(found, h5py.Group):
                    below: list[h5py.Dataset] = []
                    found.visititems(
                        lambda _, item, to=below: (
                            to.append(item) if isinstance(item, h5py.Dataset) else None
                        )
                    )
                elif isinstance(found, h5py.Dataset):
                    below = [found]
                else:
                    raise ForebayError(
                        f"{name} of {path} is a type of data, and no dataset",
                        "Name a dataset, or a group for all datasets below it.",
                    )
                for dataset in below:
                    extents += _stored(dataset)
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise ForebayError(
            f"{path} cannot be read as HDF5: {first_line(error)}", HOW_ELSE
        ) from error
    return DeclaredReads(path, coalesced(extents), "format")


def _stored(dataset: object) -> list[Extent]:
    """Contiguous: one extent. Chunked: one for each chunk that was written. Compact ones, virtual
    ones and those in other files have no place of their own here."""
    index = dataset.id  # type: ignore[attr-defined]
    if dataset.chunks is None:  # type: ignore[attr-defined]
        offset = index.get_offset()
        return [] if offset is None else [(offset, index.get_storage_size())]
    if hasattr(index, "chunk_iter"):
        chunks: list[Any] = []
        index.chunk_iter(chunks.append)  # It goes on while it is answered by None.
    else:  # Before HDF5 1.12.3. Each call goes through the index from its beginning.
        chunks = [index.get_chunk_info(number) for number in range(index.get_num_chunks())]
    chunks.sort(key=lambda chunk: chunk.chunk_offset)
    return [(chunk.byte_offset, chunk.size) for chunk in chunks]
