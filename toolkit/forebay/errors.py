"""What goes wrong at the user's side of the command."""


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
