// gridless bundles: what the TPU compiler made of a kernel, by source line.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/commands.h"
#include "apps/common.h"
#include "gridless/bundles/diff.h"
#include "gridless/bundles/report.h"

namespace gridless::apps {
namespace {

struct Arguments {
  std::string path, other, html, kernel;
  int rows = 20;
  bool json = false;
};

Result<bundles::Report> read_report(const std::string& path, const std::string& kernel) {
  TRY(const bundles::Dump dump, bundles::read_dump(path, kernel));
  auto report = bundles::make_report(dump);
  if (!report) return std::unexpected(report.error().in(path));
  return report;
}

Result<void> bundles_of(const Arguments& args) {
  TRY(const bundles::Report report, read_report(args.path, args.kernel));
  if (!args.html.empty()) TRY_VOID(write_file(args.html, bundles::to_html(report)));
  if (!args.other.empty()) {
    TRY(const bundles::Report other, read_report(args.other, args.kernel));
    const bundles::Diff diff = bundles::compare(report, other);
    if (args.json) {
      print_json(bundles::to_json(diff));
    } else {
      fmt::print("{}", bundles::to_text(diff, args.rows));
    }
  } else if (args.json) {
    print_json(bundles::to_json(report));
  } else {
    fmt::print("{}", bundles::to_text(report, args.rows));
  }
  return {};
}

int run(const Arguments& args) {
  const auto done = bundles_of(args);
  return done ? kDone : report(done.error());
}

}  // namespace

void add_bundles(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "bundles", "What the TPU compiler made of a kernel: cycles by source line, loops, slots");
  const auto args = std::make_shared<Arguments>();
  command
      ->add_option("PATH", args->path,
                   "A folder that compile wrote, a folder that libtpu dumped into, or one listing "
                   "(*packed-bundles-post-ra.txt or *final_bundles.txt)")
      ->required();
  command->add_option("--diff", args->other, "A second compilation: what changed from PATH to it");
  command->add_option("--html", args->html, "Write the report of PATH to this file, as one page");
  command->add_option("--kernel", args->kernel,
                      "In a folder of libtpu's: the kernel's name (else the one with the longest "
                      "schedule)");
  command->add_option("--rows", args->rows, "Rows per table")->check(CLI::Range(1, 1000000));
  command->add_flag("--json", args->json, "Print one JSON object");
  set_examples(command, {"gridless bundles out", "gridless bundles out --html report.html",
                         "gridless bundles before --diff after --json"});
  command->callback([args, &exit_code] { exit_code = run(*args); });
}

}  // namespace gridless::apps
