#include "gridless/ir/versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace gridless::ir {
namespace {

constexpr std::string_view kVersionAttr = "stable_mosaic.version";
constexpr std::string_view kSegments = "operandSegmentSizes";
constexpr int kSubcoreVersion = 14;
constexpr int kReinterpretSegmentsVersion = 15;

// The operand segments when they are `count` small numbers that add up to the operands.
std::optional<std::vector<int64_t>> segments(const Op& op, size_t count) {
  const Attr* a = op.find(kSegments);
  if (!a || a->kind() != AttrKind::kDenseArray || (*a)->ints.size() != count) return std::nullopt;
  const std::vector<int64_t>& s = (*a)->ints;
  const auto most = static_cast<int64_t>(op.operands.size());
  int64_t sum = 0;
  for (int64_t n : s) {
    if (n < 0 || n > most) return std::nullopt;
    sum += n;
  }
  if (sum != most) return std::nullopt;
  return s;
}

void set_segments(std::vector<NamedAttr>& attrs, std::vector<int64_t> sizes) {
  for (NamedAttr& a : attrs) {
    if (a.first == kSegments) a.second = Attr::dense_array(Elem::kI32, std::move(sizes));
  }
}

// An op without subcore: one segment more or less at the end, which is empty.
void add_empty_segment(Op& op, size_t old_count) {
  if (auto s = segments(op, old_count)) {
    s->push_back(0);
    set_segments(op.attrs, std::move(*s));
  }
}

// Before version 3: wait_dma(sem, ref), which waits for the bytes of the ref.
void upgrade_wait1(Op& op) {
  Value* sem = op.operands[0];
  Value* ref = op.operands[1];
  op.operands = {ref, ref, sem};
  op.set(kSegments, Attr::dense_array(Elem::kI32, {1, 0, 1, 1, 0, 0, 0}));
  op.set("priority", Attr::i32(0));
  op.set("strict_ordering", Attr::boolean(false));
  op.set("wait_target", Attr::boolean(true));
}

// tpu.repeat lays copies of its vector side by side.
std::expected<void, std::string> upgrade_repeat(Op& op) {
  constexpr int64_t kMostCopies = 1 << 16;
  const Attr* times = op.find("times");
  const int64_t n = times && times->kind() == AttrKind::kInt ? (*times)->ints[0] : 0;
  if (op.operands.size() != 1 || n < 1 || n > kMostCopies)
    return std::unexpected("tpu.repeat needs one operand and times = 1 to 65536 : i32");
  op.operands.assign(static_cast<size_t>(n), op.operands[0]);
  std::erase_if(op.attrs, [](const NamedAttr& a) { return a.first == "times"; });
  return {};
}

// In the order of names, as the serialiser writes them.
void add_missing(Op& op, std::string_view name, const Attr& value) {
  if (op.find(name)) return;
  const auto behind =
      std::ranges::find_if(op.attrs, [&](const NamedAttr& a) { return a.first > name; });
  op.attrs.emplace(behind, std::string(name), value);
}

// {dimension = d} -> {dimensions = array<i32: d>}
void dimension_to_list(Op& op) {
  const Attr* d = op.find("dimension");
  if (!d || d->kind() != AttrKind::kInt) return;  // the verifier will miss `dimensions`
  const int64_t dimension = (*d)->ints[0];
  std::erase_if(op.attrs, [](const NamedAttr& a) { return a.first == "dimension"; });
  add_missing(op, "dimensions", Attr::dense_array(Elem::kI32, {dimension}));
}

// reduction_dims = [0, 1] -> array<i64: 0, 1>
void reduction_dims_to_array(Op& op) {
  const Attr* dims = op.find("reduction_dims");
  if (!dims || dims->kind() != AttrKind::kArray) return;
  std::vector<int64_t> ints;
  for (const Attr& a : (*dims)->array) {
    if (a.kind() != AttrKind::kInt) return;
    ints.push_back(a->ints[0]);
  }
  op.set("reduction_dims", Attr::dense_array(Elem::kI64, std::move(ints)));
}

// What versions before 13 leave out, by the number of operands where segments are missing.
void upgrade_old(Op& op) {
  const size_t operands = op.operands.size();
  const auto shape = [&](size_t count, std::vector<int64_t> sizes) {
    if (operands == count)
      add_missing(op, kSegments, Attr::dense_array(Elem::kI32, std::move(sizes)));
  };
  switch (op.code) {
    case OpCode::kTpuEnqueueDma:
      shape(3, {1, 0, 1, 1, 0, 0, 0});
      shape(5, {1, 1, 1, 1, 1, 0, 0});
      add_missing(op, "priority", Attr::i32(0));
      add_missing(op, "strict_ordering", Attr::boolean(false));
      break;
    case OpCode::kTpuWaitDma:
      add_missing(op, "strict_ordering", Attr::boolean(false));
      break;
    case OpCode::kTpuSemSignal:
      shape(2, {1, 1, 0, 0, 0});
      shape(3, {1, 1, 1, 0, 0});
      break;
    case OpCode::kVectorMultiReduction:
      reduction_dims_to_array(op);
      break;
    case OpCode::kTpuDynamicGather:
    case OpCode::kTpuIota:
      dimension_to_list(op);
      break;
    case OpCode::kTpuMatmul:
      add_missing(op, "transpose_lhs_hint", Attr::boolean(false));
      break;
    default:
      break;
  }
}

void upgrade_all(Op& op) {
  upgrade_old(op);
  for (const auto& region : op.regions)
    for (const auto& block : region->blocks)
      for (const auto& inner : block->ops) upgrade_all(*inner);
}

std::expected<void, std::string> upgrade_wait2(Op& op) {
  // Before version 7 there were no segments.
  if (op.operands.size() == 3)
    add_missing(op, kSegments, Attr::dense_array(Elem::kI32, {1, 1, 1, 0, 0}));
  const auto s = segments(op, 5);
  if (!s || (*s)[0] != 1 || (*s)[1] != 1 || (*s)[2] != 1 || (*s)[3] > 1 || (*s)[4] > 1) {
    return std::unexpected(
        "tpu.wait_dma2 needs operandSegmentSizes = array<i32: 1, 1, 1, 0 or 1, 0 or 1>");
  }
  const bool device = (*s)[3] != 0, core = (*s)[4] != 0;
  Value* sem = op.operands[0];
  Value* first = op.operands[1];
  Value* second = op.operands[2];
  // Both ids: the wait for the send half, with swapped refs (see versions.h).
  const bool send = device && core;
  std::vector<Value*> ids(op.operands.begin() + 3, op.operands.end());
  op.operands =
      send ? std::vector<Value*>{second, sem, first} : std::vector<Value*>{first, second, sem};
  op.operands.insert(op.operands.end(), ids.begin(), ids.end());
  std::erase_if(op.attrs, [](const NamedAttr& a) {
    return a.first == "priority" || a.first == "wait_target";
  });
  set_segments(op.attrs, {1, send, 1, !send, device, core, 0});
  add_missing(op, "priority", Attr::i32(0));
  add_missing(op, "wait_target", Attr::boolean(!send));
  return {};
}

// What wait_dma2 can say about a wait: nothing when the semaphore that it waits for is missing or a
// subcore is named.
std::optional<std::vector<int64_t>> wait2_segments(const Op& op, int version) {
  if (version >= kSubcoreVersion || op.code != OpCode::kTpuWaitDma) return std::nullopt;
  auto s = segments(op, 7);
  if (!s) return std::nullopt;
  const bool target = op.bool_attr_or("wait_target", true);
  const bool plain = (*s)[0] == 1 && (*s)[1] <= 1 && (*s)[2] == 1 && (*s)[3] <= 1 && (*s)[4] <= 1 &&
                     (*s)[5] <= 1 && (*s)[6] == 0 && (*s)[target ? 3 : 1] == 1;
  // Two ids on a wait for the target would be read back as a wait for the source.
  if (!plain || (target && (*s)[4] && (*s)[5])) return std::nullopt;
  return s;
}

Spelling spell_wait2(const Op& op, const std::vector<int64_t>& s) {
  Spelling out{.name = "tpu.wait_dma2"};
  size_t next = 0;
  const auto take = [&](size_t i) { return s[i] ? op.operands[next++] : nullptr; };
  const Value* source = take(0);
  const Value* source_sem = take(1);
  const Value* target = take(2);
  const Value* target_sem = take(3);
  const Value* device = take(4);
  const Value* core = take(5);
  int64_t devices = s[4], cores = s[5];
  if (op.bool_attr_or("wait_target", true)) {
    out.operands = {target_sem, source, target};
    if (device) out.operands.push_back(device);
    if (core) out.operands.push_back(core);
  } else {
    out.dummy_zero = !device || !core;
    out.operands = {source_sem, target, source, device, core};
    if (out.dummy_zero) out.operands[3] = out.operands[4] = nullptr;
    devices = cores = 1;
  }
  for (const NamedAttr& a : op.attrs) {
    if (a.first != "priority" && a.first != "wait_target") out.attrs.push_back(a);
  }
  set_segments(out.attrs, {1, 1, 1, devices, cores});
  return out;
}

}  // namespace

std::expected<void, std::string> upgrade(Op& op, std::string_view name) {
  if (name == "tpu.wait_dma2") {
    op.code = OpCode::kTpuWaitDma;
    return upgrade_wait2(op);
  }
  if (name == "vector.transpose") {
    op.code = OpCode::kTpuTranspose;
    return {};
  }
  if (name == "tpu.repeat") {
    op.code = OpCode::kTpuConcatenate;
    return upgrade_repeat(op);
  }
  const auto code = op_from_name(name);
  if (!code) return std::unexpected(fmt::format("unknown op '{}'", name));
  op.code = *code;
  switch (op.code) {
    case OpCode::kTpuWaitDma:
      if (op.operands.size() == 2 && !op.find(kSegments)) {
        upgrade_wait1(op);
        break;
      }
      [[fallthrough]];
    case OpCode::kTpuEnqueueDma:
      add_empty_segment(op, 6);
      break;
    case OpCode::kTpuSemSignal:
      add_empty_segment(op, 4);
      break;
    case OpCode::kTpuReinterpretCast:
      if (!op.find(kSegments) && !op.operands.empty()) {
        const auto offsets = static_cast<int64_t>(op.operands.size()) - 1;
        op.set(kSegments, Attr::dense_array(Elem::kI32, {1, offsets, 0}));
      }
      break;
    default:
      break;
  }
  return {};
}

std::vector<VersionFault> settle_version(Module& module, size_t stable_ops, size_t plain_ops) {
  std::vector<NamedAttr>& attrs = module.top->attrs;
  const auto it = std::ranges::find(attrs, kVersionAttr, &NamedAttr::first);
  if (it == attrs.end()) {
    if (stable_ops == 0) return {};
    return {{"the module has stable_mosaic ops but no stable_mosaic.version",
             "add {stable_mosaic.version = 13 : i64} to builtin.module"}};
  }
  if (it->second.kind() != AttrKind::kInt) return {{"stable_mosaic.version is not an integer", ""}};
  std::vector<VersionFault> out;
  module.version = it->second->ints[0];
  attrs.erase(it);
  if (module.version < kOldestRead || module.version > kNewestVersion) {
    out.push_back({fmt::format("stable_mosaic.version {} is not supported: {} to {} are",
                               module.version, kOldestRead, kNewestVersion),
                   module.version > kNewestVersion
                       ? "lower with jax.export, which writes an older version"
                       : "write the module again with a current JAX"});
  }
  if (module.version < kOldestVersion) upgrade_all(*module.top);
  if (plain_ops > 0) {
    out.push_back({"an op without the prefix stable_mosaic. in a module with a version",
                   "prefix every op but builtin.module, or none and leave the version out", true});
  }
  return out;
}

bool wants_dummy_zero(const Op& op, int version) {
  if (op.bool_attr_or("wait_target", true)) return false;
  const auto s = wait2_segments(op, version);
  return s && !((*s)[4] && (*s)[5]);
}

Spelling spell(const Op& op, int version) {
  if (const auto s = wait2_segments(op, version)) return spell_wait2(op, *s);
  Spelling out{.name = op.info().name, .attrs = op.attrs};
  out.operands.assign(op.operands.begin(), op.operands.end());
  const auto drop_last_segment = [&](size_t count) {
    auto s = segments(op, count);
    if (!s || s->back() != 0) return;  // an old version cannot say it: leave it to be refused
    s->pop_back();
    set_segments(out.attrs, std::move(*s));
  };
  if (version < kSubcoreVersion) {
    if (op.code == OpCode::kTpuEnqueueDma || op.code == OpCode::kTpuWaitDma) drop_last_segment(7);
    if (op.code == OpCode::kTpuSemSignal) drop_last_segment(5);
  }
  if (version < kReinterpretSegmentsVersion && op.code == OpCode::kTpuReinterpretCast) {
    if (const auto s = segments(op, 3); s && s->back() == 0) {
      std::erase_if(out.attrs, [](const NamedAttr& a) { return a.first == kSegments; });
    }
  }
  return out;
}

}  // namespace gridless::ir
