// GGUF models seen as Hugging Face checkpoints: tensor names, row order of q_proj and k_proj, and
// the metadata as a config.json, so that models have one way to read a checkpoint.
//
//   token_embd.weight         model.embed_tokens.weight
//   output_norm.weight        model.norm.weight
//   output.weight             lm_head.weight            (absent when tied to the embedding)
//   blk.N.attn_q.weight       model.layers.N.self_attn.q_proj.weight      (.bias alike)
//   ...                       the table is in gguf_names.cc
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "gridless/weights/gguf.h"

namespace gridless::weights {

// The Hugging Face name of a GGUF tensor; the name itself where it has none (e.g.
// rope_freqs.weight).
std::string hugging_face_name(std::string_view gguf_name);

// Gives every tensor its Hugging Face name and, where the architecture's converter has permuted
// q_proj and k_proj (see TensorView::rotary_heads), the number of heads to undo it with. An error
// naming the tensor where the number of heads does not fit its rows.
Result<void> adopt_hugging_face_layout(Gguf& gguf);

// The metadata in the terms of a config.json of transformers: architectures, model_type,
// hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, num_key_value_heads,
// head_dim, vocab_size, max_position_embeddings, rms_norm_eps, rope_theta, rope_scaling,
// tie_word_embeddings, bos_token_id, eos_token_id. Keys the file does not state are absent (or the
// format's documented default: num_key_value_heads, head_dim, rope_theta 10000). rope_scaling is
// null, {"rope_type": "linear"/"yarn", "factor", "original_max_position_embeddings"}, or, where the
// file brings one factor per frequency (Llama 3.1 and later), {"rope_type": "factors", "factors":
// [head_dim / 2 numbers]}: each inverse frequency is divided by its factor, and all by "factor" if
// that is there. Where the metadata asks for what these keys cannot say (partial rotary embeddings,
// values of another width than keys, experts), "unsupported" is a sentence that names the key.
nlohmann::json config_of(const Gguf& gguf);

}  // namespace gridless::weights
