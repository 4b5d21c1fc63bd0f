#include "gridless/weights/stream_layout.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "gridless/base/check.h"
#include "gridless/base/integers.h"

namespace gridless::weights {
namespace {

constexpr int64_t kLanes = 128;
constexpr int64_t kBytesPerRow = kLanes * 4;

// Panels of a chunk: the code of a product is as long as its chunk is wide, and compilers take more
// than in proportion.
constexpr int64_t kMostPanels = 20;

// One way to cut a matrix: panels per chunk and parts.
struct Cut {
  int64_t panels, panels_per_chunk, parts, kp, used_rows, chunks;
};

// Time of the matrix units for a chunk, in rows of the stream that arrive meanwhile (512 bytes at
// 3.05 TB/s). Both units take weights of 256 inputs by 256 outputs, 64 cycles each, whether these
// are full or not; a wait drains them. (2.2 GHz; docs/time.md.)
constexpr int64_t kMxuInputs = 256, kMxuPanels = 4, kTileRows = 172, kDrainRows = 650;

// What a chunk costs, in rows: its bytes, and half of the time that the matrix units are busy with
// it. (They work while the next chunks arrive, but not while the core waits for its peers.)
int64_t chunk_cost(const Cut& c, int64_t chunk_rows) {
  const int64_t tiles = ceil_div(c.kp, kMxuInputs) * ceil_div(c.panels_per_chunk, kMxuPanels);
  return chunk_rows + (tiles * kTileRows + kDrainRows) / 2;
}

int64_t panels_of(const MatrixShape& m) { return ceil_div(m.n, kLanes) * (m.paired ? 2 : 1); }

std::vector<Cut> cuts(const MatrixShape& m, int64_t max_rows) {
  std::vector<Cut> out;
  const int64_t panels = panels_of(m);
  for (int64_t parts = 1; parts <= m.k / 32; ++parts) {
    if (m.k % (32 * parts) != 0) continue;
    const int64_t kp = m.k / parts;
    // Parts start at whole activation panels; otherwise the kernel would shift lanes for every
    // part.
    if (parts > 1 && kp % kLanes != 0) continue;
    for (int64_t p = 1; p <= std::min(panels, kMostPanels); ++p) {
      if (m.paired && p % 2 != 0) continue;
      // A prime number of panels would leave one panel per chunk: some more of them, all zero, may
      // be the lesser evil.
      const int64_t padded = round_up(panels, p);
      if ((padded - panels) * 16 > panels) continue;
      const int64_t rows = p * (code_rows(m.format, kp) + scale_rows(m.format, kp));
      if (rows <= max_rows) out.push_back({padded, p, parts, kp, rows, padded / p * parts});
    }
  }
  if (out.empty()) {
    // Nothing fits the limit: the smallest piece there is, and the chunk grows to hold it.
    const int64_t p = m.paired ? 2 : 1;
    int64_t parts = 1;
    for (int64_t s = 1; s <= m.k / kLanes; ++s) {
      if (m.k % (kLanes * s) == 0) parts = s;
    }
    const int64_t kp = m.k / parts;
    const int64_t rows = p * (code_rows(m.format, kp) + scale_rows(m.format, kp));
    out.push_back({panels, p, parts, kp, rows, panels / p * parts});
  }
  return out;
}

// The cheapest cut into chunks of `chunk_rows`; on ties the one that reads less, then fewer parts
// (they accumulate less often).
std::optional<Cut> best_cut(const std::vector<Cut>& options, int64_t chunk_rows) {
  std::optional<Cut> best;
  const auto key = [&](const Cut& c) {
    return std::tuple(c.chunks * chunk_cost(c, chunk_rows), c.used_rows * c.chunks, c.parts);
  };
  for (const Cut& c : options) {
    if (c.used_rows <= chunk_rows && (!best || key(c) < key(*best))) best = c;
  }
  return best;
}

}  // namespace

const char* spelling(Format f) {
  switch (f) {
    case Format::kBf16:
      return "bf16";
    case Format::kQ8:
      return "q8";
    case Format::kQ4:
      return "q4";
    case Format::kQ4m:
      return "q4m";
    case Format::kMxfp4:
      return "mxfp4";
  }
  return "?";
}

Result<Format> format_from_spelling(std::string_view s) {
  for (Format f : {Format::kBf16, Format::kQ8, Format::kQ4, Format::kQ4m}) {
    if (s == spelling(f)) return f;
  }
  return input_error("unknown weight format '{}': use bf16, q8, q4 or q4m", s);
}

Result<Format> stored_format(std::string_view s) {
  if (s == spelling(Format::kMxfp4)) return Format::kMxfp4;
  return format_from_spelling(s);
}

int64_t code_rows(Format f, int64_t kp) {
  switch (f) {
    case Format::kBf16:
      return kp / 2;
    case Format::kQ8:
      return kp / 4;
    case Format::kQ4:
    case Format::kQ4m:
    case Format::kMxfp4:
      return kp / 8;
  }
  return 0;
}

int64_t scale_rows(Format f, int64_t kp) {
  switch (f) {
    case Format::kBf16:
      return 0;
    case Format::kQ8:
    case Format::kQ4:
      return ceil_div(kp, 64);
    case Format::kQ4m:
      return kp / 32;
    case Format::kMxfp4:
      return ceil_div(kp, 128);
  }
  return 0;
}

MatrixLayout::Output MatrixLayout::output(int64_t panel, int64_t column) const {
  if (!shape.paired) return {0, panel * kLanes + column};
  const int64_t half_panels = panels_per_chunk / 2;
  const int64_t group = panel / panels_per_chunk, inside = panel % panels_per_chunk;
  const int half = inside >= half_panels ? 1 : 0;
  return {half, (group * half_panels + inside % half_panels) * kLanes + column};
}

int64_t StreamLayout::used_bytes() const {
  int64_t rows = 0;
  for (const MatrixLayout& m : front) rows += m.chunks() * m.used_rows();
  for (const MatrixLayout& m : layer) rows += layers * m.chunks() * m.used_rows();
  for (const MatrixLayout& m : tail) rows += m.chunks() * m.used_rows();
  return rows * kBytesPerRow;
}

MatrixLayout whole_matrix(const MatrixShape& shape) {
  MatrixLayout m{.shape = shape, .panels = panels_of(shape), .parts = 1, .kp = shape.k};
  m.panels_per_chunk = ceil_div(m.panels, ceil_div(m.panels, kMostPanels));
  while (m.panels % m.panels_per_chunk != 0) --m.panels_per_chunk;
  return m;
}

StreamLayout make_stream_layout(int64_t layers, const std::vector<MatrixShape>& layer,
                                const std::vector<MatrixShape>& tail, int64_t max_chunk_bytes,
                                const std::vector<MatrixShape>& front) {
  std::vector<MatrixShape> all = front;
  all.insert(all.end(), layer.begin(), layer.end());
  const size_t first = front.size(), after = all.size();  // those of a layer
  all.insert(all.end(), tail.begin(), tail.end());
  const auto repeats = [&](size_t i) { return i >= first && i < after; };
  std::vector<std::vector<Cut>> options;
  std::set<int64_t> sizes;
  int64_t least = 8;
  for (const MatrixShape& m : all) {
    GRIDLESS_CHECK(m.k > 0 && m.k % 32 == 0 && m.n > 0, "{}: {} x {}", m.name, m.n, m.k);
    options.push_back(cuts(m, max_chunk_bytes / kBytesPerRow));
    int64_t smallest = INT64_MAX;
    for (const Cut& c : options.back()) {
      sizes.insert(round_up(c.used_rows, 8));
      smallest = std::min(smallest, c.used_rows);
    }
    least = std::max(least, round_up(smallest, 8));
  }
  // Among equals the bigger chunk (fewer copies).
  int64_t least_cost = INT64_MAX, chunk_rows = least;
  for (int64_t size : sizes) {
    if (size < least) continue;
    int64_t cost = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const Cut c = *best_cut(options[i], size);
      cost += c.chunks * chunk_cost(c, size) * (repeats(i) ? layers : 1);
    }
    if (cost <= least_cost) {
      least_cost = cost;
      chunk_rows = size;
    }
  }
  StreamLayout out;
  out.chunk_rows = chunk_rows;
  out.layers = layers;
  for (size_t i = 0; i < all.size(); ++i) {
    const Cut c = *best_cut(options[i], chunk_rows);
    MatrixLayout m;
    m.shape = all[i];
    m.panels = c.panels;
    m.panels_per_chunk = c.panels_per_chunk;
    m.parts = c.parts;
    m.kp = c.kp;
    int64_t& count = i < first    ? out.front_chunks
                     : repeats(i) ? out.chunks_per_layer
                                  : out.tail_chunks;
    m.first_chunk = count;
    count += m.chunks();
    (i < first ? out.front : repeats(i) ? out.layer : out.tail).push_back(std::move(m));
  }
  return out;
}

}  // namespace gridless::weights
