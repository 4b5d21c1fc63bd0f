#include "gridless/weights/tensor.h"

#include <algorithm>

#include "gridless/base/check.h"

namespace gridless::weights {

int64_t TensorView::elements() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

int64_t TensorView::rows() const {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) n *= shape[i];
  return n;
}

int64_t TensorView::row_elements() const { return shape.empty() ? 1 : shape.back(); }

int64_t TensorView::row_bytes() const {
  const DtypeInfo& t = info(dtype);
  return row_elements() / t.block_elements * t.block_bytes;
}

ByteView TensorView::row(int64_t r) const {
  const int64_t count = rows();
  GRIDLESS_CHECK(r >= 0 && r < count, "row {} of {} {}", r, name, shape_text(shape));
  const auto size = static_cast<size_t>(row_bytes());
  return stored.subspan(static_cast<size_t>(stored_row(r, count, rotary_heads)) * size, size);
}

int64_t stored_row(int64_t r, int64_t rows, int64_t heads) {
  if (heads == 0) return r;
  const int64_t width = rows / heads;
  const int64_t head = r / width;
  const int64_t half = (r % width) / (width / 2);  // 0: first of the pair, 1: second
  const int64_t pair = (r % width) % (width / 2);
  return head * width + 2 * pair + half;
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 80;
  std::string out(text.substr(0, kLongest));
  for (char& c : out)
    if (c < 0x20 || c == 0x7f || static_cast<unsigned char>(c) >= 0x80) c = '?';
  if (text.size() > kLongest) out += "...";
  return out;
}

Result<uint64_t> count_elements(std::string_view tensor, std::span<const int64_t> shape) {
  uint64_t n = 1;
  bool overflow = false;
  bool empty = false;
  for (const int64_t d : shape) {
    // An extent of 0 counts as 1 here, so that products of some of the dimensions are safe as well.
    empty |= d == 0;
    const auto extent = static_cast<uint64_t>(d == 0 ? 1 : d);
    overflow |= d < 0 || __builtin_mul_overflow(n, extent, &n) || n >> 62 != 0;
  }
  if (overflow)
    return input_error("tensor '{}' has the absurd shape {}: the file is damaged",
                       printable(tensor), shape_text(shape));
  return empty ? 0 : n;
}

Result<void> check_layout(std::span<const TensorView> tensors, ByteView data, bool complete) {
  std::vector<const TensorView*> order;
  for (const TensorView& t : tensors)
    if (!t.stored.empty()) order.push_back(&t);
  std::ranges::stable_sort(order, {}, [](const TensorView* t) { return t->stored.data(); });
  const auto at = [&](const uint8_t* p) { return static_cast<uint64_t>(p - data.data()); };
  const uint8_t* end = data.data();
  const TensorView* before = nullptr;
  for (const TensorView* t : order) {
    if (t->stored.data() < end)
      return input_error(
          "tensors '{}' and '{}' overlap (bytes {} to {} of the data belong to both): the file is "
          "damaged, fetch it again",
          printable(before->name), printable(t->name), at(t->stored.data()),
          std::min(at(end), at(t->stored.data() + t->stored.size())));
    if (complete && t->stored.data() != end)
      return input_error("{} bytes before tensor '{}' belong to no tensor: the file is damaged",
                         t->stored.data() - end, printable(t->name));
    end = t->stored.data() + t->stored.size();
    before = t;
  }
  if (complete && at(end) != data.size())
    return input_error("{} bytes after the last tensor{} belong to no tensor: the file is damaged",
                       data.size() - at(end),
                       before ? fmt::format(" '{}'", printable(before->name)) : "");
  return {};
}

}  // namespace gridless::weights
