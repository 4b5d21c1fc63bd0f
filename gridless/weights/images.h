// Packed images: the constants of a model's step program as the cores take them, a file per
// operand, or per operand and core where cores differ (docs/packing.md has the format).
//
//   images.json           what they are: cores, formats, layout, and pieces with their checksums
//   weights.core0003.bin  the operand's bytes, nothing else
//   embedding.bin
//
// Written by decode/pack_images.h. Reading maps the files.
#pragma once

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/base/mapped_file.h"

namespace gridless::weights {

struct StreamLayout;

// Bytes [begin, end) of a file and their SHA-256 in hex.
struct ImagePiece {
  uint64_t begin = 0, end = 0;
  std::string sha256;
};

struct ImageFile {
  std::string operand;
  int core = -1;  // -1: the same for all cores
  uint64_t bytes = 0;
  std::vector<ImagePiece> pieces;  // ascending; what lies between them is zero
  std::string name() const;
};

struct ImageManifest {
  static constexpr std::string_view kFile = "images.json";

  int cores = 0;
  std::array<std::string, 3> formats;  // of the layers' matrices, of the head, of routed experts
  int64_t expert_groups = 0;
  std::string layout;                 // layout_id() of the weight stream
  std::string source;                 // checkpoint_id() of what they were packed from
  std::vector<std::string> left_out;  // tensors of the checkpoint that no operand holds
  std::vector<ImageFile> files;

  uint64_t bytes() const;
  nlohmann::json to_json() const;
  // Errors say which key is wrong. Every piece lies in its file, and no name leaves the folder.
  static Result<ImageManifest> parse(std::string_view text, std::string_view where);
};

// What bytes of a stream mean depends on all of its layout: two layouts with one id are the same.
std::string layout_id(const StreamLayout& layout);

class Images {
 public:
  // The folder of a finished manifest; an error names the file that is missing or too short.
  static Result<Images> open(const std::string& folder);

  const ImageManifest& manifest() const { return manifest_; }
  // Bytes of an operand on a core, or an error that says that it was not packed.
  Result<ByteView> operand(std::string_view name, int core) const;
  // Reads every piece of a file again; an error names the file and the piece that is damaged.
  Result<void> verify(size_t file) const;

 private:
  std::string folder_;
  ImageManifest manifest_;
  std::vector<MappedFile> mapped_;  // as manifest_.files
  std::map<std::pair<std::string, int>, size_t, std::less<>> index_;
};

}  // namespace gridless::weights
