#!/usr/bin/env bash
# Runs a part of the tests with the lowest version of every dependency that pyproject.toml allows.
# Usage: tools/minimum_versions.sh [python3.12]
set -euo pipefail
cd "$(dirname "$0")/.."
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
"${1:-python3}" -m venv "$home/venv"
export PATH="$home/venv/bin:$PATH" VIRTUAL_ENV="$home/venv" NUMBA_CACHE_DIR="$home/cache" PIP_DISABLE_PIP_VERSION_CHECK=1
python - <<'PY' > "$home/lowest.txt"
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"]
tests = [need for need in extras["dev"] if need.startswith(("pytest", "hypothesis", "httpx"))]
lowest = [need.replace(">=", "==") for need in (*project["dependencies"], *extras["pandas"], *extras["web"])]
print(*lowest, *tests, sep="\n")
PY
cat "$home/lowest.txt"
pip install -q . -r "$home/lowest.txt"
python -m pytest -q tests/test_lectures.py tests/engine/test_oracle.py tests/cli/test_cli.py tests/data/test_readers.py \
  tests/web/test_skeleton.py tests/web/lab/test_lab_server.py
