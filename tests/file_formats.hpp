// Formats of files and of words that the library reads, for what reads them changed: whole files, and readers that look
// at all that they gave.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/file/csv.hpp>
#include <parallel/file/idx.hpp>
#include <parallel/file/llmc.hpp>
#include <parallel/file/npy.hpp>
#include <parallel/file/npz.hpp>
#include <parallel/file/safetensors.hpp>
#include <parallel/file/sharded_safetensors.hpp>
#include <parallel/file/tokenizer.hpp>
#include <parallel/file/tokens.hpp>
#include <parallel/file/write_safetensors.hpp>
#include <parallel/run/checkpoint.hpp>
#include <parallel/run/mesh_argument.hpp>
#include <parallel/run/weight_table.hpp>

namespace file_formats {

using namespace parallel;
using namespace parallel::internals;

/// A format: files that are whole, and a reader that looks at all that it gave.
struct Format {
  const char* name;
  std::vector<std::string> whole{};
  std::function<void(const std::string&)> read{};
  bool text = false;  ///< changed by words and lines, too
};

inline unsigned seen = 0;  // so that what is read is read
template <class Elements>
void look(const Elements& elements) {
  for (const auto& e : elements) {
    unsigned char bytes[sizeof e];
    std::memcpy(bytes, &e, sizeof e);
    seen += bytes[0];
  }
}
inline void look_at(const FileTensor& tensor) {
  look(tensor.bytes);
  seen += static_cast<unsigned>(tensor.elements());
  try {
    look(tensor.as<float>());
  } catch (const Failure&) {
  }
}

/// A checkpoint behind three steps.
inline std::string whole_checkpoint() {
  using namespace checkpointing;
  const std::vector<double> w{1, 2, 3, 4};
  const std::byte* const bytes = reinterpret_cast<const std::byte*>(w.data());
  const std::map<std::string, std::string> metadata{{std::string(version_key), std::string(version)},
                                                    {std::string(step_key), "3"},
                                                    {"number:step", "0x1.8p+1"},
                                                    {"number:seed", "0x1p+0"},
                                                    {"number:loss_scale", "0x1p+16"},
                                                    {"number:loss_scale.steps", "3"},
                                                    {"number:loss_scale.doubles_after", "2000"},
                                                    {"note:text", "a note"},
                                                    {std::string(sum_key), std::string(no_sum)},
                                                    {std::string(sum_key) + "w", hexadecimal(sum_of(8, bytes, 0, 4))}};
  const SafetensorsHeader header("", {{"w", FileDType::F64, {2, 2}}}, metadata);
  return summed(header.bytes()) + std::string(reinterpret_cast<const char*>(bytes), sizeof(double) * w.size());
}
/// What `resume` reads before it sets anything.
inline void read_checkpoint(const std::string& file) {
  const Safetensors from = checkpointing::opened(file, 3);
  for (std::size_t i = 0; i < from.size(); ++i) look_at(from[i]);
  for (const char* name : {"step", "seed"}) seen += checkpointing::number_in(from, name).has_value();
  seen += checkpointing::loss_scale_in(from).has_value();
}
/// The same, and with a header whose sum is right, which chance would not find.
inline void read_checkpoint_as_if_written(const std::string& file) {
  try {
    return read_checkpoint(file);
  } catch (const Failure&) {
  }
  std::string bytes, header;
  {
    const Safetensors from(file);
    if (!from.metadata().contains(checkpointing::sum_key)) return read_checkpoint(file);
    const MappedFile all(file);
    header = from.header();
    bytes = all.text();
  }
  bytes.replace(0, header.size(), checkpointing::summed(header));
  std::filesystem::remove(file);
  NewFile out(file, file);
  out.write(bytes.data(), bytes.size());
  out.put_in_place();
  read_checkpoint(file);
}
/// Words, whose mistakes have a code of their own.
template <class F>
void read_words(const std::string& file, int code, F f) {
  try {
    f(std::string(MappedFile(file).text()));
  } catch (const Failure& failure) {
    if (failure.exit_code != code) throw;
    throw damaged(file, failure.what());
  }
}
/// A pattern for tensors of several shapes: where one fits, each element has a place, within the file's tensors.
inline void read_pattern(const std::string& pattern) {
  std::optional<Misuse> refused;
  bool fits = false;
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{12, 8}, {4, 2, 6}})
    for (const std::int64_t layers : {0, 3})
      for (const std::int64_t tensors : {1, 2}) {
        try {
          const bool numbered = layers > 0 && tensors == 1;
          const Arrangement how(pattern, shape, layers, numbered, tensors);
          const std::int64_t all = *elements_of(shape) * std::max(layers, std::int64_t{1}),
                             there = *elements_of(how.file_shape()), most = tensors * (numbered ? layers : 1);
          std::int64_t next = 0;
          how.each_run(0, all, [&](auto position, auto tensor, auto index, auto step, auto count) {
            if (position != next || count < 1 || tensor < 0 || tensor >= most || index < -1 ||
                (index >= 0 && index + (count - 1) * step >= there))
              throw std::logic_error("an element has no place");
            next += count;
          });
          if (next != all) throw std::logic_error("an element has no run");
          fits = true;
        } catch (const Misuse& misuse) {
          refused = misuse;
        }
      }
  if (!fits) throw Misuse(*refused);
}

/// All of them; `fixtures`: the folder of files of others.
inline std::vector<Format> formats(const std::string& fixtures) {
  const auto files = [&](const std::string& ending) {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(fixtures))
      if (entry.path().string().ends_with(ending)) {
        const internals::MappedFile file(entry.path().string());
        all.emplace_back(file.text());
      }
    std::sort(all.begin(), all.end());
    return all;
  };
  const auto number = [](std::int32_t n) { return std::string(reinterpret_cast<const char*>(&n), 4); };
  std::vector<Format> result;
  const auto safetensors = [](const std::string& file) {
    const Safetensors all(file);
    for (std::size_t i = 0; i < all.size(); ++i) look_at(all[all[i].name]);
  };
  result.push_back({"safetensors", files(".safetensors"), safetensors, true});
  result.push_back({"npy", files(".npy"), [](const std::string& file) { look_at(read_npy(file)); }, true});
  const auto each = [](const auto& all) {
    for (std::size_t i = 0; i < all.size(); ++i) look_at(all[i]);
  };
  result.push_back({"npz", files(".npz"), [each](const std::string& file) { each(Npz(file)); }});
  static constexpr LlmcSizes sizes{.context = 2, .vocabulary = 3, .layers = 1, .heads = 1, .channels = 2, .padded = 4};
  const llmc::ModelLayout model("", sizes, FileDType::F32), halves("", sizes, FileDType::BF16);
  const auto filled = [](const llmc::ModelLayout& layout) {
    std::string bytes = layout.bytes();
    bytes.resize(static_cast<std::size_t>(layout.begin(layout.tensors().size())), 'x');
    return bytes;
  };
  result.push_back(
      {"llmc", {filled(model), filled(halves)}, [each](const std::string& file) { each(LlmcModel(file)); }});
  const std::string state = number(20240327) + number(2) + number(1) + number(2) + std::string(1008, '\0') +
                            std::string(16 + 24 + 4, 'x') + filled(model).substr(1024);
  result.push_back({"llmc_debug", {state}, [each](const std::string& file) { each(LlmcDebugState(file, sizes)); }});
  const auto sharded = [each](const std::string& file) {
    try {
      each(ShardedSafetensors(file));
    } catch (const Failure& failure) {  // other names are of other files
      if (failure.exit_code == exit_code::missing_input) throw damaged(file, failure.what());
      throw;
    }
  };
  result.push_back({"sharded", {R"({"weight_map":{"w":"small.safetensors","k":"small.safetensors"}})"}, sharded, true});
  const auto tiktoken = [](const std::string& file) {
    const Tokenizer all(Tiktoken{file, Pieces::llama3, {{"<|end|>", 1000}}});
    look(all.encode("Don't panic: 12345 \n\n <|end|>"));
  };
  result.push_back({"tiktoken", files(".tiktoken"), tiktoken, true});
  const auto csv = [](const std::string& file) {
    look(read_csv<float>(file).values);
    look(read_csv<double>(file, {.header = false, .separator = ';', .empty = 0}).values);
  };
  result.push_back(
      {"csv", {"x,y,\"z\"\n1,2,3\n4,\"5\",6e3\n", "1;2;;3\r\n4;5;6;7\r\n", "\"a \"\"b\"\"\n\" , c\n1,2"}, csv, true});
  const std::string idx{"\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\3abcdef", 22};
  result.push_back({"idx", {idx}, [](const std::string& file) { look_at(read_idx(file)); }});
  const auto tokens = [](const std::string& file) {
    for (const TokenFile& all : {TokenFile(file, TokenWidth::two), TokenFile(file)})
      for (std::size_t i = 0; i < all.size(); ++i) seen += static_cast<unsigned>(all[i]);
  };
  result.push_back({"tokens",
                    {number(20240520) + number(1) + number(3) + std::string(1012, '\0') + "abcdef",
                     number(20240801) + number(7) + number(2) + std::string(1012, '\0') + "abcdefgh"},
                    tokens});
  const auto tokenizer = [](const std::string& file) {
    const Tokenizer all(file);
    for (const std::string_view text : {"Don't panic: 12345 \n\n <|end|>", "\xff\xc3\xa9 <|endoftext|>  "})
      look(all.encode(text));
  };
  result.push_back({"tokenizer", files(".tokenizer.json"), tokenizer, true});
  const auto encoder = [fixtures](const std::string& file) {
    look(Tokenizer(file, fixtures + "/merges.txt").encode("a text"));
  };
  result.push_back({"vocab", files("vocab.json"), encoder, true});
  const auto merges = [fixtures](const std::string& file) {
    look(Tokenizer(fixtures + "/vocab.json", file).encode("a text"));
  };
  result.push_back({"merges", files("merges.txt"), merges, true});
  result.push_back({"checkpoint", {whole_checkpoint()}, read_checkpoint_as_if_written, true});
  const auto pattern = [](const std::string& file) { read_words(file, exit_code::internal, read_pattern); };
  result.push_back({"pattern",
                    {"a b -> b a", "in which out -> out in", "c heads size -> (heads size) c", "v c -> v:5 c",
                     "c (2 half) -> (half 2) c", ""},
                    pattern,
                    true});
  const auto mesh = [](const std::string& file) {
    read_words(file, exit_code::configuration, [](const std::string& words) {
      seen += static_cast<unsigned>(mesh_argument(words, {&axes::data, &axes::tensor, &axes::stage}).ranks());
    });
  };
  result.push_back({"mesh", {"data=2,tensor=4", "stage=3,data=65536", "tensor=1"}, mesh, true});
  return result;
}

}  // namespace file_formats
