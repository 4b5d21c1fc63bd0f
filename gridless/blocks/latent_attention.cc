#include "gridless/blocks/latent_attention.h"

#include "gridless/blocks/norm.h"
#include "gridless/blocks/pages.h"

namespace gridless::blocks {

namespace {

// Matrix [R, panels * 128] of rows [first, first + rows) of panel-major x.
Vec matrix(Ref x, int64_t first, int64_t rows) {
  const Vec all = x.load({0, first, 0}, {x.dim(0), rows, kLanes});
  std::vector<Vec> parts;
  for (int64_t p = 0; p < x.dim(0); ++p) {
    parts.push_back(reshape(slice(all, {p, 0, 0}, {1, rows, kLanes}), {rows, kLanes}));
  }
  return concat(parts, 1);
}

// Of panel-major vectors of `count` panels, the lanes of head h, `width` each.
Vec of_head(Kernel& k, int64_t count, int64_t rows, int64_t h, int64_t width) {
  const Shape shape = {count, rows, kLanes};
  const Vec column = iota(k, shape, 0) * static_cast<int>(kLanes) + iota(k, shape, 2);
  return (column >= static_cast<int>(h * width)) & (column < static_cast<int>((h + 1) * width));
}

}  // namespace

void latent_token(Ref c, Ref kx, Ref norm, const LatentShape& s, double eps, Ref token) {
  Kernel& k = *c.kernel();
  const int64_t rows = c.dim(1);
  k.scope([&] {
    const Ref normed = k.vmem(Elem::kBf16, c.shape());
    rms_norm(c, norm, normed, s.latent, eps);
    token.store(concat({matrix(normed, 0, rows), cast(matrix(kx, 0, rows), Elem::kBf16)}, 1));
  });
}

void separate_heads(Ref y, const LatentShape& s, Ref out) {
  Kernel& k = *y.kernel();
  const int64_t rows = y.dim(1);
  const Vec all = y.load({0, 0, 0}, {s.nope_panels(), rows, kLanes});
  std::vector<Vec> heads;
  for (int64_t h = 0; h < s.heads; ++h) {
    heads.push_back(where(of_head(k, s.nope_panels(), rows, h, s.nope), all, 0.0));
  }
  out.store(cast(concat(heads, 1), Elem::kBf16));
}

void latent_queries(Ref absorbed, Ref y, const LatentShape& s, Ref queries) {
  const int64_t rows = y.dim(1), first = s.nope_panels() * kLanes;
  for (int64_t h = 0; h < s.heads; ++h) {
    const Vec extra = columns(y, first + h * s.extra, s.extra);
    const Vec q =
        concat({matrix(absorbed, h * rows, rows), pad_lanes(extra, round_to_lanes(s.extra))}, 1);
    queries.at(h).store(cast(q, Elem::kBf16));
  }
}

void latent_attention(Ref queries, Ref cache, const StepRows& rows, const RowRuns& runs,
                      const LatentShape& s, double scale, Ref out) {
  Kernel& k = *queries.kernel();
  const int64_t width = round_to_lanes(s.latent);
  k.scope([&] {
    // f32, because rows of bf16 can be neither read nor written one by one.
    const Ref wide = k.vmem(Elem::kF32, queries.shape());
    const Ref sums = k.vmem(Elem::kF32, out.shape());
    for (int64_t h = 0; h < s.heads; ++h) {
      wide.at(h).store(cast(queries.at(h).load(), Elem::kF32));
    }
    sums.store(zeros(k, Elem::kF32, out.shape()));
    const auto queries_of = [&](Scalar first, int64_t size) {
      std::vector<Vec> heads;
      for (int64_t h = 0; h < s.heads; ++h) {
        heads.push_back(
            reshape(wide.load({h, first, 0}, {1, size, s.token_width()}), {size, s.token_width()}));
      }
      return cast(concat(heads, 0), Elem::kBf16);
    };
    const auto put = [&](Scalar first, int64_t size, Vec average, Vec mine) {
      for (int64_t h = 0; h < s.heads; ++h) {
        for (int64_t p = 0; p < s.latent_panels(); ++p) {
          store_rows(sums, p, first + h * rows.count,
                     slice(average, {h * size, p * kLanes}, {size, kLanes}), mine);
        }
      }
    };
    attend_to_pages(
        cache, rows, runs,
        {.queries = s.heads,
         .value_width = width,
         .scale = scale,
         .queries_of = queries_of,
         .keys = [](Ref page) { return page.at(0).load(); },
         .values = [&](Ref page) { return page.at(0).load({0, 0}, {kPageTokens, width}); },
         .put = put});
    out.store(cast(sums.load(), Elem::kBf16));
  });
}

void gated_values(Ref y, Ref gate, const LatentShape& s, Ref context) {
  Kernel& k = *y.kernel();
  const int64_t count = context.dim(0), rows = context.dim(1);
  Vec mine;
  for (int64_t h = 0; h < s.heads; ++h) {
    const Vec of_this = y.load({0, h * rows, 0}, {count, rows, kLanes});
    mine = h == 0 ? of_this : where(of_head(k, count, rows, h, s.value), of_this, mine);
  }
  const Vec open = round_to_bf16(logistic(gate.load({0, 0, 0}, context.shape())));
  context.store(cast(round_to_bf16(mine) * open, Elem::kBf16));
}

}  // namespace gridless::blocks
