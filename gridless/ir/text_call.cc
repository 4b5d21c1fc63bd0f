// What is read of a program around a kernel: the custom call that holds it, and the list of its
// locations.
#include "gridless/ir/text_parser.h"

namespace gridless::ir {

TextParser::CustomCall TextParser::parse_custom_call(size_t at) {
  CustomCall call;
  jump(at);
  if (!accept("\"stablehlo.custom_call\"")) expect("stablehlo.custom_call", "'='");
  if (accept("@")) {
    call.target = raw_peek() == '"' ? quoted() : std::string(suffix_name("a symbol name"));
  }
  if (peek() == '(') balanced();  // the operands; their types come below
  if (accept("<{")) {
    call.attrs = parse_dict("}");
    expect(">", "the properties of an op");
  }
  if (accept("{")) {
    for (NamedAttr& a : parse_dict("}")) call.attrs.push_back(std::move(a));
  }
  expect(":", "the attributes of a custom call");
  call.operands = parse_types();
  expect("->", "the operand types of a custom call");
  call.results = parse_result_types();
  for (const auto& [name, value] : call.attrs) {
    if (name == "call_target_name" && value.kind() == AttrKind::kString) call.target = value->text;
  }
  return call;
}

// tpu.locs = [loc(..), #loc1, ..]: the one attribute whose value is places.
void TextParser::parse_places() {
  expect("[", "tpu.locs");
  if (accept("]")) return;
  do {
    if (peek() == '#') {
      places_.push_back(parse_location());
    } else {
      places_.push_back(parse_loc());
    }
  } while (!failed() && accept(","));
  expect("]", "a list of locations");
}

std::vector<Location> TextParser::parse_locations() {
  parse_file();
  std::vector<Location> out;
  if (any_error()) return out;
  for (const Where& where : places_) {
    Location location{.name = where.name, .loc = follow(where)};
    const auto alias = loc_aliases_.find(where.alias);
    if (location.name.empty() && alias != loc_aliases_.end()) location.name = alias->second.name;
    out.push_back(std::move(location));
  }
  return out;
}

}  // namespace gridless::ir
