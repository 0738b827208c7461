// One process per GPU that meet in a file: for launchers that give each process its rank and nothing else but a common
// folder.
#pragma once
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <unistd.h>

#include <parallel/communicator/nccl.hpp>
#include <parallel/communicator/nccl_settings.hpp>

namespace parallel::internals {

namespace nccl {

/// A number that no other process and no earlier run has.
struct Nonce {
  std::uint64_t words[2]{};
  bool operator==(const Nonce&) const = default;
  static Nonce fresh() {
    std::random_device random;
    const auto word = [&] { return static_cast<std::uint64_t>(random()) << 32 | random(); };
    return {{word(), word()}};
  }
};

/// Files that are whole or not there: written beside, and renamed.
template <class T>
void write_whole(const std::filesystem::path& path, const std::vector<T>& values) {
  std::filesystem::path beside = path;
  beside += "." + std::to_string(getpid()) + "-" + std::to_string(Nonce::fresh().words[0]);
  std::ofstream file(beside, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(beside, path, error);
  if (!file || error)
    throw Failure("parallel::meet_in_file: " + path.string() +
                      " cannot be written; give a path in a folder that all ranks can write to",
                  74);
}
template <class T>
std::vector<T> read_whole(const std::filesystem::path& path, std::size_t count) {
  std::ifstream file(path, std::ios::binary);
  std::vector<T> values(count);
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(T)));
  return file.gcount() == static_cast<std::streamsize>(count * sizeof(T)) &&
                 file.peek() == std::ifstream::traits_type::eof()
             ? values
             : std::vector<T>{};
}

}  // namespace nccl

/// The id of a run, the same on all its ranks: rank 0 makes it. Each other rank r writes a nonce to `path`.r; rank 0
/// writes the id and the nonces that it has seen to `path`; a rank takes the id only beside its own nonce, and says so
/// by removing its file. So what an earlier run left is never taken for this one's. Rank 0 removes the file when all
/// have it. Throws Deadline, Failure.
inline ncclUniqueId meet_in_file(const std::filesystem::path& path, int rank, int ranks,
                                 std::chrono::milliseconds deadline = default_deadline) {
  nccl::settings();
  struct Row {
    nccl::Nonce nonce;
    ncclUniqueId id;
  };
  const auto of_rank = [&](int r) { return std::filesystem::path(path) += "." + std::to_string(r); };
  const auto since = nccl::Clock::now();
  const auto pause = [&](auto missing) {
    if (nccl::Clock::now() - since >= deadline) {
      const std::vector<int> ranks_missing = missing();
      std::string words = "parallel::meet_in_file: rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                          " waited " + text(deadline) + " at " + path.string() + " for";
      for (const int r : ranks_missing) words += (r == ranks_missing[0] ? " rank " : ", rank ") + std::to_string(r);
      throw Deadline(words + "; start all ranks, with the same path in a folder that they share", ranks_missing);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  if (rank != 0) {
    const nccl::Nonce mine = nccl::Nonce::fresh();
    nccl::write_whole<nccl::Nonce>(of_rank(rank), {mine});
    while (true) {
      const auto rows = nccl::read_whole<Row>(path, static_cast<std::size_t>(ranks));
      if (!rows.empty() && rows[static_cast<std::size_t>(rank)].nonce == mine) {
        std::filesystem::remove(of_rank(rank));
        return rows[static_cast<std::size_t>(rank)].id;
      }
      pause([] { return std::vector<int>{0}; });
    }
  }
  Row row{};
  if (const ncclResult_t result = ncclGetUniqueId(&row.id); result != ncclSuccess)
    throw NcclFailed(std::string("parallel::meet_in_file: NCCL does not start: ") + ncclGetErrorString(result));
  std::vector<Row> rows(static_cast<std::size_t>(ranks), row);
  std::vector<bool> has(static_cast<std::size_t>(ranks));
  has[0] = true;
  while (std::find(has.begin(), has.end(), false) != has.end()) {
    bool news = false;
    for (int r = 1; r < ranks; ++r) {
      Row& known = rows[static_cast<std::size_t>(r)];
      const auto nonce = nccl::read_whole<nccl::Nonce>(of_rank(r), 1);
      if (nonce.empty())
        has[static_cast<std::size_t>(r)] = known.nonce != nccl::Nonce{};
      else if (nonce[0] != known.nonce) {
        known.nonce = nonce[0];
        news = true;
      }
    }
    if (news) nccl::write_whole(path, rows);
    pause([&] {
      std::vector<int> missing;
      for (int r = 1; r < ranks; ++r)
        if (!has[static_cast<std::size_t>(r)]) missing.push_back(r);
      return missing;
    });
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return row.id;
}

}  // namespace parallel::internals

namespace parallel {
using internals::meet_in_file;
}  // namespace parallel
