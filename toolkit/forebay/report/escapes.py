"""Names and values as a page shows them: what is no text stands there escaped. They are any bytes
(Python has those that are no UTF-8 as surrogates), and the files that are read may hold whatever
JSON can. Neither fonts nor files take surrogates, and control characters would not be seen."""

import re

_NO_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_WORD = re.compile(r"[\t\n]")


def escaped(text: str) -> str:
    r"""With `\xHH` for a byte that is no UTF-8 and for a control character, as in an intent file,
    and `\uHHHH` for another surrogate. Lines and tabs stay."""
    return _NO_TEXT.sub(_escape, text)


def in_a_line(text: str) -> str:
    """The same of what stands in one line: line ends and tabs are escaped, too."""
    return escaped(_NO_WORD.sub(_escape, text))


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:  # a byte, as os.fsdecode has it
        code -= 0xDC00
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
