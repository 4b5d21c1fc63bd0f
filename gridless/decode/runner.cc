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
#include "gridless/decode/slot_table.h"
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
    shape.chunked_delta = options.chunked_delta;
    if (options.format) shape.formats = {*options.format, *options.format, *options.format};
    shape.expert_groups = options.expert_groups;
    shape.taps = options.taps;
    shape.feature_layers = options.feature_layers;
    if (on_tpu() && !shape.feature_layers.empty())
      return input_error("a draft that reads the model's layers does not run on TPUs yet");
    if (on_tpu()) TRY_VOID(take_programs());
    TRY(model, m.on_cores(options.cores, shape));
    slots.emplace(shape.slots, shape.slot_pages, rows_taken_back);
    if (on_tpu()) return {};  // launches need memory on the devices first
    TRY(Launch * first, launch_for(1));
    last = first;
    return {};
  }

  bool on_tpu() const { return options.engine == EngineKind::kTpu; }

  // Whether images are what the options ask for.
  Result<void> take_images(const weights::ImageManifest& images) {
    const int cores = on_tpu() ? options.programs->cores() : options.cores;
    if (cores != images.cores)
      return input_error("these images are for {} cores, not {}: {}", images.cores, cores,
                         on_tpu() ? "compile for as many, or pack again"
                                  : fmt::format("give --cores {}, or pack again", images.cores));
    if (options.format && weights::spelling(*options.format) != images.formats[0])
      return input_error("these images are in {}, not in {}: leave --format out, or pack again",
                         images.formats[0], weights::spelling(*options.format));
    options.format.reset();
    options.expert_groups = images.expert_groups;
    return {};
  }

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
        return tpu->step(l.rows, vocab, l.program.call, l.memory, source, upload_progress);
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
        out.operands.push_back(slots->pages());
      } else if (a.name == "keep") {
        out.operands.push_back(slots->keep());
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

  // Chooses the program for the rows and fills its tables.
  Result<void> prepare(std::span<const Row> rows) {
    if (rows.empty() || static_cast<int64_t>(rows.size()) > options.max_rows) {
      return input_error("a launch of {} rows: 1 to {} are possible", rows.size(),
                         options.max_rows);
    }
    TRY(Launch * l, launch_for(static_cast<int64_t>(rows.size())));
    chained.clear();
    for (int64_t r = 0; r < l->rows; ++r) {
      const bool active = r < static_cast<int64_t>(rows.size());
      const Row row = active ? rows[static_cast<size_t>(r)] : Row{};
      if (active) {
        if (row.token < 0 || row.token >= vocab || row.slot < 0 || row.slot >= shape.slots) {
          return input_error("row {}: token {}, slot {} out of range", r, row.token, row.slot);
        }
        TRY_VOID(slots->provide_page(row));
      }
      const int32_t fields[] = {row.token, row.slot, row.position, active ? 1 : 0};
      for (int f = 0; f < blocks::kRowFields; ++f)
        l->table[static_cast<size_t>(f * l->rows + r)] = fields[f];
    }
    TRY_VOID(slots->go_on(rows));
    last = l;
    return {};
  }

  // Panels of one row's features.
  int64_t feature_panels() const {
    if (shape.feature_layers.empty() || last == nullptr) return 0;
    const auto it = std::ranges::find(last->program.call.results, "features", &ir::CallArg::name);
    return it->type.shape()[0] * it->type.shape()[1];
  }

  // What the k-th launch of a chain found.
  struct Predicted {
    int32_t token = 0;
    bool finite = false;
  };
  Predicted predicted(int64_t row) const { return {candidates(row)[0].id, is_finite(row)}; }

  // Of the last launch, all cores' together, descending.
  std::vector<Candidate> candidates(int64_t row) const {
    std::vector<Candidate> out;
    for (int c = 0; c < options.cores; ++c) {
      const auto* ids = last->result<int32_t>("candidate_ids", static_cast<size_t>(c));
      const auto* logits = last->result<float>("candidate_logits", static_cast<size_t>(c));
      for (int64_t i = 0; i < shape.candidates; ++i) {
        const int64_t at = row * kLanes + i;
        out.push_back({static_cast<int32_t>(ids[at] + c * vocab_shard()), logits[at]});
      }
    }
    std::ranges::stable_sort(out, [](const Candidate& a, const Candidate& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    });
    out.resize(static_cast<size_t>(std::min<int64_t>(shape.candidates, vocab)));
    return out;
  }

  bool is_finite(int64_t row) const {
    const int64_t shard = on_tpu() ? shape.candidates : vocab_shard();
    bool finite = true;
    for (size_t c = 0; c < static_cast<size_t>(options.cores); ++c) {
      const auto* all = last->result<float>(on_tpu() ? "candidate_logits" : "logits", c);
      for (int64_t v = 0; v < shard; v += kLanes) {
        const float* from = all + (v / kLanes * last->rows + row) * kLanes;
        finite &= all_finite({from, static_cast<size_t>(std::min(kLanes, shard - v))});
      }
    }
    return finite;
  }

  // A chain whose tokens go from launch to launch on the devices. What is in the row table for
  // them beforehand is not used.
  Result<void> chain_on_devices(const Row& first, int64_t count) {
    std::vector<Predicted> found;
    const auto row = [&](int64_t n) {
      return Row{.token = n == 0 ? first.token : 0,
                 .slot = first.slot,
                 .position = first.position + static_cast<int32_t>(n)};
    };
    TRY(Launch * l, launch_for(1));
    TRY_VOID(l->engine->run_chain(
        count,
        [&](int64_t n) -> Result<void> {
          const Row next = row(n);
          TRY_VOID(prepare({&next, 1}));
          slots->count({&next, 1});
          return {};
        },
        [&](int64_t) -> Result<void> {
          found.push_back(predicted(0));
          return {};
        }));
    chained = std::move(found);
    return {};
  }

  int64_t vocab_shard() const { return vocab / options.cores; }

  std::unique_ptr<TpuHost> tpu;
  TpuHost::Source source;  // while constants are brought to the devices
  std::function<void(double)> upload_progress;
  // By operand; [core], or one for all.
  std::map<std::string, std::vector<HugeMemory>, std::less<>> constants, states;
  std::optional<SlotTable> slots;
  std::map<int64_t, std::unique_ptr<Launch>> launches;
  Launch* last = nullptr;
  std::vector<Predicted> chained;  // empty unless the last thing was a chain
};

StepRunner::StepRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StepRunner::~StepRunner() = default;

Result<models::Formats> formats_of(const weights::ImageManifest& manifest) {
  models::Formats out;
  TRY(out.layers, weights::stored_format(manifest.formats[0]));
  TRY(out.head, weights::stored_format(manifest.formats[1]));
  TRY(out.experts, weights::stored_format(manifest.formats[2]));
  return out;
}

namespace {

Result<void> copy_image(const weights::Images& images, std::string_view operand, int core,
                        std::span<std::byte> out) {
  TRY(const ByteView bytes, images.operand(operand, core));
  if (bytes.size() != out.size())
    return input_error("operand '{}' was packed with {} bytes, needed are {}: pack again", operand,
                       bytes.size(), out.size());
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return {};
}

}  // namespace

Result<std::unique_ptr<StepRunner>> StepRunner::load(const weights::Checkpoint& checkpoint,
                                                     const RunnerOptions& options,
                                                     const std::function<void(double)>& progress) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  TRY(const std::unique_ptr<models::Model> model, models::model_of(checkpoint.config()));
  const weights::Images* images = checkpoint.images();
  if (images) {
    TRY_VOID(impl->take_images(images->manifest()));
  } else {
    TRY_VOID(model->check_tensors(checkpoint));
  }
  TRY(const models::Formats native,
      images ? formats_of(images->manifest()) : model->native_formats(checkpoint));
  TRY_VOID(impl->set_up(*model, native));
  if (images && weights::layout_id(impl->model->stream()) != images->manifest().layout)
    return input_error("{}: another version packed it, whose layout of weights differs: pack again",
                       checkpoint.path());
  TRY_VOID(impl->fill_constants(
      [&](std::string_view operand, int core, std::span<std::byte> out) -> Result<void> {
        if (images) return copy_image(*images, operand, core, out);
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
        if (operand == "weights" || operand == "experts") {
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
  impl_->slots->count(rows);
  return {};
}

Result<void> StepRunner::step_ahead(std::span<const Row> rows) {
  TRY_VOID(impl_->prepare(rows));
  TRY_VOID(impl_->last->engine->run_ahead());
  impl_->slots->count(rows);
  return {};
}

Result<void> StepRunner::chain(const Row& first, int64_t count) {
  if (count < 1) return input_error("a chain of {} launches", count);
  TRY(Impl::Launch * l, impl_->launch_for(1));
  if (l->engine->can_chain()) return impl_->chain_on_devices(first, count);
  std::vector<Impl::Predicted> found;
  Row row = first;
  for (int64_t n = 0; n < count; ++n) {
    TRY_VOID(step({&row, 1}));
    found.push_back(impl_->predicted(0));
    row.token = found.back().token;
    ++row.position;
  }
  impl_->chained = std::move(found);
  return {};
}

Result<std::vector<cpu::TraceEvent>> StepRunner::step_traced(std::span<const Row> rows) {
  TRY_VOID(impl_->prepare(rows));
  TRY(std::vector<cpu::TraceEvent> events, impl_->last->engine->run_traced());
  impl_->slots->count(rows);
  return events;
}

std::vector<Candidate> StepRunner::candidates(int64_t row) const { return impl_->candidates(row); }

int32_t StepRunner::argmax(int64_t row) const {
  if (!impl_->chained.empty()) return impl_->chained[static_cast<size_t>(row)].token;
  return candidates(row)[0].id;
}

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

Result<void> StepRunner::features(int64_t row, std::span<float> out) const {
  const Impl::Launch& l = *impl_->last;
  const int64_t panels = impl_->feature_panels();
  if (panels == 0) return StepModel::features(row, out);
  GRIDLESS_CHECK(std::ssize(out) == panels * kLanes);
  const auto* all = l.result<float>("features", 0);  // the same on every core
  for (int64_t p = 0; p < panels; ++p)
    std::copy_n(all + (p * l.rows + row) * kLanes, kLanes, out.data() + p * kLanes);
  return {};
}

Result<void> StepRunner::check_logits(int64_t row) const {
  const auto& chained = impl_->chained;
  if (chained.empty() ? impl_->is_finite(row) : chained[static_cast<size_t>(row)].finite) return {};
  return input_error(
      "the logits are not numbers (NaN or infinite): the weights may be damaged, fetch them again");
}

int64_t StepRunner::truncate(int64_t slot, int64_t position) {
  return impl_->slots->truncate(slot, position);
}

std::span<const std::byte> StepRunner::state(std::string_view operand, int core) const {
  const auto it = impl_->states.find(operand);
  if (it == impl_->states.end()) return {};
  return it->second[static_cast<size_t>(core)].bytes();
}

std::span<const std::byte> StepRunner::result(std::string_view name, int core) const {
  const auto it = impl_->last->results.find(name);
  if (it == impl_->last->results.end()) return {};
  return it->second[static_cast<size_t>(core)].bytes();
}

std::span<const std::byte> StepRunner::constant(std::string_view operand) const {
  const auto it = impl_->constants.find(operand);
  if (it == impl_->constants.end() || impl_->model->per_core(operand)) return {};
  return it->second[0].bytes();
}

int64_t StepRunner::vocab() const { return impl_->vocab; }
const RunnerOptions& StepRunner::options() const { return impl_->options; }
StepLimits StepRunner::limits() const {
  return {.vocab = impl_->vocab,
          .context = impl_->options.context,
          .max_rows = impl_->options.max_rows,
          .pending_rows = impl_->rows_taken_back.value_or(INT64_MAX),
          .features = impl_->feature_panels() * kLanes};
}
models::Formats StepRunner::formats() const { return impl_->shape.formats; }

int64_t StepRunner::weight_bytes() const {
  return impl_->model->stream().used_bytes() * impl_->options.cores;
}

int64_t StepRunner::bytes_per_step(int64_t position) const {
  return weight_bytes() + impl_->model->state_bytes(position);
}

}  // namespace gridless::decode
