#!/usr/bin/env bash
# Writes requirements.lock: every package that development, the checks and the documentation need, with its hashes, for each
# Python and platform. Versions that are locked already stay unless pyproject.toml forbids them or --upgrade is given.
# Usage: tools/lock.sh [--upgrade | --upgrade-package NAME]
set -euo pipefail
cd "$(dirname "$0")/.."
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
python3 -m venv "$home/venv"
"$home/venv/bin/pip" install -q --disable-pip-version-check uv
"$home/venv/bin/uv" pip compile -q pyproject.toml --extra dev --extra docs --extra release --universal --generate-hashes \
  --no-emit-index-url --no-emit-find-links --no-emit-package pip --no-annotate \
  --custom-compile-command tools/lock.sh -o requirements.lock "$@"
