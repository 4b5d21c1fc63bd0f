#include "gridless/weights/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "gridless/base/check.h"
#include "gridless/base/json.h"

namespace gridless::weights {
namespace {

using nlohmann::json;

// The limit of the format's own reader.
constexpr uint64_t kLargestHeader = 100'000'000;

// Parses JSON, refusing what the JSON library would quietly accept: a key that appears twice.
Result<json> parse_object(std::string_view text, std::string_view what) {
  TRY_VOID(check_json_depth(text, what));
  std::vector<std::set<std::string>> seen;  // the keys of each open object
  std::string twice;
  const auto on_event = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) seen.emplace_back();
    if (event == json::parse_event_t::object_end) seen.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!seen.back().insert(key).second && twice.empty()) twice = key;
    }
    return true;
  };
  try {
    json out = json::parse(text, on_event);
    if (!twice.empty())
      return input_error("{}: '{}' appears twice: the file is damaged", what, printable(twice));
    if (!out.is_object()) return input_error("{} is not a JSON object", what);
    return out;
  } catch (const json::exception& e) {
    return input_error("{} is not valid JSON ({}): the file is damaged", what, printable(e.what()));
  }
}

// A JSON integer in [0, 2^63), or nothing. Written out, because the JSON library converts freely.
std::optional<uint64_t> extent_of(const json& j) {
  if (!j.is_number_unsigned()) return std::nullopt;
  const auto n = j.get<uint64_t>();
  if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return n;
}

Result<TensorView> parse_entry(const std::string& name, const json& entry, ByteView data) {
  const std::string what = fmt::format("tensor '{}'", printable(name));
  if (!entry.is_object()) return input_error("{}: its entry is not an object: damaged", what);
  const auto dtype = entry.find("dtype");
  const auto shape = entry.find("shape");
  const auto offsets = entry.find("data_offsets");
  if (dtype == entry.end() || !dtype->is_string() || shape == entry.end() || !shape->is_array() ||
      offsets == entry.end() || !offsets->is_array() || offsets->size() != 2)
    return input_error("{}: its entry lacks a dtype, a shape or two data_offsets: damaged", what);

  TensorView t;
  t.name = name;
  const auto& spelled = dtype->get_ref<const std::string&>();
  const std::optional<Dtype> known = dtype_of_safetensors(spelled);
  if (!known) return input_error("{} has the unknown dtype '{}'", what, printable(spelled));
  t.dtype = *known;
  for (const json& d : *shape) {
    const std::optional<uint64_t> extent = extent_of(d);
    if (!extent) return input_error("{}: its shape holds something that is no size: damaged", what);
    t.shape.push_back(static_cast<int64_t>(*extent));
  }
  TRY(const uint64_t elements, count_elements(name, t.shape));
  if (t.row_elements() % info(t.dtype).block_elements != 0)
    return input_error("{}: rows of {} {} do not fill whole bytes", what, t.row_elements(),
                       spelled);
  const std::optional<uint64_t> size = bytes_of(t.dtype, elements);
  const std::optional<uint64_t> begin = extent_of((*offsets)[0]);
  const std::optional<uint64_t> end = extent_of((*offsets)[1]);
  if (!size || !begin || !end || *begin > *end)
    return input_error("{}: its data_offsets are no range: the file is damaged", what);
  if (*end - *begin != *size)
    return input_error("{}: {} {} takes {} bytes, but its data_offsets span {}: damaged", what,
                       spelled, shape_text(t.shape), *size, *end - *begin);
  if (*end > data.size())
    return input_error(
        "{} ends at byte {} of the data, which has {}: the file is truncated, fetch it again", what,
        *end, data.size());
  t.stored = data.subspan(*begin, *size);
  return t;
}

}  // namespace

Result<Safetensors> Safetensors::parse(ByteView bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length)
    return input_error("not a safetensors file: it has {} bytes", bytes.size());
  std::memcpy(&length, bytes.data(), sizeof length);
  const ByteView rest = bytes.subspan(sizeof length);
  if (length > kLargestHeader)
    return input_error("the header claims {} bytes (at most {} are legal): not a safetensors file",
                       length, kLargestHeader);
  if (length > rest.size())
    return input_error(
        "the header claims {} bytes, but {} follow: the file is truncated, fetch it again", length,
        rest.size());
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), length);
  if (!text.starts_with('{'))
    return input_error("the header does not start with '{{': not a safetensors file");
  TRY(const json header, parse_object(text, "the header"));

  Safetensors out;
  const ByteView data = rest.subspan(length);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) return input_error("__metadata__ is not an object: damaged");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string())
          return input_error("__metadata__ '{}' is not a string: damaged", printable(key));
        out.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    TRY(TensorView t, parse_entry(name, entry, data));
    out.tensors.push_back(std::move(t));
  }
  std::ranges::stable_sort(out.tensors, {}, [](const TensorView& t) { return t.stored.data(); });
  TRY_VOID(check_layout(out.tensors, data, /*complete=*/true));
  return out;
}

const TensorView* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &TensorView::name);
  return found == tensors.end() ? nullptr : &*found;
}

Result<std::map<std::string, std::string>> parse_safetensors_index(std::string_view text) {
  TRY(const json index, parse_object(text, "the index"));
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object())
    return input_error("the index has no 'weight_map' object: fetch it again");
  std::map<std::string, std::string> out;
  for (const auto& [name, file] : weight_map->items()) {
    if (!file.is_string())
      return input_error("the index names no file for tensor '{}'", printable(name));
    const auto& shard = file.get_ref<const std::string&>();
    // A path could point anywhere on the user's disk; real indexes hold plain names.
    if (shard.empty() || shard.front() == '.' || shard.find('/') != std::string::npos ||
        shard.find('\0') != std::string::npos)
      return input_error("the index puts tensor '{}' into '{}', which is no plain file name",
                         printable(name), printable(shard));
    out[name] = shard;
  }
  return out;
}

Result<void> write_safetensors(const std::string& path, std::span<const TensorToWrite> tensors,
                               const std::map<std::string, std::string>& metadata) {
  std::vector<size_t> order(tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater(),
                           [&](size_t i) { return info(tensors[i].dtype).block_bytes; });

  std::vector<uint64_t> begin(tensors.size());
  uint64_t end = 0;
  for (const size_t i : order) {
    begin[i] = end;
    end += tensors[i].bytes.size();
  }
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorToWrite& t = tensors[i];
    GRIDLESS_CHECK(info(t.dtype).safetensors, "{} cannot be in a safetensors file", name(t.dtype));
    GRIDLESS_CHECK(names.insert(t.name).second, "tensor '{}' given twice", t.name);
    TRY(const uint64_t elements, count_elements(t.name, t.shape));
    GRIDLESS_CHECK(bytes_of(t.dtype, elements) == t.bytes.size(), "'{}' is {} {} in {} bytes",
                   t.name, name(t.dtype), shape_text(t.shape), t.bytes.size());
    header[t.name] = {{"dtype", info(t.dtype).name},
                      {"shape", t.shape},
                      {"data_offsets", {begin[i], begin[i] + t.bytes.size()}}};
  }
  // Names that are no UTF-8 cannot be written; the library would throw.
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  const uint64_t length = text.size();
  std::vector<ByteView> parts = {
      ByteView(reinterpret_cast<const uint8_t*>(&length), sizeof length),
      ByteView(reinterpret_cast<const uint8_t*>(text.data()), text.size())};
  for (const size_t i : order) parts.push_back(tensors[i].bytes);
  return write_file(path, parts);
}

}  // namespace gridless::weights
