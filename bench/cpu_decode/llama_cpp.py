"""Sets up the other engine: llama.cpp as the sdist of llama-cpp-python carries it, built for this
machine (-march=native, OpenMP) into static libraries, and our token loop linked with it.

Everything lies in one scratch folder and nothing is installed; what is there already is used again.
The build takes about 5 minutes of CPU time.
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "scripts"))
import fetch_wheels  # the index, mirror and proxy rules of the other downloads

VERSION = "0.3.36"
ARCHIVE = f"llama_cpp_python-{VERSION}.tar.gz"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
OFF = ["BUILD_SHARED_LIBS", "LLAMA_CURL", "LLAMA_OPENSSL", "LLAMA_BUILD_COMMON",
       "LLAMA_BUILD_TESTS", "LLAMA_BUILD_EXAMPLES", "LLAMA_BUILD_TOOLS", "LLAMA_BUILD_SERVER",
       "LLAMA_BUILD_APP", "LLAMA_BUILD_UI"]


def say(text):
    print(f"cpu_decode: {text}", file=sys.stderr, flush=True)


def command(log, *words):
    with open(log, "ab") as out:
        if subprocess.run([str(w) for w in words], stdout=out, stderr=out).returncode != 0:
            sys.exit(f"cpu_decode: {words[0]} failed, see {log}")


def fetch(scratch):
    folder = scratch / "dl"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / ARCHIVE
    if not archive.exists() or fetch_wheels.sha256(archive) != SHA256:
        say(f"fetching {ARCHIVE} (77 MB)")
        why = fetch_wheels.fetch_with_urllib("llama-cpp-python", ARCHIVE, folder)
        if why is None and fetch_wheels.sha256(archive) != SHA256:
            why = "its sha256 is not the one this script knows"
        if why is not None:
            sys.exit(f"cpu_decode: {ARCHIVE} could not be fetched: {why}")
    source = scratch / ARCHIVE.removesuffix(".tar.gz")
    if not (source / "unpacked").exists():
        say("unpacking")
        command(scratch / "unpack.log", "tar", "-xzf", archive, "-C", scratch)
        (source / "unpacked").touch()
    return source / "vendor" / "llama.cpp"


def set_up(scratch, jobs=None):
    """Returns the path of llama_loop."""
    source, build = fetch(scratch), scratch / "build"
    libraries = [build / p for p in ("src/libllama.a", "ggml/src/libggml.a",
                                     "ggml/src/libggml-cpu.a", "ggml/src/libggml-base.a")]
    if not (build / "complete").exists():
        say("building llama.cpp (some minutes)")
        log = scratch / "build.log"
        command(log, "cmake", "-G", "Ninja", "-S", source, "-B", build,
                "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", *[f"-D{o}=OFF" for o in OFF])
        command(log, "ninja", "-C", build, "-j", jobs or os.cpu_count(), "llama")
        (build / "complete").touch()
    loop = scratch / "llama_loop"
    inputs = [HERE / "llama_loop.cc", HERE / "loop.h", *libraries]
    if not loop.exists() or loop.stat().st_mtime < max(f.stat().st_mtime for f in inputs):
        command(scratch / "loop.log", "g++", "-O2", "-std=c++20", f"-I{source}/include",
                f"-I{source}/ggml/include", HERE / "llama_loop.cc", "-o", loop, *libraries,
                "-fopenmp", "-pthread", "-ldl")
    return loop

