// The programs that the bytes of an object, a library or a program carry, and their plans. Nothing of them is executed.
#pragma once
#include <cstring>

#include <parallel/object/read_object.hpp>

namespace parallel::internals::object {

/// The programs and meshes that a file carries.
struct Found {
  std::vector<std::unique_ptr<Carried>> programs{};
  std::vector<CarriedMesh> meshes{};
};

inline constexpr std::size_t most_carried = 1'000;  ///< programs of one file, and meshes: each is compared with all

/// Searches the bytes of an object, a library or a program. Copies of one program count once. A text that has the magic
/// words in it is passed over. Throws Damaged.
inline Found find(std::string_view bytes) {
  Found found;
  const auto word = [&](std::size_t at) {
    std::int64_t w = 0;
    std::memcpy(&w, bytes.data() + at, sizeof w);
    return w;
  };
  // unlike eight letters, or nothing
  const auto small = [](std::int64_t w) { return w > 0 && w < std::int64_t{1} << 32; };
  for (std::size_t at = 0; at + 8 * header <= bytes.size();) {
    const void* next = std::memchr(bytes.data() + at, static_cast<int>(magic & 0xff), bytes.size() - at);
    if (next == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const char*>(next) - bytes.data());
    if (at + 8 * header > bytes.size()) break;
    const bool mesh = word(at + 8) == mesh_magic;
    const std::int64_t length = word(at + 24);
    if (word(at) != magic || (word(at + 8) != program_magic && !mesh) || (!small(word(at + 16)) && !small(length))) {
      ++at;
      continue;
    }
    if (length < header || length > static_cast<std::int64_t>((bytes.size() - at) / 8))
      throw Damaged("it is truncated, or a length in it is wrong");
    std::vector<std::int64_t> words(static_cast<std::size_t>(length));
    std::memcpy(words.data(), bytes.data() + at, 8 * words.size());
    Reader reader(words);
    if (mesh) {
      const CarriedMesh read = reader.mesh();
      bool known = false;
      for (const CarriedMesh& m : found.meshes)
        known = known || (m.program == read.program && m.axes == read.axes && m.here == read.here);
      if (!known) found.meshes.push_back(read);
      require(found.meshes.size() <= most_carried, "it has too many meshes");
    } else {
      auto carried = reader.program();
      bool known = false;
      for (const auto& p : found.programs) known = known || p->checksum == carried->checksum;
      if (!known) found.programs.push_back(std::move(carried));
      require(found.programs.size() <= most_carried, "it has too many programs");
    }
    at += 8 * words.size();
  }
  return found;
}

/// A program that cannot be planned from what a file carries, as its pipeline's schedule is the user's own function.
struct ForeignSchedule : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
inline std::string foreign(const Schedule& schedule) {
  std::string known;
  for (const Schedule* s : schedules::with_one_chunk) known += std::string(s->name) + ", ";
  return "its schedule '" + std::string(schedule.name) +
         "' is a function of its own, which no file carries; only the library's are known here: " + known +
         std::string(schedules::interleaved<1>.name);
}

/// The plan of a carried program on a mesh of its axes, by the same passes that the compiler ran; the program outlives
/// it. Throws MeshRefused, ForeignSchedule.
inline OwnedPlan derive(const Carried& program, const Mesh& mesh, std::span<const GraphView> beside = {}) {
  if (program.schedule.tasks == nullptr) throw ForeignSchedule(foreign(program.schedule));
  return parallel::derive(program.graph, mesh, beside, program.demands);
}

}  // namespace parallel::internals::object
