// Ranks under NCCL: every exchange against its definition, their order with the computation, graphs, and ends that are
// not regular. On GPUs the first cases run, for as many ranks as there are GPUs; the others need the stand-in.
#include <atomic>
#include <filesystem>
#include <fstream>

#include <nccl.h>

#include <parallel/communicator/nccl_file.hpp>

#include "nccl_runs.hpp"

using namespace nccl_runs;
using namespace parallel::internals;

namespace {

constexpr int rank_counts[] = {1, 2, 3, 4};

}  // namespace

TEST_CASE("every collective is its definition, but for the order of sums") {
  for (const bool blocking : {false, true})
    for (const int n : rank_counts) {
      CAPTURE(n);
      all_right_staged(
          n, [](Staged& t) { return cases::every_collective(t); }, {.blocking = blocking}, static_cast<unsigned>(n));
    }
}

TEST_CASE("exchanges overlap") {
  for (const int n : rank_counts)
    for (unsigned seed = 1; seed <= 3; ++seed) {
      all_right_staged(
          n, [](Staged& t) { return cases::overlapping(t, 2); }, {}, seed);
      all_right_staged(
          n, [](Staged& t) { return cases::alternating(t); }, {}, seed);
    }
}

TEST_CASE("groups on a mesh, and of groups") {
  using namespace parallel::axes;
  all_right_staged(8, [](Staged& t) { return cases::groups_of(t, Mesh{data = 2, tensor = 2, sequence = 2}); });
  all_right_staged(5, [](Staged& t) {
    Staged odd = t.split(t.rank() % 2, -t.rank());
    const int wanted[] = {2, 1, 1, 0, 0};
    if (odd.rank() != wanted[t.rank()] || odd.size() != (t.rank() % 2 == 1 ? 2 : 3)) return std::string("the order");
    Staged alone = odd.split(odd.rank(), 0);
    if (alone.size() != 1 || alone.rank() != 0) return std::string("the second split");
    return cases::every_collective<float>(odd, DType::f32) + cases::every_collective<float>(alone, DType::f32);
  });
}

TEST_CASE("messages arrive, in order, whatever else is on its way") {
  for (const int n : {1, 2, 3, 4}) {
    CAPTURE(n);
    all_right_staged(
        n, [](Staged& t) { return t.connect(), messages::every_case(t, 2, 300); }, {}, static_cast<unsigned>(n));
  }
}

TEST_CASE("refusals and records") {
  for (const int n : {1, 3}) {
    all_right_staged(n, [](Staged& t) { return cases::refusals(t); });
    all_right_staged(n, [](Staged& t) { return cases::records(t); });
  }
  REQUIRE(machine(1));
  CHECK_THROWS_WITH(run_nccl(1, [](Nccl& t) { t.split(-1, 0); }),
                    "parallel::split: the color is negative; count colors from 0");
  if (!machine(2)) return;
  const auto unconnected = [](Nccl& t) {
    float x = 0;
    t.connect(2);  // the rank itself: nothing
    t.start({.kind = t.rank() == 0 ? Collective::send : Collective::receive,
             .in = &x,
             .out = &x,
             .count = 1,
             .peer = 1 - t.rank()});
  };
  CHECK_THROWS_WITH(
      run_nccl(2, unconnected),
      doctest::Contains("there is no channel between the two ranks; let all ranks of the group call connect"));
}

#if defined(PARALLEL_STAND_IN)

namespace {

/// A kernel: x[i] = a * x[i] + b.
void scale(cudaStream_t stream, float* x, std::size_t count, float a, float b) {
  stand_in::enqueue(
      stream,
      [=] {
        for (std::size_t i = 0; i < count; ++i) x[i] = a * x[i] + b;
      },
      {stand_in::reads(x, count * 4), stand_in::writes(x, count * 4)}, "scale");
}
Exchange all_reduce(const Numbers& x, const char* label = "") {
  return {Collective::all_reduce, x.data, x.data, static_cast<std::int64_t>(x.count), DType::f32, false, 0, label};
}

}  // namespace

TEST_CASE("sums are not those of rank order: the tests would see it") {
  stand_in::reset({.devices = 3});
  std::vector<std::string> wrong(3);
  run_nccl(3, [&](Nccl& t) {
    cases::rank_order = true;
    Staged staged(t.split(0, t.rank()));
    wrong[index(t.rank())] = cases::every_collective<float>(staged, DType::f32);
    cases::rank_order = false;
  });
  CHECK(contains(wrong[0], "of the result"));
}

TEST_CASE("exchanges are ordered with the computation, and the host waits for nothing") {
  for (unsigned seed = 1; seed <= 30; ++seed)
    all_right(
        3,
        [&](Nccl& t) {
          const nccl::Stream stream = nccl::make_stream();
          t.compute(stream.get());
          t.connect(1);
          const int next = (t.rank() + 1) % 3, previous = (t.rank() + 2) % 3;
          const auto mine = static_cast<float>(t.rank() + 1);
          Numbers x({mine, 10 * mine}), got({0, 0}), sum({0, 0});
          t.barrier();
          std::atomic<bool> begins = false;
          stand_in::hold(stream.get(), begins);
          for (int step = 0; step < 3; ++step) {
            scale(stream.get(), x.data, 2, 2, 1);
            const Ticket in =
                t.start({.kind = Collective::receive, .out = got.data, .count = 2, .label = "in", .peer = previous});
            const Ticket out =
                t.start({.kind = Collective::send, .in = x.data, .count = 2, .label = "out", .peer = next});
            t.wait(in);
            scale(stream.get(), got.data, 2, 3, 0);
            const Ticket reduced =
                t.start({Collective::all_reduce, got.data, sum.data, 2, DType::f32, false, 0, "sum"});
            t.wait(out);
            scale(stream.get(), x.data, 2, 1, 1);  // what was sent may be written
            t.wait(reduced);
            scale(stream.get(), got.data, 2, 0, 0);  // and what was summed
            scale(stream.get(), sum.data, 2, 1, static_cast<float>(step));
          }
          begins = true;
          t.finish();
          // x: 2 x + 1 is sent, one more stays. After three steps what is sent is 8 mine + 13, then 14; the sum of
          // ranks is 3 * (8 * 6 + 39) + 2.
          const auto s = sum.read(), left = x.read();
          const bool fine = s[0] == 3 * (48 + 39) + 2 && s[1] == 3 * (480 + 39) + 2 && left[0] == 8 * mine + 14;
          return fine ? std::string()
                      : "seed " + std::to_string(seed) + ": " + std::to_string(s[0]) + ", " + std::to_string(left[0]);
        },
        {}, seed);
}

TEST_CASE("a step is one graph on every rank") {
  for (unsigned seed = 1; seed <= 12; ++seed)
    all_right(
        4,
        [&](Nccl& t) {
          const nccl::Stream stream = nccl::make_stream();
          t.compute(stream.get());
          Nccl pair = t.split(t.rank() / 2, t.rank());
          t.connect(1);
          Numbers x({static_cast<float>(t.rank()), 1}), got({0, 0}), both({0, 0, 0, 0});
          cudaGraph_t graph = nullptr;
          cudaGraphExec_t exec = nullptr;
          if (cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) != cudaSuccess)
            return std::string("begin");
          scale(stream.get(), x.data, 2, 1, 1);
          const Ticket out = t.start({.kind = Collective::send, .in = x.data, .count = 2, .peer = (t.rank() + 1) % 4});
          const Ticket in =
              t.start({.kind = Collective::receive, .out = got.data, .count = 2, .peer = (t.rank() + 3) % 4});
          t.wait(in);
          const Ticket gathered = pair.start({Collective::all_gather, got.data, both.data, 4});
          pair.wait(gathered);
          t.wait(out);
          exchange(t, all_reduce(x));
          if (cudaStreamEndCapture(stream.get(), &graph) != cudaSuccess) return std::string("end");
          if (cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return std::string("instantiate");
          cudaGraphDestroy(graph);
          for (int step = 0; step < 3; ++step) cudaGraphLaunch(exec, stream.get());
          t.finish();
          cudaGraphExecDestroy(exec);
          // x[1]: 1, then 4 * (1 + 1) = 8, 36, 148; what was sent last is 37.
          const auto sums = x.read(), parts = both.read();
          // x[0]: 0+1+2+3 + 4 = 10, then 44, 180; what was sent last is 45.
          return sums == std::vector<float>{180, 148} && parts == std::vector<float>{45, 37, 45, 37}
                     ? std::string()
                     : std::to_string(sums[0]) + " " + std::to_string(parts[0]);
        },
        {}, seed);
}

TEST_CASE("the deadline names the exchange, and ends all ranks") {
  std::vector<Seen> seen;
  int code = 0;
  SUBCASE("of a collective that one rank never starts") {
    const auto words = fails(
        3, seen,
        [&](Nccl& t) {
          Numbers x({1}), y({1});
          exchange(t, all_reduce(x, "mlp.up"));
          if (t.rank() != 1) exchange(t, all_reduce(y, "mlp.down"));
          if (t.rank() == 1) return until_missed();
          try {
            t.finish();
          } catch (const Deadline&) {
            CHECK(cudaDeviceSynchronize() == cudaSuccess);  // nothing is on its way any more
            throw;
          }
        },
        300ms, &code);
    CHECK(
        contains(words, "of 3 waited 300 ms in all_reduce of 1 f32 (mlp.down) of its group of 3; another rank hangs"));
    CHECK(code == 75);
    for (const int r : {0, 2}) CHECK(seen[index(r)].code == 75);
  }
  SUBCASE("of a message without its other end") {
    const auto words = fails(
        2, seen,
        [&](Nccl& t) {
          t.connect(1);
          Numbers x({1});
          if (t.rank() == 0)
            t.wait(
                t.start({.kind = Collective::receive, .out = x.data, .count = 1, .label = "activations", .peer = 1}));
          if (t.rank() == 0) t.finish();
          if (t.rank() == 1) until_missed();
        },
        200ms);
    CHECK(contains(words, "rank 0 of 2 waited 200 ms in receive of 1 f32 from rank 1 (activations) of its group of 2"));
  }
  SUBCASE("of a split, at which the host waits") {
    const auto words = fails(
        2, seen,
        [&](Nccl& t) {
          if (t.rank() == 0) t.split(0, 0);
          if (t.rank() == 1) until_missed();
        },
        200ms);
    CHECK(contains(words, "rank 0 of 2 waited 200 ms in a split of 2 ranks"));
  }
  SUBCASE("of a step that is a graph") {
    const auto words = fails(
        2, seen,
        [&](Nccl& t) {
          const nccl::Stream stream = nccl::make_stream();
          t.compute(stream.get());
          Numbers x({1});
          cudaGraph_t graph = nullptr;
          cudaGraphExec_t exec = nullptr;
          cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal);
          exchange(t, all_reduce(x, "loss"));
          cudaStreamEndCapture(stream.get(), &graph);
          cudaGraphInstantiate(&exec, graph, 0);
          cudaGraphDestroy(graph);
          const std::unique_ptr<CUgraphExec_st, cudaError_t (*)(cudaGraphExec_t)> owned(exec, cudaGraphExecDestroy);
          for (int i = 0; i <= t.rank(); ++i) cudaGraphLaunch(exec, stream.get());
          t.finish("step 7");
        },
        200ms);
    CHECK(seen[0].words == "");
    CHECK(contains(words, "rank 1 of 2 waited 200 ms in step 7 (or in a step that was captured"));
  }
}

TEST_CASE("a rank that throws ends the waits of all others at once") {
  std::vector<Seen> seen;
  const auto words = fails(4, seen, [&](Nccl& t) {
    Numbers x({1});
    t.barrier();
    if (t.rank() == 2) throw std::runtime_error("rank 2 is broken");
    exchange(t, all_reduce(x, "gradient"));
    t.finish();
  });
  CHECK(words == "rank 2 is broken");
  for (const int r : {0, 1, 3}) {
    CHECK(contains(seen[index(r)].words, "gave up "));
    CHECK(contains(seen[index(r)].words, ": rank 2 failed: rank 2 is broken"));
    CHECK(seen[index(r)].code == 75);
    CHECK(seen[index(r)].after < 2s);
  }
}

TEST_CASE("ranks that call different collectives") {
  std::vector<Seen> seen;
  int code = 0;
  const auto words = fails(
      2, seen,
      [&](Nccl& t) {
        Numbers x({1, 2});
        Exchange e = all_reduce(x, "loss");
        e.count = 1 + t.rank();
        exchange(t, e);
        t.finish();
      },
      2s, &code);
  CHECK(contains(words, "all_reduce of "));
  CHECK(contains(words, "f32 (loss)"));
  CHECK(contains(words, "failed: invalid usage; let all ranks call the same in the same order"));
  CHECK(code == 76);
}

TEST_CASE("an error that NCCL sees meanwhile") {
  std::vector<Seen> seen;
  int code = 0;
  const auto words = fails(
      2, seen,
      [&](Nccl& t) {
        Numbers x({1});
        t.barrier();
        if (t.rank() == 1) {
          stand_in::fail_communicators(ncclRemoteError);
          return until_missed();
        }
        exchange(t, all_reduce(x, "loss"));
        t.finish();
      },
      2s, &code);
  CHECK(contains(
      words,
      " failed: remote process exited or there was a network error; another rank has ended, or cannot be reached"));
  CHECK(code == 75);
}

TEST_CASE("after a failure nothing is on its way, and nothing starts") {
  stand_in::reset({.devices = 2});
  std::vector<std::string> said(2);
  std::atomic<int> there = 0;
  const auto run = [&](Nccl& t) {
    Numbers x({1});
    if (t.rank() == 0) exchange(t, all_reduce(x, "loss"));
    t.abandon("enough");
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    try {
      t.start(all_reduce(x, "loss"));
    } catch (const PeerFailed& error) {
      said[index(t.rank())] = error.what();
    }
    CHECK_THROWS_AS(t.split(0, 0), PeerFailed);
    CHECK_THROWS_AS(t.finish(), PeerFailed);
    for (++there; there < 2;) std::this_thread::yield();
    throw Failure("the end");
  };
  CHECK_THROWS_WITH(run_nccl(2, run), "the end");
  CHECK(said[0] == "parallel::Nccl: rank 0 of 2 gave up all_reduce of 1 f32 (loss): enough");
}

TEST_CASE("ranks without a GPU of their own") {
  const auto said = [](const stand_in::Options& machine, int ranks) {
    stand_in::reset(machine);
    std::string words = "nothing";
    try {
      run_nccl(ranks, [](Nccl&) {});
    } catch (const NoGpu& error) {
      words = error.what();
      CHECK(exit_code_of(error) == 69);
    }
    return words;
  };
  CHECK(
      said({.devices = 2}, 4) ==
      "parallel::Nccl: 4 ranks want a GPU each, but there are 2 GPUs here; start 2, or let ranks share a GPU by run_threads to verify");
  CHECK(
      said({.devices = 1}, 2) ==
      "parallel::Nccl: 2 ranks want a GPU each, but there is 1 GPU here; start 1, or let ranks share a GPU by run_threads to verify");
  CHECK(
      said({.devices = 0}, 1) ==
      "parallel::Nccl: 1 rank wants a GPU each, but there is no GPU here (no CUDA-capable device is detected); run on the CPU with Cpu");
  CHECK(contains(said({.driver = 11000}, 2),
                 "but there is no GPU here (CUDA driver version is insufficient for CUDA runtime version)"));
  CHECK(said({.devices = 2}, 2) == "nothing");
  stand_in::reset({.devices = 2});
  CHECK_THROWS_WITH(
      run_threads(2,
                  [](Threads& t) {
                    static ncclUniqueId id{};
                    if (t.rank() == 0) ncclGetUniqueId(&id);
                    t.barrier();
                    Nccl world(t.rank(), 2, id, 1);
                  }),
      doctest::Contains("invalid usage; let all ranks call the same in the same order, each on a GPU of its own"));
}

namespace {

/// The ranks of a run that meet in a file, as threads; what each got or said.
std::vector<std::string> meet(const std::filesystem::path& path, const std::vector<int>& who, int ranks,
                              std::chrono::milliseconds deadline, std::vector<int>* missing = nullptr) {
  std::vector<std::string> got(index(ranks));
  std::vector<std::thread> threads;
  for (const int r : who)
    threads.emplace_back([&, r] {
      std::this_thread::sleep_for(10ms * (r * 7 % 3));
      try {
        got[index(r)] = meet_in_file(path, r, ranks, deadline).internal;
      } catch (const Deadline& error) {
        got[index(r)] = error.what();
        if (missing != nullptr && r == 0) *missing = error.missing;
      } catch (const std::exception& error) {
        got[index(r)] = error.what();
      }
    });
  for (auto& t : threads) t.join();
  return got;
}

}  // namespace

TEST_CASE("ranks that meet as threads or in a file set the environment, and leave what the user has set") {
  const char* const names[] = {"NCCL_RUNTIME_CONNECT", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING"};
  const auto seen = [&](auto meets) {
    for (const char* name : names) unsetenv(name);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
    stand_in::reset();
    meets();
    std::string all;
    for (const char* name : names) all += std::string(getenv(name) == nullptr ? "unset" : getenv(name)) + " ";
    return all;
  };
  CHECK(seen([] { run_nccl(1, [](Nccl&) {}); }) == "0 8 EAGER ");
  const auto path = std::filesystem::temp_directory_path() / ("parallel-alone-" + std::to_string(getpid()));
  CHECK(seen([&] { meet_in_file(path, 0, 1); }) == "0 8 EAGER ");
}

TEST_CASE("ranks meet in a file, whatever an earlier run has left there") {
  stand_in::reset();
  const auto folder = std::filesystem::temp_directory_path() / ("parallel-nccl-" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const auto path = folder / "run";
  std::string before;
  for (int run = 0; run < 3; ++run) {
    const auto got = meet(path, {0, 1, 2, 3}, 4, 5s);
    for (const auto& id : got) CHECK(id == got[0]);
    CHECK(contains(got[0], "stand-in "));
    CHECK(got[0] != before);
    before = got[0];
    CHECK(std::filesystem::is_empty(folder));
  }
  // A run that broke off: rank 1 never came, and has left nothing; ranks 0 and 2 have left their files.
  std::vector<int> missing;
  auto got = meet(path, {0, 2}, 3, 200ms, &missing);
  CHECK(contains(got[0], "parallel::meet_in_file: rank 0 of 3 waited 200 ms at "));
  CHECK(contains(got[0], "run for rank 1; start all ranks"));
  CHECK(missing == std::vector<int>{1});
  CHECK(std::filesystem::exists(path));
  // Files of ranks whose run is over, too, and cut off.
  nccl::write_whole<nccl::Nonce>(folder / "run.1", {nccl::Nonce::fresh()});
  std::ofstream(folder / "run.2") << "x";
  // Ranks that come before rank 0 do not take what they find.
  got = meet(path, {1, 2}, 3, 100ms);
  CHECK(contains(got[1], "rank 1 of 3 waited 100 ms"));
  CHECK(contains(got[1], "for rank 0;"));
  got = meet(path, {0, 1, 2}, 3, 5s);
  CHECK(got[1] == got[0]);
  CHECK(got[2] == got[0]);
  CHECK(contains(got[0], "stand-in "));
  // A rank's file of an earlier run does not count as that rank.
  nccl::write_whole<nccl::Nonce>(folder / "run.1", {nccl::Nonce::fresh()});
  got = meet(path, {0, 2}, 3, 200ms, &missing);
  CHECK(missing == std::vector<int>{1});
  std::filesystem::remove_all(folder);
  got = meet(path, {0, 1}, 2, 100ms);
  CHECK(contains(got[1], "run.1 cannot be written; give a path in a folder that all ranks can write to"));
}

#endif
