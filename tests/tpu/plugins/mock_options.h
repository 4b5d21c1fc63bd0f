// Which devices a program runs on, as the mock plugin reads it from the text or the options that it
// was compiled with.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace mock {

// Reads one field of a protocol buffer off the front: its number, and its value or its bytes.
struct Field {
  uint64_t number = 0, value = 0;
  std::string_view bytes;
};
inline uint64_t take_varint(std::string_view& text) {
  uint64_t value = 0;
  for (int shift = 0; !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text[0]);
    text.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}
inline Field take_field(std::string_view& text) {
  Field field;
  const uint64_t tag = take_varint(text);
  field.number = tag >> 3;
  field.value = take_varint(text);
  if ((tag & 7) != 2) return field;
  field.bytes = text.substr(0, field.value);
  text.remove_prefix(field.bytes.size());
  return field;
}
// CompileOptionsProto.executable_build_options.device_assignment.computation_devices.
inline std::vector<int> assigned_devices(std::string_view options) {
  std::vector<int> ids;
  while (!options.empty()) {
    const Field build = take_field(options);
    for (std::string_view b = build.number == 3 ? build.bytes : ""; !b.empty();) {
      const Field assignment = take_field(b);
      for (std::string_view a = assignment.number == 9 ? assignment.bytes : ""; !a.empty();) {
        Field computation = take_field(a);
        if (computation.number != 3) continue;
        std::string_view packed = take_field(computation.bytes).bytes;
        ids.push_back(static_cast<int>(take_varint(packed)));
      }
    }
  }
  return ids;
}

// "mock:devices=1,0 " says on which devices a program runs, else its options.
inline std::vector<int> program_devices(std::string_view text, std::string_view options) {
  constexpr std::string_view kMark = "mock:devices=";
  const size_t at = text.find(kMark);
  if (at == std::string_view::npos) {
    std::vector<int> ids = assigned_devices(options);
    return ids.empty() ? std::vector<int>{0} : ids;
  }
  std::vector<int> ids;
  for (const char* p = text.data() + at + kMark.size() - 1; *p == '=' || *p == ',';)
    ids.push_back(static_cast<int>(strtol(p + 1, const_cast<char**>(&p), 10)));
  return ids;
}

}  // namespace mock
