// Files of llm.c (https://github.com/karpathy/llm.c): the weights of a GPT-2, and a step that PyTorch computed.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <parallel/file/named_tensors.hpp>

namespace parallel::internals {

/// A GPT-2 in numbers.
struct LlmcSizes {
  std::int64_t context = 0, vocabulary = 0, layers = 0, heads = 0, channels = 0;
  std::int64_t padded = 0;  ///< the vocabulary as the file has it
  bool operator==(const LlmcSizes&) const = default;
};

namespace llmc {
inline constexpr std::int32_t model_magic = 20240326, float_version = 3, bfloat16_version = 5, state_magic = 20240327,
                              state_version = 2;
inline constexpr std::size_t header_numbers = 256, header_bytes = 4 * header_numbers;
using Header = std::array<std::int32_t, header_numbers>;

/// The kinds of tensors one behind the other, as llm.c calls them, each of all layers together. Matrices are [out, in].
inline std::vector<FileEntry> tensors(const LlmcSizes& n, FileDType dtype) {
  const std::int64_t l = n.layers, c = n.channels;
  const std::vector<std::pair<const char*, std::vector<std::int64_t>>> kinds{
      {"wte", {n.padded, c}},     {"wpe", {n.context, c}}, {"ln1w", {l, c}},        {"ln1b", {l, c}},
      {"qkvw", {l, 3 * c, c}},    {"qkvb", {l, 3 * c}},    {"attprojw", {l, c, c}}, {"attprojb", {l, c}},
      {"ln2w", {l, c}},           {"ln2b", {l, c}},        {"fcw", {l, 4 * c, c}},  {"fcb", {l, 4 * c}},
      {"fcprojw", {l, c, 4 * c}}, {"fcprojb", {l, c}},     {"lnfw", {c}},           {"lnfb", {c}}};
  std::vector<FileEntry> all;
  for (const auto& [name, shape] : kinds) all.push_back({name, dtype, shape});
  return all;
}
/// Throws Failure(bad_data) where a file of these sizes would be none.
inline void check(const std::string& file, const LlmcSizes& n) {
  constexpr std::int64_t most = 1 << 24;  // so that no product of two overflows
  for (const auto& [what, size] : {std::pair{"positions", n.context},
                                   {"tokens", n.vocabulary},
                                   {"layers", n.layers},
                                   {"heads", n.heads},
                                   {"channels", n.channels},
                                   {"padded tokens", n.padded}})
    if (size < 1 || size > most)
      throw damaged(file, "it is said to have " + std::to_string(size) + " " + what + "; 1 to 16777216 are expected");
  if (n.padded < n.vocabulary || n.channels % n.heads != 0)
    throw damaged(file, "it is said to have a vocabulary of " + std::to_string(n.vocabulary) + " padded to " +
                            std::to_string(n.padded) + ", and " + std::to_string(n.channels) + " channels of " +
                            std::to_string(n.heads) + " heads, which do not go together");
}

/// FILE, mapped, which begins with this magic and one of these versions. `expected`: "weights with 1 and 2". Throws
/// Failure: missing_input where there is none, bad_data where it begins otherwise.
inline std::shared_ptr<const MappedFile> mapped(const std::string& file, std::int32_t magic,
                                                std::initializer_list<std::int32_t> versions,
                                                const std::string& expected) {
  auto in = std::make_shared<const MappedFile>(file);
  if (in->bytes().size() < header_bytes)
    throw damaged(file, "it has " + std::to_string(in->bytes().size()) + " bytes, fewer than llm.c's header of 1024");
  const auto its = in->number<std::int32_t>(0), version = in->number<std::int32_t>(4);
  if (its != magic || std::find(versions.begin(), versions.end(), version) == versions.end())
    throw damaged(file, "it begins with " + std::to_string(its) + " and version " + std::to_string(version) +
                            ", but llm.c's " + expected);
  return in;
}

/// What a file of weights begins with, and where its tensors lie.
class ModelLayout {
 public:
  /// Throws Failure(bad_data) where these are no sizes, or the elements neither F32 nor BF16.
  ModelLayout(const std::string& file, const LlmcSizes& n, FileDType dtype) {
    check(file, n);
    if (dtype != FileDType::F32 && dtype != FileDType::BF16)
      throw damaged(file, "llm.c's weights are F32 or BF16, not " + std::string(name_of(dtype)));
    tensors_ = llmc::tensors(n, dtype);
    Header header{model_magic, dtype == FileDType::F32 ? float_version : bfloat16_version};
    const std::int64_t sizes[] = {n.context, n.vocabulary, n.layers, n.heads, n.channels, n.padded};
    for (std::size_t i = 0; i < std::size(sizes); ++i) header[2 + i] = static_cast<std::int32_t>(sizes[i]);
    bytes_ = little_endian(header);
    std::int64_t end = header_bytes;
    for (const FileEntry& t : tensors_) {
      begins_.push_back(end);
      const auto elements = elements_of(t.shape);
      const auto size = elements ? bytes_of(dtype, *elements) : std::nullopt;
      if (!size || __builtin_add_overflow(end, *size, &end))
        throw damaged(file, "its tensor " + t.name + " has more elements than can be counted");
    }
    begins_.push_back(end);
  }
  const std::string& bytes() const { return bytes_; }
  const std::vector<FileEntry>& tensors() const { return tensors_; }
  /// Where a tensor begins in the file; behind the last, where that ends.
  std::int64_t begin(std::size_t i) const { return begins_[i]; }

 private:
  std::string bytes_{};
  std::vector<FileEntry> tensors_{};
  std::vector<std::int64_t> begins_{};
};

/// The tensor that begins where `there` does; of tokens those that there really are.
inline FileTensor without_padding(FileEntry t, const LlmcSizes& n, std::shared_ptr<const MappedFile> in,
                                  std::span<const std::byte> there) {
  if (t.name == "wte") t.shape[0] = n.vocabulary;
  const auto length = static_cast<std::size_t>(*bytes_of(t.dtype, *elements_of(t.shape)));
  return {std::move(t), std::move(in), there.first(length)};
}
}  // namespace llmc

/// llm.c's gpt2_124M.bin, of floats or of bfloat16: its tensors, mapped, under the names that they have there: wte,
/// wpe, ln1w and so on, each of all layers. Of the vocabulary `wte` has what there really is.
class LlmcModel : public NamedTensors {
 public:
  /// Throws Failure: missing_input where there is no such file; bad_data where it is another, or has not the bytes that
  /// its header says.
  explicit LlmcModel(const std::string& file) : NamedTensors(file) {
    const auto in = llmc::mapped(file, llmc::model_magic, {llmc::float_version, llmc::bfloat16_version},
                                 "weights with 20240326 and 3 or 5");
    const std::size_t bytes = in->bytes().size();
    const auto size = [&](std::size_t i) { return std::int64_t{in->number<std::int32_t>(4 * i)}; };
    sizes_ = {.context = size(2),
              .vocabulary = size(3),
              .layers = size(4),
              .heads = size(5),
              .channels = size(6),
              .padded = size(7)};
    const bool floats = in->number<std::int32_t>(4) == llmc::float_version;
    const llmc::ModelLayout layout(file, sizes_, floats ? FileDType::F32 : FileDType::BF16);
    const std::size_t count = layout.tensors().size();
    if (static_cast<std::uint64_t>(layout.begin(count)) != bytes)
      throw damaged(file, "by its header it has " + std::to_string(layout.begin(count)) + " bytes, but it has " +
                              std::to_string(bytes));
    for (std::size_t i = 0; i < count; ++i) {
      const auto there = in->bytes().subspan(static_cast<std::size_t>(layout.begin(i)));
      add(llmc::without_padding(layout.tensors()[i], sizes_, in, there));
    }
    finish();
  }
  const LlmcSizes& sizes() const { return sizes_; }

 private:
  LlmcSizes sizes_{};
};

/// llm.c's gpt2_124M_debug_state.bin: a batch, and what PyTorch computed with it: `inputs` and `targets`, [batch,
/// positions] of I32; `logits`, `loss`, and the gradient of each tensor of the model under its name there.
class LlmcDebugState : public NamedTensors {
 public:
  /// `of`: the sizes of the model that goes with it, which the file does not say. Throws as LlmcModel.
  LlmcDebugState(const std::string& file, const LlmcSizes& of) : NamedTensors(file) {
    const auto in = llmc::mapped(file, llmc::state_magic, {llmc::state_version}, "debug states with 20240327 and 2");
    const std::size_t bytes = in->bytes().size();
    const std::int64_t batch = in->number<std::int32_t>(8), positions = in->number<std::int32_t>(12);
    llmc::check(file, of);
    if (batch < 1 || positions < 1 || positions > of.context)
      throw damaged(file, "it is said to have " + std::to_string(batch) + " rows of " + std::to_string(positions) +
                              " positions; the model has " + std::to_string(of.context));
    std::vector<FileEntry> all{{"inputs", FileDType::I32, {batch, positions}},
                               {"targets", FileDType::I32, {batch, positions}},
                               {"logits", FileDType::F32, {batch, positions, of.vocabulary}},
                               {"loss", FileDType::F32, {}}};
    for (FileEntry& t : llmc::tensors(of, FileDType::F32)) all.push_back(std::move(t));
    std::uint64_t at = llmc::header_bytes;
    for (FileEntry& t : all) {
      const auto elements = elements_of(t.shape);
      const auto length = elements ? bytes_of(t.dtype, *elements) : std::nullopt;
      if (!length || static_cast<std::uint64_t>(*length) > bytes - at)
        throw damaged(file, "it ends within " + t.name + ", by its header and the sizes of the model");
      const auto there = in->bytes().subspan(at);
      at += static_cast<std::uint64_t>(*length);
      add(llmc::without_padding(std::move(t), of, in, there));
    }
    if (at != bytes)
      throw damaged(file, "by its header and the sizes of the model it has " + std::to_string(at) +
                              " bytes, but it has " + std::to_string(bytes));
    finish();
  }
};

}  // namespace parallel::internals

namespace parallel {
using internals::LlmcDebugState;
using internals::LlmcModel;
using internals::LlmcSizes;
}  // namespace parallel
