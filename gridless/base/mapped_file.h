// Files as bytes: reading by a read-only memory map, writing whole files.
//
// Weights are read where they lie: a 1 TB checkpoint is opened in milliseconds and the page cache
// is the only copy. Everything above this header works on a span of bytes, so tests hand in memory
// (from_bytes) where a user hands in a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gridless/base/error.h"

namespace gridless {

using ByteView = std::span<const uint8_t>;

// Owns a mapping (or, from_bytes, memory). Movable; moving does not move the bytes, so views stay
// valid as long as any owner lives. Reading a page of a file that somebody truncates meanwhile is a
// SIGBUS, as for every program that maps files; replace files by rename, as write_file does.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  static MappedFile from_bytes(std::vector<uint8_t> bytes, std::string name = "(memory)");

  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  ByteView bytes() const { return view_; }
  const std::string& path() const { return path_; }
  // Lets go of memory that holds pages of the file; they are read again when they are touched.
  void release_pages() const;

 private:
  void release();

  std::string path_;
  ByteView view_;
  bool mapped_ = false;
  std::vector<uint8_t> memory_;
};

// Replaces the file at `path` by the concatenation of `parts`: written beside it and renamed, so a
// reader sees the old file or the new one and never half of one.
Result<void> write_file(const std::string& path, std::span<const ByteView> parts);
Result<void> write_file(const std::string& path, std::string_view text);

// A whole (small) file as text: configs, templates, prompts.
Result<std::string> read_text_file(const std::string& path);

}  // namespace gridless
