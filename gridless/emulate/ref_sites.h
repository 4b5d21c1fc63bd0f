// RefSites: which buffers of a kernel a ref may be of, read off the program.
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "gridless/emulate/kernel.h"

namespace gridless::emulate {

class RefSites {
 public:
  explicit RefSites(const Kernel& kernel);
  // Numbers of Kernel::sites: several, where a loop or a branch carries the ref.
  std::set<int> sites_of(const ir::Value* ref) const;
  // By site: some op stores there, or starts a copy to there, under a condition or in a loop that
  // follows from data: other data may write it.
  std::vector<bool> written_for_some_data() const;

 private:
  void collect(const ir::Value* ref, std::set<int>& sites, std::set<const ir::Value*>& seen) const;

  const Kernel& kernel_;
  std::unordered_map<const ir::Op*, int> sites_;  // allocations
};

}  // namespace gridless::emulate
