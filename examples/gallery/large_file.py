"""The file is larger than memory, and the machine may fail: train within a limit, and survive kill -9 to the same bytes."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LIMIT = 1_000_000  # bytes for the examples; the file has eight times as many. Use 4G for 100 GB.
folder = tempfile.TemporaryDirectory()
data, state = Path(folder.name) / "events.csv", Path(folder.name) / "run.ckpt"

draw = np.random.default_rng(0)
X = draw.normal(size=(60_000, 20))
y = np.where(X @ draw.normal(size=20) + draw.normal(size=len(X)) > 0, "click", "none")
with open(data, "w") as file:
    file.write(",".join([*(f"x{j}" for j in range(20)), "outcome"]) + "\n")
    file.writelines(",".join(f"{value:.3f}" for value in row) + f",{label}\n" for row, label in zip(X, y, strict=True))
print(f"a file of {data.stat().st_size / 1e6:.0f} MB, {LIMIT / 1e6:.0f} MB for its rows")

command = [sys.executable, "-m", "separatrix", "train", str(data), "--label", "outcome", "--numbers", "standard"]
command += ["--memory", str(LIMIT), "--passes", "20", "--holdout", "0.1"]
undisturbed, killed = Path(folder.name) / "undisturbed.sepx", Path(folder.name) / "killed.sepx"
subprocess.run([*command, "-o", undisturbed], check=True, capture_output=True)

# The same again, with its state saved each tenth of a second, and killed as soon as there is one.
resumable = [*command, "-o", killed, "--checkpoint", state, "--checkpoint-every", "0.1"]
run = subprocess.Popen(resumable, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not state.exists() and run.poll() is None:
    time.sleep(0.01)
run.kill()
print("killed; exit status", run.wait(), "and a model file:", killed.exists())

summary = subprocess.run(resumable, check=True, capture_output=True, text=True).stdout
print("the same command once more:")
print(*(line for line in summary.splitlines() if "resumed" in line or "held-out accuracy" in line), sep="\n")
print("\nthe same model as without the kill, byte for byte:", killed.read_bytes() == undisturbed.read_bytes())
folder.cleanup()
