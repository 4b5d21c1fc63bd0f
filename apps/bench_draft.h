// gridless bench draft: a subcommand of bench.
#pragma once

#include <CLI/CLI.hpp>

namespace gridless::apps {

void add_bench_draft(CLI::App& bench, int& exit_code);

}  // namespace gridless::apps
