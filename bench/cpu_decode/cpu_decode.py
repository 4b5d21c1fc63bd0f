#!/usr/bin/env python3
"""Decode speed at batch 1 beside llama.cpp: the same files, the same machine, the same minute.

usage: cpu_decode.py [SCRATCH] [--pairs N] [--tokens N] [--quick] [--formats bf16,q8_0,q4_0]
                     [--threads 1,2] [--contexts 32,512] [--json FILE] [--loop PATH] [--realtime]

SCRATCH (default build/bench) receives llama.cpp, built once, and the models. Both engines load the
same GGUF file and take turns, a burst of tokens each; the ratio counts per pair of bursts. With one
thread the time is CPU time of the process, which leaves out what other processes took; with more it
is wall time, the least of a burst. Before a number counts, the outputs are compared: on a real
model (SmolLM2, by `./dev build`'s wheel) and on the timed one. docs/benchmarks.md says more.

Exit status: 0 measured; 1 an input is missing or outputs differ.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True  # no files beside the sources
import llama_cpp
import synth
from llama_cpp import say

ROOT = llama_cpp.HERE.parents[1]
TARGET = 1.2
SMOLLM2 = ROOT / "build/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = ("The tide comes in twice a day because the Moon pulls on the water of the oceans. When the "
        "Moon is above a coast, the water there rises; six hours later it has fallen again. "
        "Fishermen have known this for thousands of years, long before anybody could say why it "
        "happens.")


class Loop:
    """A running token loop; commands in loop.h."""

    def __init__(self, program, model, threads, **environment):
        self.process = subprocess.Popen(
            [program, model, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=os.environ | environment)
        self.facts = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"cpu_decode: {self.process.args[0]} ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.answer()

    def burst(self, tokens, realtime):
        """Times of so many tokens. In real time they run ahead of every other job: half a second
        in which the rest of a busy machine stands still."""
        if realtime:
            self.schedule(os.SCHED_RR, 1)
        times = self.ask(f"tokens {tokens}")
        if realtime:
            self.schedule(os.SCHED_OTHER, 0)
        return times

    def schedule(self, policy, priority):
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            os.sched_setscheduler(int(thread), policy, os.sched_param(priority))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def machine_ticks():
    fields = [int(f) for f in open("/proc/stat").readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def cosine(a, b):
    mean_a, mean_b = statistics.fmean(a), statistics.fmean(b)
    a, b = [x - mean_a for x in a], [x - mean_b for x in b]
    dot = lambda x, y: sum(s * t for s, t in zip(x, y))
    return dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def compare(ours, theirs, ids, what, real):
    """Teacher-forced on `ids`: finite, the same likeliest token wherever it leads clearly in both,
    and logits that correlate. Clearly = by 0.5 of a logit on a real model; 4-bit weights with 8-bit
    activations, as llama.cpp has them, move logits by less. A random model has no clear winners."""
    command = "forced " + " ".join(str(i) for i in ids)
    a, b = ours.ask(command), theirs.ask(command)
    if not (a["finite"] and b["finite"]):
        sys.exit(f"cpu_decode: {what}: logits are not finite")
    same = sum(x == y for x, y in zip(a["top"], b["top"]))
    clear = [i for i in range(len(ids)) if min(a["lead"][i], b["lead"][i]) > 0.5]
    wrong = [i for i in clear if a["top"][i] != b["top"][i]]
    correlation = cosine(a["sample"], b["sample"])
    say(f"{what}: top-1 equal at {same} of {len(ids)} positions, {len(clear)} of them clear; "
        f"correlation of logits {correlation:.5f}")
    if wrong or correlation < 0.98 or (real and same < 0.8 * len(ids)):
        sys.exit(f"cpu_decode: {what}: the engines disagree (clear positions {wrong})")
    return {"what": what, "positions": len(ids), "equal": same, "correlation": correlation}


class Bench:
    def __init__(self, options):
        self.options = options
        self.scratch = pathlib.Path(options.scratch).resolve()
        self.checks, self.rows = [], []
        self.read = {}  # bytes per second by threads

    def prepare(self):
        self.llama = llama_cpp.set_up(self.scratch, self.options.jobs)
        self.models = self.scratch / "models"
        self.models.mkdir(exist_ok=True)
        big = self.models / "big.bf16.gguf"
        if not big.exists():
            say("writing the synthetic model (1.6 GB)")
            synth.write(big)
        if not SMOLLM2.exists():
            sys.exit(f"cpu_decode: {SMOLLM2} is missing; ./dev build fetches it")
        for form in self.options.formats:
            for source, name in ((big, "big"), (SMOLLM2, "smollm2")):
                path = self.models / f"{name}.{form}.gguf"
                if path.exists():
                    continue
                say(f"converting to {path.name}")
                part = path.with_suffix(".part")
                llama_cpp.command(self.scratch / "quantize.log", self.llama, "quantize", source,
                                  part, form)
                part.rename(path)

    def pair(self, model, threads):
        """Both engines on a model. Which way of waiting suits llama.cpp depends on how busy the
        machine is: it gets the better one."""
        ours = Loop(self.options.loop, model, threads)
        if threads == 1:
            return ours, Loop(self.llama, model, threads)
        best = None
        for policy in ("active", "passive"):
            theirs = Loop(self.llama, model, threads, OMP_WAIT_POLICY=policy)
            theirs.ask("context 32")
            theirs.ask("tokens 2")
            least = min(theirs.burst(6, self.realtime(threads))["wall_ms"])
            theirs.policy = policy
            if best is None or least < best[0]:
                if best:
                    best[1].close()
                best = (least, theirs)
            else:
                theirs.close()
        say(f"llama.cpp with {threads} threads: OMP_WAIT_POLICY={best[1].policy}")
        return ours, best[1]

    def realtime(self, threads):
        """CPU time of one thread needs no help."""
        return self.options.realtime and threads > 1

    def read_rate(self, threads):
        """The best of a few: one try of half a second may meet no quiet moment."""
        first = None
        if self.realtime(threads):
            first = lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        tries = [subprocess.run([self.options.loop, "bandwidth", str(threads)], text=True,
                                check=True, capture_output=True, preexec_fn=first).stdout
                 for _ in range(1 if first else 3)]
        return max(map(float, tries))

    def check_real(self, form):
        model = self.models / f"smollm2.{form}.gguf"
        words = subprocess.run([self.llama, "tokenize", SMOLLM2, TEXT], capture_output=True,
                               text=True, check=True).stdout.split()
        ours, theirs = self.pair(model, 1)
        self.checks.append(compare(ours, theirs, words, f"SmolLM2 {form}", real=True))
        ours.close()
        theirs.close()

    def measure(self, form, threads):
        ours, theirs = self.pair(self.models / f"big.{form}.gguf", threads)
        what = f"synthetic {form}, {threads} thread{'s' if threads > 1 else ''}"
        self.checks.append(compare(ours, theirs, range(40, 56), what, real=False))
        for context in self.options.contexts:
            for loop in (ours, theirs):
                loop.ask(f"context {context}")
                loop.ask("tokens 2")
            clock = "cpu_ms" if threads == 1 else "wall_ms"
            of_burst = statistics.median if threads == 1 else min
            times = ([], [])
            for n in range(self.options.pairs):
                turn = [(ours, times[0]), (theirs, times[1])]
                for loop, list_ in turn if n % 2 == 0 else reversed(turn):
                    list_.append(loop.burst(self.options.tokens, self.realtime(threads))[clock])
            ratios = [of_burst(b) / of_burst(a) for a, b in zip(*times)]
            # Our stream holds each weight once; llama.cpp's file does too (the head is tied).
            bytes_ = ours.facts["weight_bytes"] + synth.kv_bytes(context + 1)
            row = {"format": form, "threads": threads, "context": context, "clock": clock,
                   "gridless_ms": [min(map(min, times[0])), statistics.median(sum(times[0], []))],
                   "llama_cpp_ms": [min(map(min, times[1])), statistics.median(sum(times[1], []))],
                   "ratio": [statistics.median(ratios), min(ratios), max(ratios)],
                   "bytes_per_token": bytes_, "pairs": len(ratios)}
            row["gb_per_s"] = 1e-6 * bytes_ / row["gridless_ms"][0]
            row["read_gb_per_s"] = 1e-9 * self.read[threads]
            row["fraction"] = row["gb_per_s"] / row["read_gb_per_s"]
            row["holds"] = row["ratio"][0] >= TARGET
            self.rows.append(row)
            print(line(row), flush=True)
        ours.close()
        theirs.close()


HEAD = ("format threads context | gridless ms: least median | llama.cpp ms: least median | "
        "ratio (min .. max)      | MB/token  GB/s  of read")


def line(r):
    return (f"{r['format']:<6} {r['threads']:>7} {r['context']:>7} | {r['gridless_ms'][0]:>18.2f} "
            f"{r['gridless_ms'][1]:>6.2f} | "
            f"{r['llama_cpp_ms'][0]:>19.2f} {r['llama_cpp_ms'][1]:>6.2f} | "
            f"{r['ratio'][0]:.2f} ({r['ratio'][1]:.2f} .. {r['ratio'][2]:.2f}) "
            f"{'>= 1.2' if r['holds'] else ' < 1.2'} | {1e-6 * r['bytes_per_token']:>8.1f} "
            f"{r['gb_per_s']:>5.1f} {100 * r['fraction']:>6.0f}%")


def processor():
    for text in open("/proc/cpuinfo"):
        if text.startswith("model name"):
            return text.split(":", 1)[1].strip()
    return platform.machine()


def arguments():
    numbers = lambda text: [int(n) for n in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scratch", nargs="?", default=ROOT / "build/bench")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of bursts per row (7)")
    parser.add_argument("--tokens", type=int, default=8, help="tokens of a burst (8)")
    parser.add_argument("--quick", action="store_true", help="3 pairs of 5 tokens")
    parser.add_argument("--formats", type=lambda t: t.split(","), default=["bf16", "q8_0", "q4_0"])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--contexts", type=numbers, default=[32, 512])
    parser.add_argument("--json", help="also write the figures there")
    parser.add_argument("--loop", default=ROOT / "build/release/gridless_loop",
                        help="our token loop")
    parser.add_argument("--jobs", type=int, help="jobs of the llama.cpp build (all processors)")
    parser.add_argument("--realtime", action="store_true",
                        help="wall times in bursts ahead of every other job (root)")
    options = parser.parse_args()
    if options.quick:
        options.pairs, options.tokens = 3, 5
    return options


def main():
    options = arguments()
    if not pathlib.Path(options.loop).exists():
        sys.exit(f"cpu_decode: {options.loop} is not built: cmake --build --preset release")
    bench = Bench(options)
    bench.prepare()
    print(f"{datetime.date.today()}, {processor()}, {os.cpu_count()} processors\n{HEAD}",
          flush=True)
    bench.read = {threads: bench.read_rate(threads) for threads in options.threads}
    began, (busy, total) = os.times(), machine_ticks()
    for form in options.formats:
        bench.check_real(form)
        for threads in options.threads:
            bench.measure(form, threads)
    ended, (busy_end, total_end) = os.times(), machine_ticks()
    own = (ended.children_user + ended.children_system - began.children_user -
           began.children_system) * os.sysconf("SC_CLK_TCK")
    others = max(0.0, busy_end - busy - own) / max(1, total_end - total)
    held = [r for r in bench.rows if r["holds"]]
    print(f"{len(held)} of {len(bench.rows)} rows reach {TARGET} times llama.cpp; "
          f"others took {100 * others:.0f} % of the processors meanwhile")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {"date": str(datetime.date.today()), "processor": processor(), "others": others,
             "llama_cpp": llama_cpp.VERSION, "checks": bench.checks, "rows": bench.rows}, indent=1))


if __name__ == "__main__":
    main()
