#!/usr/bin/env python3
"""What the files of src/ may use of one another; tools/check runs this and counts what it prints.

A room is a folder under src/; the first folder of its path is its layer. The table of rooms in
docs/architecture.md has the order of layers and the headers that other rooms may include. A header
is also seen by its own room and by the folders below it.

  layers    included headers belong to the same layer or to one above; every room has a row
  private   a header included from another room is listed there
  links     the same as `layers`, for the symbols that the linker resolves
  circles   no file needs a file of another room that needs it in turn; inside a room, at most
            CIRCLE_LIMIT files need one another by symbol

`links` and `circles` read the object files of the build that misses fewest sources. Each line
printed begins with `breach`, `detail` (of the breach before it), `note`, or `unchecked`: what could
not be seen.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

CIRCLE_LIMIT = 6
# Layers that are being rebuilt: their circles are notes. An empty set makes them breaches.
CIRCLES_PENDING = set()

ARCHITECTURE = "docs/architecture.md"
PUBLIC_HEADER = "include/kernelgen.h"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*)"', re.MULTILINE)


def tell(kind, text):
    print(kind, text)


# ---- The tree ----


class Room:
    def __init__(self, name, for_layers, for_rooms):
        self.name = name
        self.for_layers = for_layers  # names of headers, or None: all of them
        self.for_rooms = for_rooms  # ... of the same layer, likewise

    def shows(self, header, same_layer):
        if self.for_layers is None or header in self.for_layers:
            return True
        return same_layer and (self.for_rooms is None or header in self.for_rooms)


def headers_in(cell):
    """Names in backquotes; None for "every header"."""
    return None if "every header" in cell else set(re.findall("`([^`]+)`", cell))


def read_rooms():
    """The rows of the table below "## Layers", in its order: first room, fourth and third column
    headers in backquotes. "every header" stands for all."""
    text = pathlib.Path(ARCHITECTURE).read_text()
    section = re.search(r"^## Layers\n(.*?)^## ", text + "\n## ", re.MULTILINE | re.DOTALL)
    rooms = {}
    for line in section.group(1).splitlines() if section else []:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 4 or not re.fullmatch(r"`[a-z0-9_/]+`", cells[0]):
            continue
        name = cells[0].strip("`")
        rooms[name] = Room(name, headers_in(cells[2]), headers_in(cells[3]))
    return rooms


def layer_of(path):
    """Of a file or room below src/; a folder of its own beside src/ is its own layer."""
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 1 else parts[0]


def room_of(path):
    return os.path.dirname(path)


def unit_of(path):
    """A source and the header of the same name are one."""
    return os.path.splitext(path)[0]


def sources(*folders):
    """Paths of .c and .h files, sorted."""
    return sorted(str(path) for folder in folders for path in pathlib.Path(folder).rglob("*.[ch]"))


def includes_of(path):
    """Pairs of line and name for each header included with quotes."""
    text = pathlib.Path(path).read_text(errors="replace")
    return [(text.count("\n", 0, found.start()) + 1, found.group(1))
            for found in INCLUDE.finditer(text)]


class Tree:
    def __init__(self):
        self.rooms = read_rooms()
        self.layers = list(dict.fromkeys(name.split("/")[0] for name in self.rooms))

    def stands_below(self, used, user):
        """Does the layer `used` come after the layer `user`? Folders beside src/ may use all."""
        if user not in self.layers:
            return False
        return used not in self.layers or self.layers.index(used) > self.layers.index(user)


# ---- Headers ----


def check_layers(tree):
    if not tree.layers:
        tell("breach", f'layers: {ARCHITECTURE} has no table of rooms under "## Layers"')
    for room in sorted({room_of(path) for path in sources("src")}):
        if room == "src" or room[len("src/"):] not in tree.rooms:
            tell("breach", f"layers: {room} has no row in the table of rooms of {ARCHITECTURE}")
    for room in tree.rooms.values():
        folder = f"src/{room.name}"
        if not os.path.isdir(folder):
            tell("breach", f"layers: {ARCHITECTURE} has a row for {folder}, which does not exist")
        for header in sorted((room.for_layers or set()) | (room.for_rooms or set())):
            if not os.path.isfile(f"{folder}/{header}"):
                tell("breach", f"layers: {ARCHITECTURE} lists {folder}/{header}, "
                               "which does not exist")
    for path in sources("src"):
        for line, header in includes_of(path):
            if header == "kernelgen.h":
                continue
            if not os.path.isfile(f"src/{header}"):
                tell("breach", f'layers: {path}:{line}: "{header}" is no file below src/')
            elif tree.stands_below(layer_of(f"src/{header}"), layer_of(path)):
                tell("breach", f'layers: {path}:{line}: {layer_of(path)} includes "{header}", '
                               "whose layer stands below it")
    for path in sources("cli"):
        for line, header in includes_of(path):
            if header != "kernelgen.h" and not os.path.isfile(f"cli/{header}"):
                tell("breach", f'layers: {path}:{line}: includes "{header}"; the tool may only use '
                               "kernelgen.h")


def check_private(tree):
    for path in sources("src", "worker"):
        for line, name in includes_of(path):
            header = f"src/{name}"
            owner = room_of(header)
            if not os.path.isfile(header) or f"{room_of(path)}/".startswith(f"{owner}/"):
                continue
            room = tree.rooms.get(owner[len("src/"):])
            same_layer = layer_of(header) == layer_of(path)
            if not room or not room.shows(os.path.basename(name), same_layer):
                tell("breach", f'private: {path}:{line}: "{name}" is not listed in {ARCHITECTURE} '
                               f"as a header of {owner} for {room_of(path)}")


# ---- Symbols ----


TOOL_OBJECTS = ("kernelgen_cli.dir", "kernelgen.dir")  # beside kg_objects.dir


class Objects:
    """Who defines and who uses each symbol, by the objects of the most complete build."""

    def __init__(self):
        self.defined = {}  # symbol -> file
        self.used = collections.defaultdict(set)  # file -> symbols
        self.read = False

    def load(self, rules):
        """Says what the rules could not see."""
        builds = list(pathlib.Path("build").glob("*/CMakeFiles/kg_objects.dir"))
        if not builds:
            tell("unchecked", f"{rules}: no object files are built")
            return self
        if not shutil.which("nm"):
            tell("unchecked", f"{rules}: nm is not installed")
            return self
        folder, files, stale = min(map(self.look_at, builds), key=lambda build: len(build[2]))
        if stale:
            more = f" and {len(stale) - 3} more" if len(stale) > 3 else ""
            tell("unchecked", f"{rules}: not built in {folder.parents[1]} since they were "
                              f"changed: {', '.join(stale[:3])}{more}")
        self.read_symbols([self.object_path(folder, path) for path in files if path not in stale])
        self.read = True
        return self

    def look_at(self, folder):
        """A build, the sources it has objects of, and those whose object is missing or old."""
        files = dict(self.objects_below(folder))
        for other in TOOL_OBJECTS:
            files.update(self.objects_below(folder.parent / other))
        stale = [path for path in sources("src", "cli")
                 if path.endswith(".c") and files.get(path, -1) < os.path.getmtime(path)]
        return folder, files, stale

    @staticmethod
    def object_path(folder, source):
        folders = [folder, *(folder.parent / other for other in TOOL_OBJECTS)]
        return next(path for path in (below / f"{source}.o" for below in folders) if path.exists())

    @staticmethod
    def objects_below(folder):
        """Pairs of source and the time its object was made. Sources that are gone are left out, but
        not those that the build generates."""
        for path in folder.rglob("*.o"):
            source = str(path.relative_to(folder))[:-len(".o")]
            if os.path.isfile(source) or not source.startswith(("src/", "cli/")):
                yield source, path.stat().st_mtime

    def read_symbols(self, paths):
        if not paths:
            return
        listing = subprocess.run(["nm", "-A", "-g", *map(str, paths)], capture_output=True,
                                 text=True, check=True).stdout
        owners = self.owners_of_generated()
        for line in listing.splitlines():
            path, rest = line.split(":", 1)
            *_, kind, symbol = rest.split()
            source = path.split(".dir/", 1)[1][:-len(".o")]
            if kind in "Uw":
                self.used[source].add(symbol)
            elif source.startswith(("src/", "cli/")):
                self.defined[symbol] = source
            elif symbol in owners:
                self.defined[symbol] = owners[symbol]

    @staticmethod
    def owners_of_generated():
        """Data that headers declare: where its source is generated, the header stands for it."""
        owners = {}
        for path in sources("src"):
            if path.endswith(".h"):
                text = pathlib.Path(path).read_text()
                for symbol in re.findall(r"^extern\b[^;()]*?\b(kg_\w+)\s*[\[;]", text, re.MULTILINE):
                    owners[symbol] = path
        return owners

    def arrows(self):
        """(user, definer) -> symbols, between files of different names."""
        found = collections.defaultdict(list)
        for user in sorted(self.used):
            for symbol in sorted(self.used[user]):
                definer = self.defined.get(symbol)
                if definer and unit_of(definer) != unit_of(user):
                    found[user, definer].append(symbol)
        return found


def check_links(tree, objects):
    public = set(re.findall(r"\bkg_\w+(?=\()", pathlib.Path(PUBLIC_HEADER).read_text()))
    for (user, definer), symbols in objects.arrows().items():
        if user.startswith("cli/"):
            symbols = [symbol for symbol in symbols
                       if not definer.startswith("cli/") and symbol not in public]
            if symbols:
                tell("breach", f"links: {user} -> {definer} by {', '.join(symbols)}; the tool may "
                               "only use what kernelgen.h declares")
        elif definer.startswith("src/") and user.startswith("src/") and tree.stands_below(
                layer_of(definer), layer_of(user)):
            tell("breach", f"links: {user} -> {definer} by {', '.join(symbols)}, "
                           "whose layer stands below it")


# ---- Circles ----


def circles_of(arrows):
    """The sets of more than one unit that all reach one another (Tarjan), largest first."""
    after = collections.defaultdict(set)
    for start, end in arrows:
        after[start].add(end)
    number, lowest, stack, found = {}, {}, [], []

    def visit(unit):
        number[unit] = lowest[unit] = len(number)
        stack.append(unit)
        for other in sorted(after[unit]):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[unit] = min(lowest[unit], lowest[other])
        if lowest[unit] == number[unit]:
            circle = set(stack[stack.index(unit):])
            del stack[stack.index(unit):]
            if len(circle) > 1:
                found.append(circle)

    for unit in sorted(set(after)):
        if unit not in number:
            visit(unit)
    return sorted(found, key=lambda circle: (-len(circle), sorted(circle)))


def by_unit(arrows):
    """The same arrows between units: (user, definer) -> lines that say who needs what of whom."""
    found = collections.defaultdict(list)
    for (user, used), symbols in arrows.items():
        if user.startswith("src/") and used.startswith("src/") and unit_of(user) != unit_of(used):
            more = f" and {len(symbols) - 3} more" if len(symbols) > 3 else ""
            found[unit_of(user), unit_of(used)].append(
                f"{user} -> {used} by {', '.join(symbols[:3])}{more}")
    return found


def include_arrows():
    return {(path, f"src/{name}"): [f'"{name}"'] for path in sources("src")
            for _, name in includes_of(path) if os.path.isfile(f"src/{name}")}


def tell_circle(headline, circle, arrows):
    if {layer_of(unit) for unit in circle} <= CIRCLES_PENDING:
        tell("note", f"circles: {headline}, which is being worked on")
        return
    tell("breach", f"circles: {headline}: {', '.join(sorted(circle))}")
    for (start, end), lines in sorted(arrows.items()):
        if start in circle and end in circle:
            for line in lines:
                tell("detail", line)


def check_circles(objects):
    links = by_unit(objects.arrows())
    every = collections.defaultdict(list, {key: list(lines) for key, lines in links.items()})
    for key, lines in by_unit(include_arrows()).items():
        every[key] += lines
    for circle in circles_of(every):
        rooms = {room_of(unit) for unit in circle}
        if len(rooms) > 1:
            tell_circle(f"{len(circle)} files of {len(rooms)} rooms need one another", circle, every)
    inside = {key: lines for key, lines in links.items() if room_of(key[0]) == room_of(key[1])}
    for circle in circles_of(inside):
        if len(circle) > CIRCLE_LIMIT:
            room = room_of(min(circle))
            tell_circle(f"{len(circle)} files of {room} need one another, {CIRCLE_LIMIT} may",
                        circle, inside)


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    tree = Tree()
    rules = sys.argv[1:] or ["layers", "private", "links", "circles"]
    of_objects = [rule for rule in rules if rule in ("links", "circles")]
    objects = Objects().load(", ".join(of_objects)) if of_objects else None
    if "layers" in rules:
        check_layers(tree)
    if "private" in rules:
        check_private(tree)
    if objects and objects.read and "links" in rules:
        check_links(tree, objects)
    if objects and objects.read and "circles" in rules:
        check_circles(objects)


main()
