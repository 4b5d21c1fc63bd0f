// dense<...> : type, in its three spellings: one value, nested lists, the bytes in hex.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gridless/ir/float_text.h"
#include "gridless/ir/text_parser.h"

namespace gridless::ir {
namespace {

struct Literal {
  std::string_view text;  // a number, or "true", "false"
  size_t at = 0;
};

// The little-endian bytes of an element as a value of the element type.
struct Bytes {
  std::string_view hex;
  size_t size() const { return hex.size() / 2; }
  uint8_t operator[](size_t i) const {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
    return static_cast<uint8_t>(digit(hex[2 * i]) * 16 + digit(hex[2 * i + 1]));
  }
};

int64_t sign_extend(uint64_t v, Elem e) {
  const int bits = bit_width(e);
  if (bits == 64) return static_cast<int64_t>(v);
  v &= (uint64_t{1} << bits) - 1;
  const bool plain = bits == 1 || (e >= Elem::kUi4 && e <= Elem::kUi64);
  const uint64_t half = uint64_t{1} << (bits - 1);
  return static_cast<int64_t>(plain ? v : (v ^ half) - half);
}

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

Attr make_dense(Type type, std::vector<int64_t> ints, std::vector<double> reals) {
  // MLIR has one form for equal elements: the splat.
  if (is_float(type.elem())) {
    const auto other = [&](double v) { return !same_bits(v, reals[0]); };
    if (!reals.empty() && std::ranges::none_of(reals, other)) reals.resize(1);
    return Attr::dense_real(type, std::move(reals));
  }
  const auto other = [&](int64_t v) { return v != ints[0]; };
  if (!ints.empty() && std::ranges::none_of(ints, other)) ints.resize(1);
  return Attr::dense_int(type, std::move(ints));
}

bool all_hex(std::string_view s) {
  return s.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
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
  const bool shaped = type.is_vector() || type.kind() == TypeKind::kTensor;
  const int64_t n = shaped ? type.num_elements() : 0;
  if (!shaped || n == kDynamic || is_semaphore(type.elem())) {
    fail(at, fmt::format("dense<...> of type {}", type.str()),
         "the type must be a vector or tensor of static shape");
    return Attr::unit();
  }
  const Elem e = type.elem();
  std::vector<int64_t> ints;
  std::vector<double> reals;
  if (hex.empty()) {
    if (!splat && written != type.shape() && !(literals.empty() && n == 0)) {
      fail(at,
           fmt::format("dense<...> holds {} but its type is {}", shape_str(written), type.str()));
      return Attr::unit();
    }
    for (const Literal& l : literals) {
      const bool flag = l.text == "true" || l.text == "false";
      if (flag && e != Elem::kI1)
        fail(l.at, fmt::format("a bool in dense<...> of {}", spelling(e)));
      if (failed()) return Attr::unit();
      if (is_float(e)) {
        reals.push_back(to_real(l.text, l.at, e));
      } else {
        ints.push_back(flag ? l.text == "true" : to_integer(l.text, l.at, e));
      }
    }
  } else {
    const Bytes bytes{hex};
    const size_t width = static_cast<size_t>(bit_width(e) + 7) / 8;
    const auto elements = static_cast<uint64_t>(n);
    const bool packed = e == Elem::kI1 && bytes.size() == (elements + 7) / 8;
    if (!packed && bytes.size() != width && bytes.size() != elements * width) {
      fail(at, fmt::format("dense<\"0x..\"> holds {} bytes but its type is {}", bytes.size(),
                           type.str()));
      return Attr::unit();
    }
    const size_t have = packed ? elements : bytes.size() / width;
    for (size_t i = 0; i < have; ++i) {
      uint64_t v = 0;
      if (packed) {
        v = (bytes[i / 8] >> (i % 8)) & 1U;
      } else {
        for (size_t b = width; b-- > 0;) v = v << 8 | bytes[i * width + b];
      }
      if (is_float(e)) {
        reals.push_back(float_from_bits(v, e));
      } else {
        ints.push_back(sign_extend(v, e));
      }
    }
  }
  return failed() ? Attr::unit() : make_dense(type, std::move(ints), std::move(reals));
}

}  // namespace gridless::ir
