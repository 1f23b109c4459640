"""Which factors of a candidate asked for what a run did not hold."""

from forebay.configure.factors import Settings
from forebay.evaluate.in_force import Setting

# What shows in a record -> the factor that asked for it (candidate.py).
_FACTORS = {
    "romio_cb_write": "collective",
    "romio_cb_read": "collective",
    "romio_ds_write": "sieving",
    "romio_ds_read": "sieving",
    "cb_nodes": "aggregators",
    "cb_config_list": "aggregators",
    "cb_buffer_size": "buffer_size",
    "striping_factor": "stripe_count",
    "striping_unit": "stripe_size",
    "forebay_cache": "cache",
    "forebay_cache_path": "cache_path",
    "forebay_cache_flush": "cache_flush",
    "forebay_cache_redundancy": "redundancy",
    "reading ahead": "prefetch",
    "budget": "prefetch_budget",
}


def of(setting: Setting, settings: Settings) -> list[tuple[str, str]]:
    """The factors, with their values, that asked for a setting."""
    factor = _FACTORS.get(setting.key, setting.key)
    if factor == "stripe_size" and "alignment" in settings:
        factor = "alignment"
    factors = ("stripe_count", "stripe_size") if setting.key == "path" else (factor,)
    return [(name, settings[name]) for name in factors if name in settings]


def named_in(reason: str, settings: Settings) -> list[tuple[str, str]]:
    """Of an earlier run whose settings did not hold: those, by the words of the reason."""
    keys = [part.split(":", 1)[0] for part in reason.split("; ")]
    names = {_FACTORS.get(key, key) for key in keys}
    return [(k, v) for k, v in settings.items() if k in names]
