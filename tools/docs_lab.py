"""A hook of MkDocs: the documentation carries the static lab at lab/, which the tutorials embed."""

from pathlib import Path

from separatrix.web.lab.site import export


def on_post_build(config, **_):
    export(Path(config["site_dir"]) / "lab")
