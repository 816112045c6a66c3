"""A collection of tables as people and programs write them, each with what it should become.

Every one holds the same twelve patients, or says why it cannot. The writers are the real ones where
they can run here (openpyxl, XlsxWriter, pandas, Polars, pyreadstat, sqlite3, DuckDB, Python's csv);
text that Excel, R and databases' clients write is written out letter by letter. Those in `files/`
were written once: .xls by xlwt, .xlsb by pyxlsbwriter, .ods by odfpy, .sas7bdat by haven.
"""

import csv
import gzip
import io
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

import openpyxl
import pandas as pd
import polars as pl
import pyreadstat
import xlsxwriter

from tacit.rows.written import Format

HEADER = ["id", "age", "bmi", "sex", "days", "note"]
AGES = [34, 58, 71, 45, 66, 80, 29, 51, 63, 77, 40, 55]
BMIS = [22.5, 31.25, None, 27.1, 24.0, 19.9, 33.3, 28.75, 26.4, None, 30.0, 23.6]
SEXES = ["f", "m", "f", "f", "m", "m", "f", "m", "f", "m", "m", "f"]
DAYS = [3.5, 12.0, 7.25, 2.0, 9.5, 14.0, 1.5, 6.0, 8.0, 11.75, 4.0, 5.5]
NOTES = ["", "Müller", 'said "no"', "", "", "a, b; c", "", "", "", "", "", ""]


def records(number=str, gap="", sexes=SEXES):
    """The patients' cells as text, each number written by `number`."""
    for place, age in enumerate(AGES):
        bmi = gap if BMIS[place] is None else number(BMIS[place])
        yield [
            str(place + 1),
            number(age),
            bmi,
            sexes[place],
            number(DAYS[place]),
            NOTES[place],
        ]


def text(separator=",", number=str, gap="", names=HEADER, **writing):
    """The table as text by Python's csv module."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=separator, lineterminator="\n", **writing)
    writer.writerow(names)
    writer.writerows(records(number, gap))
    return file.getvalue()


def comma(value):
    """As most of Europe writes numbers."""
    return str(value).replace(".", ",")


def frame(**changed):
    columns = dict(zip(HEADER, map(list, zip(*records_of_values(), strict=True)), strict=True))
    return pd.DataFrame(columns | changed)


def records_of_values():
    return zip(range(1, 13), AGES, BMIS, SEXES, DAYS, NOTES, strict=True)


@dataclass(frozen=True)
class Case:
    """How a file is written, what is said about it, and the refusal where it cannot be read.

    `shouts`: what the rehearsal says of a table that is read and still looks wrong. `rows`: where
    more than the twelve are read, of missing values.
    """

    name: str
    write: object
    said: Format = field(default_factory=Format)
    refusal: str | None = None
    shouts: str | None = None
    extra: int = 0


def bytes_of(content):
    return lambda path: path.write_bytes(content)


def stored(name):
    """A file of `files/`, written once by a program that need not be here."""
    return bytes_of((Path(__file__).parent / "files" / name).read_bytes())


def text_of(content, encoding="utf-8"):
    return bytes_of(content.encode(encoding))


def excel(rows, *, before=(), sheets=("Sheet1",)):
    def write(path):
        book = xlsxwriter.Workbook(path)
        for name in sheets:
            sheet = book.add_worksheet(name)
            for place, row in enumerate([*before, HEADER, *rows]):
                for column, cell in enumerate(row):
                    if cell is not None:
                        sheet.write(place, column, cell)
        book.close()

    return write


def openpyxl_with_errors(path):
    book = openpyxl.Workbook()
    book.active.append(HEADER)
    for row in records_of_values():
        book.active.append(["#N/A" if cell is None else cell for cell in row])
    book.active.append([None] * 6)
    book.save(path)


def sqlite_dump(path):
    """What sqlite3's `.mode list` and `.headers on` print."""
    database = sqlite3.connect(":memory:")
    frame().to_sql("stays", database, index=False)
    rows = database.execute("SELECT id, age, bmi, sex, days FROM stays").fetchall()
    lines = ["id|age|bmi|sex|days"]
    lines += ["|".join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def psql(path):
    """What psql prints for a query, with its rule and its count."""
    rows = list(records())
    width = max(len(cell) for row in rows for cell in row[:5]) + 2
    lines = ["|".join(f" {name:<{width}} " for name in HEADER[:5])]
    lines.append("+".join("-" * (width + 2) for _ in HEADER[:5]))
    lines += ["|".join(f" {cell:>{width}} " for cell in row[:5]) for row in rows]
    path.write_text("\n".join([*lines, "(12 rows)", ""]), encoding="utf-8")


def duckdb_copy(path):
    import duckdb

    stays = frame()
    duckdb.sql("SELECT * FROM stays").write_csv(str(path), sep=";", na_rep="NULL")
    assert len(stays) == 12


CODED = {"sex": [1.0 if sex == "f" else 2.0 for sex in SEXES]}
LABELS = {"sex": {1.0: "f", 2.0: "m"}}
WHOLE = pd.Series([1 if sex == "f" else 2 for sex in SEXES])
SPSS_GAPS = [999.0 if bmi is None else bmi for bmi in BMIS]
R_CSV2 = '"";"id";"age";"bmi";"sex";"days";"note"\n' + "".join(
    f'"{row[0]}";{row[0]};{row[1]};{row[2]};"{row[3]}";{row[4]};"{row[5]}"\n'
    for row in ([cell.replace('"', '""') for cell in row] for row in records(comma, "NA"))
)
R_TABLE = "id age bmi sex days\n" + "".join(
    f'"{row[0]}" {" ".join(row[:5])}\n' for row in records(gap="NA")
)
MYSQL = (
    "\t".join(HEADER[:5]) + "\n" + "".join("\t".join(row[:5]) + "\n" for row in records(gap="\\N"))
)
TITLED = "Station 4;;;;;\nexported 03.11.2026;;;;;\n\n"

CASES = [
    # Text by separator, decimal sign and thousands.
    Case("plain.csv", text_of(text())),
    Case("all-quoted.csv", text_of(text(quoting=csv.QUOTE_ALL))),
    Case("excel-german.csv", text_of(text(";", comma).replace("\n", "\r\n"), "windows-1252")),
    Case("excel-german-utf8.csv", text_of("\ufeff" + text(";", comma))),
    Case("excel-swiss.csv", text_of(text(";").replace("\n", "\r\n"), "windows-1252")),
    Case("excel-us.csv", text_of("\ufeff" + text().replace("\n", "\r\n"))),
    Case("excel-french-latin1.csv", text_of(text(";", comma), "latin-1")),
    Case("excel-sep-line.csv", text_of("sep=;\n" + text(";", comma))),
    Case("excel-unicode-text.txt", text_of("\ufeff" + text("\t", comma), "utf-16-le")),
    Case("excel-unicode-big.txt", text_of("\ufeff" + text("\t", comma), "utf-16-be")),
    Case("utf16-without-mark.csv", text_of(text(";"), "utf-16-le")),
    Case("tab.tsv", text_of(text("\t"))),
    Case("tab-named-csv.csv", text_of(text("\t"))),
    Case("bar.txt", text_of(text("|"))),
    Case("packed.csv.gz", bytes_of(gzip.compress(text(";", comma).encode()))),
    Case(
        "quoted-commas.csv",
        text_of(text(",", comma)),
        shouts="column 'days' has no value that can be used: 12 are no numbers",
    ),
    Case("quoted-commas-said.csv", text_of(text(",", comma)), said=Format(decimal=",")),
    Case(
        "thousands-of-days.csv",
        text_of(text(";", lambda value: f"{value * 1000:,.3f}".replace(",", "'"))),
        shouts="outside",
    ),
    Case(
        "points-of-thousands.csv",
        text_of(
            text(";", lambda value: f"{value:.0f}.000" if value == int(value) else comma(value))
        ),
        shouts="decimal commas, and points before three digits",
    ),
    Case("strange-separator.csv", text_of(text("~")), said=Format(separator="~")),
    Case(
        "strange-separator-unsaid.csv",
        text_of(text("~")),
        refusal="none of the study's names .* say its number, the separator",
    ),
    # Names and titles.
    Case("titles.csv", text_of(TITLED + text(";", comma))),
    Case("spaces-in-names.csv", text_of(text(names=[f" {name} " for name in HEADER]))),
    Case(
        "capitals.csv",
        text_of(text(names=[name.capitalize() for name in HEADER])),
        refusal="needs exactly one column named 'age'.* it has 'Age': rename it, or say which",
    ),
    Case(
        "capitals-said.csv",
        text_of(text(names=[name.capitalize() for name in HEADER])),
        said=Format(columns={name: name.capitalize() for name in HEADER}),
    ),
    Case(
        "no-names.csv",
        text_of("\n".join(text().splitlines()[1:]) + "\n"),
        refusal="it needs a line of names",
    ),
    Case("deep-title.csv", text_of("\n".join(["."] * 40) + "\n" + text()), said=Format(header=41)),
    Case("deep-title-unsaid.csv", text_of("\n".join(["."] * 40) + "\n" + text()), refusal="names"),
    Case("empty.csv", bytes_of(b""), refusal="it needs a line of names"),
    # Missing values.
    Case("question-marks.csv", text_of(text(gap="?"))),
    Case("points.csv", text_of(text(gap="."))),
    Case("dashes.csv", text_of(text(gap="-"))),
    Case("excel-errors.csv", text_of(text(";", comma, gap="#NV"))),
    Case("codes.csv", text_of(text(gap="-999")), said=Format(missing=("-999",))),
    Case("codes-as-floats.csv", text_of(text(gap="-999.0")), said=Format(missing=("-999",))),
    # Shapes.
    Case("newlines-in-notes.csv", text_of(text().replace("Müller", '"Müller\nward 3"'))),
    Case("blank-lines.csv", text_of(text().replace("\n", "\n\n"))),
    Case("ragged.csv", text_of(text() + "13,44\n"), extra=1),
    Case("no-last-newline.csv", text_of(text().rstrip("\n"))),
    Case("padded-cells.csv", text_of(text().replace(",f,", ",f   ,"))),
    # What programs write.
    Case("r-write-csv2.csv", text_of(R_CSV2)),
    Case("r-write-table.txt", text_of(R_TABLE), said=Format(separator=" "), shouts="out of shape"),
    Case("pandas.csv", lambda path: frame().to_csv(path, index=False)),
    Case("pandas-index.csv", lambda path: frame().to_csv(path)),
    Case("pandas-european.csv", lambda path: frame().to_csv(path, sep=";", decimal=",")),
    Case("pandas-utf16.csv", lambda path: frame().to_csv(path, encoding="utf-16")),
    Case("pandas.parquet", lambda path: frame().to_parquet(path)),
    Case("polars.csv", lambda path: pl.from_pandas(frame()).write_csv(path)),
    Case("mysql-batch.tsv", text_of(MYSQL)),
    Case("sqlite-list.txt", sqlite_dump),
    Case("psql.txt", psql),
    Case("duckdb-copy.csv", duckdb_copy),
    # Spreadsheets and statistics packages.
    Case("excel.xlsx", excel(records_of_values())),
    Case("excel-titles.xlsx", excel(records_of_values(), before=[["Ward 4"], []])),
    Case("excel-text-numbers.xlsx", excel([[*row] for row in records(comma)])),
    Case("excel-errors.xlsx", openpyxl_with_errors),
    Case(
        "excel-two-sheets.xlsx",
        excel(list(records_of_values()), sheets=("2024", "2025")),
        refusal="in several sheets, '2024', '2025': say which sheet",
    ),
    Case(
        "excel-sheet-said.xlsx",
        excel(list(records_of_values()), sheets=("2024", "2025")),
        said=Format(sheet="2025"),
    ),
    Case("not-a-spreadsheet.xlsx", text_of(text()), refusal="cannot be opened as a spreadsheet"),
    Case("stata.dta", lambda path: pyreadstat.write_dta(frame(), path)),
    Case(
        "stata-labels.dta",
        lambda path: pyreadstat.write_dta(
            frame(**CODED), path, variable_value_labels={"sex": {1: "f", 2: "m"}}
        ),
    ),
    Case(
        "spss-labels.sav",
        lambda path: pyreadstat.write_sav(frame(**CODED), path, variable_value_labels=LABELS),
    ),
    Case(
        "spss-missing.sav",
        lambda path: pyreadstat.write_sav(
            frame(bmi=SPSS_GAPS), path, missing_ranges={"bmi": [999]}
        ),
    ),
    Case("excel-97.xls", stored("excel-97.xls")),
    Case("excel-binary.xlsb", stored("excel-binary.xlsb")),
    Case("opendocument.ods", stored("opendocument.ods")),
    Case("sas.sas7bdat", stored("sas.sas7bdat")),
    Case("sas.xpt", lambda path: pyreadstat.write_xport(frame(), path)),
    Case("damaged.sav", text_of(text()), refusal="cannot be read: check that it is whole"),
    Case("notes.docx", text_of(text()), refusal="of no known kind"),
]
