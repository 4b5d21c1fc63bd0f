#include <algorithm>

#include "gridless/ir/bytecode_reader.h"

namespace gridless::ir {
namespace {

// Continues the codes of bytecode_attrs.cc; "a" is the number of an attribute.
enum Code : uint64_t {
  kCallSite = 10,      // a (callee) a (caller)
  kFileLineCol,        // a (file), line, column
  kFused,              // [a]
  kFusedWithMetadata,  // [a] a
  kName,               // a (string) a (the place)
  kUnknown,
  kFileLineColRange = 22  // a (file), a count, then line, column, [line to,] [column to]
};

// Those that did not say where they are leave the place to others.
void fill_in(Location& out, Location&& other) {
  if (!out.loc.known()) {
    out.loc = std::move(other.loc);
    out.callers = std::move(other.callers);
  }
  if (out.name.empty()) out.name = std::move(other.name);
}

int coordinate(uint64_t v) { return static_cast<int>(std::min<uint64_t>(v, INT32_MAX)); }

}  // namespace

Location BytecodeReader::location(ByteReader& r) {
  const size_t number = r.index(attrs_.size(), "location");
  if (r.failed()) return {};
  Entry& entry = attrs_[number];
  if (entry.location) {
    second_stack_ = entry.second_stack;
    return *entry.location;
  }
  ByteReader own(entry.bytes, entry.offset, fault_);
  Level level(*this, own, kMostAttrNesting);
  if (entry.open) own.fail("a location that holds itself");
  if (own.failed()) return {};
  entry.open = true;
  // Locations of other dialects say nothing that could be shown.
  Location out;
  second_stack_ = 0;
  if (entry.encoded && entry.builtin) out = decode_location(own, own.varint());
  entry.open = false;
  entry.location = out;
  entry.second_stack = second_stack_;
  return out;
}

Location BytecodeReader::fused(ByteReader& r) {
  Location out;
  const size_t n = r.count("locations");
  for (size_t i = 0; i < n && !r.failed(); ++i) fill_in(out, location(r));
  return out;
}

// What stands under the name of a primitive ("signal:"). JAX lowers some primitives by functions of
// its own and keeps what came out: then the place is "signal/add"(callsite(first at this)), where
// `first` is the stack of the first use of all, and only `this` is that of the op.
Location BytecodeReader::under_name(ByteReader& r, std::string_view name) {
  Location inner = location(r);
  const std::string_view primitive = name.substr(0, name.size() - name.ends_with(':'));
  const bool lowered = name.ends_with(':') && inner.name.size() > primitive.size() &&
                       inner.name.starts_with(primitive) && inner.name[primitive.size()] == '/';
  if (!lowered || second_stack_ == 0) return inner;
  const auto own = inner.callers.begin() + static_cast<std::ptrdiff_t>(second_stack_) - 1;
  inner.loc = *own;
  inner.callers.erase(inner.callers.begin(), own + 1);
  second_stack_ = 0;
  return inner;
}

// As in text, of a composite location the first place that has a file counts: the callee of a call
// site, the first of a fused list, the place under a name.
Location BytecodeReader::decode_location(ByteReader& r, uint64_t code) {
  Location out;
  switch (code) {
    case kCallSite: {
      out = location(r);
      Location caller = location(r);
      second_stack_ = 0;
      if (!out.loc.known()) {
        fill_in(out, std::move(caller));
      } else if (caller.loc == out.loc && caller.callers == out.callers) {
        // JAX writes the whole stack twice, as callee and as caller.
      } else if (caller.loc.known()) {
        if (out.callers.size() < kMostCallers) second_stack_ = out.callers.size() + 1;
        out.callers.push_back(std::move(caller.loc));
        std::ranges::move(caller.callers, std::back_inserter(out.callers));
        if (out.callers.size() > kMostCallers) out.callers.resize(kMostCallers);
      }
      break;
    }
    case kFileLineCol:
      out.loc.file = string_attr(r);
      out.loc.line = coordinate(r.varint());
      out.loc.column = coordinate(r.varint());
      break;
    case kFileLineColRange: {
      out.loc.file = string_attr(r);
      const size_t n = r.count("coordinates");
      for (size_t i = 0; i < n && !r.failed(); ++i) {
        const int v = coordinate(r.varint());
        if (i == 0) out.loc.line = v;
        if (i == 1) out.loc.column = v;
      }
      break;
    }
    case kFused:
    case kFusedWithMetadata: {
      out = fused(r);
      int64_t weight = 0;
      if (code == kFusedWithMetadata) attr(r, weight);
      break;
    }
    case kName:
      out.name = string_attr(r);
      fill_in(out, under_name(r, out.name));
      break;
    case kUnknown:
      break;
    default:
      r.fail("a location that is none");
  }
  if (r.left() > 0) r.fail("bytes behind a location");
  return out;
}

// {tpu.locs = [locations]} on a module.
std::vector<Location> BytecodeReader::read_locations() {
  read_module();
  if (any_error() || !top_attrs_) {
    if (!any_error()) report("the module of locations has no attribute tpu.locs");
    return {};
  }
  const Entry& top = attrs_[*top_attrs_];
  ByteReader r(top.bytes, top.offset, fault_);
  r.varint();  // a dictionary, as it was read before
  const size_t n = r.count("attributes");
  for (size_t i = 0; i < n && !r.failed(); ++i) {
    const bool found = string_attr(r) == "tpu.locs";
    const size_t number = r.index(attrs_.size(), "attribute");
    if (!found || r.failed()) continue;
    const Entry& list = attrs_[number];
    if (!list.encoded || list.attr.kind() != AttrKind::kArray) break;
    ByteReader places(list.bytes, list.offset, fault_);
    places.varint();  // an array, likewise
    std::vector<Location> out;
    const size_t count = places.count("locations");
    for (size_t k = 0; k < count && !places.failed(); ++k) out.push_back(location(places));
    return out;
  }
  report("the module of locations has no list tpu.locs");
  return {};
}

}  // namespace gridless::ir
