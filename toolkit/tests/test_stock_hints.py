"""Hints for the stock MPI, from outside of the program."""

from pathlib import Path

from forebay.stock_hints import stock_variables


def test_romio_gets_a_file_and_ompio_its_parameters(tmp_path: Path) -> None:
    variables = stock_variables({"cb_nodes": "4", "romio_ds_write": "disable"}, tmp_path)
    assert Path(variables["ROMIO_HINTS"]).read_text() == "cb_nodes 4\nromio_ds_write disable\n"
    assert variables["OMPI_MCA_io_ompio_num_aggregators"] == "4"


def test_sizes_are_in_bytes_since_romio_knows_no_units(tmp_path: Path) -> None:
    hints = {"cb_buffer_size": "1MiB", "cb_nodes": "4", "cb_config_list": "*:1", "x": "4 apples"}
    variables = stock_variables(hints, tmp_path)
    assert (tmp_path / "romio-hints").read_text().splitlines() == [
        "cb_buffer_size 1048576", "cb_nodes 4", "cb_config_list *:1", "x 4 apples",
    ]  # fmt: skip
    assert variables["OMPI_MCA_io_ompio_bytes_per_agg"] == "1048576"


def test_switching_collective_buffering_off_switches_ompios_off_too(tmp_path: Path) -> None:
    variables = stock_variables({"romio_cb_write": "disable"}, tmp_path)
    assert variables["OMPI_MCA_fcoll"] == "individual"


def test_open_mpis_own_parameters_are_handed_on(tmp_path: Path) -> None:
    variables = stock_variables({"OMPI_MCA_io": "romio321"}, tmp_path)
    assert variables == {"OMPI_MCA_io": "romio321"}
    assert list(tmp_path.iterdir()) == []
