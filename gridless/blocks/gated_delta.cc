#include "gridless/blocks/gated_delta.h"

#include <cmath>

namespace gridless::blocks {

namespace {

// A row [1, n] as a column [n, 1], exactly: one term of each sum is not zero.
Vec column(Vec row) {
  Kernel& k = *row.kernel();
  const int64_t n = row.dim(1);
  const Vec square = broadcast(row, {n, n});
  const Vec diagonal = iota(k, {n, n}, 0) == iota(k, {n, n}, 1);
  return sum(where(diagonal, square, 0.0), 1);
}

// log(1 + exp(x)), without overflow.
Vec softplus(Vec x) { return max(x, 0.0) + log1p(exp(neg(abs(x)))); }

// Rows [1, n] one after another as panels [count, 1, 128], zeros behind them.
Vec as_panels(const std::vector<Vec>& parts, int64_t count) {
  const Vec row = pad_lanes(concat(parts, 1), count * kLanes);
  std::vector<Vec> all;
  for (int64_t p = 0; p < count; ++p) {
    all.push_back(reshape(slice(row, {0, p * kLanes}, {1, kLanes}), {1, 1, kLanes}));
  }
  return concat(all, 0);
}

// The state of the run that is being worked on, and what one row needs of it.
class Recurrence {
 public:
  Recurrence(Kernel& k, const DeltaConstants& constants, const DeltaState& state,
             const DeltaShape& d, int64_t rows)
      : k_(k), constants_(constants), state_(state), d_(d) {
    const auto f32 = [&](Shape shape) { return k.vmem(Elem::kF32, std::move(shape)); };
    matrix_ = f32(delta_matrix_shape(d));
    committed_ = f32(delta_matrix_shape(d));
    stored_columns_ = f32(delta_columns_shape(d));
    pending_ = f32(delta_pending_shape(d));
    columns_ = f32({d.conv_panels(), rows + kConvColumns, kLanes});
    keys_ = f32({d.key_heads, d.key_dim, d.value_dim});
    queries_ = f32({d.key_heads, d.key_dim, d.value_dim});
    conv_ = f32({d.conv_panels(), 1, kLanes});
    const Shape heads = {d.value_heads, 1, d.value_dim};
    values_ = f32(heads), betas_ = f32(heads), decays_ = f32(heads);
    deltas_ = f32(heads), outputs_ = f32(heads);
    done_ = k.dma_sem();
    committing_ = k.dma_sem();
    columns_.store(zeros(k, Elem::kF32, columns_.shape()));
    pending_.store(zeros(k, Elem::kF32, pending_.shape()));
    stored_columns_.store(zeros(k, Elem::kF32, stored_columns_.shape()));
  }

  // Before the first row of a run: the committed state and the pending rows that count.
  void begin(Scalar slot, Scalar row, Scalar position, Scalar keep) {
    k_.if_(
        position == 0,
        [&] {
          matrix_.store(zeros(k_, Elem::kF32, matrix_.shape()));
          for (int64_t j = 0; j < kConvTaps - 1; ++j) put_column(row + j, conv_zeros());
        },
        [&] {
          const Copy copies[] = {start(state_.matrix.at(slot), matrix_),
                                 start(state_.columns.at(slot), stored_columns_),
                                 start(state_.pending.at(slot), pending_)};
          for (const Copy& c : copies) c.wait();
          for (int64_t j = 0; j < kConvTaps - 1; ++j) {
            put_column(row + j,
                       stored_columns_.load({0, keep + j, 0}, {d_.conv_panels(), 1, kLanes}));
          }
          k_.loop(0, keep, [&](Scalar j) { replay(j); });
        });
  }

  // The state as it is now, on its way to HBM until end().
  void commit(Scalar slot) {
    k_.loop(0, d_.value_heads, [&](Scalar h) { committed_.at(h).store(matrix_.at(h).load()); });
    k_.copy(committed_, state_.matrix.at(slot), committing_);
  }

  // One token: outputs_ = o; as row `pending` of the pending ones if that is not negative.
  void step(Ref y, Scalar row, Scalar pending) {
    put_column(row + (kConvTaps - 1), y.load({0, row, 0}, {d_.conv_panels(), 1, kLanes}));
    convolve(row);
    spread(y.load({d_.gate_panel(), row, 0}, {1, 1, kLanes}));
    k_.loop(0, d_.value_heads, [&](Scalar h) {
      const Vec key = keys_.at(h / d_.heads_per_key()).load();
      const Vec query = queries_.at(h / d_.heads_per_key()).load();
      const Vec decayed = matrix_.at(h).load() * decays_.at(h).load();
      const Vec delta = (values_.at(h).load() - sum(decayed * key, 0)) * betas_.at(h).load();
      const Vec next = decayed + key * delta;
      matrix_.at(h).store(next);
      deltas_.at(h).store(delta);
      outputs_.at(h).store(sum(next * query, 0));
    });
    k_.if_(pending >= 0, [&] { remember(pending); });
  }

  // After the last row of a run, whose first pending row is `pending`.
  void end(Scalar slot, Scalar pending) {
    k_.loop(0, kConvTaps - 1 + kPendingRows, [&](Scalar j) {
      stored_columns_.store(columns_.load({0, pending + j, 0}, {d_.conv_panels(), 1, kLanes}),
                            {0, j, 0});
    });
    const Copy copies[] = {start(stored_columns_, state_.columns.at(slot)),
                           start(pending_, state_.pending.at(slot))};
    for (const Copy& c : copies) c.wait();
    k_.wait(committed_, state_.matrix.at(slot), committing_);
  }

  // The output of head h, RMS-normed: [1, value_dim].
  Vec normed(int64_t h) const {
    const Vec o = outputs_.at(h).load();
    const Vec scale = rsqrt(sum(o * o, 1) * (1.0 / static_cast<double>(d_.value_dim)) + d_.eps);
    return o * scale * constants_.vectors.load({2, 0}, {1, d_.value_dim});
  }

 private:
  Copy start(Ref from, Ref to) { return k_.copy(from, to, done_); }
  Vec conv_zeros() { return zeros(k_, Elem::kF32, {d_.conv_panels(), 1, kLanes}); }
  void put_column(Scalar at, Vec column) { columns_.store(column, {0, at, 0}); }

  // conv_ = silu of the convolution that ends at `row`'s column; then keys_, queries_ and values_.
  void convolve(Scalar row) {
    Vec total;
    for (int64_t t = 0; t < kConvTaps; ++t) {
      const Vec tap = reshape(constants_.conv.at(t).load(), {d_.conv_panels(), 1, kLanes});
      const Vec term = columns_.load({0, row + t, 0}, {d_.conv_panels(), 1, kLanes}) * tap;
      total = t == 0 ? term : total + term;
    }
    conv_.store(silu(total));
    const double scale = 1.0 / std::sqrt(static_cast<double>(d_.key_dim));
    for (int64_t g = 0; g < d_.key_heads; ++g) {
      const Vec q = unit(g * d_.key_dim);
      const Vec key = unit(d_.key_panels() * kLanes + g * d_.key_dim);
      spread_column(q * scale, queries_.at(g));
      spread_column(key, keys_.at(g));
    }
    for (int64_t h = 0; h < d_.value_heads; ++h) {
      values_.at(h).store(
          columns(conv_, 2 * d_.key_panels() * kLanes + h * d_.value_dim, d_.value_dim));
    }
  }

  // The key_dim columns of conv_ from `start`, scaled to length 1.
  Vec unit(int64_t start) const {
    const Vec v = columns(conv_, start, d_.key_dim);
    return v * rsqrt(sum(v * v, 1) + d_.eps);
  }

  void spread_column(Vec row, Ref to) { to.store(broadcast(column(row), to.shape())); }

  // betas_ and decays_ from b and a.
  void spread(Vec gates) {
    const Vec ba = reshape(gates, {1, kLanes});
    const Vec beta = logistic(ba);
    const Vec a = constants_.vectors.load({0, 0}, {1, kLanes});
    const Vec dt = constants_.vectors.load({1, 0}, {1, kLanes});
    const Vec decay = exp(a * softplus(ba + dt));
    for (int64_t h = 0; h < d_.value_heads; ++h) {
      const Shape wide = {1, d_.value_dim};
      betas_.at(h).store(broadcast(slice(beta, {0, h}, {1, 1}), wide));
      decays_.at(h).store(broadcast(slice(decay, {0, d_.value_heads + h}, {1, 1}), wide));
    }
  }

  // Rows of a pending row: keys, then deltas, then decays.
  void remember(Scalar j) {
    const auto put = [&](int64_t at, Vec row) {
      pending_.at(j).store(pad_lanes(row, kLanes), {at, 0});
    };
    for (int64_t g = 0; g < d_.key_heads; ++g) {
      put(g, unit(d_.key_panels() * kLanes + g * d_.key_dim));
    }
    for (int64_t h = 0; h < d_.value_heads; ++h) {
      put(d_.key_heads + h, deltas_.at(h).load());
      put(d_.key_heads + d_.value_heads + h, decays_.at(h).load());
    }
  }

  void replay(Scalar j) {
    const Ref row = pending_.at(j);
    for (int64_t g = 0; g < d_.key_heads; ++g) {
      spread_column(row.load({g, 0}, {1, d_.key_dim}), keys_.at(g));
    }
    k_.loop(0, d_.value_heads, [&](Scalar h) {
      const Vec delta = row.load({h + d_.key_heads, 0}, {1, d_.value_dim});
      const Vec decay = row.load({h + (d_.key_heads + d_.value_heads), 0}, {1, d_.value_dim});
      const Vec key = keys_.at(h / d_.heads_per_key()).load();
      matrix_.at(h).store(matrix_.at(h).load() * decay + key * delta);
    });
  }

  Kernel& k_;
  const DeltaConstants& constants_;
  const DeltaState& state_;
  const DeltaShape& d_;
  Ref matrix_;          // [value_heads, key_dim, value_dim], of the row that was done last
  Ref committed_;       // the same, of the last row that is not pending
  Ref stored_columns_;  // as in HBM
  Ref pending_;         // as in HBM
  // Raw projections: the column of row r at r + 3, those of the three tokens before a run before
  // its first.
  Ref columns_;
  // Of the current row. Keys and queries stand along the first dimension of a head's matrix and
  // are the same in all its lanes.
  Ref conv_, keys_, queries_, values_, betas_, decays_, deltas_, outputs_;
  Sem done_, committing_;
};

}  // namespace

Shape delta_matrix_shape(const DeltaShape& d) { return {d.value_heads, d.key_dim, d.value_dim}; }
Shape delta_columns_shape(const DeltaShape& d) { return {d.conv_panels(), kConvColumns, kLanes}; }
Shape delta_pending_shape(const DeltaShape& d) {
  return {kPendingRows, d.key_heads + 2 * d.value_heads, kLanes};
}

void gated_delta(Ref y, const DeltaConstants& constants, const DeltaState& state,
                 const StepRows& rows, const RowRuns& runs, Ref keep, const DeltaShape& d,
                 Ref out) {
  Kernel& k = *y.kernel();
  const auto body = [&] {
    Recurrence recurrence(k, constants, state, d, rows.count);
    const Ref normed = k.vmem(Elem::kF32, {d.value_panels(), rows.count, kLanes});
    normed.store(zeros(k, Elem::kF32, normed.shape()));
    k.loop(0, rows.count, [&](Scalar r) {
      k.if_(rows.active(r), [&] {
        const Scalar slot = rows.slot(r), pending = runs.first_pending(r);
        k.if_(runs.first(r) == r,
              [&] { recurrence.begin(slot, r, rows.position(r), keep.get({slot})); });
        k.if_(pending == r, [&] { recurrence.commit(slot); });
        recurrence.step(y, r, r - pending);
        std::vector<Vec> heads;
        for (int64_t h = 0; h < d.value_heads; ++h) heads.push_back(recurrence.normed(h));
        normed.store(as_panels(heads, d.value_panels()), {0, r, 0});
        k.if_(runs.after(r) == 0, [&] { recurrence.end(slot, pending); });
      });
    });
    const Vec z = y.load({d.z_panel(), 0, 0}, {d.value_panels(), rows.count, kLanes});
    out.store(cast(normed.load() * silu(z), Elem::kBf16));
  };
  k.composite("gated_delta",
              {y, constants.conv, constants.vectors, state.matrix, state.columns, state.pending,
               rows.table, runs.first_table(), runs.after_table(), keep, out},
              {{"key_heads", d.key_heads},
               {"value_heads", d.value_heads},
               {"key_dim", d.key_dim},
               {"value_dim", d.value_dim},
               {"rows", rows.count},
               {"eps", d.eps}},
              body);
}

}  // namespace gridless::blocks
