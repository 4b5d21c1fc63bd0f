#include "gridless/tpu/compile_options.h"

#include <cstdint>
#include <string_view>

#include "gridless/base/check.h"

namespace gridless::tpu {
namespace {

// The two wire types that CompileOptionsProto needs. Negative int64 values take ten bytes.
class ProtoWriter {
 public:
  ProtoWriter& varint(int field, int64_t value) {
    raw(static_cast<uint64_t>(field) << 3);
    return raw(static_cast<uint64_t>(value));
  }
  ProtoWriter& bytes(int field, std::string_view value) {
    raw(static_cast<uint64_t>(field) << 3 | 2);
    raw(value.size());
    out_ += value;
    return *this;
  }
  ProtoWriter& raw(uint64_t value) {
    while (value >= 0x80) {
      out_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    out_ += static_cast<char>(value);
    return *this;
  }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

// xla.DeviceAssignmentProto with one replica.
std::string device_assignment(const std::vector<int>& ids) {
  ProtoWriter proto;
  proto.varint(1, 1);                                 // replica_count
  proto.varint(2, static_cast<int64_t>(ids.size()));  // computation_count
  for (const int id : ids) {
    ProtoWriter packed, devices;
    packed.raw(static_cast<uint64_t>(id));
    devices.bytes(1, packed.str());  // replica_device_ids
    proto.bytes(3, devices.str());   // computation_devices
  }
  return proto.str();
}

}  // namespace

std::string encode(const CompileOptions& options) {
  GRIDLESS_CHECK(!options.device_ids.empty(), "a program needs at least one device");
  ProtoWriter build;
  build.varint(1, -1);                                               // device_ordinal: none
  build.varint(4, 1);                                                // num_replicas
  build.varint(5, static_cast<int64_t>(options.device_ids.size()));  // num_partitions
  build.varint(6, options.device_ids.size() > 1);                    // use_spmd_partitioning
  build.bytes(9, device_assignment(options.device_ids));
  build.varint(19, options.device_ids.size() > 1);  // use_shardy_partitioner

  ProtoWriter proto;
  proto.bytes(3, build.str());  // executable_build_options
  for (const auto& [name, value] : options.flags) {
    ProtoWriter text, entry;
    text.bytes(1, value);  // OptionOverrideProto.string_field
    entry.bytes(1, name).bytes(2, text.str());
    proto.bytes(7, entry.str());  // env_option_overrides
  }
  return proto.str();
}

}  // namespace gridless::tpu
