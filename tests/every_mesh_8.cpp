#include "every_mesh.hpp"

using namespace every_mesh;

TEST_CASE("stored in every way, a transformer trains alike on all meshes of 1, 2, 4 and 8 ranks") {
  const std::vector<Mesh> whole = meshes({2, 4, 8}, [](const Mesh&mesh) { return !staged(mesh); }),
                          stages = meshes({2, 4, 8}, staged);
  CHECK(whole.size() == 1 + 4 + 10 + 20);
  CHECK(whole.size() + stages.size() == 1 + 5 + 15 + 35);
  check<8, 2>(whole);
  check<8, 8 / stage>(stages);
}
