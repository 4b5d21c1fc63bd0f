// What `inspect` says about the step of a model: the formats its matrices run in, and per core
// count the weight stream and the cache.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/inspect.h"
#include "gridless/models/llama/weights.h"

namespace gridless::apps {
namespace {

using nlohmann::json;

constexpr int kCoreCounts[] = {1, 2, 4, 8};

// Bits of a weight in a format, its share of the scales included.
double bits(weights::Format f) {
  constexpr int64_t kInputs = 64;  // the least number that fills whole words of scales
  return static_cast<double>(weights::code_rows(f, kInputs) + weights::scale_rows(f, kInputs)) *
         32 / kInputs;
}

json on_cores(const models::LlamaConfig& m, const models::Formats& formats, int cores) {
  const auto sharding = models::shard_llama(m, cores);
  if (!sharding) return {{"cores", cores}, {"error", sharding.error().message}};
  models::StepShape shape;
  shape.formats = formats;
  const weights::StreamLayout s = models::llama_stream(m, *sharding, shape);
  const int64_t q = m.heads * m.head_dim, kv = m.kv_heads * m.head_dim;
  const auto layer = static_cast<double>(m.hidden * (2 * q + 2 * kv) + 3 * m.hidden * m.ffn);
  const double model_bytes = (static_cast<double>(m.layers) * layer * bits(formats.layers) +
                              static_cast<double>(m.vocab * m.hidden) * bits(formats.head)) /
                             8;
  const int64_t image = s.total_bytes() * cores, used = s.used_bytes() * cores;
  const auto share = [&](int64_t bytes) {
    return std::max(0.0, 1 - model_bytes / static_cast<double>(bytes));
  };
  return {{"cores", cores},
          {"chunk_bytes", s.chunk_rows * 512},
          {"chunks_per_core", s.total_chunks()},
          {"image_bytes", image},
          {"used_bytes", used},
          {"waste", share(image)},
          {"waste_read", share(used)},
          {"kv_bytes_per_token", m.layers * 2 * 2 * sharding->attention.shape.padded() * cores},
          {"kv_heads_per_core", sharding->attention.shape.heads},
          {"query_groups", sharding->attention.shape.groups}};
}

}  // namespace

json step_facts(const weights::Checkpoint& checkpoint) {
  const auto config = models::llama_config(checkpoint.config());
  if (!config) return {{"error", config.error().message}};
  if (const auto ok = models::check_tensors(checkpoint, *config); !ok)
    return {{"error", ok.error().message}};
  const auto formats = models::native_formats(checkpoint, *config);
  if (!formats) return {{"error", formats.error().message}};
  const models::LlamaConfig& m = *config;
  json matrices = json::object();
  for (const char* name : {"qkv", "o", "gate_up", "down"})
    matrices[name] = weights::spelling(formats->layers);
  matrices["head"] = weights::spelling(formats->head);
  json cores = json::array();
  for (const int n : kCoreCounts) cores.push_back(on_cores(m, *formats, n));
  return {{"formats", matrices},
          {"kv_bytes_per_token", m.layers * 2 * 2 * m.kv_heads * m.head_dim},
          {"cores", cores}};
}

void print_step(const json& step) {
  fmt::print("\nstep\n");
  if (step.contains("error")) {
    fmt::print("  cannot run: {}\n", step["error"].get<std::string>());
    return;
  }
  std::string formats;
  for (const auto& [name, format] : step["formats"].items())
    formats += fmt::format("{}{} {}", formats.empty() ? "" : ", ", name, format.get<std::string>());
  fmt::print("  {}; keys and values of a token: {} bytes\n", formats,
             step["kv_bytes_per_token"].get<int64_t>());
  fmt::print("  {:>5} {:>12} {:>12} {:>14} {:>9} {:>13} {:>16}\n", "cores", "chunk bytes",
             "chunks/core", "image bytes", "waste", "waste if read", "cache bytes/token");
  for (const json& c : step["cores"]) {
    if (c.contains("error")) {
      fmt::print("  {:>5} {}\n", c["cores"].get<int>(), c["error"].get<std::string>());
      continue;
    }
    fmt::print("  {:>5} {:>12} {:>12} {:>14} {:>8.1f}% {:>12.1f}% {:>16}\n", c["cores"].get<int>(),
               c["chunk_bytes"].get<int64_t>(), c["chunks_per_core"].get<int64_t>(),
               c["image_bytes"].get<int64_t>(), 100 * c["waste"].get<double>(),
               100 * c["waste_read"].get<double>(), c["kv_bytes_per_token"].get<int64_t>());
  }
}

}  // namespace gridless::apps
