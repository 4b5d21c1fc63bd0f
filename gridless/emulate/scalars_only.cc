#include "gridless/emulate/scalars_only.h"

#include "gridless/emulate/codec.h"
#include "gridless/emulate/ref_sites.h"

namespace gridless::emulate {
namespace {

// A buffer of its own that is larger keeps no data: a table that scalars are read from is smaller.
constexpr int64_t kMostKeptBytes = 16 << 20;

// Which sites scalars may come from.
class DataSites {
 public:
  explicit DataSites(const Kernel& kernel) : kernel_(kernel), refs_(kernel) {}

  std::vector<bool> find() {
    keep_.assign(kernel_.sites.size(), false);
    for (size_t s = 0; s < keep_.size(); ++s) {
      const Type type = kernel_.sites[s].type;
      keep_[s] = type.is_memref() && type.space() == ir::Space::kSmem;
    }
    std::vector<std::pair<int, int>> copies = aliases();  // source, target
    for (const Instr& in : kernel_.body.code) {
      if (in.kind != Instr::Kind::kOp) continue;
      if (in.op->code == ir::OpCode::kMemrefLoad)
        for (const int site : refs_.sites_of(in.op->operands[0])) keep(site);
      if (in.op->code == ir::OpCode::kTpuEnqueueDma)
        for (const int source : refs_.sites_of(in.op->operands[0]))
          for (const int target : refs_.sites_of(in.op->segment(2).at(0)))
            copies.emplace_back(source, target);
    }
    for (bool more = true; more;) {
      more = false;
      for (const auto& [source, target] : copies)
        if (keep_[static_cast<size_t>(target)]) more |= keep(source);
    }
    return std::move(keep_);
  }

 private:
  bool keep(int site) {
    if (keep_[static_cast<size_t>(site)]) return false;
    keep_[static_cast<size_t>(site)] = true;
    return true;
  }

  // Arguments with one memory, both ways round.
  std::vector<std::pair<int, int>> aliases() const {
    std::vector<std::pair<int, int>> out;
    const auto& args = kernel_.arguments;
    for (size_t k = 0; k < args.size(); ++k)
      for (size_t j = 0; j < k; ++j) {
        const bool same = args[k].role == Argument::Role::kOutput &&
                          args[j].role != Argument::Role::kOutput && args[j].aliased >= 0 &&
                          args[j].aliased == args[k].tensor;
        if (!same) continue;
        out.emplace_back(k, j);
        out.emplace_back(j, k);
      }
    return out;
  }

  const Kernel& kernel_;
  RefSites refs_;
  std::vector<bool> keep_;
};

// Instructions that only make vectors, or have no values.
bool only_vectors(const Instr& in) {
  if (in.kind == Instr::Kind::kFree) return true;
  if (in.kind != Instr::Kind::kOp) return false;
  switch (in.op->info().effect) {
    case ir::Effect::kPure:
      return !in.op->results.empty() && in.op->result()->type.is_vector();
    case ir::Effect::kMxuState:
    case ir::Effect::kPrngState:
    case ir::Effect::kTrace:
    case ir::Effect::kDelay:
      return true;
    default:
      return false;
  }
}

void drop_vector_code(Program& p) {
  std::vector<int32_t> place(p.code.size() +
                             1);  // where an instruction goes, or the next that stays
  std::vector<Instr> kept;
  for (size_t k = 0; k < p.code.size(); ++k) {
    place[k] = static_cast<int32_t>(kept.size());
    if (!only_vectors(p.code[k])) kept.push_back(p.code[k]);
  }
  place.back() = static_cast<int32_t>(kept.size());
  for (Instr& in : kept)
    if (jumps(in)) in.target = place[static_cast<size_t>(in.target)];
  p.code = std::move(kept);
  for (RtValue& v : p.initial)
    if (std::holds_alternative<Vector>(v)) v = std::monostate();
}

}  // namespace

void drop_vectors(Kernel& kernel) {
  kernel.keeps_data = DataSites(kernel).find();
  drop_vector_code(kernel.body);
}

void set_up_scalars(const Kernel& kernel, std::span<const std::span<const std::byte>> operands,
                    Core& core) {
  using Role = Argument::Role;
  for (size_t s = 0; s < kernel.sites.size(); ++s) {
    Buffer& b = core.buffers[s];
    if (!b.type.is_memref()) continue;  // a grid index
    if (b.is_semaphore()) {
      b.allocate();
      continue;
    }
    const Argument* arg = s < kernel.arguments.size() ? &kernel.arguments[s] : nullptr;
    const bool output = arg && arg->role == Role::kOutput;
    const bool tensor = arg && arg->tensor >= 0 && !arg->is_window;
    const int operand = !tensor ? -1 : output ? arg->aliased : arg->tensor;
    b.read_only = tensor && !output && arg->aliased < 0;
    const std::span<const std::byte> given =
        operand >= 0 ? operands[static_cast<size_t>(operand)] : std::span<const std::byte>();
    const int64_t bytes = storage_bytes(b.type.elem(), b.type.num_elements());
    const bool keep = kernel.keeps_data[s];
    if (keep && b.read_only && !given.empty()) {
      // No store or copy goes to it: they look first.
      b.data = {const_cast<std::byte*>(given.data()), given.size()};
    } else if (keep && bytes <= kMostKeptBytes && (operand < 0 || !given.empty())) {
      b.allocate();
      std::ranges::copy(given, b.owned.begin());
      b.track(given.empty() ? Content::kGarbage : Content::kKnown);
    } else {
      b.absent = operand >= 0 && given.empty() ? Content::kNotGiven : Content::kVector;
      b.written = operand >= 0;
    }
    for (size_t k = 0; output && operand >= 0 && k < s; ++k) {
      const Argument& in = kernel.arguments[k];
      if (in.role == Role::kOutput || in.aliased != arg->tensor) continue;
      b.data = core.buffers[k].data;
      b.contents = core.buffers[k].contents;
    }
  }
}

}  // namespace gridless::emulate
