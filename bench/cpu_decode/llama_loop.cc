// The token loop of llama.cpp, through its public C interface (built by cpu_decode.py, not by
// CMake; commands: loop.h).
//
//   llama_loop MODEL.gguf THREADS
//   llama_loop tokenize MODEL.gguf TEXT            ids, separated by spaces
//   llama_loop quantize FROM.gguf TO.gguf TYPE     TYPE: bf16, q8_0 or q4_0, for every matrix
#include <llama.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "loop.h"

namespace gridless_bench {
namespace {

class Llama : public Engine {
 public:
  explicit Llama(llama_context* context)
      : context_(context),
        vocab_(llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)))) {}

  int32_t vocab() const override { return vocab_; }
  void truncate(int32_t position) override {
    llama_memory_seq_rm(llama_get_memory(context_), 0, position, -1);
  }
  bool step(std::span<const int32_t> tokens, int32_t) override {
    tokens_.assign(tokens.begin(), tokens.end());
    const int status = llama_decode(
        context_, llama_batch_get_one(tokens_.data(), static_cast<int32_t>(tokens_.size())));
    if (status != 0) std::fprintf(stderr, "llama_loop: llama_decode gave %d\n", status);
    llama_synchronize(context_);
    return status == 0;
  }
  std::span<const float> logits() override {
    return {llama_get_logits_ith(context_, -1), static_cast<size_t>(vocab_)};
  }

 private:
  llama_context* context_;
  int32_t vocab_;
  std::vector<llama_token> tokens_;
};

int quantize(const char* from, const char* to, std::string_view type) {
  llama_model_quantize_params params = llama_model_quantize_default_params();
  params.allow_requantize = true;
  params.pure = true;
  if (type == "bf16") {
    params.ftype = LLAMA_FTYPE_MOSTLY_BF16;
  } else if (type == "q8_0") {
    params.ftype = LLAMA_FTYPE_MOSTLY_Q8_0;
  } else if (type == "q4_0") {
    params.ftype = LLAMA_FTYPE_MOSTLY_Q4_0;
  } else {
    return 1;
  }
  return llama_model_quantize(from, to, &params) == 0 ? 0 : 2;
}

llama_model* load(const char* path, bool vocab_only) {
  llama_model_params params = llama_model_default_params();
  params.vocab_only = vocab_only;
  llama_model* model = llama_model_load_from_file(path, params);
  if (model == nullptr) std::fprintf(stderr, "llama_loop: cannot load %s\n", path);
  return model;
}

int tokenize(const char* path, const char* text) {
  llama_model* model = load(path, true);
  if (model == nullptr) return 1;
  std::vector<llama_token> ids(std::strlen(text) + 8);
  const int count =
      llama_tokenize(llama_model_get_vocab(model), text, static_cast<int32_t>(std::strlen(text)),
                     ids.data(), static_cast<int32_t>(ids.size()), false, true);
  for (int i = 0; i < count; ++i) std::printf("%d ", ids[static_cast<size_t>(i)]);
  std::printf("\n");
  llama_model_free(model);
  return count > 0 ? 0 : 1;
}

int run(const char* path, int threads) {
  const double begin = seconds(CLOCK_MONOTONIC);
  llama_model* model = load(path, false);
  if (model == nullptr) return 1;
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 1024;
  params.n_batch = 512;
  params.n_threads = params.n_threads_batch = threads;
  llama_context* context = llama_init_from_model(model, params);
  if (context == nullptr) return 1;
  std::printf("{\"load_s\": %.2f, \"weight_bytes\": %llu}\n", seconds(CLOCK_MONOTONIC) - begin,
              static_cast<unsigned long long>(llama_model_size(model)));
  std::fflush(stdout);
  Llama engine(context);
  const int status = serve(engine);
  llama_free(context);
  llama_model_free(model);
  return status;
}

}  // namespace
}  // namespace gridless_bench

int main(int argc, char** argv) {
  using namespace gridless_bench;
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  llama_backend_init();
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (argc == 4 && command == "tokenize") return tokenize(argv[2], argv[3]);
  if (argc == 5 && command == "quantize") return quantize(argv[2], argv[3], argv[4]);
  if (argc == 3 && std::atoi(argv[2]) > 0) return run(argv[1], std::atoi(argv[2]));
  std::fprintf(stderr, "usage: llama_loop MODEL.gguf THREADS (see the head of llama_loop.cc)\n");
  return 1;
}
