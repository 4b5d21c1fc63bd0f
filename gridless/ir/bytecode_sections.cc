#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "gridless/ir/bytecode.h"
#include "gridless/ir/bytecode_reader.h"

namespace gridless::ir {
namespace {

constexpr std::string_view kMagic = "ML\xefR";

// The kinds of sections, by their number in the file.
enum SectionId : uint8_t {
  kStrings,
  kDialects,
  kEntries,  // attributes and types
  kOffsets,  // how long each of these is
  kIr,
  kResources,
  kResourceOffsets,
  kSectionIds
};
constexpr std::array<std::string_view, kSectionIds> kSectionNames = {
    "strings", "dialects",  "attributes",      "attribute offsets",
    "IR",      "resources", "resource offsets"};

}  // namespace

bool is_bytecode(std::string_view bytes) { return bytes.starts_with(kMagic); }

BytecodeReader::BytecodeReader(std::string_view bytes, std::string_view file)
    : bytes_(bytes), file_(file) {}

void BytecodeReader::report(std::string message, std::string hint) {
  diagnostics_.push_back({.kind = "invalid_ir",
                          .message = std::move(message),
                          .where = SourceLoc(file_, 0),
                          .hint = std::move(hint)});
}

void BytecodeReader::unsupported(ByteReader& r, std::string what, std::string hint) {
  if (r.failed()) return;
  report(std::move(what), std::move(hint));
  r.fail("unsupported");
}

Diagnostics BytecodeReader::take_diagnostics() {
  // What was found wrong before it, in words of its own, is the better message.
  if (diagnostics_.empty()) {
    report(fmt::format("damaged bytecode at byte {}: {}", fault_.at, fault_.message),
           "write the file again; it may have been cut off or changed on its way");
  }
  return std::move(diagnostics_);
}

std::string_view BytecodeReader::string(ByteReader& r) {
  const size_t i = r.index(strings_.size(), "string");
  return r.failed() ? std::string_view() : strings_[i];
}

// Splits the file into its sections and reads all but the ops.
bool BytecodeReader::read_file() {
  ByteReader r(bytes_, 0, fault_);
  if (!is_bytecode(bytes_)) {
    report("not MLIR bytecode: it does not begin with \"ML\\xEFR\"");
    return false;
  }
  r.bytes(kMagic.size(), "the magic number");
  const uint64_t version = r.varint();
  if (r.failed()) return false;
  if (version != 0) {
    report(fmt::format("MLIR bytecode of version {}: only version 0, which JAX writes, is read",
                       version),
           "write it with desired_version=0 (mlir-opt: --emit-bytecode-version=0)");
    return false;
  }
  r.terminated();  // who wrote it
  std::array<std::optional<ByteReader>, kSectionIds> sections;
  std::array<std::string_view, kSectionIds> contents;
  std::array<size_t, kSectionIds> begins{};
  while (r.left() > 0) {
    const uint8_t head = r.byte();
    const uint64_t length = r.varint();
    if (head & 0x80) r.align(r.varint());
    const size_t id = head & 0x7f;
    if (id >= kSectionIds) r.fail(fmt::format("unknown section {}", id));
    if (r.failed()) return false;
    if (sections[id]) r.fail(fmt::format("two sections of {}", kSectionNames[id]));
    begins[id] = r.file_position();
    contents[id] = r.bytes(length, kSectionNames[id]);
    sections[id].emplace(contents[id], begins[id], fault_);
  }
  for (const SectionId id : {kStrings, kDialects, kEntries, kOffsets, kIr}) {
    if (!sections[id]) r.fail(fmt::format("no section of {}", kSectionNames[id]));
  }
  if (sections[kResources].has_value() != sections[kResourceOffsets].has_value())
    r.fail("resources without their offsets, or the reverse");
  if (r.failed()) return false;
  read_strings(*sections[kStrings]);
  read_dialects(*sections[kDialects]);
  read_entries(*sections[kOffsets], contents[kEntries], begins[kEntries]);
  if (sections[kResources]) read_resources(*sections[kResourceOffsets], *sections[kResources]);
  ir_ = contents[kIr];
  ir_offset_ = begins[kIr];
  return !any_error();
}

// The lengths stand in reverse, then all strings, each with a zero byte at its end.
void BytecodeReader::read_strings(ByteReader r) {
  const size_t n = r.count("strings");
  std::vector<uint64_t> lengths;
  for (size_t i = 0; i < n && !r.failed(); ++i) lengths.push_back(r.varint());
  for (const uint64_t length : lengths | std::views::reverse) {
    std::string_view s = r.bytes(length, "a string");
    if (r.failed()) return;
    if (s.empty() || s.back() != '\0') return r.fail("a string without its zero byte");
    s.remove_suffix(1);
    strings_.push_back(s);
  }
}

// Names of dialects, then groups: a dialect, and the names of its ops.
void BytecodeReader::read_dialects(ByteReader r) {
  const size_t n = r.count("dialects");
  for (size_t i = 0; i < n && !r.failed(); ++i) dialects_.push_back(string(r));
  while (r.left() > 0) {
    const size_t dialect = r.index(dialects_.size(), "dialect");
    const size_t ops = r.count("op names");
    for (size_t i = 0; i < ops; ++i) {
      const std::string_view name = string(r);
      if (r.failed()) return;
      op_names_.push_back(fmt::format("{}.{}", dialects_[dialect], name));
    }
  }
}

void BytecodeReader::read_group(ByteReader& offsets, std::string_view data, size_t data_offset,
                                size_t& used, std::vector<Entry>& list, size_t total) {
  const size_t dialect = offsets.index(dialects_.size(), "dialect");
  const size_t n = offsets.count("entries");
  if (n > total - list.size()) offsets.fail("more attributes or types than were announced");
  for (size_t i = 0; i < n; ++i) {
    const uint64_t v = offsets.varint();
    const uint64_t length = v >> 1;
    if (length > data.size() - used) offsets.fail("an attribute reaches beyond its section");
    if (offsets.failed()) return;
    list.push_back({.bytes = data.substr(used, static_cast<size_t>(length)),
                    .offset = data_offset + used,
                    .encoded = (v & 1) != 0,
                    .builtin = dialects_[dialect] == "builtin"});
    used += static_cast<size_t>(length);
  }
}

void BytecodeReader::read_entries(ByteReader offsets, std::string_view data, size_t data_offset) {
  const size_t attrs = offsets.count("attributes");
  const size_t types = offsets.count("types");
  size_t used = 0;
  while (!offsets.failed() && attrs_.size() < attrs)
    read_group(offsets, data, data_offset, used, attrs_, attrs);
  while (!offsets.failed() && types_.size() < types)
    read_group(offsets, data, data_offset, used, types_, types);
}

// Resources are named data: groups of those of other tools, which say nothing about a kernel, then
// those that dense_resource attributes name by number. The offsets say name, length and kind.
void BytecodeReader::read_resources(ByteReader offsets, ByteReader data) {
  constexpr uint8_t kBlob = 0;
  const auto group = [&](bool keep) {
    const size_t n = offsets.count("resources");
    for (size_t i = 0; i < n && !offsets.failed(); ++i) {
      string(offsets);
      const uint64_t length = offsets.varint();
      const uint8_t kind = offsets.byte();
      ByteReader one = data.part(length, "a resource");
      std::string_view bytes;
      if (kind == kBlob && !one.failed() && length > 0) {
        const uint64_t alignment = one.varint();
        const uint64_t size = one.varint();
        one.align(alignment);
        bytes = one.bytes(size, "a resource");
      }
      if (keep) resources_.push_back(bytes);
    }
  };
  const size_t external = offsets.count("groups of resources");
  for (size_t i = 0; i < external && !offsets.failed(); ++i) {
    string(offsets);
    group(false);
  }
  while (offsets.left() > 0) {
    offsets.index(dialects_.size(), "dialect");
    group(true);
  }
}

std::expected<Module, Diagnostics> read_bytecode(std::string_view bytes, std::string_view file) {
  BytecodeReader reader(bytes, file);
  Module module = reader.read_module();
  if (reader.any_error()) return std::unexpected(reader.take_diagnostics());
  return module;
}

std::expected<std::vector<Location>, Diagnostics> read_bytecode_locations(std::string_view bytes,
                                                                          std::string_view file) {
  BytecodeReader reader(bytes, file);
  std::vector<Location> locations = reader.read_locations();
  if (reader.any_error()) return std::unexpected(reader.take_diagnostics());
  return locations;
}

}  // namespace gridless::ir
