"""Make the pictures of the lab in docs/images with Chromium and Playwright: `python tools/screenshots.py [FOLDER]`.

Needs `pip install '.[dev]'` and a chromium on the path.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.browser import chromium, lab_server  # noqa: E402

SHOTS = {
    "lab-light": ("light", 1045, "data=lecture:L4.1&step=4&views=last"),
    "lab-dark": ("dark", 900, "data=lecture:L4.xor&step=end&views=last"),
    "lab-iris": ("light", 900, "data=iris&columns=2,3&learner=averaged&passes=20&holdout=0.2&step=end&views=last,averaged"),
    "lab-kernel": (
        "light",
        900,
        "data=random&n=160&noise=0.04&learner=kernel&gamma=.4&passes=10&step=end&views=last,voted",
    ),
}
FILM = "data=lecture:L4.1"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with lab_server() as url, chromium() as browser:
        for name, (scheme, height, state) in SHOTS.items():
            context = browser.new_context(viewport={"width": 1280, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto(f"{url}/#{state}")
            page.wait_for_selector("#where b")
            page.wait_for_timeout(300)
            file = folder / f"{name}.png"
            page.screenshot(path=file)
            print(f"{file}: {file.stat().st_size:,} bytes")
            context.close()
        page = browser.new_page(color_scheme="light")
        page.goto(f"{url}/#{FILM}")
        page.wait_for_selector("#where b")
        with page.expect_download() as waiting:
            page.click("#save-gif")
        file = folder / "lab.gif"
        waiting.value.save_as(file)
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
