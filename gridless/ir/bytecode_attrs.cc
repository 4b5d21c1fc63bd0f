#include <fmt/format.h>

#include "gridless/ir/bytecode_reader.h"
#include "gridless/ir/dense_bytes.h"
#include "gridless/ir/float_text.h"
#include "gridless/ir/text_parser.h"

namespace gridless::ir {
namespace {

// The builtin dialect's encodings, by the number in front of each. "a" is the number of an
// attribute, "t" of a type, "s" of a string; [..] a count and as many; blob a length and bytes.
enum Code : uint64_t {
  kArray,                  // [a]
  kDictionary,             // [a (a string attribute), a]
  kString,                 // s
  kStringWithType,         // s t
  kFlatSymbolRef,          // a (a string attribute)
  kSymbolRef,              // a [a]
  kTypeAttr,               // t
  kUnit,                   //
  kInteger,                // t, a byte up to 8 bits, else a signed varint
  kFloat,                  // t, the bits as in an integer
  kCallSiteLoc,            // locations: bytecode_locs.cc
  kUnknownLoc = 15,        //
  kDenseResource,          // t, number of a resource
  kDenseArray,             // t, size, blob
  kDense,                  // t, blob
  kDenseString,            //
  kSparse,                 //
  kDistinct,               //
  kFileLineColRange = 22,  //
  kAffineMap,              // rank << 2 for the identity; what else there is, is not known here
};

}  // namespace

Attr BytecodeReader::attr(ByteReader& r, int64_t& weight) {
  const size_t number = r.index(attrs_.size(), "attribute");
  if (r.failed()) return Attr::unit();
  Attr out = attr_at(number);
  weight += attrs_[number].weight;
  return out;
}

Attr BytecodeReader::attr_at(size_t number) {
  Entry& entry = attrs_[number];
  if (entry.attr) return entry.attr;
  ByteReader r(entry.bytes, entry.offset, fault_);
  Level level(*this, r, kMostAttrNesting);
  if (entry.open) r.fail("an attribute that holds itself");
  if (r.failed()) return Attr::unit();
  entry.open = true;
  if (entry.encoded) {
    entry.attr = decode_attr(entry, r);
    if (r.left() > 0) r.fail("bytes behind an attribute");
  } else {
    const std::string_view text = r.terminated();
    TextParser parser(text, file_);
    entry.attr = parser.parse_only_attr();
    entry.weight += static_cast<int64_t>(text.size() / 16);
    if (!r.failed() && parser.any_error()) {
      unsupported(
          r, fmt::format("the attribute {}: {}", text, parser.take_diagnostics().front().message));
    }
  }
  entry.open = false;
  if (entry.weight > kMostAttrParts)
    unsupported(r, "an attribute of more than 16 Mi parts", "pass large constants as operands");
  return entry.attr;
}

std::string BytecodeReader::string_attr(ByteReader& r) {
  int64_t weight = 0;
  const Attr a = attr(r, weight);
  if (!r.failed() && a.kind() != AttrKind::kString) r.fail("a name that is not a string");
  return r.failed() ? std::string() : a->text;
}

std::vector<Attr> BytecodeReader::attr_list(ByteReader& r, int64_t& weight) {
  std::vector<Attr> out;
  const size_t n = r.count("attributes");
  for (size_t i = 0; i < n && !r.failed(); ++i) out.push_back(attr(r, weight));
  return out;
}

std::vector<NamedAttr> BytecodeReader::dict(ByteReader& r, int64_t& weight) {
  std::vector<NamedAttr> out;
  const size_t n = r.count("attributes");
  for (size_t i = 0; i < n && !r.failed(); ++i) {
    std::string name = string_attr(r);
    // They are sorted, so a name that stands there twice is next to itself.
    if (!out.empty() && out.back().first >= name) r.fail("attributes out of order");
    Attr value = attr(r, weight);
    // Locations of another module (bytecode_locs.cc reads them): no part of this one.
    if (name == "tpu.locs" && !r.failed() && value.kind() == AttrKind::kArray) continue;
    out.emplace_back(std::move(name), std::move(value));
  }
  return out;
}

Attr BytecodeReader::decode_attr(Entry& entry, ByteReader& r) {
  if (!entry.builtin) {
    unsupported(r, "an attribute in an encoding of its dialect, which is not known");
    return Attr::unit();
  }
  const uint64_t code = r.varint();
  switch (code) {
    case kArray:
      return Attr::array(attr_list(r, entry.weight));
    case kDictionary:
      return Attr::dict(dict(r, entry.weight));
    case kString:
    case kStringWithType: {
      const std::string_view text = string(r);
      if (code == kStringWithType) type(r, entry.weight);
      entry.weight += static_cast<int64_t>(text.size() / 16);
      return Attr::string(std::string(text));
    }
    case kFlatSymbolRef:
      return Attr::symbol(string_attr(r));
    case kTypeAttr: {
      const Type t = type(r, entry.weight);
      return Attr::type(t);
    }
    case kUnit:
      return Attr::unit();
    case kInteger:
      return decode_number(r, false);
    case kFloat:
      return decode_number(r, true);
    case kDenseArray:
      return decode_dense_array(r, entry);
    case kDense:
    case kDenseResource:
      return decode_dense(r, entry, code == kDenseResource);
    case kAffineMap: {
      const uint64_t v = r.varint();
      if (v % 4 == 0 && v / 4 <= kMostRank) return Attr::opaque(identity_map(v / 4));
      unsupported(r, "an affine map other than the identity, as the layout of a memref");
      return Attr::unit();
    }
    case kSymbolRef:
      unsupported(r, "nested symbol references are not supported");
      return Attr::unit();
    case kDenseString:
    case kSparse:
    case kDistinct:
      unsupported(r, "dense strings, sparse and distinct attributes are not supported");
      return Attr::unit();
    default:
      break;
  }
  if ((code >= kCallSiteLoc && code <= kUnknownLoc) || code == kFileLineColRange) {
    // A location as the value of an attribute means nothing to a kernel.
    decode_location(r, code);
    return Attr::opaque("loc(unknown)");
  }
  unsupported(r, fmt::format("an attribute of the builtin dialect with the unknown code {}", code));
  return Attr::unit();
}

// An integer or the bits of a float, as wide as the type.
uint64_t BytecodeReader::bits(ByteReader& r, Elem e) {
  return bit_width(e) <= 8 ? r.byte() : static_cast<uint64_t>(r.signed_varint());
}

Attr BytecodeReader::decode_number(ByteReader& r, bool real) {
  int64_t weight = 0;
  const Type t = type(r, weight);
  if (r.failed()) return Attr::unit();
  if (!t.is_scalar() || is_float(t.elem()) != real) {
    r.fail(fmt::format("a number of type {}", t.str()));
    return Attr::unit();
  }
  uint64_t v = bits(r, t.elem());
  if (!real) {
    const int64_t i = integer_from_bits(v, t.elem());
    return t.elem() == Elem::kI1 ? Attr::boolean(i != 0) : Attr::integer(i, t);
  }
  const int width = bit_width(t.elem());
  if (width < 64) v &= (uint64_t{1} << width) - 1;
  return Attr::real(float_from_bits(v, t.elem()), t);
}

Attr BytecodeReader::decode_dense_array(ByteReader& r, Entry& entry) {
  const Type t = type(r, entry.weight);
  const uint64_t size = r.varint();
  const std::string_view data = r.blob();
  if (r.failed()) return Attr::unit();
  if (!t.is_scalar()) {
    r.fail(fmt::format("an array of {}", t.str()));
    return Attr::unit();
  }
  const Elem e = t.elem();
  const size_t width = static_cast<size_t>(bit_width(e) + 7) / 8;
  if (size != data.size() / width || data.size() % width != 0) {
    r.fail(fmt::format("an array of {} elements in {} bytes", size, data.size()));
    return Attr::unit();
  }
  std::vector<int64_t> ints;
  std::vector<double> reals;
  for (size_t i = 0; i < data.size(); i += width) {
    uint64_t v = 0;
    for (size_t b = width; b-- > 0;) v = v << 8 | static_cast<uint8_t>(data[i + b]);
    if (is_float(e)) {
      reals.push_back(float_from_bits(v, e));
    } else {
      ints.push_back(integer_from_bits(v, e));
    }
  }
  entry.weight += static_cast<int64_t>(size);
  return is_float(e) ? Attr::dense_array_f(e, std::move(reals))
                     : Attr::dense_array(e, std::move(ints));
}

Attr BytecodeReader::decode_dense(ByteReader& r, Entry& entry, bool resource) {
  const Type t = type(r, entry.weight);
  std::string_view data;
  if (resource) {
    const size_t number = r.index(resources_.size(), "resource");
    if (!r.failed()) data = resources_[number];
  } else {
    data = r.blob();
  }
  if (r.failed()) return Attr::unit();
  auto dense = dense_from_bytes(t, data);
  if (!dense) {
    r.fail(dense.error());
    return Attr::unit();
  }
  const AttrData& d = **dense;
  entry.weight += static_cast<int64_t>(d.ints.size() + d.reals.size());
  return std::move(*dense);
}

// What the ops hold is counted at every use: printing and comparing write it out each time.
void BytecodeReader::spend(ByteReader& r, int64_t weight) {
  spent_ += weight;
  if (spent_ > kMostParts && !r.failed()) {
    unsupported(r,
                "the attributes and types of the module, written out, have more than 64 Mi "
                "parts",
                "pass large constants as operands");
  }
}

}  // namespace gridless::ir
