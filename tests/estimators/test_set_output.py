"""`set_output`: features as data frames with their names."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from separatrix import AveragedPerceptron, TableFeatures, TextFeatures
from separatrix.features import Bias, DiscMap, PolynomialMap, RandomFourier

TABLE = {"age": [22, 38, 38, None], "job": ["clerk", "cook", None, "clerk"]}
TEXTS = ["free money", "see you", "free", "money"]
NUMBERS = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 4.0]}, index=[5, 7, 9])
FEATURIZERS = [(TableFeatures(), pd.DataFrame(TABLE, index=[3, 1, 4, 2])), (TextFeatures(n_features=32), pd.Series(TEXTS))]


@pytest.mark.parametrize(("features", "data"), FEATURIZERS)
def test_featurizers_give_frames_with_names(features, data):
    matrix = features.fit_transform(data)
    assert sp.issparse(matrix)
    names = features.get_feature_names_out().tolist()
    for call in (features.transform, features.fit_transform):
        features.set_output(transform="pandas")
        frame = call(data)
        assert frame.columns.tolist() == names and frame.index.equals(data.index)
        assert all(isinstance(kind, pd.SparseDtype) for kind in frame.dtypes)
        assert np.array_equal(frame.to_numpy(), matrix.toarray())
        features.set_output(transform="polars")
        frame = call(data)
        assert isinstance(frame, pl.DataFrame) and frame.columns == names
        assert np.array_equal(frame.to_numpy(), matrix.toarray())
        features.set_output(transform="default")
        assert sp.issparse(call(data))
    with config_context(transform_output="pandas"):
        assert isinstance(type(features)(**features.get_params()).fit_transform(data), pd.DataFrame)


def test_a_clone_keeps_the_choice_and_an_unknown_container_is_refused():
    features = TextFeatures(n_features=32).set_output(transform="polars").set_output(transform=None)
    assert isinstance(clone(features).fit_transform(TEXTS), pl.DataFrame)
    with pytest.raises(ValueError, match="transform must be one of default, pandas, polars, got 'arrow'"):
        features.set_output(transform="arrow")


def test_too_many_columns_for_a_frame_are_refused():
    with pytest.raises(ValueError, match=r"makes a column of each feature, and there are 1,048,576: have fewer of"):
        TextFeatures().set_output(transform="pandas").fit_transform(TEXTS)


@pytest.mark.parametrize("mapped", [Bias(), DiscMap(), PolynomialMap(), RandomFourier(n_components=3, random_state=0)])
def test_maps_give_frames_with_names(mapped):
    array = mapped.fit_transform(NUMBERS)
    names = mapped.get_feature_names_out().tolist()
    frame = mapped.set_output(transform="pandas").fit_transform(NUMBERS)
    assert frame.columns.tolist() == names and frame.index.equals(NUMBERS.index)
    assert np.array_equal(frame.to_numpy(), np.asarray(array))
    assert mapped.set_output(transform="polars").transform(NUMBERS).columns == names
    if not isinstance(mapped, RandomFourier):
        with pytest.raises(ValueError, match="sparse"):
            mapped.set_output(transform="pandas").fit_transform(sp.csr_matrix(NUMBERS.to_numpy()))


def test_a_pipeline_learns_the_names():
    pipeline = make_pipeline(TableFeatures(), AveragedPerceptron(random_state=0)).set_output(transform="pandas")
    pipeline.fit(pd.DataFrame(TABLE), [0, 1, 1, 0])
    assert pipeline[-1].feature_names_in_.tolist() == pipeline[0].get_feature_names_out().tolist()
    assert pipeline.predict(pd.DataFrame(TABLE)).tolist() == [0, 1, 1, 0]
