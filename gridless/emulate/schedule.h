// Schedule: a timing of a kernel, as `check` prints it and `exec` runs it again (rerun.h).
//
// The usual form holds one thing back: a core before one of its events, or a copy, of which all but
// the last byte may be counted, but which does not land, nor perhaps read. Everything else runs, in
// any order, until some core has done one event; then what is held goes on, as late as possible.
// That is enough to show any fault that depends on timing. The other form, which the explorer
// writes, lists every step.
//
// Events of a core are numbered from 1 in each launch of it, in program order: loads, stores, copy
// starts, signals, waits, reads of a count, ends of scopes, and returns (gate.h); 0 is its entry
// into the kernel. Copies of a core are numbered from 0 in each launch, without those of no bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/error.h"

namespace gridless::emulate {

// An event of a core.
struct Point {
  int core = 0;
  int launch = 0;
  int64_t event = 0;
  std::string at;  // for people: "file:line (iteration)"
  bool is(int c, int l, int64_t e) const { return core == c && launch == l && event == e; }
};

// One step: a core goes on to before its next visible event, or a copy gets further.
struct Choice {
  enum class Kind : uint8_t {
    kCore,
    kCount,  // all but the last byte of a copy is counted, before it is over
    kRead,   // the next part of the source is read
    kLand,   // the next part that was read lands
  };
  Kind kind = Kind::kCore;
  int core = 0;      // that goes on, or that started the copy
  int launch = 0;    // copies: in which it was started
  int64_t copy = 0;  // copies: their number
  bool operator==(const Choice&) const = default;
};

struct Schedule {
  std::string kind, message, location;  // of the finding that it shows
  int launches = 1;                     // one after another on every core
  struct Hold {
    Point held;
    std::optional<int64_t> copy;  // held is its start; else the core stands before held
    bool may_read = false;        // the copy: only its landing is held
    Point until;
  };
  std::optional<Hold> hold;   // none, and no steps: the fault shows in every timing
  std::vector<Choice> steps;  // copies move in one part; after the last step: any order
};

// A file of schedules, as docs/checking.md describes it.
struct ScheduleFile {
  std::string target;  // of `check`
  int cores = 1;
  std::vector<Schedule> schedules;
};

std::string to_json(const ScheduleFile& file);
// Errors: no such file format, another version, numbers out of range.
Result<ScheduleFile> parse_schedules(std::string_view json);

}  // namespace gridless::emulate
