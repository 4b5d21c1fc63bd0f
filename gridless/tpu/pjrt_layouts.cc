#include "gridless/tpu/pjrt_layouts.h"

#include <charconv>

namespace gridless::tpu {
namespace {

using abi::LayoutsExtension;

const LayoutsExtension* layouts_extension(const abi::Api& api) {
  const auto* extension = static_cast<const abi::Extension*>(api.extension_start);
  while (extension != nullptr && extension->type != abi::kLayoutsExtension)
    extension = extension->next;
  if (extension == nullptr || extension->struct_size < sizeof(LayoutsExtension)) return nullptr;
  return reinterpret_cast<const LayoutsExtension*>(extension);
}

// False when the call fails: then the plugin cannot say.
template <typename Args>
bool try_layouts(const abi::Api& api, const LayoutsExtension& extension, int function, Args& args) {
  void* f = extension.functions[function];
  if (f == nullptr) return false;
  abi::Error* error = reinterpret_cast<abi::Error* (*)(Args*)>(f)(&args);
  if (error != nullptr) take_error(api, error);
  return error == nullptr;
}

// "8,128": numbers up to the closing character, which is taken too.
bool take_numbers(std::string_view& text, char close, std::vector<int64_t>& out) {
  for (;;) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return false;
    out.push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const char next = text.empty() ? '\0' : text[0];
    if (next != ',' && next != close) return false;
    text.remove_prefix(1);
    if (next == close) return true;
  }
}

}  // namespace

std::vector<std::string> parameter_layouts(const abi::Api& api, abi::Executable* executable) {
  const LayoutsExtension* extension = layouts_extension(api);
  if (extension == nullptr) return {};
  auto args = make_args<abi::ParameterLayoutsArgs>();
  args.executable = executable;
  if (!try_layouts(api, *extension, LayoutsExtension::kParameterLayouts, args)) return {};
  std::vector<std::string> out;
  for (size_t i = 0; i < args.num_parameters; ++i) {
    auto text = make_args<abi::SerializeLayoutArgs>();
    text.layout = args.layouts[i];
    if (!try_layouts(api, *extension, LayoutsExtension::kSerialize, text)) return {};
    out.emplace_back(text.text, text.text_size);
    if (text.deleter != nullptr) text.deleter(text.serialized);
  }
  return out;
}

Result<DeviceLayout> DeviceLayout::parse(std::string_view text) {
  const auto wrong = [whole = text] {
    return input_error("layout '{}' is none that a buffer can be given", whole);
  };
  DeviceLayout out;
  std::string_view rest = text;
  if (!rest.starts_with("{") || !rest.ends_with("}")) return wrong();
  rest.remove_prefix(1);
  const bool tiled = rest.find(':') != std::string_view::npos;
  if (!take_numbers(rest, tiled ? ':' : '}', out.minor_to_major_)) return wrong();
  if (!tiled) return rest.empty() ? Result<DeviceLayout>(std::move(out)) : wrong();
  if (!rest.starts_with("T(")) return wrong();
  for (rest.remove_prefix(1); rest.starts_with("(");) {
    rest.remove_prefix(1);
    const size_t before = out.tile_dims_.size();
    if (!take_numbers(rest, ')', out.tile_dims_)) return wrong();
    out.tile_sizes_.push_back(out.tile_dims_.size() - before);
  }
  if (rest != "}") return wrong();
  return out;
}

abi::MemoryLayout DeviceLayout::asked() const {
  auto layout = make_args<abi::MemoryLayout>();
  constexpr size_t kTiledSize = 56;  // from tiled_header to num_tiles
  layout.tiled_header.struct_size = kTiledSize;
  layout.minor_to_major = minor_to_major_.data();
  layout.num_dims = minor_to_major_.size();
  layout.tile_dims = tile_dims_.data();
  layout.tile_dim_sizes = tile_sizes_.data();
  layout.num_tiles = tile_sizes_.size();
  return layout;
}

}  // namespace gridless::tpu
