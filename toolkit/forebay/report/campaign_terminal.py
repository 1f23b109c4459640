"""The report of an evaluation for a person at a terminal."""

from rich.console import Console
from rich.text import Text

from forebay.evaluate import evaluation_report
from forebay.report.campaign import Campaign


def show(console: Console, campaign: Campaign) -> None:
    """Prints the summary, the verdicts, and the lines to copy."""
    console.print(Text(campaign.summary, "bold"), soft_wrap=True)
    evaluation_report.show(console, campaign.evaluation)
    found = campaign.application
    if found is None:
        return
    for title, lines in (
        (f"to put '{campaign.best}' to use:", found.lines + found.use),
        ("to undo it:", found.undo),
    ):
        console.print(Text(title, "bold"))
        for line in lines:
            console.print(f"  {line}", markup=False, soft_wrap=True, highlight=False)
