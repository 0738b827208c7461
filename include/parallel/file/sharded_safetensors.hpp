// Safetensors in several files, which an index names, as Hugging Face's libraries write large models:
// model.safetensors.index.json beside model-00001-of-00002.safetensors. Needs nlohmann-json.
#pragma once
#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include <parallel/file/named_tensors.hpp>
#include <parallel/file/safetensors.hpp>

namespace parallel::internals {

/// Their tensors, mapped, as if they were one file's.
class ShardedSafetensors : public NamedTensors {
 public:
  /// `index`: the .json. Throws Failure: missing_input where a file is not there; bad_data where one is damaged, the
  /// index names a file elsewhere than beside itself, or a tensor that is not where it says, or not all of them.
  explicit ShardedSafetensors(const std::string& index) : NamedTensors(index) {
    const MappedFile in(index);
    const auto all = nlohmann::json::parse(in.text().begin(), in.text().end(), nullptr, false);
    if (!all.is_object() || !all.contains("weight_map") || !all["weight_map"].is_object())
      throw damaged(index, "it is no JSON with a weight_map of names and files");
    std::map<std::string, Safetensors> shards;
    std::size_t tensors = 0;
    for (const auto& [name, file] : all["weight_map"].items()) {
      if (!file.is_string()) throw damaged(index, "its tensor '" + name + "' is in no file");
      const auto& shard = file.get_ref<const std::string&>();
      if (shard.empty() || shard.find('/') != std::string::npos || shard.find('\0') != std::string::npos)
        throw damaged(index, "its tensor '" + name + "' is in '" + shard.substr(0, 100) +
                                 "'; a file that lies beside it is expected");
      auto at = shards.find(shard);
      if (at == shards.end()) {
        at = shards.emplace(shard, Safetensors(index.substr(0, index.rfind('/') + 1) + shard)).first;
        tensors += at->second.size();
      }
      add(at->second[name]);
    }
    finish();
    if (tensors == size()) return;
    for (const auto& [shard, file] : shards)
      for (std::size_t i = 0; i < file.size(); ++i)
        if (const std::string name = file[i].name; !contains(name))
          throw damaged(file.file(), "it has a tensor " + name + ", which the index " + index + " has not");
  }
};

}  // namespace parallel::internals

namespace parallel {
using internals::ShardedSafetensors;
}  // namespace parallel
