"""How much is measured: quickly, or fully."""

from dataclasses import dataclass

from forebay.characterise.system.probes import Sizes
from forebay.characterise.system.schedule import FULL_RUN_S, GOOD_ROUNDS, QUICK_RUN_S
from forebay.characterise.system.workspace import Sizing

_KIB, _MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Scale:
    """What quick and full differ in."""

    name: str
    rounds: int
    run_s: float
    sizing: Sizing
    sizes: Sizes
    pieces: tuple[int, ...]  # of MPI-IO
    names_s: float  # of the slowest operation on names
    powers: bool  # of two processes, up to all
    limited: bool = True  # to five minutes


QUICK = Scale(
    name="quick",
    rounds=GOOD_ROUNDS,
    run_s=QUICK_RUN_S,
    sizing=Sizing(256 * _MIB, 1.5),
    sizes=Sizes(
        buffered=(4 * _KIB, 64 * _KIB, _MIB),
        direct=(64 * _KIB, _MIB),
        random=(4 * _KIB,),
        together=(_MIB,),
    ),
    pieces=(16 * _KIB,),
    names_s=0.2,
    powers=False,
)
_ALL_SIZES = tuple(4**power * 4 * _KIB for power in range(7))  # 4 KiB to 16 MiB
FULL = Scale(
    name="full",
    rounds=8,
    run_s=FULL_RUN_S,
    sizing=Sizing(4096 * _MIB, 10.0),
    sizes=Sizes(
        buffered=_ALL_SIZES,
        direct=_ALL_SIZES,
        random=_ALL_SIZES[:3],
        together=(64 * _KIB, _MIB, 4 * _MIB),
    ),
    pieces=(_KIB, 16 * _KIB, 256 * _KIB),
    names_s=1.0,
    powers=True,
    limited=False,
)
