"""What is dropped on a page is read in a process that can be ended, with the same words as anywhere."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pandas as pd
import pytest

from dpsc.analyst.release import Release
from dpsc.custodian.check.examine import custodian_examine
from dpsc.errors import DpscError, TableError
from dpsc.tables import reader as tables
from dpsc.tables.spec import TableSpec
from dpsc.web.analyst.desk import AnalystDesk
from dpsc.web.custodian.app import CustodianDesk
from dpsc.web.custodian.form import Stopped
from dpsc.web.desk import File, Reader

RELEASE = Path(__file__).parent / "wages.dpsc.json"
STOPPED = r"reading this file took more than .* seconds or too much memory, so it was stopped\. Is it the right file\?"


@pytest.fixture(scope="module")
def process() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.end()


@pytest.fixture
def reader(process: Reader) -> Iterator[Reader]:
    """The same for all tests: it takes a second to start, and starts again by itself when it was ended."""
    yield process
    process._patience = 60.0


@pytest.fixture
def series(tmp_path: Path) -> Path:
    path = tmp_path / "series.csv"
    path.write_text("year,wage\n1980,1.5\n1981,2.5\n")
    return path


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A file that nobody writes to: whoever opens it waits."""
    path = tmp_path / "endless.csv"
    os.mkfifo(path)
    return path


def test_it_reads_as_the_program_would(reader: Reader, series: Path) -> None:
    pd.testing.assert_series_equal(reader(tables.series, series), tables.series(series))
    assert reader(Release.load, RELEASE).guarantee == Release.load(RELEASE).guarantee
    assert reader(os.getpid) != os.getpid()


def test_a_refusal_has_its_own_words_file_and_parameters(reader: Reader, series: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("year,wage\n1980,many\n")
    for path, time in ((tmp_path / "no.csv", None), (wrong, None), (series, "yaer")):
        with pytest.raises(DpscError) as here:
            tables.series(path, TableSpec(time=time))
        with pytest.raises(type(here.value)) as there:
            reader(tables.series, path, TableSpec(time=time))
        assert str(there.value) == str(here.value)
        assert (there.value.message, there.value.file) == (here.value.message, here.value.file)


def test_a_file_without_end_is_ended_and_the_next_one_is_read(reader: Reader, series: Path, endless: Path) -> None:
    first = reader(os.getpid)
    reader._patience = 0.5
    with pytest.raises(TableError, match=STOPPED):
        reader(tables.series, endless)
    reader._patience = 60.0
    assert list(reader(tables.series, series)) == [1.5, 2.5]
    assert reader(os.getpid) != first


def test_a_file_that_fills_the_memory_is_ended() -> None:
    small = Reader(memory=2**31)
    with pytest.raises(TableError, match=STOPPED):
        small(bytearray, 2**33)
    assert small(len, b"abc") == 3
    small.end()


def test_an_unexpected_error_is_told_by_its_kind_alone(reader: Reader) -> None:
    with pytest.raises(Exception) as problem:  # noqa: PT011 - its name is what is tested
        reader(int, "SECRET")
    assert (type(problem.value).__name__, str(problem.value)) == ("ValueError", "")


def test_what_lies_in_the_folder_is_not_imported(series: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "pickle", "struct", "resource"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    made = Reader()
    assert list(made(tables.series, series)) == [1.5, 2.5]
    made.end()
    assert not (tmp_path / "imported").exists()


def test_rows_are_counted_here_and_whoever_counts_may_stop_it(reader: Reader, series: Path) -> None:
    rows: list[int] = []
    asked = (series, TableSpec("year", wide=True))
    reader(custodian_examine, *asked, on_rows=rows.append)
    assert sum(rows) > 0
    before = reader(os.getpid)

    def stop(rows: int) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        reader(custodian_examine, *asked, on_rows=stop)
    assert reader(os.getpid) != before


def test_the_process_goes_when_the_program_goes() -> None:
    made = Reader()
    process = made._process
    del made
    assert process.poll() is not None


def test_the_analysts_desk_says_so_beside_the_field_and_goes_on(tmp_path: Path, reader: Reader, endless: Path) -> None:
    desk = AnalystDesk(tmp_path, reader)
    desk.open_release(File(RELEASE, "wages.dpsc.json"))
    assert desk.problems == {}
    reader._patience = 0.5
    desk.target_file = File(endless, "endless.csv")
    desk._read_target()
    assert "so it was stopped" in desk.problems["target"]
    reader._patience = 60.0
    desk.paste_target("\n".join(f"{year}\t{year - 1979}" for year in range(1980, 1988)))
    desk.choose(5)
    assert desk.problems == {}
    assert desk.result is not None


@pytest.fixture
def custodian(tmp_path: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> CustodianDesk:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSC_LEDGER", raising=False)
    (tmp_path / "private").mkdir()
    reader(os.getpid)
    return CustodianDesk(tmp_path / "private", tmp_path, None, reader)


def test_a_check_without_end_is_ended(custodian: CustodianDesk, reader: Reader, endless: Path) -> None:
    reader._patience = 0.5
    custodian.fill("path", str(endless))
    custodian.data.use_path()
    custodian.work.wait(60)
    assert custodian.work.what == ""
    assert "so it was stopped" in custodian.problems["donors_file"]


def test_stop_ends_a_check_that_reads_no_row(custodian: CustodianDesk, endless: Path) -> None:
    custodian.fill("path", str(endless))
    custodian.data.use_path()
    sleep(0.3)
    assert custodian.work.what
    custodian.stop()
    custodian.work.wait(30)
    assert custodian.work.what == ""
    assert custodian.note.startswith("Stopped.")
    assert "donors_file" not in custodian.problems


def test_a_public_series_without_end_is_waited_for_once(
    custodian: CustodianDesk, reader: Reader, endless: Path
) -> None:
    reader._patience = 0.5
    custodian.each_donor.use_like(File(endless, "clinic.csv"))
    assert "so it was stopped" in custodian.problems["like_file"]
    for amount in ("0.5", "0.6", "0.7", "0.8"):
        custodian.fill("epsilon", amount)
    assert reader._process.poll() is not None  # it was not started again
    assert "so it was stopped" in custodian.problems["like_file"]


def test_what_is_left_where_a_process_was_ended_goes_with_the_programs_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made = Reader()
    assert made(tempfile.gettempdir) == str(tmp_path)
    made.end()
