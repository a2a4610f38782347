"""`SequencePerceptron`: the averaged structured perceptron (Collins 2002), with its mistakes kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from separatrix.data.errors import DataError
from separatrix.engine.loop import train
from separatrix.engine.parameters import (
    Constraint,
    boolean,
    choices,
    instance_of,
    none,
    number,
    seed,
    verbosity,
    whole,
)
from separatrix.engine.rows import NO_WEIGHT, Array, Floats, Ints, frozen
from separatrix.engine.stopping import reasons
from separatrix.learners.classifier import random_generator
from separatrix.learners.inputs import example_weight
from separatrix.learners.progress import passes_bar
from separatrix.sequences import inputs
from separatrix.sequences.encoded import Encoded
from separatrix.sequences.run import SequencePasses, SequenceRun, TaggedSequences, best_paths
from separatrix.sequences.schemes import SCHEMES, first_forbidden, forbidden_transitions, tags_beyond
from separatrix.sequences.tagger import SequenceTagger
from separatrix.sequences.templates import DEFAULT

RULES = ("perceptron", "pa1")
ORDERS = ("shuffle", "cyclic")


class SequencePerceptron(SequenceTagger):
    """Learn to tag sequences: the true path of tags is raised, the predicted one lowered, wherever they differ.

    A path's score is the sum of a weight for each feature and tag of its tokens, and of a weight for each two tags in a row,
    for the first tag and for the last one. The best path is found by Viterbi's algorithm.

    Parameters
    ----------
    rule : "perceptron", or "pa1": the correction follows the loss, which counts the wrong tags, up to C
    C : the largest correction of "pa1"
    averaged : whether the mean of the weights over all steps predicts; False: the last weights
    scheme : None, or the scheme whose rules every predicted path keeps: "bio" (I-X follows B-X or I-X), which is also
        called "iob2"; or "iobes". Where no path of the known tags keeps them, as of B-X and E-X for one token, the best
        path of all is predicted
    templates : the features of tokens that are strings: "default", a set for words and for parts of speech in the second
        column; or a list such as ["word[0]", "suffix3[0]", "word[-1]|word[0]"]
    n_features : None: every feature has its own weights; a number: features are hashed to so many
    order : "shuffle", a new random order of the sequences each pass, or "cyclic", as they lie
    max_iter : the number of passes; training ends earlier with a pass without a mistake
    early_stopping : hold out `validation_fraction` of the sequences, end after `n_iter_no_change` passes without a better
        share of right tags on them, and go back to the best pass
    random_state : seed for the orders and for what is held out
    record : store the tokens of mistaken sequences, so that the ledger can be replayed without X
    n_jobs : how many threads tag; None: OMP_NUM_THREADS, or one for each core; the tags are the same
    verbose : 1 shows a progress bar

    Attributes
    ----------
    classes_ : the tags, sorted
    coef_ : the weights that predict, (n_classes, n_features)
    transitions_, start_, end_ : those of two tags in a row (from, to), of the first tag, and of the last
    ledger_ : the mistakes
    n_iter_, n_mistakes_, mistakes_per_pass_, converged_, validation_scores_ : how training went

    Examples
    --------
    >>> from separatrix import SequencePerceptron
    >>> X = [[{"word": "dogs"}, {"word": "bark"}], [{"word": "cats"}, {"word": "sleep"}]]
    >>> y = [["noun", "verb"], ["noun", "verb"]]
    >>> SequencePerceptron(random_state=0).fit(X, y).predict([[{"word": "dogs"}, {"word": "sleep"}]])
    [['noun', 'verb']]
    """

    constraints: ClassVar[Mapping[str, Constraint]] = {
        "rule": choices(*RULES),
        "C": number(0, closed="neither"),
        "averaged": boolean,
        "scheme": choices(*SCHEMES) | none,
        "templates": choices(DEFAULT) | instance_of(list, tuple),
        "n_features": whole(1, 2**31 - 1) | none,
        "order": choices(*ORDERS),
        "max_iter": whole(1),
        "early_stopping": boolean,
        "validation_fraction": number(0, 1, closed="neither"),
        "n_iter_no_change": whole(1),
        "random_state": seed,
        "record": boolean,
        "n_jobs": whole(-1) | none,
        "verbose": verbosity,
    }

    def __init__(
        self,
        *,
        rule: str = "perceptron",
        C: float = 1.0,
        averaged: bool = True,
        scheme: str | None = None,
        templates: str | Sequence[str] = DEFAULT,
        n_features: int | None = None,
        order: str = "shuffle",
        max_iter: int = 10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        random_state: Any = None,
        record: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.rule = rule
        self.C = C
        self.averaged = averaged
        self.scheme = scheme
        self.templates = templates
        self.n_features = n_features
        self.order = order
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.record = record
        self.n_jobs = n_jobs
        self.verbose = verbose

    # Learning.

    def fit(self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None) -> Self:
        """Make passes over the sequences until one is without a mistake, or `max_iter`.

        Parameters
        ----------
        X : a list of sequences; a sequence is a list of tokens. A token is a dict of attributes (as sklearn-crfsuite takes
            them) or a list of their names; or a string, or a tuple of strings (the word, its part of speech, …), of which
            `templates` make features. A sequence may also be an array or sparse matrix with a row for each token. The
            `Sentences` of `read_conll` are columns of strings, too.
        y : the tags, a list for each sequence
        sample_weight : the weight of each sequence, which multiplies its corrections; 0: do not present
        X_val, y_val : held-out sequences, scored after each pass into `validation_scores_`; with `early_stopping=True` they
            take the place of a held-out fraction of X
        """
        self.check_parameters()
        kind = inputs.kind_of(X)
        if kind is None:
            raise ValueError("X has no token: there is nothing to learn from")
        features = inputs.new_features(kind, self.templates, self.n_features)
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together, by their names: the third argument is sample_weight")
        encoded = features.encode(X, True)
        tags = inputs.read_tags(y, encoded)
        classes, codes = tags.names, tags.among(tags.names)
        weight = example_weight(sample_weight, len(encoded))
        inputs.check_sizes(encoded, weight)
        if weight.size and not weight.any():
            raise ValueError("every sample_weight is zero: nothing is left to learn from")
        run = self.new_run(classes, features.n)
        self.check_scheme(tags, encoded.starts, classes)
        chance = self.seed()
        held_out = self._held_out(X_val, y_val, features, run, encoded, codes, weight, chance)
        if held_out is not None and held_out.encoded is encoded:
            weight = np.ones(len(encoded)) if not weight.size else weight
            weight[held_out.weight == 0.0] = 0.0
            held_out = _taken(held_out, np.flatnonzero(held_out.weight == 0.0))
        tagged = TaggedSequences(encoded, codes, frozen(weight))
        accuracy = None if held_out is None else partial(self._accuracy, run, held_out)
        self.make_passes(SequencePasses(run, tagged, partial(self.order_of, len(encoded), chance), accuracy), features)
        if self.record:
            run.ledger.store(encoded, 0)
        run.n_sequences = len(encoded)
        return self

    def make_passes(self, passes: SequencePasses, features: inputs.Features) -> None:
        """Make passes until there is a reason to stop, and publish what was learned."""
        why = reasons(
            order=self.order,
            max_iter=self.max_iter,
            patience=self.n_iter_no_change,
            early_stopping=self.early_stopping,
            repeats=False,
        )
        with passes_bar(self.verbose, self.max_iter, self.public_name()) as report:
            history = train(passes, why, after_pass=lambda history: report(*history.news()))
        run = passes.run
        for name in ("shard_mistakes_", "mix_"):
            self.__dict__.pop(name, None)
        self.run_, self.features_, self.classes_ = run, features, run.ledger.classes
        self.mistakes_per_pass_ = history.mistakes[: len(run.ledger.pass_starts)]
        self.n_iter_, self.converged_ = len(self.mistakes_per_pass_), history.ended == "clean"
        self.validation_scores_ = history.scores
        self._forget_weights()

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Present each sequence once, in the order given; tags and features that are new get weights of 0.

        Parameters
        ----------
        classes : tags that may come, for the first call; others are added when they come
        """
        self.check_parameters()
        fitted = self.is_fitted()
        kind = inputs.kind_of(X)
        if fitted:
            if not self.run_.resumable:
                raise ValueError("the model was saved without what further learning needs: train a new one")
            features, run = self.features_, self.run_
            if (run.rule, run.C, run.scheme) != (self.rule, float(self.C), self.scheme):
                raise ValueError("rule, C and scheme cannot change between calls of partial_fit; call fit() again")
            if kind not in (None, features.kind):
                raise ValueError(f"X has {inputs.KINDS[kind]}, but the model was trained on {inputs.KINDS[features.kind]}")
        elif kind is None:
            raise ValueError("X has no token: there is nothing to learn from")
        else:
            features = inputs.new_features(kind, self.templates, self.n_features)
        try:
            encoded = features.encode(X, True)
        finally:
            if fitted:  # features that were numbered before an error need weights, too
                run.resize(features.n)
                self._forget_weights()
        tags = inputs.read_tags(y, encoded)
        weight = frozen(example_weight(sample_weight, len(encoded)))
        inputs.check_sizes(encoded, weight)
        if fitted:
            grown = inputs.grown(run.ledger.classes, tags.names, classes)
            self.check_scheme(tags, encoded.starts, grown[-1][0])
            for step in grown[1:]:
                run.insert_class(*step)
        else:
            known = inputs.with_declared(tags.names, classes)
            self.check_scheme(tags, encoded.starts, known)
            run = self.new_run(known, features.n)
        codes = tags.among(run.ledger.classes)
        if not run.ledger.pass_starts:
            run.ledger.pass_starts.append((0, 0))
        mistakes = run.present(TaggedSequences(encoded, codes, weight), np.arange(len(encoded)))
        if self.record:
            run.ledger.store(encoded, run.n_sequences)
        run.n_sequences += len(encoded)
        self.run_, self.features_, self.classes_ = run, features, run.ledger.classes
        if not fitted:
            self.mistakes_per_pass_, self.validation_scores_ = [0], []
        self.mistakes_per_pass_[-1] += mistakes
        self.n_iter_, self.converged_ = len(run.ledger.pass_starts), False
        self._forget_weights()
        return self

    def check_examples(self, X: Any, y: Any) -> None:
        """Raise for what `partial_fit` would refuse; nothing is learned."""
        encoded = self.encode(X)
        inputs.check_sizes(encoded, NO_WEIGHT)
        tags = inputs.read_tags(y, encoded)
        self.check_scheme(tags, encoded.starts, inputs.grown(self.classes_, tags.names)[-1][0])

    def check_scheme(
        self, tags: inputs.Tags, starts: Ints, classes: Array, where: Callable[[int, int], str] = "token y[{}][{}]".format
    ) -> None:
        """Raise for tags that the scheme forbids: no path could ever be right. `where` names token t of sequence i."""
        codes, forbidden = tags.among(classes), forbidden_transitions(classes, self.scheme)
        unknown = tags_beyond(self.scheme, tags.names.tolist())
        if unknown:
            raise DataError(
                f"the tag {unknown[0]!r} is none of scheme={self.scheme!r}: use scheme='iobes', or leave out scheme="
            )
        found = first_forbidden(codes, starts, forbidden, len(classes))
        if found is None:
            return
        i, t = found
        path = classes[codes[starts[i] : starts[i + 1]]].tolist()
        before = f"after {path[t - 1]!r}" if t else "at the start"
        what = f"{path[t]!r} {before}" if t < len(path) else f"{path[-1]!r} at the end"
        place = where(i, min(t, len(path) - 1))
        raise DataError(f"{place} has {what}, which scheme={self.scheme!r} forbids: correct it, or leave out scheme=")

    def seed(self) -> int:
        """Return the seed of the orders and of what is held out."""
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(random_generator(self.random_state).randint(np.iinfo(np.int32).max))

    def order_of(self, n: int, chance: int, number: int, shard: int = 0) -> Ints:
        """Return the order of pass `number`, from 0."""
        if self.order == "cyclic":
            return np.arange(n)
        return np.random.default_rng([chance, number, *([shard] if shard else ())]).permutation(n)

    def _held_out(
        self,
        X_val: Any,
        y_val: Any,
        features: inputs.Features,
        run: SequenceRun,
        encoded: Encoded,
        codes: Array,
        weight: Floats,
        chance: int,
    ) -> TaggedSequences | None:
        """Return what is scored after each pass: the caller's, or all, with a weight of 0 where held out."""
        if X_val is not None:
            if (kind := inputs.kind_of(X_val)) != features.kind:
                has = "no token" if kind is None else inputs.KINDS[kind]
                raise ValueError(f"X_val has {has}, and X has {inputs.KINDS[features.kind]}")
            validation = features.encode(X_val, False)
            tags = inputs.read_tags(y_val, validation, "y_val")
            return TaggedSequences(validation, tags.known_among(run.ledger.classes))
        if not self.early_stopping:
            return None
        flags = np.ones(len(encoded))
        flags[inputs.held_out_sequences(len(encoded), self.validation_fraction, weight, chance)] = 0.0
        return TaggedSequences(encoded, codes, flags)

    def _accuracy(self, run: SequenceRun, held_out: TaggedSequences) -> float:
        """Return the share of right tags with the weights that would predict now."""
        codes = best_paths(held_out.encoded, run.weights(self.averaged), run.forbidden)
        return float(np.mean(codes == held_out.codes)) if codes.size else 1.0


def _taken(tagged: TaggedSequences, which: Ints) -> TaggedSequences:
    """Return some of the sequences with their tags."""
    starts = tagged.encoded.starts
    tokens = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in which])
    return TaggedSequences(tagged.encoded.take(which), tagged.codes[tokens], NO_WEIGHT)
