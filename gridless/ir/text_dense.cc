// dense<...> : type, in its three spellings: one value, nested lists, the bytes in hex.
#include <fmt/format.h>

#include "gridless/ir/dense_bytes.h"
#include "gridless/ir/text_parser.h"

namespace gridless::ir {
namespace {

struct Literal {
  std::string_view text;  // a number, or "true", "false"
  size_t at = 0;
};

bool all_hex(std::string_view s) {
  return s.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

std::string bytes_of(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return out;
}

}  // namespace

Attr TextParser::parse_dense() {
  expect("<", "dense");
  const size_t at = position();
  std::vector<Literal> literals;
  Shape written;  // the lengths of the nested lists
  std::string hex;
  bool splat = false;
  const auto literal = [&] {
    const size_t from = position();
    std::string_view t = number();
    if (t.empty()) {
      t = word();
      if (t != "true" && t != "false") fail(from, "expected a number in dense<...>");
    }
    literals.push_back({t, from});
  };
  if (peek() == '"') {
    hex = quoted();
    if (!hex.starts_with("0x") || hex.size() % 2 != 0 || !all_hex(std::string_view(hex).substr(2)))
      fail(at, "expected \"0x\" and pairs of hex digits in dense<\"...\">");
    else
      hex.erase(0, 2);
  } else if (peek() == '[') {
    // Lists without recursion: the length of every list of one depth must be the same.
    std::vector<int64_t> counts;
    do {
      if (accept("[")) {
        counts.push_back(0);
        if (counts.size() > kMostRank) fail("lists in dense<...> nested too deep");
        if (peek() != ']') continue;
      } else {
        literal();
        ++counts.back();
      }
      while (!failed()) {
        if (accept(",")) break;
        expect("]", "an element of dense<...>");
        const size_t depth = counts.size();
        if (written.size() < depth) written.resize(depth, kDynamic);
        int64_t& length = written[depth - 1];
        if (length != kDynamic && length != counts.back())
          fail("lists of different lengths in dense<...>");
        length = counts.back();
        counts.pop_back();
        if (counts.empty()) break;
        ++counts.back();
      }
    } while (!failed() && !counts.empty());
  } else if (peek() != '>') {
    literal();
    splat = true;
  }
  expect(">", "the elements of dense<...>");
  expect(":", "dense<...>");
  const Type type = parse_type();
  if (failed()) return Attr::unit();
  if (!can_be_dense(type)) {
    fail(at, fmt::format("dense<...> of type {}", type.str()),
         "the type must be a vector or tensor of static shape");
    return Attr::unit();
  }
  if (!hex.empty()) {
    auto dense = dense_from_bytes(type, bytes_of(hex));
    if (!dense) fail(at, dense.error());
    return dense ? std::move(*dense) : Attr::unit();
  }
  const Elem e = type.elem();
  if (!splat && written != type.shape() && !(literals.empty() && type.num_elements() == 0)) {
    fail(at, fmt::format("dense<...> holds {} but its type is {}", shape_str(written), type.str()));
    return Attr::unit();
  }
  std::vector<int64_t> ints;
  std::vector<double> reals;
  for (const Literal& l : literals) {
    const bool flag = l.text == "true" || l.text == "false";
    if (flag && e != Elem::kI1) fail(l.at, fmt::format("a bool in dense<...> of {}", spelling(e)));
    if (failed()) return Attr::unit();
    if (is_float(e)) {
      reals.push_back(to_real(l.text, l.at, e));
    } else {
      ints.push_back(flag ? l.text == "true" : to_integer(l.text, l.at, e));
    }
  }
  return failed() ? Attr::unit() : make_dense(type, std::move(ints), std::move(reals));
}

}  // namespace gridless::ir
