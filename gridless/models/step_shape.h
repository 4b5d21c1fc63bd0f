// Everything about a step program beside the model (docs/launch_contract.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gridless/weights/stream_layout.h"

namespace gridless::models {

// The formats a model's matrices run in.
struct Formats {
  weights::Format layers = weights::Format::kBf16, head = weights::Format::kBf16;
  weights::Format experts = weights::Format::kMxfp4;  // routed ones, where there are any
};

struct StepShape {
  int64_t rows = 1;         // R
  int64_t slots = 1;        // sequences that may be live
  int64_t pages = 64;       // of 128 tokens, in all
  int64_t slot_pages = 64;  // pages one sequence may use
  int64_t candidates = 8;   // top-k candidates per row
  Formats formats;
  int64_t max_chunk_bytes = 4 << 20;
  // Models with a delta rule: rows that are committed at once are taken in chunks.
  bool chunked_delta = false;
  // Of a mixture of experts: groups of cores among which the experts are divided; within a group
  // each core has a share of every one. 0: what is expected to be fastest.
  int64_t expert_groups = 0;
  // Also give what passes between the parts of a layer, where the model has such results (for
  // tests, and for drafts that read a model's hidden states).
  bool taps = false;
  // Layers whose output a draft model reads: result `features`.
  std::vector<int64_t> feature_layers;
};

// Values of a layer in the result `taps`: the residual stream as it enters, what attention reads of
// it before its norm and what it gives, and the same of the MLP.
inline constexpr int64_t kTaps = 5;

// Slots of the weight ring. While a core waits for its peers, or works through a layer's
// recurrence, the stream must run on: the more is in flight, the longer it can. Activations of many
// rows need the memory themselves.
// `elsewhere`: bytes that a step of few rows needs for other streams.
inline int ring_slots(const weights::StreamLayout& stream, int64_t rows, int64_t elsewhere = 0) {
  constexpr int64_t kFewRows = 8, kLeast = 3, kMost = 24;
  const int64_t bytes = rows <= kFewRows ? (int64_t{44} << 20) - elsewhere : int64_t{20} << 20;
  return static_cast<int>(std::clamp(bytes / (stream.chunk_rows * 512), kLeast, kMost));
}

}  // namespace gridless::models
