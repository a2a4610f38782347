"""The lower rooms need neither scikit-learn nor pandas: each of their modules imports where these cannot be imported."""

import pkgutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

ROOMS = ("kernels", "engine", "data", "features", "files", "modelfile", "sequences")
MAY_NEED_SKLEARN = {"separatrix.features.maps"}
BLOCKED = ("sklearn", "pandas", "scipy.stats", "scipy.special", "scipy.optimize")


def modules_of(room):
    name = f"separatrix.{room}"
    paths = find_spec(name).submodule_search_locations
    found = [name, *(module.name for module in pkgutil.walk_packages(paths, f"{name}."))]
    return [module for module in found if module not in MAY_NEED_SKLEARN]


def without_blocked(code):
    """Run code where the packages of `BLOCKED` are as good as not installed."""
    block = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name in {BLOCKED}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocker())
"""
    done = subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_of_a_room_imports_without_scikit_learn_and_pandas(room):
    modules = modules_of(room)
    assert len(modules) > 1
    without_blocked("".join(f"import {module}\n" for module in modules))


def test_the_plain_featurizers_work_without_scikit_learn_and_pandas():
    code = """
from separatrix.features.table import TableFeaturizer
from separatrix.features.text import TextFeaturizer

table = {"age": [22, 38, 38, None], "job": ["clerk", "cook", None, "clerk"]}
features = TableFeaturizer(text=TextFeaturizer(n_features=64)).fit(table)
again = TableFeaturizer.from_state(*features.get_state())
assert (again.transform(table) != features.transform(table)).nnz == 0
words = TextFeaturizer(columns="vocabulary")
X = words.fit_transform(["Free entry: call now!", "Call me", "Free?"])
assert (TextFeaturizer.from_state(*words.get_state()).transform(["Free?"]) != X[2]).nnz == 0
try:
    TextFeaturizer(n_features=0).fit([])
except ValueError as error:
    print(error)
"""
    assert "The 'n_features' parameter of TextFeatures must be an int in the range [1, 2147483647]" in without_blocked(code)


def test_data_are_read_without_scikit_learn_and_pandas():
    code = """
from separatrix.data.reading import open_source

print(sum(len(batch) for batch in open_source("iris")))
try:
    open_source("wine")
except ValueError as error:
    print(error)
"""
    rows, missing = without_blocked(code).splitlines()
    assert rows == "150" and "wine comes with scikit-learn" in missing
