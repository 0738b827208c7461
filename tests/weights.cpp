// Weights under the names of others: models give what Hugging Face's transformers give with them, on every mesh, and
// are written as they were read.
#include <cmath>
#include <cstring>
#include <map>

#include <doctest/doctest.h>

#include <parallel/file/llmc.hpp>
#include <parallel/file/safetensors.hpp>
#include <parallel/file/sharded_safetensors.hpp>
#include <parallel/file/write_safetensors.hpp>
#include <parallel/model/bert.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/model/llama.hpp>
#include <parallel/run/published_weights.hpp>

#include "files.hpp"
#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using files::Folder;
using Json = nlohmann::json;

namespace {

constexpr int batch = 4, positions = 8, channels = 16, inner = 24, classes = 17, padded = 24;
using Tokens = Tensor<int, Shape<batch / data, positions>>;

template <class T = float>
using Gpt2 = models::Gpt2<models::Gpt2Sizes{.context = positions,
                                            .channels = channels,
                                            .heads = 4 / tensor,
                                            .inner = inner / tensor,
                                            .vocabulary = padded / tensor,
                                            .classes = classes,
                                            .layers = 2,
                                            .dropped = 0,
                                            .ignored = -100},
                          T>;
using Llama = models::Llama<models::LlamaSizes{.context = positions,
                                               .channels = channels,
                                               .heads = 4 / tensor,
                                               .key_heads = 2 / tensor,
                                               .inner = inner / tensor,
                                               .vocabulary = padded / tensor,
                                               .classes = classes,
                                               .layers = 2,
                                               .base = 100,
                                               .ignored = -100}>;
using Bert = models::Bert<models::BertSizes{.context = positions,
                                            .channels = channels,
                                            .heads = 4 / tensor,
                                            .inner = inner / tensor,
                                            .vocabulary = padded / tensor,
                                            .classes = classes,
                                            .layers = 2,
                                            .dropped = 0}>;

/// The loss and the logits of a model.
template <class Result, class Logits>
struct Both {
  Result loss;
  Logits logits;
};
template <class Model>
struct WithLogits {
  Model model;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto logits = model.logits(tokens);
    return Both{model(tokens, targets), logits};
  }
  constexpr auto operator()(Distributed auto tokens, Distributed auto segments, Distributed auto seen,
                            Distributed auto targets) const {
    const auto logits = model.logits(tokens, segments, seen);
    return Both{model(tokens, segments, seen, targets), logits};
  }
};
template <class Model>
using Causal = Evaluation<WithLogits<Model>, Tokens, Tokens>;
using Masked = Evaluation<WithLogits<Bert>, Tokens, Tokens, Tokens, Tokens>;

/// What transformers computes (tools/fixtures/weights.py).
const Json& fixture(const std::string& model) {
  static const Json all = Json::parse(files::read(files::fixture("weights.json")));
  return all.at(model);
}
/// The same numbers as the fixture's.
std::vector<float> numbers(const std::string& name, std::size_t count) {
  std::uint64_t seed = 0xcbf29ce484222325;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool gain = name.ends_with("weight") && (lower.find("ln_") + 1 > 0 || lower.find("norm") + 1 > 0);
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t x = seed + i + 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    x ^= x >> 31;
    all[i] = static_cast<float>((static_cast<double>(x >> 40) / 0x1p23 - 1) * 0.2) + (gain ? 1.0F : 0.0F);
  }
  return all;
}
template <class T>
std::vector<T> as(const std::vector<float>& all) {
  std::vector<T> other;
  for (const float x : all) other.push_back(T(x));
  return other;
}
void give(FileSink& sink, FileDType dtype, const std::vector<float>& all) {
  if (dtype == FileDType::BF16)
    sink(as<bfloat16>(all));
  else if (dtype == FileDType::F16)
    sink(as<float16>(all));
  else
    sink(all);
}
std::size_t elements(const FileEntry& e) { return static_cast<std::size_t>(*elements_of(e.shape)); }
/// The file that transformers would save.
std::vector<FileEntry> tensors(const std::string& model) {
  std::vector<FileEntry> all;
  for (const auto& [name, shape] : fixture(model)["tensors"].items())
    all.push_back({name, *file_dtype_named(fixture(model)["dtype"].get<std::string>()), shape});
  return all;
}
void write_file(const std::string& file, const std::vector<FileEntry>& entries) {
  write_safetensors(
      file, entries, [](const FileEntry& e, FileSink& sink) { give(sink, e.dtype, numbers(e.name, elements(e))); },
      {{"format", "pt"}});
}

std::vector<Mesh> meshes() {
  return {Mesh{data = 1}, Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}};
}
/// f(executor, world) on every rank.
template <class F>
void each_rank(const Plan& plan, F f) {
  run_threads(plan.mesh.ranks(), [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 5);
    Executor<Threads, under_test::Device> executor(plan, world, parameters);
    f(executor, world);
  });
}

/// Loads a file on every mesh, and compares with what transformers computes; writes it anew.
template <class Program>
void check(const std::string& model, const WeightTable& table, const std::vector<std::string>& inputs) {
  const Folder folder;
  const Json& expected = fixture(model);
  const std::string file = folder / "model.safetensors";
  write_file(file, tensors(model));
  const FileDType dtype = tensors(model)[0].dtype;
  for (const Mesh& mesh : meshes()) {
    INFO(model << " on " << text(mesh));
    const OwnedPlan plan = derive<Program>(mesh);
    std::vector<program::Array> whole = program::empty_outputs(*plan);
    each_rank(*plan, [&](auto& executor, Threads& world) {
      load_weights(executor, Safetensors(file), table.below("model"));
      for (std::size_t i = 0; i < inputs.size(); ++i)
        executor.input(static_cast<int>(i), expected["inputs"][inputs[i]].template get<std::vector<int>>());
      std::vector<int> labels = expected["labels"];
      if (inputs.size() == 1)  // the next token
        for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = (i + 1) % positions == 0 ? -100 : labels[i + 1];
      executor.input(static_cast<int>(inputs.size()), labels);
      executor.run();
      program::gather_outputs(world, executor, whole);
      save_weights(world, executor, folder / "copy", table.below("model"), dtype);
    });
    CHECK(std::abs(whole[0].data[0] - expected["loss"].get<double>()) < 2e-6);
    const std::vector<double> logits = expected["logits"];
    double most = 0, off = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      most = std::max(most, std::abs(logits[i]));
      off = std::max(off, std::abs(logits[i] - whole[1].data[i / classes * padded + i % classes]));
    }
    CHECK(off < 1e-5 * most);
    CHECK(files::read(folder / "copy") == files::read(file));
    CHECK(folder.count() == 2);
  }
}

TEST_CASE("GPT-2 is what transformers computes with its file") {
  check<Causal<Gpt2<>>>("gpt2", hugging_face_gpt2(classes), {"input_ids"});
}
TEST_CASE("Llama is what transformers computes with its file") {
  check<Causal<Llama>>("llama", hugging_face_llama(classes), {"input_ids"});
}
TEST_CASE("BERT is what transformers computes with its file") {
  check<Masked>("bert", hugging_face_bert(classes), {"input_ids", "token_type_ids", "attention_mask"});
}

TEST_CASE("tensors are found in shards, too, which are what the index says") {
  const Folder folder;
  const std::string index = folder / "model.safetensors.index.json";
  const auto name = [](int shard) { return "model-0000" + std::to_string(shard) + "-of-00002.safetensors"; };
  Json all = {{"metadata", {{"total_size", 1}}}, {"weight_map", Json::object()}};
  std::vector<FileEntry> shards[2];
  for (const FileEntry& e : tensors("llama")) {
    const int shard = static_cast<int>(all["weight_map"].size() % 2);
    shards[shard].push_back(e);
    all["weight_map"][e.name] = name(shard + 1);
  }
  for (int shard : {0, 1}) write_file(folder / name(shard + 1), shards[shard]);
  const auto says = [&](const Json& json) {
    files::write(index, json.dump());
    return files::said(folder / "", [&] { ShardedSafetensors{index}; });
  };
  CHECK(says(all).sentence.empty());
  const OwnedPlan plan = derive<Causal<Llama>>(Mesh{tensor = 2});
  each_rank(*plan, [&](auto& executor, Threads& world) {
    load_weights(executor, ShardedSafetensors(index), hugging_face_llama(classes).below("model"));
    save_weights(world, executor, folder / "one", hugging_face_llama(classes).below("model"), FileDType::BF16);
  });
  write_file(folder / "other", tensors("llama"));
  CHECK(files::read(folder / "one") == files::read(folder / "other"));

  const auto changed = [&](auto change) {
    Json other = all;
    change(other["weight_map"]);
    return says(other).sentence;
  };
  CHECK(changed([](Json& map) { map.erase("lm_head.weight"); })
            .ends_with("it has a tensor lm_head.weight, which the index " + index + " has not"));
  CHECK(changed([](Json& map) { map["x"] = map["lm_head.weight"]; }).find("it has no tensor x, among its 11") !=
        std::string::npos);
  CHECK(changed([](Json& map) { map["lm_head.weight"] = "../x"; })
            .ends_with("its tensor 'lm_head.weight' is in '../x'; a file that lies beside it is expected"));
  CHECK(changed([](Json& map) { map["lm_head.weight"] = 3; }).ends_with("its tensor 'lm_head.weight' is in no file"));
  CHECK(says(3).sentence.ends_with("it is no JSON with a weight_map of names and files"));
  all["weight_map"]["x"] = "nothing";
  CHECK(says(all).code == exit_code::missing_input);
}

// llm.c's perceptrons have four times the channels.
using Wide = models::Gpt2<models::Gpt2Sizes{.context = positions,
                                            .channels = channels,
                                            .heads = 4 / tensor,
                                            .inner = 4 * channels / tensor,
                                            .vocabulary = 128 / tensor,
                                            .classes = classes,
                                            .layers = 2,
                                            .dropped = 0}>;

/// llm.c's file, written as its Python does: from the names of transformers, matrices turned.
std::string llmc_file(bool halves) {
  const std::vector<int> header{20240326, halves ? 5 : 3, positions, classes, 2, 4, channels, 128};
  std::string all(reinterpret_cast<const char*>(header.data()), 32);
  all.resize(1024);
  const auto put = [&](float x) {
    const bfloat16 half(x);
    halves ? all.append(reinterpret_cast<const char*>(&half), 2) : all.append(reinterpret_cast<const char*>(&x), 4);
  };
  const auto plain = [&](const std::string& name, std::size_t count) {
    for (const float x : numbers(name, count)) put(x);
  };
  plain("transformer.wte.weight", classes * channels);
  for (int i = 0; i < (128 - classes) * channels; ++i) put(0);
  plain("transformer.wpe.weight", positions * channels);
  const auto each = [&](const std::string& name, std::size_t in, std::size_t out) {
    for (int l : {0, 1}) {
      const auto w = numbers("transformer.h." + std::to_string(l) + "." + name, in * out);
      for (std::size_t o = 0; o < out; ++o)
        for (std::size_t i = 0; i < in; ++i) put(w[i * out + o]);
    }
  };
  for (const char* name : {"ln_1.weight", "ln_1.bias"}) each(name, 1, channels);
  each("attn.c_attn.weight", channels, 3 * channels);
  each("attn.c_attn.bias", 1, 3 * channels);
  each("attn.c_proj.weight", channels, channels);
  for (const char* name : {"attn.c_proj.bias", "ln_2.weight", "ln_2.bias"}) each(name, 1, channels);
  each("mlp.c_fc.weight", channels, 4 * channels);
  each("mlp.c_fc.bias", 1, 4 * channels);
  each("mlp.c_proj.weight", 4 * channels, channels);
  each("mlp.c_proj.bias", 1, channels);
  for (const char* name : {"transformer.ln_f.weight", "transformer.ln_f.bias"}) plain(name, channels);
  return all;
}

TEST_CASE("llm.c's weights are those of transformers, and are written as they were read") {
  const Folder folder;
  const OwnedPlan plan = derive<Causal<Wide>>(Mesh{data = 2, tensor = 2});
  for (const bool halves : {false, true}) {
    const FileDType dtype = halves ? FileDType::BF16 : FileDType::F32;
    files::write(folder / "model.bin", llmc_file(halves));
    const LlmcModel model(folder / "model.bin");
    CHECK(model.sizes() == LlmcSizes{positions, classes, 2, 4, channels, 128});
    each_rank(*plan, [&](auto& executor, Threads& world) {
      load_weights(executor, model, llmc_gpt2(classes).below("model"));
      save_llmc(world, executor, folder / "copy.bin", model.sizes(), llmc_gpt2(classes).below("model"), dtype);
      save_weights(world, executor, folder / "hf", hugging_face_gpt2(classes).below("model"), dtype);
      LlmcSizes other = model.sizes();
      other.channels = 32;
      CHECK_THROWS_AS(save_llmc(world, executor, folder / "x", other, llmc_gpt2(classes).below("model")), Misuse);
    });
    CHECK(files::read(folder / "copy.bin") == llmc_file(halves));
    const Safetensors hf(folder / "hf");
    for (std::size_t i = 0; i < hf.size(); ++i) {
      INFO(hf[i].name);
      const std::vector<float> is = numbers(hf[i].name, static_cast<std::size_t>(hf[i].elements()));
      if (halves)
        for (std::size_t e = 0; e < is.size(); ++e) CHECK(hf[i].as<bfloat16>()[e].bits == bfloat16(is[e]).bits);
      else
        CHECK(std::ranges::equal(hf[i].as<float>(), is));
    }
  }
}

TEST_CASE("llm.c's files are refused in a sentence") {
  const Folder folder;
  const std::string file = folder / "model.bin", whole = llmc_file(false);
  const auto says = [&](std::string bytes, std::size_t at, int number) {
    if (at < bytes.size()) std::memcpy(bytes.data() + at, &number, 4);
    files::write(file, bytes);
    const auto s = files::said(file, [&] { LlmcModel{file}; });
    CHECK(s.code == (s.sentence.empty() ? 0 : exit_code::bad_data));
    return s.sentence;
  };
  const std::size_t nowhere = ~std::size_t{0};
  CHECK(says(whole, nowhere, 0).empty());
  CHECK(says(whole, 4, 2) == ": it begins with 20240326 and version 2, but llm.c's weights with 20240326 and 3 or 5");
  CHECK(says(whole, 4, 5).starts_with(": by its header it has "));
  CHECK(says(whole, 16, 0) == ": it is said to have 0 layers; 1 to 16777216 are expected");
  CHECK(says(whole, 28, 16).find("which do not go together") != std::string::npos);
  CHECK(says(whole.substr(0, whole.size() - 1), nowhere, 0).starts_with(": by its header it has "));
  CHECK(says("", nowhere, 0) == ": it has 0 bytes, fewer than llm.c's header of 1024");
  std::string big = whole;
  for (std::size_t at = 8; at < 32; at += 4) says(whole, at, 1 << 24);
}

TEST_CASE("a step that PyTorch computed is read from llm.c's file") {
  const Folder folder;
  const std::string file = folder / "state.bin", gradients = llmc_file(false).substr(1024);
  std::string all(1024, '\0');
  const std::vector<int> header{20240327, 2, 2, 3}, tokens{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::memcpy(all.data(), header.data(), 16);
  all.append(reinterpret_cast<const char*>(tokens.data()), 48);
  std::vector<float> logits(2 * 3 * classes + 1);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i);
  all.append(reinterpret_cast<const char*>(logits.data()), 4 * logits.size());
  all += gradients;
  files::write(file, all);
  const LlmcSizes sizes{positions, classes, 2, 4, channels, 128};
  const LlmcDebugState state(file, sizes);
  CHECK(std::ranges::equal(state["inputs"].as<int>(), std::vector{1, 2, 3, 4, 5, 6}));
  CHECK(state["targets"].as<int>()[5] == 12);
  CHECK(state["logits"].shape == std::vector<std::int64_t>{2, 3, classes});
  CHECK(state["loss"].as<float>()[0] == 2 * 3 * classes);
  CHECK(std::ranges::equal(state["wte"].as<float>(), numbers("transformer.wte.weight", classes * channels)));
  CHECK(std::ranges::equal(state["lnfb"].as<float>(), numbers("transformer.ln_f.bias", channels)));
  const auto says = [&](const std::string& bytes) {
    files::write(file, bytes);
    return files::said(file, [&] { LlmcDebugState(file, sizes); }).sentence;
  };
  CHECK(says(all + "x").starts_with(": by its header and the sizes of the model it has "));
  CHECK(says(all.substr(0, all.size() - 1)) == ": it ends within lnfb, by its header and the sizes of the model");
  CHECK(says(llmc_file(false)).ends_with("but llm.c's debug states with 20240327 and 2"));
}

}  // namespace
