"""Sizes, rates and times, as people write them and as they read them."""

import math
import re

from forebay.errors import ForebayError

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kKMGT]?)(i?)(B?)\s*")
_TIME = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(us|ms|s|)\s*")
_PART = r"([0-9]+(?:\.[0-9]+)?)"
_DURATION = re.compile(rf"(?:{_PART}h)?(?:{_PART}min)?(?:{_PART}s)?")
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "": 1e-3, "s": 1.0}


def parse_size(text: str) -> int:
    """Bytes in `text`: 65536, 64KiB, 4MB, 1.5GiB. KiB is 1024 bytes and kB is 1000; a bare letter
    (4M) means the binary unit, as in ROMIO's hints. Raises ForebayError."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ForebayError(f"'{text}' is no size", "Write bytes (65536) or a unit: 64KiB, 4MB.")
    number, prefix, binary, byte = match.groups()
    base = 1000 if byte and not binary else 1024
    size: float = float(number) * base ** _POWERS[prefix.upper()]
    if math.isinf(size):
        raise ForebayError(f"'{text}' is too large a size", "Write one that a file can have.")
    return round(size)


def parse_rate(text: str) -> int:
    """Bytes per second in `text`: 4MiB/s, 400MB/s, or bare bytes. Raises ForebayError."""
    try:
        return parse_size(text.removesuffix("/s"))
    except ForebayError as error:
        raise ForebayError(f"'{text}' is no rate", "Write it as 4MiB/s or 400MB/s.") from error


def parse_seconds(text: str) -> float:
    """Seconds in `text`: 3ms, 500us, 1.5s; a bare number is milliseconds, as the testbed's own
    program has it. Raises ForebayError."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ForebayError(f"'{text}' is no time", "Write it as 500us, 3ms or 1.5s.")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def parse_duration(text: str) -> float:
    """Seconds in `text`: 2h, 90min, 1h30min, 45s. A number alone would be ambiguous beside times of
    milliseconds, and is refused. Raises ForebayError."""
    match = _DURATION.fullmatch(text.replace(" ", ""))
    if match is None or not any(match.groups()):
        raise ForebayError(f"'{text}' is no duration", "Write it as 2h, 90min, 1h30min or 45s.")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds


def show_duration(seconds: float) -> str:
    """192 -> '3 min 12 s'."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def show_bytes(count: float) -> str:
    """1536 -> '1.5 KiB'."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def show_seconds(seconds: float) -> str:
    """0.0123 -> '12.3 ms'."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e6:.0f} us"


def show_count(count: int) -> str:
    """1234567 -> '1 234 567'."""
    return f"{count:,}".replace(",", " ")


def show_share(share: float) -> str:
    """0.1234 -> '12 %'; small shares get more digits."""
    if share >= 0.1:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.2g} %" if share else "0 %"


def show_operations(rate: float) -> str:
    """1234.5 operations a second -> '1 234/s'."""
    return f"{show_count(round(rate))}/s" if rate >= 10 else f"{rate:.2g}/s"
