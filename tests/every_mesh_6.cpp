#include "every_mesh.hpp"

using namespace every_mesh;

TEST_CASE("stored in every way, a transformer trains alike on all meshes of 3 and 6 ranks") {
  const std::vector<Mesh> all = meshes({2, 3, 6}, [](const Mesh& mesh) { return mesh.ranks() % 3 == 0; });
  CHECK(all.size() == 5 + 5 * 5);
  check<6, 6 / stage>(all);
}
