// What `run`, `chat` and `bench` share: the options that say how a model is loaded, and loading it.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/base/read_bandwidth.h"
#include "gridless/decode/draft.h"
#include "gridless/decode/generator.h"
#include "gridless/decode/runner.h"
#include "gridless/decode/sampler.h"
#include "gridless/text/text_model.h"
#include "gridless/weights/checkpoint.h"

namespace gridless::apps {

struct ModelOptions {
  std::string model, engine = "cpu", format;
  int cores = 0, threads = 0;  // 0: chosen by the machine and the model
  int64_t context = 0;         // 0: what the command needs
  // For --engine tpu.
  std::vector<std::string> programs;
  std::string libtpu;
  double time_limit = 120;
};
void add_model_options(CLI::App* command, ModelOptions& options);
void add_sampler_options(CLI::App* command, decode::SamplerOptions& options);

// --steps-per-call into `options`.
void add_steps_option(CLI::App* command, decode::GenerateOptions& options);
// --draft into `name`, --draft-tokens into `options`.
void add_draft_options(CLI::App* command, std::string& name, decode::GenerateOptions& options);

struct OpenModel;
// What --draft names: nothing, ngram, or the checkpoint of a draft model.
struct OpenDraft {
  std::unique_ptr<decode::Draft> draft;             // null until load() where it is a model
  std::unique_ptr<weights::Checkpoint> checkpoint;  // of a draft model
  std::vector<int64_t> taps;                        // RunnerOptions::feature_layers that it needs

  // The draft for a model that was loaded with `taps`, null where none was asked for. Model and
  // runner must outlive it.
  Result<decode::Draft*> load(const OpenModel& model, const decode::StepRunner& runner);
};
Result<OpenDraft> open_draft(const std::string& name);
// The statistics of a generation, null of one without a draft.
nlohmann::json draft_json(const decode::Generation& generation);

// Fills in cores, threads, engine and format. The largest number of cores up to the number of
// threads that divides the vocabulary is taken, so that every worker has one. `native`: what the
// checkpoint holds; 4-bit blocks of either kind are kept where q4 is asked for.
// `packed_cores`: what the model's images are for, 0 where weights are packed at the start.
Result<decode::RunnerOptions> runner_options(const ModelOptions& options, int64_t vocab,
                                             const models::Formats& native, int packed_cores = 0);
// --format; none: what the checkpoint holds.
Result<std::optional<weights::Format>> parse_format(const std::string& name,
                                                    const models::Formats& native);

// The hosts of a slice must launch the same rows, and each would measure its own times.
void keep_hosts_together(const decode::RunnerOptions& options, decode::GenerateOptions& generate);

// A checkpoint with its texts, before its weights are packed.
struct OpenModel {
  std::string path;
  std::unique_ptr<weights::Checkpoint> checkpoint;
  std::unique_ptr<models::Model> model;
  models::Formats native;
  std::optional<text::Tokenizer> tokenizer;  // none: see no_tokenizer
  std::string no_tokenizer;                  // why there is none: absent, or of an unsupported kind
  std::vector<int32_t> eos;

  // An error that says why when there is none.
  Result<const text::Tokenizer*> require_tokenizer() const;
  int packed_cores() const {
    return checkpoint->images() ? checkpoint->images()->manifest().cores : 0;
  }
};
// A tokenizer that cannot be read is no error yet: token ids need none.
Result<OpenModel> open_model(const ModelOptions& options);

// The context to load with: what was asked for, else `wanted` up to the model's own.
Result<int64_t> choose_context(const ModelOptions& options, const models::Model& model,
                               int64_t wanted);

// Packs the weights, with progress on stderr.
Result<std::unique_ptr<decode::StepRunner>> load_weights(const OpenModel& model,
                                                         const decode::RunnerOptions& options);

// What the memories that hold the model can be read with: measured on this machine, or what the
// TPU's specification says.
Result<ReadBandwidth> model_bandwidth(const decode::RunnerOptions& options);

// The prompt ids of a conversation, the assistant's turn opened.
Result<std::vector<int32_t>> chat_prompt(const OpenModel& model, const text::ChatModel& chat,
                                         const nlohmann::ordered_json& messages);

// While it lives, Ctrl-C sets flag() instead of ending the program. One at a time.
class CatchInterrupt {
 public:
  CatchInterrupt();
  ~CatchInterrupt();
  CatchInterrupt(const CatchInterrupt&) = delete;
  CatchInterrupt& operator=(const CatchInterrupt&) = delete;
  static std::atomic<bool>& flag();
};

}  // namespace gridless::apps
