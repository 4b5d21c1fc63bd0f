// Kernel: builds one program. See docs/language.md for the tour and kernels/ for numbered lessons.
//
//   Kernel k("add_one");
//   Ref x = k.input("x", Elem::kF32, {8, 128}), y = k.output("y", Elem::kF32, {8, 128});
//   k.scope([&] {
//     Ref buf = k.vmem(Elem::kF32, {8, 128});
//     Sem done = k.dma_sem();
//     k.copy(x, buf, done).wait();
//     buf.store(buf.load() + 1.0);
//     k.copy(buf, y, done).wait();
//   });
//   std::expected<ir::Program, Diagnostics> program = k.finish();
//
// Mistakes do not abort: each becomes a Diagnostic with the C++ line, and building goes on with a
// value of the expected type; finish() returns them all, together with the verifier's.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "gridless/ir/call.h"
#include "gridless/lang/handles.h"

namespace gridless::lang {

// Semaphores are refs in semaphore memory; a rank-0 ref is one semaphore.
using Sem = Ref;
using Sems = Ref;  // an array of them: at(i) is one

// A copy in flight. wait() blocks until all its bytes have landed (and, for a remote copy sent from
// here, wait_sent() until the source may be reused). A copy that nothing waits for is a warning.
class Copy {
 public:
  void wait(Where w = Where::current()) const;
  void wait_sent(Where w = Where::current()) const;

 private:
  friend class Kernel;
  Kernel* kernel_ = nullptr;
  size_t number_ = 0;  // among the copies of the kernel
  Ref src_, dst_;
  Sem done_, sent_;
  Scalar device_;
  bool remote_ = false;
};

class Kernel {
 public:
  explicit Kernel(std::string name, int cores = 1, Where w = Where::current());
  ~Kernel();
  Kernel(const Kernel&) = delete;

  // Operands, in call order. HBM operands are never copied by the compiler; SMEM operands are small
  // tables.
  Ref input(std::string name, Elem e, Shape shape, Space space = Space::kHbm,
            Where w = Where::current());
  Ref output(std::string name, Elem e, Shape shape, Space space = Space::kHbm,
             Where w = Where::current());
  // State that is updated in place: an operand and a result in one buffer.
  Ref inout(std::string name, Elem e, Shape shape, Space space = Space::kHbm,
            Where w = Where::current());

  // A scope: what is allocated inside lives exactly until its end.
  void scope(const std::function<void()>& body, Where w = Where::current());
  Ref vmem(Elem e, Shape shape, Where w = Where::current());
  Ref smem(Elem e, Shape shape, Where w = Where::current());
  Sem dma_sem(Where w = Where::current());               // one
  Sems dma_sems(int64_t n, Where w = Where::current());  // an array: use .at(i)
  Sem sem(Where w = Where::current());
  Sems sems(int64_t n, Where w = Where::current());

  // Copies. The semaphore counts bytes; each start needs exactly one wait. Urgent copies (priority
  // 1) overtake ordinary ones that have not begun.
  enum class Priority { kOrdinary, kUrgent };
  Copy copy(Ref src, Ref dst, Sem done, Where w = Where::current());
  Copy copy(Ref src, Ref dst, Sem done, Priority p, Where w = Where::current());
  // Into `dst` of core `device` (same program, same allocation there). `sent` counts here,
  // `received` there.
  Copy copy_to(Scalar device, Ref src, Ref dst, Sem sent, Sem received, Where w = Where::current());
  // Waits for the bytes of a copy that was started elsewhere (another iteration, or another core).
  void wait(Ref src, Ref dst, Sem done, Where w = Where::current());
  void wait_received(Ref dst, Sem received, Where w = Where::current());

  void signal(Sem s, Scalar n = 1, Where w = Where::current());
  void signal(Sem s, Scalar n, Scalar device, Where w = Where::current());
  void wait(Sem s, Scalar n = 1, Where w = Where::current());
  Scalar read(Sem s, Where w = Where::current());  // the count now; says nothing about later
  Sem barrier_sem(
      Where w = Where::current());  // the same semaphore on every core, from kernel entry on
  Scalar core(Where w = Where::current());  // this core's number, 0 .. cores-1
  int cores() const { return call_.cores; }
  // All cores arrive before any leaves. Needed once before the first remote write.
  void barrier_all(Where w = Where::current());

  // Control. Bounds may be run-time values.
  void loop(Scalar from, Scalar to, const std::function<void(Scalar)>& body,
            Where w = Where::current());
  // One loop-carried vector or scalar: body(i, carried) -> next.
  Vec loop(Scalar from, Scalar to, Vec init, const std::function<Vec(Scalar, Vec)>& body,
           Where w = Where::current());
  Scalar loop(Scalar from, Scalar to, Scalar init,
              const std::function<Scalar(Scalar, Scalar)>& body, Where w = Where::current());
  std::vector<Vec> loop(Scalar from, Scalar to, std::vector<Vec> init,
                        const std::function<std::vector<Vec>(Scalar, std::vector<Vec>)>& body,
                        Where w = Where::current());
  void if_(Scalar condition, const std::function<void()>& then,
           const std::function<void()>& otherwise = nullptr, Where w = Where::current());
  // The same with a value: both branches give vectors of one type.
  Vec choose(Scalar condition, const std::function<Vec()>& then,
             const std::function<Vec()>& otherwise, Where w = Where::current());
  // while (condition(x)) x = body(x)
  Scalar while_(Scalar init, const std::function<Scalar(Scalar)>& condition,
                const std::function<Scalar(Scalar)>& body, Where w = Where::current());

  // A named stretch of the program, for timelines and profiles. Costs nothing.
  void trace(std::string_view name, const std::function<void()>& body, Where w = Where::current());
  void delay(Scalar ns, Where w = Where::current());
  // A promise that `s` is a multiple of n (checked when emulated), for starts that come from
  // tables.
  Scalar assume_multiple(Scalar s, int64_t n, Where w = Where::current());
  // Stops the kernel with `message` when the condition is false.
  void require(Scalar condition, std::string_view message, Where w = Where::current());

  // A composite (ir/composite.h): `operands` are the refs and scalars of its contract, in order.
  // The body must use exactly these and whatever it makes itself.
  struct Param {
    std::string name;
    ir::Attr value;
    Param(std::string n, int64_t v) : name(std::move(n)), value(ir::Attr::i64(v)) {}
    Param(std::string n, int v) : Param(std::move(n), int64_t{v}) {}
    Param(std::string n, double v)
        : name(std::move(n)), value(ir::Attr::real(v, ir::Type::scalar(Elem::kF32))) {}
  };
  struct Operand {
    ir::Value* value;
    Operand(Ref r) : value(r.value()) {}     // NOLINT
    Operand(Scalar s) : value(s.value()) {}  // NOLINT: a constant scalar is not an operand (null)
  };
  void composite(std::string_view name, const std::vector<Operand>& operands,
                 const std::vector<Param>& params, const std::function<void()>& body,
                 Where w = Where::current());

  void set_vmem_limit(int64_t bytes) { call_.vmem_limit_bytes = bytes; }

  // Closes the program, runs the verifier. The kernel object is spent afterwards. Warnings of a
  // program that is otherwise right come with it (Program::warnings).
  std::expected<ir::Program, Diagnostics> finish(Where w = Where::current());

  // For the free functions of ops.h and for blocks that need an op the language does not spell.
  ir::Op* emit(ir::OpCode code, std::vector<ir::Value*> operands, std::vector<ir::Type> results,
               std::vector<ir::NamedAttr> attrs, Where w, int regions = 0);
  ir::Value* emit1(ir::OpCode code, std::vector<ir::Value*> operands, ir::Type result,
                   std::vector<ir::NamedAttr> attrs, Where w);
  // The IR value of a scalar as i32 (or as index), making the constant here if it is one.
  ir::Value* as_i32(Scalar s, Where w);
  ir::Value* as_index(Scalar s, Where w);
  ir::Value* as_elem(Scalar s, Elem e, Where w);
  Vec constant(Shape shape, Elem e, double value, Where w = Where::current());
  void error(std::string kind, std::string message, std::string hint, Where w);
  // Runs `body` with new ops going to `block`.
  void in_block(ir::Block& block, const std::function<void()>& body);

 private:
  ir::Op* begin_loop(Scalar from, Scalar to, std::vector<ir::Value*> inits, Where w);
  Ref argument(std::string name, Elem e, Shape shape, Space space, bool is_result, Where w);
  Ref allocate(Elem e, Shape shape, Space space, Where w);
  // One semaphore of the given kind, else a report.
  bool check_sem(const Sem& s, Elem kind, const char* use, Where w);
  bool check_copy(const Ref& src, const Ref& dst, Where w);
  // Reports operands that are out of scope or of another kernel.
  void check_visible(const std::vector<ir::Value*>& operands, Where w);
  void warn_about_copies();
  void check_mxu_use();
  void warn_about_outputs();

  // What finish() needs to know about one started copy.
  struct Started {
    Where where;
    const ir::Value* done = nullptr;  // the allocations of its semaphores
    const ir::Value* sent = nullptr;
    bool waited = false, waited_sent = false;
  };
  friend class Copy;

  ir::Module module_;
  ir::Call call_;
  ir::Op* function_ = nullptr;
  ir::Block* block_ = nullptr;
  std::vector<std::unique_ptr<ir::Value>> inputs_, outputs_;
  std::vector<Where> output_places_;
  Diagnostics diagnostics_;
  std::vector<ir::Block*> open_;  // the blocks around the place where ops go now, outermost first
  std::vector<Started> started_;
  std::vector<const ir::Value*> waited_elsewhere_;  // semaphores of wait(src, dst, done)
  std::optional<SourceLoc> finished_;               // where finish() was called
  ir::Module afterlife_;                            // takes what is built after that
};

}  // namespace gridless::lang
