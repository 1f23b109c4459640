"""How a configuration is carried out by the timed runs."""

from pathlib import Path

from forebay.configurations import Configuration, sections_toml
from forebay.settings import Settings
from forebay.timed_runs import Way


def way(configuration: Configuration, directory: Path, mpi: str, ranks_per_node: int | None) -> Way:
    """The way of a configuration. Its sections become an intent file in `directory`."""
    intent = None
    if configuration.sections:
        intent = directory / f"{configuration.name}.toml"
        sections = Configuration(configuration.name, sections=configuration.sections)
        intent.write_text(sections_toml(sections), encoding="utf-8")
    stock = configuration.stock
    return Way(
        name=configuration.name,
        stock=stock,
        settings=Settings(mpi, intent, {} if stock else configuration.hints, ranks_per_node),
        stock_hints=configuration.hints if stock else {},
        environment=configuration.environment,
    )
