// Numbers of a chip that the time model needs and that no specification gives: latencies, rates
// under load, service order. Public measurements leave room, so they come in named sets:
//   nominal      fitted to the half of the published figures that may be fitted (docs/time.md)
//   optimistic, pessimistic   hand-chosen corners: a band, not a confidence interval
//   qwen_study, k3_study      the constants of two earlier studies, each fitted in its own way
// Every field has a name, a unit and a source, so that a set can be printed and one field replaced
// (what-if).
#pragma once

#include <span>
#include <string_view>

#include "gridless/base/error.h"

namespace gridless::chips {

// Rates in bytes per nanosecond (1 = 1 GB/s), times in nanoseconds. All per core unless named
// otherwise.
struct TimeParameters {
  double clock_ghz = 2.2;

  // High-bandwidth memory. A chip's two cores share it; neither gets more than its own part.
  double hbm_chip_rate = 6100;        // both cores together, inside a kernel
  double hbm_core_rate = 3050;        // one core
  double hbm_copy_rate = 3202;        // read and written bytes of a copy from HBM to HBM
  double hbm_latency_ns = 700;        // from the start of a copy to its first byte
  double hbm_copy_latency_ns = 1750;  // the same for a copy from HBM to HBM
  double hbm_copies_at_once = 0;  // copies of a core served at a time, oldest first; 0: all, evenly
  double strided_copy_rate = 0;   // of one copy that is not contiguous; 0: as any other

  // Copies inside a core (VMEM to VMEM, to SMEM).
  double vmem_copy_rate = 690;
  double vmem_copy_latency_ns = 100;

  // Between chips.
  double ici_link_rate = 100;      // one link, one direction; all messages on it share it
  double ici_message_rate = 45.9;  // one message
  double ici_core_rate = 0;        // all messages of a core together; 0: no limit
  double ici_latency_ns = 1730;    // from the last byte sent to the count at the receiver
  double ici_far_latency_ns = 0;   // more of it beyond two hops
  double ici_issue_ns = 350;       // the sender is busy with one message's start; the next waits
  // Between the cores of a chip.
  double die_rate = 649;
  double die_latency_ns = 1580;
  double die_issue_ns = 50;
  // Of a wait that had to wait: until the core goes on.
  double wake_ns = 60;

  // Compute: cycles of the compiler's schedule, times a factor.
  double mxu_factor = 1;
  double vector_factor = 1;
  // Before the kernel's first instruction and after its last: the launch by XLA.
  double launch_ns = 13000;
};

struct TimeParameter {
  std::string_view name;
  double TimeParameters::* field;
  std::string_view unit;
  std::string_view what;
};
std::span<const TimeParameter> time_parameters();

struct TimeParameterSet {
  std::string_view name;
  TimeParameters values;
  std::string_view source;
};
// nominal first.
std::span<const TimeParameterSet> tpu7x_time_parameters();

// Errors name what there is.
Result<TimeParameterSet> find_time_parameters(std::string_view name);
// Replaces a field by "name=value", or scales it by "name=*factor".
Result<void> set_parameter(TimeParameters& parameters, std::string_view assignment);

}  // namespace gridless::chips
