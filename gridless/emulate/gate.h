// Gate: asked before every visible event of a core, so that somebody else decides when it happens.
// Visible is what another core or a copy under way could notice, or be noticed by.
//
// Machine::gate is null in plain runs. With a gate copies do not move on their own: they are in
// Machine::in_flight from their start on, and whoever holds the gate moves them.
#pragma once

#include <memory>

#include "gridless/emulate/machine.h"
#include "gridless/emulate/region.h"

namespace gridless::emulate {

struct Event {
  enum class Kind : uint8_t {
    kEnter,     // the core enters the kernel
    kLoad,      // of `region` of `buffer`
    kStore,     // to it
    kCopy,      // `copy` starts
    kSignal,    // adds `amount` to `semaphore`
    kWait,      // until `semaphore` holds `amount`, then takes it
    kCount,     // reads `semaphore`
    kAllocate,  // site `first_site`; always passed
    kScopeEnd,  // of the sites from `first_site` up to `last_site`
    kReturn,    // from the kernel, or from one step of its grid
  };
  Kind kind = Kind::kEnter;
  const ir::Op* op = nullptr;
  const Buffer* buffer = nullptr;
  Region region;
  std::shared_ptr<const Transfer> copy;
  Semaphore* semaphore = nullptr;
  const Buffer* semaphores = nullptr;  // whose array it is in
  int64_t amount = 0;
  int first_site = 0, last_site = 0;
  bool leaves = false;  // kReturn: from the kernel (the holder of the gate fills it in)
};

class Gate {
 public:
  virtual ~Gate() = default;
  // False: the core stops before the event and will ask again.
  virtual bool pass(const Core& core, Event event) = 0;
  // False: loads and stores are no events.
  virtual bool watches_accesses() const { return true; }
  // True: signals are added to their semaphores by the gate's holder, at a time of its own.
  virtual bool delivers_signals() const { return false; }
  // The core has come to a mark (insert_marks).
  virtual void passed(const Core&, int /*mark*/) {}
  // Control flow, an address, an amount or a device depends on a scalar that is not known.
  virtual void decides(const ir::Op&, const Scalar&) {}
};

}  // namespace gridless::emulate
