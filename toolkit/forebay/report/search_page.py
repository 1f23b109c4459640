"""The report of a search as one page of HTML."""

import shlex
from pathlib import Path

from forebay import output_paths
from forebay.configure.history import Why
from forebay.evaluate import in_force
from forebay.report import (
    campaign_page,
    campaign_part,
    campaign_pictures,
    charts,
    rows,
    search,
    search_charts,
    search_pictures,
)
from forebay.report.rows import Rows
from forebay.report.search import SearchReport
from forebay.report.templates import rendered

_RANKED = 8


def write(report: SearchReport, path: Path) -> None:
    """Writes the page."""
    output_paths.write_text(path, render(report))


def render(report: SearchReport) -> str:
    """The page as text."""
    found, ending = report.found, report.found.ending
    latest = report.evaluations[0] if report.evaluations else None
    part = None if latest is None else campaign_part.of(latest.evaluation)
    runs = search_pictures.shown_runs(report)
    contrasts = search_pictures.shown_contrasts(report)
    ranking = rows.first([] if ending is None else ending.ranking, _RANKED)
    known = {run.configuration: search.settings_words(run) for run in found.runs}
    met = {run.why for run in found.runs}
    return rendered(
        "search.html.j2",
        report=report,
        found=found,
        ending=ending,
        latest=latest,
        title=shlex.join(found.search.command),
        part=part,
        colour={} if part is None else campaign_pictures.colours(part.evaluation),
        differences_picture=None
        if part is None
        else campaign_page.differences_picture(part.evaluation),
        sentences=_sentences(report),
        runs_picture=charts.figure(search_pictures.runs(report), search_charts.runs(report))
        if found.runs
        else None,
        factors_picture=charts.figure(
            search_pictures.factors(report), search_charts.factors(report)
        )
        if report.contrasts
        else None,
        run_colours=search_pictures.RUN_COLOURS,
        best_colour=search_pictures.BEST_COLOUR,
        whys=[why for why in Why if why in met],
        purposes=search.PURPOSES,
        runs=runs,
        ranking=ranking,
        described={
            each.configuration: _described(report, each.configuration, known)
            for each in ranking.shown
        },
        caveats=rows.first(report.caveats, rows.SENTENCES_MOST),
        ruled_out=rows.first(_ruled_out(report).items(), rows.SENTENCES_MOST),
        contrasts=contrasts,
        points_left_out=sum(search_pictures.shown_gains(each).left_out for each in contrasts),
        troubles=rows.first(report.troubles, rows.SENTENCES_MOST),
        settings=rows.most_important(
            report.settings,
            rows.ROWS_MOST,
            lambda row: row[1].state is not in_force.State.NOT_IN_FORCE,
        ),
        notes=rows.first([] if ending is None else ending.notes, rows.SENTENCES_MOST),
        change=search.change,
        outcome=search.outcome,
        settings_words=search.settings_words,
        provenance=_provenance(report),
    )


def _sentences(report: SearchReport) -> Rows[tuple[str, Path]]:
    """The verdicts of the evaluations, the latest first, with where each is from."""
    told = [
        (each.sentences[name], each.path)
        for each in report.evaluations
        for name in campaign_part.candidates(each.evaluation).shown
    ]
    shown = rows.first(told, campaign_part.CANDIDATES_MOST).shown
    number = sum(len(each.sentences) for each in report.evaluations)
    return Rows(shown, number - len(shown))


def _described(report: SearchReport, name: str, known: dict[str, str]) -> str:
    """In words; of what no earlier file described, by its settings."""
    configuration = report.found.configuration(name)
    described = "" if configuration is None else configuration.description
    return described or known.get(name, "")


def _ruled_out(report: SearchReport) -> dict[str, list[str]]:
    """Reason to the settings that it rules out."""
    reasons: dict[str, list[str]] = {}
    ending = report.found.ending
    for factor, value, reason in [] if ending is None else ending.left_out:
        reasons.setdefault(reason, []).append(factor if value is None else f"{factor}={value}")
    return reasons


def _provenance(report: SearchReport) -> list[tuple[str, str]]:
    made, ending = report.found.search, report.found.ending
    variables = [f"{key}={','.join(values)}" for key, values in made.variables.items()]
    ranks = made.ranks_per_node
    told = [
        ("history", str(report.found.path)),
        ("command", shlex.join(made.command)),
        ("directory", made.directory),
        ("host", "" if ending is None else ending.host),
        ("trace", made.trace["path"]),
        ("system file", "none" if ending is None or not ending.system else ending.system),
        ("what is timed", made.time),
        ("reference", made.reference),
        ("prepared by", made.prepare or ""),
        ("MPI", made.mpi),
        ("ranks per node", "" if ranks is None else str(ranks)),
        ("variables", "; ".join(variables)),
        ("seed", str(made.seed)),
        ("first run", report.found.runs[0].started if report.found.runs else ""),
        ("last run", report.found.runs[-1].started if report.found.runs else ""),
        ("evaluations", ", ".join(str(each.path) for each in report.evaluations)),
    ]
    return [(key, value) for key, value in told if value]
