#include "gridless/emulate/machine.h"

namespace gridless::emulate {

void DmaEngine::start(Transfer t) {
  const auto id = static_cast<int64_t>(transfers_.size());
  transfers_.push_back(std::move(t));
  Transfer& in_flight = transfers_.back();
  in_flight.arrived->pending.push_back(id);
  if (in_flight.sent) in_flight.sent->pending.push_back(id);
}

void DmaEngine::perform(Transfer& t) {
  if (t.done) return;
  t.done = true;
  copy_view(t.src, t.dst);
  t.arrived->count += t.bytes;
  if (t.sent) t.sent->count += t.bytes;
}

void DmaEngine::advance(Semaphore& s, int64_t need) {
  while (s.count < need && !s.pending.empty()) {
    perform(transfers_[static_cast<size_t>(s.pending.front())]);
    s.pending.pop_front();
  }
}

std::vector<const Transfer*> DmaEngine::finish() {
  std::vector<const Transfer*> late;
  for (Transfer& t : transfers_) {
    if (t.done) continue;
    perform(t);
    late.push_back(&t);
  }
  return late;
}

namespace {

// Part `k` of `parts`: rows of the first dimension that has enough of them.
View part_of(const View& v, int k, int parts) {
  Shape starts(v.shape.size(), 0), sizes = v.shape;
  size_t d = 0;
  while (d < sizes.size() && sizes[d] < parts) ++d;
  if (d == sizes.size()) {
    // Too small to divide: the last part is all of it.
    if (k + 1 < parts && !sizes.empty()) sizes[0] = 0;
    return k + 1 < parts && sizes.empty() ? View() : slice(v, starts, sizes);
  }
  starts[d] = v.shape[d] * k / parts;
  sizes[d] = v.shape[d] * (k + 1) / parts - starts[d];
  return slice(v, starts, sizes);
}

void copy_part(const View& src, const View& dst, int k, int parts) {
  const View from = part_of(src, k, parts);
  if (from.buffer && from.num_elements() > 0) copy_view(from, part_of(dst, k, parts));
}

void add(Semaphore* s, int64_t& given, int64_t total) {
  if (!s || given >= total) return;
  s->count += total - given;
  given = total;
}

}  // namespace

void InFlight::count_early() {
  add(copy->sent, sent, copy->bytes - 1);
  add(copy->arrived, arrived, copy->bytes - 1);
}

void InFlight::read_part() {
  // Snapshots of the machine may share what was staged so far.
  auto next = std::make_shared<Buffer>();
  if (staged) {
    next->type = staged->type;
    next->owned = staged->owned;
    next->data = next->owned;
  } else {
    next->type = Type::memref(copy->src.shape, copy->src.elem, ir::Space::kVmem);
    next->allocate();
  }
  copy_part(copy->src, whole(*next), read, parts);
  staged = std::move(next);
  if (++read == parts) add(copy->sent, sent, copy->bytes);
}

void InFlight::land_part() {
  copy_part(whole(*staged), copy->dst, landed, parts);
  if (++landed == parts) add(copy->arrived, arrived, copy->bytes);
}

}  // namespace gridless::emulate
