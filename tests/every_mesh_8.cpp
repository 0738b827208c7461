#include "every_mesh.hpp"

TEST_CASE("stored in every way, a transformer trains alike on 1, 2, 4 and 8 ranks, all 56 meshes") {
  CHECK(every_mesh::check<8>({2, 4, 8}) == 56);
}
