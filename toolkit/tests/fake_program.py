"""A stand-in for an MPI program under libforebay.so: writes a file and leaves the record that the
runtime would. What it does is given by options, so each test can ask for one behaviour.

Fault model: `--differ` writes other bytes under the engine, `--fail-engine` exits 3 under it,
`--fail` always does, `--fail-traced` under a trace, `--no-record` leaves none, `--torn` leaves one
whose checksum is wrong, `--grow` writes one byte more than the file beside it says. FAKE_SPEED
stands for `--speed`.
`--best K=V` makes it half as fast for each such hint, or variable, that it does not have.
Under the engine, `--fail-with K=V` and `--differ-with K=V` act on a hint, and `--deaf K` records
another value of it. `--kill-at N` kills the command that started it at the end of the N-th run.
"""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

import xxhash


def hints_of_environment() -> dict[str, str]:
    pairs = os.environ.get("FOREBAY_HINTS", "").split(";")
    return dict(pair.split("=", 1) for pair in pairs if pair)


def record(path: Path, mode: str, write_s: float, read_s: float, size: int) -> dict[str, object]:
    kinds = ("open", "write", "read", "sync", "close", "other")
    spent = dict.fromkeys(kinds, 0.0) | {"write": write_s, "read": read_s, "close": write_s / 4}
    content: dict[str, object] = {
        "version": 1,
        "path": str(path.resolve()),
        "mode": mode,
        "mpi": "mpich",
        "mpi_version": "fake 1.0",
        "amode": ["CREATE", "RDWR"],
        "ranks": 2,
        "nodes": 1,
        "aggregators": [0] if mode == "engine" else [],
        "file_system": "tmpfs",
        "stripe_size": 0,
        "stripe_count": 1,
        "seconds": {kind: {"max": s, "sum": 2 * s} for kind, s in spent.items()},
        "seconds_together": {
            "writing": spent["write"] + spent["sync"] + spent["close"],
            "data": spent["write"] + spent["read"],
            "all": sum(spent.values()),
        },
        "calls": dict.fromkeys(kinds, 0)
        | {"open": 2, "write": 4, "close": 2}
        | {"read": 4 if read_s else 0},
        "storage": None,
        "hints": {"cb_nodes": os.environ.get("FOREBAY_HINTS", "")},
        "hint_problems": ["FOREBAY_HINTS: cb_nodes=banana: a whole number is accepted"],
        "passed_through": {"shared file pointer": 3} if mode == "engine" else {},
        "failures": {"write 8 bytes at 0 to o: no space [left]": 1} if mode == "engine" else {},
        "notes": [],
    }
    if mode == "engine":
        content["counters"] = {
            "bytes_written": size,
            "storage_bytes_written": 2 * size,
            "bytes_read": 0,
            "storage_bytes_read": 0,
            "exchange_ns": 1_000_000,
            "storage_ns": 2_000_000,
            "waiting_ns": 0,
            "schedule_ns": 0,
        }
    if os.environ.get("FOREBAY_COUNT_STORAGE") == "1":
        calls = 1 if mode == "engine" else 100
        content["storage"] = {
            "read_calls": 0,
            "write_calls": calls,
            "read_bytes": 0,
            "write_bytes": size,
        }
    return content


CACHE_COUNTERS = {
    "cache_absorbed": 1 << 20,
    "cache_drained": 600 << 10,
    "cache_log_bytes": 1 << 20,
    "cache_exposed_ns": 2_000_000_000,
}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--size", type=int, default=100_000)
    speed = float(os.environ.get("FAKE_SPEED", "2.0"))
    parser.add_argument("--speed", type=float, default=speed, help="stock / engine")
    parser.add_argument("--obey", action="store_true", help="hints are in force")
    parser.add_argument("--grow", action="store_true", help="each run writes more")
    parser.add_argument("--read", action="store_true")
    parser.add_argument("--append", action="store_true", help="adds to what is there")
    parser.add_argument("--differ", action="store_true")
    parser.add_argument("--fail", action="store_true")
    parser.add_argument("--fail-engine", action="store_true")
    parser.add_argument("--fail-traced", action="store_true")
    parser.add_argument("--no-record", action="store_true")
    parser.add_argument("--torn", action="store_true")
    parser.add_argument("--cached", action="store_true", help="through a write-behind cache")
    parser.add_argument("--best", action="append", default=[], metavar="K=V")
    parser.add_argument("--fail-with", action="append", default=[], metavar="K=V")
    parser.add_argument("--differ-with", action="append", default=[], metavar="K=V")
    parser.add_argument("--deaf", action="append", default=[], metavar="K")
    parser.add_argument("--kill-at", type=int, metavar="N")
    options = parser.parse_args()
    hints = {f"{key}={value}" for key, value in hints_of_environment().items()}
    hints |= {f"{key}={value}" for key, value in os.environ.items()}
    mode = os.environ.get("FOREBAY_MODE", "off")
    print("the program's own output")
    if options.fail or (options.fail_engine and mode == "engine"):
        print("cannot find input.nml", file=sys.stderr)
        return 3
    if options.fail_traced and "FOREBAY_TRACE_DIR" in os.environ:
        return 5
    if mode == "engine" and hints.intersection(options.fail_with):
        print("no space left on device", file=sys.stderr)
        return 4
    if options.grow or options.kill_at:
        counter = Path("runs")
        runs = int(counter.read_text()) + 1 if counter.exists() else 1
        counter.write_text(str(runs))
        if options.grow:
            options.size += runs
    differs = options.differ or hints.intersection(options.differ_with)
    seed = 2 if differs and mode == "engine" else 1
    content = bytes((i * 7 + seed) % 251 for i in range(options.size))
    with options.path.open("ab" if options.append else "wb") as file:
        file.write(content)
    if options.no_record or mode == "off":
        return 0
    write_s = 0.1 if mode == "observe" else 0.1 / options.speed
    write_s *= 2.0 ** len(set(options.best) - hints)
    raw = record(options.path, mode, write_s, write_s if options.read else 0.0, options.size)
    if options.obey:
        held = {"forebay": "enable", **hints_of_environment()} if mode == "engine" else {}
        raw["hints"] = held | {key: "otherwise" for key in options.deaf if key in held}
    counters = raw.get("counters")
    if options.cached and isinstance(counters, dict):
        counters.update(CACHE_COUNTERS)
    encoded = json.dumps(raw).encode()
    digest = "0" * 16 if options.torn else xxhash.xxh64_hexdigest(encoded)
    target = Path(os.environ["FOREBAY_REPORT_DIR"]) / f"{os.getpid()}-0-{digest}.json"
    target.with_name("." + target.name).write_bytes(encoded)
    target.with_name("." + target.name).rename(target)
    if options.kill_at and runs == options.kill_at:
        os.kill(os.getppid(), signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
