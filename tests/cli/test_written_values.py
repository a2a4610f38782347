"""Prices, dates and sets as they are written in files of any format, from `train` to `predict` and `explain`."""

import csv
import datetime
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from separatrix.cli import app
from separatrix.modelfile.archive import load
from separatrix.web.server.reading.request_reader import Limits, RequestError, RequestReader

FORMS = ("csv", "jsonl", "parquet")


def run(*arguments, status=0):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == status, result.output + str(result.exception)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same sales in three formats, each in its own words, and a model of each."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("sales")
    rows = []
    for _ in range(400):
        moment = datetime.datetime(2022, 1, 1) + datetime.timedelta(hours=int(rng.integers(0, 20_000)))
        tags = sorted(rng.choice(["new", "red", "sale", "small", "used"], rng.integers(1, 4), replace=False).tolist())
        price = round(float(rng.gamma(2, 900)), 2)
        score = 2 * ("sale" in tags) - (price > 1500) + (moment.weekday() > 4) + 0.2 * rng.normal()
        rows.append({"moment": moment, "tags": tags, "price": price, "sold": "yes" if score > 0.9 else "no"})
    with (folder / "sales.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        for row in rows:
            writer.writerow([f"{row['moment']:%m/%d/%Y %H:%M}", "|".join(row["tags"]), f"${row['price']:,.2f}", row["sold"]])
    lines = [json.dumps(row | {"moment": row["moment"].isoformat()}) for row in rows]
    (folder / "sales.jsonl").write_text("\n".join(lines) + "\n")
    pq.write_table(pa.Table.from_pylist(rows), folder / "sales.parquet")
    for form in FORMS:
        run("train", folder / f"sales.{form}", "-o", folder / f"{form}.sepx", "--quiet")
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_model(folder, form):
    printed = run("train", folder / f"sales.{form}").stdout
    assert [line.split()[:2] for line in printed.splitlines()[2:5]] == [
        ["moment", "date"],
        ["tags", "set"],
        ["price", "number"],
    ]
    margins = [run("predict", folder / f"{model}.sepx", folder / f"sales.{form}").stdout for model in ("csv", form)]
    assert margins[0] == margins[1] == run("predict", folder / "csv.sepx", folder / "sales.csv").stdout
    explained = run("explain", folder / f"{form}.sepx", folder / f"sales.{form}").stdout
    assert "moment day of week=" in explained and "tags has " in explained
    json.loads(run("explain", folder / f"{form}.sepx", folder / f"sales.{form}", "--json").stdout)


def test_rows_of_the_server(folder):
    readers = {form: RequestReader(load(folder / f"{form}.sepx", plain=True).features, Limits()) for form in FORMS}

    def names(form, **row):
        examples = readers[form].one(json.dumps({"row": row}).encode(), labelled=False)
        return {readers[form].features.names_of(j)[0] for j in examples.indices}

    written = names("csv", moment="07/15/2023 17:00", tags="new|red|unheard", price="$1,250.00")
    assert {"moment month=7", "moment day of week=Sat", "moment hour=17", "tags has new", "tags has red"} <= written
    typed = {"moment": "2023-07-15T17:00:00", "tags": ["new", "red"], "price": 1250}
    assert all(names(form, **typed) == written for form in FORMS)
    with pytest.raises(RequestError) as caught:
        names("csv", moment="soon", tags=None, price=None)
    assert "'soon' is not a date such as 03/25/2024" in caught.value.message


def test_roles_as_options(folder):
    data = folder / "sales.csv"
    printed = run("train", data, "--date", "moment", "--set", "tags").stdout
    assert "moment  date" in printed and "tags    set" in printed
    printed = run("train", data, "--categorical", "tags", "--drop", "moment").stdout
    assert "tags    category" in printed
    assert "column 'tags': 'new|red'" not in printed
    error = run("train", data, "--date", "tags", status=2).stderr
    assert "is no date in a known form" in error


def test_sql_names_the_column_and_the_option(folder):
    error = run("export", folder / "csv.sepx", "--to", "sql", status=2).stderr
    assert "column 'moment' holds dates, which SQL cannot compute" in error and "--drop moment" in error


def test_lists_are_no_labels(folder):
    for form in ("jsonl", "parquet"):
        error = run("train", folder / f"sales.{form}", "--label", "tags", status=2).stderr
        assert f"sales.{form}: " in error and "list" in error and "--label" in error


def test_a_few_separators_of_thousands_among_plain_numbers_are_read(tmp_path):
    amounts = ["1,204" if k in (100, 200) else str(k * 37 % 250) for k in range(300)]
    (tmp_path / "data.csv").write_text("amount,y\n" + "".join(f'"{a}",{"ab"[len(a) > 2]}\n' for a in amounts))
    printed = run("train", tmp_path / "data.csv", "--json").stdout
    columns = json.loads(printed)["columns"]
    assert columns[1].split()[:2] == ["amount", "number"] and len(columns[1].split()) == 3  # none is missing


def test_numbers_of_a_chosen_role_are_read_as_in_training(tmp_path):
    lines = [f"{'1.234,50' if k % 2 else '567,25'};{k % 7};{'high' if k % 2 else 'low'}" for k in range(100)]
    (tmp_path / "sums.csv").write_text("\n".join(["sum;day;kind", *lines]))
    (tmp_path / "new.csv").write_text("sum;day\n1.234;1\n1.300;2\n1.250;3\n")  # by themselves, these could be 1.234 …
    run("train", tmp_path / "sums.csv", "--number", "sum", "-o", tmp_path / "sums.sepx")
    predicted = run("predict", tmp_path / "sums.sepx", tmp_path / "new.csv").stdout.splitlines()
    assert [line.split(",")[0] for line in predicted[1:]] == ['"high"'] * 3


@pytest.mark.parametrize("other", ["A1B", "01003"])
def test_codes_of_a_chosen_role_are_read_as_in_training(tmp_path, other):
    codes = ["02139", "10001", other, "01002"]
    lines = [f"{codes[k % 4]},{k % 7},{'ab'[k % 4 % 3 > 0]}" for k in range(200)]
    (tmp_path / "codes.csv").write_text("\n".join(["code,day,kind", *lines]))
    (tmp_path / "new.csv").write_text("code,day\n02139,1\n10001,1\n01002,1\n")
    run("train", tmp_path / "codes.csv", "--categorical", "code", "-o", tmp_path / "codes.sepx")
    predicted = run("predict", tmp_path / "codes.sepx", tmp_path / "new.csv").stdout.splitlines()
    assert [line.split(",")[0] for line in predicted[1:]] == ['"a"', '"b"', '"a"']


def test_a_few_negative_numbers_in_brackets_among_plain_ones_are_read(tmp_path):
    gains = ["(9.50)" if k % 60 == 7 else "−8.5" if k % 90 == 8 else str(k % 5) for k in range(600)]
    lines = [f"{gain},{k % 7},{'ab'[len(gain) > 1]}" for k, gain in enumerate(gains)]
    (tmp_path / "gains.csv").write_text("\n".join(["gain,day,kind", *lines]))
    printed = run("train", tmp_path / "gains.csv", "-o", tmp_path / "gains.sepx").stdout
    assert "taken as missing" not in printed
    table = {"gain": ["(9.50)", "−8.5", "3"], "day": [1, 1, 1]}
    assert load(tmp_path / "gains.sepx").predict(table).tolist() == ["b", "b", "a"]


def test_a_value_that_is_not_written_as_in_training_is_named_by_its_line(tmp_path):
    lines = [f"{k % 12 + 1:02}/{k % 28 + 1:02}/2020,{'ab'[k % 2]}" for k in range(100)]
    (tmp_path / "days.csv").write_text("\n".join(["day,kind", *lines]))
    (tmp_path / "new.csv").write_text("day,kind\n01/25/2020,a\n25/01/2020,b\n")
    run("train", tmp_path / "days.csv", "-o", tmp_path / "days.sepx")
    for verb in ("predict", "evaluate"):
        assert (
            "new.csv, line 3, column 'day': '25/01/2020'"
            in run(verb, tmp_path / "days.sepx", tmp_path / "new.csv", status=2).output
        )
    printed = run("train", tmp_path / "days.csv", "--validate", tmp_path / "new.csv", status=2).output
    assert "new.csv, line 3, column 'day': '25/01/2020'" in printed


def test_a_date_that_does_not_fit_is_named_with_its_line(folder, tmp_path):
    data = tmp_path / "later.csv"
    data.write_text("moment,tags,price\n" + "03/25/2024 10:00,red,$3\n" * 70_000 + "05.06.2024 10:00,red,$3\n")
    for verb in ("predict", "explain"):
        options = ("--row", "70001") if verb == "explain" else ()
        error = run(verb, folder / "csv.sepx", data, *options, status=2).stderr
        what = "line 70002, column 'moment': '05.06.2024 10:00' is not a date such as 03/25/2024"
        assert error.startswith(f"separatrix {verb}: {data}, {what}")


def test_numbers_beside_words_are_kept_with_an_option(tmp_path):
    rng, data = np.random.default_rng(0), tmp_path / "sensor.csv"
    with data.open("w") as file:
        print("fine,coarse,both,label", file=file)
        for i, x in enumerate(rng.normal(size=400)):
            fine, coarse = "busy" if i % 20 == 0 else f"{x:.3f}", "busy" if i % 12 == 0 else f"{x:.1f}"
            print(
                fine, coarse, ("err", "---", "#DIV/0!", "busy")[i // 20 % 4] if i % 20 == 0 else x, x > 0, sep=",", file=file
            )
    printed = run("train", data).stdout
    assert "most of them numbers beside words ('busy'): left out; keep it as numbers with --number fine, which" in printed
    assert "'coarse' holds numbers beside words ('busy'): taken for categories; take it for numbers with --num" in printed
    assert "column both: 20 values of 400 are not numbers, the first 'err'" in printed
    printed = run("train", data, "--number", "fine", "--number", "coarse").stdout
    assert "beside words" not in printed and "column 'fine': 20 values are not a number" in printed


def german(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def test_errors_of_a_spreadsheet_do_not_make_words_of_amounts_and_dates(tmp_path):
    rng, words = np.random.default_rng(3), ("#NV", "#WERT!", "#DIV/0!", "k.A.", "#¡VALOR!", "-")
    lines = ["Umsatz;Beginn;Rest;gekündigt"]
    for i, amount in enumerate(rng.lognormal(7.0, 1.0, 300)):
        missing = words[i // 10 % len(words)] if i % 10 == 0 else ""
        beside = german(amount) if i % 20 else "busy"
        date = missing or f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.2024"
        lines.append(f"{missing or german(amount) + ' €'};{date};{beside};{'ja' if amount < 900 else 'nein'}")
    (tmp_path / "kunden.csv").write_text("\n".join(lines) + "\n", "cp1252")
    printed = run("train", tmp_path / "kunden.csv", "-o", tmp_path / "model.sepx").stdout
    assert "Umsatz  number" in printed and "Beginn  date" in printed
    assert "column 'Umsatz': 30 values are not a number such as €1.234,5 ('#NV'): taken for missing" in printed
    assert "column 'Rest' has" in printed  # other words do count
    predicted = run("predict", tmp_path / "model.sepx", tmp_path / "kunden.csv").stdout.splitlines()[1:]
    assert sum(row.startswith('"nein"') for row in predicted) > 100


def test_numbers_of_json_lines_are_taken_as_they_are(tmp_path):
    amounts = np.random.default_rng(5).random(400) * 2000
    rows = "".join(f"{german(amount)};{'yes' if amount > 1000 else 'no'}\n" for amount in amounts)
    (tmp_path / "amounts.csv").write_text("amount;label\n" + rows)
    run("train", tmp_path / "amounts.csv", "-o", tmp_path / "model.sepx")

    def predicted(*values, status=0, options=()):
        path = tmp_path / "new.jsonl"
        path.write_text("".join(json.dumps({"amount": value}) + "\n" for value in values))
        result = run("predict", tmp_path / "model.sepx", path, *options, status=status)
        return result.stderr if status else [row["prediction"] for row in csv.DictReader(result.stdout.splitlines())]

    assert predicted(1.234, 1234.0, 2.5, None, 1800) == ["no", "yes", "no", "no", "yes"]
    assert predicted("1.234", "1.234,00", "2,5", None, 1800) == ["yes", "yes", "no", "no", "yes"]
    assert predicted(1.234, 1800, "n/a", "unknown") == ["no", "yes", "no", "no"]
    error = predicted("1.234,00", "2,5", 1.234, status=2)
    assert "new.jsonl, line 3: key 'amount': '1.234' is a number where most are texts; write all in one way" in error
    error = predicted(1.234, 2.5, "1.234", status=2)
    assert "new.jsonl, line 3: key 'amount': '1.234' is a text where most are numbers; write all in one way" in error
    assert predicted(1.234, 1800, "1.234", options=("--on-error", "skip")) == ["no", "yes"]
