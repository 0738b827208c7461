// Processes that meet under MPI to exchange by NCCL: which GPU each takes, the id that all get. The stand-in's NCCL is
// within a process, so more than one rank is not run here.
#include <doctest/doctest.h>

#include <parallel/communicator/nccl_mpi.hpp>

using namespace parallel;
using namespace parallel::internals;

TEST_CASE("a process takes the GPU of its number, and all get one id") {
  Mpi world;
  stand_in::reset({.devices = world.size()});
  unsetenv("CUDA_VISIBLE_DEVICES");
  ncclUniqueId other{};
  for (int i = 0; i < world.rank(); ++i) ncclGetUniqueId(&other);  // which in each process begins anew
  const nccl::Seat seat = nccl::seat_under_mpi(world);
  CHECK(seat.gpu == world.rank());
  std::vector<ncclUniqueId> all(static_cast<std::size_t>(world.size()));
  exchange(world, {Collective::all_gather, &seat.id, all.data(), world.size() * 32, DType::i32});
  for (const ncclUniqueId& id : all) CHECK(std::string(id.internal) == "stand-in 1");
}

TEST_CASE("a launcher that lets each process see one GPU") {
  Mpi world;
  stand_in::reset();
  setenv("CUDA_VISIBLE_DEVICES", std::to_string(world.rank()).c_str(), 1);
  CHECK(nccl::seat_under_mpi(world).gpu == 0);
  unsetenv("CUDA_VISIBLE_DEVICES");
  if (world.size() == 1) return;
  const std::string wanted =
      "parallel::Nccl: " + std::to_string(world.size()) +
      " ranks want a GPU each, but there is 1 GPU on this machine; start 1, or let ranks share a GPU by run_threads to verify";
  CHECK_THROWS_WITH(nccl::seat_under_mpi(world), wanted.c_str());
}

TEST_CASE("a rank alone") {
  Mpi mpi;
  if (mpi.size() > 1) return;
  stand_in::reset();
  const nccl::Seat seat = nccl::seat_under_mpi(mpi);
  Nccl world(mpi.rank(), mpi.size(), seat.id, seat.gpu);
  world.barrier();
  CHECK(stand_in::faults().empty());
}
