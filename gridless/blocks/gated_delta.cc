#include "gridless/blocks/gated_delta.h"

#include <algorithm>
#include <cmath>

#include "gridless/blocks/delta_chunk.h"

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

// States of runs that are in VMEM at once, and how many runs ahead they are fetched: while a run is
// worked on, those of the next ones arrive and those of the last ones leave.
struct Held {
  explicit Held(int64_t rows)
      : states(std::min<int64_t>(rows, 4)), ahead(std::max<int64_t>(1, states - 2)) {}
  int64_t states, ahead;
};

// The states of runs, and what one row needs of the one that is being worked on.
class Recurrence {
 public:
  Recurrence(Kernel& k, const DeltaConstants& constants, const DeltaState& state,
             const StepRows& rows, const RowRuns& runs, const DeltaShape& d)
      : k_(k),
        constants_(constants),
        state_(state),
        rows_(rows),
        runs_(runs),
        d_(d),
        held_(rows.count) {
    const auto f32 = [&](Shape shape) { return k.vmem(Elem::kF32, std::move(shape)); };
    const auto each = [&](Shape shape) {
      shape.insert(shape.begin(), held_.states);
      return f32(std::move(shape));
    };
    matrices_ = each(delta_matrix_shape(d));
    committed_ = each(delta_matrix_shape(d));
    stored_columns_ = each(delta_columns_shape(d));
    pending_ = each(delta_pending_shape(d));
    columns_ = f32({d.conv_panels(), rows.count + kConvColumns, kLanes});
    keys_ = f32({d.key_heads, d.key_dim, d.value_dim});
    queries_ = f32({d.key_heads, d.key_dim, d.value_dim});
    conv_ = f32({d.conv_panels(), 1, kLanes});
    const Shape heads = {d.value_heads, 1, d.value_dim};
    values_ = f32(heads), betas_ = f32(heads), deltas_ = f32(heads);
    decays_ = f32(d.channel_decay ? delta_matrix_shape(d) : heads);
    if (d.channel_decay) channel_decays_ = f32({d.key_panels(), 1, kLanes});
    outputs_ = f32({d.value_heads, rows.count, d.value_dim});
    loaded_ = k.dma_sems(held_.states);
    stored_ = k.dma_sems(held_.states);
    for (const Ref& r : {columns_, pending_, stored_columns_, outputs_}) {
      r.store(zeros(k, Elem::kF32, r.shape()));
    }
    k.loop(0, min(runs.count(), Scalar(held_.ahead)), [&](Scalar run) { load(run); });
  }

  // After all runs: waits for what is still on its way to HBM.
  void finish() {
    k_.loop(max(runs_.count() - held_.states, 0), runs_.count(),
            [&](Scalar run) { wait_stored(run); });
  }

  // What follows is about `run`.
  void select(Scalar run) {
    place_ = run % held_.states;
    matrix_ = matrices_.at(place_);
  }

  // Before the first row of the run: the committed state and the pending rows that count.
  void begin(Scalar run, Scalar row, Scalar keep) {
    const Scalar slot = rows_.slot(row);
    k_.if_(
        rows_.position(row) == 0,
        [&] {
          matrix_.store(zeros(k_, Elem::kF32, matrix_.shape()));
          for (int64_t j = 0; j < kConvTaps - 1; ++j) put_column(row + j, conv_zeros());
        },
        [&] {
          each_part(slot, place_,
                    [&](Ref home, Ref here) { k_.wait(home, here, loaded_.at(place_)); });
          for (int64_t j = 0; j < kConvTaps - 1; ++j) {
            put_column(row + j, stored_columns_.at(place_).load({0, keep + j, 0},
                                                                {d_.conv_panels(), 1, kLanes}));
          }
          k_.loop(0, keep, [&](Scalar j) { replay(j); });
        });
    const Scalar next = run + held_.ahead;
    k_.if_(next < runs_.count(), [&] {
      k_.if_(next >= held_.states, [&] { wait_stored(next - held_.states); });
      load(next);
    });
  }

  // The state as it is now, on its way to HBM.
  void commit(Scalar slot) {
    const Ref to = committed_.at(place_);
    k_.loop(0, d_.value_heads, [&](Scalar h) { to.at(h).store(matrix_.at(h).load()); });
    k_.copy(to, state_.matrix.at(slot), stored_.at(place_));
  }

  // One token; as row `pending` of the pending ones if that is not negative. `decay`: with
  // channel_decay.
  void step(Ref y, Ref decay, Scalar row, Scalar pending) {
    put_column(row + (kConvTaps - 1), y.load({0, row, 0}, {d_.conv_panels(), 1, kLanes}));
    convolve(row);
    spread(y.load({d_.gate_panel(), row, 0}, {1, 1, kLanes}));
    if (d_.channel_decay) spread_channels(decay.load({0, row, 0}, {d_.key_panels(), 1, kLanes}));
    k_.loop(0, d_.value_heads, [&](Scalar h) {
      const Vec key = keys_.at(h / d_.heads_per_key()).load();
      const Vec query = queries_.at(h / d_.heads_per_key()).load();
      const Vec decayed = matrix_.at(h).load() * decays_.at(h).load();
      const Vec delta = (values_.at(h).load() - sum(decayed * key, 0)) * betas_.at(h).load();
      const Vec next = decayed + key * delta;
      matrix_.at(h).store(next);
      deltas_.at(h).store(delta);
      outputs_.store(reshape(sum(next * query, 0), {1, 1, d_.value_dim}), {h, row, 0});
    });
    k_.if_(pending >= 0, [&] { remember(pending); });
  }

  // Before begin() of any run that chunk() is for: the columns of all rows.
  void put_columns(Ref y) {
    columns_.store(y.load({0, 0, 0}, {d_.conv_panels(), rows_.count, kLanes}),
                   {0, kConvTaps - 1, 0});
  }

  // Rows first .. end - 1 of the run in one go (delta_chunk.h). Their columns are there.
  void chunk(Ref y, Scalar first, Scalar end) {
    const int64_t rows = rows_.count;
    Vec total;
    for (int64_t t = 0; t < kConvTaps; ++t) {
      const Vec tap = reshape(constants_.conv.at(t).load(), {d_.conv_panels(), 1, kLanes});
      const Vec term = columns_.load({0, t, 0}, {d_.conv_panels(), rows, kLanes}) * tap;
      total = t == 0 ? term : total + term;
    }
    const Ref conv = k_.vmem(Elem::kF32, {d_.conv_panels(), rows, kLanes});
    conv.store(silu(total));
    const auto inside = [&](Vec v) {
      const Vec row = iota(k_, v.shape(), 0);
      return where((row >= first) & (row < end), v, 0.0);
    };
    const Gates gates = gates_of(y.load({d_.gate_panel(), 0, 0}, {1, rows, kLanes}));
    const Vec beta = inside(gates.beta), log_decay = inside(gates.log_decay);
    for (int64_t g = 0; g < d_.key_heads; ++g) {
      const Vec q = query_of(conv, g), key = inside(key_of(conv, g));
      for (int64_t h = g * d_.heads_per_key(); h < (g + 1) * d_.heads_per_key(); ++h) {
        const DeltaChunk all =
            delta_chunk(q, key, value_of(conv, h), slice(beta, {0, h}, {rows, 1}),
                        slice(log_decay, {0, d_.value_heads + h}, {rows, 1}), matrix_.at(h).load());
        matrix_.at(h).store(all.state);
        const Vec row = iota(k_, all.outputs.shape(), 0);
        outputs_.at(h).store(
            where((row >= first) & (row < end), all.outputs, outputs_.at(h).load()));
      }
    }
  }

  // After the last row of the run, whose first pending row is `pending`.
  void end(Scalar slot, Scalar pending) {
    const Ref stored = stored_columns_.at(place_);
    k_.loop(0, kConvTaps - 1 + kPendingRows, [&](Scalar j) {
      stored.store(columns_.load({0, pending + j, 0}, {d_.conv_panels(), 1, kLanes}), {0, j, 0});
    });
    k_.copy(stored, state_.columns.at(slot), stored_.at(place_));
    k_.copy(pending_.at(place_), state_.pending.at(slot), stored_.at(place_));
  }

  // The outputs of head h, RMS-normed: [R, value_dim], zeros in inactive rows.
  Vec normed(int64_t h) const {
    const Vec o = rounded(outputs_.at(h).load());
    const Vec scale = rsqrt(sum(o * o, 1) * (1.0 / static_cast<double>(d_.value_dim)) + d_.eps);
    return rounded(o * scale * constants_.vectors.load({d_.norm_row(), 0}, {1, d_.value_dim}));
  }

  // v, rounded to bf16 where Kimi Delta Attention does.
  Vec rounded(Vec v) const { return d_.channel_decay ? round_to_bf16(v) : v; }

 private:
  // What a slot's state consists of, in HBM and in VMEM.
  void each_part(Scalar slot, Scalar place, const std::function<void(Ref home, Ref here)>& use) {
    use(state_.matrix.at(slot), matrices_.at(place));
    use(state_.columns.at(slot), stored_columns_.at(place));
    use(state_.pending.at(slot), pending_.at(place));
  }
  // Of a run that does not begin from nothing.
  void load(Scalar run) {
    const Scalar row = runs_.begin(run), place = run % held_.states;
    k_.if_(rows_.position(row) != 0, [&] {
      each_part(rows_.slot(row), place,
                [&](Ref home, Ref here) { k_.copy(home, here, loaded_.at(place)); });
    });
  }
  void wait_stored(Scalar run) {
    const Scalar place = run % held_.states;
    // (The matrix left from committed_, which has its size.)
    each_part(rows_.slot(runs_.begin(run)), place,
              [&](Ref home, Ref here) { k_.wait(here, home, stored_.at(place)); });
  }
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
    conv_.store(rounded(silu(total)));
    for (int64_t g = 0; g < d_.key_heads; ++g) {
      spread_column(query_of(conv_, g), queries_.at(g));
      spread_column(key_of(conv_, g), keys_.at(g));
    }
    for (int64_t h = 0; h < d_.value_heads; ++h) values_.at(h).store(value_of(conv_, h));
  }

  // Of the rows of `conv`, panel-major: queries and keys of length 1, the queries scaled.
  Vec query_of(Ref conv, int64_t g) const {
    return unit(conv, g * d_.key_dim) * (1.0 / std::sqrt(static_cast<double>(d_.key_dim)));
  }
  Vec key_of(Ref conv, int64_t g) const {
    return unit(conv, d_.key_panels() * kLanes + g * d_.key_dim);
  }
  Vec value_of(Ref conv, int64_t h) const {
    return columns(conv, 2 * d_.key_panels() * kLanes + h * d_.value_dim, d_.value_dim);
  }
  Vec unit(Ref conv, int64_t start) const {
    const Vec v = columns(conv, start, d_.key_dim);
    return v * rsqrt(sum(v * v, 1) + d_.unit_eps());
  }

  void spread_column(Vec row, Ref to) { to.store(broadcast(column(row), to.shape())); }

  // [rows, 128]: beta in the lanes of b, log decay in those of a.
  struct Gates {
    Vec beta, log_decay;
  };
  Gates gates_of(Vec panel) const {
    const Vec ba = reshape(panel, {panel.dim(1), kLanes});
    const Vec a = constants_.vectors.load({0, 0}, {1, kLanes});
    const Vec dt = constants_.vectors.load({1, 0}, {1, kLanes});
    return {logistic(ba), a * softplus(ba + dt)};
  }

  // betas_ and, where a head has one, decays_ from b and a.
  void spread(Vec panel) {
    const Shape wide = {1, d_.value_dim};
    if (d_.channel_decay) {
      const Vec beta = logistic(reshape(panel, {1, kLanes}));
      for (int64_t h = 0; h < d_.value_heads; ++h) {
        betas_.at(h).store(broadcast(slice(beta, {0, h}, {1, 1}), wide));
      }
      return;
    }
    const Gates gates = gates_of(panel);
    const Vec beta = gates.beta, decay = exp(gates.log_decay);
    for (int64_t h = 0; h < d_.value_heads; ++h) {
      betas_.at(h).store(broadcast(slice(beta, {0, h}, {1, 1}), wide));
      decays_.at(h).store(broadcast(slice(decay, {0, d_.value_heads + h}, {1, 1}), wide));
    }
  }

  // decays_ from f: [key_panels, 1, 128].
  void spread_channels(Vec f) {
    const auto by_channel = [&](int64_t row) {
      return reshape(constants_.vectors.load({row, 0}, {d_.key_panels(), kLanes}), f.shape());
    };
    const Vec open = logistic(by_channel(0) * (f + by_channel(d_.dt_row())));
    channel_decays_.store(exp(open * d_.decay_bound));
    for (int64_t h = 0; h < d_.value_heads; ++h) spread_column(decay_row(h), decays_.at(h));
  }
  Vec decay_row(int64_t h) const { return columns(channel_decays_, h * d_.key_dim, d_.key_dim); }

  // Rows of a pending row: keys, then deltas, then decays.
  void remember(Scalar j) {
    const auto put = [&](int64_t at, Vec row) {
      pending_.at(place_).at(j).store(pad_lanes(row, kLanes), {at, 0});
    };
    for (int64_t g = 0; g < d_.key_heads; ++g) {
      put(g, key_of(conv_, g));
    }
    for (int64_t h = 0; h < d_.value_heads; ++h) {
      put(d_.key_heads + h, deltas_.at(h).load());
      put(d_.key_heads + d_.value_heads + h,
          d_.channel_decay ? decay_row(h) : decays_.at(h).load());
    }
  }

  void replay(Scalar j) {
    const Ref row = pending_.at(place_).at(j);
    for (int64_t g = 0; g < d_.key_heads; ++g) {
      spread_column(row.load({g, 0}, {1, d_.key_dim}), keys_.at(g));
    }
    k_.loop(0, d_.value_heads, [&](Scalar h) {
      const Vec delta = row.load({h + d_.key_heads, 0}, {1, d_.value_dim});
      const int64_t width = d_.channel_decay ? d_.key_dim : d_.value_dim;
      const Vec stored = row.load({h + (d_.key_heads + d_.value_heads), 0}, {1, width});
      const Vec decay = d_.channel_decay ? column(stored) : stored;
      const Vec key = keys_.at(h / d_.heads_per_key()).load();
      matrix_.at(h).store(matrix_.at(h).load() * decay + key * delta);
    });
  }

  Kernel& k_;
  const DeltaConstants& constants_;
  const DeltaState& state_;
  const StepRows& rows_;
  const RowRuns& runs_;
  const DeltaShape& d_;
  Held held_;
  Scalar place_;  // of the current run
  Ref matrix_;    // its state: [value_heads, key_dim, value_dim], of the row that was done last
  // One of each held state:
  Ref matrices_;
  Ref committed_;       // the same, of the last row that is not pending
  Ref stored_columns_;  // as in HBM
  Ref pending_;         // as in HBM
  Sems loaded_, stored_;
  // Raw projections: the column of row r at r + 3, those of the three tokens before a run before
  // its first.
  Ref columns_;
  // Of the current row. Keys and queries stand along the first dimension of a head's matrix and
  // are the same in all its lanes.
  Ref conv_, keys_, queries_, values_, betas_, decays_, deltas_;
  Ref channel_decays_;  // with channel_decay: of all heads, as columns of the projections
  Ref outputs_;         // [value_heads, R, value_dim]
};

// What both forms compute. `decay`: with channel_decay.
void recur(Ref y, Ref decay, const DeltaConstants& constants, const DeltaState& state,
           const StepRows& rows, const RowRuns& runs, Ref keep, const DeltaShape& d, bool in_chunks,
           Ref out) {
  Kernel& k = *y.kernel();
  Recurrence recurrence(k, constants, state, rows, runs, d);
  if (in_chunks) recurrence.put_columns(y);
  k.loop(0, rows.count, [&](Scalar r) {
    k.if_(rows.active(r), [&] {
      const Scalar slot = rows.slot(r), pending = runs.first_pending(r), run = runs.number(r);
      recurrence.select(run);
      k.if_(runs.first(r) == r, [&] {
        recurrence.begin(run, r, keep.get({slot}));
        if (in_chunks) {
          k.if_(pending > r, [&] { k.scope([&] { recurrence.chunk(y, r, pending); }); });
        }
      });
      k.if_(pending == r, [&] { recurrence.commit(slot); });
      if (in_chunks) {
        k.if_(pending <= r, [&] { recurrence.step(y, decay, r, r - pending); });
      } else {
        recurrence.step(y, decay, r, r - pending);
      }
      k.if_(runs.after(r) == 0, [&] { recurrence.end(slot, pending); });
    });
  });
  std::vector<Vec> heads;
  for (int64_t h = 0; h < d.value_heads; ++h) heads.push_back(recurrence.normed(h));
  const Vec normed = pad_lanes(concat(heads, 1), d.value_panels() * kLanes);
  for (int64_t p = 0; p < d.value_panels(); ++p) {
    const Vec z =
        reshape(y.load({d.z_panel() + p, 0, 0}, {1, rows.count, kLanes}), {rows.count, kLanes});
    const Vec gate = d.channel_decay ? recurrence.rounded(logistic(z)) : silu(z);
    const Vec gated = slice(normed, {0, p * kLanes}, {rows.count, kLanes}) * gate;
    out.store(reshape(cast(gated, Elem::kBf16), {1, rows.count, kLanes}), {p, 0, 0});
  }
  recurrence.finish();
}

}  // namespace

Shape delta_matrix_shape(const DeltaShape& d) { return {d.value_heads, d.key_dim, d.value_dim}; }
Shape delta_columns_shape(const DeltaShape& d) { return {d.conv_panels(), kConvColumns, kLanes}; }
Shape delta_pending_shape(const DeltaShape& d) {
  return {kPendingRows, d.key_heads + 2 * d.value_heads, kLanes};
}

void gated_delta(Ref y, const DeltaConstants& constants, const DeltaState& state,
                 const StepRows& rows, const RowRuns& runs, Ref keep, const DeltaShape& d,
                 DeltaRule rule, Ref out) {
  Kernel& k = *y.kernel();
  const bool in_chunks = rule == DeltaRule::kChunked && rows.count > kPendingRows;
  const auto body = [&] { recur(y, {}, constants, state, rows, runs, keep, d, in_chunks, out); };
  // (No hand kernel takes rows in chunks: for a CPU there is nothing to gain.)
  if (in_chunks) {
    k.scope(body);
    return;
  }
  k.composite("gated_delta",
              {y, constants.conv, constants.vectors, state.matrix, state.columns, state.pending,
               rows.table, runs.first_table(), runs.after_table(), keep, out, runs.begin_table(),
               runs.number_table(), runs.count()},
              {{"key_heads", d.key_heads},
               {"value_heads", d.value_heads},
               {"key_dim", d.key_dim},
               {"value_dim", d.value_dim},
               {"rows", rows.count},
               {"eps", d.eps}},
              body);
}

void kimi_delta(Ref y, Ref decay, const DeltaConstants& constants, const DeltaState& state,
                const StepRows& rows, const RowRuns& runs, Ref keep, const DeltaShape& d, Ref out) {
  y.kernel()->scope(
      [&] { recur(y, decay, constants, state, rows, runs, keep, d, /*in_chunks=*/false, out); });
}

}  // namespace gridless::blocks
