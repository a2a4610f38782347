"""Compiled kernels are cached, found again, never stale, and never a reason to fail."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import separatrix
from separatrix.kernels.compiling import _is_private, fingerprint

PACKAGE = Path(separatrix.__file__).parent
FIT = """
import numpy as np
from separatrix import Perceptron
X = np.array([[4., 0], [1, 1], [0, 1], [-2, -2]])
model = Perceptron(order="cyclic", fit_intercept=False, max_iter=1).fit(X, [1, -1, -1, 1])
print(model.coef_.tolist())
"""


def run(code, folder, **environment):
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(folder)} | environment
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def copied(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "separatrix", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.slow
def test_the_first_training_says_what_part_of_its_time_was_compiling(copied):
    code = "from separatrix import train; s = train('iris').summary; print(s['seconds_compiling'], str(s), sep='\\n')"
    environment = {"NUMBA_CACHE_DIR": str(copied / "cache")}
    first, shown = run(code, copied, **environment).split("\n", 1)
    assert float(first) > 0.5 and f"({float(first):.1f} s of this was compiling, only the first time)" in shown
    second, shown = run(code, copied, **environment).split("\n", 1)
    assert float(second) == 0 and "compiling" not in shown


@pytest.mark.slow
def test_a_second_process_compiles_nothing_and_any_edit_compiles_anew(copied):
    cache = copied / "cache"
    environment = {"NUMBA_CACHE_DIR": str(cache)}
    counted = FIT + "from separatrix.kernels.learning.passes import present; print(sum(present.stats.cache_misses.values()))"
    assert run(counted, copied, **environment).split("\n") == ["[[1.0, -3.0]]", "1"]
    (first,) = cache.iterdir()
    assert list(first.rglob("passes.present*.nbi"))
    assert run(counted, copied, **environment).split("\n") == ["[[1.0, -3.0]]", "0"]
    assert list(cache.iterdir()) == [first]
    # A kernel in another file.
    rows = copied / "separatrix" / "kernels" / "learning" / "rows.py"
    rows.write_text(rows.read_text().replace("W[w + j] += c * data[base + j]", "W[w + j] += 2.0 * c * data[base + j]"))
    assert run(FIT, copied, **environment) == "[[2.0, -6.0]]"
    assert len(list(cache.iterdir())) == 2
    # Codes are constants of the compiled kernels: a stale one would not recognise the rule.
    codes = copied / "separatrix" / "kernels" / "codes.py"
    text = codes.read_text()
    for name, before, after in [("MISTAKE", 0, 2), ("FIRST", 2, 0)]:
        assert f"TIE_IS_{name}: Final = {before}" in text
        text = text.replace(f"TIE_IS_{name}: Final = {before}", f"TIE_IS_{name}: Final = {after}")
    codes.write_text(text.replace("return crc32(name.encode())", "return crc32(name.encode()) + 1"))
    assert run(FIT, copied, **environment) == "[[2.0, -6.0]]"
    assert len(list(cache.iterdir())) == 3


def test_kernels_import_nothing_of_the_package_but_kernels():
    """The cache is keyed by the contents of kernels/, so nothing from outside may be compiled in."""
    for file in (PACKAGE / "kernels").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{file}: a relative import"
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith("separatrix") or name.startswith("separatrix.kernels"), f"{file}: {name}"


def test_the_table_of_rules_is_read_without_numba():
    code = "import sys, separatrix.engine.rules; print([m for m in ('numba', 'numpy', 'sklearn') if m in sys.modules])"
    assert run(code, PACKAGE.parent) == "[]"


@pytest.mark.slow
def test_where_the_cache_cannot_be_written_a_temporary_one_serves(copied):
    temporary = copied / "tmp"
    temporary.mkdir()
    nowhere = str(copied / "separatrix" / "py.typed")  # a file: nothing can be made below it, not even by root
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        assert run(FIT, copied, **{name: nowhere, "HOME": nowhere, "TMPDIR": str(temporary)}) == "[[1.0, -3.0]]"
    assert [folder.name[:10] for folder in temporary.iterdir()] == ["separatrix"]


@pytest.mark.slow
def test_with_no_writable_place_at_all_it_still_works(copied):
    nowhere = str(copied / "separatrix" / "py.typed")
    code = f"import tempfile; tempfile.tempdir = {nowhere!r}\n" + FIT
    assert run(code, copied, XDG_CACHE_HOME=nowhere, HOME=nowhere) == "[[1.0, -3.0]]"


@pytest.mark.slow
def test_read_only_writable_and_mapped_arrays_share_one_compiled_kernel(copied):
    code = """
import numpy as np, tempfile, os
from separatrix import Perceptron
from separatrix.kernels.learning import passes
from separatrix.kernels.learning import rows
X, y = np.array([[4., 0], [1, 1], [0, 1], [-2, -2]]), [1, -1, -1, 1]
frozen = X.copy(); frozen.flags.writeable = False
path = os.path.join(tempfile.mkdtemp(), "X.npy"); np.save(path, X)
for data in (X, frozen, np.load(path, mmap_mode="r"), np.load(path, mmap_mode="r+"), X.astype(int), np.asfortranarray(X)):
    Perceptron(random_state=0).fit(data, y, sample_weight=np.ones(4)).predict(data)
    Perceptron(order="cyclic").fit(data, y).predict(data)
print(len(passes.present.signatures), len(rows.survey.signatures), len(rows.score_rows.signatures))
"""
    assert run(code, copied, NUMBA_CACHE_DIR=str(copied / "cache")) == "1 1 1"


def test_the_key_changes_with_any_file(tmp_path):
    (tmp_path / "a.py").write_text("1")
    one = fingerprint(tmp_path)
    (tmp_path / "a.py").write_text("2")
    two = fingerprint(tmp_path)
    (tmp_path / "b.py").write_text("")
    assert len({one, two, fingerprint(tmp_path)}) == 3


def test_a_folder_that_others_can_write_is_not_trusted(tmp_path):
    tmp_path.chmod(0o700)
    assert _is_private(tmp_path)
    tmp_path.chmod(0o777)
    assert not _is_private(tmp_path)


def test_importing_the_package_imports_neither_numba_nor_scikit_learn():
    code = (
        "import sys, separatrix; print([m for m in ('numba', 'sklearn', 'scipy', 'numpy', 'pyarrow') if m in sys.modules])"
    )
    assert run(code, PACKAGE.parent) == "[]"
