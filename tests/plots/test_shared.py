"""What all pictures share: colours, names, axes, and what they say when they cannot be drawn."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from separatrix import FisherDiscriminant, KernelPerceptron, MaxMarginClassifier, Perceptron, load, save
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
from separatrix.plots.drawing import COLOURS, HATCHES, MARKERS, literal

L41 = EXAMPLES["L4.1"]
LECTURE = Perceptron(order="cyclic", fit_intercept=False).fit(L41.X, L41.y)
IRIS = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def figures_are_closed():
    yield
    plt.close("all")


def labels_of(shown):
    return [text.get_text() for text in shown.legend_.get_texts()]


def test_matplotlib_missing_is_one_clear_line():
    code = "import sys; sys.modules['matplotlib'] = None\nimport separatrix.plots"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    message = "ImportError: separatrix.plots needs matplotlib: pip install 'separatrix[plot]'"
    assert done.stderr.strip().splitlines()[-1] == message


def test_class_names_are_taken_literally_and_shortened():
    assert literal("$x^{") == r"\$x^{" and literal("_hidden") == " _hidden" and literal("a\n b") == "a b"
    assert len(literal("n" * 100)) == 24
    names = np.where(L41.y > 0, "_$\\frac{", "a very long name of a class that goes on and on")
    fitted = Perceptron(order="cyclic").fit(L41.X, names)
    shown = BoundaryDisplay.from_estimator(fitted, L41.X, names)
    shown.figure_.canvas.draw()
    assert len(labels_of(shown)) == 4


def test_a_given_ax_is_drawn_on_and_nothing_else_is_made():
    figure, (left, right) = plt.subplots(1, 2)
    shown = BoundaryDisplay.from_estimator(LECTURE, L41.X, L41.y, ax=left)
    assert shown.ax_ is left and shown.figure_ is figure and plt.get_fignums() == [figure.number]
    shown.plot(right, show_legend=False)
    assert shown.ax_ is right and right.get_legend() is None and left.get_legend() is not None


def test_dark_styles_turn_black_into_white():
    with plt.style.context("dark_background"):
        shown = BoundaryDisplay.from_estimator(LECTURE, L41.X, L41.y)
    assert to_rgb(shown.boundary_.get_color()) == (1.0, 1.0, 1.0)


def test_ten_thousand_points_are_rasterised_so_that_a_vector_file_stays_small(tmp_path):
    X = np.random.default_rng(0).normal(size=(10_000, 2))
    y = X @ [1, 2] > 0.1
    shown = BoundaryDisplay.from_estimator(Perceptron(random_state=0, max_iter=2).fit(X, y), X, y)
    shown.figure_.savefig(tmp_path / "points.svg")
    assert (tmp_path / "points.svg").stat().st_size < 500_000


def lightness(colour):
    linear = np.where((c := np.array(to_rgb(colour))) <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16


def test_colours_differ_in_lightness_and_classes_in_shape():
    light = np.sort([lightness(colour) for colour in COLOURS])
    assert np.diff(light).min() > 6, "a grey print would not tell two of them apart"
    assert abs(lightness(COLOURS[0]) - lightness(COLOURS[1])) > 30
    pairs = {(COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]) for k in range(88)}
    assert len(pairs) == 88 and len(set(HATCHES)) == len(HATCHES) == len(COLOURS)


MACHADO = {
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""What is left of linear RGB in the three kinds of dichromatic vision (Machado, Oliveira, Fernandes 2009)."""


@pytest.mark.parametrize("kind", MACHADO)
def test_colours_are_apart_for_every_kind_of_colour_vision(kind):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    rgb = np.array([to_rgb(colour) for colour in COLOURS])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(MACHADO[kind]).T, 0, 1) @ to_xyz.T / [0.9505, 1, 1.089]
    f = np.where(seen > 216 / 24389, np.cbrt(seen), (24389 / 27 * seen + 16) / 116)
    lab = np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=2)[np.triu_indices(len(lab), 1)]
    assert apart.min() > 15


# What cannot be drawn. Nothing of it leaves a figure behind.


WRONG = [
    (BoundaryDisplay, Perceptron(), NotFittedError, "not fitted yet"),
    (BoundaryDisplay, Perceptron, TypeError, "not the class"),
    (BoundaryDisplay, StandardScaler().fit(L41.X), TypeError, "no predict"),
    (PathDisplay, FisherDiscriminant().fit(L41.X, L41.y), TypeError, "FisherDiscriminant keeps no ledger"),
    (PathDisplay, KernelPerceptron().fit(L41.X, L41.y), TypeError, "KernelPerceptron is not one"),
    (PathDisplay, Perceptron().fit(*IRIS), ValueError, "two classes, but this Perceptron has 3"),
    (ProofDisplay, MaxMarginClassifier().fit(L41.X, L41.y), TypeError, "MaxMarginClassifier is not one of them"),
    (ProofDisplay, Perceptron(rule="pa1").fit(L41.X, L41.y), ValueError, "perceptron rule"),
    (ProofDisplay, Perceptron(multi_class="ovr").fit(*IRIS), ValueError, "one-vs-rest"),
    (ProofDisplay, Perceptron(order="cyclic").fit(L41.X, -L41.y), ValueError, "not the data of the fit"),
    (PassesDisplay, FisherDiscriminant(), TypeError, "FisherDiscriminant does not"),
    (ProjectionDisplay, LECTURE, TypeError, "FisherDiscriminant, not a Perceptron"),
]


@pytest.mark.parametrize(("display", "estimator", "error", "message"), WRONG)
def test_estimators_of_the_wrong_kind_are_named(display, estimator, error, message):
    with pytest.raises(error, match=message):
        display.from_estimator(estimator, L41.X, L41.y)
    assert not plt.get_fignums()


@pytest.mark.parametrize("display", [BoundaryDisplay, PathDisplay, MarginDisplay])
def test_data_of_the_wrong_shape_are_named(display):
    with pytest.raises(ValueError, match=r"3 features.*2"):
        display.from_estimator(LECTURE, np.ones((4, 3)), L41.y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        display.from_estimator(LECTURE, L41.X, L41.y[:3])
    with pytest.raises(ValueError, match="7"):
        display.from_estimator(LECTURE, L41.X, [1, -1, 7, 1])
    assert not plt.get_fignums()


def test_a_ledger_without_its_mistakes_and_one_of_other_data(tmp_path):
    save(LECTURE, tmp_path / "small.sepx", ledger=False)
    with pytest.raises(ValueError, match="3 mistakes of the ledger were not kept"):
        PathDisplay.from_estimator(load(tmp_path / "small.sepx").estimator, L41.X, L41.y)
    with pytest.raises(ValueError, match="a mistake was made on row 3"):
        PathDisplay.from_estimator(LECTURE, L41.X[:2], L41.y[:2])
    with pytest.raises(ValueError, match="the boundary never moved"):
        never_wrong = Perceptron(tie="-1").partial_fit([[1.0, 1.0]], [0], classes=[0, 1])
        PathDisplay.from_estimator(never_wrong, [[1.0, 1.0]], [0])
    assert not plt.get_fignums()


def test_other_arguments_that_make_no_sense():
    kernel = KernelPerceptron(kernel="precomputed").fit(L41.X @ L41.X.T, L41.y)
    with pytest.raises(ValueError, match="no features"):
        BoundaryDisplay.from_estimator(kernel, L41.X @ L41.X.T, L41.y)
    wide = np.random.default_rng(0).normal(size=(6, 200_000))
    voted = KernelPerceptron(kernel="linear").fit(wide, [0, 1] * 3)
    with pytest.raises(ValueError, match="not a hyperplane"):
        BoundaryDisplay.from_estimator(voted, wide, [0, 1] * 3)
    with pytest.raises(ValueError, match="3 feature names for 2 features"):
        BoundaryDisplay.from_estimator(LECTURE, L41.X, L41.y, feature_names=["a", "b", "c"])
    with pytest.raises(TypeError, match="one matplotlib Axes, not ndarray"):
        BoundaryDisplay.from_estimator(LECTURE, L41.X, L41.y, ax=np.array([1, 2]))
    with pytest.raises(TypeError, match="no coef_"):
        WeightsDisplay.from_estimator(kernel)
    with pytest.raises(ValueError, match="'maybe' is not among the classes"):
        WeightsDisplay.from_estimator(LECTURE, label="maybe")
    with pytest.raises(ValueError, match="2 names for 1 weights"):
        WeightsDisplay(names=["a", "b"], weights=[1.0])
    with pytest.raises(TypeError, match=r"compare\(X, y\), not dict"):
        ComparisonDisplay.from_comparison({})
    with pytest.raises(ValueError, match="go together"):
        PassesDisplay.from_estimator(LECTURE, L41.X, L41.y, X_val=L41.X)
    with pytest.raises(ValueError, match="chosen must be a pass from 1 to 2"):
        PassesDisplay(training=[0.5, 0.6], held_out=[0.5, 0.6], chosen=3)
    with pytest.raises(ValueError, match="3 classes, but the scores have 1 columns"):
        MarginDisplay.from_predictions([0, 1, 2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="finite"):
        MarginDisplay.from_predictions([0, 1], [np.nan, 0.2])
    assert not plt.get_fignums()


def test_a_figure_of_which_the_drawing_fails_is_closed(monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError("out of ink")

    monkeypatch.setattr("separatrix.plots.boundary.scatter_classes", fail)
    with pytest.raises(RuntimeError, match="out of ink"):
        BoundaryDisplay.from_estimator(LECTURE, L41.X, L41.y)
    assert not plt.get_fignums()
