"""What goes wrong at the user's side of the command."""

import errno


class ForebayError(Exception):
    """A failure shown to the user: what happened, and what to do next.

    `exit_code` is 2 for wrong usage (the default), 1 where the work itself failed.
    """

    def __init__(self, message: str, advice: str = "", exit_code: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[type["ForebayError"], tuple[str, str, int]]:
        return ForebayError, (self.message, self.advice, self.exit_code)  # from process to process


def first_line(error: Exception) -> str:
    """What it says, without a library's further explanations."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


_SPACE = "Free some space (or ask for your quota), or name another place."
_ADVICE = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EACCES: "Choose another place, or change its mode.",
    errno.EPERM: "Choose another place, or change its mode.",
    errno.EROFS: "Choose another place: nothing can be written there.",
    errno.EFBIG: "Allow larger files (ulimit -f), or name another place.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EMFILE: "Allow more open files: ulimit -n.",
}


def refused(error: OSError) -> ForebayError:
    """What the operating system refused: a full disk, a directory that is gone."""
    if error.errno == errno.ENOENT and not error.filename:
        return ForebayError("the working directory is gone", "Go to one that is there.", 1)
    where = f": {error.filename}" if error.filename else ""
    message = f"{error.strerror or error}{where}"
    return ForebayError(message, _ADVICE.get(error.errno or 0, ""), exit_code=1)
