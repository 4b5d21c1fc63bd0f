#include "gridless/tpu/worker_protocol.h"

#include <cstdint>
#include <utility>

namespace gridless::tpu {
namespace {

using Json = nlohmann::json;

constexpr size_t kHeader = 12;
constexpr uint64_t kMaxBody = uint64_t{4} << 30;  // an executable of 4 GiB fits no core

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}
uint64_t get(std::string_view in, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(in[i])) << (8 * i);
  }
  return value;
}

}  // namespace

std::string encode_frame(const Json& head, std::string_view body) {
  // The compiler's texts are not always UTF-8 (they may quote binary names).
  const std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(kHeader + text.size() + body.size());
  put(out, text.size(), 4);
  put(out, body.size(), 8);
  out += text;
  out += body;
  return out;
}

Result<std::optional<Frame>> take_frame(std::string& buffer) {
  if (buffer.size() < kHeader) return std::nullopt;
  const uint64_t head = get(buffer, 4);
  const uint64_t body = get(std::string_view(buffer).substr(4), 8);
  if (body > kMaxBody) return machine_error("compile worker: a frame of {} bytes", body);
  if (buffer.size() < kHeader + head + body) return std::nullopt;
  Frame frame;
  frame.head = Json::parse(buffer.begin() + kHeader,
                           buffer.begin() + static_cast<ptrdiff_t>(kHeader + head), nullptr, false);
  if (!frame.head.is_object()) return machine_error("compile worker: a frame without a JSON head");
  frame.body = buffer.substr(kHeader + head, body);
  buffer.erase(0, kHeader + head + body);
  return frame;
}

std::string encode_answer(const Result<Compiled>& answer, std::string_view platform_version) {
  if (!answer) {
    return encode_frame({{"ok", false},
                         {"error", answer.error().message},
                         {"machine", answer.error().kind == Error::Kind::kMachine}},
                        "");
  }
  const MemoryStats& m = answer->memory;
  return encode_frame({{"ok", true},
                       {"code_bytes", answer->code_bytes},
                       {"memory",
                        {{"code", m.code},
                         {"arguments", m.arguments},
                         {"results", m.results},
                         {"aliased", m.aliased},
                         {"temporary", m.temporary},
                         {"peak", m.peak}}},
                       {"cost", answer->cost},
                       {"operand_layouts", answer->operand_layouts},
                       {"seconds", answer->seconds},
                       {"platform_version", platform_version}},
                      answer->executable);
}

Result<Answer> decode_answer(Frame frame) {
  try {  // nlohmann reports missing keys by exceptions; they end here
    const Json& head = frame.head;
    if (!head.at("ok").get<bool>()) {
      const bool machine = head.at("machine").get<bool>();
      return Answer{std::unexpected(Error{machine ? Error::Kind::kMachine : Error::Kind::kInput,
                                          head.at("error").get<std::string>()}),
                    ""};
    }
    Compiled out;
    out.executable = std::move(frame.body);
    out.code_bytes = head.at("code_bytes").get<int64_t>();
    const Json& m = head.at("memory");
    out.memory = {m.at("code"),    m.at("arguments"), m.at("results"),
                  m.at("aliased"), m.at("temporary"), m.at("peak")};
    out.cost = head.at("cost").get<std::map<std::string, double>>();
    out.operand_layouts = head.at("operand_layouts").get<std::vector<std::string>>();
    out.seconds = head.at("seconds").get<double>();
    return Answer{std::move(out), head.at("platform_version").get<std::string>()};
  } catch (const Json::exception& error) {
    return machine_error("compile worker: an answer that does not parse: {}", error.what());
  }
}

}  // namespace gridless::tpu
