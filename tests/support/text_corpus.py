"""Texts and a table to learn from, and what of them is the same: for the tests of text and tables."""

import json

import numpy as np
from hypothesis import strategies as st

from separatrix import TextFeatures
from separatrix.features.words.arrow_text import texts_of
from separatrix.features.words.ngrams import Analyzer

SKLEARN_WORD = r"(?u)\b\w\w+\b"
CASES = "ΣΣσςΑαAaİIıǅßẞK\u1e9e\u0301\u00ad'.:·ͺ\u1f80𐐀𐐨Ⴀ\u2160\u24b6ʰ_ 1²\u3000\u2028\x1c!🎉你\ufffd"
any_text = st.one_of(st.text(), st.text(alphabet=CASES), st.text(alphabet=st.characters(codec="utf-8", min_codepoint=0x300)))
CORPUS = [
    "Free entry in 2 a wkly comp to win FA Cup final tkts!!",
    "U dun say so early hor... U c already then say...",
    "ΟΔΥΣΣΕΥΣ και ΠΗΝΕΛΟΠΗ; İstanbul'da — ÇAĞRI",
    "",
    "free  FREE\tfree\u3000entry\n\ncall 你好 世界 🎉🎉 win_win",
    "a b c a b a",
]
MIXED = {
    "age": [22.0, 38.0, None, 38.0, 61.0, 22.0],
    "gain": [0.0, 0.0, 0.0, 5178.0, 0.0, -12.5],
    "job": ["clerk", "cook", None, "clerk", "cook", "clerk"],
    "member": [True, None, False, True, False, True],
    "remark": ["likes the long way home", "never called us back", "", "pays late but pays", None, "likes us a lot"],
}


def plain(**parameters):
    """Counts of scikit-learn's words, one by one, unless told otherwise."""
    defaults = {"token_pattern": SKLEARN_WORD, "ngram_range": (1, 1), "tf": "count", "idf": False, "norm": None}
    return TextFeatures(**(defaults | parameters))


def grams(texts, analyzer="word", token_pattern=SKLEARN_WORD, ngram_range=(1, 1), lowercase=True):
    """The n-grams of each text as the kernels lay them out."""
    grams_of_texts = []
    for block, _ in Analyzer(analyzer, token_pattern, ngram_range, lowercase).blocks(texts_of(texts)):
        spans = [bytes(block.text[b:e]).decode() for b, e in zip(block.begin, block.end, strict=True)]
        grams_of_texts += [spans[b:e] for b, e in zip(block.ptr[:-1], block.ptr[1:], strict=True)]
    return grams_of_texts


def same(first, second):
    return (
        first.shape == second.shape
        and np.array_equal(first.indptr, second.indptr)
        and np.array_equal(first.indices, second.indices)
        and np.array_equal(first.data, second.data)
    )


def same_state(first, second):
    """Tell whether all that was learned is the same, bit for bit."""
    (a, x), (b, y) = first.get_state(), second.get_state()
    return (
        json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
        and list(x) == list(y)
        and all(x[key].dtype == y[key].dtype and x[key].shape == y[key].shape for key in x)
        and all(x[key].tobytes() == y[key].tobytes() for key in x)
    )
