// A checkpoint that processes write: they go on with the same bits, and threads with theirs.
#include <parallel/communicator/mpi.hpp>

#include "kept.hpp"

using namespace kept;

namespace {

template <class Program>
void check_kept(const Mesh& mesh) {
  Mpi world;
  INFO(text(mesh));
  const std::optional<Folder> own = world.rank() == 0 ? std::optional<Folder>(std::in_place) : std::nullopt;
  const std::string folder = agreeing::gathered(world, own ? own->path : "", "the folder of the test")[0];
  std::vector<double> losses, rest;
  train_rank<Program>(world, folder, mesh, 6, 3, losses);
  train_rank<Program>(world, folder, mesh, 6, -1, rest);
  if (world.rank() == 0) {
    const Folder nothing;
    CHECK(losses == train<Program>(nothing.path, mesh, 6, -1));
    CHECK(rest == behind(losses, 3));
    CHECK(train<Program>(folder, mesh, 6, -1) == rest);
    CHECK(near(train<Step>(folder, Mesh{data = 1}, 6, -1), rest));
  }
  world.barrier();  // the folder stays as long
}

}  // namespace

TEST_CASE("what processes save they and threads go on from, with the same bits") {
  if (Mpi().size() == 2) {
    check_kept<Step>(Mesh{data = 2});
    check_kept<AllStored<Step, Stored<data>>>(Mesh{data = 2});
  } else {
    check_kept<AllStored<Step, Stored<data, Zero::states>>>(Mesh{data = 2, tensor = 2});
    check_kept<Staged>(Mesh{stage = 2, data = 2});
  }
}
