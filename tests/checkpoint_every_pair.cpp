// A training that is kept on any mesh up to eight ranks, stored in some way, goes on correctly on every other that
// its layers allow, stored in each way.
#include "every_mesh_kept.hpp"

namespace {

using namespace every_mesh;

template <int factor, Dim layers>
void check_pairs(const std::vector<Mesh>& all) {
  constexpr int saved = 1, steps = 3;  // state is seen in the loss behind the first update by it
  const std::vector<Graph> stored = stages<every_mesh::Step<factor, layers, Context::gathered, Order::contiguous, 1>>();
  std::vector<kept::Folder> folders(all.size());
  std::vector<double> rest;
  for (std::size_t i = 0; i < all.size(); ++i)
    rest = kept::behind(train(stored[i % 4], all[i], folders[i].path, steps, saved), saved);
  int pairs = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all.size(); ++j, ++pairs) {
      INFO("from " << text(all[i]) << " to " << text(all[j]) << ", " << way[(i + j) % 4]);
      check_near(train(stored[(i + j) % 4], all[j], folders[i].path, steps, 0), rest);
    }
  MESSAGE(pairs << " pairs");
}

}  // namespace

TEST_CASE("from each mesh of 1, 2, 4 and 8 ranks to each") {
  check_pairs<8, 8 / stage>(meshes({2, 4, 8}, [](const Mesh&) { return true; }));
}
TEST_CASE("from each mesh of 1, 2, 3 and 6 ranks to each") {
  check_pairs<6, 6 / stage>(meshes({2, 3, 6}, [](const Mesh&) { return true; }));
}
