#!/usr/bin/env bash
# Builds the wheel and the source distribution, looks into both, tries the wheel in a clean environment of each Python that is
# named, or else of python3 and those of 3.12 to 3.14 that are at hand, and writes the bill of materials of the first
# environment; in the others a part of the tests runs too. Needs the extra `release`. The wheel, the source distribution and the
# bill are left in $RELEASE_FOLDER if it is set.
# Usage: tools/release_check.sh [python3.12 …]
set -euo pipefail
cd "$(dirname "$0")/.."
TESTS="tests/test_lectures.py tests/engine/test_oracle.py tests/cli/test_errors.py"
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
release_folder=${RELEASE_FOLDER:+$(realpath -m "$RELEASE_FOLDER")}
python -m build --outdir "$home/dist" . > "$home/build.log" || { cat "$home/build.log"; exit 1; }
python -m twine check --strict "$home"/dist/*
python - "$home/dist" <<'PY'
import sys
import tarfile
import zipfile
from pathlib import Path

wheel, = Path(sys.argv[1]).glob("*.whl")
source, = Path(sys.argv[1]).glob("*.tar.gz")
inside = set(zipfile.ZipFile(wheel).namelist())
packed = {name.split("/", 1)[1] for name in tarfile.open(source).getnames() if "/" in name}
wanted = {str(path.relative_to("src")) for path in Path("src/separatrix").rglob("*") if path.is_file()}
wanted = {name for name in wanted if "__pycache__" not in name} - inside
missing = {"tests/test_lectures.py", "docs/index.md", "mkdocs.yml", "examples/gallery/teach.py", "README.md", "CHANGELOG.md", "LICENSE"} - packed
strangers = {name for name in inside if not name.startswith(("separatrix/", "separatrix-"))}
if wanted or missing or strangers:
    sys.exit(f"the wheel lacks {wanted or 'nothing'}, has {strangers or 'nothing'} besides; the sdist lacks {missing or 'nothing'}")
print(f"{wheel.name}: {len(inside)} files, typed; {source.name}: {len(packed)} files, with tests, docs and examples")
PY
pythons=("$@")
if [ $# = 0 ]; then
  pythons=(python3)
  for version in 3.12 3.13 3.14; do
    for python in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
      if "$python" -c "" 2>/dev/null; then pythons+=("$python"); break; fi
    done
  done
fi
root=$PWD
cd "$home"
unset PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1
for python in "${pythons[@]}"; do
  rm -rf "$home/venv" "$home/cache"
  export NUMBA_CACHE_DIR="$home/cache"
  "$python" -m venv --without-pip "$home/venv"
  python -m pip --python "$home/venv/bin/python" install -q --no-compile "$home"/dist/*.whl
  "$home/venv/bin/separatrix" --version
  "$home/venv/bin/separatrix" demo > "$home/demo.txt"
  grep -q "Pass 2 is clean" "$home/demo.txt"
  "$home/venv/bin/separatrix" certify iris --positive setosa -o "$home/proof.json" > /dev/null
  "$home/venv/bin/separatrix" check "$home/proof.json" iris --positive setosa
  echo "the wheel works in a clean environment: $("$home/venv/bin/python" --version)"
  if ! compgen -G "$home/dist/*.cdx.json" > /dev/null; then
    version=$(basename "$home"/dist/*.whl | cut -d- -f2)
    bill=separatrix-$version.cdx.json
    cyclonedx-py environment "$home/venv/bin/python" --pyproject "$root/pyproject.toml" --output-reproducible -o "$home/dist/$bill"
    python - "$home/dist/$bill" "$version" "$root/pyproject.toml" <<'PY'
import json
import re
import sys
import tomllib
from pathlib import Path

bill = json.loads(Path(sys.argv[1]).read_text())
listed = {component["name"].lower().replace("_", "-") for component in bill["components"]}
project = tomllib.loads(Path(sys.argv[3]).read_text())["project"]
bill["metadata"]["component"]["version"] = sys.argv[2]  # pyproject.toml leaves it to the build
Path(sys.argv[1]).write_text(json.dumps(bill, indent=2) + "\n")
missing = {re.split("[^a-z0-9-]", need.lower())[0] for need in project["dependencies"]} - listed
unversioned = [component["name"] for component in bill["components"] if not component.get("version")]
if bill["metadata"]["component"]["name"] != project["name"] or missing or unversioned:
    sys.exit(f"the bill of materials lacks {missing or 'nothing'}; without a version: {unversioned}")
print(f"{Path(sys.argv[1]).name}: the wheel and {len(listed)} packages that it brings with it")
PY
  else
    python -m pip --python "$home/venv/bin/python" install -q --no-compile pytest pytest-xdist hypothesis
    (cd "$root" && "$home/venv/bin/python" -m pytest -q -n 0 -p no:cacheprovider $TESTS)
  fi
done
if [ -n "$release_folder" ]; then mkdir -p "$release_folder" && cp "$home"/dist/* "$release_folder"; fi
