// Copies: touched too early, too late, and never waited for.
#include "tests/race/race_case.h"

namespace gridless::lang {
namespace {

constexpr int64_t kRows = 8, kColumns = 128;

struct Io {
  Ref x, y;
};
Io io(Kernel& k, int64_t rows = kRows) {
  return {k.input("x", Elem::kF32, {rows, kColumns}), k.output("y", Elem::kF32, {rows, kColumns})};
}

// The load does not wait for the copy that fills its buffer.
void load_before_wait(Kernel& k, bool fixed, int& line) {
  const Io m = io(k);
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns}), b = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem in = k.dma_sem(), out = k.dma_sem();
    b.store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    const Copy c = k.copy(m.x, a, in);
    if (fixed) c.wait();
    HERE const Vec v = a.load();
    if (!fixed) c.wait();
    b.store(v);
    k.copy(b, m.y, out).wait();
  });
}

// The buffer is overwritten while it is still being written out.
void store_before_copy_out_is_over(Kernel& k, bool fixed, int& line) {
  const Io m = io(k);
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem out = k.dma_sem();
    a.store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    const Copy c = k.copy(a, m.y, out);
    if (fixed) c.wait();
    HERE a.store(k.constant({kRows, kColumns}, Elem::kF32, 2));
    if (!fixed) c.wait();
  });
}

// Two copies in flight share a semaphore and have one size: the first wait may be met by the
// second.
void two_copies_one_semaphore(Kernel& k, bool fixed, int& line) {
  const Io m = io(k, 2 * kRows);
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {2, kRows, kColumns});
    const Ref b = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sems in = k.dma_sems(2);
    const Sem out = k.dma_sem();
    const Copy c0 = k.copy(m.x.rows(0, kRows), a.at(0), in.at(0));
    const Copy c1 = k.copy(m.x.rows(kRows, kRows), a.at(1), in.at(fixed ? 1 : 0));
    c0.wait();
    HERE const Vec v = a.at(0).load();
    c1.wait();
    b.store(v + a.at(1).load());
    const Copy o = k.copy(b, m.y.rows(0, kRows), out);
    o.wait();
    k.copy(b, m.y.rows(kRows, kRows), out).wait();
  });
}

// The third round's copy goes into a slot that the second round still reads.
void slot_reused(Kernel& k, bool fixed, int& line) {
  const Io m = io(k, 4 * kRows);
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {2, kRows, kColumns});
    const Ref b = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sems in = k.dma_sems(2);
    const Sem out = k.dma_sem();
    const auto start = [&](Scalar i) {
      k.copy(m.x.rows(i * kRows, kRows), a.at(i % 2), in.at(i % 2));
    };
    start(0);
    k.loop(0, 4, [&](Scalar i) {
      k.if_(i + 1 < 4, [&] { start(i + 1); });
      // Wrong: waits for the other slot's copy.
      const Scalar slot = fixed ? i % 2 : (i + 1) % 2;
      k.if_(fixed ? i >= 0 : i + 1 < 4,
            [&] { k.wait(m.x.rows(0, kRows), a.at(slot), in.at(slot)); });
      HERE const Vec v = a.at(i % 2).load();
      b.store(v);
      k.copy(b, m.y.rows(i * kRows, kRows), out).wait();
    });
    if (!fixed) k.wait(m.x.rows(0, kRows), a.at(0), in.at(0));
  });
}

// The buffer's scope ends before the copy into it.
void copy_outlives_scope(Kernel& k, bool fixed, int& line) {
  const Io m = io(k);
  k.scope([&] {
    const Ref b = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem in = k.dma_sem(), out = k.dma_sem();
    b.store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    k.scope([&] {
      const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
      HERE const Copy c = k.copy(m.x, a, in);
      if (fixed) c.wait();
    });
    if (!fixed) k.wait(m.x, b, in);
    k.copy(b, m.y, out).wait();
  });
}

void copy_out_never_awaited(Kernel& k, bool fixed, int& line) {
  const Io m = io(k);
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Sem out = k.dma_sem();
    a.store(k.constant({kRows, kColumns}, Elem::kF32, 1));
    HERE const Copy c = k.copy(a, m.y, out);
    if (fixed) c.wait();
  });
}

// The wait names twice the bytes that come.
void wait_for_too_many_bytes(Kernel& k, bool fixed, int& line) {
  const Io m = io(k);
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {kRows, kColumns});
    const Ref two = k.vmem(Elem::kF32, {2 * kRows, kColumns});
    const Sem in = k.dma_sem(), out = k.dma_sem();
    two.store(k.constant({2 * kRows, kColumns}, Elem::kF32, 1));
    k.copy(m.x, a, in);
    const Ref named = fixed ? a : two;
    HERE k.wait(named, named, in);
    k.copy(a, m.y, out).wait();
  });
}

// Source and target of a copy overlap, a row apart; the twin copies a buffer onto itself.
void overlapping_copy(Kernel& k, bool fixed, int& line) {
  const Io m = io(k);
  k.scope([&] {
    const Ref a = k.vmem(Elem::kF32, {2 * kRows, kColumns});
    const Sem in = k.dma_sem(), out = k.dma_sem();
    a.store(k.constant({2 * kRows, kColumns}, Elem::kF32, 1));
    HERE k.copy(a.rows(0, kRows), a.rows(fixed ? 0 : 1, kRows), in).wait();
    k.copy(a.rows(0, kRows), m.y, out).wait();
  });
}

const RaceCase kCases[] = {
    {"OverlappingCopy", "race", 1, overlapping_copy},
    {"LoadBeforeWait", "race", 1, load_before_wait},
    {"StoreBeforeCopyOutIsOver", "race", 1, store_before_copy_out_is_over},
    {"TwoCopiesOneSemaphore", "race", 1, two_copies_one_semaphore},
    {"SlotReused", "race", 1, slot_reused},
    {"CopyOutlivesScope", "use_after_scope", 1, copy_outlives_scope},
    {"CopyOutNeverAwaited",
     "dma_in_flight_at_end",
     1,
     copy_out_never_awaited,
     {},
     false,
     {"use_after_scope", "semaphore_not_zero"}},
    {"WaitForTooManyBytes",
     "wait_bytes_mismatch",
     1,
     wait_for_too_many_bytes,
     {},
     false,
     {"deadlock", "race"}},
};
RACE_SUITE(RaceOfCopies, kCases);

}  // namespace
}  // namespace gridless::lang
