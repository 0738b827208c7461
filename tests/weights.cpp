// Weights under the names of others: models give what Hugging Face's transformers give with them, on every mesh, and
// are written as they were read.
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
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
template <class Result, class Logits>
Both(Result, Logits) -> Both<Result, Logits>;  // which clang 14 does not deduce
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
  write_safetensors(file, entries,
                    [](const FileEntry& e, FileSink& sink) { give(sink, e.dtype, numbers(e.name, elements(e))); },
                    {{"format", "pt"}});
}

std::vector<Mesh> meshes() { return {Mesh{data = 1}, Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}}; }
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
  CHECK(changed([](Json& map) {
          map.erase("lm_head.weight");
        }).ends_with("it has a tensor lm_head.weight, which the index " + index + " has not"));
  CHECK(changed([](Json& map) { map["x"] = map["lm_head.weight"]; }).find("it has no tensor x, among its 11") !=
        std::string::npos);
  CHECK(changed([](Json& map) {
          map["lm_head.weight"] = "../x";
        }).ends_with("its tensor 'lm_head.weight' is in '../x'; a file that lies beside it is expected"));
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

/// By the definition, element by element: where the program's [shape] lies.
TEST_CASE("patterns say where elements lie") {
  const auto lies = [](const std::string& pattern, const std::vector<std::int64_t>& shape, std::int64_t layers,
                       bool numbered, std::int64_t tensors) {
    const Arrangement how(pattern, shape, layers, numbered, tensors);
    std::int64_t count = std::max<std::int64_t>(layers, 1);
    for (const std::int64_t size : shape) count *= size;
    std::vector<std::pair<std::int64_t, std::int64_t>> all;  // tensor, index
    for (std::int64_t first = 0; first < count; ++first) {   // from any place on the same
      std::vector<std::pair<std::int64_t, std::int64_t>> from;
      how.each_run(first, count - first, [&](auto, auto tensor, auto index, auto step, auto n) {
        for (std::int64_t i = 0; i < n; ++i) from.emplace_back(tensor, index < 0 ? -1 : index + i * step);
      });
      if (first == 0) all = from;
      REQUIRE(std::equal(from.begin(), from.end(), all.begin() + first, all.end()));
    }
    return std::pair(how.file_shape(), all);
  };
  using Shape = std::vector<std::int64_t>;
  {  // queries, keys and values of each layer apart, turned
    const auto [shape, all] = lies("in qkv heads size -> (heads size) in", {4, 3, 2, 5}, 2, true, 3);
    CHECK(shape == Shape{10, 4});
    for (int i = 0; i < 240; ++i) {
      const int size = i % 5, head = i / 5 % 2, which = i / 10 % 3, in = i / 30 % 4, layer = i / 120;
      CHECK(all[static_cast<std::size_t>(i)] ==
            std::pair<std::int64_t, std::int64_t>{layer * 3 + which, (head * 5 + size) * 4 + in});
    }
  }
  {  // pairs that are neighbours in the file are halves in the program; all layers are one tensor
    const auto [shape, all] = lies("in heads (2 half) -> (heads half 2) in", {3, 2, 6}, 2, false, 1);
    CHECK(shape == Shape{2, 12, 3});
    for (int i = 0; i < 72; ++i) {
      const int half = i % 3, two = i / 3 % 2, head = i / 6 % 2, in = i / 12 % 3, layer = i / 36;
      CHECK(all[static_cast<std::size_t>(i)] ==
            std::pair<std::int64_t, std::int64_t>{0, ((layer * 2 + head) * 6 + half * 2 + two) * 3 + in});
    }
  }
  {  // a vocabulary that is padded
    const auto [shape, all] = lies("c v -> v:5 c", {3, 8}, 0, false, 1);
    CHECK(shape == Shape{5, 3});
    for (int i = 0; i < 24; ++i) CHECK(all[static_cast<std::size_t>(i)].second == (i % 8 < 5 ? i % 8 * 3 + i / 8 : -1));
  }
  CHECK(lies("", {2, 3}, 0, false, 1).first == Shape{2, 3});
  CHECK(lies("a b -> (a b)", {2, 3}, 2, false, 1).first == Shape{2, 6});
  const auto says = [](const std::string& pattern) {
    try {
      Arrangement(pattern, {4, 6}, 0, false, 1);
    } catch (const Misuse& misuse) {
      return std::string(misuse.what());
    }
    return std::string();
  };
  CHECK(says("a b -> b a").empty());
  CHECK(says("a b") == "the pattern 'a b' has no ->");
  CHECK(says("a -> a") == "the pattern 'a -> a' has 1 dimensions on its left, but the tensor 2");
  CHECK(says("(4294967296 4294967296) b -> b") ==  // whose product is 0, counted in 64 bits
        "the pattern '(4294967296 4294967296) b -> b' does not say how a dimension of 4 is made of its names");
  CHECK(says("a b -> b c") == "the pattern 'a b -> b c' has 'c' on its right alone");
  CHECK(says("a b -> b b a").ends_with("has 'b' twice on its right"));
  CHECK(says("a a -> a").ends_with("has 'a' twice"));
  CHECK(says("a b -> (b a").ends_with("has brackets that do not match"));
  CHECK(says("a b -> b a)").ends_with("has brackets that do not match"));
  CHECK(says("a b -> a").ends_with("cuts the tensor in 6, but is for 1 of the file"));
  CHECK(says("a b -> b:7 a").ends_with("says 'b:7', but the program has 6"));
  CHECK(says("a (4 c) -> a (4 c)").ends_with("does not say how a dimension of 6 is made of its names"));
  CHECK(says("a (b c) -> a b c").ends_with("does not say how a dimension of 6 is made of its names"));
}

/// What is said of a file, and of a table.
struct Told {
  std::string sentence;
  int code = 0;
};
/// `member`: what is looked at, of so many T.
template <class T = float>
Told told(const Plan& plan, const std::string& file, const WeightTable& table, const char* member = "model.token",
          std::size_t size = padded * channels) {
  Told t;
  each_rank(plan, [&](auto& executor, Threads&) {
    std::vector<T> was(size), is = was;
    executor.get(member, was);
    try {
      load_weights(executor, Safetensors(file), table);
    } catch (const Failure& failure) {
      t = {failure.what(), failure.exit_code};
    }
    executor.get(member, is);
    CHECK((was == is) == (t.code != 0));  // nothing is set where something is wrong
  });
  return t;
}

TEST_CASE("what a file has not, has beside, or has otherwise is one sentence") {
  const Folder folder;
  const std::string file = folder / "model.safetensors";
  const OwnedPlan plan = derive<Causal<Gpt2<>>>(Mesh{data = 1});
  const WeightTable table = hugging_face_gpt2(classes).below("model");
  const auto says = [&](auto change) {
    std::vector<FileEntry> entries = tensors("gpt2");
    change(entries);
    write_file(file, entries);
    const Told t = told(*plan, file, table);
    CHECK(t.code == (t.sentence.empty() ? 0 : exit_code::bad_data));
    CHECK((t.sentence.empty() || t.sentence.starts_with(file + ": ")));
    return t.sentence.substr(std::min(t.sentence.size(), file.size() + 2));
  };
  const auto at = [](std::vector<FileEntry>& all, const std::string& name) -> FileEntry& {
    return *std::find_if(all.begin(), all.end(), [&](const FileEntry& e) { return e.name == name; });
  };
  CHECK(says([](auto&) {}).empty());
  CHECK(says([](auto& all) { all.push_back({"transformer.h.1.attn.bias", FileDType::F32, {1, 1, 8, 8}}); }).empty());
  CHECK(says([&](auto& all) { at(all, "transformer.wpe.weight").name = "wpe.weight"; }) ==
        "it has no tensor transformer.wpe.weight, which is model.place; it has wpe.weight");
  CHECK(says([&](auto& all) { all.erase(all.begin()); }) ==
        "it has no tensor transformer.h.0.attn.c_attn.bias, which is model.blocks.*.attention.qkv_bias");
  CHECK(
      says([](auto& all) {
        all.push_back({"transformer.h.2.ln_1.weight", FileDType::F32, {16}});
      }) ==
      "it has a tensor transformer.h.2.ln_1.weight, F32 [16], of which the table of weights says nothing; give it a row, or "
      "name it in .ignored");
  CHECK(says([](auto& all) {
          all.push_back({"transformer.h.x.attn.bias", FileDType::F32, {1}});
        }).ends_with("name it in .ignored"));
  CHECK(says([&](auto& all) {
          at(all, "transformer.h.1.mlp.c_fc.weight").shape = {24, 16};
        }) ==
        "the tensor transformer.h.1.mlp.c_fc.weight, which is model.blocks.*.mlp.up, is [24, 16], but [16, 24] is "
        "expected; give the model the file's sizes, or its row a pattern");
  CHECK(says([&](auto& all) {
          at(all, "transformer.wte.weight").shape = {24, 16};
        })
            .ends_with("which is model.token, is [24, 16], but [17, 16] is expected; give the model the file's "
                       "sizes, or its row a pattern"));
  CHECK(says([](auto& all) {
          all.push_back({"lm_head.weight", FileDType::F32, {17, 16}});
        }) == "the tensor lm_head.weight is not transformer.wte.weight again; the model has one for both");

  std::vector<FileEntry> entries = tensors("gpt2");
  at(entries, "transformer.wpe.weight").dtype = FileDType::I32;
  entries.push_back({"lm_head.weight", FileDType::F32, {17, 16}});
  write_safetensors(file, entries, [](const FileEntry& e, FileSink& sink) {
    const std::vector<float> all = numbers(e.name == "lm_head.weight" ? "transformer.wte.weight" : e.name, elements(e));
    e.dtype == FileDType::I32 ? sink(std::vector<int>(all.size())) : sink(all);
  });
  CHECK(told(*plan, file, table).sentence ==
        file + ": the tensor transformer.wpe.weight has elements of I32; weights are F32, F16, BF16 or F64");

  write_file(file, tensors("gpt2"));
  const auto of = [&](auto change) {
    WeightTable other = table;
    change(other.rows);
    return told(*plan, file, other).sentence;
  };
  CHECK(of([](auto& rows) { rows.erase(rows.begin()); }) ==
        "the table of weights has no row for the parameter model.token; give it one");
  CHECK(of([](auto& rows) { rows[0].member = "model.tokens"; }) ==
        "the table of weights has no row for the parameter model.token; it has one for model.tokens, which is none; "
        "give it one");
  CHECK(
      of([](auto& rows) {
        rows.push_back({"model.head", {"x"}});
      }) ==
      "the table of weights has a row for model.head, but the program no such parameter; it has model.token and others");
  CHECK(of([](auto& rows) { rows.push_back(WeightRow(rows[0])); }) ==
        "the table of weights has two rows for the parameter model.token; leave one");
  CHECK(of([](auto& rows) { rows[1].names = {"h.{}.x"}; }) ==
        "the row of model.place names h.{}.x; a parameter that is no layer's has no {} in its name");
  CHECK(of([](auto& rows) { rows[0].pattern = "v -> v"; }).starts_with("the pattern 'v -> v' has 1"));
}

TEST_CASE("ranks that read other weights are told before anything is set") {
  const Folder folder;
  const OwnedPlan plan = derive<Causal<Gpt2<>>>(Mesh{tensor = 2});  // parts, which ranks cannot compare by themselves
  const WeightTable table = hugging_face_gpt2(classes).below("model");
  const std::vector<FileEntry> entries = tensors("gpt2");
  write_file(folder / "0", entries);
  const auto says = [&] {
    std::string sentence;
    each_rank(*plan, [&](auto& executor, Threads& world) {
      std::vector<float> was(padded * channels), is = was;
      executor.get("model.token", was);
      try {
        load_weights(executor, Safetensors(folder / std::to_string(world.rank())), table);
      } catch (const Mismatch& mismatch) {
        if (world.rank() == 1) sentence = mismatch.what();
      }
      executor.get("model.token", is);
      if (world.rank() == 1) CHECK((was == is) == !sentence.empty());
    });
    return sentence;
  };
  const auto with = [&](const std::string& name, auto change) {
    std::vector<FileEntry> other = entries;
    change(*std::find_if(other.begin(), other.end(), [&](const FileEntry& e) { return e.name == name; }));
    write_safetensors(folder / "1", other, [&](const FileEntry& e, FileSink& sink) {
      std::vector<float> all = numbers(e.name, elements(e));
      if (other == entries && e.name == name) all.back() += 1;
      give(sink, e.dtype, all);
    });
    return says();
  };
  const auto has = [](const std::string& sentence, const std::string& words) {
    CAPTURE(sentence);
    CHECK(sentence.find(words) != std::string::npos);
  };
  write_file(folder / "1", entries);
  CHECK(says().empty());
  const std::string token = "transformer.wte.weight", numbers_differ = with(token, [](FileEntry&) {});
  has(numbers_differ, "the ranks are not alike at reading weights (weights.cpp:");
  has(numbers_differ, "tensors of the weights of rank 0 and of rank 1: ");
  has(numbers_differ, token + " F32 [17, 16] hash ");
  has(numbers_differ, "; let all ranks read the same file, or copies of it");
  has(with(token, [](FileEntry& e) { e.name = "wte.weight"; }), "+ wte.weight F32 [17, 16] hash ");
  has(with(token, [](FileEntry& e) { e.dtype = FileDType::BF16; }), token + " BF16 [17, 16] hash ");
  has(with(token, [](FileEntry& e) { e.shape = {16, 17}; }), token + " F32 [16, 17] hash ");
}

TEST_CASE("a Llama whose head is its tokens' table is read, but not written as one") {
  const Folder folder;
  const std::string file = folder / "model.safetensors";
  std::vector<FileEntry> entries = tensors("llama");
  entries.erase(std::find_if(entries.begin(), entries.end(), [](auto& e) { return e.name == "lm_head.weight"; }));
  write_file(file, entries);
  WeightTable table = hugging_face_llama(classes).below("model");
  for (WeightRow& row : table.rows)
    if (row.member == "model.head") row.names = {"model.embed_tokens.weight"};
  const OwnedPlan plan = derive<Causal<Llama>>(Mesh{data = 1});
  each_rank(*plan, [&](auto& executor, Threads& world) {
    load_weights(executor, Safetensors(file), table);
    std::vector<float> token(padded * channels), head = token;
    executor.get("model.token", token);
    executor.get("model.head", head);
    for (std::size_t i = 0; i < token.size(); ++i) CHECK(head[i % channels * padded + i / channels] == token[i]);
    CHECK(files::said(folder / "copy", [&] { save_weights(world, executor, folder / "copy", table); }).sentence ==
          ": two tensors that are to be written are called 'model.embed_tokens.weight'");
  });
}

/// A table of the user's own, for a pipeline of layers that are stored split.
struct Own {
  struct Block {
    Parameter<double, Shape<channels, 2, channels / tensor>> in{normal(0.1)};
    Parameter<double, Shape<channels / tensor, channels>> out{normal(0.1)};
    constexpr auto operator()(Distributed auto x) const {
      const auto both = matmul(x, in);
      return x + matmul(take<1, 0>(both) * take<1, 1>(both), out);
    }
  };
  Layers<4 / stage, Block> blocks;
  Parameter<double, Shape<channels>> last{ones};
  constexpr auto operator()(Distributed auto x) const { return mean(blocks(x) * last); }
};
TEST_CASE("a table of one's own, for layers that are shared out and stored split") {
  const Folder folder;
  const WeightTable mine{{{"blocks.*.in", {"layer.{}.gate", "layer.{}.up"}, "in which out -> out in"},
                          {"blocks.*.out", {"down"}, "in out -> out in"},
                          {"last", {"last"}}}};
  std::vector<FileEntry> entries{{"down", FileDType::F64, {4, channels, channels}},
                                 {"last", FileDType::F64, {channels}}};
  for (const char* which : {"gate", "up"})
    for (int l = 0; l < 4; ++l)
      entries.push_back({"layer." + std::to_string(l) + "." + which, FileDType::F64, {channels, channels}});
  write_safetensors(folder / "own", entries,
                    [](const FileEntry& e, FileSink& sink) { sink(as<double>(numbers(e.name, elements(e)))); },
                    {{"format", "pt"}});
  using Step = Training<Own, Sgd, Tensor<double, Shape<8 / data, channels>>>;
  const auto check = [&]<class Program>(const Mesh& mesh, Program) {
    INFO(text(mesh));
    run_threads(mesh.ranks(), [&](Threads& world) {
      const OwnedPlan plan = derive<typename Program::type>(mesh, world.rank());  // each stage has its own
      under_test::Parameters parameters(*plan, world.rank(), 5);
      Executor<Threads, under_test::Device> executor(*plan, world, parameters);
      load_weights(executor, Safetensors(folder / "own"), mine);
      save_weights(world, executor, folder / "copy", mine, FileDType::F64);
    });
    CHECK(files::read(folder / "copy") == files::read(folder / "own"));
  };
  check(Mesh{data = 1}, std::type_identity<Step>());
  check(Mesh{stage = 2, tensor = 2}, std::type_identity<Step>());
  check(Mesh{stage = 4, data = 2}, std::type_identity<Step>());
  check(Mesh{data = 4, tensor = 2}, std::type_identity<AllStored<Step, Stored<data>>>());
}

TEST_CASE("under the members' own names, for layers that are shared out and stored split") {
  const Folder folder;
  const std::vector<FileEntry> entries{{"blocks.*.in", FileDType::F64, {4, channels, 2, channels}},
                                       {"blocks.*.out", FileDType::F64, {4, channels, channels}},
                                       {"last", FileDType::F64, {channels}}};
  const auto write = [&](const std::string& file, const std::vector<FileEntry>& all) {
    write_safetensors(folder / file, all,
                      [](const FileEntry& e, FileSink& sink) { sink(as<double>(numbers(e.name, elements(e)))); },
                      {{"format", "pt"}});
  };
  write("own", entries);
  using Step = Training<Own, Momentum, Tensor<double, Shape<8 / data, channels>>>;
  const auto check = [&]<class Program>(const Mesh& mesh, Program) {
    INFO(text(mesh));
    run_threads(mesh.ranks(), [&](Threads& world) {
      const OwnedPlan plan = derive<typename Program::type>(mesh, world.rank());
      under_test::Parameters parameters(*plan, world.rank(), 5);
      Executor<Threads, under_test::Device> executor(*plan, world, parameters);
      load_weights(executor, Safetensors(folder / "own"), member_names(*plan));
      save_weights(world, executor, folder / "copy", member_names(*plan), FileDType::F64);
    });
    CHECK(files::read(folder / "copy") == files::read(folder / "own"));
  };
  check(Mesh{data = 1}, std::type_identity<Step>());
  check(Mesh{data = 2, tensor = 2}, std::type_identity<Step>());
  check(Mesh{stage = 2, tensor = 2}, std::type_identity<Step>());
  check(Mesh{data = 4, tensor = 2}, std::type_identity<AllStored<Step, Stored<data>>>());

  const OwnedPlan plan = derive<Step>(Mesh{data = 1});
  const auto refused = [&](auto change) {
    std::vector<FileEntry> other = entries;
    change(other);
    write("other", other);
    const Told t = told<double>(*plan, folder / "other", member_names(*plan), "last", channels);
    CHECK(t.code == exit_code::bad_data);
    return t.sentence.substr(std::min(t.sentence.size(), (folder / "other").size()));
  };
  CHECK(refused([](auto& all) { all.pop_back(); }) == ": it has no tensor last");
  CHECK(refused([](auto& all) { all[2].name = "model.last"; }) == ": it has no tensor last; it has model.last");
  CHECK(refused([](auto& all) {
          all[1].shape = {3, channels, channels};
        }) ==
        ": the tensor blocks.*.out is [3, 16, 16], but [4, 16, 16] is expected; give the model the file's "
        "sizes, or its row a pattern");
  CHECK(refused([](auto& all) {
          all.push_back({"bias", FileDType::F64, {channels}});
        }) ==
        ": it has a tensor bias, F64 [16], of which the table of weights says nothing; give it a row, or name it in "
        ".ignored");
}

TEST_CASE("what ranks have written together is there for each of them") {
  const Folder folder;
  const WeightTable mine{{{"blocks.*.in", {"in"}, "in which out -> in which out"},
                          {"blocks.*.out", {"out"}, "in out -> in out"},
                          {"last", {"last"}}}};
  const OwnedPlan plan = derive<Evaluation<Own, Tensor<double, Shape<8 / data, channels>>>>(Mesh{tensor = 4});
  std::atomic<int> found = 0;
  run_threads(4, [&](Threads& world) {
    under_test::Parameters parameters(*plan, world.rank(), 5);
    Executor<Threads, under_test::Device> executor(*plan, world, parameters);
    for (int i = 0; i < 50; ++i) {
      const std::string file = folder / std::to_string(i);
      save_weights(world, executor, file, mine, FileDType::F64);
      found += std::filesystem::exists(file);
    }
  });
  CHECK(found == 4 * 50);
}

}  // namespace
