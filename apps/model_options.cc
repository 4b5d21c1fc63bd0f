#include "apps/model_options.h"

#include <csignal>

#include "apps/common.h"
#include "gridless/base/processors.h"
#include "gridless/chips/tpu7x.h"
#include "gridless/decode/dflash2_draft.h"
#include "gridless/decode/end_tokens.h"
#include "gridless/decode/ngram_draft.h"
#include "gridless/models/registry.h"
#include "gridless/tpu/libtpu_path.h"

namespace gridless::apps {

void add_model_options(CLI::App* command, ModelOptions& o) {
  command
      ->add_option("MODEL", o.model,
                   "A model's name (see `gridless models`), a checkpoint directory or a .gguf")
      ->required();
  command
      ->add_option("--cores", o.cores,
                   "Virtual cores to spread the model over; 0: as many as threads")
      ->check(CLI::Range(0, 128));
  command
      ->add_option("--threads", o.threads,
                   "Threads that run the cores; 0: one for each physical processor")
      ->check(CLI::Range(0, 128));
  CLI::Option* engine = command->add_option(
      "--engine", o.engine, "cpu: fast; emulate: the slow oracle; tpu: the TPUs of this host");
  command
      ->add_option(
          "--program", o.programs,
          "With --engine tpu: a folder that `gridless compile` wrote for this model; may be "
          "repeated, for several row counts")
      ->expected(1)
      ->take_all()
      ->needs(engine);
  command
      ->add_option("--libtpu", o.libtpu,
                   "With --engine tpu: libtpu.so or its folder (else as for `gridless compile`)")
      ->needs(engine);
  command
      ->add_option("--time-limit", o.time_limit,
                   "With --engine tpu: seconds that the other hosts and any launch may take")
      ->check(CLI::Range(0.001, 86400.0))
      ->needs(engine);
  command->add_option("--format", o.format,
                      "Format of all matrices: bf16, q8, q4; default: what the checkpoint holds");
  command
      ->add_option("--context", o.context,
                   "Tokens that prompt and answer may reach together; 0: what is needed, up to "
                   "the model's own context")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 24));
}

void add_sampler_options(CLI::App* command, decode::SamplerOptions& o) {
  command->add_option("--temperature", o.temperature, "0: greedy, always the likeliest token");
  command->add_option("--top-p", o.top_p,
                      "Only the likeliest tokens that make up this probability");
  command->add_option("--top-k", o.top_k, "Only the K likeliest tokens; 0: all");
  command->add_option("--min-p", o.min_p,
                      "Only tokens at least this likely, as a share of the likeliest one");
  command->add_option("--repetition-penalty", o.repetition_penalty,
                      "Divides positive logits of tokens that came before; 1: off");
  command->add_option("--seed", o.seed, "Of the random draws: the same seed, the same answer");
}

void add_steps_option(CLI::App* command, decode::GenerateOptions& o) {
  command
      ->add_option("--steps-per-call", o.steps_per_call,
                   "Launches that are enqueued at once; each takes its token from the one before "
                   "without the host. Greedy answers without a draft only; tokens come by so many, "
                   "and an end is noticed after them")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}));
}

void add_draft_options(CLI::App* command, std::string& name, decode::GenerateOptions& o) {
  CLI::Option* draft = command->add_option(
      "--draft", name,
      "Verify several guesses per launch. 'ngram' takes them from the text so far; "
      "a checkpoint directory is a DFlash2 draft of the model. The answer stays "
      "the same, and comes sooner where guesses come true");
  CLI::Option* tokens =
      command
          ->add_option("--draft-tokens", o.draft_tokens,
                       "Guesses per launch at most; fewer where they have not been worth it")
          ->check(CLI::Range(int64_t{1}, int64_t{63}));
  if (name.empty()) tokens->needs(draft);
}

Result<OpenDraft> open_draft(const std::string& name) {
  OpenDraft out;
  if (name.empty()) return out;
  if (name == "ngram") {
    out.draft = std::make_unique<decode::NgramDraft>();
    return out;
  }
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored)) {
    return input_error("--draft '{}': give ngram, or the checkpoint directory of a DFlash2 draft",
                       name);
  }
  TRY(weights::Checkpoint checkpoint, weights::Checkpoint::open(name));
  out.checkpoint = std::make_unique<weights::Checkpoint>(std::move(checkpoint));
  auto taps = decode::Dflash2Draft::taps(*out.checkpoint);
  if (!taps) return std::unexpected(taps.error().in("--draft " + name));
  out.taps = std::move(*taps);
  return out;
}

Result<decode::Draft*> OpenDraft::load(const OpenModel& model, const decode::StepRunner& runner) {
  if (checkpoint == nullptr) return draft.get();
  auto loaded = decode::Dflash2Draft::load(*checkpoint, *model.checkpoint, runner);
  if (!loaded) return std::unexpected(loaded.error().in("--draft " + checkpoint->path()));
  draft = std::move(*loaded);
  return draft.get();
}

nlohmann::json draft_json(const decode::Generation& g) {
  if (!g.draft) return nullptr;
  return {{"proposed", g.draft->proposed},
          {"accepted", g.draft->accepted},
          {"rounds", g.draft->rounds},
          {"mean_accepted", g.draft->mean_accepted()},
          {"launches", g.steps}};
}

Result<std::optional<weights::Format>> parse_format(const std::string& name,
                                                    const models::Formats& native) {
  using weights::Format;
  if (name.empty()) return std::nullopt;
  if (name == "bf16") return Format::kBf16;
  if (name == "q8") return Format::kQ8;
  if (name == "q4") {
    if (native.layers == Format::kQ4 || native.layers == Format::kQ4m) return std::nullopt;
    return Format::kQ4;
  }
  if (name == "fp8" || name == "mxfp4") {
    return input_error("--format {}: Llama models run in bf16, q8 or q4 in this version", name);
  }
  return input_error("--format '{}': give bf16, q8 or q4", name);
}

namespace {

// The programs say cores, and the machine has no part in it: no threads.
Result<void> tpu_options(const ModelOptions& o, decode::RunnerOptions& out) {
  if (o.programs.empty()) {
    return input_error(
        "--engine tpu runs programs that were compiled for the slice: `gridless compile "
        "'{}{}?rows=1' --slice tpu7x:2x2x1 -o step1` makes one, then add --program step1 "
        "(docs/tpu.md says more)",
        models::find_model(o.model) ? "model:" : "", o.model);
  }
  out.engine = decode::EngineKind::kTpu;
  TRY(decode::TpuPrograms programs,
      decode::TpuPrograms::read({o.programs.begin(), o.programs.end()}));
  out.cores = programs.cores();
  if (o.cores != 0 && o.cores != out.cores) {
    return input_error("--cores {}: {} is for {}; leave the option out", o.cores, o.programs[0],
                       out.cores);
  }
  out.max_rows = programs.max_rows();
  out.programs = std::make_shared<const decode::TpuPrograms>(std::move(programs));
  TRY(const tpu::Libtpu libtpu, tpu::find_libtpu(o.libtpu));
  out.tpu.libtpu = libtpu.path.string();
  out.tpu.limit = std::chrono::milliseconds(static_cast<int64_t>(o.time_limit * 1000));
  return {};
}

}  // namespace

Result<decode::RunnerOptions> runner_options(const ModelOptions& o, int64_t vocab,
                                             const models::Formats& native, int packed_cores) {
  decode::RunnerOptions out;
  TRY(out.format, parse_format(o.format, native));
  if (o.engine == "tpu") {
    TRY_VOID(tpu_options(o, out));
    return out;
  }
  if (o.engine != "cpu" && o.engine != "emulate")
    return input_error("--engine '{}': give cpu, emulate or tpu", o.engine);
  if (!o.programs.empty()) return input_error("--program is for --engine tpu");
  out.engine = o.engine == "cpu" ? decode::EngineKind::kCpu : decode::EngineKind::kEmulate;
  out.cores = o.cores == 0 ? packed_cores : o.cores;
  out.threads = o.threads;
  if (out.threads == 0) {
    out.threads = physical_processors();
    if (out.cores > 0) out.threads = std::min(out.threads, out.cores);
  }
  if (out.cores == 0) {
    out.cores = std::min(out.threads, 128);
    while (vocab % out.cores != 0) --out.cores;
  }
  out.threads = std::min(out.threads, out.cores);
  return out;
}

void keep_hosts_together(const decode::RunnerOptions& options, decode::GenerateOptions& generate) {
  if (options.engine == decode::EngineKind::kTpu) generate.adapt_draft = false;
}

Result<const text::Tokenizer*> OpenModel::require_tokenizer() const {
  if (tokenizer) return &*tokenizer;
  return input_error("{} (`gridless run MODEL --tokens 1,2,3` takes ids and needs no tokenizer)",
                     no_tokenizer);
}

Result<OpenModel> open_model(const ModelOptions& options) {
  OpenModel out;
  TRY(const std::filesystem::path path, models::resolve_weights(options.model));
  out.path = path.string();
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored) &&
      !std::filesystem::is_regular_file(path, ignored)) {
    return input_error("{}: weights are mapped, so a file or a directory is needed", out.path);
  }
  TRY(weights::Checkpoint checkpoint, weights::Checkpoint::open(out.path));
  out.checkpoint = std::make_unique<weights::Checkpoint>(std::move(checkpoint));
  auto model = models::model_of(out.checkpoint->config());
  if (!model) return std::unexpected(model.error().in(out.path));
  out.model = std::move(*model);
  const weights::Images* images = out.checkpoint->images();
  if (!images) TRY_VOID(out.model->check_tensors(*out.checkpoint));
  TRY(out.native,
      images ? decode::formats_of(images->manifest()) : out.model->native_formats(*out.checkpoint));
  const bool is_file = out.checkpoint->gguf() && !images;
  const std::string place = is_file ? out.path : out.checkpoint->directory();
  const bool has_tokenizer =
      out.checkpoint->gguf() != nullptr ||
      std::filesystem::exists(std::filesystem::path(place) / "tokenizer.json", ignored) ||
      std::filesystem::exists(std::filesystem::path(place) / "tiktoken.model", ignored);
  if (!has_tokenizer) {
    out.no_tokenizer = fmt::format(
        "{}: there is no tokenizer with these weights: put tokenizer.json beside them", out.path);
  } else if (auto tokenizer = text::load_tokenizer(place)) {
    out.tokenizer = std::move(*tokenizer);
  } else if (tokenizer.error().kind == Error::Kind::kInput) {
    out.no_tokenizer = tokenizer.error().message;
  } else {
    return std::unexpected(tokenizer.error());
  }
  TRY(out.eos, decode::end_tokens(*out.checkpoint, out.tokenizer ? &*out.tokenizer : nullptr));
  return out;
}

Result<int64_t> choose_context(const ModelOptions& options, const models::Model& model,
                               int64_t wanted) {
  if (options.context > model.context()) {
    return input_error("--context {}: the model was trained for at most {} tokens", options.context,
                       model.context());
  }
  return options.context > 0 ? options.context : std::min(wanted, model.context());
}

Result<std::unique_ptr<decode::StepRunner>> load_weights(const OpenModel& model,
                                                         const decode::RunnerOptions& options) {
  const uint64_t total = model.checkpoint->file_bytes();
  Progress progress("packing weights", total, "B");
  auto runner = decode::StepRunner::load(*model.checkpoint, options, [&](double done) {
    progress.update(static_cast<uint64_t>(done * static_cast<double>(total)));
  });
  if (!runner) return std::unexpected(runner.error().in(model.path));
  return runner;
}

Result<ReadBandwidth> model_bandwidth(const decode::RunnerOptions& options) {
  if (options.engine != decode::EngineKind::kTpu) return read_bandwidth(options.threads);
  return ReadBandwidth{.bytes_per_second = chips::Tpu7x().hbm_bytes_per_second * options.cores,
                       .threads = options.threads};
}

Result<std::vector<int32_t>> chat_prompt(const OpenModel& model, const text::ChatModel& chat,
                                         const nlohmann::ordered_json& messages) {
  TRY(const text::Tokenizer* tokenizer, model.require_tokenizer());
  text::ChatInput input;
  input.messages = messages;
  input.variables = chat.special_tokens;
  TRY(const std::string text, text::render_chat(chat.chat_template, input));
  return tokenizer->encode(text);
}

namespace {
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // a signal handler may set it
}  // namespace

CatchInterrupt::CatchInterrupt() {
  interrupted = false;
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = true; };
  sigaction(SIGINT, &action, nullptr);  // without SA_RESTART: a read from a terminal returns
}

CatchInterrupt::~CatchInterrupt() { std::signal(SIGINT, SIG_DFL); }

std::atomic<bool>& CatchInterrupt::flag() { return interrupted; }

}  // namespace gridless::apps
