"""Pages of `kernelgen report` for the tests beside this file, and a reader of them.

The reader is strict: it refuses elements that are not closed, closed twice or in another order, and
attributes that occur twice. Browsers would repair such a page, each in its own way.
"""

import html.parser
import os
import pathlib
import subprocess
import sys
import tempfile

VOID = {"meta", "input", "br", "path"}  # of those that the page has


class Element:
    def __init__(self, name, attributes, parent):
        self.name, self.attributes, self.parent = name, attributes, parent
        self.children = []  # elements and texts
        if parent:
            parent.children.append(self)

    def all(self, name=None, kind=None):
        """The elements below of this name and this class."""
        for child in self.children:
            if isinstance(child, Element):
                if name in (None, child.name) and (kind is None or kind in child.classes()):
                    yield child
                yield from child.all(name, kind)

    def one(self, name=None, kind=None):
        found = list(self.all(name, kind))
        assert len(found) == 1, f"{len(found)} elements {name} {kind} in {self.name}"
        return found[0]

    def classes(self):
        return self.attributes.get("class", "").split()

    def text(self):
        """As it is read: white space is one space."""
        parts = [c if isinstance(c, str) else c.text() for c in self.children]
        return " ".join("".join(parts).split())


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = self.open = Element("page", {}, None)

    def handle_starttag(self, name, pairs):
        attributes = dict(pairs)
        assert len(attributes) == len(pairs), f"an attribute of {name} occurs twice: {pairs}"
        element = Element(name, {key: value or "" for key, value in pairs}, self.open)
        if name not in VOID:
            self.open = element

    def handle_startendtag(self, name, pairs):
        assert name in VOID, f"<{name}/> is not closed"
        self.handle_starttag(name, pairs)

    def handle_endtag(self, name):
        assert self.open.name == name, f"</{name}> in <{self.open.name}>"
        self.open = self.open.parent

    def handle_data(self, data):
        self.open.children.append(data)


def read(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open is reader.root, f"<{reader.open.name}> is not closed"
    return reader.root


class Records:
    """A folder of records, for the tool to report on."""

    def __init__(self, kernelgen):
        self.kernelgen = kernelgen
        self.folder = tempfile.TemporaryDirectory()
        self.home = pathlib.Path(self.folder.name) / "records"

    def run(self, *arguments, statuses=(0,)):
        environment = dict(os.environ, KERNELGEN_HOME=str(self.home))
        done = subprocess.run([self.kernelgen, *arguments], env=environment, capture_output=True)
        assert done.returncode in statuses, f"{arguments}: {done.returncode}\n{done.stderr.decode()}"
        return done.stdout.decode(errors="replace")

    def report(self, *arguments):
        return self.run("report", *arguments)


def sample():
    """The records of write_records, for a test called with the tool and that program."""
    records = Records(sys.argv[1])
    subprocess.run([sys.argv[2], str(records.home)], check=True)
    return records
