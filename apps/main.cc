// The `gridless` command: parses the command line, runs one subcommand, returns its exit status.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "apps/commands.h"
#include "apps/common.h"
#include "gridless/base/cpu_features.h"
#include "gridless/tpu/libtpu_path.h"
#include "gridless/tpu/runtime/connection.h"

namespace gridless::apps {
namespace {

// In the order of --help. A new subcommand: declare it in commands.h, add it to its group here.
void register_commands(CLI::App& app, int& exit_code) {
  // Running a model.
  add_run(app, exit_code);
  add_chat(app, exit_code);
  add_models(app, exit_code);
  // Looking at weights.
  add_inspect(app, exit_code);
  add_pack(app, exit_code);

  // Text on its way in and out of a model.
  add_tokenize(app, exit_code);
  add_render(app, exit_code);

  // Kernels: run one on data, compile one for TPU.
  add_exec(app, exit_code);
  add_check(app, exit_code);
  add_time(app, exit_code);
  add_compile(app, exit_code);
  add_bundles(app, exit_code);

  // Measuring.
  add_bench(app, exit_code);
}

std::string version() {
  const Result<tpu::Libtpu> libtpu = tpu::find_libtpu("");
  std::string compiler = "not found";
  if (libtpu) {
    const std::string wheel = libtpu->wheel_version.empty() ? "" : libtpu->wheel_version + " ";
    compiler = fmt::format("{}at {}", wheel, libtpu->path.lexically_normal().string());
  }
  return fmt::format("gridless {}\nisa {}\nlibtpu {}", GRIDLESS_VERSION, isa_name(active_isa()),
                     compiler);
}

bool is_command(const CLI::App& app, const std::string& name) {
  return !app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; }).empty();
}

// What the user may type. A command without a group is one process talking to another.
std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  return names;
}

// The long option names of a subcommand, with their dashes.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string name = nearest(word, known);
  return name.empty() ? "" : fmt::format(" Did you mean '{}'?", name);
}

// One sentence on what is wrong with the command line and one on what to do about it.
int explain(CLI::App& app, const CLI::ParseError& error) {
  // The innermost command that was named: `bench decode` has options of its own.
  CLI::App* innermost = &app;
  std::string name = "gridless";
  for (auto parsed = app.get_subcommands(); !parsed.empty();
       parsed = innermost->get_subcommands()) {
    innermost = parsed.front();
    name += " " + innermost->get_name();
  }
  CLI::App& command = *innermost;
  std::string message = error.what();
  // A word that nothing claimed is the likely cause of whatever else is missing.
  if (const std::vector<std::string> extras = app.remaining(true); !extras.empty()) {
    const std::string word = extras.front().substr(0, extras.front().find('='));
    message = word.starts_with("-") ? fmt::format("unknown option '{}'.{}", word,
                                                  did_you_mean(word, option_names(command)))
                                    : fmt::format("unexpected argument '{}'.", word);
  } else if (!message.ends_with('.')) {
    message += '.';
  }
  fmt::print(stderr, "{}: {} See '{} --help'.\n", name, message, name);
  return kBadInput;
}

int run(int argc, char** argv) {
  CLI::App app{
      "A whole LLM decode step as one kernel: written once, run on the CPU, compiled for "
      "TPU v7.",
      "gridless"};
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", version,
                       "Print the version, the instruction set in use and libtpu");
  app.require_subcommand(1);
  set_examples(&app, {"gridless models", "gridless COMMAND --help"});
  int exit_code = kDone;
  register_commands(app, exit_code);

  if (const Result<Isa> isa = requested_isa(); !isa) return report(isa.error());
  if (argc < 2) {
    fmt::print(stderr, "{}", app.help());
    return kBadInput;
  }
  // CLI11 would call a misspelt subcommand a missing one.
  const std::string first = argv[1];
  if (!first.starts_with("-") && !is_command(app, first)) {
    fmt::print(stderr, "gridless: unknown command '{}'.{} See 'gridless --help'.\n", first,
               did_you_mean(first, command_names(app)));
    return kBadInput;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return explain(app, error);
  }
  return exit_code;
}

}  // namespace
}  // namespace gridless::apps

int main(int argc, char** argv) {
  try {
    const int status = gridless::apps::finish_output(gridless::apps::run(argc, argv));
    // Libraries that clean up at exit would wait for a device that does not answer.
    if (gridless::tpu::any_connection_lost()) std::_Exit(status);
    return status;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "gridless: out of memory\n");
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) {  // printing throws when a write fails
      return gridless::apps::finish_output(gridless::apps::kMachineFault);
    }
    fmt::print(stderr, "gridless: internal error: {}\n", error.what());
  }
  return gridless::apps::kMachineFault;
}
