#include "gridless/decode/runner.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <thread>

#include "gridless/base/check.h"
#include "gridless/cpu/engine.h"
#include "gridless/emulate/emulator.h"

namespace gridless::decode {

namespace {

using blocks::kLanes;
using blocks::kPageTokens;
using emulate::CoreMemory;

// Page-aligned zeroed memory in huge pages where the system has them: weights are read once per
// step, and a TLB miss per 4 kB would cost more than the read.
class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes) : bytes_(std::max<size_t>(bytes, 64)) {
    void* p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    GRIDLESS_CHECK(p != MAP_FAILED, "no memory for {} bytes", bytes_);
    madvise(p, bytes_, MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(p);
  }
  ~Memory() {
    if (data_) munmap(data_, bytes_);
  }
  Memory(Memory&& o) noexcept : data_(std::exchange(o.data_, nullptr)), bytes_(o.bytes_) {}
  Memory& operator=(Memory&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  std::span<std::byte> bytes() const { return {data_, bytes_}; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

Error from_diagnostics(const Diagnostics& d) { return {Error::Kind::kMachine, to_string(d)}; }

}  // namespace

class StepRunner::Impl {
 public:
  RunnerOptions options;
  models::LlamaConfig config;
  models::LlamaSharding sharding;
  models::LlamaFormats formats{};
  models::StepShape shape;
  weights::StreamLayout layout;

  Result<void> set_up() {
    TRY(sharding, models::shard_llama(config, options.cores));
    if (options.context < 1) return input_error("a context of {} tokens", options.context);
    shape.slots = options.slots;
    shape.slot_pages = (options.context + kPageTokens - 1) / kPageTokens;
    shape.pages = shape.slots * shape.slot_pages;
    shape.format = options.format.value_or(formats.layers);
    shape.head_format = options.format.value_or(formats.head);
    formats = {shape.format, shape.head_format};
    layout = models::llama_stream(config, sharding, shape);
    const auto cores = static_cast<size_t>(options.cores);
    for (size_t c = 0; c < cores; ++c) {
      images.emplace_back(static_cast<size_t>(layout.total_bytes()));
      kv.emplace_back(static_cast<size_t>(config.layers * shape.pages * 2 * kPageTokens *
                                          sharding.heads.padded() * 2));
    }
    frequencies = models::rope_lanes(config, sharding.heads);
    table = std::vector<int32_t>(static_cast<size_t>(shape.slots * shape.slot_pages), 0);
    keep = std::vector<int32_t>(static_cast<size_t>(shape.slots), 0);
    pages_of = std::vector<std::vector<int32_t>>(static_cast<size_t>(shape.slots));
    for (int64_t p = shape.pages; p > 0; --p) free_pages.push_back(static_cast<int32_t>(p - 1));
    return {};
  }

  // The program of one row count, with what only it needs.
  struct Launch {
    ir::Program program;
    int64_t rows = 0;
    std::vector<int32_t> table;
    struct Core {
      std::vector<float> candidate_logits;
      std::vector<int32_t> candidate_ids;
      std::vector<float> logits;
    };
    std::vector<Core> cores;
    std::vector<CoreMemory> memory;
    std::unique_ptr<cpu::Engine> engine;
    std::optional<emulate::Emulator> emulator;
  };

  Result<Launch*> launch_for(int64_t rows) {
    int64_t r = 1;
    while (r < rows) r *= 2;
    if (const auto it = launches.find(r); it != launches.end()) return it->second.get();
    models::StepShape s = shape;
    s.rows = r;
    auto program = models::llama_step(config, sharding, s, layout);
    if (!program) return std::unexpected(from_diagnostics(program.error()));
    auto l = std::make_unique<Launch>();
    l->program = std::move(*program);
    l->rows = r;
    l->table.resize(static_cast<size_t>(blocks::kRowFields * r));
    l->cores.resize(static_cast<size_t>(options.cores));
    for (size_t c = 0; c < l->cores.size(); ++c) {
      Launch::Core& core = l->cores[c];
      core.candidate_logits.resize(static_cast<size_t>(r * kLanes));
      core.candidate_ids.resize(static_cast<size_t>(r * kLanes));
      core.logits.resize(static_cast<size_t>(layout.tail[0].panels * r * kLanes));
      const auto kv_bytes = kv_span(c);
      // In the order of the step program's operands and results.
      l->memory.push_back(
          {.operands = {bytes(l->table), bytes(table), bytes(keep), bytes(embedding), bytes(norms),
                        bytes(frequencies), image_span(c), kv_bytes},
           .results = {kv_bytes, writable(core.candidate_logits), writable(core.candidate_ids),
                       writable(core.logits)}});
    }
    if (options.engine == EngineKind::kCpu) {
      auto engine = cpu::Engine::create(l->program, l->memory,
                                        {.threads = options.threads, .isa = options.isa});
      if (!engine) return std::unexpected(from_diagnostics(engine.error()));
      l->engine = std::move(*engine);
    } else {
      auto emulator = emulate::Emulator::create(l->program.module, l->program.call);
      if (!emulator) return std::unexpected(from_diagnostics(emulator.error()));
      l->emulator.emplace(std::move(*emulator));
    }
    return (launches[r] = std::move(l)).get();
  }

  template <typename T>
  static std::span<const std::byte> bytes(const std::vector<T>& v) {
    return std::as_bytes(std::span(v));
  }
  template <typename T>
  static std::span<std::byte> writable(std::vector<T>& v) {
    return std::as_writable_bytes(std::span(v));
  }
  std::span<std::byte> image_span(size_t c) const {
    return images[c].bytes().first(static_cast<size_t>(layout.total_bytes()));
  }
  std::span<std::byte> kv_span(size_t c) const {
    return kv[c].bytes().first(static_cast<size_t>(config.layers * shape.pages * 2 * kPageTokens *
                                                   sharding.heads.padded() * 2));
  }

  Result<void> provide_pages(const Row& row) {
    std::vector<int32_t>& pages = pages_of[static_cast<size_t>(row.slot)];
    const int64_t page = row.position / kPageTokens;
    if (row.position < 0 || page >= shape.slot_pages) {
      return input_error("position {} is beyond the context of {} tokens", row.position,
                         shape.slot_pages * kPageTokens);
    }
    while (static_cast<int64_t>(pages.size()) <= page) {
      GRIDLESS_CHECK(!free_pages.empty());
      const int32_t fresh = free_pages.back();
      free_pages.pop_back();
      table[static_cast<size_t>(row.slot * shape.slot_pages + static_cast<int64_t>(pages.size()))] =
          fresh;
      pages.push_back(fresh);
    }
    return {};
  }

  // Chooses the program for the rows and fills its tables.
  Result<void> prepare(std::span<const Row> rows) {
    if (rows.empty() || static_cast<int64_t>(rows.size()) > options.max_rows) {
      return input_error("a launch of {} rows: 1 to {} are possible", rows.size(),
                         options.max_rows);
    }
    TRY(Launch * l, launch_for(static_cast<int64_t>(rows.size())));
    for (int64_t r = 0; r < l->rows; ++r) {
      const bool active = r < static_cast<int64_t>(rows.size());
      const Row row = active ? rows[static_cast<size_t>(r)] : Row{};
      if (active) {
        if (row.token < 0 || row.token >= config.vocab || row.slot < 0 || row.slot >= shape.slots) {
          return input_error("row {}: token {}, slot {} out of range", r, row.token, row.slot);
        }
        TRY_VOID(provide_pages(row));
      }
      const int32_t fields[] = {row.token, row.slot, row.position, active ? 1 : 0};
      for (int f = 0; f < blocks::kRowFields; ++f)
        l->table[static_cast<size_t>(f * l->rows + r)] = fields[f];
    }
    last = l;
    return {};
  }

  Result<void> step(std::span<const Row> rows) {
    TRY_VOID(prepare(rows));
    if (last->engine) {
      if (auto ok = last->engine->run(); !ok) return std::unexpected(from_diagnostics(ok.error()));
      return {};
    }
    const emulate::Report report = last->emulator->run(last->memory);
    if (!report.diagnostics.empty() || !report.finished) {
      return std::unexpected(from_diagnostics(report.diagnostics));
    }
    return {};
  }

  std::vector<Memory> images, kv;
  std::vector<float> embedding, norms, frequencies;
  std::vector<int32_t> table, keep;
  std::vector<std::vector<int32_t>> pages_of;
  std::vector<int32_t> free_pages;
  std::map<int64_t, std::unique_ptr<Launch>> launches;
  Launch* last = nullptr;
};

StepRunner::StepRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StepRunner::~StepRunner() = default;

Result<std::unique_ptr<StepRunner>> StepRunner::load(const weights::Checkpoint& checkpoint,
                                                     const RunnerOptions& options,
                                                     const std::function<void(double)>& progress) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  TRY(impl->config, models::llama_config(checkpoint.config()));
  TRY_VOID(models::check_tensors(checkpoint, impl->config));
  TRY(impl->formats, models::native_formats(checkpoint, impl->config));
  TRY_VOID(impl->set_up());
  TRY(impl->embedding, models::embedding_table(checkpoint, impl->config));
  TRY(impl->norms, models::norm_table(checkpoint, impl->config));
  for (int c = 0; c < options.cores; ++c) {
    if (progress) progress(static_cast<double>(c) / options.cores);
    std::span<std::byte> image = impl->image_span(static_cast<size_t>(c));
    TRY_VOID(models::pack_weights(checkpoint, impl->config, impl->sharding, impl->layout, c,
                                  {reinterpret_cast<uint32_t*>(image.data()), image.size() / 4}));
  }
  if (progress) progress(1);
  return std::unique_ptr<StepRunner>(new StepRunner(std::move(impl)));
}

Result<std::unique_ptr<StepRunner>> StepRunner::random(const models::LlamaConfig& config,
                                                       const RunnerOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->config = config;
  impl->formats = {weights::Format::kBf16, weights::Format::kBf16};
  TRY_VOID(impl->set_up());
  std::mt19937 random(1);
  const auto width = static_cast<size_t>(blocks::round_to_lanes(config.hidden));
  impl->embedding.assign(static_cast<size_t>(config.vocab) * width, 0.01f);
  impl->norms.assign(static_cast<size_t>(2 * config.layers + 1) * width, 1.0f);
  // One random chunk everywhere: words whose halves are small as bf16 and as f16, so that codes,
  // scales and bf16 weights alike stay far from overflow.
  for (size_t c = 0; c < static_cast<size_t>(options.cores); ++c) {
    std::span<std::byte> image = impl->image_span(c);
    auto* words = reinterpret_cast<uint32_t*>(image.data());
    const size_t count = image.size() / 4, block = std::min<size_t>(count, 1 << 20);
    for (size_t i = 0; i < block; ++i) {
      const auto r = static_cast<uint32_t>(random());
      words[i] = (r & 0x807f807fu) | 0x1c001c00u;
    }
    for (size_t i = block; i < count; i += block)
      std::copy_n(words, std::min(block, count - i), words + i);
  }
  return std::unique_ptr<StepRunner>(new StepRunner(std::move(impl)));
}

Result<void> StepRunner::step(std::span<const Row> rows) { return impl_->step(rows); }

Result<std::vector<cpu::TraceEvent>> StepRunner::step_traced(std::span<const Row> rows) {
  TRY_VOID(impl_->prepare(rows));
  if (!impl_->last->engine) return input_error("only the CPU engine traces its steps");
  auto events = impl_->last->engine->run_traced();
  if (!events) return std::unexpected(from_diagnostics(events.error()));
  return std::move(*events);
}

std::vector<Candidate> StepRunner::candidates(int64_t row) const {
  const Impl::Launch& l = *impl_->last;
  std::vector<Candidate> out;
  for (size_t c = 0; c < l.cores.size(); ++c) {
    for (int64_t i = 0; i < impl_->shape.candidates; ++i) {
      const auto at = static_cast<size_t>(row * kLanes + i);
      out.push_back({static_cast<int32_t>(l.cores[c].candidate_ids[at] +
                                          static_cast<int64_t>(c) * impl_->sharding.vocab),
                     l.cores[c].candidate_logits[at]});
    }
  }
  std::ranges::stable_sort(out, [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
  out.resize(static_cast<size_t>(std::min<int64_t>(impl_->shape.candidates, impl_->config.vocab)));
  return out;
}

int32_t StepRunner::argmax(int64_t row) const { return candidates(row)[0].id; }

void StepRunner::logits(int64_t row, std::span<float> out) const {
  const Impl::Launch& l = *impl_->last;
  GRIDLESS_CHECK(static_cast<int64_t>(out.size()) == impl_->config.vocab);
  const int64_t shard = impl_->sharding.vocab;
  for (size_t c = 0; c < l.cores.size(); ++c) {
    for (int64_t v = 0; v < shard; v += kLanes) {
      const float* from = l.cores[c].logits.data() + (v / kLanes * l.rows + row) * kLanes;
      std::copy_n(from, std::min(kLanes, shard - v),
                  out.data() + static_cast<int64_t>(c) * shard + v);
    }
  }
}

Result<void> StepRunner::check_logits(int64_t row) const {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones in NaN and infinity alone
  const Impl::Launch& l = *impl_->last;
  const int64_t shard = impl_->sharding.vocab;
  for (const Impl::Launch::Core& core : l.cores) {
    uint32_t bad = 0;
    for (int64_t v = 0; v < shard; v += kLanes) {
      const float* from = core.logits.data() + (v / kLanes * l.rows + row) * kLanes;
      const int64_t n = std::min(kLanes, shard - v);
      for (int64_t i = 0; i < n; ++i)
        bad |= (std::bit_cast<uint32_t>(from[i]) & kExponent) == kExponent ? 1u : 0u;
    }
    if (bad != 0) {
      return input_error(
          "the logits are not numbers (NaN or infinite): the weights may be damaged, fetch them "
          "again");
    }
  }
  return {};
}

void StepRunner::truncate(int64_t slot, int64_t position) {
  std::vector<int32_t>& pages = impl_->pages_of[static_cast<size_t>(slot)];
  const auto needed = static_cast<size_t>((position + kPageTokens - 1) / kPageTokens);
  while (pages.size() > needed) {
    impl_->free_pages.push_back(pages.back());
    pages.pop_back();
  }
}

const models::LlamaConfig& StepRunner::config() const { return impl_->config; }
const RunnerOptions& StepRunner::options() const { return impl_->options; }
StepLimits StepRunner::limits() const {
  return {impl_->config.vocab, impl_->options.context, impl_->options.max_rows};
}
models::LlamaFormats StepRunner::formats() const { return impl_->formats; }

int64_t StepRunner::weight_bytes() const {
  return impl_->layout.used_bytes() * impl_->options.cores;
}

int64_t StepRunner::bytes_per_step(int64_t position) const {
  const int64_t kv = impl_->config.layers * (position + 1) * 2 * impl_->sharding.heads.width() * 2;
  return weight_bytes() + kv * impl_->options.cores;
}

}  // namespace gridless::decode
