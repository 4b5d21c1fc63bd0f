#include <fmt/format.h>

#include "gridless/ir/bytecode_reader.h"
#include "gridless/ir/text_parser.h"

namespace gridless::ir {
namespace {

// As in bytecode_attrs.cc. A shape is a count and as many signed varints; a dynamic size is the
// least of all numbers.
enum Code : uint64_t {
  kInteger,  // width << 2 | signedness
  kIndex,
  kFunction,  // [t] [t]
  kBf16,
  kF16,
  kF32,
  kF64,
  kF80,
  kF128,
  kComplex,
  kMemRef,           // shape t, a (layout)
  kMemRefWithSpace,  // a (space), shape t, a (layout)
  kNone,
  kTensor,              // shape t
  kTensorWithEncoding,  // a, shape t
  kTuple,
  kUnrankedMemRef,
  kUnrankedMemRefWithSpace,
  kUnrankedTensor,
  kVector,  // shape t
  kScalableVector,
  kTf32,
  kF8E5M2,
  kF8E4M3,
  kF8E4M3FN,
  kF8E5M2FNUZ,
  kF8E4M3FNUZ,
  kF8E4M3B11FNUZ,
  kF8E3M4,
  kF4E2M1FN,
  kF6E2M3FN,
  kF6E3M2FN,
  kF8E8M0FNU,
};

}  // namespace

std::string identity_map(size_t rank) {
  std::string dims;
  for (size_t i = 0; i < rank; ++i) dims += fmt::format("{}d{}", i ? ", " : "", i);
  return fmt::format("affine_map<({}) -> ({})>", dims, dims);
}

Type BytecodeReader::type(ByteReader& r, int64_t& weight) {
  const size_t number = r.index(types_.size(), "type");
  if (r.failed()) return Type::none();
  const Type out = type_at(number);
  weight += types_[number].weight;
  return out;
}

Type BytecodeReader::type_at(size_t number) {
  Entry& entry = types_[number];
  if (entry.type) return entry.type;
  ByteReader r(entry.bytes, entry.offset, fault_);
  Level level(*this, r, kMostAttrNesting);
  if (entry.open) r.fail("a type that holds itself");
  if (r.failed()) return Type::none();
  entry.open = true;
  if (entry.encoded) {
    entry.type = decode_type(entry, r);
    if (r.left() > 0) r.fail("bytes behind a type");
  } else {
    entry.type = parse_type_text(r, r.terminated());
  }
  entry.open = false;
  if (entry.weight > kMostTypeParts) unsupported(r, "a type of more than 64 Ki parts");
  return r.failed() ? Type::none() : entry.type;
}

// Shaped types and those of other dialects pass through the text's reader: one set of limits, one
// set of messages.
Type BytecodeReader::parse_type_text(ByteReader& r, std::string_view text) {
  if (r.failed()) return Type::none();
  TextParser parser(text, file_);
  const Type out = parser.parse_only_type();
  if (!parser.any_error()) return out;
  unsupported(r, fmt::format("the type {}: {}", text, parser.take_diagnostics().front().message));
  return Type::none();
}

std::vector<Type> BytecodeReader::type_list(ByteReader& r, int64_t& weight) {
  std::vector<Type> out;
  const size_t n = r.count("types");
  for (size_t i = 0; i < n && !r.failed(); ++i) out.push_back(type(r, weight));
  return out;
}

Type BytecodeReader::decode_shaped(ByteReader& r, std::string_view kind, bool with_space) {
  int64_t weight = 0;
  const auto text_of = [&] {
    const Attr a = attr(r, weight);
    if (!r.failed() && a.kind() != AttrKind::kOpaque)
      unsupported(r, fmt::format("a {} with {}", kind, "an integer or other plain attribute"));
    return r.failed() ? std::string() : a->text;
  };
  const std::string space = with_space ? text_of() : std::string();
  std::string shape;
  const size_t rank = r.count("dimensions");
  for (size_t i = 0; i < rank && !r.failed(); ++i) {
    const int64_t d = r.signed_varint();
    if (d < 0 && d != kDynamic) r.fail(fmt::format("a dimension of {}", d));
    shape += (d == kDynamic ? std::string("?") : std::to_string(d)) + "x";
  }
  const Type element = type(r, weight);
  const std::string layout = kind == "memref" ? text_of() : std::string();
  if (r.failed()) return Type::none();
  std::string text = fmt::format("{}<{}{}", kind, shape, element.str());
  if (!layout.empty() && layout != identity_map(rank)) text += ", " + layout;
  if (!space.empty()) text += ", " + space;
  return parse_type_text(r, text + ">");
}

Type BytecodeReader::decode_type(Entry& entry, ByteReader& r) {
  if (!entry.builtin) {
    unsupported(r, "a type in an encoding of its dialect, which is not known");
    return Type::none();
  }
  const uint64_t code = r.varint();
  switch (code) {
    case kInteger: {
      const uint64_t v = r.varint();
      constexpr std::string_view kSigns[] = {"", "s", "u", "?"};
      const std::string name = fmt::format("{}i{}", kSigns[v & 3], v >> 2);
      if (const auto e = elem_from_spelling(name)) return Type::scalar(*e);
      unsupported(r, fmt::format("the type {} is not supported", name));
      return Type::none();
    }
    case kIndex:
      return Type::index();
    case kFunction: {
      std::vector<Type> inputs = type_list(r, entry.weight);
      std::vector<Type> results = type_list(r, entry.weight);
      return r.failed() ? Type::none() : Type::function(std::move(inputs), std::move(results));
    }
    case kBf16:
      return Type::scalar(Elem::kBf16);
    case kF16:
      return Type::scalar(Elem::kF16);
    case kF32:
      return Type::scalar(Elem::kF32);
    case kF64:
      return Type::scalar(Elem::kF64);
    case kF8E5M2:
      return Type::scalar(Elem::kF8E5M2);
    case kF8E4M3FN:
      return Type::scalar(Elem::kF8E4M3FN);
    case kF4E2M1FN:
      return Type::scalar(Elem::kF4E2M1FN);
    case kF8E8M0FNU:
      return Type::scalar(Elem::kF8E8M0FNU);
    case kMemRef:
    case kMemRefWithSpace:
      return decode_shaped(r, "memref", code == kMemRefWithSpace);
    case kNone:
      return Type::none();
    case kTensor:
      return decode_shaped(r, "tensor", false);
    case kVector:
      return decode_shaped(r, "vector", false);
    default:
      break;
  }
  // From kF80 on; empty: handled above.
  constexpr std::string_view kNames[] = {"f80",
                                         "f128",
                                         "a complex number",
                                         "",
                                         "",
                                         "",
                                         "",
                                         "a tensor with an encoding",
                                         "a tuple",
                                         "a memref without rank",
                                         "a memref without rank",
                                         "a tensor without rank",
                                         "",
                                         "a scalable vector",
                                         "tf32",
                                         "",
                                         "f8E4M3",
                                         "",
                                         "f8E5M2FNUZ",
                                         "f8E4M3FNUZ",
                                         "f8E4M3B11FNUZ",
                                         "f8E3M4",
                                         "",
                                         "f6E2M3FN",
                                         "f6E3M2FN"};
  unsupported(r, code >= kF80 && code < kF8E8M0FNU
                     ? fmt::format("the type {} is not supported", kNames[code - kF80])
                     : fmt::format("a type of the builtin dialect with the unknown code {}", code));
  return Type::none();
}

}  // namespace gridless::ir
