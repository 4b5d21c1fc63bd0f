// gridless exec --schedule: a timing that `check` found, run on real values.
#pragma once

#include <span>
#include <string>

#include "gridless/emulate/source_values.h"
#include "gridless/ir/read_program.h"

namespace gridless::apps {

struct RerunArguments {
  std::string target;
  std::string schedules;  // path
  int number = 1;         // which of them
  std::string outputs;
  const emulate::SourceValues* sources = nullptr;  // null: what the kernel computes
  bool json = false;
};

// Runs it, writes the outputs, prints what it shows; the exit status.
int rerun_schedule(const ir::Program& program, int cores,
                   std::span<const std::span<const std::byte>> inputs, const RerunArguments& args);

}  // namespace gridless::apps
