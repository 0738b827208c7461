// Weights under the names of others: models give what Hugging Face's transformers give with them, on every mesh, and
// are written as they were read.
#include <cmath>
#include <cstring>
#include <map>

#include <doctest/doctest.h>

#include <parallel/file/safetensors.hpp>
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

}  // namespace
