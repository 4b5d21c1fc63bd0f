// Everything about a step program beside the model (docs/launch_contract.md).
#pragma once

#include <cstdint>

#include "gridless/weights/stream_layout.h"

namespace gridless::models {

// The formats a model's matrices run in.
struct Formats {
  weights::Format layers = weights::Format::kBf16, head = weights::Format::kBf16;
};

struct StepShape {
  int64_t rows = 1;         // R
  int64_t slots = 1;        // sequences that may be live
  int64_t pages = 64;       // of 128 tokens, in all
  int64_t slot_pages = 64;  // pages one sequence may use
  int64_t candidates = 8;   // top-k candidates per row
  Formats formats;
  int64_t max_chunk_bytes = 4 << 20;
  int ring_slots = 4;
};

}  // namespace gridless::models
