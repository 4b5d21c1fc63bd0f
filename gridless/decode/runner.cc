#include "gridless/decode/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <thread>

#include "gridless/base/check.h"
#include "gridless/blocks/step_rows.h"
#include "gridless/decode/huge_memory.h"
#include "gridless/decode/step_engine.h"

namespace gridless::decode {

namespace {

using blocks::kLanes;
using blocks::kPageTokens;
using emulate::CoreMemory;

bool all_finite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones in NaN and infinity alone
  uint32_t bad = 0;
  for (const float v : values)
    bad |= (std::bit_cast<uint32_t>(v) & kExponent) == kExponent ? 1u : 0u;
  return bad == 0;
}

}  // namespace

class StepRunner::Impl {
 public:
  RunnerOptions options;
  int64_t vocab = 0;
  std::optional<int64_t> rows_taken_back;
  models::StepShape shape;
  std::unique_ptr<models::ShardedModel> model;

  // The program of one row count, with what only it needs.
  struct Launch {
    ir::Program program;
    int64_t rows = 0;
    std::vector<int32_t> table;
    // By result that is no state; [core].
    std::map<std::string, std::vector<HugeMemory>, std::less<>> results;
    std::vector<CoreMemory> memory;
    std::unique_ptr<StepEngine> engine;

    template <typename T>
    const T* result(std::string_view name, size_t core) const {
      return results.find(name)->second[core].template as<T>();
    }
  };

  // Spreads the model and sets its memory up, zero.
  Result<void> set_up(const models::Model& m, const models::Formats& native) {
    vocab = m.vocab();
    rows_taken_back = m.rows_taken_back();
    if (options.context < 1) return input_error("a context of {} tokens", options.context);
    shape.slots = options.slots;
    shape.slot_pages = (options.context + kPageTokens - 1) / kPageTokens;
    shape.pages = shape.slots * shape.slot_pages;
    shape.formats = native;
    if (options.format) shape.formats = {*options.format, *options.format};
    if (on_tpu()) TRY_VOID(take_programs());
    TRY(model, m.on_cores(options.cores, shape));
    const auto slots = static_cast<size_t>(shape.slots);
    pages.assign(slots * static_cast<size_t>(shape.slot_pages), 0);
    keep.assign(slots, 0);
    held.assign(slots, 0);
    pages_of.resize(slots);
    for (int64_t p = shape.pages; p > 0; --p) free_pages.push_back(static_cast<int32_t>(p - 1));
    if (on_tpu()) return {};  // launches need memory on the devices first
    TRY(Launch * first, launch_for(1));
    last = first;
    return {};
  }

  bool on_tpu() const { return options.engine == EngineKind::kTpu; }

  // Cores and shape as the compiled programs have them.
  Result<void> take_programs() {
    const TpuPrograms& programs = *options.programs;
    options.cores = programs.cores();
    options.max_rows = std::min(options.max_rows, programs.max_rows());
    if (options.slots > programs.slots() || shape.slot_pages > programs.slot_pages()) {
      return input_error(
          "the compiled programs hold {} sequences of {} tokens, needed are {} of {}: compile them "
          "with a larger context= or sequences=",
          programs.slots(), programs.slot_pages() * kPageTokens, options.slots, options.context);
    }
    shape.slots = programs.slots();
    shape.slot_pages = programs.slot_pages();
    shape.pages = shape.slots * shape.slot_pages;
    return {};
  }

  // Constants, with each one's memory, of one core or of all.
  using Fill =
      std::function<Result<void>(std::string_view operand, int core, std::span<std::byte>)>;
  Result<void> fill_constants(const Fill& fill, const std::function<void(double)>& progress) {
    if (on_tpu()) return upload(fill, progress);
    for (auto& [name, memory] : constants)
      for (size_t c = 0; c < memory.size(); ++c)
        TRY_VOID(fill(name, static_cast<int>(c), memory[c].bytes()));
    return {};
  }

  // Brings constants and state to the devices, one after the other, and loads all programs.
  Result<void> upload(const Fill& fill, const std::function<void(double)>& progress) {
    for (const int64_t rows : options.programs->row_counts()) {
      TRY(ir::Program program, program_for(rows));
      TRY_VOID(options.programs->check(rows, std::move(program)));
    }
    TRY(tpu, TpuHost::start(options.tpu, *options.programs));
    HugeMemory memory;
    std::string what;  // is in it
    source = [&](int core, const ir::CallArg& operand,
                 bool is_state) -> Result<std::span<const std::byte>> {
      const bool each = !is_state && model->per_core(operand.name);
      if (what == operand.name && !each) return memory.bytes();
      memory = HugeMemory(static_cast<size_t>(emulate::tensor_bytes(operand)));
      what = operand.name;
      if (!is_state) TRY_VOID(fill(operand.name, core, memory.bytes()));
      return memory.bytes();
    };
    upload_progress = progress;
    for (const int64_t rows : options.programs->row_counts()) {
      TRY(last, launch_for(rows));
    }
    source = nullptr;
    upload_progress = nullptr;
    return {};
  }

  Result<ir::Program> program_for(int64_t rows) const {
    auto program = model->program(rows);
    if (!program) return machine_error("{}", to_string(program.error()));
    return std::move(*program);
  }

  Result<std::unique_ptr<StepEngine>> engine_for(const Launch& l) {
    switch (options.engine) {
      case EngineKind::kCpu:
        return cpu_step(l.program, l.memory, {.threads = options.threads, .isa = options.isa});
      case EngineKind::kEmulate:
        return emulated_step(l.program, l.memory);
      case EngineKind::kTpu:
        return tpu->step(l.rows, l.program.call, l.memory, source, upload_progress);
    }
    return input_error("no such engine");
  }

  Result<Launch*> launch_for(int64_t rows) {
    const int64_t r = on_tpu() ? options.programs->rows_for(rows)
                               : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
    if (const auto it = launches.find(r); it != launches.end()) return it->second.get();
    auto l = std::make_unique<Launch>();
    TRY(l->program, program_for(r));
    l->rows = r;
    l->table.resize(static_cast<size_t>(blocks::kRowFields * r));
    for (size_t c = 0; c < static_cast<size_t>(options.cores); ++c)
      l->memory.push_back(memory_of(*l, c));
    TRY(l->engine, engine_for(*l));
    return (launches[r] = std::move(l)).get();
  }

  // The operands and results of a core, in the order of the call. The first program makes the
  // memory of constants and state, which all share; on TPUs the devices have it.
  CoreMemory memory_of(Launch& l, size_t core) {
    const ir::Call& call = l.program.call;
    std::vector<bool> is_state(call.operands.size());
    for (const auto& [result, operand] : call.aliases)
      is_state[static_cast<size_t>(operand)] = true;
    CoreMemory out;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      const ir::CallArg& a = call.operands[i];
      const auto bytes = static_cast<size_t>(emulate::tensor_bytes(a));
      if (a.name == "rows") {
        out.operands.push_back(std::as_bytes(std::span(l.table)));
      } else if (a.name == "pages") {
        out.operands.push_back(std::as_bytes(std::span(pages)));
      } else if (a.name == "keep") {
        out.operands.push_back(std::as_bytes(std::span(keep)));
      } else if (on_tpu()) {
        out.operands.emplace_back();
      } else {
        const bool each = is_state[i] || model->per_core(a.name);
        std::vector<HugeMemory>& memory = is_state[i] ? states[a.name] : constants[a.name];
        if (memory.empty()) {
          for (int c = 0; c < (each ? options.cores : 1); ++c) memory.emplace_back(bytes);
        }
        out.operands.push_back(memory[each ? core : 0].bytes());
      }
    }
    for (size_t i = 0; i < call.results.size(); ++i) {
      const ir::CallArg& a = call.results[i];
      const bool on_device = on_tpu() && std::ranges::any_of(call.aliases, [&](const auto& alias) {
                               return alias.first == static_cast<int>(i);
                             });
      if (on_device) {
        out.results.emplace_back();
        continue;
      }
      if (const auto state = states.find(a.name); state != states.end()) {
        out.results.push_back(state->second[core].bytes());
        continue;
      }
      std::vector<HugeMemory>& memory = l.results[a.name];
      memory.emplace_back(static_cast<size_t>(emulate::tensor_bytes(a)));
      out.results.push_back(memory.back().bytes());
    }
    return out;
  }

  Result<void> provide_pages(const Row& row) {
    std::vector<int32_t>& mine = pages_of[static_cast<size_t>(row.slot)];
    const int64_t page = row.position / kPageTokens;
    if (row.position < 0 || page >= shape.slot_pages) {
      return input_error("position {} is beyond the context of {} tokens", row.position,
                         shape.slot_pages * kPageTokens);
    }
    while (static_cast<int64_t>(mine.size()) <= page) {
      GRIDLESS_CHECK(!free_pages.empty());
      const int32_t fresh = free_pages.back();
      free_pages.pop_back();
      pages[static_cast<size_t>(row.slot * shape.slot_pages + static_cast<int64_t>(mine.size()))] =
          fresh;
      mine.push_back(fresh);
    }
    return {};
  }

  // Takes the slots of recurrent models back to where their rows begin, and counts these in.
  Result<void> continue_slots(std::span<const Row> rows) {
    std::vector<int32_t> seen;
    for (size_t r = 0; r < rows.size(); ++r) {
      const Row& row = rows[r];
      if (r > 0 && row.slot == rows[r - 1].slot) {
        if (row.position != rows[r - 1].position + 1) {
          return input_error("row {}: position {} after {} in slot {}", r, row.position,
                             rows[r - 1].position, row.slot);
        }
        continue;
      }
      if (std::ranges::find(seen, row.slot) != seen.end()) {
        return input_error("row {}: the rows of slot {} do not stand together", r, row.slot);
      }
      seen.push_back(row.slot);
      const int64_t at = held[static_cast<size_t>(row.slot)];
      if (row.position > at || take_back(row.slot, row.position) != row.position) {
        return input_error(
            "row {}: position {} of slot {}, which holds {} tokens of a recurrent model: go on, go "
            "back at most {}, or start again at 0",
            r, row.position, row.slot, at, *rows_taken_back);
      }
    }
    return {};
  }

  int64_t take_back(int64_t slot, int64_t position) {
    int64_t& at = held[static_cast<size_t>(slot)];
    int32_t& kept = keep[static_cast<size_t>(slot)];
    if (position >= at) return at;
    const bool possible = at - position <= kept;
    kept -= possible ? static_cast<int32_t>(at - position) : kept;
    return at = possible ? position : 0;
  }

  void count_rows(std::span<const Row> rows) {
    if (!rows_taken_back) return;
    for (size_t r = 0; r < rows.size();) {
      size_t end = r;
      while (end < rows.size() && rows[end].slot == rows[r].slot) ++end;
      const auto slot = static_cast<size_t>(rows[r].slot);
      held[slot] = rows[end - 1].position + 1;
      keep[slot] =
          static_cast<int32_t>(std::min<int64_t>(static_cast<int64_t>(end - r), *rows_taken_back));
      r = end;
    }
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
        if (row.token < 0 || row.token >= vocab || row.slot < 0 || row.slot >= shape.slots) {
          return input_error("row {}: token {}, slot {} out of range", r, row.token, row.slot);
        }
        TRY_VOID(provide_pages(row));
      }
      const int32_t fields[] = {row.token, row.slot, row.position, active ? 1 : 0};
      for (int f = 0; f < blocks::kRowFields; ++f)
        l->table[static_cast<size_t>(f * l->rows + r)] = fields[f];
    }
    if (rows_taken_back) TRY_VOID(continue_slots(rows));
    last = l;
    return {};
  }

  int64_t vocab_shard() const { return vocab / options.cores; }

  std::unique_ptr<TpuHost> tpu;
  TpuHost::Source source;  // while constants are brought to the devices
  std::function<void(double)> upload_progress;
  // By operand; [core], or one for all.
  std::map<std::string, std::vector<HugeMemory>, std::less<>> constants, states;
  std::vector<int32_t> pages, keep;  // the tables of the contract
  std::vector<int64_t> held;         // tokens of a slot, for recurrent models
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
  TRY(const std::unique_ptr<models::Model> model, models::model_of(checkpoint.config()));
  TRY_VOID(model->check_tensors(checkpoint));
  TRY(const models::Formats native, model->native_formats(checkpoint));
  TRY_VOID(impl->set_up(*model, native));
  TRY_VOID(impl->fill_constants(
      [&](std::string_view operand, int core, std::span<std::byte> out) {
        if (progress && operand == "weights" && !impl->on_tpu())
          progress(static_cast<double>(core) / options.cores);
        return impl->model->fill(checkpoint, operand, core, out);
      },
      progress));
  if (progress) progress(1);
  return std::unique_ptr<StepRunner>(new StepRunner(std::move(impl)));
}

namespace {

// Words whose halves are small as bf16 and as f16, so that codes, scales and bf16 weights alike
// stay far from overflow. One random block everywhere.
void fill_with_small_words(std::span<std::byte> out) {
  std::mt19937 random(1);
  auto* words = reinterpret_cast<uint32_t*>(out.data());
  const size_t count = out.size() / 4, block = std::min<size_t>(count, 1 << 20);
  for (size_t i = 0; i < block; ++i) {
    const auto r = static_cast<uint32_t>(random());
    words[i] = (r & 0x807f807fu) | 0x1c001c00u;
  }
  for (size_t i = block; i < count; i += block)
    std::copy_n(words, std::min(block, count - i), words + i);
}

}  // namespace

Result<std::unique_ptr<StepRunner>> StepRunner::random(const models::Model& model,
                                                       const RunnerOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  TRY_VOID(impl->set_up(model, {}));
  TRY_VOID(impl->fill_constants(
      [&](std::string_view operand, int, std::span<std::byte> out) -> Result<void> {
        if (operand == "weights") {
          fill_with_small_words(out);
        } else {
          // Negative: the decay of a recurrent state must not grow.
          const float value = operand == "norms" ? 1.0f : operand == "embedding" ? 0.01f : -0.01f;
          std::ranges::fill(std::span(reinterpret_cast<float*>(out.data()), out.size() / 4), value);
        }
        return {};
      },
      nullptr));
  return std::unique_ptr<StepRunner>(new StepRunner(std::move(impl)));
}

Result<void> StepRunner::step(std::span<const Row> rows) {
  TRY_VOID(impl_->prepare(rows));
  TRY_VOID(impl_->last->engine->run());
  impl_->count_rows(rows);
  return {};
}

Result<void> StepRunner::step_ahead(std::span<const Row> rows) {
  TRY_VOID(impl_->prepare(rows));
  TRY_VOID(impl_->last->engine->run_ahead());
  impl_->count_rows(rows);
  return {};
}

Result<std::vector<cpu::TraceEvent>> StepRunner::step_traced(std::span<const Row> rows) {
  TRY_VOID(impl_->prepare(rows));
  TRY(std::vector<cpu::TraceEvent> events, impl_->last->engine->run_traced());
  impl_->count_rows(rows);
  return events;
}

std::vector<Candidate> StepRunner::candidates(int64_t row) const {
  const Impl::Launch& l = *impl_->last;
  std::vector<Candidate> out;
  for (int c = 0; c < impl_->options.cores; ++c) {
    const auto* ids = l.result<int32_t>("candidate_ids", static_cast<size_t>(c));
    const auto* logits = l.result<float>("candidate_logits", static_cast<size_t>(c));
    for (int64_t i = 0; i < impl_->shape.candidates; ++i) {
      const int64_t at = row * kLanes + i;
      out.push_back({static_cast<int32_t>(ids[at] + c * impl_->vocab_shard()), logits[at]});
    }
  }
  std::ranges::stable_sort(out, [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  });
  out.resize(static_cast<size_t>(std::min<int64_t>(impl_->shape.candidates, impl_->vocab)));
  return out;
}

int32_t StepRunner::argmax(int64_t row) const { return candidates(row)[0].id; }

Result<void> StepRunner::logits(int64_t row, std::span<float> out) const {
  const Impl::Launch& l = *impl_->last;
  TRY_VOID(l.engine->fetch_logits());
  GRIDLESS_CHECK(static_cast<int64_t>(out.size()) == impl_->vocab);
  const int64_t shard = impl_->vocab_shard();
  for (int c = 0; c < impl_->options.cores; ++c) {
    const auto* all = l.result<float>("logits", static_cast<size_t>(c));
    for (int64_t v = 0; v < shard; v += kLanes) {
      const float* from = all + (v / kLanes * l.rows + row) * kLanes;
      std::copy_n(from, std::min(kLanes, shard - v), out.data() + c * shard + v);
    }
  }
  return {};
}

Result<void> StepRunner::check_logits(int64_t row) const {
  const Impl::Launch& l = *impl_->last;
  const bool on_tpu = impl_->on_tpu();
  const int64_t shard = on_tpu ? impl_->shape.candidates : impl_->vocab_shard();
  bool finite = true;
  for (size_t c = 0; c < static_cast<size_t>(impl_->options.cores); ++c) {
    const auto* all = l.result<float>(on_tpu ? "candidate_logits" : "logits", c);
    for (int64_t v = 0; v < shard; v += kLanes) {
      const float* from = all + (v / kLanes * l.rows + row) * kLanes;
      finite &= all_finite({from, static_cast<size_t>(std::min(kLanes, shard - v))});
    }
  }
  if (finite) return {};
  return input_error(
      "the logits are not numbers (NaN or infinite): the weights may be damaged, fetch them again");
}

int64_t StepRunner::truncate(int64_t slot, int64_t position) {
  if (impl_->rows_taken_back) position = impl_->take_back(slot, position);
  std::vector<int32_t>& pages = impl_->pages_of[static_cast<size_t>(slot)];
  const auto needed = static_cast<size_t>((position + kPageTokens - 1) / kPageTokens);
  while (pages.size() > needed) {
    impl_->free_pages.push_back(pages.back());
    pages.pop_back();
  }
  return position;
}

std::span<const std::byte> StepRunner::state(std::string_view operand, int core) const {
  const auto it = impl_->states.find(operand);
  if (it == impl_->states.end()) return {};
  return it->second[static_cast<size_t>(core)].bytes();
}

int64_t StepRunner::vocab() const { return impl_->vocab; }
const RunnerOptions& StepRunner::options() const { return impl_->options; }
StepLimits StepRunner::limits() const {
  return {.vocab = impl_->vocab,
          .context = impl_->options.context,
          .max_rows = impl_->options.max_rows,
          .pending_rows = impl_->rows_taken_back.value_or(INT64_MAX)};
}
models::Formats StepRunner::formats() const { return impl_->shape.formats; }

int64_t StepRunner::weight_bytes() const {
  return impl_->model->stream().used_bytes() * impl_->options.cores;
}

int64_t StepRunner::bytes_per_step(int64_t position) const {
  return weight_bytes() + impl_->model->state_bytes(position);
}

}  // namespace gridless::decode
