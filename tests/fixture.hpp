// Reads a fixture of reference values; the programs of tools/fixtures say what is in theirs.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct FixtureTensor {
  std::vector<std::int64_t> sizes;
  std::vector<double> values;
};

/// The tensors of a file by name.
class Fixture {
 public:
  explicit Fixture(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string line;
    if (!std::getline(file, line) || line != "parallel fixture 1") throw std::runtime_error(path + " is no fixture");
    std::vector<std::pair<std::string, std::string>> order;  // name, type
    while (std::getline(file, line) && !line.empty()) {
      std::istringstream words(line);
      std::string name, type;
      words >> name >> type;
      order.emplace_back(name, type);
      for (std::int64_t n; words >> n;) tensors_[name].sizes.push_back(n);
    }
    for (const auto& [name, type] : order) {
      FixtureTensor& tensor = tensors_[name];
      std::size_t n = 1;
      for (const std::int64_t size : tensor.sizes) n *= static_cast<std::size_t>(size);
      const std::size_t each = type == "f64" ? 8 : 4;
      std::vector<char> bytes(each * n);
      if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
        throw std::runtime_error(path + " ends within " + name);
      for (std::size_t i = 0; i < n; ++i) {
        const char* at = &bytes[each * i];
        tensor.values.push_back(type == "i32"   ? from<std::int32_t>(at)
                                : type == "f64" ? from<double>(at)
                                                : static_cast<double>(from<float>(at)));
      }
    }
  }
  const FixtureTensor& operator[](const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw std::runtime_error("the fixture has no " + name);
    return found->second;
  }
  template <class T>
  std::vector<T> values(const std::string& name) const {
    const std::vector<double>& all = (*this)[name].values;
    return {all.begin(), all.end()};
  }
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }

 private:
  template <class T>
  static T from(const char* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  std::map<std::string, FixtureTensor> tensors_{};
};

/// The one of this test; the build says where it is.
inline const Fixture& fixture() {
  static const Fixture read([] {
    const char* path = std::getenv("PARALLEL_FIXTURE");
    if (path == nullptr)
      throw std::runtime_error(
          "PARALLEL_FIXTURE does not say where the fixture is, such as tests/fixtures/gpt2.fixture");
    return std::string(path);
  }());
  return read;
}
