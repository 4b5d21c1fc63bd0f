// CompileOptionsProto, hand-encoded: the options argument of PJRT_Compile. Only the fields we set
// are known here; protobuf gives the others their defaults.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gridless::tpu {

struct CompileOptions {
  // One program over device_ids.size() partitions; partition p runs on device device_ids[p] of the
  // topology (that id is also what tpu.device_id means: libtpu compiles the assignment in).
  std::vector<int> device_ids;
  // libtpu and XLA flags for this compilation only, e.g. {"xla_tpu_scoped_vmem_limit_kib",
  // "16384"}. An unknown name is an error ("No such compile option").
  std::map<std::string, std::string> flags;
};

// The serialized proto. Deterministic: map entries are in key order.
std::string encode(const CompileOptions& options);

}  // namespace gridless::tpu
