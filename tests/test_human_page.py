"""The labelling page in a real browser: ten pairs by keyboard, a reload, a resume, the result; and what it looks like.

Skipped where no Chromium is installed; tests/test_label_web.py checks the server itself everywhere.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from chromium import FOUND, Chromium
from rooms import ROOT

MARKDOWN = """Some **bold** and `code`.

## A heading

1. first
2. second
   - nested

```python
def f(x):
    return x
```

| a | b |
|---|---|
| 1 | <script>document.title = "attacked"</script> |

<img src="http://127.0.0.1:1/x.png" onerror="document.title='attacked'"> [link](http://127.0.0.1:1/y)
"""


def pair(number: int) -> dict[str, Any]:
    return {
        "item_id": f"pair-{number:02d}",
        "text": f"Question {number}: which answer is better?",
        "answer_a": f"own A of {number}\n\n{MARKDOWN}",
        "answer_b": f"own B of {number}",
        "category": ("code", "prose")[number % 2],
        "gold": "A",
        "model_a": "hidden-model-one",
        "model_b": "hidden-model-two",
    }


class Page:
    """judge.py human --web as a process of its own."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(ROOT / "judge.py"), "human", "--web", *more],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("open http://127.0.0.1:"), line + self.process.stderr.read()
        self.address = line.split()[1]

    def end(self, how: int | None = None) -> str:
        """Wait for its end (after a signal, if one is given); returns what it printed."""
        if how is not None:
            self.process.send_signal(how)
        out, self.errors = self.process.communicate(timeout=30)
        return out


@unittest.skipUnless(os.environ.get("BROWSER_TESTS"), "a development check: set BROWSER_TESTS=1 to run it")
@unittest.skipIf(FOUND is None, "no Chromium on this machine")
class LabellingInABrowser(unittest.TestCase):
    browser: Chromium

    @classmethod
    def setUpClass(cls) -> None:
        cls.browser = Chromium()
        cls.addClassCleanup(cls.browser.__exit__)

    def setUp(self) -> None:
        self.browser.problems.clear()
        self.browser.asked.clear()
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        lines = [json.dumps(pair(number)) for number in range(12)]
        (self.folder / "pairs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def page(self, *more: str) -> Page:
        page = Page(self.folder, "--pairs", "pairs.jsonl", "--annotator", "ana", *more)
        self.addCleanup(page.process.wait)
        self.addCleanup(page.process.kill)
        self.addCleanup(page.process.stdout.close)  # type: ignore[union-attr]
        self.addCleanup(page.process.stderr.close)  # type: ignore[union-attr]
        return page

    def labels(self) -> list[dict[str, Any]]:
        text = (self.folder / "pairs.labels.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line]

    def press_on(self, place: int, key: str) -> None:
        """Press a key once the item at a place (from 1) is on screen, and wait until the next one is."""
        self.browser.until(f"screen === 'item' && item.place === {place - 1} && !saving")
        self.browser.press(key)
        self.browser.until(f"!saving && (screen === 'done' || item.place !== {place - 1})")

    def test_ten_pairs_by_keyboard_a_reload_a_resume_and_the_result(self) -> None:
        browser, page = self.browser, self.page()
        browser.go(page.address)
        for place, key in enumerate("ab=a", 1):
            self.press_on(place, key)
        self.assertEqual(len(self.labels()), 4)
        browser.call("Page.reload")
        for place, key in enumerate("B2e1", 5):
            self.press_on(place, key)
        # The process ends at once and starts again: what was labelled is there.
        page.end(signal.SIGKILL)
        page = self.page()
        browser.go(page.address)
        browser.until("screen === 'item' && item.place === 8")
        browser.press("c")
        browser.write("a remark")
        browser.press("Escape")
        self.press_on(9, "a")
        self.press_on(10, "s")
        self.press_on(11, "=")
        browser.press("ArrowLeft")
        browser.until("item.place === 10")
        browser.press("b")  # a correction
        browser.until("item.place === 11 && !saving")
        browser.press("a")
        browser.until("screen === 'done'")
        self.assertEqual(browser.run("document.body.textContent.includes('gold of the file')"), False)
        browser.press("Enter")  # the button in focus shows the result
        browser.until("screen === 'result'")
        self.assertIn("gold of the file", browser.run("by('main').textContent"))
        browser.run("[...document.querySelectorAll('button')].find((b) => b.textContent.startsWith('Stop')).click()")
        out = page.end()
        self.assertEqual(page.process.returncode, 0, page.errors)
        self.assertIn("gold of the file against people, 11 pairs", out)
        lines = self.labels()
        self.assertEqual(len(lines), 13)
        self.assertEqual([line["comment"] for line in lines if line["comment"]], ["a remark"])
        self.assertEqual(lines[9]["label"], None)
        self.assertEqual(browser.problems, [])
        self.assertTrue(all(url.startswith("http://127.0.0.1:") and "/x.png" not in url for url in browser.asked))

    def test_labels_are_in_the_items_own_sides_whichever_side_was_shown(self) -> None:
        browser, page = self.browser, self.page()
        browser.go(page.address)
        picked = []
        for place in range(1, 7):
            browser.until(f"screen === 'item' && item.place === {place - 1} && !saving")
            picked.append(browser.run("document.querySelector('[data-side=A] .text').textContent.slice(0, 5)"))
            self.press_on(place, "a")
        page.end(signal.SIGINT)
        self.assertEqual(page.process.returncode, 0, page.errors)
        self.assertEqual([f"own {line['label']}" for line in self.labels()], picked)
        self.assertEqual({line["shown"] for line in self.labels()}, {"original", "swapped"})

    def test_an_answer_is_shown_as_text_readably_or_raw_and_never_acts(self) -> None:
        browser, page = self.browser, self.page()
        browser.go(page.address)
        browser.until("screen === 'item'")
        for tag in ("strong", "h4", "ol", "li > ul", "pre code", "td"):
            self.assertTrue(browser.run(f"document.querySelector('.text {tag}') !== null"), tag)
        self.assertFalse(browser.run("document.querySelector('main script, main img, main a') !== null"))
        self.assertEqual(browser.run("document.title"), "Compare answers")
        browser.press("r")
        self.assertIn("**bold**", browser.run("by('main').textContent"))
        self.assertNotIn("hidden-model", browser.run("document.documentElement.textContent + JSON.stringify(item)"))
        self.assertEqual(browser.problems, [])

    def test_a_page_of_another_origin_reads_nothing_labels_nothing_and_cannot_frame_it(self) -> None:
        browser, page = self.browser, self.page()

        class Foreign(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!doctype html><title>foreign</title>")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}).start()
        self.addCleanup(server.shutdown)
        browser.go(f"http://127.0.0.1:{server.server_address[1]}/")
        browser.until("document.title === 'foreign'")
        read = f"fetch('{page.address}state').then((r) => r.text()).catch(() => 'nothing')"
        self.assertEqual(browser.run(read), "nothing")
        body = '{"place": 0, "choice": "A", "comment": ""}'
        send = f"fetch('{page.address}label', {{method: 'POST', mode: 'no-cors', body: '{body}'}})"
        self.assertEqual(browser.run(send + ".then(() => 'sent').catch(() => 'blocked')"), "blocked")
        frame = f"new Promise((done) => {{const f = document.createElement('iframe'); f.src = '{page.address}';"
        self.assertEqual(
            browser.run(frame + " f.onload = () => done(f.contentDocument); document.body.append(f);})"), None
        )
        page.end(signal.SIGINT)
        self.assertEqual(page.process.returncode, 0)  # nothing was labelled, and no result was asked for
        self.assertFalse((self.folder / "pairs.labels.jsonl").exists())

    def test_the_page_fits_every_width_light_and_dark(self) -> None:
        browser, page = self.browser, self.page()
        pictures = os.environ.get("LABEL_PAGE_PICTURES")
        browser.go(page.address)
        browser.until("screen === 'item'")
        colours = set()
        for width, height in ((400, 800), (1280, 800), (2560, 1400), (3840, 2160)):
            for dark in (False, True):
                browser.look(width, height, dark)
                for box in ("document.documentElement", "by('main')"):
                    self.assertTrue(browser.run(f"{box}.scrollWidth <= {box}.clientWidth"), (box, width, dark))
                below = "by('bottom').getBoundingClientRect().bottom <= innerHeight"
                self.assertTrue(browser.run(below), (width, dark))
                columns = browser.run("getComputedStyle(document.querySelector('.pair')).gridTemplateColumns")
                self.assertEqual(len(columns.split()), 1 if width == 400 else 2)
                colours.add(browser.run("getComputedStyle(document.body).backgroundColor"))
                if pictures:
                    browser.picture(Path(pictures) / f"pair-{width}-{'dark' if dark else 'light'}.png")
        self.assertEqual(len(colours), 2)


if __name__ == "__main__":
    unittest.main()
