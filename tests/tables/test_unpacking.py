"""Workbooks that would hang whoever reads them are refused at once; others are read as before."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from dpsc.errors import TableError
from dpsc.tables import excel, reader
from dpsc.tables.dialect import UNSAID

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KINDS = {"workbook": "sheet.main", "worksheets/sheet1": "worksheet", "sharedStrings": "sharedStrings",
         "styles": "styles"}  # fmt: skip
HEADER = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>cost</t></is></c></row>'
ROW = '<row r="2"><c r="A2" t="inlineStr"><is><t>a</t></is></c><c r="B2"><v>1.5</v></c></row>'
MB = 2**20
SHEET = "worksheets/sheet1.xml"


def parts(
    sheets: int = 1,
    rid: str = "rId{k}",
    target: str = SHEET,
    sst: str = "",
    styles: str = "",
    more: dict[str, str] | None = None,
) -> dict[str, str]:
    """The parts of a workbook but its sheet, which may be named several times."""
    override = [
        f'<Override PartName="/xl/{name}.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        f'spreadsheetml.{kind}+xml"/>' for name, kind in KINDS.items()
    ]  # fmt: skip
    named = [f'<sheet name="s{k}" sheetId="{k}" r:id="{rid.format(k=k)}"/>' for k in range(1, sheets + 1)]
    known = {f"rId{k}": ("worksheet", target) for k in range(1, sheets + 1)}
    known |= {"text": ("sharedStrings", "sharedStrings.xml"), "look": ("styles", "styles.xml")}
    related = [f'<Relationship Id="{key}" Type="{DOCUMENT}/{kind}" Target="{place}"/>'
               for key, (kind, place) in known.items()]  # fmt: skip
    to_book = f'<Relationship Id="rId1" Type="{DOCUMENT}/officeDocument" Target="xl/workbook.xml"/>'
    kinds = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    links = f'<Relationships xmlns="{PACKAGE}/relationships">%s</Relationships>'
    sheet_list = f'<workbook xmlns="{MAIN}" xmlns:r="{DOCUMENT}"><sheets>%s</sheets></workbook>'
    made = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">{kinds}{"".join(override)}</Types>',
        "_rels/.rels": links % to_book,
        "xl/workbook.xml": sheet_list % "".join(named),
        "xl/_rels/workbook.xml.rels": links % "".join(related),
        "xl/sharedStrings.xml": f'<sst xmlns="{MAIN}"><si><t>who</t></si>{sst}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}">{styles}</styleSheet>',
    }
    return made | (more or {})


def book(
    path: Path,
    rows: Iterable[str] = (ROW,),
    others: dict[str, str] | None = None,
    head: str = "",
    encoding: str = "utf-8",
) -> Path:
    """Write a workbook as an attacker would: piece by piece, whatever it says."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, text in (others or parts()).items():
            archive.writestr(name, text)
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            sheet.write(f'<?xml version="1.0" encoding="{encoding}"?>{head}'.encode(encoding))
            for piece in (f'<worksheet xmlns="{MAIN}"><sheetData>{HEADER}', *rows, "</sheetData></worksheet>"):
                sheet.write(piece.encode("utf-16-le" if encoding == "utf-16" else encoding))
    return path


def opened(path: Path) -> excel.Worksheet:
    return excel.open_sheet(path, UNSAID)


RUN = f"<r><rPr><b/><y/></rPr><t>{'x' * 30_000}</t></r>"
LAUGHS = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
NUMBERS = "a row has a number above 1,048,576"
TOO_BIG = {
    "row": ({"rows": ['<row r="2000000000"><c r="A2000000000"><v>1</v></c></row>']}, NUMBERS),
    "row in the words of floats": ({"rows": ['<row r="1e9"><c><v>1</v></c></row>']}, NUMBERS),
    "row with many zeros": ({"rows": [f'<row r="{"0" * 30}2000000000"><c><v>1</v></c></row>']}, NUMBERS),
    "row that is no number": ({"rows": ['<row r="inf"><c><v>1</v></c></row>']}, NUMBERS),
    "row in UTF-16": ({"rows": ['<row r="2000000000"><c/></row>'], "encoding": "utf-16"}, NUMBERS),
    "row with a prefix": ({"rows": ['<x:row xmlns:x="y" r="2000000000"/>']}, NUMBERS),
    "rows": ({"rows": ["<row/>" * 2**16] * 17}, NUMBERS),
    "column": ({"rows": ['<row><c r="XFE2"/></row>']}, "more than 16,384 columns"),
    "empty cells": ({"rows": ['<row><c r="XFD2"/></row>' * 400]}, "more than 5,000,000 cells"),
    "cell": ({"rows": ["<row><c><is><t>", *["x" * MB] * 60, "</t></is></c></row>"]}, "32,767 characters"),
    "cell of many pieces": ({"rows": ["<row><c><is>", *[RUN] * 900, "</is></c></row>"]}, "32,767 characters"),
    "shared text": ({"others": parts(sst=f"<si><t>{'x' * 2**17}</t></si>")}, "32,767 characters"),
    "shared texts": ({"others": parts(sst="<si/>" * 1_050_000)}, "1,048,576 different texts"),
    "unpacked": ({"rows": ["<row><c><is><t>", *["x" * MB] * 260, "</t></is></c></row>"]}, "256 MB when unpacked"),
    "attribute": ({"rows": ['<row a="', *[">" + "x" * MB] * 30, '"/>']}, "a tag in it"),
    "attributes": ({"rows": ["<row " + " ".join(f'a{k}=""' for k in range(2000)) + "/>"]}, "a tag in it"),
    "comment": ({"rows": ["<!--", *[">" + "x" * MB] * 30, "-->"]}, "a tag in it"),
    "white space": ({"rows": [" " * MB + "<row/>"] * 40}, "too much text outside of cells"),
    "elements": ({"rows": ["<x/>" * 2**16] * 40}, "things that are no cells"),
    "elements in a cell": ({"rows": ["<row><c>", *["<v/>" * 2**16] * 40, "</c></row>"]}, "things that are no cells"),
    "styles": ({"others": parts(styles=f"<cellXfs>{'<xf/>' * 250_000}</cellXfs>")}, "250,000 things that are no cells"),
    "merged cells": ({"rows": ['<mergeCells>' + '<mergeCell ref="A1:B2"/>' * 250_000 + '</mergeCells>']},
                     "250,000 things that are no cells"),
    "password": ({"rows": [f'<sheetProtection password="{"x" * 300_000}"/>']}, "a tag in it"),
    "one cell many times": ({"rows": ["<row>", '<c r="A2"/>' * 17_000, "</row>"]}, "more than 16,384 columns"),
    "rows in a row": ({"rows": ["<row>", ('<c r="A2"/>' * 9_000 + "<row/>") * 2, "</row>"]}, "within another"),
    "one text in many cells": (
        {"rows": ['<row><c t="s"><v>1</v></c></row>' * 9_000], "others": parts(sst=f"<si><t>{'x' * 32_767}</t></si>")},
        "268,435,456 characters together"),
    "entities": ({"head": f'<!DOCTYPE x [<!ENTITY a "{"x" * 99}">{LAUGHS}]>', "rows": ["<row><c>&i;</c></row>"]},
                 "a document type"),
    "sheets": ({"others": parts(sheets=501, rid="rId1")}, "more than 500 sheets"),
    "one sheet many times": ({"others": parts(sheets=200, rid="rId1")}, "named twice"),
    "one part many times": ({"others": parts(sheets=200, target="/xl/x/../worksheets/sheet1.xml")}, "named twice"),
    "parts": ({"others": parts(more={f"x/{k}": "" for k in range(2001)})}, "more than 2,000 parts"),
    "list of parts": ({"others": parts(more={f"x/{k:0200d}": "" for k in range(5000)})}, "more than 2,000 parts"),
}  # fmt: skip


@pytest.mark.parametrize("what", TOO_BIG)
def test_a_workbook_beyond_what_excel_can_hold_is_refused_in_a_sentence(tmp_path: Path, what: str) -> None:
    made, said = TOO_BIG[what]
    path = book(tmp_path / "d.xlsx", **made)  # type: ignore[arg-type]
    assert path.stat().st_size < 2_500_000
    with pytest.raises(TableError) as refusal:
        opened(path)
    assert said in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}: this workbook cannot be read: ")


LITTLE = """
import resource, sys
from pathlib import Path
from openpyxl import load_workbook
from dpsc.tables import excel
from dpsc.tables.dialect import UNSAID
from dpsc.errors import TableError
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28,) * 2)
for path in sys.argv[1:]:
    try:
        excel.open_sheet(Path(path), UNSAID)
    except TableError as problem:
        print(problem)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux shows it")
def test_it_is_refused_in_little_memory_and_time(tmp_path: Path) -> None:
    names = ("row", "cell", "one cell many times", "one text in many cells", "shared texts", "attribute", "entities")
    paths = [book(tmp_path / f"{k}.xlsx", **TOO_BIG[name][0]) for k, name in enumerate(names)]  # type: ignore[arg-type]
    done = subprocess.run([sys.executable, "-c", LITTLE, *paths], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        assert TOO_BIG[name][1] in line


def test_it_is_refused_before_any_library_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openpyxl.load_workbook", lambda *_, **__: pytest.fail("read"))
    with pytest.raises(TableError, match="a row has a number"):
        opened(book(tmp_path / "d.xlsx", ['<row r="2000000000"><c/></row>']))


def test_a_size_that_is_a_lie_is_not_believed(tmp_path: Path) -> None:
    path = book(tmp_path / "d.xlsx", ["<row><c><is><t>", *["x" * MB] * 100, "</t></is></c></row>"])
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size.to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (3000).to_bytes(4, "little")))
    with pytest.raises(TableError, match="cannot be read"):
        opened(path)


@pytest.mark.parametrize("how", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_packings_that_no_workbook_has_are_refused(tmp_path: Path, how: int) -> None:
    book(tmp_path / "d.xlsx")
    with zipfile.ZipFile(tmp_path / "d.xlsx") as old, zipfile.ZipFile(tmp_path / "e.xlsx", "w", how) as new:
        for part in old.infolist():
            new.writestr(part.filename, old.read(part))
    assert len(opened(tmp_path / "d.xlsx").cells) == 1
    with pytest.raises(TableError, match="is it really an Excel workbook"):
        opened(tmp_path / "e.xlsx")


FINE: dict[str, dict[str, object]] = {
    "as it is": {},
    "dimensions that are wrong": {"rows": [ROW, "</sheetData>", '<dimension ref="A1:XFD1048576"/>', "<sheetData>"]},
    "UTF-16": {"encoding": "utf-16"},
    "the longest cell": {"rows": [ROW.replace(">a<", f">{'a' * 32_767}<")]},
    "a long text elsewhere": {"others": parts(more={"customXml/item1.xml": f"<x>{'y' * 10**6}</x>"})},
    "a part that is not well formed": {"others": parts(more={"xl/drawings/vml.vml": "<xml><br></xml>"})},
    "a picture": {"others": parts(more={"xl/media/image1.png": "\x89PNG\r\n"})},
    "many formulas": {"others": parts(more={"xl/calcChain.xml": "<x>" + '<c r="A1"/>' * 20_000 + "</x>"})},
    "a pivot table": {"others": parts(more={"xl/pivotCache/p1.xml": f"<p>{'<r><n/></r>' * 200_000}</p>"})},
    "no numbers of rows": {"rows": ["<row><c t='str'><v>a</v></c><c><v>1.5</v></c></row>"]},
}


@pytest.mark.parametrize("what", FINE)
def test_what_programs_write_is_read(tmp_path: Path, what: str) -> None:
    cells = opened(book(tmp_path / "d.xlsx", **FINE[what])).cells  # type: ignore[arg-type]
    assert [str(cell)[:1] for cell in cells[0]] == ["a", "1"]


def test_the_last_row_and_the_last_column_of_excel_are_read(tmp_path: Path) -> None:
    last = f'<row r="{excel.MOST_ROWS}"><c r="XFD{excel.MOST_ROWS}"><v>1</v></c></row>'
    cells = opened(book(tmp_path / "d.xlsx", [ROW, last])).cells
    assert (len(cells), len(cells[-1])) == (excel.MOST_ROWS - 1, excel.MOST_COLUMNS)


def test_a_number_beyond_all_floats_is_infinite_as_in_a_csv(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(f"who,cost\na,1{'0' * 400}\n")
    huge = opened(book(tmp_path / "d.xlsx", [ROW.replace("1.5", f"1{'0' * 400}")]))
    (found,) = huge.rows(pa.schema([("cost", pa.float64())]), ["cost"], 10, UNSAID.numbers())
    assert found.batch.column(0).to_pylist() == [float("inf")]
    table = reader.open_table(tmp_path / "d.csv", ["who"])
    (written,) = reader.rows_of(table, ["cost"])
    assert written.batch.column(0).to_pylist() == [float("inf")]
