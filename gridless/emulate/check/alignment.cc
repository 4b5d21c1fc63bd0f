#include "gridless/emulate/check/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "gridless/chips/tpu7x.h"
#include "gridless/emulate/pure_ops.h"

namespace gridless::emulate {
namespace {

using Range = Footprints::Range;

// Tiles of the last two dimensions; 1: any place will do.
struct Tile {
  int64_t rows = 1, lanes = 1;
};

Tile tile_of(Type type, bool copy) {
  Tile t{.lanes = chips::kTpu7x.lanes};
  const int bits = ir::bit_width(type.elem());
  // 32-bit rows are reached one by one. Copies take words, in which several narrow rows lie; vector
  // accesses take sublanes. An array of fewer rows than a tile has a lower tile.
  if (bits < 32 && copy) {
    t.rows = std::min<int64_t>(32 / std::max(bits, 1), type.shape()[type.shape().size() - 2]);
  } else if (bits < 32) {
    const int64_t rows = type.shape()[type.shape().size() - 2];
    t.rows = std::min<int64_t>(
        chips::kTpu7x.sublanes,
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows, 1)))));
  }
  return t;
}

bool has_tiles(Type type) {
  const bool tiled_memory = type.space() == ir::Space::kHbm || type.space() == ir::Space::kVmem ||
                            type.space() == ir::Space::kAny;
  return type.is_memref() && tiled_memory && type.rank() >= 2 && type->layout.empty() &&
         std::ranges::find(type.shape(), ir::kDynamic) == type.shape().end();
}

bool is_constant(const ir::Value* v) {
  while (v->op && v->op->code == ir::OpCode::kArithIndexCast) v = v->op->operands[0];
  return v->op && v->op->code == ir::OpCode::kArithConstant;
}

// The index operands of a vector load or store and its ref.
std::vector<ir::Value*> indices_of(const ir::Op& op, const ir::Value*& ref) {
  const auto rest = [&](size_t k) {
    return std::vector<ir::Value*>(op.operands.begin() + static_cast<std::ptrdiff_t>(k),
                                   op.operands.end());
  };
  switch (op.code) {
    case ir::OpCode::kVectorLoad:
      ref = op.operands[0];
      return rest(1);
    case ir::OpCode::kVectorStore:
      ref = op.operands[1];
      return rest(2);
    case ir::OpCode::kTpuVectorLoad:
      ref = op.operands[0];
      return op.segment(1);
    case ir::OpCode::kTpuVectorStore:
      ref = op.operands[1];
      return op.segment(2);
    default:
      ref = nullptr;
      return {};
  }
}

// Is the start in the last dimension but `back` computed, in the access or in a slice before it?
// Constant places need no tile: the compiler moves the rows and lanes then.
bool computed(const ir::Op& op, size_t back) {
  const ir::Value* ref = nullptr;
  std::vector<ir::Value*> starts = indices_of(op, ref);
  while (ref) {
    if (starts.size() > back && !is_constant(starts[starts.size() - 1 - back])) return true;
    starts.clear();
    const ir::Op* from = ref->op;
    if (!from) return false;
    if (from->code == ir::OpCode::kTpuMemrefSlice) {
      starts = from->segment(1);
    } else if (from->code != ir::OpCode::kTpuMemrefSqueeze) {
      return false;
    } else {
      const ir::Shape &a = from->operands[0]->type.shape(), &b = ref->type.shape();
      if (b.size() <= back ||
          !std::ranges::equal(a.end() - static_cast<std::ptrdiff_t>(back + 1), a.end(),
                              b.end() - static_cast<std::ptrdiff_t>(back + 1), b.end()))
        return false;
    }
    ref = from->operands[0];
  }
  return false;
}

bool start_fits(const Range& r, int64_t tile) { return r.lo % tile == 0; }
bool size_fits(const Range& r, int64_t size, int64_t tile) {
  return r.count % tile == 0 || r.lo + r.count == size;
}

class Aligned {
 public:
  explicit Aligned(const Trace& trace) : trace_(trace) {}

  std::vector<Finding> find() {
    for (const Access& a : trace_.accesses) {
      const Type type = trace_.kernel->sites[static_cast<size_t>(trace_.site_of(a.memory))].type;
      if (!has_tiles(type)) continue;
      const std::vector<Range>* box = trace_.footprints.box(a.footprint);
      if (!box || box->size() < 2) continue;
      const Tile tile = tile_of(type, a.copy >= 0);
      look(a, type, *box, 0, tile.lanes);
      look(a, type, *box, 1, tile.rows);
    }
    for (const BrokenPromise& p : trace_.promises) {
      Diagnostic d{
          .kind = "misaligned",
          .message = fmt::format("{} on core {}: {}", p.code.op->info().name, p.core, p.problem),
          .where = p.code.op->loc,
          .notes = {"at " + trace_.where(p.code)},
          .hint = kPromiseHint};
      findings_.push_back({std::move(d), {p.core}, std::nullopt});
    }
    return std::move(findings_);
  }

 private:
  void look(const Access& a, Type type, const std::vector<Range>& box, size_t back, int64_t tile) {
    const size_t d = box.size() - 1 - back;
    const Range& r = box[d];
    const int64_t size = type.shape()[d];
    if (r.step != 1 || (r.lo == 0 && r.count == size)) return;
    const bool copy = a.copy >= 0;
    if (!copy && !computed(*a.code.op, back)) return;
    const bool start = !start_fits(r, tile);
    if (!start && (!copy || size_fits(r, size, tile))) return;
    if (!reported_.insert(a.code.op).second) return;
    const std::string place =
        fmt::format("{} of {}", trace_.footprints.str(a.footprint), trace_.memory_name(a.memory));
    Diagnostic diagnostic{
        .kind = "misaligned",
        .message = fmt::format("{} {} {}: dimension {} {} {}, not a multiple of {}",
                               copy ? "a copy" : std::string(a.code.op->info().name),
                               a.write ? "writes" : "reads", place, d,
                               start ? "starts at" : "takes", start ? r.lo : r.count, tile),
        .where = a.code.op->loc,
        .notes = {fmt::format("core {} at {}; {} lies in tiles of {} there", a.at.core,
                              trace_.where(a.code), type.str(), tile)},
        .hint = copy ? "copy whole tiles, or the whole dimension"
                     : "load whole tiles at a multiple of the tile, then slice or roll the vector"};
    findings_.push_back({std::move(diagnostic), {a.at.core}, std::nullopt});
  }

  const Trace& trace_;
  std::vector<Finding> findings_;
  std::set<const ir::Op*> reported_;
};

}  // namespace

std::vector<Finding> misaligned(const Trace& trace) { return Aligned(trace).find(); }

}  // namespace gridless::emulate
