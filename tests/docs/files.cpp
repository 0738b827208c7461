// The program of docs/files.md.
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include <parallel/file/csv.hpp>
#include <parallel/file/idx.hpp>
#include <parallel/file/npy.hpp>
#include <parallel/file/npz.hpp>
#include <parallel/file/raw.hpp>
#include <parallel/file/safetensors.hpp>
#include <parallel/file/tokenizer.hpp>
#include <parallel/file/tokens.hpp>
#include <parallel/file/write_safetensors.hpp>
#include <parallel/run/failure.hpp>

using namespace parallel;
using parallel::internals::NewFile;

namespace {

void safetensors(const std::string& file) {
  const std::vector<FileEntry> entries{{"wte", FileDType::F32, {1000, 64}}, {"step", FileDType::I64, {}}};
  write_safetensors(file, entries, [&](const FileEntry& entry, FileSink& sink) {
    if (entry.name == "step") return sink(std::vector<std::int64_t>{12});
    const std::vector<float> row(64, 0.02F);
    for (int i = 0; i < 1000; ++i) sink(row);
  });

  const Safetensors weights(file);
  for (std::size_t i = 0; i < weights.size(); ++i)
    std::printf("%s has %lld elements\n", weights[i].name.c_str(), static_cast<long long>(weights[i].elements()));
  const FileView<float> embedding = weights["wte"].as<float>();
  std::printf("%zu floats, the last is %.2f\n", embedding.size(), embedding[embedding.size() - 1]);
}

void npy(const std::string& file) {
  const std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  write_npy(file, {2, 3}, numbers);  // numpy.load(file)
  const FileTensor array = read_npy(file);
  std::printf("%lld rows, the last number is %g\n", static_cast<long long>(array.shape[0]), array.as<float>()[5]);
}

void raw(const std::string& file) {
  {
    NewFile out(file, file);
    const float numbers[] = {1, 2, 3, 4, 5, 6};
    out.write(numbers, sizeof numbers);
    out.put_in_place();
  }
  const FileTensor numbers = read_raw<float>(file, {2, 3});  // numpy.memmap(file, "float32", "r", shape=(2, 3))
  std::printf("%zu numbers\n", numbers.as<float>().size());
}

void npz(const std::string& file) {
  const std::vector<FileEntry> arrays{{"weight", FileDType::F32, {3, 4}}, {"bias", FileDType::F32, {4}}};
  write_npz(file, arrays, [](const FileEntry& entry, FileSink& sink) {
    sink(std::vector<float>(entry.name == "bias" ? 4 : 12, 0.5F));
  });
  const Npz all(file);
  const FileView<float> bias = all["bias"].as<float>();
  std::printf("%zu arrays, one of %zu numbers\n", all.size(), bias.size());
}

void csv(const std::string& file) {
  {
    NewFile out(file, file);
    std::fputs("name,height,weight\nAda,1.64,58\n\"O'Neil, Bob\",1.83,\n", out.stream());
    out.put_in_place();
  }
  const CsvTable<float> people = read_csv<float>(file, {.columns = {"height", "weight"}, .empty = 0});
  std::printf("%zu rows of %zu, the first is %g m\n", people.rows, people.columns.size(), people.row(0)[0]);
}

void idx(const std::string& file) {
  {
    NewFile out(file, file);
    out.write("\0\0\x08\x01\0\0\0\2\5\7", 10);
    out.put_in_place();
  }
  const FileTensor labels = read_idx(file);  // MNIST's train-labels-idx1-ubyte
  std::printf("the second label is %d\n", labels.as<std::uint8_t>()[1]);
}

void tokens(const std::string& file) {
  const std::vector<std::uint16_t> some{464, 3290, 318, 50256};
  write_tokens(file, std::span(std::as_const(some)));
  const TokenFile all(file);
  std::printf("%zu tokens, the last is %d\n", all.size(), all[all.size() - 1]);
}

void tokenizer(const std::string& json, const std::string& text, const std::string& file) {
  const Tokenizer gpt2(json);  // or Tokenizer("encoder.json", "vocab.bpe")
  const std::vector<int> tokens = gpt2.encode(text + "<|endoftext|>");
  const std::vector<std::uint16_t> to_train_on(tokens.begin(), tokens.end());
  write_tokens(file, std::span(to_train_on));
  std::printf("%s", gpt2.decode(tokens).c_str());
}

void tiktoken(const std::string& file) {
  const Tokenizer tokenizer(Tiktoken{.file = file, .pieces = Pieces::gpt2, .specials = {{"<|end|>", 1000}}});
  std::printf("%zu tokens\n", tokenizer.encode("Don't panic.<|end|>").size());
}

}  // namespace

int main(int argc, char** argv) {
  return guarded("files", [&] {
    if (argc != 3) throw Failure("name a folder to write in, and tests/fixtures/files", exit_code::usage);
    const std::string folder = argv[1];
    safetensors(folder + "/weights.safetensors");
    npy(folder + "/array.npy");
    raw(folder + "/numbers.bin");
    npz(folder + "/arrays.npz");
    csv(folder + "/people.csv");
    idx(folder + "/labels");
    tokens(folder + "/tokens.bin");
    tokenizer(argv[2] + std::string("/gpt2.tokenizer.json"), "Don't panic.", folder + "/text.bin");
    tiktoken(argv[2] + std::string("/vocabulary.tiktoken"));
    return 0;
  });
}
