// Recorder: what the core ops tell the checker about a run. Machine::recorder is null in plain
// runs.
//
// Under a recorder the machine differs in three ways: copies move their data at their start (the
// order of copies never matters for a race-free program, and eager ones leave no false suspicion of
// uninitialised data); loads beyond a ref's end give garbage instead of stopping the core; and
// buffers know what was written to them (Buffer::contents).
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "gridless/emulate/check/trace.h"
#include "gridless/emulate/contents.h"
#include "gridless/emulate/machine.h"

namespace gridless::emulate {

// A load that may have given garbage: it counts only if the garbage can be told from outside.
struct Suspect {
  enum class What : uint8_t { kUninitialised, kOutOfBounds };
  What what = What::kUninitialised;
  Code code;
  int core = 0;
  int site = 0;
  std::string detail;
};

class Recorder {
 public:
  Recorder(const Kernel& kernel, int cores);

  struct At {
    const Core& core;
    const Frame& frame;
    const Instr& instr;
  };

  void enter(const Core& core);
  void leave(const Core& core);
  // The window buffers of `site` get another block.
  void new_window(const Core& core, int site);
  // A step of the grid begins; after the last one once more.
  void grid_step(const Core& core);
  // Between its last step and the one that begins a block moves between `tensor` (the part that
  // exists) and the window of the argument.
  void window_copy(const Core& core, size_t argument, const View& tensor, bool in);
  // Nothing was stored in the window whose block goes out.
  void unwritten_block(const Core& core, size_t argument, const Shape& block);
  void allocate(const At& at);
  void end_scope(const At& at, int first_site, int last_site);

  // Accesses of the core itself. load() says where the values are from.
  Origin load(const At& at, const View& v, const Region& region, bool masked);
  void store(const At& at, const View& v, const Region& region, Content content,
             std::span<const int32_t> mask);
  void out_of_bounds_load(const At& at, const View& v, std::string problem);

  void broken_promise(const At& at, std::string problem);

  void copy(const At& at, const Transfer& t);
  void signal(const At& at, const View& ref, int to_core, int64_t amount);
  void wait(const At& at, const View& ref, int64_t amount);
  void read(const At& at, const View& ref);
  // A scalar that decides control flow, an address, an amount or a device.
  void decides(const ir::Op& op, const Scalar& s);
  void stuck(const Core& core);

  // After a run that ended: accesses and increments by other cores carry the sender's count of the
  // scopes they belong to. Cores may enter a scope different numbers of times: they belong to the
  // one of the owner's whose wait takes them. Any choice for which the rules hold is a proof.
  void settle_lives();

  // The contents of a result at the end; null: all known.
  void result(int core, int result, std::shared_ptr<Content[]> contents);

  Trace trace;
  std::vector<Suspect> suspects;
  // Ops that took a decision on a value of that origin, the first per op.
  std::map<const ir::Op*, Origin> decisions;
  std::map<std::pair<int, int>, std::shared_ptr<Content[]>> results;  // by core and result
  uint64_t fingerprint = 0;  // of all events: equal runs have equal ones

 private:
  Node next(const Core& core);
  Code code(const At& at);
  int32_t access(const At& at, const View& v, const Region& region, bool write, int32_t copy,
                 Node node);
  int32_t increment(const View& ref, int on_core, int64_t amount, int from_core, int32_t copy,
                    Node node, Code code);
  void own_access(const At& at, const View& v, const Region& region, bool write);
  void mix(uint64_t value);
  int32_t life(int core, int32_t site) const;
  void settle(int32_t& life, int32_t memory, Node wait) const;
  void suspect(const At& at, Suspect::What what, const View& v, std::string detail);

  const Kernel& kernel_;
  int64_t seq_ = 0;
  std::vector<int32_t> canonical_;   // by site: the site whose memory it is
  std::vector<bool> shared_tensor_;  // by argument: another one reaches its tensor
  struct PerCore {
    int32_t pos = 0, waits = 0;
    int32_t epoch = 0;          // counts synchronising events
    int32_t iteration = 0;      // the last one, with where it is from
    std::vector<int32_t> life;  // by site
  };
  std::vector<PerCore> cores_;
  // Per core, by site, footprint and direction: the epoch of the last access. Between two
  // synchronising events equal accesses of one core cannot be told apart.
  std::vector<std::unordered_map<int64_t, int32_t>> seen_;
  std::map<std::pair<const ir::Op*, int>, bool> suspected_;
};

}  // namespace gridless::emulate
