#!/usr/bin/env python3
"""Prints the .cc files that `./dev check` lints, one a line.

usage: changed_sources.py SOURCE_DIR [--all]

Without --all: those that differ from the main branch (or from origin/main where that is known),
uncommitted and untracked ones included; a changed header brings in the .cc file of its name. Files
of one instruction set (*_avx*.cc) are left to the compiler: they are intrinsics from end to end.
"""
import pathlib
import subprocess
import sys


def git(source, *arguments):
    result = subprocess.run(["git", "-C", source, *arguments], capture_output=True, text=True)
    return result.stdout.splitlines() if result.returncode == 0 else None


def main():
    source = sys.argv[1]
    if sys.argv[2:] not in ([], ["--all"]):
        sys.exit(f"dev: check takes only --all, not {' '.join(sys.argv[2:])}")
    tracked = git(source, "ls-files")
    if tracked is None:
        sys.exit("dev: check needs the git repository")
    new = git(source, "ls-files", "--others", "--exclude-standard")
    names = set(tracked + new)
    if not sys.argv[2:]:
        base = git(source, "merge-base", "HEAD", "origin/main") or git(
            source, "merge-base", "HEAD", "main") or ["HEAD"]
        names = set(git(source, "diff", "--name-only", base[0]) + new)
    sources = {name.removesuffix(".h") + ".cc" if name.endswith(".h") else name for name in names}
    for name in sorted(sources):
        if name.endswith(".cc") and "_avx" not in name and pathlib.Path(source, name).exists():
            print(name)


if __name__ == "__main__":
    main()
