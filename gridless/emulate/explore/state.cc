#include "gridless/emulate/explore/state.h"

#include <algorithm>
#include <cstring>

namespace gridless::emulate {

Keeper::Keeper(Stepper& stepper, Watch& watch) : stepper_(stepper), watch_(watch) {
  Machine& m = stepper.machine();
  const auto add = [&](std::span<std::byte> bytes, int core, bool result) {
    if (bytes.empty()) return;
    for (Memory& known : memories_)
      if (known.bytes.data() == bytes.data()) {
        known.result |= result;
        return;
      }
    memories_.push_back({bytes, core, result});
  };
  for (Core& core : m.cores) {
    for (Buffer& b : core.buffers) {
      if (!b.read_only) add(b.data, core.id, false);
      for (Semaphore& s : b.semaphores) semaphores_.push_back(&s);
    }
    for (std::span<std::byte> r : stepper.launch().memory()[static_cast<size_t>(core.id)].results)
      add(r, core.id, true);
  }
  cores_.resize(m.cores.size());
  saved_.resize(memories_.size());
}

void Keeper::touched(int core) { cores_[static_cast<size_t>(core)].reset(); }

void Keeper::touched(const std::byte* memory) {
  for (size_t k = 0; k < memories_.size(); ++k)
    if (memories_[k].bytes.data() == memory) saved_[k].reset();
}

void Keeper::touched_all_of(int core) {
  touched(core);
  for (size_t k = 0; k < memories_.size(); ++k)
    if (memories_[k].core == core) saved_[k].reset();
}

std::shared_ptr<const CoreState> Keeper::save_core(size_t c) const {
  const Core& core = stepper_.machine().cores[c];
  auto s = std::make_shared<CoreState>();
  if (core.frame) s->frame = *core.frame;
  s->state = core.state;
  s->launch = core.launch;
  s->events = core.events;
  s->copies = core.copies;
  s->mxus = core.mxus;
  s->prng_key = core.prng_key;
  s->prng_count = core.prng_count;
  s->grid = core.grid;
  if (Grid* grid = stepper_.launch().grid(c)) s->position = grid->position();
  s->next = stepper_.next_of(core.id);
  s->lives = watch_.lives[c];
  return s;
}

void Keeper::restore_core(size_t c, const CoreState& from) {
  Core& core = stepper_.machine().cores[c];
  core.frame = from.frame ? std::make_unique<Frame>(*from.frame) : nullptr;
  core.state = from.state;
  core.launch = from.launch;
  core.events = from.events;
  core.copies = from.copies;
  core.mxus = from.mxus;
  core.prng_key = from.prng_key;
  core.prng_count = from.prng_count;
  core.grid = from.grid;
  if (Grid* grid = stepper_.launch().grid(c); grid && from.frame) grid->restore(from.position);
  stepper_.next_of(core.id) = from.next;
  watch_.lives[c] = from.lives;
}

State Keeper::save() {
  const Machine& m = stepper_.machine();
  for (size_t c = 0; c < cores_.size(); ++c)
    if (!cores_[c]) cores_[c] = save_core(c);
  for (size_t k = 0; k < saved_.size(); ++k) {
    if (saved_[k]) continue;
    auto s = std::make_shared<MemoryState>();
    s->bytes.assign(memories_[k].bytes.begin(), memories_[k].bytes.end());
    s->hash.mix(std::span<const std::byte>(s->bytes));
    saved_[k] = std::move(s);
  }
  State state{.cores = cores_,
              .memories = saved_,
              .counts = {},
              .in_flight = m.in_flight,
              .flights = watch_.flights,
              .early = watch_.early,
              .hash = {}};
  for (const Semaphore* s : semaphores_) state.counts.push_back(s->count);
  state.hash = hash(state);
  return state;
}

void Keeper::restore(const State& state) {
  for (size_t c = 0; c < cores_.size(); ++c) {
    if (cores_[c] == state.cores[c]) continue;
    restore_core(c, *state.cores[c]);
    cores_[c] = state.cores[c];
  }
  for (size_t k = 0; k < saved_.size(); ++k) {
    if (saved_[k] == state.memories[k]) continue;
    std::memcpy(memories_[k].bytes.data(), state.memories[k]->bytes.data(),
                memories_[k].bytes.size());
    saved_[k] = state.memories[k];
  }
  for (size_t k = 0; k < semaphores_.size(); ++k) semaphores_[k]->count = state.counts[k];
  stepper_.machine().in_flight = state.in_flight;
  watch_.flights = state.flights;
  watch_.early = state.early;
}

// A core's position and all that it has read decide what its frame holds.
Hash Keeper::hash(const State& state) const {
  Hash h;
  for (const auto& core : state.cores) {
    h.mix(static_cast<uint64_t>(core->lives.entered) << 32 |
          static_cast<uint64_t>(core->lives.left));
    h.mix(static_cast<uint64_t>(core->events));
    h.mix(core->lives.history);
  }
  for (const auto& memory : state.memories) h.mix(memory->hash);
  for (int64_t n : state.counts) h.mix(static_cast<uint64_t>(n));
  Hash set;
  for (const InFlight& f : state.in_flight) {
    Hash one;
    one.mix(static_cast<uint64_t>(f.copy->core) << 32 | static_cast<uint64_t>(f.launch));
    one.mix(static_cast<uint64_t>(f.number) << 8 | static_cast<uint64_t>(f.read));
    if (f.staged) one.mix(std::span<const std::byte>(f.staged->data));
    set.add(one);
  }
  for (const Early& e : state.early) {
    Hash one;
    one.mix(static_cast<uint64_t>(e.owner) << 32 | static_cast<uint64_t>(e.site));
    one.mix(static_cast<uint64_t>(e.life) << 32 | static_cast<uint64_t>(e.from));
    set.add(one);
  }
  h.mix(set);
  return h;
}

Hash Keeper::results() const {
  Hash h;
  for (const Memory& m : memories_)
    if (m.result) h.mix(m.bytes);
  return h;
}

}  // namespace gridless::emulate
