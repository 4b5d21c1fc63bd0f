#include "gridless/tpu/body_signature.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace gridless::tpu {
namespace {

constexpr size_t kNone = std::string_view::npos;

// The text between the bracket at `open` and the one that closes it. Arrows ("->") are no brackets.
std::optional<std::string_view> bracketed(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}' || (c == '>' && text[i - 1] != '-')) --depth;
    if (depth == 0) return text.substr(open + 1, i - open - 1);
  }
  return std::nullopt;
}

// Splits at the commas that stand outside of brackets.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == '>' || c == ']' || c == '}') --depth;
    if (c != ',' || depth != 0) continue;
    parts.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  parts.push_back(text.substr(start));
  return parts;
}

// "8x128xf32, #tpu.memory_space<vmem>" and other attributes in between.
std::optional<BodyArgument> memref(std::string_view inside) {
  BodyArgument out{.is_memref = true};
  const std::vector<std::string_view> parts = split(inside);
  std::string_view type = parts[0];
  while (!type.empty() && std::isdigit(static_cast<unsigned char>(type[0]))) {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(type.data(), type.data() + type.size(), n);
    type.remove_prefix(static_cast<size_t>(end - type.data()));
    if (error != std::errc() || !type.starts_with('x')) return std::nullopt;
    type.remove_prefix(1);
    out.shape.push_back(n);
  }
  if (type.starts_with('?')) return std::nullopt;
  out.dtype = type;
  constexpr std::string_view kSpace = "#tpu.memory_space<";
  if (const size_t at = inside.find(kSpace); at != kNone) {
    const std::string_view rest = inside.substr(at + kSpace.size());
    out.space = rest.substr(0, rest.find_first_of(",>"));
  }
  return out;
}

std::string shape_text(const std::vector<int64_t>& shape, std::string_view dtype) {
  std::string out;
  for (const int64_t n : shape) out += fmt::format("{}x", n);
  return out + std::string(dtype);
}

int line_of(std::string_view text, size_t at) {
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
}

// Where the argument list of the first function in generic form begins; body.size() if there is
// none.
size_t first_block(std::string_view body) {
  const size_t function = body.find("func.func\"(");
  if (function == kNone) return body.size();
  const size_t block = body.find("^bb0(", function);
  if (block == kNone) return body.size();
  // Another operation in between means that the block belongs to that one.
  const size_t after = function + std::string_view("func.func\"(").size();
  const bool nested = body.substr(after, block - after).find("\"(") != kNone;
  return nested ? body.size() : block;
}

// Signed and signless integers are one to the hardware.
bool same_type(std::string_view a, std::string_view b) {
  const auto plain = [](std::string_view t) { return t.starts_with("ui") ? t.substr(1) : t; };
  return plain(a) == plain(b);
}

}  // namespace

std::vector<BodyArgument> body_arguments(std::string_view body) {
  const size_t block = first_block(body);
  if (block == body.size()) return {};
  const auto list = bracketed(body, block + 4);
  if (!list || list->empty()) return {};
  std::vector<BodyArgument> out;
  for (std::string_view argument : split(*list)) {
    const size_t colon = argument.find(':');
    if (colon == kNone) return {};
    argument.remove_prefix(colon + 1);
    const size_t type = argument.find("memref<");
    if (type == kNone) {
      out.push_back({});
      continue;
    }
    const auto inside = bracketed(argument, type + 6);
    const auto parsed = inside ? memref(*inside) : std::nullopt;
    if (!parsed) return {};
    out.push_back(*parsed);
  }
  return out;
}

Diagnostics match_signature(std::string_view body, std::string_view body_file, CallSpec& spec) {
  const std::vector<BodyArgument> arguments = body_arguments(body);
  if (arguments.empty()) return {};
  const SourceLoc where(std::string(body_file), line_of(body, first_block(body)), 0);
  const std::vector<int> results = kernel_results(spec);
  const size_t wanted = spec.operands.size() + results.size();
  const auto first = std::find_if(arguments.begin(), arguments.end(),
                                  [](const BodyArgument& a) { return a.is_memref; });
  const auto memrefs = static_cast<size_t>(arguments.end() - first);
  Diagnostics out;
  const auto complain = [&](std::string message) {
    out.push_back({.kind = "shape_mismatch",
                   .message = std::move(message),
                   .where = where,
                   .hint = "operands come first, then results, in the order of the call; scratch "
                           "arguments follow"});
  };
  if (memrefs < wanted) {
    complain(
        fmt::format("the call has {} operands and {} results, but the kernel takes only {} refs",
                    spec.operands.size(), results.size(), memrefs));
    return out;
  }
  const bool grid = first != arguments.begin();
  for (size_t i = 0; i < wanted; ++i) {
    const bool is_operand = i < spec.operands.size();
    const size_t number = is_operand ? i : static_cast<size_t>(results[i - spec.operands.size()]);
    OperandSpec& call = is_operand ? spec.operands[number] : spec.results[number];
    const BodyArgument& argument = first[static_cast<ptrdiff_t>(i)];
    if (!grid && (argument.shape != call.shape || !same_type(argument.dtype, call.dtype))) {
      complain(fmt::format(
          "{} {} is {} in the call and {} in the kernel", is_operand ? "operand" : "result", number,
          shape_text(call.shape, call.dtype), shape_text(argument.shape, argument.dtype)));
    }
    if (call.space == Space::kAny && argument.space == "hbm") call.space = Space::kHbm;
  }
  return out;
}

}  // namespace gridless::tpu
