#include "apps/exec_schedule.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/check_exhaustive.h"
#include "apps/common.h"
#include "apps/exec_tensors.h"
#include "gridless/emulate/rerun.h"

namespace gridless::apps {
namespace {

using emulate::Rerun;
using emulate::Schedule;

Result<Schedule> read_schedule(const RerunArguments& args, int cores) {
  TRY(const std::string text, read_text(args.schedules));
  auto parsed = emulate::parse_schedules(text);
  if (!parsed) return std::unexpected(parsed.error().in(args.schedules));
  const auto& list = parsed->schedules;
  if (parsed->cores != cores)
    return input_error("{} is for {} cores, the kernel runs on {}", args.schedules, parsed->cores,
                       cores);
  if (list.empty()) return input_error("{} holds no schedule", args.schedules);
  if (static_cast<size_t>(args.number) > list.size())
    return input_error("{} holds {} schedule{}; --finding {} is none of them", args.schedules,
                       list.size(), list.size() > 1 ? "s" : "", args.number);
  return list[static_cast<size_t>(args.number - 1)];
}

std::string describe(const Schedule& s) {
  if (!s.hold) return s.steps.empty() ? "any timing" : fmt::format("{} steps", s.steps.size());
  return fmt::format("{}core {} at {} is held until core {} has reached {}{}",
                     s.hold->copy ? "the copy started by " : "", s.hold->held.core, s.hold->held.at,
                     s.hold->until.core, s.hold->until.at,
                     s.launches > 1 ? ", in two launches one after the other" : "");
}

// What the run shows, a line each.
std::vector<std::string> shown(const Rerun& r) {
  std::vector<std::string> lines;
  for (const emulate::ExploreFinding& f : r.seen) lines.push_back(f.kind + ": " + f.message);
  if (r.read) lines.push_back(*r.read);
  for (const emulate::Difference& d : r.differences)
    lines.push_back(
        fmt::format("out{} of core {}: {} element{} differ{} from program order; "
                    "element {} is {}, not {}",
                    d.result, d.core, d.elements, d.elements > 1 ? "s" : "",
                    d.elements > 1 ? "" : "s", d.first, d.here, d.program_order));
  if (r.differences.empty() && r.run.report.finished && r.program_order.report.finished)
    lines.push_back("the results are those of program order");
  return lines;
}

nlohmann::json to_json(const RerunArguments& args, const Schedule& s, const Rerun& r,
                       const std::vector<std::string>& lines) {
  nlohmann::json differences = nlohmann::json::array();
  for (const emulate::Difference& d : r.differences)
    differences.push_back({{"result", fmt::format("out{}", d.result)},
                           {"core", d.core},
                           {"elements", d.elements},
                           {"first", d.first},
                           {"value", d.here},
                           {"program_order", d.program_order}});
  return {{"target", args.target},   {"engine", "emulate"},
          {"schedule", s.kind},      {"finished", r.run.report.finished},
          {"seen", json_of(r.seen)}, {"differences", differences},
          {"shown", lines}};
}

}  // namespace

int rerun_schedule(const ir::Program& program, int cores,
                   std::span<const std::span<const std::byte>> inputs, const RerunArguments& args) {
  const auto schedule = read_schedule(args, cores);
  if (!schedule) return report(schedule.error());
  const auto rerun = emulate::rerun(program.module, program.call, cores, inputs, *schedule,
                                    {.sources = args.sources});
  if (!rerun) return report(rerun.error());
  if (!rerun->followed)
    return report(Error{
        .message = fmt::format("{}: schedule {} does not fit this kernel and these inputs: {}",
                               args.schedules, args.number, rerun->not_followed)});
  if (rerun->run.report.finished) {
    const auto written = write_results(args.outputs, program.call, cores, rerun->run.outputs);
    if (!written) return report(written.error());
  }
  const std::vector<std::string> lines = shown(*rerun);
  if (args.json) {
    print_json(to_json(args, *schedule, *rerun, lines));
  } else {
    fmt::print("{} ({}): {}\n", schedule->kind, schedule->location, describe(*schedule));
    for (const std::string& line : lines) fmt::print("  {}\n", line);
  }
  return report(rerun->run.report.diagnostics);
}

}  // namespace gridless::apps
