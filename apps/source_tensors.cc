#include "apps/source_tensors.h"

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

}  // namespace gridless::apps
