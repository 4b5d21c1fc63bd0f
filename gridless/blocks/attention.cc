#include "gridless/blocks/attention.h"

#include "gridless/blocks/pages.h"

namespace gridless::blocks {

Vec lanes_of(Kernel& k, const HeadShape& h, int64_t j, bool half_split) {
  const Vec lane = iota(k, {1, h.padded()}, 1);
  const auto range = [&](int64_t from, int64_t n) {
    return (lane >= static_cast<int>(from)) & (lane < static_cast<int>(from + n));
  };
  const int64_t d = h.head_dim;
  if (!half_split) return range(j * d, d);
  return range(j * d / 2, d / 2) | range(h.half() + j * d / 2, d / 2);
}

RopeTable rope_table(const StepRows& rows, Ref frequencies, const HeadShape& h) {
  Kernel& k = *frequencies.kernel();
  const int64_t count = rows.count, width = h.padded_half();
  RopeTable out{k.vmem(Elem::kF32, {count, width}), k.vmem(Elem::kF32, {count, width})};
  k.scope([&] {
    const Ref local = k.vmem(Elem::kF32, {1, width});
    const Sem done = k.dma_sem();
    k.copy(frequencies, local, done).wait();
    const Vec row = iota(k, {count, width}, 0);
    Vec position = zeros(k, Elem::kI32, {count, width});
    for (int64_t r = 0; r < count; ++r) {
      position =
          where(row == static_cast<int>(r), broadcast(rows.position(r), {count, width}), position);
    }
    const Vec angle = cast(position, Elem::kF32) * local.load();
    out.cos.store(cos(angle));
    out.sin.store(sin(angle));
  });
  return out;
}

void qkv_rope(Ref y, const RopeTable& rope, const HeadShape& h, Ref qkv) {
  Kernel& k = *y.kernel();
  const int64_t rows = y.dim(1), half = h.half();
  k.composite("qkv_rope", {y, rope.cos, rope.sin, qkv},
              {{"groups", h.groups}, {"width", h.width()}, {"rows", rows}}, [&] {
                const auto put = [&](int64_t i, Vec v) {
                  qkv.store(
                      reshape(cast(pad_lanes(v, h.padded()), Elem::kBf16), {1, rows, h.padded()}),
                      {i, 0, 0});
                };
                for (int64_t i = 0; i < h.groups + 1; ++i) {
                  const Vec lo = columns(y, i * h.width(), half),
                            hi = columns(y, i * h.width() + half, half);
                  const Vec c = slice(rope.cos.load(), {0, 0}, {rows, half});
                  const Vec s = slice(rope.sin.load(), {0, 0}, {rows, half});
                  put(i, concat({lo * c - hi * s, hi * c + lo * s}, 1));
                }
                put(h.groups + 1, columns(y, (h.groups + 1) * h.width(), h.width()));
              });
}

void kv_append(Ref qkv, Ref cache, const StepRows& rows, const RowRuns& runs, const HeadShape& h) {
  qkv.kernel()->composite(
      "kv_append", {qkv, cache, rows.table, rows.pages, runs.first_table()},
      {{"groups", h.groups}, {"rows", rows.count}},
      [&] { append_to_pages({qkv.at(h.groups), qkv.at(h.groups + 1)}, cache, rows, runs); });
}

void decode_attention(Ref qkv, Ref cache, const StepRows& rows, const RowRuns& runs,
                      const HeadShape& h, double scale, Ref out) {
  Kernel& k = *qkv.kernel();
  const auto body = [&] {
    // f32, because rows of bf16 can be neither read nor written one by one.
    const Ref queries = k.vmem(Elem::kF32, {h.groups, rows.count, h.padded()});
    const Ref sums = k.vmem(Elem::kF32, out.shape());
    for (int64_t g = 0; g < h.groups; ++g) {
      queries.at(g).store(cast(qkv.at(g).load(), Elem::kF32));
    }
    sums.store(zeros(k, Elem::kF32, out.shape()));
    // Group by group and head by head, each query in the lanes of its own head.
    const auto queries_of = [&](Scalar first, int64_t size) {
      std::vector<Vec> all;
      for (int64_t g = 0; g < h.groups; ++g) {
        const Vec q =
            reshape(queries.load({g, first, 0}, {1, size, h.padded()}), {size, h.padded()});
        for (int64_t j = 0; j < h.heads; ++j) all.push_back(where(lanes_of(k, h, j, true), q, 0.0));
      }
      return cast(concat(all, 0), Elem::kBf16);
    };
    const auto put = [&](Scalar first, int64_t size, Vec average, Vec mine) {
      std::vector<Vec> parts;
      for (int64_t g = 0; g < h.groups; ++g) {
        const auto of_head = [&](int64_t j) {
          return slice(average, {(g * h.heads + j) * size, 0}, {size, h.padded()});
        };
        Vec o = of_head(0);
        for (int64_t j = 1; j < h.heads; ++j) o = where(lanes_of(k, h, j, false), of_head(j), o);
        parts.push_back(slice(o, {0, 0}, {size, h.width()}));
      }
      const Vec all = pad_lanes(concat(parts, 1), sums.dim(0) * kLanes);
      for (int64_t p = 0; p < sums.dim(0); ++p) {
        store_rows(sums, p, first, slice(all, {0, p * kLanes}, {size, kLanes}), mine);
      }
    };
    attend_to_pages(cache, rows, runs,
                    {.queries = h.groups * h.heads,
                     .value_width = h.padded(),
                     .scale = scale,
                     .queries_of = queries_of,
                     .keys = [](Ref page) { return page.at(0).load(); },
                     .values = [](Ref page) { return page.at(1).load(); },
                     .put = put});
    out.store(cast(sums.load(), Elem::kBf16));
  };
  k.composite("decode_attention",
              {qkv, cache, rows.table, rows.pages, out, runs.first_table(), runs.after_table()},
              {{"groups", h.groups},
               {"heads", h.heads},
               {"head_dim", h.head_dim},
               {"width", h.width()},
               {"rows", rows.count},
               {"scale", scale}},
              body);
}

}  // namespace gridless::blocks
