#!/usr/bin/env bash
# Builds the wheel and the source distribution, looks into both, and tries the wheel in a clean environment of each Python
# that is named, or else of python3 and those of 3.12 and 3.13 that are at hand. Needs `build` and `twine`.
# Usage: tools/release_check.sh [python3.12 …]
set -euo pipefail
cd "$(dirname "$0")/.."
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
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
missing = {"tests/test_lectures.py", "docs/index.md", "mkdocs.yml", "examples/proof.py", "README.md", "CHANGELOG.md", "LICENSE"} - packed
strangers = {name for name in inside if not name.startswith(("separatrix/", "separatrix-"))}
if wanted or missing or strangers:
    sys.exit(f"the wheel lacks {wanted or 'nothing'}, has {strangers or 'nothing'} besides; the sdist lacks {missing or 'nothing'}")
print(f"{wheel.name}: {len(inside)} files, typed; {source.name}: {len(packed)} files, with tests, docs and examples")
PY
pythons=("$@")
if [ $# = 0 ]; then
  pythons=(python3)
  for version in 3.12 3.13; do
    for python in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
      if "$python" -c "" 2>/dev/null; then pythons+=("$python"); break; fi
    done
  done
fi
cd "$home"
unset PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1
for python in "${pythons[@]}"; do
  rm -rf "$home/venv" "$home/cache"
  export NUMBA_CACHE_DIR="$home/cache"
  "$python" -m venv "$home/venv"
  "$home/venv/bin/pip" install -q "$home"/dist/*.whl
  "$home/venv/bin/separatrix" --version
  "$home/venv/bin/separatrix" demo > "$home/demo.txt"
  grep -q "Pass 2 is clean" "$home/demo.txt"
  echo "the wheel works in a clean environment: $("$home/venv/bin/python" --version)"
done
