"""The report of an evaluation as one page of HTML."""

import shlex
from pathlib import Path
from typing import Any

from forebay import output_paths
from forebay.configurations import Configuration, sections_toml
from forebay.evaluate import evaluation_report
from forebay.evaluate.stored import StoredEvaluation
from forebay.report import campaign_charts, campaign_part, campaign_pictures, charts, rows
from forebay.report.campaign import Campaign
from forebay.report.templates import rendered

_REASONS = 6  # of each verdict
_NOT_ENVIRONMENT = ("command",)  # which the page has at its top


def write(campaign: Campaign, path: Path) -> None:
    """Writes the page."""
    output_paths.write_text(path, render(campaign))


def render(campaign: Campaign) -> str:
    """The page as text."""
    part = campaign_part.of(campaign.evaluation)
    found = part.evaluation
    colour = campaign_pictures.colours(found)
    return rendered(
        "campaign.html.j2",
        campaign=campaign,
        part=part,
        found=found,
        title=shlex.join(found.command),
        colour=colour,
        troubles=rows.first(evaluation_report.troubles(campaign.evaluation), rows.SENTENCES_MOST),
        words=evaluation_report.last_words(found.failure) if found.failure else {},
        differences_picture=differences_picture(found),
        runs_picture=charts.figure(campaign_pictures.runs(found), campaign_charts.runs(found))
        if found.runs
        else None,
        times=[each for each in campaign.times if each.name in colour],
        seconds_of=lambda run: getattr(run.side, found.quantity),
        described={each.name: _described(each) for each in found.configurations},
        environment=rows.first(_environment(found.environment), rows.ROWS_MOST),
        notes=rows.first(found.notes, rows.SENTENCES_MOST),
        first=rows.first,
        reasons_most=_REASONS,
        sentences_most=rows.SENTENCES_MOST,
    )


def differences_picture(found: StoredEvaluation) -> str | None:
    """Of what was paired, if anything was."""
    if not campaign_pictures.paired(found):
        return None
    return charts.figure(campaign_pictures.differences(found), campaign_charts.differences(found))


def _described(configuration: Configuration) -> str:
    """What a configuration asks for, a line each."""
    lines = [configuration.description] if configuration.description else []
    lines.append("engine: the MPI alone" if configuration.stock else "engine: Forebay")
    lines += [f"{key} = {value}" for key, value in configuration.hints.items()]
    lines += [f"{key}={value}" for key, value in configuration.environment.items()]
    if configuration.sections:
        alone = Configuration(configuration.name, sections=configuration.sections)
        lines += sections_toml(alone).split("\n\n", 1)[1].splitlines()
    return "\n".join(lines)


def _environment(told: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (key, _text(value)) for key, value in told.items() if key not in _NOT_ENVIRONMENT and value
    ]


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {each}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
