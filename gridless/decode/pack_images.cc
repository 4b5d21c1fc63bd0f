#include "gridless/decode/pack_images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "gridless/base/json.h"
#include "gridless/base/sha256.h"
#include "gridless/emulate/kernel.h"

namespace gridless::decode {
namespace {

namespace fs = std::filesystem;
using models::ShardedModel;
using nlohmann::json;
using weights::ImageFile;
using weights::ImageManifest;

constexpr std::string_view kJournal = "images.partial.jsonl";
// What text a model needs beside its weights, as Hugging Face names it.
constexpr std::string_view kTextFiles[] = {"tokenizer.json",         "tokenizer_config.json",
                                           "tiktoken.model",         "chat_template.jinja",
                                           "generation_config.json", "special_tokens_map.json"};

std::unexpected<Error> system_error(const fs::path& path, const char* what) {
  return machine_error("{}: cannot {}: {}", path.string(), what, std::strerror(errno));
}

// Names, types, shapes and sizes of all tensors, and the size of the files.
std::string checkpoint_id(const weights::Checkpoint& c) {
  std::string text = fmt::format("{}\n", c.file_bytes());
  for (const weights::TensorView& t : c.tensors())
    text += fmt::format("{} {} {} {}\n", t.name, weights::name(t.dtype),
                        weights::shape_text(t.shape), t.stored.size());
  return sha256_hex(text);
}

// Pieces that are on the disk, by file name and place; appended to by several threads.
class Journal {
 public:
  using Key = std::tuple<std::string, uint64_t, uint64_t>;

  // `header`: what the images are to be. A journal of other images is an error.
  static Result<std::unique_ptr<Journal>> open(const fs::path& path, const json& header) {
    auto out = std::make_unique<Journal>();
    out->path_ = path;
    std::error_code ignored;
    if (fs::exists(path, ignored)) {
      TRY(const std::string text, read_text_file(path.string()));
      TRY_VOID(out->read(text, header));
    }
    out->fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (out->fd_ < 0) return system_error(path, "open");
    // A line that the machine cut off when it stopped is left behind by a new one.
    if (::ftruncate(out->fd_, static_cast<off_t>(out->whole_)) != 0)
      return system_error(path, "cut");
    if (out->whole_ == 0) TRY_VOID(out->append(header));
    return out;
  }
  Journal() = default;
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal() {
    if (fd_ >= 0) ::close(fd_);
  }

  const std::string* find(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto it = pieces_.find(key);
    return it == pieces_.end() ? nullptr : &it->second;
  }

  Result<void> add(const Key& key, std::string sha256) {
    const std::lock_guard lock(mutex_);
    TRY_VOID(append({{"file", std::get<0>(key)},
                     {"begin", std::get<1>(key)},
                     {"end", std::get<2>(key)},
                     {"sha256", sha256}}));
    pieces_.emplace(key, std::move(sha256));
    return {};
  }

  std::vector<weights::ImagePiece> pieces_of(const std::string& file) const {
    std::vector<weights::ImagePiece> out;
    for (const auto& [key, sha256] : pieces_)
      if (std::get<0>(key) == file) out.push_back({std::get<1>(key), std::get<2>(key), sha256});
    return out;
  }

 private:
  Result<void> read(std::string_view text, const json& header) {
    for (size_t at = 0, line = 0; at < text.size(); ++line) {
      const size_t end = text.find('\n', at);
      if (end == std::string_view::npos) break;
      const auto entry = parse_json(text.substr(at, end - at), path_.string());
      if (line == 0 && (!entry || *entry != header)) {
        return input_error(
            "{}: other images were begun in this folder (cores, formats or checkpoint differ): "
            "give another folder, or delete this one",
            path_.parent_path().string());
      }
      if (!entry) break;
      if (line > 0) {
        const auto text_of = [&](const char* k) {
          return entry->is_object() && entry->contains(k) && (*entry)[k].is_string()
                     ? (*entry)[k].get<std::string>()
                     : std::string();
        };
        const auto number_of = [&](const char* k) {
          return entry->is_object() && entry->contains(k) && (*entry)[k].is_number_unsigned()
                     ? (*entry)[k].get<uint64_t>()
                     : uint64_t{0};
        };
        pieces_[{text_of("file"), number_of("begin"), number_of("end")}] = text_of("sha256");
      }
      at = whole_ = end + 1;
    }
    return {};
  }

  Result<void> append(const json& entry) {
    const std::string line = entry.dump() + "\n";
    if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
      return system_error(path_, "write");
    if (::fdatasync(fd_) != 0) return system_error(path_, "write");
    return {};
  }

  fs::path path_;
  int fd_ = -1;
  size_t whole_ = 0;  // bytes of whole lines that were there
  mutable std::mutex mutex_;
  std::map<Key, std::string> pieces_;
};

// A file that is written through memory.
class MappedOutput {
 public:
  static Result<MappedOutput> open(const fs::path& path, uint64_t bytes) {
    MappedOutput out;
    out.path_ = path;
    out.bytes_ = bytes;
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return system_error(path, "open");
    // Room now rather than a fault in the middle of the work.
    const int full = bytes == 0 ? 0 : ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    if (full != 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
      if (full != 0) errno = full;
      const auto error = system_error(path, "make room for it");
      ::close(fd);
      return error;
    }
    void* data =
        ::mmap(nullptr, std::max<uint64_t>(bytes, 1), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    if (data == MAP_FAILED) return system_error(path, "map");
    out.data_ = static_cast<std::byte*>(data);
    return out;
  }
  MappedOutput() = default;
  MappedOutput(MappedOutput&& o) noexcept
      : path_(std::move(o.path_)), data_(std::exchange(o.data_, nullptr)), bytes_(o.bytes_) {}
  MappedOutput& operator=(MappedOutput&&) = delete;
  ~MappedOutput() {
    if (data_) ::munmap(data_, std::max<uint64_t>(bytes_, 1));
  }

  std::span<std::byte> bytes() const { return {data_, bytes_}; }
  std::string_view text(size_t begin, size_t end) const {
    return {reinterpret_cast<const char*>(data_) + begin, end - begin};
  }
  // Brings a part to the disk and lets go of its pages.
  Result<void> put_away(size_t begin, size_t end) const {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t from = begin / page * page;
    if (::msync(data_ + from, end - from, MS_SYNC) != 0) return system_error(path_, "write");
    ::madvise(data_ + from, end - from, MADV_DONTNEED);
    return {};
  }

 private:
  fs::path path_;
  std::byte* data_ = nullptr;
  uint64_t bytes_ = 0;
};

// All that the threads share.
struct Work {
  const weights::Checkpoint& checkpoint;
  const ShardedModel& model;
  const fs::path folder;
  Journal& journal;
  const PackProgress& progress;
  uint64_t all = 0;
  std::mutex mutex;  // of what follows
  uint64_t done = 0;
  uint64_t since_release = 0;
  std::atomic<bool> stopped = false;

  void add(uint64_t bytes) {
    constexpr uint64_t kReleaseEvery = 1 << 30;
    const std::lock_guard lock(mutex);
    done += bytes, since_release += bytes;
    if (since_release > kReleaseEvery) checkpoint.release_pages(), since_release = 0;
    if (progress && !progress(done, all)) stopped = true;
  }
};

class Watch : public models::FillWatch {
 public:
  Watch(Work& work, const MappedOutput& out, std::string name)
      : work_(work), out_(out), name_(std::move(name)) {}

  bool wanted(size_t begin, size_t end) override {
    in_pieces_ = true;
    if (work_.stopped) return false;
    if (!work_.journal.find({name_, begin, end})) return true;
    work_.add(end - begin);
    return false;
  }
  Result<void> filled(size_t begin, size_t end) override {
    std::string sha256 = sha256_hex(out_.text(begin, end));
    TRY_VOID(out_.put_away(begin, end));
    TRY_VOID(work_.journal.add({name_, begin, end}, std::move(sha256)));
    work_.add(end - begin);
    return {};
  }
  bool in_pieces() const { return in_pieces_; }

 private:
  Work& work_;
  const MappedOutput& out_;
  std::string name_;
  bool in_pieces_ = false;
};

Result<void> pack_file(Work& work, const ImageFile& file) {
  TRY(const MappedOutput out, MappedOutput::open(work.folder / file.name(), file.bytes));
  if (file.bytes == 0) return {};
  if (work.journal.find({file.name(), 0, file.bytes})) {
    work.add(file.bytes);
    return {};
  }
  Watch watch(work, out, file.name());
  TRY_VOID(
      work.model.fill(work.checkpoint, file.operand, std::max(file.core, 0), out.bytes(), &watch));
  return watch.in_pieces() ? Result<void>{} : watch.filled(0, file.bytes);
}

// The first error of any thread.
Result<void> pack_files(Work& work, const std::vector<ImageFile>& files, int threads) {
  std::atomic<size_t> next = 0;
  std::optional<Error> error;
  const auto run = [&] {
    for (size_t k; !work.stopped && (k = next++) < files.size();)
      if (const auto packed = pack_file(work, files[k]); !packed) {
        const std::lock_guard lock(work.mutex);
        if (!error) error = packed.error();
        work.stopped = true;
      }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(run);
    run();
  }
  if (error) return std::unexpected(*error);
  if (work.stopped)
    return input_error("{}: stopped; the same command goes on from here", work.folder.string());
  return {};
}

// The operands that stay the same from launch to launch.
std::vector<ImageFile> files_of(const ShardedModel& model, const ir::Call& call, int cores) {
  std::set<int> state;
  for (const auto& [result, operand] : call.aliases) state.insert(operand);
  std::vector<ImageFile> out;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const ir::CallArg& a = call.operands[i];
    if (state.contains(static_cast<int>(i)) || models::is_launch_table(a.name)) continue;
    const auto bytes = static_cast<uint64_t>(emulate::tensor_bytes(a));
    const bool each = model.per_core(a.name);
    for (int c = each ? 0 : -1; c < (each ? cores : 0); ++c)
      out.push_back({.operand = a.name, .core = c, .bytes = bytes, .pieces = {}});
  }
  return out;
}

Result<void> copy_text(const weights::Checkpoint& checkpoint, const fs::path& folder) {
  TRY_VOID(write_file((folder / "config.json").string(), checkpoint.config().dump(2) + "\n"));
  if (const weights::Gguf* gguf = checkpoint.gguf()) {
    const std::vector<uint8_t> bytes = gguf->without_tensors();
    return write_file((folder / "tokenizer.gguf").string(),
                      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  for (const std::string_view name : kTextFiles) {
    const fs::path from = fs::path(checkpoint.directory()) / name;
    std::error_code code;
    if (!fs::is_regular_file(from, code)) continue;
    fs::copy_file(from, folder / name, fs::copy_options::overwrite_existing, code);
    if (code)
      return machine_error("{}: cannot copy it to {}: {}", from.string(), folder.string(),
                           code.message());
  }
  return {};
}

}  // namespace

Result<ImageManifest> pack_images(const weights::Checkpoint& checkpoint, const models::Model& model,
                                  const PackOptions& options, const std::string& folder,
                                  const PackProgress& progress) {
  if (checkpoint.images())
    return input_error("{}: these are packed images already", checkpoint.path());
  TRY_VOID(model.check_tensors(checkpoint));
  models::StepShape shape;
  shape.formats = options.formats;
  shape.expert_groups = options.expert_groups;
  TRY(const std::unique_ptr<ShardedModel> sharded, model.on_cores(options.cores, shape));
  const auto program = sharded->program(1);
  if (!program) return machine_error("{}", to_string(program.error()));

  ImageManifest manifest;
  manifest.cores = options.cores;
  manifest.formats = {weights::spelling(options.formats.layers),
                      weights::spelling(options.formats.head),
                      weights::spelling(options.formats.experts)};
  manifest.expert_groups = options.expert_groups;
  manifest.layout = weights::layout_id(sharded->stream());
  manifest.source = checkpoint_id(checkpoint);
  const json header = manifest.to_json();
  manifest.files = files_of(*sharded, program->call, options.cores);

  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return machine_error("{}: cannot make the folder: {}", folder, code.message());
  const fs::path finished = fs::path(folder) / ImageManifest::kFile;
  if (fs::exists(finished, code)) {
    TRY(const weights::Images there, weights::Images::open(folder));
    ImageManifest same = there.manifest();
    same.files.clear(), same.left_out.clear();
    if (same.to_json() == header) return there.manifest();
    return input_error(
        "{}: holds other images (cores, formats or checkpoint differ): give another folder, or "
        "delete this one",
        folder);
  }
  TRY(const std::unique_ptr<Journal> journal, Journal::open(fs::path(folder) / kJournal, header));
  Work work{.checkpoint = checkpoint,
            .model = *sharded,
            .folder = folder,
            .journal = *journal,
            .progress = progress,
            .all = manifest.bytes()};
  TRY_VOID(pack_files(work, manifest.files, options.threads));
  for (ImageFile& f : manifest.files) f.pieces = journal->pieces_of(f.name());
  manifest.left_out = checkpoint.unasked();
  TRY_VOID(copy_text(checkpoint, folder));
  TRY_VOID(write_file(finished.string(), manifest.to_json().dump(1) + "\n"));
  fs::remove(fs::path(folder) / kJournal, code);
  return manifest;
}

}  // namespace gridless::decode
