// Scanning of MLIR bytecode: variable-length integers, strings, alignment.
//
// As with text, the first mistake ends the reading: it is recorded, the reader jumps to its end,
// and everything read from then on is zero or empty. So productions need no error checks of their
// own, only loops must ask failed().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gridless::ir {

// The first mistake of a file, shared by all readers of its sections.
struct ByteFault {
  std::string message;  // empty: none so far
  size_t at = 0;        // byte of the file
};

class ByteReader {
 public:
  // `bytes` stands at `offset` in its file.
  ByteReader(std::string_view bytes, size_t offset, ByteFault& fault)
      : bytes_(bytes), offset_(offset), fault_(&fault) {}

  bool failed() const { return !fault_->message.empty(); }
  void fail(std::string message);

  size_t left() const { return failed() ? 0 : bytes_.size() - pos_; }
  size_t file_position() const { return offset_ + pos_; }

  uint8_t byte();
  uint64_t varint();
  int64_t signed_varint();  // zigzag
  // A varint that counts things of at least one byte each in the rest of this reader.
  size_t count(std::string_view what);
  // A varint below `size`.
  size_t index(size_t size, std::string_view what);
  std::string_view bytes(uint64_t length, std::string_view what);
  std::string_view blob();         // a varint, and as many bytes
  std::string_view terminated();   // up to a zero byte, which is skipped
  void align(uint64_t alignment);  // skips padding up to a multiple, counted from the file's start
  // A reader of the next `length` bytes, which this one skips.
  ByteReader part(uint64_t length, std::string_view what);

 private:
  std::string_view bytes_;
  size_t offset_ = 0, pos_ = 0;
  ByteFault* fault_;
};

}  // namespace gridless::ir
