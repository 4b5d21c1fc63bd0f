// What is mutated: right kernels at small sizes, each with inputs.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "gridless/ir/call.h"

namespace gridless::certificate {

struct Subject {
  std::string name;
  int cores = 1;
  std::function<ir::Program()> make;           // a fresh copy, equal to every other one
  std::vector<std::vector<std::byte>> inputs;  // by operand, cores one after another

  std::vector<std::span<const std::byte>> views() const { return {inputs.begin(), inputs.end()}; }
};

// A lesson of the gallery: "14_barrier_and_shift" with keys {"cores", "3"}.
Subject lesson(const std::string& name, const std::map<std::string, std::string>& keys = {});
// A kernel of tests/data/corpus.
Subject corpus(const std::string& name);

// The whole gallery, and every clean kernel of the corpus.
std::vector<Subject> all_subjects();

}  // namespace gridless::certificate
