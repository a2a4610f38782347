"""Warnings point to the line of the user's program that caused them."""

import sys
import warnings

import numpy as np
import pytest

SORTED = "X = np.random.default_rng(0).normal(size=(2000, 3)); y = np.repeat([0, 1], 1000)"
TABLE = "X = {'a': [float(k % 2) for k in range(200)], 'b': list(range(200))}; y = [k % 2 for k in range(200)]"
PROGRAMS = {
    "cyclic": ["from separatrix import Perceptron", SORTED, "Perceptron(order='cyclic', max_iter=2).fit(X, y)"],
    "averaged": ["from separatrix import AveragedPerceptron", SORTED, "AveragedPerceptron(order='cyclic').fit(X, y)"],
    "shuffle": ["from separatrix import PassiveAggressive", SORTED, "PassiveAggressive(shuffle=False).fit(X, y)"],
    "kernel": [
        "from separatrix import KernelPerceptron",
        "X = np.random.default_rng(0).normal(size=(200, 2)); y = np.repeat([0, 1], 100)",
        "KernelPerceptron(kernel='linear', order='cyclic', max_iter=2).fit(X, y)",
    ],
    "stream": ["from separatrix import Perceptron", SORTED, "Perceptron().partial_fit(X, y)"],
    "stream in a function": [
        "from separatrix import Perceptron",
        SORTED,
        "def learn():",
        "    return Perceptron().partial_fit(X, y)  # here",
        "learn()",
    ],
    "not converged": [
        "from separatrix import Perceptron",
        "X, y = np.array([[1.0], [1.0]]), [0, 1]",
        "Perceptron(max_iter=None, random_state=0).fit(X, y)",
    ],
    "margin": [
        "from separatrix import MaxMarginClassifier",
        "X = np.random.default_rng(0).normal(size=(200, 9)); y = np.arange(200) % 2",
        "MaxMarginClassifier(C=1e4, max_iter=1).fit(X, y)",
    ],
    "equal means": [
        "from separatrix import FisherDiscriminant",
        "X, y = np.array([[1.0], [-1.0], [2.0], [-2.0]]), [0, 0, 1, 1]",
        "FisherDiscriminant().fit(X, y)",
    ],
    "leak": ["from separatrix import TableFeatures", TABLE, "TableFeatures().fit_transform(X, y)"],
    "pipeline": [
        "from separatrix import Perceptron, TableFeatures; from sklearn.pipeline import make_pipeline",
        TABLE,
        "make_pipeline(TableFeatures(), Perceptron()).fit(X, y)",
    ],
    "cross-validation": [
        "from separatrix import Perceptron; from sklearn.model_selection import cross_val_score",
        SORTED,
        "cross_val_score(Perceptron(order='cyclic', max_iter=2), X, y, cv=2)",
    ],
    "shards": [
        "from separatrix import Perceptron; from separatrix.cluster import fit",
        SORTED,
        "fit(Perceptron(order='cyclic', max_iter=2), [(X[::2], y[::2]), (X[1::2], y[1::2])])",
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_warning_points_to_the_line_of_the_user(name):
    program = ["import numpy as np", *PROGRAMS[name]]
    with warnings.catch_warnings(record=True, action="always") as found:
        exec(compile("\n".join(program), "user_program.py", "exec"), {"__name__": "user_program"})
    assert found
    line = next((number for number, text in enumerate(program, 1) if text.endswith("# here")), len(program))
    assert {(warning.filename, warning.lineno) for warning in found} == {("user_program.py", line)}


def test_a_learner_of_river_warns_at_the_line_of_the_user():
    pytest.importorskip("river")
    program = [
        "from separatrix import Perceptron",
        "model = Perceptron().to_river()",
        "for k in range(400):",
        "    model.learn_one({'x': float(k % 7)}, k >= 200)",
    ]
    with warnings.catch_warnings(record=True, action="always") as found:
        exec(compile("\n".join(program), "user_program.py", "exec"), {"__name__": "user_program"})
    assert {(warning.filename, warning.lineno) for warning in found} == {("user_program.py", 4)}


def test_a_warning_names_the_parameter_that_the_learner_has():
    from separatrix import KernelPerceptron, PassiveAggressive

    X, y = np.random.default_rng(0).normal(size=(2000, 3)), np.repeat([0, 1], 1000)
    with pytest.warns(UserWarning, match=r"shuffle=False presents them so, .*; use shuffle=True$"):
        PassiveAggressive(shuffle=False, max_iter=3).fit(X, y)
    with pytest.warns(UserWarning, match=r'order="cyclic" presents them so, .*; use order="shuffle"$'):
        KernelPerceptron(kernel="linear", order="cyclic", max_iter=2).fit(X[::10], y[::10])


def test_there_is_no_other_way_to_warn():
    from pathlib import Path

    source = Path(sys.modules["separatrix"].__file__).parent
    own = source / "engine" / "user_warnings.py"
    assert [path for path in source.rglob("*.py") if path != own and "warnings.warn(" in path.read_text()] == []
