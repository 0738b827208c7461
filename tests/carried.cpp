// What an object carries of a program: read back, it plans field by field as the compiler did; damaged in any way, it is refused in words.
#include <doctest/doctest.h>

#include <parallel/plan/find_object.hpp>
#include <random>

#include "../tools/planner/dot.hpp"
#include "../tools/planner/json.hpp"
#include "../tools/planner/lock.hpp"
#include "../tools/planner/tree.hpp"
#include "models.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {

using Model = models::Gpt<float, models::multiples_of(4)>;
using Step = Training<Model, AdamW, Model::Tokens, Model::Tokens>;
using Micro = Accumulate<2, Step>;

template <class Program>
std::vector<std::int64_t> words_of() {
  return {std::begin(object::program<Program>.words), std::end(object::program<Program>.words)};
}
Mesh of_its_axes(const object::Carried& program, const Mesh& mesh) {
  Mesh own;
  for (int i = 0; i < mesh.count; ++i) own.axes[own.count++] = Extent(program.axis(mesh.axes[i].axis->text()), mesh.axes[i].size);
  return own;
}

template <class Program, Mesh mesh>
void same() {
  constexpr auto& compiled = plan<Program, mesh>;
  const auto words = words_of<Program>();
  const auto carried = object::Reader(words).program();
  const OwnedPlan read = object::derive(*carried, of_its_axes(*carried, mesh));
  CHECK(planner::json(*read, "").dump(1) == planner::json(compiled, "").dump(1));
  CHECK(planner::tree(*read) == planner::tree(compiled));
  REQUIRE(read->storage.size() == compiled.storage.size());
  for (std::size_t v = 0; v < compiled.storage.size(); ++v) {
    const Storage &a = read->storage[v], &b = compiled.storage[v];
    const bool alike = a.block == b.block && a.offset == b.offset && a.stride == b.stride && a.loop == b.loop && a.shift == b.shift && a.modulo == b.modulo &&
                       a.region == b.region;
    CHECK(alike);
  }
  CHECK(std::equal(read->packing.begin(), read->packing.end(), compiled.packing.begin(), compiled.packing.end()));
}

/// Words whose length and checksum are right again.
void seal(std::vector<std::int64_t>& words) {
  words[3] = static_cast<std::int64_t>(words.size());
  words[4] = object::checksum(std::span<const std::int64_t>(words).subspan(object::header));
}
std::string bytes_of(const std::vector<std::int64_t>& words) { return {reinterpret_cast<const char*>(words.data()), 8 * words.size()}; }

/// Does with a file what tools/plan does. Says whether a plan came out; what is thrown must be a refusal in words.
bool planned(const std::string& file, int ranks) {
  try {
    const object::Found found = object::find(file);
    for (const auto& program : found.programs) {
      Mesh mesh;
      for (const Axis& a : program->axes)
        if (mesh.count < 3) mesh.axes[mesh.count++] = Extent(&a, ranks);
      const OwnedPlan plan = object::derive(*program, mesh);
      const std::string all = planner::tree(*plan) + planner::written({planner::lock_of(*plan, program->name)}) + totals(*plan) + planner::dot(*plan) + planner::json(*plan, program->name).dump(-1, ' ', false, planner::Json::error_handler_t::replace);
      CHECK(!all.empty());
    }
    return !found.programs.empty();
  } catch (const object::Damaged& refused) {
    CHECK(*refused.what() != 0);
  } catch (const MeshRefused& refused) {
    CHECK(*refused.what() != 0);
  }
  return false;
}

}  // namespace

TEST_CASE("a program that was read plans as the compiler did") {
  same<Step, Mesh{data = 2, tensor = 2}>();
  same<Step, Mesh{tensor = 4}>();
  same<Micro, Mesh{data = 2, sequence = 2}>();
  CHECK(object::Reader(words_of<Micro>()).program()->name.ends_with(", AdamW>>(i32[2, 4/data, 4/sequence], i32[2, 4/data, 4/sequence])"));
}

TEST_CASE("the compiler's meshes are carried with their program") {
  const auto& words = object::mesh<Step, Mesh{data = 2, tensor = 2}>.words;
  const object::CarriedMesh mesh = object::Reader(words).mesh();
  CHECK(mesh.program == object::program<Step>.words[4]);
  CHECK(mesh.axes == std::vector<std::pair<std::string, int>>{{"data", 2}, {"tensor", 2}});
}

TEST_CASE("files") {
  const std::string program = bytes_of(words_of<Step>());
  CHECK(planned("some bytes before " + program + " and behind", 2));
  CHECK(object::find(program + program).programs.size() == 1);
  const auto& mesh = object::mesh<Step, Mesh{data = 2, tensor = 2}>.words;
  const std::string planned_for = bytes_of({std::begin(mesh), std::end(mesh)});
  CHECK(object::find(planned_for + program + planned_for).meshes.size() == 1);
  CHECK(object::find("").programs.empty());
  CHECK(object::find(std::string(1000, 'p')).programs.empty());
  for (std::size_t n = 16; n < program.size(); n += 1 + n / 7) CHECK_FALSE(planned(program.substr(0, n), 2));
}

TEST_CASE("a text that has the magic words in it is passed over, a damaged header is not") {
  const std::string program = bytes_of(words_of<Step>());
  CHECK(object::find("parallel:program, says a text that goes on for a while").programs.empty());
  CHECK(object::find(std::string("parallel:program") + std::string(100, '\0')).programs.empty());
  CHECK(object::find("parallel:program" + program).programs.size() == 1);
  for (std::size_t word = 2; word < object::header; ++word)
    for (int bit = 0; bit < 64; ++bit) {
      std::vector<std::int64_t> words = words_of<Step>();
      words[word] ^= static_cast<std::int64_t>(std::uint64_t{1} << bit);
      CHECK_THROWS_AS(object::find(bytes_of(words)), object::Damaged);
    }
}

TEST_CASE("a name is the same from every compiler") {
  for (const char* spelled : {"W<{anonymous}::Q, <unnamed>::E::b, my::{anonymous}::N<int, P<Q> > >",                              // g++
                              "W<(anonymous namespace)::Q, (anonymous namespace)::E::b, my::(anonymous namespace)::N<int, P<Q>>>",  // clang
                              "W<_GLOBAL__N__6c1b_7_a_cu_main::Q, _GLOBAL__N__6c1b_7_a_cu_main::E::b, my::_GLOBAL__N__6c1b_7_a_cu_main::N<int, P<Q> > >"})
    CHECK(object::portable(spelled) == "W<{anonymous}::Q, {anonymous}::E::b, my::{anonymous}::N<int, P<Q>>>");
  for (const char* spelled : {"Llama<parallel::models::LlamaSizes{parallel::Dim{16, {(& axes::tensor)}, 1}, 32}, float>", "Llama<{{16, {&tensor, nullptr}, 1}, 32}, float>"})
    CHECK(object::portable(spelled) == "Llama<{...}, float>");
  CHECK(object::portable("W<{unclosed") == "W<{...}");
}

TEST_CASE("what is damaged is refused") {
  std::mt19937_64 engine(1);
  const auto random = [&](std::size_t below) { return static_cast<std::size_t>(engine() % below); };
  const std::int64_t odd[] = {-1, 0, 1, 2, 3, 7, 8, 16, 255, 4096, 20'000, 1 << 20, std::int64_t{1} << 44, std::numeric_limits<std::int64_t>::max(),
                              std::numeric_limits<std::int64_t>::min()};
  int came_out = 0;
  for (const std::vector<std::int64_t>& whole : {words_of<Step>(), words_of<Micro>()})
    for (int i = 0; i < 1500; ++i) {
      std::vector<std::int64_t> words = whole;
      for (std::size_t k = 1 + random(3); k > 0; --k) {
        const std::size_t at = object::header + random(words.size() - object::header);
        switch (random(6)) {
          case 0: words[at] = odd[random(std::size(odd))]; break;
          case 1: words[at] += 1; break;
          case 2: words[at] -= 1; break;
          case 3: words[at] = words[object::header + random(words.size() - object::header)]; break;
          case 4: words.erase(words.begin() + static_cast<std::ptrdiff_t>(at)); break;
          default: words[at] ^= std::int64_t{1} << random(63); break;
        }
      }
      seal(words);
      came_out += planned(bytes_of(words), static_cast<int>(1 + random(4)));
    }
  CHECK(came_out > 50);  // or the damage would only have been seen by the first check
}
