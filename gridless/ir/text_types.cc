#include <fmt/format.h>

#include "gridless/ir/text_parser.h"

namespace gridless::ir {

std::vector<Type> TextParser::parse_types() {
  std::vector<Type> out;
  expect("(", "the start of a list of types");
  if (accept(")")) return out;
  do {
    out.push_back(parse_type());
  } while (!failed() && accept(","));
  expect(")", "a list of types");
  return out;
}

std::vector<Type> TextParser::parse_result_types() {
  if (peek() == '(') return parse_types();
  return {parse_type()};
}

Shape TextParser::parse_shape(std::string_view kind) {
  Shape shape;
  int64_t elements = 1;
  const size_t at = position();
  while (!failed()) {
    const char c = shape.empty() ? peek() : raw_peek();
    if (c == '?') {
      raw_skip();
      shape.push_back(kDynamic);
    } else if (c >= '0' && c <= '9') {
      const int64_t d = count(kMostElements, "a dimension");
      shape.push_back(d);
      // Zero dimensions do not make the others harmless: strides are computed from them.
      const int64_t factor = d > 0 ? d : 1;
      if (elements > kMostElements / factor) {
        fail(at, fmt::format("{} of more than 2^48 elements", kind));
      } else {
        elements *= factor;
      }
    } else {
      break;
    }
    if (shape.size() > kMostRank) fail(at, fmt::format("{} of rank more than {}", kind, kMostRank));
    if (raw_peek() != 'x') fail(fmt::format("expected 'x' after a dimension of a {}", kind));
    raw_skip();
  }
  return shape;
}

Elem TextParser::parse_elem(std::string_view kind) {
  const size_t at = position();
  std::string name;
  if (accept("!")) name = "!";
  name += word();
  if (const auto e = elem_from_spelling(name)) return *e;
  fail(at,
       name.empty() ? fmt::format("expected the element type of a {}", kind)
                    : fmt::format("unknown element type '{}' of a {}", name, kind),
       "element types: i1 to i64, index, f32, bf16, f16, f8E4M3FN, f8E5M2, f4E2M1FN, "
       "!tpu.semaphore, !tpu.dma_semaphore");
  return Elem::kI32;
}

Type TextParser::parse_memref() {
  Shape shape = parse_shape("memref");
  const Elem e = parse_elem("memref");
  Space space = Space::kNone;
  std::string layout;
  while (!failed() && accept(",")) {
    const size_t at = position();
    if (accept("#tpu.memory_space<")) {
      const std::string_view name = word();
      const auto s = space_from_spelling(name);
      if (!s) fail(at, fmt::format("unknown memory space '{}'", name), "any, vmem, smem, hbm, ...");
      if (accept(",")) {
        fail(at, "a memory space of one core type",
             "only TensorCore kernels can be read: leave the core type out");
      }
      expect(">", "a memory space");
      space = s.value_or(Space::kNone);
    } else if (peek() == '#') {
      const Attr a = parse_hash_attr();
      if (a && a.kind() == AttrKind::kOpaque) {
        layout = a->text;
      } else if (!failed()) {
        fail(at, "a memref layout must be a dialect attribute such as #tpu.tiled<...>");
      }
    } else {
      const std::string_view name = word();
      if (name != "affine_map" && name != "strided") {
        fail(at, "expected a layout or #tpu.memory_space<...> in a memref");
        break;
      }
      layout = std::string(name) + std::string(balanced());
    }
  }
  return Type::memref(std::move(shape), e, space, std::move(layout));
}

Type TextParser::parse_type() {
  Level level(*this);
  if (failed()) return Type::none();
  const size_t at = position();
  if (peek() == '(') {
    std::vector<Type> inputs = parse_types();
    expect("->", "the inputs of a function type");
    std::vector<Type> results = parse_result_types();
    return failed() ? Type::none() : Type::function(std::move(inputs), std::move(results));
  }
  if (accept("!")) {
    const std::string name(word());
    if (const auto e = elem_from_spelling("!" + name)) return Type::scalar(*e);
    if (const auto it = type_aliases_.find(name); it != type_aliases_.end()) return it->second;
    fail(at, fmt::format("unknown type '!{}'", name));
    return Type::none();
  }
  const std::string_view name = word();
  if (name == "vector" || name == "tensor" || name == "memref") {
    expect("<", name);
    Type type;
    if (name == "memref") {
      type = parse_memref();
    } else {
      Shape shape = parse_shape(name);
      const Elem e = parse_elem(name);
      type =
          name == "vector" ? Type::vector(std::move(shape), e) : Type::tensor(std::move(shape), e);
    }
    expect(">", "the element type");
    return failed() ? Type::none() : type;
  }
  if (name == "none") return Type::none();
  if (const auto e = elem_from_spelling(name)) return Type::scalar(*e);
  fail(at, name.empty() ? "expected a type" : fmt::format("unknown type '{}'", name),
       "types: iN, index, f32, bf16, vector<..>, memref<..>, (..) -> ..");
  return Type::none();
}

Type TextParser::parse_only_type() {
  const Type type = parse_type();
  if (!at_end()) fail("unexpected text behind a type");
  return type;
}

}  // namespace gridless::ir
