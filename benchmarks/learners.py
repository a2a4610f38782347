"""The learners of the time-to-accuracy curves, ours and the peers', as points: effort, seconds of training, test accuracy.

All get the same features and their own default settings; only training is timed. Where a learner can be told how long to
work (passes, iterations, a tolerance), each point is a whole fit of its own; River, which learns one example at a time, is
looked at on its way. A curve ends where the next fit would by its effort take longer than the budget.
"""

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks.timing import in_turns
from separatrix import AveragedPerceptron

PASSES = (1, 2, 3, 5, 10, 20)
ITERATIONS = (1, 3, 10, 30, 100, 300, 1000)
TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.001)
STEP = 2.5
"""About how much longer the next point's fit takes."""


class Data(NamedTuple):
    """A problem: labels are codes 0 … K − 1."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


class Point(NamedTuple):
    effort: float
    seconds: float
    accuracy: float


class Learner(NamedTuple):
    name: str
    package: str
    points: Callable[[Data, float], Iterator[Point]]
    ours: bool = False


def fits(make: Callable[[Any], Any], efforts: tuple[float, ...]) -> Callable[[Data, float], Iterator[Point]]:
    """Points of an estimator that is told its effort."""

    def points(data: Data, budget: float) -> Iterator[Point]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            make(efforts[0]).fit(data.X[:200], data.y[:200])
            for effort in efforts:
                begin = time.perf_counter()
                model = make(effort).fit(data.X, data.y)
                took = time.perf_counter() - begin
                if took < budget / 20:
                    (again,), _ = in_turns(lambda: make(effort).fit(data.X, data.y), repeats=3)  # noqa: B023
                    took = min(took, again.best)
                yield Point(effort, took, model.score(data.X_test, data.y_test))
                if took * STEP > budget:
                    return

    return points


def averaged(rule: str) -> Callable[[Data, float], Iterator[Point]]:
    return fits(lambda passes: AveragedPerceptron(rule=rule, max_iter=passes, random_state=0), PASSES)


def gradient(**settings: Any) -> Callable[[Data, float], Iterator[Point]]:
    return fits(lambda passes: SGDClassifier(max_iter=passes, tol=None, random_state=0, **settings), PASSES)


def liblinear(data: Data, budget: float) -> Iterator[Point]:
    """Its primal solver, which heeds a tolerance; LinearSVC has the dual one."""
    from liblinear.liblinearutil import parameter, predict, problem, train

    X, X_test = sp.csr_matrix(data.X, dtype=np.float64), sp.csr_matrix(data.X_test, dtype=np.float64)
    told = problem(data.y.astype(np.float64), X, 1)
    for tolerance in TOLERANCES:
        (times,), (model,) = in_turns(lambda: train(told, parameter(f"-q -s 2 -e {tolerance} -B 1")), repeats=1)  # noqa: B023
        yield Point(tolerance, times.best, predict(data.y_test.astype(np.float64), X_test, model, "-q")[1][0] / 100)
        if times.best * STEP > budget:
            return


def write_vw(path: Path, X: Any, y: Any, binary: bool) -> None:
    """Vowpal Wabbit's text: a label, a bar, feature:value; classes count from 1, two classes are −1 and 1."""
    X = sp.csr_matrix(X)
    with path.open("w") as file:
        for i, code in enumerate(y.tolist()):
            row = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True)
            file.write(f"{2 * code - 1 if binary else code + 1} | " + " ".join(f"{j}:{v:.6g}" for j, v in pairs) + "\n")


def vowpal_wabbit(data: Data, budget: float) -> Iterator[Point]:
    """Hinge loss, one weight for each feature and class; it trains from its cache, which is made before."""
    from vowpalwabbit import Workspace

    K = int(data.y.max()) + 1
    bits = max(18, int(np.ceil(np.log2(K * data.X.shape[1]))) + 1)
    kind = "--loss_function hinge" + (f" --oaa {K}" if K > 2 else "")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train, test, model, said = (folder / part for part in ("train", "test", "model", "said"))
        write_vw(train, data.X, data.y, K == 2)
        write_vw(test, data.X_test, data.y_test, K == 2)
        learn = f"-d {train} --cache_file {folder / 'cache'} -b {bits} {kind} -f {model} --holdout_off --quiet"
        Workspace(learn).finish()
        for passes in PASSES:
            (times,), _ = in_turns(lambda: Workspace(f"{learn} --passes {passes}").finish(), repeats=1)  # noqa: B023
            Workspace(f"-t -d {test} -i {model} -p {said} --quiet").finish()
            predicted = np.loadtxt(said)
            codes = predicted > 0 if K == 2 else predicted - 1
            yield Point(passes, times.best, float(np.mean(codes == data.y_test)))
            if times.best * STEP > budget:
                return


def river(data: Data, budget: float) -> Iterator[Point]:
    """Logistic regression by one example at a time, one against the rest; looked at whenever the time has doubled."""
    from river.linear_model import LogisticRegression as Online

    K, X = int(data.y.max()) + 1, sp.csr_matrix(data.X)
    models = [Online() for _ in range(1 if K == 2 else K)]
    spent, asked = 0.0, budget / 32
    for i in np.random.default_rng(0).permutation(len(data.y)):
        row = slice(X.indptr[i], X.indptr[i + 1])
        x, code = dict(zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True)), int(data.y[i])
        begin = time.perf_counter()
        for k, model in enumerate(models):
            model.learn_one(x, code == (1 if K == 2 else k))
        spent += time.perf_counter() - begin
        if spent > asked:
            asked *= 2
            yield Point(1, spent, river_accuracy(models, data))
            if spent > budget:
                return
    yield Point(1, spent, river_accuracy(models, data))


def river_accuracy(models: list[Any], data: Data) -> float:
    W = np.zeros((data.X.shape[1], len(models)))
    for k, model in enumerate(models):
        W[list(model.weights), k] = list(model.weights.values())
    scores = data.X_test @ W + [model.intercept for model in models]
    codes = scores[:, 0] > 0 if len(models) == 1 else np.argmax(scores, axis=1)
    return float(np.mean(codes == data.y_test))


LEARNERS = (
    Learner("averaged perceptron", "separatrix", averaged("perceptron"), ours=True),
    Learner("averaged PA-I", "separatrix", averaged("pa1"), ours=True),
    Learner("averaged AROW", "separatrix", averaged("arow"), ours=True),
    Learner(
        "scikit-learn LinearSVC", "sklearn", fits(lambda k: LinearSVC(dual=True, max_iter=k, random_state=0), ITERATIONS)
    ),
    Learner("scikit-learn LogisticRegression", "sklearn", fits(lambda k: LogisticRegression(max_iter=k), ITERATIONS)),
    Learner("scikit-learn SGD, hinge, averaged", "sklearn", gradient(average=True)),
    Learner("scikit-learn PA-I", "sklearn", gradient(penalty=None, learning_rate="pa1", eta0=1.0)),
    Learner("scikit-learn Perceptron", "sklearn", fits(lambda k: Perceptron(max_iter=k, tol=None, random_state=0), PASSES)),
    Learner("LIBLINEAR", "liblinear", liblinear),
    Learner("Vowpal Wabbit, hinge", "vowpalwabbit", vowpal_wabbit),
    Learner("River, logistic", "river", river),
)
