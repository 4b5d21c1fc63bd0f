#include "gridless/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gridless {
namespace {

// Closes on every way out.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// A missing file is the user's to fix, everything else (permissions, I/O errors) the machine's.
std::unexpected<Error> system_error(const std::string& path, const char* what) {
  const int code = errno;
  const bool input = code == ENOENT || code == ENOTDIR || code == EISDIR || code == EACCES;
  return std::unexpected(Error{input ? Error::Kind::kInput : Error::Kind::kMachine,
                               fmt::format("{}: cannot {}: {}", path, what, std::strerror(code))});
}

Result<void> write_all(int fd, ByteView part, const std::string& path) {
  while (!part.empty()) {
    const ssize_t n = ::write(fd, part.data(), part.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(path, "write");
    part = part.subspan(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer, only to be refused then.
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return system_error(path, "open");
  struct stat info{};
  if (::fstat(file.fd, &info) != 0) return system_error(path, "stat");
  if (S_ISDIR(info.st_mode)) return input_error("{}: is a directory, not a file", path);
  if (!S_ISREG(info.st_mode)) return input_error("{}: is not a regular file", path);
  MappedFile out;
  out.path_ = path;
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return out;  // mmap refuses length 0
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return system_error(path, "map");
  out.view_ = {static_cast<const uint8_t*>(data), size};
  out.mapped_ = true;
  return out;
}

MappedFile MappedFile::from_bytes(std::vector<uint8_t> bytes, std::string name) {
  MappedFile out;
  out.path_ = std::move(name);
  out.memory_ = std::move(bytes);
  out.view_ = out.memory_;
  return out;
}

void MappedFile::release_pages() const {
  if (mapped_) ::madvise(const_cast<uint8_t*>(view_.data()), view_.size(), MADV_DONTNEED);
}

MappedFile::~MappedFile() { release(); }

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  release();
  path_ = std::move(other.path_);
  memory_ = std::move(other.memory_);
  view_ = std::exchange(other.view_, {});
  mapped_ = std::exchange(other.mapped_, false);
  return *this;
}

void MappedFile::release() {
  if (mapped_) ::munmap(const_cast<uint8_t*>(view_.data()), view_.size());
  mapped_ = false;
  view_ = {};
}

Result<void> write_file(const std::string& path, std::span<const ByteView> parts) {
  const std::string draft = fmt::format("{}.{}.part", path, ::getpid());
  const Result<void> written = [&]() -> Result<void> {
    Descriptor file{::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (file.fd < 0) return system_error(path, "create");
    for (const ByteView part : parts) TRY_VOID(write_all(file.fd, part, path));
    // Delayed write errors (quota, network file systems) only show here.
    if (::close(std::exchange(file.fd, -1)) != 0) return system_error(path, "write");
    if (::rename(draft.c_str(), path.c_str()) != 0) return system_error(path, "replace");
    return {};
  }();
  if (!written) ::unlink(draft.c_str());
  return written;
}

Result<void> write_file(const std::string& path, std::string_view text) {
  const ByteView part(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  return write_file(path, {&part, 1});
}

Result<std::string> read_text_file(const std::string& path) {
  TRY(const MappedFile file, MappedFile::open(path));
  const ByteView bytes = file.bytes();
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace gridless
