// The reader behind read_bytecode() of bytecode.h: sections (bytecode_sections.cc), attributes and
// types (bytecode_attrs.cc, bytecode_types.cc), locations (bytecode_locs.cc), ops
// (bytecode_ops.cc).
//
// A file is a header and sections: strings; dialects and op names; the attributes and types, each
// a few bytes that name others by number; where these begin; the ops; resources. Attributes and
// types are decoded when they are first asked for. Those of the builtin dialect have encodings of
// their own, those of other dialects stand there as MLIR text.
//
// Limits: attributes and types nested 512 deep, regions 256; a type of 64 Ki parts, an attribute of
// 16 Mi, and 64 Mi for what all ops hold, counted again for every use: a small file can name one
// long list very often, and a list of lists of lists.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/ir/byte_reader.h"
#include "gridless/ir/location.h"
#include "gridless/ir/module.h"

namespace gridless::ir {

inline constexpr int kMostAttrNesting = 512;
inline constexpr int64_t kMostTypeParts = int64_t{1} << 16;
inline constexpr int64_t kMostAttrParts = int64_t{1} << 24;
inline constexpr int64_t kMostParts = int64_t{1} << 26;

// affine_map<(d0, d1) -> (d0, d1)>: the layout that MLIR does not write in a memref.
std::string identity_map(size_t rank);

class BytecodeReader {
 public:
  BytecodeReader(std::string_view bytes, std::string_view file);

  // Mean something only without any_error().
  Module read_module();
  std::vector<Location> read_locations();

  bool any_error() const { return !fault_.message.empty() || !diagnostics_.empty(); }
  Diagnostics take_diagnostics();

 private:
  // An attribute or type as it stands in the file.
  struct Entry {
    std::string_view bytes;
    size_t offset = 0;     // of the bytes in the file
    bool encoded = false;  // as its dialect encodes it, else MLIR text
    bool builtin = false;  // of the builtin dialect
    bool open = false;     // being decoded: met again, it holds itself
    int64_t weight = 1;    // parts, all the way down
    Attr attr;             // when decoded
    Type type;
    std::optional<Location> location;
    size_t second_stack = 0;  // of `location`, as second_stack_
  };

  // Sections.
  bool read_file();
  void read_strings(ByteReader r);
  void read_dialects(ByteReader r);
  void read_entries(ByteReader offsets, std::string_view data, size_t data_offset);
  void read_group(ByteReader& offsets, std::string_view data, size_t data_offset, size_t& used,
                  std::vector<Entry>& list, size_t total);
  void read_resources(ByteReader offsets, ByteReader data);
  std::string_view string(ByteReader& r);

  // Attributes, types and locations by number; a mistake gives unit, none and nowhere.
  Attr attr(ByteReader& r, int64_t& weight);
  Attr attr_at(size_t number);
  Attr decode_attr(Entry& entry, ByteReader& r);
  Attr decode_dense(ByteReader& r, Entry& entry, bool resource);
  Attr decode_dense_array(ByteReader& r, Entry& entry);
  Attr decode_number(ByteReader& r, bool real);
  std::string string_attr(ByteReader& r);
  std::vector<Attr> attr_list(ByteReader& r, int64_t& weight);
  std::vector<NamedAttr> dict(ByteReader& r, int64_t& weight);
  uint64_t bits(ByteReader& r, Elem e);

  Type type(ByteReader& r, int64_t& weight);
  Type type_at(size_t number);
  Type decode_type(Entry& entry, ByteReader& r);
  Type parse_type_text(ByteReader& r, std::string_view text);
  Type decode_shaped(ByteReader& r, std::string_view kind, bool with_space);
  std::vector<Type> type_list(ByteReader& r, int64_t& weight);

  Location location(ByteReader& r);
  Location decode_location(ByteReader& r, uint64_t code);
  Location fused(ByteReader& r);
  Location under_name(ByteReader& r, std::string_view name);

  // Ops.
  struct Scope {
    std::vector<Value*> values;  // those that can be seen now; null: not defined yet
  };
  void read_block(ByteReader& r, Block& block, size_t& next);
  void read_op(ByteReader& r, Block& block, size_t& next);
  void read_regions(ByteReader& r, Op& op, bool isolated, size_t count);
  void read_region(ByteReader& r, Region& region);
  void define(ByteReader& r, Value* value, size_t& next);
  void finish_op(Op& op, std::string_view name);
  void spend(ByteReader& r, int64_t weight);

  void report(std::string message, std::string hint = "");
  // A sound file that holds what cannot be read: ends the reading.
  void unsupported(ByteReader& r, std::string what, std::string hint = "");
  // A counted level of nesting; fails the reading at the limit.
  struct Level;

  std::string_view bytes_;
  std::string file_;
  ByteFault fault_;
  Diagnostics diagnostics_;

  std::vector<std::string_view> strings_, dialects_;
  std::vector<std::string> op_names_;
  std::vector<Entry> attrs_, types_;
  std::vector<std::string_view> resources_;  // blobs of dialect resources
  std::string_view ir_;
  size_t ir_offset_ = 0;
  std::optional<size_t> top_attrs_;  // the dictionary of the module

  std::vector<Scope> scopes_;
  std::vector<std::pair<const Op*, std::vector<SourceLoc>>> callers_;
  // Of the location read last, a call site: one more than where the stack of its caller begins in
  // Location::callers; 0: no such.
  size_t second_stack_ = 0;
  int nesting_ = 0;
  int64_t spent_ = 0, ops_ = 0;
  size_t stable_ops_ = 0, plain_ops_ = 0;
  SourceLoc first_plain_;
};

struct BytecodeReader::Level {
  Level(BytecodeReader& reader, ByteReader& r, int most) : reader(reader) {
    if (++reader.nesting_ > most) r.fail("nested too deep");
  }
  ~Level() { --reader.nesting_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  BytecodeReader& reader;
};

}  // namespace gridless::ir
