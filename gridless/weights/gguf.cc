#include "gridless/weights/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_set>

namespace gridless::weights {
namespace {

static_assert(std::endian::native == std::endian::little, "the file's numbers are read in place");

// Arrays of arrays are legal but nobody writes more than two levels; a limit keeps a hostile file
// from using up our stack.
constexpr int kDeepestArray = 8;
constexpr uint32_t kHighestRank = 4;
constexpr uint64_t kLargestAlignment = uint64_t{1} << 20;

// Bytes of one value of a fixed-size type; 0 for strings, arrays and unknown types.
size_t size_of(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

template <typename T>
T load(const uint8_t* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

GgufValue load_number(GgufType type, const uint8_t* p) {
  switch (type) {
    case GgufType::kU8:
      return {type, uint64_t{*p}};
    case GgufType::kI8:
      return {type, int64_t{load<int8_t>(p)}};
    case GgufType::kU16:
      return {type, uint64_t{load<uint16_t>(p)}};
    case GgufType::kI16:
      return {type, int64_t{load<int16_t>(p)}};
    case GgufType::kU32:
      return {type, uint64_t{load<uint32_t>(p)}};
    case GgufType::kI32:
      return {type, int64_t{load<int32_t>(p)}};
    case GgufType::kF32:
      return {type, double{load<float>(p)}};
    case GgufType::kU64:
      return {type, load<uint64_t>(p)};
    case GgufType::kI64:
      return {type, load<int64_t>(p)};
    case GgufType::kF64:
      return {type, load<double>(p)};
    case GgufType::kBool:
      return {type, *p != 0};
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return {};
}

class Parser {
 public:
  explicit Parser(ByteView bytes) : bytes_(bytes) {}

  Result<Gguf> run() {
    TRY_VOID(preamble());
    const size_t first = at_;
    for (uint64_t i = 0; i < metadata_count_; ++i) TRY_VOID(metadata_entry());
    out_.metadata_bytes = bytes_.subspan(first, at_ - first);
    TRY_VOID(read_alignment());
    // Tensor data starts after the last tensor's description, so the descriptions are read first.
    for (uint64_t i = 0; i < tensor_count_; ++i) TRY_VOID(tensor_description(i));
    TRY_VOID(place_tensors());
    return std::move(out_);
  }

 private:
  struct Described {
    uint64_t offset;
    uint64_t size;
  };

  size_t left() const { return bytes_.size() - at_; }

  template <typename T>
  Result<T> read(std::string_view what) {
    if (left() < sizeof(T)) return truncated(what);
    const T x = load<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return x;
  }

  std::unexpected<Error> truncated(std::string_view what) const {
    return input_error("the file ends after {} bytes, inside {}: it is truncated, fetch it again",
                       bytes_.size(), what);
  }

  Result<std::string_view> read_string(std::string_view what) {
    TRY(const uint64_t length, read<uint64_t>(what));
    if (length > left())
      return input_error("{} claims {} bytes where {} are left: the file is truncated or damaged",
                         what, length, left());
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + at_), length);
    at_ += length;
    return text;
  }

  Result<void> preamble() {
    if (bytes_.size() < 4 || std::memcmp(bytes_.data(), "GGUF", 4) != 0)
      return input_error("not a GGUF file: it does not start with 'GGUF'");
    at_ = 4;
    TRY(out_.version, read<uint32_t>("the header"));
    if (out_.version != 2 && out_.version != 3) {
      const uint32_t swapped = __builtin_bswap32(out_.version);
      if (swapped == 2 || swapped == 3)
        return input_error("a big-endian GGUF file; convert it to a little-endian one");
      return input_error("GGUF version {} is not supported (2 and 3 are); convert the model again",
                         out_.version);
    }
    TRY(tensor_count_, read<uint64_t>("the header"));
    TRY(metadata_count_, read<uint64_t>("the header"));
    // The least that one entry takes: key or name length, type, and a value or rank and offset.
    constexpr uint64_t kLeastMetadata = 8 + 4 + 1;
    constexpr uint64_t kLeastTensor = 8 + 4 + 4 + 8;
    if (metadata_count_ > left() / kLeastMetadata)
      return input_error(
          "the header claims {} metadata entries, which {} bytes cannot hold: damaged",
          metadata_count_, left());
    if (tensor_count_ > left() / kLeastTensor)
      return input_error("the header claims {} tensors, which {} bytes cannot hold: damaged",
                         tensor_count_, left());
    return {};
  }

  Result<void> metadata_entry() {
    TRY(const std::string_view key, read_string("a metadata key"));
    if (!keys_.insert(key).second)
      return input_error("metadata key '{}' appears twice", printable(key));
    const std::string what = fmt::format("metadata '{}'", printable(key));
    TRY(const uint32_t type, read<uint32_t>(what));
    TRY(GgufValue value, read_value(type, what, 0));
    out_.metadata.push_back({key, std::move(value)});
    return {};
  }

  Result<GgufValue> read_value(uint32_t type_number, std::string_view what, int depth) {
    if (type_number > static_cast<uint32_t>(GgufType::kF64))
      return input_error("{} has the unknown value type {}: the file is damaged", what,
                         type_number);
    const auto type = static_cast<GgufType>(type_number);
    if (type == GgufType::kString) {
      TRY(const std::string_view text, read_string(what));
      return GgufValue{type, text};
    }
    if (type == GgufType::kArray) {
      TRY(GgufArray array, read_array(what, depth));
      return GgufValue{type, std::move(array)};
    }
    const size_t size = size_of(type);
    if (left() < size) return truncated(what);
    const uint8_t* p = bytes_.data() + at_;
    if (type == GgufType::kBool && *p > 1)
      return input_error("{} is a boolean with value {}: the file is damaged", what, *p);
    at_ += size;
    return load_number(type, p);
  }

  Result<GgufArray> read_array(std::string_view what, int depth) {
    if (depth >= kDeepestArray)
      return input_error("{} nests arrays more than {} deep: the file is damaged", what,
                         kDeepestArray);
    GgufArray out;
    TRY(const uint32_t element, read<uint32_t>(what));
    TRY(out.count, read<uint64_t>(what));
    if (element > static_cast<uint32_t>(GgufType::kF64))
      return input_error("{} is an array of the unknown type {}: the file is damaged", what,
                         element);
    out.element = static_cast<GgufType>(element);
    // The least bytes per element: a string is at least its length, an array its type and count.
    const size_t size = size_of(out.element);
    const size_t least = size ? size : out.element == GgufType::kString ? 8 : 12;
    if (out.count > left() / least)
      return input_error("{} claims {} elements where {} bytes are left: truncated or damaged",
                         what, out.count, left());
    if (size) {
      out.numbers = bytes_.subspan(at_, out.count * size);
      at_ += out.numbers.size();
      return out;
    }
    for (uint64_t i = 0; i < out.count; ++i) {
      if (out.element == GgufType::kString) {
        TRY(const std::string_view text, read_string(what));
        out.strings.push_back(text);
      } else {
        TRY(GgufArray inner, read_array(what, depth + 1));
        out.arrays.push_back({GgufType::kArray, std::move(inner)});
      }
    }
    return out;
  }

  Result<void> read_alignment() {
    const GgufValue* value = out_.find("general.alignment");
    if (!value) return {};
    const int64_t alignment = value->integer().value_or(0);
    if (alignment <= 0 || !std::has_single_bit(static_cast<uint64_t>(alignment)) ||
        static_cast<uint64_t>(alignment) > kLargestAlignment)
      return input_error("general.alignment is {}, not a power of two up to {}", alignment,
                         kLargestAlignment);
    out_.alignment = static_cast<uint64_t>(alignment);
    return {};
  }

  Result<void> tensor_description(uint64_t index) {
    TensorView t;
    TRY(const std::string_view name, read_string(fmt::format("the name of tensor {}", index)));
    t.name = name;
    if (!names_.insert(name).second)
      return input_error("tensor '{}' appears twice: the file is damaged", printable(name));
    const std::string what = fmt::format("tensor '{}'", printable(name));
    TRY(const uint32_t rank, read<uint32_t>(what));
    if (rank < 1 || rank > kHighestRank)
      return input_error("{} has {} dimensions (1 to {} are possible): damaged", what, rank,
                         kHighestRank);
    for (uint32_t d = 0; d < rank; ++d) {
      TRY(const uint64_t extent, read<uint64_t>(what));
      if (extent == 0 || extent > std::numeric_limits<int64_t>::max())
        return input_error("{} has a dimension of {}: damaged", what, extent);
      t.shape.insert(t.shape.begin(), static_cast<int64_t>(extent));  // fastest first in the file
    }
    TRY(const uint32_t type, read<uint32_t>(what));
    const std::optional<Dtype> dtype = dtype_of_ggml(type);
    if (!dtype)
      return input_error("{} has the unknown ggml type {}: convert the model to F16, BF16 or Q8_0",
                         what, type);
    t.dtype = *dtype;
    TRY(const uint64_t offset, read<uint64_t>(what));
    TRY(const uint64_t elements, count_elements(name, t.shape));
    const uint32_t block = info(t.dtype).block_elements;
    if (t.shape.back() % block != 0)
      return input_error("{} is {} with rows of {}, which blocks of {} do not divide: damaged",
                         what, weights::name(t.dtype), t.shape.back(), block);
    const std::optional<uint64_t> size = bytes_of(t.dtype, elements);
    if (!size) return input_error("{} has the absurd shape {}", what, shape_text(t.shape));
    out_.tensors.push_back(std::move(t));
    described_.push_back({offset, *size});
    return {};
  }

  Result<void> place_tensors() {
    const uint64_t start = (at_ + out_.alignment - 1) / out_.alignment * out_.alignment;
    out_.data_offset = start;
    if (out_.tensors.empty()) return {};
    const ByteView data = start < bytes_.size() ? bytes_.subspan(start) : ByteView();
    for (size_t i = 0; i < out_.tensors.size(); ++i) {
      TensorView& t = out_.tensors[i];
      const auto [offset, size] = described_[i];
      if (offset % out_.alignment != 0)
        return input_error("tensor '{}' starts at {}, not a multiple of the alignment {}: damaged",
                           printable(t.name), offset, out_.alignment);
      if (offset > data.size() || size > data.size() - offset)
        return input_error(
            "tensor '{}' ({} {}) needs {} bytes at offset {} of the data, which has {}: the file "
            "is "
            "truncated, fetch it again",
            printable(t.name), weights::name(t.dtype), shape_text(t.shape), size, offset,
            data.size());
      t.stored = data.subspan(offset, size);
    }
    return check_layout(out_.tensors, data, /*complete=*/false);
  }

  ByteView bytes_;
  size_t at_ = 0;
  uint64_t tensor_count_ = 0;
  uint64_t metadata_count_ = 0;
  std::unordered_set<std::string_view> keys_;
  std::unordered_set<std::string_view> names_;
  std::vector<Described> described_;
  Gguf out_;
};

}  // namespace

GgufValue GgufArray::number(uint64_t i) const {
  return load_number(element, numbers.data() + i * size_of(element));
}

std::optional<int64_t> GgufValue::integer() const {
  if (const auto* u = std::get_if<uint64_t>(&value);
      u && *u <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return static_cast<int64_t>(*u);
  if (const auto* i = std::get_if<int64_t>(&value)) return *i;
  return std::nullopt;
}

std::optional<double> GgufValue::number() const {
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* u = std::get_if<uint64_t>(&value)) return static_cast<double>(*u);
  if (const auto* i = std::get_if<int64_t>(&value)) return static_cast<double>(*i);
  return std::nullopt;
}

std::optional<bool> GgufValue::boolean() const {
  const auto* b = std::get_if<bool>(&value);
  return b ? std::optional(*b) : std::nullopt;
}

std::optional<std::string_view> GgufValue::string() const {
  const auto* s = std::get_if<std::string_view>(&value);
  return s ? std::optional(*s) : std::nullopt;
}

const GgufArray* GgufValue::array() const { return std::get_if<GgufArray>(&value); }

Result<Gguf> Gguf::parse(ByteView bytes) { return Parser(bytes).run(); }

std::vector<uint8_t> Gguf::without_tensors() const {
  std::vector<uint8_t> out = {'G', 'G', 'U', 'F'};
  const auto append = [&](const auto& x) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&x);
    out.insert(out.end(), bytes, bytes + sizeof(x));
  };
  append(version);
  append(uint64_t{0});
  append(static_cast<uint64_t>(metadata.size()));
  out.insert(out.end(), metadata_bytes.begin(), metadata_bytes.end());
  return out;
}

const GgufValue* Gguf::find(std::string_view key) const {
  const auto found = std::ranges::find(metadata, key, &GgufEntry::key);
  return found == metadata.end() ? nullptr : &found->value;
}

}  // namespace gridless::weights
