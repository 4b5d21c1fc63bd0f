#include "gridless/weights/images.h"

#include <fmt/format.h>

#include <filesystem>

#include "gridless/base/json.h"
#include "gridless/base/sha256.h"
#include "gridless/weights/stream_layout.h"

namespace gridless::weights {
namespace {

using nlohmann::json;

constexpr int64_t kVersion = 1;
constexpr uint64_t kMostBytes = uint64_t{1} << 50;

// Values of an object of the manifest, by type; the first that is missing or wrong is the error.
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  Result<const json*> value(const char* key, json::value_t type) const {
    if (!object_.is_object()) return input_error("{}: not an object", where_);
    const auto it = object_.find(key);
    if (it == object_.end()) return input_error("{}: '{}' is missing", where_, key);
    const bool number = type == json::value_t::number_unsigned && it->is_number_unsigned();
    if (!number && it->type() != type)
      return input_error("{}: '{}' has the wrong type", where_, key);
    return &*it;
  }
  Result<uint64_t> number(const char* key, uint64_t most) const {
    TRY(const json* v, value(key, json::value_t::number_unsigned));
    const auto n = v->get<uint64_t>();
    if (n > most)
      return input_error("{}: '{}' is {}, at most {} are possible", where_, key, n, most);
    return n;
  }
  Result<std::string> text(const char* key) const {
    TRY(const json* v, value(key, json::value_t::string));
    return v->get<std::string>();
  }
  Result<const json*> list(const char* key) const { return value(key, json::value_t::array); }
  const std::string& where() const { return where_; }

 private:
  const json& object_;
  std::string where_;
};

bool is_operand_name(std::string_view s) {
  return !s.empty() && s.size() <= 64 && std::ranges::all_of(s, [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  });
}

Result<ImageFile> read_file(const Reader& in, int cores) {
  ImageFile out;
  TRY(out.operand, in.text("operand"));
  if (!is_operand_name(out.operand))
    return input_error("{}: not the name of an operand", in.where());
  TRY(const uint64_t core, in.number("core", static_cast<uint64_t>(cores)));
  out.core = static_cast<int>(core) - 1;
  TRY(out.bytes, in.number("bytes", kMostBytes));
  TRY(const json* pieces, in.list("pieces"));
  uint64_t last = 0;
  for (const json& piece : *pieces) {
    const Reader p(piece, in.where() + ": a piece");
    ImagePiece& to = out.pieces.emplace_back();
    TRY(to.begin, p.number("begin", out.bytes));
    TRY(to.end, p.number("end", out.bytes));
    TRY(to.sha256, p.text("sha256"));
    if (to.begin < last || to.end <= to.begin)
      return input_error("{}: its pieces are not in order", in.where());
    last = to.end;
  }
  return out;
}

}  // namespace

std::string ImageFile::name() const {
  return core < 0 ? operand + ".bin" : fmt::format("{}.core{:04}.bin", operand, core);
}

uint64_t ImageManifest::bytes() const {
  uint64_t sum = 0;
  for (const ImageFile& f : files) sum += f.bytes;
  return sum;
}

json ImageManifest::to_json() const {
  json all = json::array();
  for (const ImageFile& f : files) {
    json pieces = json::array();
    for (const ImagePiece& p : f.pieces)
      pieces.push_back({{"begin", p.begin}, {"end", p.end}, {"sha256", p.sha256}});
    all.push_back({{"file", f.name()},
                   {"operand", f.operand},
                   {"core", f.core + 1},  // 0: all cores
                   {"bytes", f.bytes},
                   {"pieces", pieces}});
  }
  return {{"gridless_images", kVersion},
          {"cores", cores},
          {"formats", {{"layers", formats[0]}, {"head", formats[1]}, {"experts", formats[2]}}},
          {"expert_groups", expert_groups},
          {"layout", layout},
          {"source", source},
          {"left_out", left_out},
          {"files", all}};
}

Result<ImageManifest> ImageManifest::parse(std::string_view text, std::string_view where) {
  TRY(const json parsed, parse_json(text, where));
  const Reader in(parsed, std::string(where));
  TRY(const uint64_t version, in.number("gridless_images", UINT64_MAX));
  if (version != kVersion)
    return input_error("{}: format {} of images, this version reads {}: pack again", where, version,
                       kVersion);
  ImageManifest out;
  TRY(const uint64_t cores, in.number("cores", 1 << 16));
  out.cores = static_cast<int>(cores);
  TRY(const json* formats, in.value("formats", json::value_t::object));
  const Reader f(*formats, in.where() + ": formats");
  TRY(out.formats[0], f.text("layers"));
  TRY(out.formats[1], f.text("head"));
  TRY(out.formats[2], f.text("experts"));
  TRY(const uint64_t groups, in.number("expert_groups", 1 << 16));
  out.expert_groups = static_cast<int64_t>(groups);
  TRY(out.layout, in.text("layout"));
  TRY(out.source, in.text("source"));
  TRY(const json* left_out, in.list("left_out"));
  for (const json& name : *left_out) {
    if (!name.is_string()) return input_error("{}: 'left_out' has the wrong type", where);
    out.left_out.push_back(name.get<std::string>());
  }
  TRY(const json* files, in.list("files"));
  for (size_t k = 0; k < files->size(); ++k) {
    TRY(ImageFile file,
        read_file(Reader((*files)[k], fmt::format("{}: files[{}]", where, k)), out.cores));
    out.files.push_back(std::move(file));
  }
  return out;
}

std::string layout_id(const StreamLayout& layout) {
  std::string text = fmt::format("{} {}", layout.chunk_rows, layout.layers);
  for (const auto* list : {&layout.front, &layout.layer, &layout.tail}) {
    text += '\n';
    for (const MatrixLayout& m : *list)
      text += fmt::format("{} {} {} {} {} {} {} {} {} {};", m.shape.name, m.shape.n, m.shape.k,
                          spelling(m.shape.format), m.shape.paired, m.panels, m.panels_per_chunk,
                          m.parts, m.kp, m.first_chunk);
  }
  return sha256_hex(text);
}

Result<Images> Images::open(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string path = (fs::path(folder) / ImageManifest::kFile).string();
  TRY(const std::string text, read_text_file(path));
  Images out;
  out.folder_ = folder;
  TRY(out.manifest_, ImageManifest::parse(text, path));
  for (const ImageFile& f : out.manifest_.files) {
    TRY(MappedFile mapped, MappedFile::open((fs::path(folder) / f.name()).string()));
    if (mapped.bytes().size() != f.bytes)
      return input_error("{}: has {} bytes, {} says {}: pack again", mapped.path(),
                         mapped.bytes().size(), path, f.bytes);
    if (!out.index_.emplace(std::pair(f.operand, f.core), out.mapped_.size()).second)
      return input_error("{}: names {} twice", path, f.name());
    out.mapped_.push_back(std::move(mapped));
  }
  return out;
}

Result<ByteView> Images::operand(std::string_view name, int core) const {
  for (const int which : {core, -1})
    if (const auto it = index_.find(std::pair(std::string(name), which)); it != index_.end())
      return mapped_[it->second].bytes();
  return input_error("{}: operand '{}' of core {} was not packed: pack again with this version",
                     folder_, name, core);
}

Result<void> Images::verify(size_t file) const {
  const ImageFile& f = manifest_.files[file];
  const auto* data = reinterpret_cast<const char*>(mapped_[file].bytes().data());
  for (const ImagePiece& p : f.pieces)
    if (sha256_hex({data + p.begin, p.end - p.begin}) != p.sha256)
      return input_error("{}: bytes {} to {} are damaged: delete the file and pack again",
                         mapped_[file].path(), p.begin, p.end);
  return {};
}

}  // namespace gridless::weights
