#include "gridless/cpu/composites.h"

#include <map>

#include "gridless/cpu/add_sum.h"
#include "gridless/emulate/codec.h"
#include "gridless/ir/composite.h"

namespace gridless::cpu {

namespace {

// Operand `i` as a pointer. The caller has checked that all refs are contiguous.
class Binder {
 public:
  Binder(const ir::Op& op, std::span<const BoundOperand> operands) : op_(op), operands_(operands) {}

  template <typename T>
  T* pointer(size_t i) const {
    const emulate::View& v = operands_[i].view;
    std::byte* base = v.buffer->data.data() + v.offset * emulate::storage_bits(v.elem) / 8;
    return reinterpret_cast<T*>(base);
  }
  int64_t dim(size_t i, size_t d) const { return operands_[i].view.shape[d]; }
  int64_t scalar(size_t i) const { return operands_[i].integer; }
  int64_t param(const char* name) const { return ir::composite_int(op_, name); }
  float real(const char* name) const { return static_cast<float>(ir::composite_real(op_, name)); }

 private:
  const ir::Op& op_;
  std::span<const BoundOperand> operands_;
};

using Bind = KernelCall (*)(const Binder&, const KernelTable&);

template <auto Kernel, typename Args>
KernelCall call(const KernelTable& table, Args args) {
  return [kernel = table.*Kernel, args] { kernel(args); };
}

template <auto Kernel>
KernelCall dot(const Binder& b, const KernelTable& t) {
  return call<Kernel>(t, DotArgs{.x = b.pointer<const uint16_t>(0),
                                 .tile = b.pointer<const uint32_t>(1),
                                 .out = b.pointer<float>(2),
                                 .k0 = b.param("k0"),
                                 .kp = b.param("kp"),
                                 .panels = b.param("panels"),
                                 .rows = b.param("rows"),
                                 .accumulate = b.param("accumulate") != 0});
}

KernelCall rms_norm(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::rms_norm>(t, RmsNormArgs{.x = b.pointer<const float>(0),
                                                     .w = b.pointer<const float>(1),
                                                     .out = b.pointer<uint16_t>(2),
                                                     .panels = b.dim(0, 0),
                                                     .rows = b.param("rows"),
                                                     .width = b.param("width"),
                                                     .eps = b.real("eps")});
}

KernelCall qkv_rope(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::qkv_rope>(t, QkvRopeArgs{.y = b.pointer<const float>(0),
                                                     .cos = b.pointer<const float>(1),
                                                     .sin = b.pointer<const float>(2),
                                                     .out = b.pointer<uint16_t>(3),
                                                     .groups = b.param("groups"),
                                                     .width = b.param("width"),
                                                     .rows = b.param("rows"),
                                                     .half_stride = b.dim(1, 1),
                                                     .width_stride = b.dim(3, 2)});
}

KernelCall qkv_norm_rope(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::qkv_norm_rope>(
      t, QkvNormRopeArgs{.rope = {.y = b.pointer<const float>(0),
                                  .cos = b.pointer<const float>(2),
                                  .sin = b.pointer<const float>(3),
                                  .out = b.pointer<uint16_t>(4),
                                  .groups = b.param("groups"),
                                  .width = b.param("width"),
                                  .rows = b.param("rows"),
                                  .half_stride = b.dim(2, 1),
                                  .width_stride = b.dim(4, 2)},
                         .norms = b.pointer<const float>(1),
                         .heads = b.param("heads"),
                         .eps = b.real("eps")});
}

KernelCall gate_context(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::gate_context>(
      t, GateContextArgs{.context = b.pointer<uint16_t>(0),
                         .gate = b.pointer<const float>(1),
                         .n = b.dim(0, 0) * b.dim(0, 1) * b.dim(0, 2)});
}

KernelCall gated_delta(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::gated_delta>(t, GatedDeltaArgs{.y = b.pointer<const float>(0),
                                                           .conv = b.pointer<const float>(1),
                                                           .vectors = b.pointer<const float>(2),
                                                           .matrix = b.pointer<float>(3),
                                                           .columns = b.pointer<float>(4),
                                                           .pending = b.pointer<float>(5),
                                                           .row_table = b.pointer<const int32_t>(6),
                                                           .first = b.pointer<const int32_t>(7),
                                                           .after = b.pointer<const int32_t>(8),
                                                           .keep = b.pointer<const int32_t>(9),
                                                           .out = b.pointer<uint16_t>(10),
                                                           .key_heads = b.param("key_heads"),
                                                           .value_heads = b.param("value_heads"),
                                                           .key_dim = b.param("key_dim"),
                                                           .value_dim = b.param("value_dim"),
                                                           .rows = b.param("rows"),
                                                           .eps = b.real("eps")});
}

KernelCall kv_append(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::kv_append>(t, KvAppendArgs{.qkv = b.pointer<const uint16_t>(0),
                                                       .cache = b.pointer<uint16_t>(1),
                                                       .row_table = b.pointer<const int32_t>(2),
                                                       .pages = b.pointer<const int32_t>(3),
                                                       .groups = b.param("groups"),
                                                       .rows = b.param("rows"),
                                                       .width_stride = b.dim(0, 2),
                                                       .max_pages = b.dim(3, 1)});
}

KernelCall decode_attention(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::decode_attention>(
      t, DecodeAttentionArgs{.qkv = b.pointer<const uint16_t>(0),
                             .cache = b.pointer<const uint16_t>(1),
                             .row_table = b.pointer<const int32_t>(2),
                             .pages = b.pointer<const int32_t>(3),
                             .out = b.pointer<uint16_t>(4),
                             .groups = b.param("groups"),
                             .heads = b.param("heads"),
                             .head_dim = b.param("head_dim"),
                             .rows = b.param("rows"),
                             .width_stride = b.dim(0, 2),
                             .max_pages = b.dim(3, 1),
                             .scale = b.real("scale")});
}

KernelCall swiglu(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::swiglu>(t, SwigluArgs{.y = b.pointer<const float>(0),
                                                  .out = b.pointer<uint16_t>(1),
                                                  .panels = b.param("panels"),
                                                  .rows = b.param("rows")});
}

KernelCall add_into(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::add_into>(t, AddIntoArgs{.x = b.pointer<float>(0),
                                                     .y = b.pointer<const float>(1),
                                                     .panels = b.dim(0, 0),
                                                     .rows = b.param("rows")});
}

KernelCall all_reduce_sum(const Binder& b, const KernelTable&) {
  const AddSumArgs args{.x = b.pointer<float>(0),
                        .boxes = b.pointer<const float>(1),
                        .elements = b.dim(0, 0) * b.param("rows") * kLanes,
                        .cores = b.param("cores")};
  return [args] { add_sum(args); };
}

KernelCall topk_insert(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::topk_insert>(t, TopkInsertArgs{.logits = b.pointer<const float>(0),
                                                           .vals = b.pointer<float>(1),
                                                           .ids = b.pointer<float>(2),
                                                           .base = b.scalar(3),
                                                           .panels = b.param("panels"),
                                                           .rows = b.param("rows"),
                                                           .k = b.param("k"),
                                                           .limit = b.param("limit")});
}

KernelCall topk_final(const Binder& b, const KernelTable& t) {
  return call<&KernelTable::topk_final>(t, TopkFinalArgs{.vals = b.pointer<const float>(0),
                                                         .ids = b.pointer<const float>(1),
                                                         .out_vals = b.pointer<float>(2),
                                                         .out_ids = b.pointer<int32_t>(3),
                                                         .rows = b.param("rows"),
                                                         .k = b.param("k")});
}

const std::map<std::string_view, Bind>& binders() {
  static const std::map<std::string_view, Bind> table = {
      {"dot_bf16", dot<&KernelTable::dot_bf16>},
      {"dot_q8", dot<&KernelTable::dot_q8>},
      {"dot_q4", dot<&KernelTable::dot_q4>},
      {"dot_q4m", dot<&KernelTable::dot_q4m>},
      {"rms_norm", rms_norm},
      {"qkv_rope", qkv_rope},
      {"qkv_norm_rope", qkv_norm_rope},
      {"gate_context", gate_context},
      {"gated_delta", gated_delta},
      {"kv_append", kv_append},
      {"decode_attention", decode_attention},
      {"swiglu", swiglu},
      {"add_into", add_into},
      {"add_sum", all_reduce_sum},
      {"topk_insert", topk_insert},
      {"topk_final", topk_final},
  };
  return table;
}

}  // namespace

bool has_hand_kernel(std::string_view composite) { return binders().contains(composite); }

std::optional<KernelCall> bind_kernel(const ir::Op& op, std::span<const BoundOperand> operands,
                                      const KernelTable& kernels) {
  const auto it = binders().find(ir::composite_name(op));
  if (it == binders().end()) return std::nullopt;
  for (const BoundOperand& o : operands) {
    if (o.view.buffer && !(o.view.plain() && o.view.contiguous())) return std::nullopt;
  }
  return it->second(Binder(op, operands), kernels);
}

}  // namespace gridless::cpu
