"""Where the datasets of an HDF5 file lie, by the file's own index: what will be read of it, without
a run that learns it. Needs h5py."""

import io
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
            left_out = _left_out_of_chunks(file.userblock_size)
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
                    extents += _stored(dataset, left_out)
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise ForebayError(
            f"{path} cannot be read as HDF5: {first_line(error)}", HOW_ELSE
        ) from error
    return DeclaredReads(path, coalesced(extents), "format")


def _left_out_of_chunks(user_block: int) -> int:
    """What is to be added to the addresses of chunks of a file with such a user block (files of
    MATLAB have one of 512 bytes): HDF5 up to 1.14.2 at least leaves it out of them (its issue
    3003), but not out of those of contiguous datasets."""
    return 0 if user_block == 0 or _chunks_count_the_user_block() else user_block


def _chunks_count_the_user_block() -> bool:
    import h5py

    content = b"one chunk of a file in memory"
    held = io.BytesIO()
    with h5py.File(held, "w", userblock_size=512) as file:
        dataset = file.create_dataset("data", (len(content),), "u1", chunks=(len(content),))
        dataset[:] = list(content)
        file.flush()
        place: int = dataset.id.get_chunk_info(0).byte_offset
    return held.getvalue()[place:].startswith(content)


def _stored(dataset: object, left_out: int) -> list[Extent]:
    """Contiguous: one extent. Chunked: one for each chunk that was written, at `left_out` behind
    its address. Compact ones, virtual ones and those in other files have no place of their own
    here."""
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
    return [(chunk.byte_offset + left_out, chunk.size) for chunk in chunks]
