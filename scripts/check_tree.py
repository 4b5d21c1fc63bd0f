#!/usr/bin/env python3
"""The rules of the tree that no compiler knows. Prints one line per breach; exit status 1 if any.

usage: check_tree.py SOURCE_DIR

- A room (folder of gridless/) includes only the rooms that CMakeLists.txt grants it, and what those
  are granted; nothing under gridless/ includes apps/, kernels/, tests/ or bench/.
- No source file is longer than 600 lines.
- No note to self is left in a file.
- No tracked file is larger than 1 MB, test data apart (8 MB each).
"""
import pathlib
import re
import subprocess
import sys

MAX_LINES = 600
MAX_BYTES = 1_000_000
MAX_DATA_BYTES = 8_000_000
SOURCE = (".cc", ".h", ".py", ".sh", ".cmake")
# In two pieces, so that this file passes its own check.
NOTES = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def granted_rooms(cmake):
    """{room: every room it may include, itself among them}, from the gridless_room() lines."""
    direct = {}
    for name, rest in re.findall(r"^gridless_room\((\w+)([^)]*)\)", cmake, re.MULTILINE):
        direct[name] = [word for word in rest.split() if word in direct]
    closed = {}
    for name, rooms in direct.items():  # in order, so what a room depends on is closed already
        closed[name] = {name}.union(*(closed[room] for room in rooms))
    return closed


def check_includes(name, text, granted):
    room = name.split("/")[1]
    if room not in granted:
        yield f"{name}: CMakeLists.txt has no gridless_room({room} ...)"
        return
    for path in INCLUDE.findall(text):
        parts = path.split("/")
        if parts[0] in ("apps", "kernels", "tests", "bench"):
            yield f"{name}: includes {path}; gridless/ stands on its own"
        elif parts[0] == "gridless" and parts[1] not in granted[room]:
            yield (f"{name}: includes {path}, but {room} may only use "
                   f"{', '.join(sorted(granted[room]))} (gridless_room in CMakeLists.txt)")


def check_file(source, name, granted):
    path = source / name
    size = path.stat().st_size
    data = name.startswith("tests/data/")
    if size > (MAX_DATA_BYTES if data else MAX_BYTES):
        yield f"{name}: {size} bytes; keep tracked files small"
    if data or (name.startswith("docs/images/") and name.endswith(".png")):
        return
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        yield f"{name}: is not UTF-8 text; binary files belong in tests/data/, PNG in docs/images/"
        return
    if name.endswith(SOURCE) and text.count("\n") > MAX_LINES:
        yield f"{name}: {text.count(chr(10))} lines; split it at {MAX_LINES}"
    for number, line in enumerate(text.splitlines(), 1):
        if NOTES.search(line):
            yield f"{name}:{number}: a note to self; do it or file an issue"
    if name.startswith("gridless/"):
        yield from check_includes(name, text, granted)


def main():
    source = pathlib.Path(sys.argv[1])
    listing = subprocess.run(["git", "-C", source, "ls-files", "-z"], capture_output=True, text=True)
    if listing.returncode != 0:
        sys.exit("dev: check needs the git repository")
    granted = granted_rooms((source / "CMakeLists.txt").read_text())
    names = [n for n in listing.stdout.split("\0") if n and (source / n).is_file()]
    breaches = [line for name in names for line in check_file(source, name, granted)]
    for line in breaches:
        print(line)
    print(f"dev: rules of the tree: {len(names)} files, {len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
