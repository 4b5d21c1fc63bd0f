// Packs a checkpoint into images (weights/images.h): what every core reads in a step, once and for
// all, so that a host maps or uploads it instead of packing it at every start.
//
// Checkpoints may be larger than memory: sources are mapped, images are written through a mapping
// piece by piece (a matrix, a layer's experts, 64 MiB of rows), and each piece's pages are let go
// of when it is on the disk. A run that was stopped goes on where it was: images.partial.jsonl
// holds a line per finished piece, written when the piece is on the disk.
#pragma once

#include <functional>
#include <string>

#include "gridless/models/model.h"
#include "gridless/weights/images.h"

namespace gridless::decode {

struct PackOptions {
  int cores = 1;
  models::Formats formats;
  int64_t expert_groups = 0;  // StepShape
  int threads = 1;            // files that are written at once
};

// Called with the bytes that are done and those of all images, by one thread at a time; false:
// stop.
using PackProgress = std::function<bool(uint64_t done, uint64_t all)>;

// Returns the finished manifest; with it stand a config.json and what there is of a tokenizer and a
// chat template, so that the folder can be used in place of the checkpoint. Where the folder
// already holds these images there is nothing to do. Errors: the folder holds, or was begun with,
// other images; the work was stopped; the disk has no room; what ShardedModel::fill() finds wrong.
Result<weights::ImageManifest> pack_images(const weights::Checkpoint& checkpoint,
                                           const models::Model& model, const PackOptions& options,
                                           const std::string& folder,
                                           const PackProgress& progress = nullptr);

}  // namespace gridless::decode
