// The list of subcommands. Each add_x, in apps/x.cc, adds one subcommand to `app`; its callback
// runs after the whole command line has been parsed and writes the exit status (apps/common.h) to
// `exit_code`, which outlives the call. register_commands() in main.cc calls them in help order.
#pragma once

#include <CLI/CLI.hpp>

namespace gridless::apps {

// Running a model.
void add_run(CLI::App& app, int& exit_code);
void add_chat(CLI::App& app, int& exit_code);
void add_models(CLI::App& app, int& exit_code);

// Looking at weights.
void add_inspect(CLI::App& app, int& exit_code);
void add_pack(CLI::App& app, int& exit_code);

// Text on its way in and out of a model.
void add_tokenize(CLI::App& app, int& exit_code);
void add_render(CLI::App& app, int& exit_code);

// Kernels: run one on data, compile one for TPU.
void add_exec(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_compile(CLI::App& app, int& exit_code);
void add_bundles(CLI::App& app, int& exit_code);
void add_time(CLI::App& app, int& exit_code);

// Measuring.
void add_bench(CLI::App& app, int& exit_code);

}  // namespace gridless::apps
