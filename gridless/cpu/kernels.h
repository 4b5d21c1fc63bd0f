// Hand kernels of the CPU engine: one function per composite of docs/composites.md, one table of
// them per instruction set. Arguments are raw pointers and sizes: no types of the IR, no STL, so
// that the files compiled for a wider instruction set emit nothing the linker could share.
//
// bf16 elements are their bit patterns (uint16_t). All pointers need the alignment of their element
// only; 64 bytes make the AVX-512 kernels faster. Functions are thread-safe: they write only
// through their arguments and to scratch memory of the calling thread.
#pragma once

#include <cstdint>

#include "gridless/base/cpu_features.h"

namespace gridless::cpu {

inline constexpr int64_t kLanes = 128;       // lanes of a panel
inline constexpr int64_t kPageTokens = 128;  // tokens of a cache page

// dot_bf16, dot_q8, dot_q4, dot_q4m. The bits of a row do not depend on `rows` or the table.
struct DotArgs {
  const uint16_t* x = nullptr;     // bf16 [KP, rows, 128]
  const uint32_t* tile = nullptr;  // [.., 128] words: a chunk, see docs/weight_stream.md
  float* out = nullptr;            // [panels, rows, 128]
  int64_t k0 = 0;                  // first input, a multiple of 32
  int64_t kp = 0;                  // inputs, a multiple of 32
  int64_t panels = 0;
  int64_t rows = 0;
  bool accumulate = false;  // go on from `out` instead of +0
};

struct RmsNormArgs {
  const float* x = nullptr;  // [panels, rows, 128], lanes beyond width zero
  const float* w = nullptr;  // [panels, 1, 128]
  uint16_t* out = nullptr;   // bf16 [panels, rows, 128]
  int64_t panels = 0;
  int64_t rows = 0;
  int64_t width = 0;
  float eps = 0;
};

struct QkvRopeArgs {
  const float* y = nullptr;    // [NP, rows, 128]: flat width (groups + 2) * width
  const float* cos = nullptr;  // [rows, half_stride]
  const float* sin = nullptr;  // [rows, half_stride]
  uint16_t* out = nullptr;     // bf16 [groups + 2, rows, width_stride]
  int64_t groups = 0;
  int64_t width = 0;  // W, even
  int64_t rows = 0;
  int64_t half_stride = 0;   // Hp >= W / 2
  int64_t width_stride = 0;  // Wp >= W
};

struct KvAppendArgs {
  const uint16_t* qkv = nullptr;       // bf16 [groups + 2, rows, width_stride]
  uint16_t* cache = nullptr;           // bf16 [pages, 2, 128, width_stride]
  const int32_t* row_table = nullptr;  // [4, rows]: token, slot, position, active
  const int32_t* pages = nullptr;      // [slots, max_pages]
  int64_t groups = 0;
  int64_t rows = 0;
  int64_t width_stride = 0;
  int64_t max_pages = 0;
};

struct DecodeAttentionArgs {
  const uint16_t* qkv = nullptr;       // bf16 [groups + 2, rows, width_stride]
  const uint16_t* cache = nullptr;     // bf16 [pages, 2, 128, width_stride]
  const int32_t* row_table = nullptr;  // [4, rows]
  const int32_t* pages = nullptr;      // [slots, max_pages]
  uint16_t* out = nullptr;             // bf16 [ceil(groups * width / 128), rows, 128]
  int64_t groups = 0;                  // G queries of every key/value head
  int64_t heads = 0;                   // H key/value heads
  int64_t head_dim = 0;                // D, even; width is H * D
  int64_t rows = 0;
  int64_t width_stride = 0;
  int64_t max_pages = 0;
  float scale = 0;
};

struct QkvNormRopeArgs {
  QkvRopeArgs rope;
  const float* norms = nullptr;  // [2 (queries, key), 2 halves, half_stride]
  int64_t heads = 0;             // H; width is H * D
  float eps = 0;
};

struct GateContextArgs {
  uint16_t* context = nullptr;  // bf16 [n]
  const float* gate = nullptr;  // [n]
  int64_t n = 0;
};

// Shapes: blocks/gated_delta.h. Pointers of state are those of the layer, with all slots.
struct GatedDeltaArgs {
  const float* y = nullptr;            // [projection panels, rows, 128]
  const float* conv = nullptr;         // [4, conv panels, 128]
  const float* vectors = nullptr;      // [8, 128]
  float* matrix = nullptr;             // [slots, value_heads, key_dim, value_dim]
  float* columns = nullptr;            // [slots, conv panels, 16, 128]
  float* pending = nullptr;            // [slots, 8, key_heads + 2 value_heads, 128]
  const int32_t* row_table = nullptr;  // [4, rows]
  const int32_t* first = nullptr;      // [rows]: first row of the run
  const int32_t* after = nullptr;      // [rows]: rows of the run that follow
  const int32_t* keep = nullptr;       // [slots]
  uint16_t* out = nullptr;             // bf16 [panels of value_heads * value_dim, rows, 128]
  int64_t key_heads = 0;
  int64_t value_heads = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  int64_t rows = 0;
  float eps = 0;
};

struct SwigluArgs {
  const float* y = nullptr;  // [panels, rows, 128]: the first half gate, the second half up
  uint16_t* out = nullptr;   // bf16 [panels / 2, rows, 128]
  int64_t panels = 0;        // even
  int64_t rows = 0;
};

struct AddIntoArgs {
  float* x = nullptr;        // [panels, rows, 128]
  const float* y = nullptr;  // [panels, rows, 128]
  int64_t panels = 0;
  int64_t rows = 0;
};

struct TopkInsertArgs {
  const float* logits = nullptr;  // [panels, rows, 128]
  float* vals = nullptr;          // [k, rows, 128], descending per lane
  float* ids = nullptr;           // [k, rows, 128]
  int64_t base = 0;               // id of lane 0 of panel 0
  int64_t panels = 0;
  int64_t rows = 0;
  int64_t k = 0;
  int64_t limit = 0;  // ids from here on are not inserted
};

struct TopkFinalArgs {
  const float* vals = nullptr;  // [k, rows, 128], descending per lane
  const float* ids = nullptr;   // [k, rows, 128]
  float* out_vals = nullptr;    // [rows, 128]
  int32_t* out_ids = nullptr;   // [rows, 128]
  int64_t rows = 0;
  int64_t k = 0;  // 1 .. 128
};

struct KernelTable {
  void (*dot_bf16)(const DotArgs&);
  void (*dot_q8)(const DotArgs&);
  void (*dot_q4)(const DotArgs&);
  void (*dot_q4m)(const DotArgs&);
  void (*rms_norm)(const RmsNormArgs&);
  void (*qkv_rope)(const QkvRopeArgs&);
  void (*kv_append)(const KvAppendArgs&);
  void (*decode_attention)(const DecodeAttentionArgs&);
  void (*swiglu)(const SwigluArgs&);
  void (*add_into)(const AddIntoArgs&);
  void (*topk_insert)(const TopkInsertArgs&);
  void (*topk_final)(const TopkFinalArgs&);
  void (*qkv_norm_rope)(const QkvNormRopeArgs&);
  void (*gate_context)(const GateContextArgs&);
  void (*gated_delta)(const GatedDeltaArgs&);
};

// The table for `isa`, which must not be above detected_isa(). Isa::kBaseline is the reference:
// plain loops that read like the contracts.
const KernelTable& kernels(Isa isa);

}  // namespace gridless::cpu
