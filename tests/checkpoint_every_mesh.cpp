// A training that is kept on any mesh up to eight ranks, stored in some way, goes on there with the same bits, and
// correctly on one rank and on the next mesh, stored in another way; and there from one rank.
#include "every_mesh_kept.hpp"

namespace {

using namespace every_mesh;

template <int factor, Dim layers>
void check_kept(const std::vector<Mesh>& all) {
  constexpr int saved = 2, steps = 4;
  const std::vector<Graph> stored = stages<every_mesh::Step<factor, layers, Context::gathered, Order::contiguous, 1>>();
  const Mesh alone{data = 1};
  const kept::Folder of_one, nothing;
  const std::vector<double> one = train(stored[0], alone, of_one.path, steps, saved), rest = kept::behind(one, saved);
  CHECK(rest[0] != one[0]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(way[i % 4] << " on " << text(all[i]));
    const Graph& graph = stored[i % 4];
    const kept::Folder folder;
    const std::vector<double> losses = train(graph, all[i], folder.path, steps, saved);
    check_near(losses, one);
    CHECK(train(graph, all[i], folder.path, steps, 0) == kept::behind(losses, saved));
    check_near(train(stored[0], alone, folder.path, steps, 0), rest);
    check_near(train(stored[(i + 1) % 4], all[(i + 1) % all.size()], folder.path, steps, 0), rest);
    check_near(train(graph, all[i], of_one.path, steps, 0), rest);
  }
}

}  // namespace

TEST_CASE("on all meshes of 2, 4 and 8 ranks") {
  check_kept<8, 2>(meshes({2, 4, 8}, [](const Mesh& mesh) { return !staged(mesh); }));
  check_kept<8, 8 / stage>(meshes({2, 4, 8}, staged));
}
TEST_CASE("on all meshes of 3 and 6 ranks") {
  check_kept<6, 6 / stage>(meshes({2, 3, 6}, [](const Mesh& mesh) { return mesh.ranks() % 3 == 0; }));
}
TEST_CASE("on all meshes of 5 and of 7 ranks") {
  const auto several = [](const Mesh& mesh) { return mesh.ranks() > 1; };
  check_kept<5, 5 / stage>(meshes({5}, several));
  check_kept<7, 7 / stage>(meshes({7}, several));
}
