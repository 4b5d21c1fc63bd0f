#include "gridless/chips/time_parameters.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace gridless::chips {
namespace {

using P = TimeParameters;

constexpr TimeParameter kFields[] = {
    {"clock_ghz", &P::clock_ghz, "GHz", "clock of a core"},
    {"hbm_chip_rate", &P::hbm_chip_rate, "GB/s", "HBM of a chip, both cores"},
    {"hbm_core_rate", &P::hbm_core_rate, "GB/s", "HBM, one core"},
    {"hbm_copy_rate", &P::hbm_copy_rate, "GB/s", "HBM to HBM, read and written bytes"},
    {"hbm_latency_ns", &P::hbm_latency_ns, "ns", "start of a copy to its first byte"},
    {"hbm_copy_latency_ns", &P::hbm_copy_latency_ns, "ns", "the same, HBM to HBM"},
    {"hbm_copies_at_once", &P::hbm_copies_at_once, "", "copies served at a time (0: all)"},
    {"strided_copy_rate", &P::strided_copy_rate, "GB/s", "one strided copy (0: no limit)"},
    {"vmem_copy_rate", &P::vmem_copy_rate, "GB/s", "VMEM to VMEM"},
    {"vmem_copy_latency_ns", &P::vmem_copy_latency_ns, "ns", "VMEM to VMEM"},
    {"ici_link_rate", &P::ici_link_rate, "GB/s", "a link between chips, one direction"},
    {"ici_message_rate", &P::ici_message_rate, "GB/s", "one message between chips"},
    {"ici_core_rate", &P::ici_core_rate, "GB/s", "all messages of a core (0: no limit)"},
    {"ici_latency_ns", &P::ici_latency_ns, "ns", "last byte sent to count received"},
    {"ici_far_latency_ns", &P::ici_far_latency_ns, "ns", "more beyond two hops"},
    {"ici_issue_ns", &P::ici_issue_ns, "ns", "sender's engine per message"},
    {"die_rate", &P::die_rate, "GB/s", "between the cores of a chip"},
    {"die_latency_ns", &P::die_latency_ns, "ns", "last byte sent to count received"},
    {"die_issue_ns", &P::die_issue_ns, "ns", "sender's engine per message"},
    {"wake_ns", &P::wake_ns, "ns", "end of a wait to the next instruction"},
    {"mxu_factor", &P::mxu_factor, "", "MXU cycles over the compiler's schedule"},
    {"vector_factor", &P::vector_factor, "", "vector cycles over the compiler's schedule"},
    {"launch_ns", &P::launch_ns, "ns", "XLA's launch of the kernel"},
};

constexpr P optimistic() {
  P p;
  p.hbm_chip_rate = 6400, p.hbm_core_rate = 3200, p.hbm_latency_ns = 500;
  p.hbm_copy_rate = 3210, p.ici_latency_ns = 900, p.ici_issue_ns = 7, p.wake_ns = 0;
  p.die_latency_ns = 900, p.die_issue_ns = 7, p.die_rate = 663;
  return p;
}

constexpr P pessimistic() {
  P p;
  p.hbm_chip_rate = 5800, p.hbm_core_rate = 2900, p.hbm_latency_ns = 1400;
  p.strided_copy_rate = 755;
  p.ici_link_rate = 90, p.ici_core_rate = 134, p.ici_latency_ns = 2100;
  p.ici_far_latency_ns = 400, p.die_latency_ns = 2200, p.wake_ns = 250;
  p.mxu_factor = 1.375, p.vector_factor = 1.7;
  return p;
}

constexpr P qwen_study() {
  P p;
  p.hbm_copy_rate = 3210, p.hbm_copy_latency_ns = 1600;
  p.ici_link_rate = 99.5, p.ici_message_rate = 46, p.ici_latency_ns = 1750, p.ici_issue_ns = 350;
  p.die_rate = 646, p.die_latency_ns = 1530, p.die_issue_ns = 50, p.wake_ns = 0;
  return p;
}

constexpr P k3_study() {
  P p;
  p.hbm_latency_ns = 1000, p.hbm_copies_at_once = 2;
  p.ici_link_rate = 90, p.ici_core_rate = 134, p.ici_latency_ns = 1200;
  p.ici_far_latency_ns = 180, p.ici_issue_ns = 7.3;
  p.die_latency_ns = 1200, p.die_issue_ns = 7.3, p.wake_ns = 150;
  p.mxu_factor = 1.2, p.vector_factor = 1.7;
  return p;
}

const TimeParameterSet kSets[] = {
    {"nominal", P{},
     "fitted on the figures marked 'fit' of tests/data/published (Muse Spark report and TPU "
     "microbenchmarks); compute as libtpu 0.0.51 schedules it"},
    {"optimistic", optimistic(),
     "fastest values that some public figure or libtpu's own model supports"},
    {"pessimistic", pessimistic(),
     "slowest values that some public figure supports; compute 1.375 and 1.7 times the schedule"},
    {"qwen_study", qwen_study(),
     "schedule study of Qwen3.8-27B: link model fitted on stand-alone copies and collectives"},
    {"k3_study", k3_study(),
     "schedule study of Kimi K3: fitted on published step times of one whole kernel"},
};

std::string names(auto range) {
  std::string out;
  for (const auto& r : range) out += (out.empty() ? "" : ", ") + std::string(r.name);
  return out;
}

}  // namespace

std::span<const TimeParameter> time_parameters() { return kFields; }
std::span<const TimeParameterSet> tpu7x_time_parameters() { return kSets; }

Result<TimeParameterSet> find_time_parameters(std::string_view name) {
  const auto it = std::ranges::find(kSets, name, &TimeParameterSet::name);
  if (it == std::end(kSets))
    return input_error("no parameter set is called '{}': there are {}", name,
                       names(std::span(kSets)));
  return *it;
}

Result<void> set_parameter(TimeParameters& parameters, std::string_view assignment) {
  const size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  const auto it = std::ranges::find(kFields, name, &TimeParameter::name);
  if (it == std::end(kFields))
    return input_error("no time parameter is called '{}': there are {}", name,
                       names(std::span(kFields)));
  std::string_view value = equals == std::string_view::npos ? "" : assignment.substr(equals + 1);
  const bool scales = value.starts_with('*');
  if (scales) value.remove_prefix(1);
  double number = 0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool rate = it->unit == "GB/s" || it->unit == "GHz";
  const bool may_be_zero = !rate || it->what.find("(0:") != std::string_view::npos;
  // Rates and times beyond these are typing errors, and would overflow a clock.
  if (value.empty() || failure != std::errc() || end != value.data() + value.size() ||
      !(number >= 0) || number > 1e9 || (number == 0 && !may_be_zero))
    return input_error("'{}': write {}=NUMBER or {}=*FACTOR, {}0 or more", assignment, name, name,
                       may_be_zero ? "" : "above ");
  parameters.*it->field = scales ? parameters.*it->field * number : number;
  return {};
}

}  // namespace gridless::chips
