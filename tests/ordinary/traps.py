"""The traps: files as people have them, what is wrong with each, and what `separatrix train` should make of it.

Most files have the columns age, visits, plan and churned (yes or no), where few visits and the plan "basic" mean yes; in the
others one column alone tells the label, so that the accuracy shows whether it was read for what it is. Three labels of a
hundred are wrong. The files are in `files/`; those that need more rows are made in `test_ordinary_files.py`.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Trap:
    """A file, what is wrong with it, the command, and what a person should see.

    Attributes
    ----------
    file : its name in `files/`
    why : the trap
    options : of `separatrix train`; the accuracy is that of `--holdout 0.3`
    accuracy : the least held-out accuracy; None where training should fail
    roles : of some columns, as the summary shows them
    classes : all classes that the summary counts
    says, never : what the output has, and what it does not have
    """

    file: str
    why: str
    options: str = ""
    accuracy: float | None = None
    roles: dict[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The file and the trap, which name the test."""
        return f"{self.file}, {self.why}"


CUSTOMERS = {"age": "number", "visits": "number", "plan": "category"}
YES_NO = ("no", "yes")
FAILS = None

TRAPS = (
    # Labels.
    Trap("sorted_by_class.csv", "all of one class come first", "", 0.75, CUSTOMERS, YES_NO),
    Trap("blanks_around_labels.csv", "blanks around values and labels", "", 0.8, CUSTOMERS, YES_NO),
    Trap(
        *("labels_in_two_cases.csv", "the same labels as Yes and yes", "", 0.3, CUSTOMERS, ("No", "Yes", "no", "yes")),
        says=("'Yes' and 'yes' differ only in case",),
    ),
    Trap(
        *("missing_labels.csv", "one label of ten is empty, NA or ?", "", 0.75, CUSTOMERS, YES_NO),
        says=("12 rows without a label",),
    ),
    Trap("missing_labels.csv", "and nobody may overlook it", "--missing-label raise", FAILS, says=("line 5", "label")),
    Trap("a_label_that_occurs_once.csv", "a class of one row", "", 0.8, CUSTOMERS),
    Trap("one_class.csv", "there is one class", "", FAILS, says=("a boundary needs two classes", "only 1 class")),
    Trap("no_labels.csv", "the label column is empty", "", FAILS, says=("is churned the label column?", "--label")),
    Trap("labels_are_numbers.csv", "labels are written 0.0 and 1.0", "", 0.85, CUSTOMERS, ("0.0", "1.0")),
    Trap("labels_with_leading_zeros.csv", "labels are codes", "", 0.85, {"amount": "number"}, ("02134", "10001")),
    # Identifiers and leaks.
    Trap(
        *("consecutive_id.csv", "a row number", "", 0.8, {"id": "dropped", **CUSTOMERS}, YES_NO),
        says=("column 'id'", "left out"),
    ),
    Trap(
        *("customer_id.csv", "numbers of customers", "", 0.8, {"customer_id": "dropped", **CUSTOMERS}, YES_NO),
        says=("column 'customer_id'", "left out", "--number customer_id"),
    ),
    Trap("customer_id.csv", "kept when asked for", "--number customer_id", 0.75, {"customer_id": "number"}),
    Trap("uuid.csv", "universally unique identifiers", "", 0.85, {"session": "dropped", **CUSTOMERS}, YES_NO),
    Trap("unnamed_0.csv", "the index of a data frame", "", 0.85, {"Unnamed: 0": "dropped", **CUSTOMERS}, YES_NO),
    Trap("pandas_index.csv", "the index of a data frame, without a name", "", 0.85, {"c0": "dropped", **CUSTOMERS}, YES_NO),
    Trap("index_of_a_data_frame.csv", "the index of a data frame, shuffled", "", 0.85, {"__index_level_0__": "dropped"}),
    Trap(
        *("sorted_by_a_measurement.csv", "a measurement that looks like a row number", "", 0.85, {"hp": "number"}),
        says=("kept; leave it out with --drop hp",),
    ),
    Trap(
        *("a_count_called_number.csv", "a measurement called a number", "", 0.85, {"visitor_number": "number"}),
        says=("kept; leave it out with --drop visitor_number",),
    ),
    Trap("id_sorted_by_class.csv", "a number that tells the class by its order", "", 0.2, {"account_id": "dropped"}),
    Trap(
        *("column_equal_to_label.csv", "a column that is the label under another name", "", 0.9, {}, YES_NO),
        says=("column 'cancelled'", "is it known at prediction time?"),
    ),
    Trap("constant_column.csv", "a column of one value", "", 0.85, CUSTOMERS, YES_NO),
    Trap(
        *("empty_column.csv", "a column without a value", "", 0.8, {"remarks": "dropped", **CUSTOMERS}, YES_NO),
        says=("column 'remarks' has no value",),
    ),
    # Encodings and line ends.
    Trap("latin_1.csv", "latin-1", "", 0.85, {"town": "category"}, YES_NO, says=("read as windows-1252", "--encoding")),
    Trap("latin_1.csv", "named by the user", "--encoding latin-1", 0.85, {"town": "category"}, YES_NO),
    Trap("latin_1.csv", "the wrong encoding", "--encoding utf-8", FAILS, says=("line 2", "0xf6", "--encoding")),
    Trap("windows_1252.csv", "Windows-1252, with its quotes and dashes", "", 0.9, {"review": "text"}, ("bad", "good")),
    Trap("utf_16_le.csv", "UTF-16, as Excel saves Unicode text", "", 0.85, {"town": "category"}, YES_NO),
    Trap("utf_16_be.csv", "UTF-16, the bytes the other way round", "", 0.85, {"town": "category"}, YES_NO),
    Trap("utf_16_without_mark.csv", "UTF-16 without a byte order mark", "--encoding utf-16-le", 0.8, {"town": "category"}),
    Trap("utf_8_mark.csv", "a byte order mark before the header", "--label churned", 0.8, CUSTOMERS, YES_NO),
    Trap("cr_line_ends.csv", "lines end in a carriage return", "", 0.8, CUSTOMERS, YES_NO),
    Trap("crlf_line_ends.csv", "lines end in two characters", "", 0.85, CUSTOMERS, YES_NO),
    Trap("mixed_line_ends.csv", "some lines end in one, some in two characters", "", 0.8, CUSTOMERS, YES_NO),
    # Delimiters and headers.
    Trap("sep_line.csv", "Excel's line sep=; before the header", "", 0.8, CUSTOMERS, YES_NO),
    Trap("trailing_delimiter.csv", "each line ends in a delimiter", "", 0.8, CUSTOMERS, YES_NO),
    Trap("bars.csv", "bars between the columns", "", 0.8, CUSTOMERS, YES_NO),
    Trap("blank_delimited.txt", "blanks between the columns", "", 0.8, CUSTOMERS, YES_NO),
    Trap("two_items_each.csv", "commas between the columns, and one bar in each row", "", 0.85, {"noise": "number"}, YES_NO),
    Trap("semicolon_in_quotes.csv", "commas, and one semicolon in each row", "", 0.85, {"amount": "number"}, YES_NO),
    Trap("duplicate_names.csv", "two columns have one name", "", 0.85, {"score": "number", "score_1": "number"}, YES_NO),
    Trap("blanks_in_header.csv", "blanks around the names", "--label churned", 0.8, CUSTOMERS, YES_NO),
    Trap("no_header.csv", "no line with names", "", 0.8, {"c0": "number", "c2": "category"}, YES_NO),
    Trap("comments_before.csv", "comments and an empty line before the header", "", 0.85, CUSTOMERS, YES_NO),
    Trap(
        *("header_twice.csv", "two files put together", "", 0.85, {"noise": "number", "amount": "number"}, YES_NO),
        says=("line 62: the header is repeated: such lines are skipped",),
    ),
    Trap("numbered_columns.csv", "names are numbers", "", 0.85, {"0": "number", "3": "number"}, ("0", "1")),
    Trap("years_as_names.csv", "names are years", "", 0.85, {"country": "category", "2020": "number"}, YES_NO),
    Trap(
        *("bank_statement.csv", "titles and an empty line before the header", "", 0.85, {"amount": "number"}, YES_NO),
        says=("3 lines before the table are skipped, the first: 'Kontoauszug'",),
    ),
    Trap(
        *("titles_of_a_spreadsheet.csv", "titles with as many delimiters", "", 0.85, {"amount": "number"}, YES_NO),
        says=("2 lines before the table are skipped, the first: 'Sales report'",),
    ),
    Trap(
        *("row_names.tsv", "R's row names, without a title", "", 0.85, {"noise": "number", "amount": "number"}, YES_NO),
        says=("line 1: the header has no name for the first column, which is left out",),
        never=("c0",),
    ),
    Trap("row_names_quoted.txt", "the same with blanks and quotes", "", 0.85, {"amount": "number"}, YES_NO, never=("c0",)),
    Trap(
        *("a_comma_too_many.csv", "a comma in each name, and no quotes", "", FAILS),
        says=("line 1: 4 columns where most lines have 5", "quote values with a delimiter in them"),
    ),
    # Numbers.
    Trap("thousands_separators.csv", '"3,847"', "", 0.85, {"amount": "number"}, YES_NO),
    Trap("currency.csv", '"$3,847.10"', "", 0.85, {"amount": "number"}, YES_NO),
    Trap("euros.csv", '"847,10 €"', "", 0.85, {"amount": "number"}, YES_NO),
    Trap("percent.csv", "12.5 %", "", 0.85, {"amount": "number"}, YES_NO),
    Trap("decimal_commas.csv", "0,94 between semicolons", "", 0.85, {"amount": "number"}, YES_NO),
    Trap("decimal_commas_quoted.csv", '"0,94" between commas', "", 0.85, {"amount": "number"}, YES_NO),
    Trap("decimal_commas_and_points.csv", "1.234,50 between semicolons", "", 0.85, {"amount": "number"}, YES_NO),
    Trap("minus_signs.csv", "a minus sign that is no hyphen", "", 0.85, {"amount": "number"}, YES_NO),
    Trap("zip_codes.csv", "zip codes with leading zeros", "", 0.8, {}, YES_NO),
    Trap("missing_markers.csv", "a dozen ways to write nothing", "", 0.75, {"amount": "number"}, YES_NO),
    Trap("infinity.csv", "infinity", "", FAILS, says=("line 36, column 2 (amount): 'inf'", "--on-error skip")),
    Trap("infinity.csv", "lines with infinity passed over", "--on-error skip", 0.8, {"amount": "number"}, says=("skipped",)),
    Trap("booleans.csv", "TRUE and FALSE", "", 0.85, {}, YES_NO),
    # Dates and times.
    Trap("iso_dates.csv", "2019-03-22: the day of the week tells", "", 0.75, {"ordered": "date"}, YES_NO),
    Trap("day_month_year.csv", "22/03/2019: the year tells", "", 0.85, {"ordered": "date"}, YES_NO),
    Trap("month_day_year.csv", "3/22/2019: the month tells", "", 0.85, {"ordered": "date"}, YES_NO),
    Trap("written_dates.csv", "22 Mar 2019: the year tells", "", 0.85, {"ordered": "date"}, YES_NO),
    Trap("timestamps.csv", "2019-03-22 14:05:11: the hour tells", "", 0.85, {"ordered": "date"}, YES_NO),
    Trap("iso_timestamps.csv", "2019-03-22T14:05:11Z: the hour tells", "", 0.85, {"ordered": "date"}, YES_NO),
    Trap("times.csv", "14:05: the hour tells", "", 0.85, {"ordered": "date"}, YES_NO),
    # Sets, texts and quotes.
    Trap("genres.csv", "Comedy|Drama: one of several tells", "", 0.85, {"genres": "set"}, YES_NO),
    Trap("text_with_commas.csv", "commas inside quoted text", "", 0.9, {"review": "text"}, ("bad", "good")),
    Trap("lines_inside_quotes.csv", "line ends inside quoted text", "", 0.9, {"review": "text"}, ("bad", "good")),
    Trap("inches.csv", 'a quote that is none: 24" wide', "", 0.85, {"screen": "category"}, YES_NO),
    Trap("short_rows.csv", "two lines are cut off", "", FAILS, says=("line 41: 3 columns", "--on-error skip")),
    Trap("short_rows.csv", "they are passed over", "--on-error skip", 0.8, CUSTOMERS, YES_NO, says=("2 lines", "line 41")),
    Trap("long_row.csv", "a line has a remark behind it", "", FAILS, says=("line 61: 6 columns", "--on-error skip")),
    Trap("long_row.csv", "it is passed over", "--on-error skip", 0.8, CUSTOMERS, YES_NO, says=("1 line", "line 61")),
    Trap("unclosed_quote.csv", "one quote is never closed", "", FAILS, says=("line 31", "quote", "--quote ''")),
    # What other programs write.
    Trap("sap_minus_behind.csv", "1.234,50- is below 0", "", 0.85, {"amount": "number"}, YES_NO),
    Trap("powers_of_ten_german.csv", "1,234E+03 is 1234", "", 0.85, {"amount": "number"}, YES_NO, never=("decimal point",)),
    Trap("french_spreadsheet.csv", "no-break spaces, a euro sign, windows-1252", "", 0.85, {"montant": "number"}, YES_NO),
    Trap("apostrophes.csv", "all values between apostrophes", "", 0.85, {"noise": "number", "amount": "number"}, YES_NO),
    Trap("spreadsheet_too_narrow.csv", "###### for numbers", "", 0.8, {"amount": "number"}, YES_NO),
    Trap("stata_missing.csv", "., .a and .z for no value", "", 0.8, {"amount": "number"}, YES_NO),
    Trap(
        *("censored.csv", "<500 among numbers", "", 0.4, {"amount": "dropped"}, YES_NO),
        says=("most of them numbers beside words ('<500')", "--number amount"),
    ),
    Trap("web_server_times.csv", "22/Mar/2024:14:05:11 +0000: the hour tells", "", 0.85, {"seen": "date"}, YES_NO),
    Trap("markdown.md", "a table of Markdown", "", 0.8, {"amount": "number"}, YES_NO),
    Trap("mark_in_the_middle.csv", "two files put together, each with its mark", "", 0.85, {"amount": "number"}, YES_NO),
    Trap("merged_cells.csv", "a name stands in the first row of each group", "", 0.85, {"amount": "number"}, YES_NO),
    Trap("zeros_and_ones_with_gaps.csv", "0.0, 1.0 and gaps", "", 0.85, {}, ("0.0", "1.0"), says=("6 rows without",)),
    Trap(
        *("totals_row.csv", "the last row is a sum", "--seed 4", 0.8, {"amount": "number"}, ("69", *YES_NO)),
        says=("the label '69' occurs in 1 row, every other one in", "is that row an example?"),
    ),
    Trap("totals_row_without_label.csv", "a sum without a label", "", 0.85, {}, YES_NO, says=("left out 1 row", "line 122")),
    Trap(
        *("questions_below_names.csv", "a second header of a survey", "--seed 1", 0.8, {"Q2": "number"}),
        says=("the label 'Were you late?' occurs in 1 row", "line 2"),
    ),
    Trap("footer.csv", "a remark below the table", "", FAILS, says=("line 123: 1 column", "--on-error skip")),
    Trap("footer.csv", "it is passed over", "--on-error skip", 0.85, {}, YES_NO, says=("1 line", "line 123")),
    # Files that are no table.
    Trap("empty.csv", "nothing", "", FAILS, says=("the file is empty",)),
    Trap("header_only.csv", "names and no row", "", FAILS, says=("there is no example in it",)),
    Trap("nowhere.csv", "a path that leads nowhere", "", FAILS, says=("no such file",)),
    Trap("one_clas.csv", "a path that is nearly right", "", FAILS, says=("no such file", "did you mean 'one_class.csv'?")),
    Trap(".", "a folder", "", FAILS, says=("is a directory; give a file, or a pattern such as",)),
    Trap("bars.csv", "a column that is not there", "--label chruned", FAILS, says=("did you mean 'churned'?",)),
    Trap("bars.csv", "a role for one that is not there", "--drop Plan", FAILS, says=("did you mean 'plan'?",)),
    Trap("truncated.csv.gz", "a download that broke off", "", FAILS, says=("gzip data are corrupted or truncated",)),
    Trap("web_page.csv", "a page in place of the file", "", FAILS, says=("all is one column",), never=("shape",)),
    # Other formats.
    Trap("missing_keys.jsonl", "objects without some of the keys", "", 0.85, CUSTOMERS, YES_NO),
    Trap(
        *("nested_values.jsonl", "objects inside objects", "", 0.85),
        {"address.town": "category", "address.zip": "dropped", "tags": "set"},
        YES_NO,
    ),
    Trap("json_array.json", "one JSON array", "", FAILS, says=("one JSON array; write an object a line",)),
    Trap("zero_based.svm", "svmlight whose features count from 0", "", 0.75, {}, ("-1", "1")),
)  # fmt: skip
