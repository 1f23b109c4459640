"""What traced runs tell of the hints for the stock MPI, which no record of a timed run proves: each
is asked for once, and only where it is in what would be proposed."""

from collections.abc import Iterable

from forebay.configurations import Configuration
from forebay.configure.history import SearchRun, State, Why
from forebay.evaluate.in_force import Setting, setting_of
from forebay.evaluate.in_force import State as Held


class Proof:
    """Hints with a value, and what became of each."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], Setting] = {}
        self._possible = True

    def take(self, run: SearchRun) -> None:
        """What a traced run of this search or of an earlier session of it showed."""
        if run.why is Why.TRACED and run.state is not State.INTERRUPTED:
            settings = [setting_of(entry) for entry in run.observed]
            self._told |= {(setting.key, setting.asked): setting for setting in settings}

    def give_up(self) -> None:
        """Runs cannot be traced here."""
        self._possible = False

    def unknown(self, configuration: Configuration, runs: Iterable[SearchRun]) -> dict[str, str]:
        """The hints of a configuration of the MPI alone of which nothing tells yet."""
        if not configuration.stock or not self._possible:
            return {}
        return {
            key: asked
            for key, asked in self._unrecorded(configuration, runs)
            if (key, asked) not in self._told
        }

    def notes(self, configuration: Configuration, runs: Iterable[SearchRun]) -> list[str]:
        """Of the settings of a configuration that are not proven, for each reason the names."""
        unproven: dict[str, list[str]] = {}
        for key, reason in self._untold(configuration, runs).items():
            unproven.setdefault(reason, []).append(key)
        for key, asked in self._unrecorded(configuration, runs) if configuration.stock else ():
            told = self._told.get((key, asked))
            if told is None or told.state is Held.NOT_RECORDED:
                reason = told.reason if told else "no run that was left could be traced"
                unproven.setdefault(reason, []).append(key)
        return [
            f"{configuration.name}: not proven that {', '.join(keys)} took effect: {reason}"
            for reason, keys in unproven.items()
        ]

    @staticmethod
    def _untold(configuration: Configuration, runs: Iterable[SearchRun]) -> dict[str, str]:
        """Settings that timed runs of the configuration left unproven, and that no traced run is
        asked for: why."""
        return {
            entry["key"]: entry.get("reason") or "no record tells"
            for run in runs
            if run.configuration == configuration.name and run.why is not Why.TRACED
            for entry in run.observed
            if entry["state"] == Held.NOT_RECORDED
            if not (configuration.stock and entry["key"] in configuration.hints)
        }

    @staticmethod
    def _unrecorded(
        configuration: Configuration, runs: Iterable[SearchRun]
    ) -> list[tuple[str, str]]:
        """Hints of which no timed run of the configuration tells."""
        recorded = {
            entry["key"]
            for run in runs
            if run.configuration == configuration.name and run.why is not Why.TRACED
            for entry in run.observed
            if entry["state"] != Held.NOT_RECORDED
        }
        return [pair for pair in configuration.hints.items() if pair[0] not in recorded]
