// The same where the sequence is split and keys come around a ring, or all is brought to the heads.
#include "every_mesh.hpp"

using namespace every_mesh;

namespace {
bool shared(const Mesh& mesh) { return mesh.extent(&sequence) > 1; }
bool shared_whole(const Mesh& mesh) { return shared(mesh) && !staged(mesh); }
bool shared_in_stages(const Mesh& mesh) { return shared(mesh) && staged(mesh); }
}  // namespace

TEST_CASE("a ring trains alike on all meshes whose ranks share the sequence") {
  CHECK(meshes({2, 4}, shared_whole).size() == 14);
  check<4, 2, Context::ring>(meshes({2, 4}, shared_whole));
  check<4, 4 / stage, Context::ring>(meshes({2}, shared_in_stages));
}
TEST_CASE("so does one whose positions stand in zigzag") {
  check<4, 2, Context::ring, Order::zigzag>(meshes({2}, shared_whole));
  check<4, 4 / stage, Context::ring, Order::zigzag>(meshes({2}, shared_in_stages));
}
TEST_CASE("so do all-to-alls to the heads") { check<4, 2, Context::ulysses>(meshes({2}, shared_whole)); }
