"""The page of the report in a browser: narrow and wide, light and dark, with records that are awkward.

test_report_browser.py KERNELGEN WRITE_RECORDS. Skipped where no Chromium is installed, or none starts.
report_probe.js looks at the page; it runs in a frame, because Chromium's own window is never as narrow
as a phone.
"""

import html
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import report_pages

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FRAME = """<!DOCTYPE html><style>body{{margin:0}}iframe{{border:0;width:{width}px;height:900px}}</style>
<pre></pre><script>
addEventListener('message', event => document.querySelector('pre').textContent = event.data);
</script><iframe name="{name}" src="{page}"></iframe>"""


class Browser:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.program = next(filter(None, map(shutil.which, NAMES)), None)

    def show(self, path, *options, fragment=""):
        """The page after its scripts have run; "" when there is none."""
        command = [self.program, "--headless=new", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", f"--user-data-dir={self.folder / 'profile'}",
                   "--window-size=1400,1000", "--virtual-time-budget=20000", *options,
                   "--dump-dom", path.as_uri() + fragment]
        try:
            return subprocess.run(command, capture_output=True, timeout=120).stdout.decode()
        except subprocess.TimeoutExpired:
            return ""

    def starts(self):
        path = self.folder / "empty.html"
        path.write_text("<!DOCTYPE html><p>it starts</p>")
        return self.program is not None and "it starts" in self.show(path)

    def probe(self, page, scheme, width, use_form=False):
        """What report_probe.js says of this page."""
        probe = pathlib.Path(__file__).with_name("report_probe.js").read_text()
        text = re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", page.read_text(), count=1)
        probed = page.with_suffix(".probed.html")
        probed.write_text(text.replace("</body>", f"<script>{probe}</script></body>"))
        frame = page.with_suffix(".frame.html")
        name = f"{scheme} {width} {'form' if use_form else ''}"
        frame.write_text(FRAME.format(width=width, name=name, page=probed.name))
        dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
        shown = self.show(frame, *dark)
        found = re.search(r"<pre>(.+?)</pre>", shown, re.DOTALL)
        assert found, f"the page said nothing: {shown[:500]}"
        return json.loads(html.unescape(found[1]))


class InBrowser(unittest.TestCase):
    def check(self, page, scheme, width, use_form=False):
        with self.subTest(page=page.name, scheme=scheme, width=width):
            found = browser.probe(page, scheme, width, use_form)
            self.assertEqual(found["problems"], [])
            self.assertGreater(found["cards"], 0)

    def test_narrow_and_wide_in_light_and_dark(self):
        for width in (390, 1280):
            for scheme in ("light", "dark"):
                self.check(whole, scheme, width, use_form=True)

    def test_between(self):
        for width in (320, 700, 780, 1000):
            self.check(whole, "light", width)

    def test_since_an_earlier_date(self):
        for width in (320, 1280):
            self.check(since, "dark", width)

    def test_one_op(self):
        page = folder / "one.html"
        page.write_text(records.report("refused"))
        for width in (390, 1280):
            self.check(page, "dark", width)

    def test_the_script_runs_under_the_policy_of_the_page(self):
        shown = browser.show(whole)
        self.assertRegex(shown, r"\d+ of \d+ shown</output>")
        self.assertNotRegex(shown, r"<form[^>]* hidden")

    def test_links_of_figures_open_cards(self):
        shown = browser.show(whole, fragment="#p7")
        self.assertEqual(re.findall(r'<details class="card" id="(p\d+)"[^>]* open=""', shown), ["p7"])

    def test_no_other_script_runs(self):
        page = folder / "injected.html"
        page.write_text(whole.read_text().replace(
            "</main>", "<p id=\"q\">untouched</p><script>q.textContent = 'run'</script></main>"))
        self.assertIn(">untouched<", browser.show(page))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        browser = Browser(folder)
        if not browser.starts():
            print("no Chromium starts here")
            sys.exit(77)
        records = report_pages.sample()
        whole = folder / "whole.html"
        whole.write_text(records.report())
        old = report_pages.export(records)
        report_pages.write(records.home, "later")
        since = folder / "since.html"
        records.run("report", "--against", str(old), "--out", str(since), statuses=(1,))
        done = unittest.main(argv=sys.argv[:1], exit=False).result
        records.folder.cleanup()
    sys.exit(not done.wasSuccessful())
