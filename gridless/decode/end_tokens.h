// The ids that end a text of a model.
#pragma once

#include <cstdint>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/text/tokenizer.h"
#include "gridless/weights/checkpoint.h"

namespace gridless::decode {

// All that the files name: eos_token_id of config.json and generation_config.json, the tokenizer's
// eos, eos and eot of a GGUF. A GGUF names only one end where chat models have two, so the usual
// ends of a turn count where its vocabulary has them as special tokens. Sorted; may be empty. An
// error only where generation_config.json nests too deep.
Result<std::vector<int32_t>> end_tokens(const weights::Checkpoint& checkpoint,
                                        const text::Tokenizer* tokenizer);

}  // namespace gridless::decode
