"""How limits moved from one campaign of `forebay characterise system` to another: what other jobs
left of a shared storage, hour by hour."""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from forebay.statistics import median

# Campaigns whose medians are nearer than this differ by nothing that is worth a word.
_WORTH = 1.25


@dataclass(frozen=True)
class CampaignRate:
    """What one campaign measured of a limit."""

    campaign: int  # its place in the system file
    start: str  # ISO 8601; empty if the file does not tell
    median: float
    least: float
    most: float


def by_campaign(entry: dict[str, Any], campaigns: Sequence[dict[str, Any]]) -> list[CampaignRate]:
    """Of a limit or a rate of operations, in the order of the campaigns. Raises ValueError,
    TypeError for samples that are none."""
    rates: dict[int, list[float]] = {}
    for campaign, _, rate in entry.get("samples", []):
        rates.setdefault(int(campaign), []).append(float(rate))
    return [
        CampaignRate(
            campaign,
            str(campaigns[campaign].get("start", "")) if 0 <= campaign < len(campaigns) else "",
            median(found),
            min(found),
            max(found),
        )
        for campaign, found in sorted(rates.items())
    ]


def moved(rates: Sequence[CampaignRate]) -> tuple[CampaignRate, CampaignRate] | None:
    """The slowest and the fastest campaign, where they differ by more than their own samples do;
    None where nothing shows contention."""
    if len(rates) < 2:
        return None
    slow = min(rates, key=lambda each: each.median)
    fast = max(rates, key=lambda each: each.median)
    if slow.most >= fast.least or fast.median < _WORTH * slow.median:
        return None
    return slow, fast


def told(rates: Sequence[CampaignRate], shown: Callable[[float], str]) -> str:
    """The median of each campaign, as `shown`, with its hour."""
    by_hour = zip(hours(rates), rates, strict=True)
    return ", ".join(f"{hour} {shown(rate.median)}" for hour, rate in by_hour)


def hours(rates: Sequence[CampaignRate]) -> list[str]:
    """When each was: the time of day, with the date where there are several."""
    times = [_time(each.start) for each in rates]
    days = {time.date() for time in times if time is not None}
    shown = "%H:%M" if len(days) < 2 else "%Y-%m-%d %H:%M"
    return [
        f"campaign {each.campaign + 1}" if time is None else time.strftime(shown)
        for each, time in zip(rates, times, strict=True)
    ]


def _time(start: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(start)
    except ValueError:
        return None
