"""The supply chain: what is imported is declared, and few private names of other packages are used, each with a bound."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path

import numpy as np
import pytest

import separatrix

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_USERS = set(EXTRAS) - {"dev", "bench", "docs"}
NOT_INSTALLED = {"liblinear": "liblinear-official"}
"""Packages that `.[dev]` leaves out and whose distributions have another name."""
LOCAL = {
    "separatrix",
    *(path.stem for folder in ("tests", "benchmarks") for path in (ROOT / folder).iterdir()),
    "benchmarks",
}
NAMED_TUPLES_AND_FRAMES = {"_replace", "_asdict", "_getframe"}
"""Documented in spite of their underscore."""
STAYS = {
    "numba": ("_nrt", "kernels/compiling.py", "test_supply.py::test_kernels_are_compiled_without_counting_references"),
    "statsmodels": (
        "_ynames_map",
        "analysis/separation/designs.py",
        "analysis/test_separation_check.py::test_a_multinomial_model",
    ),
    "uvicorn": ("H11Protocol", "web/listening.py", "web/server/test_hard.py::test_slow_clients_are_given_up"),
}
"""Distributions of which a private or undocumented name is used: the name, where, and the test that holds it."""


@cache
def distributions():
    return packages_distributions()


def normalized(requirement):
    return re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower().replace("_", "-")


def requirements(extra):
    """The requirements of an extra, those of the extras that it names included."""
    for requirement in EXTRAS[extra]:
        if own := re.fullmatch(r"separatrix\[(.+)\]", requirement):
            for name in own[1].split(","):
                yield from requirements(name)
        else:
            yield requirement


def declared(*extras):
    wanted = [*PROJECT["dependencies"], *(need for extra in extras for need in requirements(extra))]
    return {normalized(requirement) for requirement in wanted}


def trees(folder):
    return {path: ast.parse(path.read_bytes()) for path in sorted((ROOT / folder).rglob("*.py"))}


def imports(tree):
    """The dotted names that a module imports from other packages than the standard library and this project."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.split(".")[0] not in LOCAL | sys.stdlib_module_names:
                yield name


@pytest.mark.parametrize(
    ("folder", "extras"),
    [("src", FOR_USERS), ("tests", {"dev"}), ("benchmarks", {"bench"}), ("tools", {"dev"}), ("examples", {"dev"})],
)
def test_every_package_that_is_imported_is_declared(folder, extras):
    imported = {name.split(".")[0] for tree in trees(folder).values() for name in imports(tree)}
    assert imported
    names = {package: distributions().get(package, [NOT_INSTALLED.get(package, package)]) for package in imported}
    undeclared = {package: of for package, of in names.items() if not {normalized(name) for name in of} & declared(*extras)}
    assert undeclared == {}


def test_no_private_name_of_another_package_is_used_but_those_that_stay():
    modules = trees("src")
    own = {name for tree in modules.values() for node in ast.walk(tree) for name in defined(node)}
    private = set()
    for tree in modules.values():
        private |= {name for name in imports(tree) if re.search(r"(^|\.)_(?!_)", name)}
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        private |= {name for name in attributes if re.match(r"_(?!_)", name)} - own - NAMED_TUPLES_AND_FRAMES
    assert private <= {name for name, _, _ in STAYS.values()}


def defined(node):
    """The names that a node of a syntax tree defines: functions, classes, variables, attributes that are assigned."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


@pytest.mark.parametrize("distribution", STAYS)
def test_what_stays_is_used_bounded_and_tested(distribution):
    name, module, test = STAYS[distribution]
    assert name in (ROOT / "src/separatrix" / module).read_text()
    file, _, function = test.partition("::")
    assert f"def {function}(" in (ROOT / "tests" / file).read_text()
    every = [*PROJECT["dependencies"], *(need for extra in EXTRAS for need in requirements(extra))]
    (requirement,) = {need for need in every if normalized(need) == distribution}
    numbers = [int(part) for part in version(distribution).split(".")[:2]]
    assert numbers < [int(part) for part in requirement.partition("<")[2].split(".")]


def test_kernels_are_compiled_without_counting_references():
    from numba.core.errors import TypingError

    from separatrix.kernels.compiling import part

    def allocate(n):
        return np.zeros(n).sum()

    with pytest.raises(TypingError, match="zeros"):
        part(allocate)(3)


def test_without_a_seed_the_global_generator_of_numpy_is_drawn_from():
    from separatrix.learners.classifier import random_generator

    state = np.random.get_state()
    try:
        np.random.seed(7)
        drawn = [int(random_generator(source).randint(10**9)) for source in (None, np.random, None)]
        np.random.seed(7)
        assert drawn == np.random.randint(10**9, size=3).tolist()
    finally:
        np.random.set_state(state)


def test_the_lock_has_a_version_within_bounds_of_every_requirement():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text, "the lock must not name where packages come from"
    locked = dict(re.findall(r"^([a-z0-9.-]+)==([0-9][^ ;]*)", text, re.MULTILINE))
    entries = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    assert len(entries) >= len(locked) > 100 and all(" --hash=sha256:" in entry for entry in entries)
    needs = [*PROJECT["dependencies"], *(need for extra in ("dev", "docs", "release") for need in requirements(extra))]
    for need in needs:
        number, (low, _, high) = locked[normalized(need)], need.partition(">=")[2].partition(",<")
        assert parts(number) >= parts(low) and (not high or parts(number) < parts(high)), (
            f"run tools/lock.sh: {need}, {number}"
        )


def parts(number):
    return [int(part) for part in re.findall(r"\d+", number)]


def test_the_citation_and_the_recipe_name_this_version_and_these_requirements():
    citation, recipe = ((ROOT / name).read_text() for name in ("CITATION.cff", "recipe/recipe.yaml"))
    assert re.search(r"^version: (.+)$", citation, re.M)[1] == separatrix.__version__
    assert re.search(r'^  version: "(.+)"$', recipe, re.M)[1] == separatrix.__version__
    for text in (citation, recipe):
        assert re.search(r"^ *license: (.+)$", text, re.M)[1] == PROJECT["license"]
    assert PROJECT["description"] in " ".join(citation.split()) and PROJECT["description"] in recipe
    _, run = recipe.split("  run:\n")
    needed = re.findall(r"^    - (.+)$", run.split("\n\n")[0], re.M)
    assert needed[0] == f"python {PROJECT['requires-python']}"
    assert [need.replace(" ", "") for need in needed[1:]] == PROJECT["dependencies"]
    entry = next(iter(PROJECT["scripts"].items()))
    assert f"- {entry[0]} = {entry[1]}" in recipe


def test_a_release_is_published_without_a_stored_secret_and_is_named_in_the_changelog():
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"} and workflow[True] == {"push": {"tags": ["v*"]}}
    jobs = workflow["jobs"]
    assert jobs["publish"]["needs"] == "build" and jobs["publish"]["environment"] == "release"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text()
    (paths,) = (
        step["with"]["path"] for step in jobs["build"]["steps"] if step.get("with", {}).get("name") == "distributions"
    )
    assert paths.split() == ["dist/separatrix-*.whl", "dist/separatrix-*.tar.gz"]
    assert re.search(rf"^## {re.escape(separatrix.__version__)} \(", (ROOT / "CHANGELOG.md").read_text(), re.M)
