#include "gridless/blocks/collectives/collective.h"

#include <fmt/format.h>

#include "gridless/blocks/collectives/exchange.h"

namespace gridless::blocks {

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kAllToAll:
      return "all-to-all";
    case CollectiveKind::kBroadcast:
      return "broadcast";
  }
  return "";
}

std::string_view name_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kDirect:
      return "direct";
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kHierarchical:
      return "hierarchical";
    case Algorithm::kScattered:
      return "scattered";
  }
  return "";
}

namespace {

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kAllReduce;
}

// What is wrong with the spec, or nothing.
std::string mistake(const Kernel& k, const CollectiveSpec& s) {
  const CoreGroup& g = s.group;
  if (g.size < 1 || g.stride < 1 || k.cores() % (int64_t{g.size} * g.stride) != 0) {
    return fmt::format("groups of {} cores with stride {} in a kernel for {} cores", g.size,
                       g.stride, k.cores());
  }
  if (s.part.size() < 2) return fmt::format("parts of rank {}", s.part.size());
  if (s.root < 0 || s.root >= g.size)
    return fmt::format("root {} in a group of {}", s.root, g.size);
  if (reduces(s.kind) && s.elem != Elem::kF32)
    return fmt::format("sums of {}", ir::spelling(s.elem));
  return "";
}

std::unique_ptr<Exchange> make(Kernel& k, const CollectiveSpec& s) {
  if (s.group.size == 1) return nullptr;
  if (s.kind == CollectiveKind::kBroadcast) return broadcast_exchange(k, s);
  const bool all_reduce = s.kind == CollectiveKind::kAllReduce;
  if (s.algorithm == Algorithm::kDirect || (s.algorithm == Algorithm::kScattered && !all_reduce)) {
    return direct_exchange(k, s);
  }
  if (all_reduce) return two_phase_all_reduce(k, s);
  return s.algorithm == Algorithm::kRing ? ring_exchange(k, s) : hierarchical_exchange(k, s);
}

// Pieces of the vector, one per member, are summed where they belong and then gathered.
class TwoPhase : public Exchange {
 public:
  TwoPhase(Kernel& k, const CollectiveSpec& spec) : k_(k), panels_(spec.part[0]) {
    const int64_t n = spec.group.size;
    CollectiveSpec half = spec;
    half.part[0] = (panels_ + n - 1) / n;
    half.kind = CollectiveKind::kReduceScatter;
    reduce_ = make(k, half);
    half.kind = CollectiveKind::kAllGather;
    gather_ = make(k, half);
    if (panels_ % n == 0) return;
    // The last pieces go beyond the vector; what is there is summed too and read by nobody.
    padded_ = k.vmem(spec.elem, concatenated(n, half.part));
    padded_.store(zeros(k, spec.elem, padded_.shape()));
    done_ = k.dma_sem();
  }

  Ref run(Ref in, Scalar turn) override {
    if (padded_) {
      k_.copy(in, padded_.rows(0, panels_), done_).wait();
      in = padded_;
    }
    return gather_->run(reduce_->run(in, turn), turn).rows(0, panels_);
  }

 private:
  Kernel& k_;
  int64_t panels_;
  std::unique_ptr<Exchange> reduce_, gather_;
  Ref padded_;
  Sem done_;
};

}  // namespace

std::unique_ptr<Exchange> two_phase_all_reduce(Kernel& k, const CollectiveSpec& spec) {
  return std::make_unique<TwoPhase>(k, spec);
}

Collective::Collective(Kernel& k, CollectiveSpec spec, Where w) : spec_(std::move(spec)) {
  if (const std::string what = mistake(k, spec_); !what.empty()) {
    k.error("invalid_ir", fmt::format("{}: {}", name_of(spec_.kind), what),
            "groups must divide the cores, parts have two dimensions or more, sums are of f32", w);
    spec_.group = {};
  }
  exchange_ = make(k, spec_);
}

Collective::~Collective() = default;
Collective::Collective(Collective&&) noexcept = default;

Ref Collective::run(Ref in, Scalar turn) { return exchange_ ? exchange_->run(in, turn) : in; }

void Collective::add_sum(Scalar turn, Ref y, Ref x) {
  const Ref mine = y.dim(0) == x.dim(0) ? y : y.rows(0, x.dim(0));
  if (exchange_) {
    exchange_->add_to(x, mine, turn);
  } else {
    add_into(x, mine);
  }
}

}  // namespace gridless::blocks
