// The program of docs/files.md.
#include <cstdio>
#include <vector>

#include <parallel/file/safetensors.hpp>
#include <parallel/file/write_safetensors.hpp>
#include <parallel/run/failure.hpp>

using namespace parallel;

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

}  // namespace

int main(int argc, char** argv) {
  return guarded("files", [&] {
    if (argc != 2) throw Failure("name a folder to write in", exit_code::usage);
    const std::string folder = argv[1];
    safetensors(folder + "/weights.safetensors");
    return 0;
  });
}
