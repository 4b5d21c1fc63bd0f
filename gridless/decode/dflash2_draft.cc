#include "gridless/decode/dflash2_draft.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "gridless/base/check.h"
#include "gridless/base/integers.h"
#include "gridless/blocks/step_rows.h"
#include "gridless/decode/huge_memory.h"
#include "gridless/decode/step_engine.h"
#include "gridless/models/dflash2/model.h"

namespace gridless::decode {

namespace {

using blocks::kLanes;
using blocks::kPageTokens;

// Tokens whose features one launch appends: those of a round, or more of a prompt.
constexpr int64_t kFewest = 8, kMost = 64;
// A guess counts half after some twenty others.
constexpr double kMemory = 31.0 / 32, kPriorCases = 4, kPrior = 0.6;

}  // namespace

class Dflash2Draft::Impl {
 public:
  models::Dflash2Config config;
  RunnerOptions options;
  std::unique_ptr<models::ShardedModel> model;
  models::StepShape shape;

  // The program for one number of appended tokens.
  struct Launch {
    ir::Program program;
    std::vector<int32_t> fed;                                // the row table
    HugeMemory features;                                     // f32 [panels, fed, 128]
    std::vector<std::map<std::string, HugeMemory>> results;  // [core]
    std::vector<emulate::CoreMemory> memory;
    std::unique_ptr<StepEngine> engine;
  };

  int64_t feature_width() const {
    return std::ssize(config.taps) * blocks::round_to_lanes(config.hidden);
  }

  Result<Launch*> launch_for(int64_t fed);
  Result<void> launch(int64_t fed, int32_t anchor, int64_t start);
  void fill_features(Launch& l, int64_t count);
  // Forgets the context from `position` on.
  void cut(int64_t position);

  // The context: positions [first, end) are in the cache, [end, end + pending) wait.
  int64_t first = 0, end = 0;
  std::vector<float> waiting;  // features of the latter, one row after another
  int64_t pending() const { return std::ssize(waiting) / feature_width(); }

  std::vector<int32_t> text;
  std::vector<int32_t> proposed;
  struct Record {
    double right = 0, all = 0;
  };
  std::vector<Record> records;  // of the guesses of a block, given that those before were right

  std::map<std::string, std::vector<HugeMemory>, std::less<>> constants;  // [core], or one for all
  std::vector<HugeMemory> kv;                                             // [core]
  std::span<const std::byte> embedding;
  std::vector<int32_t> rows, pages, first_table;
  std::map<int64_t, std::unique_ptr<Launch>> launches;
  Launch* last = nullptr;
};

Result<Dflash2Draft::Impl::Launch*> Dflash2Draft::Impl::launch_for(int64_t fed) {
  if (const auto it = launches.find(fed); it != launches.end()) return it->second.get();
  auto l = std::make_unique<Launch>();
  auto program = model->program(fed);
  if (!program) return machine_error("{}", to_string(program.error()));
  l->program = std::move(*program);
  l->fed.assign(static_cast<size_t>(blocks::kRowFields * fed), 0);
  const auto of_table = [](std::vector<int32_t>& t) { return std::as_bytes(std::span(t)); };
  l->results.resize(static_cast<size_t>(options.cores));
  for (size_t c = 0; c < static_cast<size_t>(options.cores); ++c) {
    emulate::CoreMemory m;
    for (const ir::CallArg& a : l->program.call.operands) {
      const auto bytes = static_cast<size_t>(emulate::tensor_bytes(a));
      if (a.name == "rows") {
        m.operands.push_back(of_table(rows));
      } else if (a.name == "pages") {
        m.operands.push_back(of_table(pages));
      } else if (a.name == "first") {
        m.operands.push_back(of_table(first_table));
      } else if (a.name == "context_rows") {
        m.operands.push_back(of_table(l->fed));
      } else if (a.name == "embedding" && !embedding.empty()) {
        GRIDLESS_CHECK(embedding.size() == bytes);
        m.operands.push_back(embedding);
      } else if (a.name == "features") {
        if (c == 0) l->features = HugeMemory(bytes);
        m.operands.push_back(l->features.bytes());
      } else if (a.name == "kv") {
        if (kv.size() <= c) kv.emplace_back(bytes);
        m.operands.push_back(kv[c].bytes());
      } else {
        const bool each = model->per_core(a.name);
        std::vector<HugeMemory>& memory = constants[a.name];
        if (memory.empty())
          for (int i = 0; i < (each ? options.cores : 1); ++i) memory.emplace_back(bytes);
        m.operands.push_back(memory[each ? c : 0].bytes());
      }
    }
    for (const ir::CallArg& a : l->program.call.results) {
      if (a.name == "kv") {
        m.results.push_back(kv[c].bytes());
        continue;
      }
      HugeMemory& memory = l->results[c][a.name];
      memory = HugeMemory(static_cast<size_t>(emulate::tensor_bytes(a)));
      m.results.push_back(memory.bytes());
    }
    l->memory.push_back(std::move(m));
  }
  if (options.engine == EngineKind::kCpu) {
    TRY(l->engine,
        cpu_step(l->program, l->memory, {.threads = options.threads, .isa = options.isa}));
  } else {
    TRY(l->engine, emulated_step(l->program, l->memory));
  }
  return (launches[fed] = std::move(l)).get();
}

// The first `count` of the waiting rows, panel by panel; zeros where there is none.
void Dflash2Draft::Impl::fill_features(Launch& l, int64_t count) {
  const int64_t fed = std::ssize(l.fed) / blocks::kRowFields, width = feature_width();
  auto* out = l.features.as<float>();
  for (int64_t p = 0; p < width / kLanes; ++p)
    for (int64_t r = 0; r < fed; ++r) {
      float* to = out + (p * fed + r) * kLanes;
      if (r < count) {
        std::copy_n(waiting.data() + r * width + p * kLanes, kLanes, to);
      } else {
        std::fill_n(to, kLanes, 0.0f);
      }
    }
}

// Appends up to `fed` waiting tokens and guesses what follows `anchor`, which stands at `start`.
Result<void> Dflash2Draft::Impl::launch(int64_t fed, int32_t anchor, int64_t start) {
  TRY(Launch * l, launch_for(fed));
  const int64_t count = std::min(fed, pending());
  const auto field = [](std::vector<int32_t>& table, int64_t n, int f, int64_t r) -> int32_t& {
    return table[static_cast<size_t>(f * n + r)];
  };
  for (int64_t r = 0; r < fed; ++r) {
    field(l->fed, fed, blocks::kRowPosition, r) = r < count ? static_cast<int32_t>(end + r) : 0;
    field(l->fed, fed, blocks::kRowActive, r) = r < count ? 1 : 0;
  }
  fill_features(*l, count);
  for (int64_t r = 0; r < config.block; ++r) {
    field(rows, config.block, blocks::kRowToken, r) =
        r == 0 ? anchor : static_cast<int32_t>(config.mask_token);
    field(rows, config.block, blocks::kRowPosition, r) = static_cast<int32_t>(start + r);
    field(rows, config.block, blocks::kRowActive, r) = 1;
  }
  end += count;
  waiting.erase(waiting.begin(), waiting.begin() + count * feature_width());
  first = std::max(first, end - shape.pages * kPageTokens);
  first_table[0] = static_cast<int32_t>(first);
  last = l;
  return l->engine->run();
}

void Dflash2Draft::Impl::cut(int64_t position) {
  if (position > end + pending()) {  // a gap: nothing before it counts
    waiting.clear();
    first = end = position;
  } else if (position >= end) {
    waiting.resize(static_cast<size_t>((position - end) * feature_width()));
  } else {
    waiting.clear();
    end = position;
    first = std::min(first, end);
  }
}

Dflash2Draft::Dflash2Draft(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dflash2Draft::~Dflash2Draft() = default;

Result<std::vector<int64_t>> Dflash2Draft::taps(const weights::Checkpoint& draft) {
  TRY(const models::Dflash2Config config, models::dflash2_config(draft.config()));
  return config.taps;
}

namespace {

Result<void> check_features(const StepModel& model, int64_t width) {
  if (const int64_t given = model.limits().features; given != width) {
    return input_error(
        "the model gives {} features of a token, the draft reads {}: they do not belong together",
        given, width);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Dflash2Draft>> Dflash2Draft::load(const weights::Checkpoint& draft,
                                                         const weights::Checkpoint& target,
                                                         const StepRunner& runner,
                                                         std::optional<int> cores) {
  RunnerOptions options = runner.options();
  options.cores = cores.value_or(options.cores);
  TRY(std::unique_ptr<Dflash2Draft> out,
      load(draft, target, options, runner.constant("embedding")));
  TRY_VOID(check_features(runner, out->impl_->feature_width()));
  return out;
}

Result<std::unique_ptr<Dflash2Draft>> Dflash2Draft::load(const weights::Checkpoint& draft,
                                                         const weights::Checkpoint& target,
                                                         const RunnerOptions& options,
                                                         std::span<const std::byte> embedding) {
  if (options.engine == EngineKind::kTpu)
    return input_error("draft models do not run on TPUs yet: --draft ngram does");
  auto impl = std::make_unique<Impl>();
  TRY(impl->config, models::dflash2_config(draft.config()));
  impl->options = options;
  const models::Dflash2Config& m = impl->config;
  const auto model = models::dflash2_model(m, &target);
  TRY_VOID(model->check_tensors(draft));
  models::StepShape& shape = impl->shape;
  shape.slot_pages = ceil_div(options.context, kPageTokens) + 1;
  shape.pages = std::min(ceil_div(m.window, kPageTokens), shape.slot_pages);
  if (options.format) shape.formats = {*options.format, *options.format};
  TRY(impl->model, model->on_cores(options.cores, shape));
  impl->rows.assign(static_cast<size_t>(blocks::kRowFields * m.block), 0);
  impl->first_table = {0};
  for (int64_t i = 0; i < shape.slot_pages; ++i)
    impl->pages.push_back(static_cast<int32_t>(i % shape.pages));
  impl->records.resize(static_cast<size_t>(m.block - 1));
  impl->embedding = embedding;
  TRY(impl->last, impl->launch_for(kFewest));
  for (auto& [name, memory] : impl->constants)
    for (size_t c = 0; c < memory.size(); ++c)
      TRY_VOID(impl->model->fill(draft, name, static_cast<int>(c), memory[c].bytes()));
  return std::unique_ptr<Dflash2Draft>(new Dflash2Draft(std::move(impl)));
}

Result<void> Dflash2Draft::start(std::span<const int32_t> prompt) {
  Impl& d = *impl_;
  // The context of what both texts begin with stays, in case the target keeps it, too.
  d.cut(std::min<int64_t>(std::ranges::mismatch(d.text, prompt).in1 - d.text.begin(),
                          d.end + d.pending()));
  d.text.assign(prompt.begin(), prompt.end());
  d.proposed.clear();
  return {};
}

Result<void> Dflash2Draft::read(const StepModel& model, int64_t position, int64_t rows) {
  Impl& d = *impl_;
  TRY_VOID(check_features(model, d.feature_width()));
  d.cut(position);
  const int64_t width = d.feature_width();
  for (int64_t r = 0; r < rows; ++r) {
    const size_t at = d.waiting.size();
    d.waiting.resize(at + static_cast<size_t>(width));
    TRY_VOID(model.features(r, std::span(d.waiting).subspan(at)));
  }
  // No row to come will see further back than this.
  if (const int64_t rest = d.pending() - d.config.window; rest > 0) {
    d.waiting.erase(d.waiting.begin(), d.waiting.begin() + rest * width);
    d.first = d.end = d.end + rest;
  }
  return {};
}

Result<Proposal> Dflash2Draft::propose(int64_t count) {
  Impl& d = *impl_;
  d.proposed.clear();
  Proposal out;
  const int64_t start = std::ssize(d.text) - 1;
  // The text has tokens that nobody told the features of, or positions end here.
  if (start < 1 || d.end + d.pending() != start || start > (d.shape.slot_pages - 1) * kPageTokens) {
    return out;
  }
  while (d.pending() > kFewest) TRY_VOID(d.launch(kMost, d.text.back(), start));
  TRY_VOID(d.launch(kFewest, d.text.back(), start));
  const auto* drafts = d.last->results[0].at("drafts").as<int32_t>();
  for (int64_t i = 0; i < std::min(count, d.config.block - 1); ++i) {
    const Impl::Record& r = d.records[static_cast<size_t>(i)];
    out.tokens.push_back(drafts[i]);
    out.odds.push_back((r.right + kPriorCases * kPrior) / (r.all + kPriorCases));
  }
  d.proposed = out.tokens;
  return out;
}

Result<void> Dflash2Draft::append(std::span<const int32_t> tokens) {
  Impl& d = *impl_;
  for (size_t i = 0; i < std::min(tokens.size(), d.proposed.size()); ++i) {
    const bool right = d.proposed[i] == tokens[i];
    Impl::Record& r = d.records[i];
    r = {r.right * kMemory + (right ? 1 : 0), r.all * kMemory + 1};
    if (!right) break;
  }
  d.proposed.clear();
  d.text.insert(d.text.end(), tokens.begin(), tokens.end());
  return {};
}

std::vector<std::vector<float>> Dflash2Draft::logits() const {
  const Impl& d = *impl_;
  const int64_t shard = d.config.vocab / d.options.cores;
  std::vector<std::vector<float>> out(static_cast<size_t>(d.config.block));
  for (int64_t r = 0; r < d.config.block; ++r)
    for (const auto& results : d.last->results) {
      const auto* all = results.at("logits").as<float>();
      for (int64_t v = 0; v < shard; ++v)
        out[static_cast<size_t>(r)].push_back(
            all[(v / kLanes * d.config.block + r) * kLanes + v % kLanes]);
    }
  return out;
}

std::vector<std::vector<int32_t>> Dflash2Draft::candidates() const {
  const Impl& d = *impl_;
  std::vector<std::vector<int32_t>> out;
  const auto* ids = d.last->results[0].at("draft_candidates").as<int32_t>();
  for (int64_t r = 0; r < d.config.block; ++r)
    out.emplace_back(ids + r * kLanes, ids + r * kLanes + d.config.candidates);
  return out;
}

int64_t Dflash2Draft::weight_bytes() const {
  return impl_->model->stream().used_bytes() * impl_->options.cores;
}

}  // namespace gridless::decode
