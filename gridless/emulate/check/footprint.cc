#include "gridless/emulate/check/footprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace gridless::emulate {
namespace {
// Regions that are no boxes of their buffer are compared element by element up to this size; above
// it they count as overlapping when their spans do.
constexpr int64_t kMostElements = 1 << 22;

int64_t elements(const Region& r) {
  int64_t n = r.empty ? 0 : 1;
  for (const Region::Dim& d : r.dims) n *= d.size;
  return n;
}
}  // namespace

size_t Footprints::Hash::operator()(const std::vector<int64_t>& key) const {
  uint64_t h = key.size();
  for (int64_t k : key) {
    h = (h ^ static_cast<uint64_t>(k)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return h;
}

int32_t Footprints::intern(const Region& region, const Shape& shape) {
  key_.assign(1, region.offset);
  for (const Region::Dim& d : region.dims) {
    if (d.size == 1) continue;
    key_.push_back(d.size);
    key_.push_back(d.stride);
  }
  key_.push_back(-1);
  key_.insert(key_.end(), shape.begin(), shape.end());
  const auto [it, fresh] = numbers_.try_emplace(key_, static_cast<int32_t>(all_.size()));
  if (!fresh) return it->second;
  Footprint f{.region = region, .first = region.offset, .last = region.offset};
  for (const Region::Dim& d : region.dims) f.last += (d.size - 1) * d.stride;
  f.is_box = !region.empty && make_box(region, shape, f.box);
  all_.push_back(std::move(f));
  return it->second;
}

// Splits the region's dimensions over those of the buffer, from the outermost in.
bool Footprints::make_box(const Region& region, const Shape& shape, std::vector<Range>& box) {
  const Shape stride = row_major(shape);
  box.assign(shape.size(), {});
  int64_t rest = region.offset;
  for (size_t d = 0; d < shape.size(); ++d) {
    box[d].lo = stride[d] == 0 ? 0 : rest / stride[d];
    rest -= box[d].lo * stride[d];
  }
  std::vector<Region::Dim> dims;
  for (const Region::Dim& d : region.dims)
    if (d.size > 1) dims.push_back(d);
  std::ranges::stable_sort(dims, [](const auto& a, const auto& b) { return a.stride > b.stride; });
  // Dimensions of the view that together are one run, such as those of a reshape, become one.
  for (size_t k = dims.size(); k-- > 1;) {
    if (dims[k - 1].stride != dims[k].size * dims[k].stride) continue;
    dims[k - 1] = {dims[k - 1].size * dims[k].size, dims[k].stride};
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(k));
  }
  for (Region::Dim dim : dims) {
    size_t d = shape.size();
    while (d-- > 0)
      if (shape[d] > 1 && dim.stride % stride[d] == 0 && dim.stride < stride[d] * shape[d]) break;
    if (d == static_cast<size_t>(-1)) return false;
    // The inner part of a long run fills dimension d; the rest belongs further out.
    for (;;) {
      const int64_t step = dim.stride / stride[d];
      if (box[d].count != 1) return false;
      if (box[d].lo + (dim.size - 1) * step < shape[d]) {
        box[d] = {box[d].lo, dim.size, step};
        break;
      }
      if (step != 1 || box[d].lo != 0 || dim.size % shape[d] != 0 || d == 0) return false;
      box[d] = {0, shape[d], 1};
      dim = {dim.size / shape[d], stride[d] * shape[d]};
      do {
        --d;
      } while (d > 0 && shape[d] == 1);
    }
  }
  return true;
}

bool Footprints::ranges_meet(const Range& a, const Range& b) {
  const int64_t lo = std::max(a.lo, b.lo);
  const int64_t hi = std::min(a.lo + (a.count - 1) * a.step, b.lo + (b.count - 1) * b.step);
  if (lo > hi) return false;
  if (a.step == 1 && b.step == 1) return true;
  const Range& coarse = a.step >= b.step ? a : b;
  const Range& fine = a.step >= b.step ? b : a;
  for (int64_t k = (lo - coarse.lo + coarse.step - 1) / coarse.step; k < coarse.count; ++k) {
    const int64_t x = coarse.lo + k * coarse.step;
    if (x > hi) return false;
    if ((x - fine.lo) % fine.step == 0) return true;
  }
  return false;
}

bool Footprints::overlap(int32_t x, int32_t y) const {
  const Footprint &a = all_[static_cast<size_t>(x)], &b = all_[static_cast<size_t>(y)];
  if (a.region.empty || b.region.empty) return false;
  if (x == y) return true;
  if (a.last < b.first || b.last < a.first) return false;
  if (a.is_box && b.is_box) {
    for (size_t d = 0; d < a.box.size(); ++d)
      if (!ranges_meet(a.box[d], b.box[d])) return false;
    return true;
  }
  if (elements(a.region) > kMostElements || elements(b.region) > kMostElements) return true;
  std::vector<bool> touched(static_cast<size_t>(a.last - a.first + 1));
  a.region.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n; ++k)
      touched[static_cast<size_t>(first + k * stride - a.first)] = true;
  });
  bool meet = false;
  b.region.for_each_run([&](int64_t first, int64_t n, int64_t stride) {
    for (int64_t k = 0; k < n && !meet; ++k) {
      const int64_t e = first + k * stride;
      meet = e >= a.first && e <= a.last && touched[static_cast<size_t>(e - a.first)];
    }
  });
  return meet;
}

std::string Footprints::str(int32_t number) const {
  const Footprint& f = all_[static_cast<size_t>(number)];
  if (!f.is_box) return fmt::format("elements {} to {}", f.first, f.last);
  std::string out = "[";
  for (size_t d = 0; d < f.box.size(); ++d) {
    const Range& r = f.box[d];
    if (d > 0) out += ", ";
    if (r.count == 1) {
      out += fmt::format("{}", r.lo);
    } else {
      out += fmt::format("{}:{}", r.lo, r.lo + (r.count - 1) * r.step + 1);
      if (r.step != 1) out += fmt::format(":{}", r.step);
    }
  }
  return out + "]";
}

}  // namespace gridless::emulate
