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

}  // namespace gridless::emulate
