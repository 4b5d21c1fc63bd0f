// Copies and signals of a Simulation.
#include <algorithm>

#include "gridless/emulate/contents.h"
#include "gridless/time/simulation.h"

namespace gridless::time {
namespace {

using emulate::Transfer;

constexpr double kNoLimit = 1e18;  // bytes per nanosecond

bool in_hbm(const emulate::View& v) {
  const ir::Space s = v.buffer->type.space();
  return s == ir::Space::kHbm || s == ir::Space::kAny || s == ir::Space::kHost;
}

// The bytes lie in one piece, counted in whole tiles: a block of all columns of a matrix.
bool one_piece(const emulate::View& v) { return v.contiguous(); }

}  // namespace

void Simulation::add_resources() {
  const chips::Links& links = placement_.links;
  const size_t devices = static_cast<size_t>(links.slice().cores());
  const auto limit = [](double rate) { return rate > 0 ? rate : kNoLimit; };
  for (size_t d = 0; d < devices; ++d) {
    hbm_.push_back(fluid_.add_resource(p_.hbm_core_rate));
    vmem_.push_back(fluid_.add_resource(p_.vmem_copy_rate));
    ici_core_.push_back(fluid_.add_resource(limit(p_.ici_core_rate)));
    if (d % 2 == 0) hbm_chip_.push_back(fluid_.add_resource(p_.hbm_chip_rate));
  }
  for (int l = 0; l < links.count(); ++l)
    links_.push_back(fluid_.add_resource(links.is_die_to_die(l) ? p_.die_rate : p_.ici_link_rate));
}

int Simulation::take_transit(Transit t) {
  if (free_transits_.empty()) {
    transits_.push_back(std::move(t));
    return static_cast<int>(transits_.size()) - 1;
  }
  const int k = free_transits_.back();
  free_transits_.pop_back();
  transits_[static_cast<size_t>(k)] = std::move(t);
  return k;
}

void Simulation::plan_local(Transit& t, const Transfer& copy) {
  const auto device = static_cast<size_t>(placement_.devices[static_cast<size_t>(t.from)]);
  const bool source = in_hbm(copy.src), target = in_hbm(copy.dst);
  t.work = static_cast<double>(copy.bytes);
  const bool strided = !one_piece(copy.src) || !one_piece(copy.dst);
  t.most = strided && p_.strided_copy_rate > 0 ? p_.strided_copy_rate : kNoLimit;
  if (!source && !target) {
    t.route = {vmem_[device]};
    return;
  }
  t.from_hbm_queue = true;
  clocks_[static_cast<size_t>(t.from)].outcome.hbm_bytes += copy.bytes * (source && target ? 2 : 1);
  t.route = {hbm_[device]};
  if (source && target) {
    // Read and written: two shares of the memory, which is faster at long copies.
    t.route.push_back(hbm_[device]);
    t.work *= p_.hbm_core_rate / p_.hbm_copy_rate;
  }
  // A chip that gives both cores their full rates needs no sharing.
  if (p_.hbm_chip_rate < 2 * p_.hbm_core_rate) t.route.push_back(hbm_chip_[device / 2]);
}

void Simulation::plan_message(Transit& t, bool from_hbm, bool to_hbm) {
  const int from = placement_.devices[static_cast<size_t>(t.from)];
  const int to = placement_.devices[static_cast<size_t>(t.to)];
  const chips::Links& links = placement_.links;
  t.message = true;
  for (const chips::Link l : links.route(from, to))
    t.route.push_back(links_[static_cast<size_t>(l)]);
  const bool same_chip = from / 2 == to / 2;
  t.most = same_chip ? kNoLimit : p_.ici_message_rate;
  if (!same_chip && p_.ici_core_rate > 0) t.route.push_back(ici_core_[static_cast<size_t>(from)]);
  t.latency = same_chip ? p_.die_latency_ns : p_.ici_latency_ns;
  if (links.hops(from, to) > 2) t.latency += p_.ici_far_latency_ns;
  if (from_hbm) t.route.push_back(hbm_[static_cast<size_t>(from)]);
  if (to_hbm) t.route.push_back(hbm_[static_cast<size_t>(to)]);
}

void Simulation::start_copy(CoreClock& clock, std::shared_ptr<const Transfer> copy) {
  Transit t{.copy = copy, .amount = copy->bytes, .from = copy->core, .to = copy->dst.buffer->core};
  if (copy->bytes == 0) return;
  const bool from_hbm = in_hbm(copy->src), to_hbm = in_hbm(copy->dst);
  Ns start = clock.now;
  if (t.to == t.from) {
    plan_local(t, *copy);
    t.sent = start;
    start += !t.from_hbm_queue    ? p_.vmem_copy_latency_ns
             : from_hbm && to_hbm ? p_.hbm_copy_latency_ns
                                  : p_.hbm_latency_ns;
  } else {
    plan_message(t, from_hbm, to_hbm);
    t.work = static_cast<double>(copy->bytes);
    const bool same_chip = placement_.devices[static_cast<size_t>(t.from)] / 2 ==
                           placement_.devices[static_cast<size_t>(t.to)] / 2;
    start = std::max(start, clock.engine_free);
    clock.engine_free = start + (same_chip ? p_.die_issue_ns : p_.ici_issue_ns);
    t.sent = clock.now;
    if (from_hbm) start += p_.hbm_latency_ns;
    ++clock.outcome.messages;
    clock.outcome.message_bytes += copy->bytes;
  }
  push(start, Item::Kind::kStart, take_transit(std::move(t)));
}

// A signal is a message without data.
void Simulation::start_signal(CoreClock& clock, int core, const emulate::Event& event) {
  Transit t{.signalled = event.semaphore,
            .amount = event.amount,
            .from = core,
            .to = event.semaphores->core,
            .sent = clock.now};
  Ns at = clock.now;
  if (t.to != t.from) {
    plan_message(t, false, false);
    at += t.latency;
  }
  push(at, Item::Kind::kArrive, take_transit(std::move(t)));
}

void Simulation::begin(int transit) {
  Transit& t = transits_[static_cast<size_t>(transit)];
  CoreClock& clock = clocks_[static_cast<size_t>(t.from)];
  if (t.from_hbm_queue) {
    if (p_.hbm_copies_at_once > 0 && clock.served >= p_.hbm_copies_at_once) {
      clock.queue.push_back(transit);
      return;
    }
    ++clock.served;
  }
  const Fluid::Flow flow = fluid_.start(now_, t.work, t.route, t.most);
  if (static_cast<size_t>(flow) >= flow_transit_.size())
    flow_transit_.resize(static_cast<size_t>(flow) + 1, -1);
  flow_transit_[static_cast<size_t>(flow)] = transit;
}

void Simulation::flow_over(int transit) {
  Transit& t = transits_[static_cast<size_t>(transit)];
  if (t.from_hbm_queue) {
    CoreClock& clock = clocks_[static_cast<size_t>(t.from)];
    --clock.served;
    if (!clock.queue.empty()) {
      const int next = clock.queue.front();
      clock.queue.pop_front();
      begin(next);
    }
  }
  draw({.kind = t.message ? Span::Kind::kMessage : Span::Kind::kCopy,
        .core = t.from,
        .to = t.to,
        .begin = t.sent,
        .end = now_ + t.latency,
        .bytes = t.copy->bytes,
        .where = t.copy->op->loc});
  if (t.copy->sent)
    count(*t.copy->sent, t.from, t.copy->bytes, {.message = t.message, .sent = t.sent});
  push(now_ + t.latency, Item::Kind::kArrive, transit);
}

void Simulation::land(const Transfer& copy) {
  // Scalars only: most memory has no data.
  copy_view(copy.src, copy.dst);
  emulate::copy_contents(copy.src, copy.dst);
}

void Simulation::arrive(int transit) {
  const Transit t = std::move(transits_[static_cast<size_t>(transit)]);
  transits_[static_cast<size_t>(transit)] = {};
  free_transits_.push_back(transit);
  if (t.copy) land(*t.copy);
  count(t.copy ? *t.copy->arrived : *t.signalled, t.to, t.amount,
        {.message = t.message, .sent = t.sent});
}

}  // namespace gridless::time
