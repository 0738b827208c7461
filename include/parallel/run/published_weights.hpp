// The weights of the library's models as others name them and lay them out: Hugging Face's transformers, and llm.c.
#pragma once
#include <string>

#include <parallel/file/llmc.hpp>
#include <parallel/run/weights.hpp>

namespace parallel::internals {

/// GPT-2 of transformers: matrices are [in, out], and the head is the tokens' table. Of a vocabulary of 50257 tokens
/// the model may have padded more. `prefix`: "" where the file has none, as the Hub's first ones.
inline WeightTable hugging_face_gpt2(std::int64_t classes, const std::string& prefix = "transformer.") {
  const std::string block = prefix + "h.{}.";
  return {
      .rows =
          {
              {"token", {prefix + "wte.weight"}, "v c -> v:" + std::to_string(classes) + " c"},
              {"place", {prefix + "wpe.weight"}},
              {"blocks.*.norm1.gain", {block + "ln_1.weight"}},
              {"blocks.*.norm1.shift", {block + "ln_1.bias"}},
              {"blocks.*.attention.qkv", {block + "attn.c_attn.weight"}, "c qkv heads size -> c (qkv heads size)"},
              {"blocks.*.attention.qkv_bias", {block + "attn.c_attn.bias"}, "qkv heads size -> (qkv heads size)"},
              {"blocks.*.attention.projection", {block + "attn.c_proj.weight"}, "heads size c -> (heads size) c"},
              {"blocks.*.attention.projection_bias", {block + "attn.c_proj.bias"}},
              {"blocks.*.norm2.gain", {block + "ln_2.weight"}},
              {"blocks.*.norm2.shift", {block + "ln_2.bias"}},
              {"blocks.*.mlp.up", {block + "mlp.c_fc.weight"}},
              {"blocks.*.mlp.up_bias", {block + "mlp.c_fc.bias"}},
              {"blocks.*.mlp.down", {block + "mlp.c_proj.weight"}},
              {"blocks.*.mlp.down_bias", {block + "mlp.c_proj.bias"}},
              {"norm.gain", {prefix + "ln_f.weight"}},
              {"norm.shift", {prefix + "ln_f.bias"}},
          },
      .tied = {{"lm_head.weight", prefix + "wte.weight"}},
      .ignored = {block + "attn.bias", block + "attn.masked_bias"},  // masks
  };
}

/// GPT-2 of llm.c (LlmcModel): matrices are [out, in], all layers together.
inline WeightTable llmc_gpt2(std::int64_t classes) {
  const std::string turned = "in out -> out in";
  return {.rows = {
              {"token", {"wte"}, "v c -> v:" + std::to_string(classes) + " c"},
              {"place", {"wpe"}},
              {"blocks.*.norm1.gain", {"ln1w"}},
              {"blocks.*.norm1.shift", {"ln1b"}},
              {"blocks.*.attention.qkv", {"qkvw"}, "c qkv heads size -> (qkv heads size) c"},
              {"blocks.*.attention.qkv_bias", {"qkvb"}, "qkv heads size -> (qkv heads size)"},
              {"blocks.*.attention.projection", {"attprojw"}, "heads size c -> c (heads size)"},
              {"blocks.*.attention.projection_bias", {"attprojb"}},
              {"blocks.*.norm2.gain", {"ln2w"}},
              {"blocks.*.norm2.shift", {"ln2b"}},
              {"blocks.*.mlp.up", {"fcw"}, turned},
              {"blocks.*.mlp.up_bias", {"fcb"}},
              {"blocks.*.mlp.down", {"fcprojw"}, turned},
              {"blocks.*.mlp.down_bias", {"fcprojb"}},
              {"norm.gain", {"lnfw"}},
              {"norm.shift", {"lnfb"}},
          }};
}

/// Writes an executor's GPT-2 as llm.c's file, of F32 or BF16; `table` is llmc_gpt2, or that below a member. Called by
/// all ranks together. Throws what `save_weights` does.
template <Communicator World, class Device>
void save_llmc(World& world, Executor<World, Device>& executor, const std::string& file, const LlmcSizes& sizes,
               const WeightTable& table, FileDType dtype = FileDType::F32, Here here = {}) {
  const std::vector<weights::Bound> all = weights::bound(executor, table);
  const llmc::ModelLayout layout(file, sizes, dtype);
  for (const FileEntry& t : layout.tensors()) {
    FileEntry there = t;
    if (t.name == "wte") there.shape[0] = sizes.vocabulary;
    const auto p = std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.names[0] == t.name; });
    if (p == all.end() || p->how.file_shape() != there.shape)
      throw Misuse("llm.c's " + t.name + " is " + text_of(there.shape) + " by the sizes, but in the program " +
                   (p == all.end() ? "is none" : text_of(p->how.file_shape())));
  }
  weights::save(world, executor, file, all, layout, here);
}

/// Llama of transformers: matrices are [out, in]. Its rotary embedding turns halves, as the library's does. `classes`:
/// how large the file's vocabulary is.
inline WeightTable hugging_face_llama(std::int64_t classes) {
  const std::string block = "model.layers.{}.", v = "v:" + std::to_string(classes);
  const std::string queries = "c heads size -> (heads size) c", turned = "in out -> out in";
  return {
      .rows =
          {
              {"token", {"model.embed_tokens.weight"}, "v c -> " + v + " c"},
              {"blocks.*.norm1.gain", {block + "input_layernorm.weight"}},
              {"blocks.*.attention.q", {block + "self_attn.q_proj.weight"}, queries},
              {"blocks.*.attention.k", {block + "self_attn.k_proj.weight"}, queries},
              {"blocks.*.attention.v", {block + "self_attn.v_proj.weight"}, queries},
              {"blocks.*.attention.projection", {block + "self_attn.o_proj.weight"}, "heads size c -> c (heads size)"},
              {"blocks.*.norm2.gain", {block + "post_attention_layernorm.weight"}},
              {"blocks.*.mlp.gate", {block + "mlp.gate_proj.weight"}, turned},
              {"blocks.*.mlp.up", {block + "mlp.up_proj.weight"}, turned},
              {"blocks.*.mlp.down", {block + "mlp.down_proj.weight"}, turned},
              {"norm.gain", {"model.norm.weight"}},
              {"head", {"lm_head.weight"}, "c v -> " + v + " c"},
          },
      .ignored = {block + "self_attn.rotary_emb.inv_freq"},
  };
}

/// BERT of transformers with the head of masked tokens: matrices are [out, in], queries, keys and values apart. `gain`
/// and `shift`: what norms have, "gamma" and "beta" in the Hub's first files.
inline WeightTable hugging_face_bert(std::int64_t classes, const std::string& gain = "weight",
                                     const std::string& shift = "bias") {
  const std::string words = "bert.embeddings.", block = "bert.encoder.layer.{}.", head = "cls.predictions.",
                    turned = "in out -> out in", self = block + "attention.self.", norm = "LayerNorm.",
                    v = "v:" + std::to_string(classes);
  return {
      .rows =
          {
              {"token", {words + "word_embeddings.weight"}, "v c -> " + v + " c"},
              {"place", {words + "position_embeddings.weight"}},
              {"segment", {words + "token_type_embeddings.weight"}},
              {"norm.gain", {words + norm + gain}},
              {"norm.shift", {words + norm + shift}},
              {"blocks.*.attention.qkv",
               {self + "query.weight", self + "key.weight", self + "value.weight"},
               "c qkv heads size -> (heads size) c"},
              {"blocks.*.attention.qkv_bias",
               {self + "query.bias", self + "key.bias", self + "value.bias"},
               "qkv heads size -> (heads size)"},
              {"blocks.*.attention.projection",
               {block + "attention.output.dense.weight"},
               "heads size c -> c (heads size)"},
              {"blocks.*.attention.projection_bias", {block + "attention.output.dense.bias"}},
              {"blocks.*.norm1.gain", {block + "attention.output." + norm + gain}},
              {"blocks.*.norm1.shift", {block + "attention.output." + norm + shift}},
              {"blocks.*.mlp.up", {block + "intermediate.dense.weight"}, turned},
              {"blocks.*.mlp.up_bias", {block + "intermediate.dense.bias"}},
              {"blocks.*.mlp.down", {block + "output.dense.weight"}, turned},
              {"blocks.*.mlp.down_bias", {block + "output.dense.bias"}},
              {"blocks.*.norm2.gain", {block + "output." + norm + gain}},
              {"blocks.*.norm2.shift", {block + "output." + norm + shift}},
              {"head.weight", {head + "transform.dense.weight"}, turned},
              {"head.bias", {head + "transform.dense.bias"}},
              {"head.norm.gain", {head + "transform." + norm + gain}},
              {"head.norm.shift", {head + "transform." + norm + shift}},
              {"head.vocabulary_bias", {head + "bias"}, "v -> " + v},
          },
      .tied = {{head + "decoder.weight", words + "word_embeddings.weight"}, {head + "decoder.bias", head + "bias"}},
      .ignored = {words + "position_ids", "bert.pooler.dense.weight", "bert.pooler.dense.bias",
                  "cls.seq_relationship.weight", "cls.seq_relationship.bias"},
  };
}

}  // namespace parallel::internals

namespace parallel {
using internals::hugging_face_bert;
using internals::hugging_face_gpt2;
using internals::hugging_face_llama;
using internals::llmc_gpt2;
using internals::save_llmc;
}  // namespace parallel
