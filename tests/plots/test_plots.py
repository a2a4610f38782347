"""The pictures show what is true: artists' data against numbers known otherwise, areas of the rendered image by colour."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import separatrix
from separatrix import (
    AveragedPerceptron,
    FisherDiscriminant,
    KernelPerceptron,
    MaxMarginClassifier,
    Model,
    Perceptron,
    PocketPerceptron,
    VotedPerceptron,
    certify,
    compare,
    trace,
)
from separatrix.data.lectures import EXAMPLES
from separatrix.plots import (
    BoundaryDisplay,
    ComparisonDisplay,
    MarginDisplay,
    PassesDisplay,
    PathDisplay,
    ProjectionDisplay,
    ProofDisplay,
    WeightsDisplay,
)
from separatrix.plots.drawing import COLOURS, MARKERS

L41, XOR = EXAMPLES["L4.1"], EXAMPLES["L4.xor"]
IRIS = load_iris(as_frame=True)
SPECIES = IRIS.target_names[IRIS.target]
LECTURE = Perceptron(order="cyclic", fit_intercept=False).fit(L41.X, L41.y)


@pytest.fixture(autouse=True)
def one_figure_at_most():
    yield
    left = plt.get_fignums()
    plt.close("all")
    assert len(left) <= 1


def labels_of(shown):
    return [text.get_text() for text in shown.legend_.get_texts()]


def pixels(shown, points):
    """The colours of the rendered image at some points of the data."""
    figure = shown.figure_
    figure.canvas.draw()
    image = np.asarray(figure.canvas.buffer_rgba())[..., :3] / 255.0
    at = shown.ax_.transData.transform(points).round().astype(int)
    return image[image.shape[0] - 1 - at[:, 1], at[:, 0]]


# The boundary.


def test_the_boundary_of_the_lecture_is_the_line_of_w_with_its_margin():
    shown = BoundaryDisplay.from_estimator(LECTURE, L41.X, L41.y)
    x, y = shown.boundary_.get_data()
    assert np.allclose(x - 3 * y, 0) and np.ptp(x) > 10
    assert shown.margin == pytest.approx(2 / 10**0.5)
    corners = shown.band_.get_xy()
    assert np.allclose(np.abs(corners @ [1, -3]) / 10**0.5, shown.margin)
    start, end = np.asarray(shown.arrow_.xyann), np.asarray(shown.arrow_.xy)
    assert (end - start) @ [3, 1] == pytest.approx(0, abs=1e-9) and (end - start) @ [1, -3] > 0
    assert [len(part.get_offsets()) for part in shown.points_] == [2, 2] and shown.wrong_ is None
    assert labels_of(shown) == ["-1", "1", "boundary", "margin 0.632"]
    assert (shown.ax_.get_xlabel(), shown.ax_.get_ylabel()) == ("x0", "x1")


def test_each_side_of_the_rendered_boundary_has_the_tint_of_its_class():
    shown = BoundaryDisplay.from_estimator(LECTURE, L41.X, L41.y, show_legend=False)
    inside = np.array([[-1.5, 1.8], [4.2, -2.9]])
    assert LECTURE.predict(inside).tolist() == [-1, 1]
    for k, tint in enumerate(pixels(shown, inside)):
        assert np.allclose(tint, 1 - 0.16 * (1 - np.array(to_rgb(COLOURS[k]))), atol=0.02)


@pytest.mark.parametrize(
    "model",
    [
        AveragedPerceptron(random_state=0),
        VotedPerceptron(random_state=0),
        PocketPerceptron(random_state=0),
        KernelPerceptron(random_state=0),
        FisherDiscriminant(),
        make_pipeline(StandardScaler(), KernelPerceptron(random_state=0)),
        DecisionTreeClassifier(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("classes", [2, 3])
def test_areas_are_what_is_predicted(model, classes):
    some = slice(None) if classes == 3 else SPECIES != "setosa"
    X, y = IRIS.data[some].iloc[:, :2], SPECIES[some]
    fitted = clone(model).fit(X, y)
    shown = BoundaryDisplay.from_estimator(fitted, X, y, resolution=40)
    u, v = np.meshgrid(*shown.grid)
    said = fitted.predict(pd.DataFrame(np.column_stack([u.ravel(), v.ravel()]), columns=X.columns))
    assert (shown.classes[shown.leads.argmax(axis=0).ravel()] == said).all()
    assert int(shown.wrong.sum()) == int((fitted.predict(X) != y).sum())
    assert shown.wrong_.get_offsets().shape[0] == shown.wrong.sum()
    linear = classes == 2 and hasattr(fitted, "coef_") and not isinstance(fitted, VotedPerceptron)
    assert (shown.weights is not None) == linear


def test_the_voted_boundary_is_no_line_and_a_tie_belongs_to_a_class():
    shown = BoundaryDisplay.from_estimator(VotedPerceptron(random_state=0).fit(XOR.X, XOR.y), XOR.X, XOR.y)
    assert shown.weights is None and shown.arrow_ is None
    inked = np.concatenate([part for contours in shown.boundary_ for part in contours.allsegs[0]])
    spread = np.linalg.svd(inked - inked.mean(axis=0), compute_uv=False)
    assert spread[1] > 0.1 * spread[0], "all on one line"
    assert (shown.leads.max(axis=0) > 0).all()
    changes = np.count_nonzero(np.diff(shown.leads.argmax(axis=0), axis=1))
    assert changes <= 2 * len(shown.leads[0]), "speckled by rounding"


def test_the_street_of_the_largest_margin_is_its_own_also_when_it_is_soft():
    hard = MaxMarginClassifier(C=None).fit(IRIS.data, SPECIES == "setosa")
    assert BoundaryDisplay.from_estimator(hard, IRIS.data, SPECIES == "setosa").margin == pytest.approx(hard.margin_)
    plt.close("all")
    soft = MaxMarginClassifier(C=0.01).fit(IRIS.data, SPECIES == "setosa")
    shown = BoundaryDisplay.from_estimator(soft, IRIS.data, SPECIES == "setosa")
    assert shown.margin == pytest.approx(1 / np.linalg.norm(soft.coef_))


def test_many_features_are_projected_on_w_and_the_axes_say_so():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = AveragedPerceptron(random_state=0).fit(X, y)
    shown = BoundaryDisplay.from_estimator(model, X, y)
    length = np.linalg.norm(model.coef_)
    assert np.allclose(shown.points[:, 0], X @ model.coef_[0] / length)
    assert np.allclose(shown.boundary_.get_xdata(), -model.intercept_[0] / length)
    e1, e2 = shown.plane.axes
    assert abs(e1 @ e2) < 1e-12 and np.linalg.norm(e2) == pytest.approx(1)
    rest = X - X.mean(axis=0) - np.outer((X - X.mean(axis=0)) @ e1, e1)
    assert np.var(rest @ e2) == pytest.approx(np.linalg.svd(rest, compute_uv=False)[0] ** 2 / len(X))
    assert "projection of 30 features on $w$" in shown.ax_.get_xlabel()
    assert "orthogonal to $w$" in shown.ax_.get_ylabel() and "40%" in shown.ax_.get_ylabel()
    assert shown.margin is None and shown.wrong.sum() == (model.predict(X) != y).sum()


@pytest.mark.parametrize("table", [pl.DataFrame, pa.table], ids=["polars", "pyarrow"])
def test_other_tables_lie_where_pandas_frames_do(table):
    X, y = IRIS.data.iloc[:, :2], SPECIES
    model = VotedPerceptron(random_state=0).fit(X, y)
    frame = BoundaryDisplay.from_estimator(model, X, y, resolution=20)
    plt.close(frame.figure_)
    shown = BoundaryDisplay.from_estimator(model, table({name: X[name].to_numpy() for name in X}), y, resolution=20)
    assert np.array_equal(shown.points, frame.points) and np.array_equal(shown.leads, frame.leads)


def test_sparse_examples_lie_where_dense_ones_do():
    X = StandardScaler().fit_transform(IRIS.data)
    model = Perceptron(random_state=0).fit(X, SPECIES == "setosa")
    dense = BoundaryDisplay.from_estimator(model, X, SPECIES == "setosa")
    plt.close(dense.figure_)
    sparse = BoundaryDisplay.from_estimator(model, sp.csr_matrix(X), SPECIES == "setosa")
    assert np.allclose(np.abs(dense.points), np.abs(sparse.points))


def test_three_linear_classes_in_four_features_are_shown_exactly():
    model = AveragedPerceptron(random_state=0).fit(IRIS.data, SPECIES)
    shown = BoundaryDisplay.from_estimator(model, IRIS.data, SPECIES)
    assert shown.plane.exact and "regions" not in shown.ax_.get_xlabel()
    seen = shown.plane.seen(separatrix.engine.weights.Weights(model.coef_, model.intercept_))
    scores = shown.points @ seen.coef.T + seen.intercept
    assert (model.classes_[scores.argmax(axis=1)] == model.predict(IRIS.data)).all()
    plt.close(shown.figure_)
    voted = VotedPerceptron(random_state=0).fit(IRIS.data, SPECIES)
    shown = BoundaryDisplay.from_estimator(voted, IRIS.data, SPECIES, resolution=20)
    assert not shown.plane.exact and "plane through the mean" in shown.ax_.get_xlabel()


def test_tiny_and_degenerate_data():
    one = Perceptron().fit([[1.0], [2.0], [5.0]], [0, 0, 1])
    shown = BoundaryDisplay.from_estimator(one, [[1.0], [2.0], [5.0]], [0, 0, 1])
    assert np.allclose(shown.boundary_.get_xdata(), -one.intercept_[0] / one.coef_[0, 0])
    assert not len(shown.ax_.get_yticks())
    plt.close(shown.figure_)
    same = np.ones((2, 3))
    shown = BoundaryDisplay.from_estimator(Perceptron(max_iter=3).fit(same, [0, 1]), same, [0, 1])
    assert np.isfinite(shown.points).all() and int(shown.wrong.sum()) == 1


# The way of the boundary.


def test_the_path_is_the_weights_of_the_ledger():
    shown = PathDisplay.from_estimator(LECTURE, L41.X, L41.y)
    assert [weights.coef[0].tolist() for weights in shown.path] == [[4, 0], [3, -1], [1, -3]]
    for line, w in zip(shown.lines_, ([4, 0], [3, -1], [1, -3]), strict=True):
        assert np.allclose(np.column_stack(line.get_data()) @ w, 0)
    alphas = [line.get_alpha() for line in shown.lines_]
    assert alphas == sorted(alphas) and alphas[0] < alphas[-1]
    assert [(text.get_text(), tuple(text.xy)) for text in shown.numbers_] == [("1", (4, 0)), ("2", (1, 1)), ("3", (-2, -2))]


def test_a_long_path_is_thinned_and_ends_with_the_weights_in_use():
    two = SPECIES != "setosa"
    X, y = IRIS.data[two], SPECIES[two]
    model = AveragedPerceptron(random_state=0).fit(X, y)
    shown = PathDisplay.from_estimator(model, X, y, shown=5)
    assert len(shown.path) == 5 and shown.mistakes.tolist()[::4] == [1, len(model.ledger_)]
    assert not shown.numbers_
    last = shown.plane.seen(model.ledger_.at(len(model.ledger_), X))
    assert np.allclose(shown.path[-1].coef, last.coef) and np.allclose(shown.path[-1].intercept, last.intercept)
    w, b = shown.used
    assert np.allclose(np.column_stack(shown.boundary_.get_data()) @ w[0] + b[0], 0)
    assert np.allclose(w, [[np.linalg.norm(model.coef_), 0]])


# The proof.


def test_the_proof_of_the_lecture():
    shown = ProofDisplay.from_estimator(LECTURE, L41.X, L41.y)
    assert shown.norm_.get_xydata().tolist() == [[1, 16], [2, 10], [3, 10]]
    k, upper = shown.upper_.get_data()
    assert np.allclose(upper, 16 * k)
    assert np.allclose(shown.lower_.get_ydata(), 16 / 26 * k**2, rtol=1e-5)
    assert shown.bound == pytest.approx(26, rel=1e-5) and shown.bound_.get_xdata()[0] == pytest.approx(26, rel=1e-5)
    assert "bound $R^2/\\gamma^2$ = 26" in labels_of(shown) and "3 mistakes made" in labels_of(shown)
    plt.close(shown.figure_)
    traced = ProofDisplay.from_trace(trace(LECTURE, L41.X, L41.y))
    assert np.array_equal(traced.norm2, shown.norm2) and traced.bound == pytest.approx(shown.bound)


def test_a_proven_margin_for_the_proof_and_k_classes():
    two = IRIS.data.iloc[:100]
    model = Perceptron(random_state=0).fit(two, SPECIES[:100])
    proven = certify(two, SPECIES[:100])
    shown = ProofDisplay.from_estimator(model, two, SPECIES[:100], certificate=proven)
    assert shown.gamma == proven.margin[0] and int(shown.bound) == proven.mistake_bound
    assert (shown.norm2 <= shown.k * shown.R2 * (1 + 1e-9)).all()
    assert (shown.norm2 >= (shown.k * shown.gamma) ** 2 * (1 - 1e-9)).all()
    plt.close(shown.figure_)
    X, y = [[0, 1], [1, 0], [-1, -1]], [0, 1, 2]
    shown = ProofDisplay.from_estimator(Perceptron(order="cyclic").fit(X, y), X, y)
    assert shown.R2 == pytest.approx(6) and "$2kR^2$, at most" in labels_of(shown)


def test_without_a_separator_there_is_only_the_upper_line():
    shown = ProofDisplay.from_estimator(Perceptron(random_state=0).fit(XOR.X, XOR.y), XOR.X, XOR.y)
    assert shown.bound is None and shown.lower_ is None and shown.bound_ is None
    assert "no separator" in shown.ax_.get_ylabel() and shown.ax_.get_yscale() == "linear"


# Passes.


def test_passes_are_those_of_the_learner_itself():
    X, y = load_digits(return_X_y=True)
    learner = Perceptron(early_stopping=True, max_iter=30, n_iter_no_change=3, random_state=1)
    shown = PassesDisplay.from_estimator(learner, X, y)
    assert not hasattr(learner, "classes_")
    fitted = clone(learner).fit(X, y)
    assert shown.held_out.tolist() == fitted.validation_scores_
    assert shown.chosen == fitted.ledger_.cut.pass_number < fitted.n_iter_ == len(shown.training)
    assert shown.chosen_.get_offsets().tolist() == [[shown.chosen, shown.held_out.max()]]
    kept = np.setdiff1d(np.arange(len(y)), fitted.run_.left_out)
    assert shown.training[shown.chosen - 1] == fitted.score(X[kept], y[kept])


def test_passes_of_rows_in_any_container():
    learner = Perceptron(early_stopping=True, max_iter=5, random_state=1)
    numbers = np.asarray(IRIS.data)
    frame = pd.DataFrame(numbers, columns=list("abcd"))
    containers = [frame, pl.from_pandas(frame), sp.coo_array(numbers), numbers.tolist()]
    of_array = PassesDisplay.from_estimator(learner, numbers, SPECIES)
    for X in containers:
        shown = PassesDisplay.from_estimator(learner, X, SPECIES)
        plt.close(shown.figure_)
        assert shown.training.tolist() == of_array.training.tolist()
        assert shown.held_out.tolist() == of_array.held_out.tolist()


@pytest.mark.parametrize("model", [AveragedPerceptron(), KernelPerceptron(), separatrix.PassiveAggressive(max_iter=30)])
def test_passes_with_held_out_examples_of_ones_own(model):
    X, y = IRIS.data, SPECIES
    model.set_params(random_state=0)
    shown = PassesDisplay.from_estimator(model, X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    fitted = clone(model).fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    assert shown.held_out.tolist() == fitted.validation_scores_
    assert shown.training[-1] == fitted.score(X[::2], y[::2]) and shown.chosen == len(shown.training)


# Margins, projections, weights, views.


def test_margins_are_distances_scores_or_leads():
    shown = MarginDisplay.from_estimator(LECTURE, L41.X, L41.y)
    assert np.allclose(shown.margins, L41.y * (L41.X @ [1, -3]) / 10**0.5)
    assert shown.least_.get_xdata()[0] == pytest.approx(2 / 10**0.5) and "distance" in shown.ax_.get_xlabel()
    assert sum(bar.get_height() for bar in shown.right_) == 4
    plt.close(shown.figure_)
    voted = VotedPerceptron(random_state=0).fit(XOR.X, XOR.y)
    shown = MarginDisplay.from_estimator(voted, XOR.X, XOR.y)
    assert np.allclose(shown.margins, XOR.y * voted.decision_function(XOR.X)) and "score" in shown.ax_.get_xlabel()
    plt.close(shown.figure_)
    model = Perceptron(random_state=0).fit(IRIS.data, SPECIES)
    shown = MarginDisplay.from_estimator(model, IRIS.data, SPECIES)
    wrong = int((model.predict(IRIS.data) != SPECIES).sum())
    assert int((shown.margins <= 0).sum()) == wrong == sum(bar.get_height() for bar in shown.wrong_)
    assert all(bar.get_x() + bar.get_width() <= 1e-9 for bar in shown.wrong_ if bar.get_height())
    plt.close(shown.figure_)
    again = MarginDisplay.from_predictions(SPECIES, model.decision_function(IRIS.data))
    assert np.array_equal(again.margins, shown.margins)


def test_projections_of_two_and_of_three_classes():
    X, y = np.array([[0, 0], [2, 0], [1, 3], [4, 2], [6, 2], [5, 5]]), np.array(list("aaabbb"))
    shown = ProjectionDisplay.from_estimator(FisherDiscriminant().fit(X, y), X, y)
    assert shown.threshold_.get_xdata()[0] == pytest.approx(20 / 37**0.5)
    assert [mean.get_xdata()[0] * 37**0.5 for mean in shown.means_] == pytest.approx([7, 33])
    assert len({bar.get_hatch() for bar in shown.bars_}) == 2
    plt.close(shown.figure_)
    fisher = FisherDiscriminant().fit(IRIS.data, SPECIES)
    shown = ProjectionDisplay.from_estimator(fisher, IRIS.data, SPECIES)
    drawn = np.concatenate([part.get_offsets() for part in shown.points_])
    assert np.allclose(drawn, fisher.transform(IRIS.data))
    assert np.allclose([mean.get_xydata()[0] for mean in shown.means_], fisher.projected_means_)


def test_the_largest_weights_by_name():
    model = AveragedPerceptron(random_state=0).fit(IRIS.data, SPECIES == "setosa")
    shown = WeightsDisplay.from_estimator(model, shown=2)
    order = np.argsort(-np.abs(model.coef_[0]))[:2]
    assert shown.names == IRIS.data.columns[order].tolist()
    assert [bar.get_width() for bar in shown.bars_] == model.coef_[0, order].tolist()
    assert [tick.get_text() for tick in shown.ax_.get_yticklabels()] == shown.names
    plt.close(shown.figure_)
    model = AveragedPerceptron(random_state=0).fit(IRIS.data, SPECIES)
    shown = WeightsDisplay.from_estimator(model, label="virginica")
    k = model.coef_[2] - model.coef_.mean(axis=0)
    assert shown.weights[shown.names.index("petal length (cm)")] == pytest.approx(k[2]) and "BIAS" in shown.names


def test_weights_of_words_from_a_pipeline_and_from_a_model():
    texts, labels = ["win $$$ now", "win free", "see you", "you at noon"], ["spam", "spam", "ham", "ham"]
    features = separatrix.TextFeatures(n_features=1 << 16).fit(texts)
    model = Model(Perceptron(random_state=0).fit(features.transform(texts), labels), features)
    shown = WeightsDisplay.from_estimator(model)
    assert {"win", "you"} <= {name for name in shown.names if name.isalpha()}
    assert labels_of(shown) == ["for spam", "for ham"]
    plt.close(shown.figure_)
    piped = make_pipeline(separatrix.TextFeatures(n_features=1 << 16), Perceptron(random_state=0)).fit(texts, labels)
    assert WeightsDisplay.from_estimator(piped).names == shown.names


def test_the_views_of_a_comparison():
    found = compare(IRIS.data, SPECIES, models=["LDA", "k-NN", "Perceptron"], curves=False)
    found.rows.append(separatrix.analysis.comparison.Row("broken", "generative", "magic", failure="no such luck"))
    shown = ComparisonDisplay.from_comparison(found)
    assert [tick.get_text() for tick in shown.ax_.get_yticklabels()] == [row.model for row in found.rows]
    assert [point[0].get_xdata()[0] for point in shown.points_] == [row.accuracy for row in found.rows[:3]]
    assert [text.get_text() for text in shown.ax_.texts] == ["failed"]
    assert {point[0].get_marker() for point in shown.points_} == set(MARKERS[:3])
    assert labels_of(shown)[-1].startswith("guessing: 0.333")
