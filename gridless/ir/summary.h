// What a module holds, for people: `gridless inspect` prints it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gridless/ir/module.h"

namespace gridless::ir {

struct Summary {
  std::string kernel;                  // the entry function's name; empty when there is none
  int64_t version = 0;                 // stable_mosaic.version of the text
  std::vector<Type> args;              // of the entry function
  std::map<std::string, int64_t> ops;  // how often each op stands in the module (not: runs)
  int64_t total_ops = 0;
  // Arguments and allocations that live there: bytes of elements, without tile padding, all scopes
  // added up.
  int64_t vmem_bytes = 0, smem_bytes = 0, semaphores = 0;
  int64_t copies = 0, remote_copies = 0, deepest_loop = 0;
  std::map<std::string, int64_t> composites;  // by name
  bool communicates = false;                  // a remote copy or signal, or a barrier
};

Summary summarise(const Module& module);

}  // namespace gridless::ir
