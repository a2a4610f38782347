"""Columns of numbers that identify a row and say nothing about others: row numbers, customer numbers.

Three signs tell an identifier from a measurement, and one of them alone does not:

name     id, PassengerId, SK_ID_CURR, `Unnamed: 0`, an empty title; customer_no and index with a form that says so, too
form     whole numbers that were handed out: none repeats, although as many measurements in that range would
order    they ascend, or descend, from row to row

A column with two signs is left out, one with a single sign is kept with a note. All of this holds for values that are whole
and nearly all different: numbers with fractions are measurements, and so are values that repeat. Years, dates and times
written as whole numbers do not repeat either, and ascend in many files: for them only the name counts.

In a table of fewer than SMALL rows a measurement may well be handed out and in order: cars by their power, the days of a
year. There form and order leave a column out only where it has no title; a titled one is kept with a note.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from separatrix.engine.rows import Floats

FEWEST, FEWEST_NAMED = 20, 10
"""The smallest number of values that shows anything: without a name that says so, and with one."""
SMALL = 1000
"""In tables of fewer rows, form and order do not tell an identifier from a measurement with a title."""
MOSTLY, MOSTLY_NAMED, HALF = 0.99, 0.9, 0.5
"""The least share of different values: of an identifier, of one with a name that says so, and of one that is only noted."""
ASCENDING = 0.99
REPEATS = 10
"""Numbers were handed out where independent draws from their range would repeat so often, and hardly one does."""
GAPS = 10
"""Numbers that were handed out fill at least one of so many places in their range."""
LONG, SHORT, ROUNDED = 6, 4, 0.3
"""Numbers of so many digits, all of them, look like identifiers, unless this share ends in 0; from 4 digits on, if they
begin with each digit from 1 to 9 and the name says so."""
HEAD = 1024

_NOUNS = (
    "account acct case claim client contract customer device document employee encounter household invoice item loan member "
    "object order parcel participant passenger patient person player policy product record respondent row sample session "
    "staff student subject ticket transaction trip user visit"
).split()
_MORE_NOUNS = (
    "agent app application article asset batch booking card comment company driver event file flight group job license "
    "licence listing lot machine merchant message movie obj page payment phone post process property provider receipt "
    "reference registration request reservation response review roll school seller sensor serial shipment shop site station "
    "store supplier survey task telephone thread tracking tweet vehicle vendor voucher worker "
    "kunde kunden konto vertrag vertrags rechnung rechnungs artikel auftrag auftrags bestell personal mitarbeiter mitglied "
    "mitglieds matrikel patienten beleg benutzer teilnehmer probanden produkt lieferanten klant "
    "commande facture dossier contrat produit compte utilisateur etudiant eleve salarie abonne cliente pedido factura "
    "contrato articulo paciente alumno estudiante empleado producto cuenta usuario expediente registro aluno produto conta "
    "fattura contratto paziente studente dipendente prodotto utente"
).split()
_NUMBERS = ("no", "nr", "nbr", "num", "number", "nummer", "numero", "idx")
_SHORT_IDS = "cid eid fid gid nid oid pid qid rid sid tid uid vid wid xid".split()
_IDS = {
    *("id", "uuid", "guid", "key", "pk", *_SHORT_IDS),
    *"identifier identifiant identificador identificativo matricule matricola ssn imei isbn iban mrn barcode".split(),
}
_ABOUT_IDS = {*_NOUNS, *_MORE_NOUNS, *_NUMBERS, *_IDS} | set(
    "bureau code curr current de del der des du ext external hash int internal new of old orig original prev previous ref "
    "src the".split()
)
"""Words that may follow an id in its name: `SK_ID_CURR`, `id_client`, but not `id_score`."""
_COUNTED, _AMOUNTS = "case item order sample trip visit".split(), "claim invoice loan transaction".split()
"""Nouns that, alone, may as well say how many there are, or how large one is: the invoice price of a car."""
_ALONE = {
    *(noun for noun in _NOUNS if noun not in _COUNTED and noun not in _AMOUNTS),
    *("index", "ref", "reference", "serial", "rowname", "rownames", "sno", "srno", "slno", "serialno"),
    *_NUMBERS,
}
_THINGS = {*_NOUNS, *_MORE_NOUNS}
_NUMBERED = {*_THINGS, *("s", "sr", "sl")}
_PHRASES = {("row", "index"), ("record", "index"), ("row", "names"), ("row", "name")}
_TIMES = set(
    "year years yr jahr jahre annee ano anno date datum fecha time timestamp ts epoch unix datetime seconds ms millis "
    "day month week hour".split()
)
_INDEX = re.compile(r"(?i)#?|unnamed(: ?\d+)?(_level_\d+)?|__index_level_\d+__|level_0")
"""What pandas and others call the row number: nothing, `Unnamed: 0`, `__index_level_0__`."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")


class Naming(Enum):
    """What the name of a column says of numbers in it."""

    IDENTIFIER = "id, PassengerId, `Unnamed: 0`"
    NUMBER = "customer_no, account, index: handed-out numbers, or how many, or how much"
    QUANTITY = "atomic_number, follower_num, id_score: most often a measurement"
    TIME = "year, timestamp"
    NOTHING = "anything else"
    UNTITLED = "c0, where no column has a title"


class Signs(NamedTuple):
    """What is said for a column of numbers to be an identifier, in words, and whether that is enough to leave it out."""

    words: list[str]
    enough: bool

    def of(self, name: str) -> str:
        """Say so of a column."""
        return f"column {name!r} looks like an identifier ({', '.join(self.words)})"


def naming_of(name: str, names: Sequence[str] = ()) -> Naming:
    """Return what the name of a column says, in a table with these columns.

    Examples
    --------
    >>> {naming_of(name).name for name in ("id", "PassengerId", "SK_ID_CURR", "idclient", "Kundennummer", "Unnamed: 0")}
    {'IDENTIFIER'}
    >>> {naming_of(name).name for name in ("customer_no", "CLIENTNUM", "account", "index")}
    {'NUMBER'}
    >>> {naming_of(name).name for name in ("atomic_number", "follower_num", "id_score")}
    {'QUANTITY'}
    >>> {naming_of(name).name for name in ("paid", "humid", "price_index", "rooms_number", "zip")}
    {'NOTHING'}
    """
    if _INDEX.fullmatch(name.strip()):
        return Naming.IDENTIFIER
    if _is_untitled(name):
        alone = len(names) > 1 and not any(_is_untitled(other) for other in names if other != name)
        return Naming.IDENTIFIER if alone else Naming.UNTITLED
    words = _words_of(name)
    if not words:
        return Naming.NOTHING
    if words in _PHRASES or words[-1] in _IDS or _is_compound_id(words[-1]):
        return Naming.IDENTIFIER
    if "id" in words:
        after = words[words.index("id") + 1 :]
        return Naming.IDENTIFIER if _ABOUT_IDS.issuperset(after) else Naming.QUANTITY
    if (number := _numbered(words)) is not None:
        return number
    return Naming.TIME if _TIMES.intersection(words) else Naming.NOTHING


def _words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, without accents and without digits at the end."""
    letters = unicodedata.normalize("NFKD", name.replace("°", "o"))
    plain = "".join(sign for sign in letters if not unicodedata.combining(sign))
    words = tuple(word.lower() for word in _WORD.findall(plain))
    while len(words) > 1 and words[-1].isdigit():
        words = words[:-1]
    return words


def _is_compound_id(word: str) -> bool:
    """Tell whether a word is such as `userid`, `orderkey`, `idclient` or `Kundennummer`."""
    things = (word.removesuffix("id"), word.removesuffix("key"), word.removeprefix("id"))
    return any(thing != word and thing in _THINGS for thing in things) or (word.endswith("nummer") and word != "nummer")


def _numbered(words: tuple[str, ...]) -> Naming | None:
    """Return what a name says that speaks of a number or names a thing; None where it does neither."""
    *before, last = words
    if (not before and last in _ALONE) or any(
        last.endswith(number) and last.removesuffix(number) in _THINGS for number in _NUMBERS
    ):
        return Naming.NUMBER
    if words[0] == "numero" and last in _NUMBERED and _ABOUT_IDS.issuperset(before):
        return Naming.NUMBER
    if not before or last not in _NUMBERS or re.fullmatch(r"\w+[^\Ws]s", before[-1]):
        return None  # a plural tells how many there are: rooms_number
    return Naming.NUMBER if before[-1] in _NUMBERED else Naming.QUANTITY


def _is_untitled(name: str) -> bool:
    """Tell whether this is the name that the reader of files gives to a column without a title."""
    return re.fullmatch(r"c\d+", name) is not None


def signs_of(name: str, values: Floats, names: Sequence[str] = ()) -> Signs:
    """Return what is said for a column of numbers, NaN where missing, to be an identifier.

    Examples
    --------
    >>> signs_of("CustomerId", np.array([70433.0, 8215, 91377, 55032, 60718, 31990, 21044, 47619, 12870, 80351])).enough
    True
    >>> signs_of("price", np.array([70433.0, 8215, 91377, 55032, 60718, 31990, 21044, 47619, 12870, 80351]))
    Signs(words=[], enough=False)
    """
    values = values[values == values]
    naming, n, head = naming_of(name, names), len(values), values[:HEAD]
    sure = naming is Naming.IDENTIFIER
    named = sure or naming in (Naming.NUMBER, Naming.QUANTITY)
    if not sure and (head != np.floor(head)).any():
        return _NONE
    if n < (FEWEST_NAMED if named else FEWEST) or len(np.unique(head)) < HALF * len(head):
        return _NONE
    n_different, least, most = len(np.unique(values)), float(values.min()), float(values.max())
    whole = bool((values == np.floor(values)).all())
    if n_different < _LEAST_SHARE.get(naming, MOSTLY) * n or not (sure or (whole and (least >= 0 or not named))):
        return _NONE
    consecutive = whole and least >= 0 and most - least + 1 == n_different
    may_be_times = not named and _may_be_times(values, least, most)
    if may_be_times and (naming is Naming.TIME or not consecutive):
        return _NONE
    ordered = _is_ordered(values)
    words = ["its name"] * named
    words += [f"{n_different:,} different {'whole numbers' if whole else 'values'} in {n:,} rows"]
    words += ["in order"] * ordered
    if sure:
        return Signs(words, whole and least >= 0 and n_different >= MOSTLY_NAMED * n)
    handed_out = consecutive or (least >= 0 and _is_handed_out(n, n_different, most - least + 1))
    if named:
        form = handed_out or _are_equally_long(values, least, most, SHORT)
        large = naming is Naming.NUMBER or n >= SMALL
        return Signs(words, form and large and n_different >= MOSTLY_NAMED * n)
    if handed_out or ordered or _are_equally_long(values, least, most, LONG):
        large = naming is Naming.UNTITLED or (n >= SMALL and naming is not Naming.TIME)
        return Signs(words, handed_out and ordered and large and not may_be_times)
    return _NONE


_NONE = Signs([], False)
_LEAST_SHARE = {Naming.IDENTIFIER: HALF, Naming.NUMBER: HALF, Naming.QUANTITY: MOSTLY_NAMED}


def _is_handed_out(n: int, n_different: int, places: float) -> bool:
    """Tell whether n numbers in a range of so many places repeat far less often than as many independent ones."""
    expected = n * n / (2.0 * places)
    return places <= GAPS * n and expected >= REPEATS and REPEATS * (n - n_different) <= expected


def _are_equally_long(values: Floats, least: float, most: float, fewest_digits: int) -> bool:
    """Tell whether whole numbers have as many digits, at least so many, and are not rounded; short ones, also spread."""
    digits = len(str(int(least)))
    if least < 0 or digits < fewest_digits or digits != len(str(int(most))):
        return False
    spread = digits >= LONG or (str(int(least))[0] == "1" and str(int(most))[0] == "9")
    return spread and float((values % 10 == 0).mean()) < ROUNDED


def _is_ordered(values: Floats) -> bool:
    steps = np.diff(values)
    steps = steps[steps != 0]
    return len(steps) > 0 and max(int((steps > 0).sum()), int((steps < 0).sum())) >= ASCENDING * len(steps)


def _may_be_times(values: Floats, least: float, most: float) -> bool:
    """Tell whether whole numbers may be years, months (202403), days (20240331), or seconds since 1970 or parts of them."""
    if least >= 1500 and most <= 2100:
        return True
    if any(3e8 * unit <= least and most <= 3e9 * unit for unit in (1.0, 1e3, 1e6, 1e9)):
        return True
    days = values if least >= 15000101 else values * 100 + 1
    month, day = days // 100 % 100, days % 100
    in_range = days.min() >= 15000101 and days.max() <= 21001231
    return bool(in_range and ((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())
