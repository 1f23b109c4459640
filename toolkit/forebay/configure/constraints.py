"""What the user requires of every setting that is tried: `redundancy>=1`, `stripe_count<=4`,
`cache_flush=immediate,deferred`."""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from forebay.configure.factors import KNOWN, Kind, Known, Settings, Variable
from forebay.errors import ForebayError

_TEXT = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(<=|>=|==|!=|<|>|=)\s*(.+?)\s*")
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Constraint:
    """`values` are several for `=` and `!=` alone: one of them, or none of them."""

    factor: Known
    sign: str  # <=, >=, <, >, = or !=
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.factor.name}{self.sign}{','.join(self.values)}"

    def holds(self, value: str) -> bool:
        """Whether a value of the factor is allowed. Raises ForebayError for what is none."""
        amount = self.factor.amount(value)
        if self.sign in _ORDERS:
            least = self.factor.amount(self.values[0])
            assert amount is not None
            assert least is not None
            return _ORDERS[self.sign](amount, least)
        same = (
            value in self.values
            if amount is None
            else amount in {self.factor.amount(each) for each in self.values}
        )
        return same == (self.sign == "=")


def parse(text: str, variables: Iterable[Variable] = ()) -> Constraint:
    """The constraint that `text` is. Raises ForebayError, which for a factor that is not known
    lists those that are."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ForebayError(
            f"'{text}' is no constraint",
            "Write a factor, a sign (<= >= < > = !=) and a value: --constraint 'stripe_count<=4'.",
        )
    name, sign, value = match.groups()
    factor = _factor(name, variables)
    sign = "=" if sign == "==" else sign
    values = tuple(part.strip() for part in value.split(","))
    if sign in _ORDERS and (factor.kind is Kind.WORD or len(values) > 1):
        raise ForebayError(
            f"'{text}': values of {factor.name} cannot be compared with {sign}"
            if factor.kind is Kind.WORD
            else f"'{text}': {sign} takes one value",
            f"Write = or !=, as in '{factor.name}={values[0]}'.",
        )
    for each in values:
        factor.amount(each)
    return Constraint(factor, sign, values)


def _factor(name: str, variables: Iterable[Variable]) -> Known:
    own = {
        variable.name: Known(variable.name, Kind.WORD, "of the program", words=variable.values)
        for variable in variables
    }
    known = own | KNOWN
    for factor in known.values():
        if name == factor.name or name in factor.others:
            return factor
    raise ForebayError(
        f"there is no factor '{name}'", f"Known are: {', '.join(known)}, and the hints of each."
    )


@dataclass(frozen=True)
class Constraints:
    """All of them together."""

    all: tuple[Constraint, ...] = ()

    def of(self, factor: str) -> list[Constraint]:
        return [each for each in self.all if each.factor.name == factor]

    def allow(self, factor: str, value: str) -> bool:
        return all(each.holds(value) for each in self.of(factor))

    def named(self, factor: str, value: str) -> bool:
        """Whether the user speaks of this very value and wants it."""
        return any(c.sign == "=" and value in c.values for c in self.of(factor))

    def broken_by(self, settings: Settings) -> Constraint | None:
        """The first that settings do not keep; a factor that is not among them breaks none."""
        for each in self.all:
            value = settings.get(each.factor.name)
            if value is not None and not each.holds(value):
                return each
        return None
