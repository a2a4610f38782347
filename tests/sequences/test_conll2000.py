"""CoNLL-2000, from the raw files: the quality that the defaults reach."""

import zipfile

import numpy as np

from separatrix import SequencePerceptron, evaluate_sequences, read_conll


def test_the_default_templates_reach_an_f1_of_0_93_in_three_passes(data_folder, tmp_path):
    with zipfile.ZipFile(data_folder / "conll2000" / "conll2000.zip") as archive:
        archive.extractall(tmp_path)
    X, y = read_conll(tmp_path / "conll2000" / "train.txt")
    X_test, y_test = read_conll(tmp_path / "conll2000" / "test.txt")
    assert (len(X), int(X.starts[-1]), len(X_test)) == (8936, 211727, 2012)
    model = SequencePerceptron(rule="pa1", max_iter=3, random_state=0, n_jobs=2).fit(X, y)
    figures = evaluate_sequences(y_test, model.predict(X_test))
    assert figures.entities.true == 23852  # as conlleval counts them
    assert figures.f1 >= 0.93
    assert all(map(np.array_equal, model.replay(X), model.weights()))
