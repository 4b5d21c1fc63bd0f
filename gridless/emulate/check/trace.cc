#include "gridless/emulate/check/trace.h"

#include <fmt/format.h>

#include <algorithm>

namespace gridless::emulate {

int Trace::semaphore_site_of(int32_t semaphore) const {
  const int32_t k = semaphore % semaphores_per_core;
  int site = -1;
  for (int s = 0; s < sites; ++s)
    if (const int32_t base = semaphore_base[static_cast<size_t>(s)]; base >= 0 && base <= k)
      site = s;
  return site;
}

bool Trace::is_barrier(int32_t semaphore) const {
  return semaphore % semaphores_per_core ==
         semaphore_base[static_cast<size_t>(kernel->barrier_site())];
}

Point Trace::point(Node n) const {
  const int32_t in_launch = last[static_cast<size_t>(n.core)] / launches;
  const int launch = n.pos > in_launch ? 1 : 0;
  const auto k = static_cast<size_t>(n.pos - launch * in_launch - 1);
  return {.core = n.core, .launch = launch, .event = event_numbers[static_cast<size_t>(n.core)][k]};
}

Trace Trace::twice() const {
  Trace t = *this;
  t.launches = 2;
  t.events *= 2;
  std::vector<int32_t> waits_of(static_cast<size_t>(cores), 0);
  int64_t last_seq = 0;
  for (const WaitEvent& w : waits) ++waits_of[static_cast<size_t>(w.at.core)];
  for (const Access& a : accesses) last_seq = std::max(last_seq, a.seq);
  for (const Increment& e : increments) last_seq = std::max(last_seq, e.seq);
  for (const WaitEvent& w : waits) last_seq = std::max(last_seq, w.seq);
  const auto later = [&](Node n) {
    if (!n.known()) return n;
    n.pos += last[static_cast<size_t>(n.core)];
    n.waits += waits_of[static_cast<size_t>(n.core)];
    return n;
  };
  const int32_t all_semaphores = cores * semaphores_per_core;
  const auto other = [&](int32_t s) { return is_barrier(s) ? s : s + all_semaphores; };
  const auto accesses_before = static_cast<int32_t>(accesses.size());
  const auto increments_before = static_cast<int32_t>(increments.size());
  const auto copies_before = static_cast<int32_t>(copies.size());
  const auto moved = [](int32_t id, int32_t by) { return id < 0 ? id : id + by; };
  for (Access a : accesses) {
    a.at = later(a.at);
    a.seq += last_seq;
    a.memory += cores * sites;
    a.copy = moved(a.copy, copies_before);
    t.accesses.push_back(a);
  }
  t.semaphores.resize(semaphores.size() * 2);
  for (Increment e : increments) {
    e.issue = later(e.issue);
    e.seq += last_seq;
    e.semaphore = other(e.semaphore);
    e.copy = moved(e.copy, copies_before);
    t.semaphores[static_cast<size_t>(e.semaphore)].increments.push_back(
        static_cast<int32_t>(t.increments.size()));
    t.increments.push_back(e);
  }
  for (CopyEvent c : copies) {
    c.start = later(c.start);
    c.source += accesses_before;
    c.target += accesses_before;
    c.sent = moved(c.sent, increments_before);
    c.arrived = moved(c.arrived, increments_before);
    t.copies.push_back(c);
  }
  for (WaitEvent w : waits) {
    const auto& before = semaphores[static_cast<size_t>(w.semaphore)].waits;
    if (is_barrier(w.semaphore)) w.total += waits[static_cast<size_t>(before.back())].total;
    w.at = later(w.at);
    w.seq += last_seq;
    w.semaphore = other(w.semaphore);
    t.semaphores[static_cast<size_t>(w.semaphore)].waits.push_back(
        static_cast<int32_t>(t.waits.size()));
    t.waits.push_back(w);
  }
  for (size_t k = 0; k < snapshots.size(); ++k)
    t.snapshots.push_back(snapshots[k] + last[k % static_cast<size_t>(cores)]);
  for (SemaphoreRead r : reads) {
    r.at = later(r.at);
    r.seq += last_seq;
    r.semaphore = other(r.semaphore);
    t.reads.push_back(r);
  }
  for (const auto& list : lives) {
    t.lives.emplace_back();
    for (const Life& l : list) t.lives.back().push_back({later(l.begin), later(l.end)});
  }
  for (int32_t& l : t.last) l *= 2;
  return t;
}

namespace {
std::string site_name(const Kernel& kernel, int site) {
  const Site& s = kernel.sites[static_cast<size_t>(site)];
  if (!s.where.known() || site <= kernel.barrier_site()) return s.name;
  const char* what = s.name == "alloca" ? "the buffer" : "the semaphore";
  return fmt::format("{} of {}", what, s.where.str());
}
}  // namespace

std::string Trace::semaphore_name(int32_t semaphore) const {
  const int site = semaphore_site_of(semaphore);
  std::string name = site_name(*kernel, site);
  if (kernel->sites[static_cast<size_t>(site)].type.num_elements() > 1)
    name += fmt::format(
        "[{}]", semaphore % semaphores_per_core - semaphore_base[static_cast<size_t>(site)]);
  return fmt::format("{} on core {}", name, owner(semaphore));
}

std::string Trace::memory_name(int32_t memory) const {
  return fmt::format("{} on core {}", site_name(*kernel, site_of(memory)), core_of(memory));
}

std::string Trace::iteration(int32_t iteration) const {
  const auto values = counters_of(iteration);
  if (values.empty()) return "";
  return fmt::format(" (iteration {})", fmt::join(values, ", "));
}

std::string Trace::where(const Code& code) const {
  return code.op->loc.str() + iteration(code.iteration);
}

}  // namespace gridless::emulate
