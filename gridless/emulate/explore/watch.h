// Watch: sees every event of an explored timing right before it happens, and says what is wrong
// with it there and then. It knows which copies are under way, which cores are inside the kernel,
// and which allocations are alive.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "gridless/emulate/explore/elements.h"
#include "gridless/emulate/explore/explore.h"
#include "gridless/emulate/explore/hash.h"
#include "gridless/emulate/stepper.h"

namespace gridless::emulate {

// What is known of a copy from its start.
struct Flight {
  std::shared_ptr<const Transfer> copy;
  int launch = 0;
  Elements source, target;
  bool is_read = false;  // the whole source
};

// The program's allocations on one core: how often each site was begun and ended in this launch.
struct Lives {
  int entered = 0, left = 0;  // launches
  std::vector<int32_t> begun, ended;
  Hash history;  // of all values that it has read: decides with its position what its frame holds
};

// A remote access before the owner has allocated what it touches. Right, unless another scope of
// the same kind of memory ends there before.
struct Early {
  int owner = 0, site = 0;
  int32_t life = 0;
  int from = 0;
  const ir::Op* op = nullptr;
};

class Watch : public Witness {
 public:
  Watch(const Kernel& kernel, int cores);
  void happens(const Core& core, const Event& event) override;
  // The steps of copies, and of windows, which are no events.
  void read_over(size_t flight) { flights[flight].is_read = true; }
  void landed(size_t flight) {
    flights.erase(flights.begin() + static_cast<std::ptrdiff_t>(flight));
  }
  void new_window(const Core& core, size_t site, const ir::Op* op);
  void found(std::string kind, std::string message, const ir::Op* first, int first_core,
             const ir::Op* second = nullptr, int second_core = 0);
  // A core cannot go on: what its op says.
  void stopped(const Diagnostic& diagnostic, int core);
  // At the end of a timing.
  void end(const Stepper& stepper, const Hash& results);

  // Which life of a scoped site another core's access belongs to: the one that the sender counts,
  // or, for the sites named here, the one that the owner is in when it comes, else its next one.
  // The latter fits scopes that cores enter different numbers of times. It is enough to see every
  // fault where all timings are looked at: an access that may also come before or after the life
  // it belongs to does so in another timing, under way at the end of a scope or left in its count.
  std::vector<bool> by_position;
  // The sites whose scopes cores have entered different numbers of times so far.
  std::vector<bool> uneven_sites() const;

  // The state, to be saved and restored.
  std::vector<Flight> flights;  // as Machine::in_flight
  std::vector<Lives> lives;     // by core
  std::vector<Early> early;

  // Over all timings.
  std::vector<ExploreFinding> findings;
  bool in_second_launch = false;  // says so in messages

 private:
  void access(const Core& core, const Event& event, bool write);
  void start(const Core& core, const Event& event);
  void meets(const Flight& f, const Elements& e, bool write, const ir::Op* op, int core);
  // A remote write or count of `core` on what lies at `site` of `owner`.
  void remote(const Core& core, int owner, int site, bool count, const ir::Op* op);
  void count_left(const Buffer& buffer);
  void scope_end(const Core& core, int first, int last, const ir::Op* op);
  void leave(const Core& core, const ir::Op* op);
  // The memory of a site goes: copies that still touch it.
  void memory_ends(const Buffer& buffer, const std::string& kind, const ir::Op* op);
  void read_count(const Core& core, const Event& event);
  bool scoped(int site) const { return site > kernel_.barrier_site(); }
  bool window(int site) const;
  ir::Space space(int site) const;

  const Kernel& kernel_;
  std::set<std::tuple<std::string, const ir::Op*, const ir::Op*>> reported_;
  std::set<std::string> stops_;
  // The first value of each count that was read, by core, launch and event.
  std::map<std::tuple<int, int, int64_t>, int64_t> counts_;
  bool has_result_ = false;
  Hash result_;
};

}  // namespace gridless::emulate
