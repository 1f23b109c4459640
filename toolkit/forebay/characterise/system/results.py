"""Samples become a system file, or go into one that is there (docs/formats/system.md)."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from forebay import contention, output_paths, system_file
from forebay.characterise.system.sample import (
    LIMITS,
    METADATA,
    RATE_KEYS,
    Sample,
    Subject,
    subject,
)
from forebay.statistics import median_ratio
from forebay.trace.directory import checksum, printable

LEAST_SAMPLES = 4
_DIGITS = 5  # of a rate


class Results:
    """The samples of all campaigns, those of an existing file first."""

    def __init__(self, document: dict[str, Any] | None = None) -> None:
        self._document = document or {}
        self._samples: dict[Subject, list[list[float]]] = {}
        for part in RATE_KEYS:
            for entry in self._document.get(part, []):
                known = [list(sample) for sample in entry.get("samples", [])]
                if known:  # what somebody wrote by hand has a summary alone, and stays as it is
                    self._samples[subject(part, entry)] = known
        self.campaign = len(self._document.get("campaigns", []))

    def add(self, sample: Sample, at_s: float) -> None:
        """One of the campaign that is under way, `at_s` seconds after its start."""
        rate = float(f"{sample.rate:.{_DIGITS}g}")
        told = [self.campaign, round(at_s, 1), rate]
        self._samples.setdefault(sample.subject, []).append(told)

    def too_few(self) -> list[Subject]:
        """What has been measured too seldom to say anything of it."""
        return [key for key, samples in self._samples.items() if len(samples) < LEAST_SAMPLES]

    def document(
        self, host: str, campaign: dict[str, Any], places: Iterable[dict[str, Any]]
    ) -> dict[str, Any]:
        """The whole file, with the campaign that is over."""
        by_path = {place["path"]: place for place in self._document.get("places", [])}
        by_path |= {place["path"]: place for place in places}
        content: dict[str, Any] = {
            "format": system_file.FORMAT,
            "version": system_file.VERSION,
            "host": self._document.get("host", host),
            "places": list(by_path.values()),
            "campaigns": [*self._document.get("campaigns", []), campaign],
        }
        for part in RATE_KEYS:
            content[part] = [*self._unsampled(part), *self._summarised(part)]
        if len(content["campaigns"]) > 1:
            for entry in (each for part in RATE_KEYS for each in content[part]):
                rates = contention.by_campaign(entry, content["campaigns"])
                if len(rates) > 1:
                    entry["by_campaign"] = [asdict(rate) for rate in rates]
        content = printable(content)
        content["checksum"] = checksum(content)
        return content

    def _unsampled(self, part: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self._document.get(part, [])
        return [
            entry
            for entry in entries
            if not entry.get("samples") and subject(part, entry) not in self._samples
        ]

    def _summarised(self, part: str) -> list[dict[str, Any]]:
        few = set(self.too_few())
        return [
            {
                **key.as_json(),
                RATE_KEYS[part]: summary([sample[2] for sample in samples]),
                "samples": samples,
            }
            for key, samples in sorted(self._samples.items(), key=_place_in_file)
            if key.part == part and key not in few
        ]


def _place_in_file(item: tuple[Subject, Any]) -> tuple[Any, ...]:
    keys = item[0].as_json()
    level = system_file.LEVELS.index(keys["level"]) if item[0].part == LIMITS else 0
    operation = keys["operation"]
    words = system_file.ON_NAMES if item[0].part == METADATA else system_file.OPERATIONS
    return (
        level,
        keys.get("path", ""),
        keys.get("stripe_count", 0),
        words.index(operation),
        keys.get("mode", ""),
        keys.get("processes", 1),
        keys.get("access", ""),
        keys.get("engine", ""),
        keys.get("files", ""),
        keys.get("order", ""),
        keys.get("in_flight", 1),
        keys.get("size_bytes", 0),
    )


def summary(rates: list[float]) -> dict[str, float]:
    """Median, interval and range. `rates` is not empty."""
    found = median_ratio(rates)
    assert found is not None
    return {
        "median": found.median,
        "low": found.low,
        "high": found.high,
        "coverage": round(found.coverage, 4),
        "least": min(rates),
        "most": max(rates),
    }


def write(document: dict[str, Any], path: Path) -> None:
    """Replaces the file as a whole."""
    output_paths.write_text(path, json.dumps(document, indent=1, ensure_ascii=False))
