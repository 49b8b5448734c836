"""The pages in a real browser: no error, no request, hostile texts run nothing, links and filters find their item.

A development check, for it takes its time: run with BROWSER_TESTS=1 and Chromium (Debian: chromium) installed. Opens
local files only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from rooms import room
from test_page import HOSTILE, compared, fixture_row, graded, human, source_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0"),
    *("--proxy-server=127.0.0.1:9", "--virtual-time-budget=4000"),
)
page, page_judged = room("page"), room("page_judged")


@unittest.skipUnless(os.environ.get("BROWSER_TESTS"), "a development check: set BROWSER_TESTS=1 to run it")
@unittest.skipUnless(CHROMIUM, "Chromium is not installed")
class InChromium(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def opened(self, made: bytes, anchor: str = "") -> tuple[str, list[str]]:
        """The document after its script ran, and what the console said."""
        path = Path(self.folder, "page.html")
        path.write_bytes(made)
        profile = f"--user-data-dir={self.folder}/profile"
        command = [str(CHROMIUM), *FLAGS, profile, "--dump-dom", f"{path.as_uri()}{anchor}"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)
        said = [line for line in done.stderr.decode("utf-8", "replace").split("\n") if ":CONSOLE" in line]
        return done.stdout.decode("utf-8", "replace"), said

    def test_a_page_of_pairs_lists_its_items_and_opens_the_first(self) -> None:
        rows = [fixture_row(n) for n in range(5)]
        dom, said = self.opened(page.page_of([source_of(rows, [("A", "B")] * 5)]))
        self.assertEqual(said, [])
        self.assertEqual(len(re.findall('<button type="button"(?: aria-current="true")?><span class="id">', dom)), 5)
        self.assertIn('id="item-title" tabindex="-1">item-0<', dom)
        self.assertIn("5 of 5 pairs", dom)

    def test_a_permanent_link_opens_its_item(self) -> None:
        rows = [fixture_row(n, item_id=f"it em/{n}?&") for n in range(5)]
        dom, said = self.opened(page.page_of([source_of(rows, [("A", "B")] * 5)]), "#item=it%20em%2F3%3F%26")
        self.assertEqual(said, [])
        self.assertIn('tabindex="-1">it em/3?&amp;<', dom)

    def test_hostile_texts_become_nothing_but_text(self) -> None:
        text = "\n".join(HOSTILE)
        row = fixture_row(0, text=text, answer_a=text, answer_b=text[::-1], why=text[:300], category=text[:20])
        dom, said = self.opened(page.page_of([source_of([row], [("B", "A")], text[:2000])]))
        self.assertEqual(said, [])
        self.assertIn('id="item-title"', dom)
        marks = re.sub(r"<script.*?</script>|>[^<]*<", "><", dom, flags=re.DOTALL)
        for part in ("<img", "<iframe", "<plaintext", "javascript:", " onerror=", " onload="):
            self.assertNotIn(part, marks)

    def test_the_policy_stops_a_script_that_is_not_ours_and_the_console_says_so(self) -> None:
        made = page.page_of([source_of([fixture_row(0)], [("A", "B")])])
        foreign = b"<script>document.title = 'owned'</script></body>"
        dom, said = self.opened(made.replace(b"</body>", foreign))
        self.assertTrue(any("Content Security Policy" in line for line in said), said)
        self.assertNotIn("<title>owned", dom)

    def test_markdown_is_made_readable_without_links(self) -> None:
        text = "# Title\n\n- one\n- **two**\n\n1. a\n2. b\n\n| h | i |\n|---|---|\n| 1 | 2 |\n\n```py\nx = '<b>'\n```\n[l](http://x)"
        row = fixture_row(0, answer_a=text)
        dom, said = self.opened(page.page_of([source_of([row], [("A", "B")])]))
        self.assertEqual(said, [])
        for part in ("<h5>Title</h5>", "<li><strong>two</strong></li>", '<ol start="1"><li>a</li>', "<td>1</td>"):
            self.assertIn(part, dom)
        self.assertIn("<code>x = '&lt;b&gt;'</code>", dom)
        self.assertNotIn('href="http', dom)

    def test_files_of_judge_py_open_without_a_complaint(self) -> None:
        for made in (page_judged.page_of([graded(), human()]), page_judged.page_of([compared()])):
            dom, said = self.opened(made)
            self.assertEqual(said, [])
            self.assertIn('id="item-title"', dom)


if __name__ == "__main__":
    unittest.main()
