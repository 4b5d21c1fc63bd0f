#include "apps/source_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gridless/base/mapped_file.h"
#include "gridless/weights/safetensors.h"

namespace gridless::apps {
namespace {

using weights::Dtype;

template <typename T>
std::vector<int64_t> widen(ByteView stored) {
  std::vector<int64_t> out(stored.size() / sizeof(T));
  for (size_t k = 0; k < out.size(); ++k) {
    T value;
    std::memcpy(&value, stored.data() + k * sizeof(T), sizeof(T));
    out[k] = static_cast<int64_t>(value);
  }
  return out;
}

std::optional<std::vector<int64_t>> integers(const weights::TensorView& t) {
  switch (t.dtype) {
    case Dtype::kI8:
      return widen<int8_t>(t.stored);
    case Dtype::kU8:
      return widen<uint8_t>(t.stored);
    case Dtype::kI16:
      return widen<int16_t>(t.stored);
    case Dtype::kU16:
      return widen<uint16_t>(t.stored);
    case Dtype::kI32:
      return widen<int32_t>(t.stored);
    case Dtype::kU32:
      return widen<uint32_t>(t.stored);
    case Dtype::kI64:
      return widen<int64_t>(t.stored);
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<std::optional<emulate::SourceValues>> read_sources(const std::string& path,
                                                          std::span<const ir::Source> sources,
                                                          int cores) {
  if (sources.empty()) return std::nullopt;
  TRY(const MappedFile file, MappedFile::open(path));
  auto tensors = weights::Safetensors::parse(file.bytes());
  if (!tensors) return std::unexpected(tensors.error().in(path));
  std::map<std::string, emulate::SourceValues::Tensor> found;
  for (const ir::Source& s : sources) {
    const weights::TensorView* t = tensors->find(s.name);
    if (!t) continue;
    auto values = integers(*t);
    if (!values)
      return input_error("{}: {} is {}; a source takes integers", path, s.name,
                         weights::name(t->dtype));
    found[s.name] = {ir::Shape(t->shape.begin(), t->shape.end()), std::move(*values)};
  }
  if (found.empty()) return std::nullopt;
  auto values = emulate::SourceValues::of_tensors(std::move(found));
  if (const std::string wrong = values.problem(sources, cores); !wrong.empty())
    return input_error("{}: {}", path, wrong);
  return values;
}

std::vector<std::string> names_of(const ir::Call& call, std::span<const ir::Source> sources) {
  std::vector<std::string> names;
  for (size_t k = 0; k < call.operands.size(); ++k) {
    names.push_back(fmt::format("in{}", k));
    if (call.operands[k].name != names.back()) names.push_back(call.operands[k].name);
  }
  for (const ir::Source& s : sources) names.push_back(s.name);
  return names;
}

Result<void> check_names(const std::string& path, const std::vector<std::string>& names) {
  TRY(const MappedFile file, MappedFile::open(path));
  const auto tensors = weights::Safetensors::parse(file.bytes());
  if (!tensors) return std::unexpected(tensors.error().in(path));
  if (std::ranges::any_of(names, [&](const std::string& n) { return tensors->find(n); })) return {};
  constexpr size_t kMostNamed = 12;
  const auto some = [&](const std::vector<std::string>& all) {
    const size_t n = std::min(all.size(), kMostNamed);
    return fmt::format("{}{}", fmt::join(all.begin(), all.begin() + static_cast<long>(n), ", "),
                       n < all.size() ? ", ..." : "");
  };
  std::vector<std::string> held;
  for (const weights::TensorView& t : tensors->tensors) held.emplace_back(t.name);
  if (names.empty()) return input_error("{}: the kernel takes no values", path);
  return input_error("{} holds {}, none of which the kernel takes; it takes {}", path,
                     held.empty() ? "no tensors" : some(held), some(names));
}

void add_scalars_option(CLI::App* command, const std::string& names, std::string& file,
                        std::string_view more) {
  command
      ->add_option(names, file,
                   fmt::format("Values of named scalar sources, by their names. {}", more))
      ->option_text("FILE.safetensors");
}

}  // namespace gridless::apps
