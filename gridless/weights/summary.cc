#include "gridless/weights/summary.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace gridless::weights {

std::string without_numbers(std::string_view name) {
  std::string out;
  while (true) {
    const size_t dot = name.find('.');
    const std::string_view part = name.substr(0, dot);
    const bool number =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    out += number ? "*" : part;
    if (dot == std::string_view::npos) return out;
    out += '.';
    name.remove_prefix(dot + 1);
  }
}

Summary summarise(std::span<const TensorView> tensors) {
  Summary out;
  std::map<Dtype, FormatUse> formats;
  std::map<std::tuple<std::string, Dtype, std::vector<int64_t>>, TensorKind> kinds;
  for (const TensorView& t : tensors) {
    const auto elements = static_cast<uint64_t>(t.elements());
    out.elements += elements;
    out.bytes += t.stored.size();
    FormatUse& format = formats[t.dtype];
    format.dtype = t.dtype;
    ++format.tensors;
    format.elements += elements;
    format.bytes += t.stored.size();
    const std::string name = without_numbers(t.name);
    TensorKind& kind = kinds[{name, t.dtype, t.shape}];
    kind.name = name;
    kind.dtype = t.dtype;
    kind.shape = t.shape;
    ++kind.tensors;
    kind.bytes += t.stored.size();
  }
  for (auto& [dtype, format] : formats) out.formats.push_back(format);
  std::ranges::stable_sort(out.formats, std::greater(), &FormatUse::bytes);
  for (auto& [key, kind] : kinds) out.kinds.push_back(std::move(kind));
  return out;
}

}  // namespace gridless::weights
