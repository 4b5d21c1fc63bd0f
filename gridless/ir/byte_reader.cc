#include "gridless/ir/byte_reader.h"

#include <fmt/format.h>

#include <bit>

namespace gridless::ir {

void ByteReader::fail(std::string message) {
  if (failed()) return;
  fault_->message = std::move(message);
  fault_->at = file_position();
}

uint8_t ByteReader::byte() {
  if (left() == 0) {
    fail("the file ends too early");
    return 0;
  }
  return static_cast<uint8_t>(bytes_[pos_++]);
}

// The number of trailing zeros of the first byte says how many bytes follow; the value stands above
// the lowest one. A first byte of 0 means eight whole bytes.
uint64_t ByteReader::varint() {
  const uint8_t first = byte();
  if (failed()) return 0;
  const int more = first == 0 ? 8 : std::countr_zero(first);
  if (left() < static_cast<size_t>(more)) {
    fail("an integer reaches beyond its section");
    return 0;
  }
  uint64_t v = 0;
  for (int i = more; i-- > 0;) {
    v = v << 8 | static_cast<uint8_t>(bytes_[pos_ + static_cast<size_t>(i)]);
  }
  pos_ += static_cast<size_t>(more);
  if (more == 8) return v;
  return (v << 8 | first) >> (more + 1);
}

int64_t ByteReader::signed_varint() {
  const uint64_t v = varint();
  return static_cast<int64_t>((v >> 1) ^ (0 - (v & 1)));
}

size_t ByteReader::count(std::string_view what) {
  const uint64_t n = varint();
  if (n > left()) {
    fail(fmt::format("{} {} in {} bytes", n, what, left()));
    return 0;
  }
  return static_cast<size_t>(n);
}

size_t ByteReader::index(size_t size, std::string_view what) {
  const uint64_t n = varint();
  if (!failed() && n >= size) fail(fmt::format("{} number {} of {}", what, n, size));
  return failed() ? 0 : static_cast<size_t>(n);
}

std::string_view ByteReader::bytes(uint64_t length, std::string_view what) {
  if (length > left()) {
    fail(fmt::format("{} of {} bytes where {} are left", what, length, left()));
    return {};
  }
  const std::string_view out = bytes_.substr(pos_, static_cast<size_t>(length));
  pos_ += out.size();
  return out;
}

std::string_view ByteReader::blob() {
  const uint64_t length = varint();
  return bytes(length, "data");
}

std::string_view ByteReader::terminated() {
  const size_t end = failed() ? std::string_view::npos : bytes_.find('\0', pos_);
  if (end == std::string_view::npos) {
    fail("a string without an end");
    return {};
  }
  const std::string_view out = bytes_.substr(pos_, end - pos_);
  pos_ = end + 1;
  return out;
}

void ByteReader::align(uint64_t alignment) {
  if (!std::has_single_bit(alignment) || alignment > 4096) {
    fail(fmt::format("an alignment of {} bytes", alignment));
    return;
  }
  while (!failed() && file_position() % alignment != 0) {
    if (byte() != 0xCB) fail("padding that is not padding");
  }
}

ByteReader ByteReader::part(uint64_t length, std::string_view what) {
  const size_t from = file_position();
  return ByteReader(bytes(length, what), from, *fault_);
}

}  // namespace gridless::ir
