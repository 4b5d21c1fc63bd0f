// DFlash2 drafts behind the interface of models/model.h: `rows` of a program are the tokens whose
// features one launch appends.
#pragma once

#include "gridless/models/dflash2/config.h"
#include "gridless/models/model.h"

namespace gridless::models {

// `target`: the checkpoint with the embedding and the head; must outlive what fills operands. Null
// where only programs are wanted.
std::unique_ptr<Model> dflash2_model(Dflash2Config config,
                                     const weights::Checkpoint* target = nullptr);

}  // namespace gridless::models
