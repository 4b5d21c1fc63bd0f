// What the compiler and its worker process say to each other over one socket: frames of a JSON head
// and a block of bytes.
//
//   frame   := u32 head length, u64 body length (both little-endian), head (JSON), body (bytes)
//   parent  -> {"libtpu", "memory_limit_bytes", "libtpu_flags", "folder"}  once, first
//   worker  -> {"ok": true, "api_minor"} or {"ok": false, "error", "machine"}
//   parent  -> {"slice", "device_ids", "flags"} + StableHLO text         any number of times
//   worker  -> {"ok": true, "code_bytes", "memory", "cost", "seconds", "platform_version"}
//              + executable, or {"ok": false, "error", "machine"}
// `machine` tells a fault of this machine from a refused program. The worker ends when the socket
// does.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "gridless/base/error.h"
#include "gridless/tpu/compiled.h"

namespace gridless::tpu {

struct Frame {
  nlohmann::json head;
  std::string body;
};

std::string encode_frame(const nlohmann::json& head, std::string_view body);

// Takes the first whole frame off the front of `buffer`; nullopt when it has not all arrived. A
// length beyond 4 GiB or a head that is not a JSON object is a machine error.
Result<std::optional<Frame>> take_frame(std::string& buffer);

// The worker's answer about one job.
std::string encode_answer(const Result<Compiled>& answer, std::string_view platform_version);

// Its reading: the compiler's own error (kInput) is what the inner result carries.
struct Answer {
  Result<Compiled> compiled;
  std::string platform_version;
};
Result<Answer> decode_answer(Frame frame);

}  // namespace gridless::tpu
