// A mesh from the command line: "data=2,tensor=4".
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include <parallel/algebra/mesh.hpp>
#include <parallel/meta/library.hpp>

namespace parallel::internals {

inline constexpr int max_ranks = 1 << 20;  ///< of a mesh from the command line

/// Reads a mesh. `axes`: the axes that the program knows; their order in the text is the order of the ranks. Throws
/// Failure(configuration).
PARALLEL_INLINE Mesh mesh_argument(std::string_view argument, std::span<const Axis* const> axes);
inline Mesh mesh_argument(std::string_view argument, std::initializer_list<const Axis*> axes) {
  return mesh_argument(argument, std::span<const Axis* const>(axes.begin(), axes.size()));
}
/// Of an argument of main that was not given, too: nothing.
inline Mesh mesh_argument(const char* argument, std::initializer_list<const Axis*> axes) {
  return mesh_argument(std::string_view(argument == nullptr ? "" : argument), axes);
}
inline Mesh mesh_argument(const char* argument, std::span<const Axis* const> axes) {
  return mesh_argument(std::string_view(argument == nullptr ? "" : argument), axes);
}
/// Of axes without their addresses: refused.
template <int addresses = 0>
Mesh mesh_argument(const std::string_view&, std::initializer_list<Axis>) {
  static_assert(
      addresses > 0,
      "parallel: a mesh from the command line is told the addresses of its axes; write mesh_argument(argv[1], "
      "{&data, &tensor})");
  return {};
}

}  // namespace parallel::internals

namespace parallel {
using internals::mesh_argument;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/run/mesh_argument.ipp>
#endif
