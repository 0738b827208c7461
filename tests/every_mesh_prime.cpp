#include "every_mesh.hpp"

using namespace every_mesh;

TEST_CASE("stored in every way, a transformer trains alike on all meshes of 5 and of 7 ranks") {
  const auto several = [](const Mesh& mesh) { return mesh.ranks() > 1; };
  CHECK(meshes({5}, several).size() == 5);
  check<5, 5 / stage>(meshes({5}, several));
  check<7, 7 / stage>(meshes({7}, several));
}
