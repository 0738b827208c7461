// A mesh from the command line, compiled ahead.
#pragma once
#include <algorithm>
#include <charconv>

#include <parallel/algebra/notation.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/mesh_argument.hpp>

namespace parallel::internals {

PARALLEL_INLINE Mesh mesh_argument(std::string_view argument, std::span<const Axis* const> axes) {
  const auto refuse = [&, whole = argument](const std::string& why) {
    std::string known, example;
    for (const Axis* a : axes) known += (known.empty() ? "" : ", ") + std::string(a->text());
    for (const Axis* a : axes.first(std::min<std::size_t>(axes.size(), 2)))
      example += (example.empty() ? "" : ",") + std::string(a->text()) + "=2";
    return Failure("--mesh " + std::string(whole) + ": " + why +
                       (known.empty() ? "; the program names no axis, so it has no mesh"
                                      : "; write for example " + example + " with the axes " + known),
                   exit_code::configuration);
  };
  Mesh mesh;
  if (argument.empty()) throw refuse("no mesh is given");
  while (!argument.empty() || mesh.count == 0) {
    const auto part = argument.substr(0, argument.find(','));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) throw refuse("'" + std::string(part) + "' is not axis=ranks");
    const Axis* axis = nullptr;
    for (const Axis* a : axes)
      if (a->text() == part.substr(0, equals)) axis = a;
    if (axis == nullptr) throw refuse("there is no axis '" + std::string(part.substr(0, equals)) + "'");
    int size = 0;
    const auto digits = part.substr(equals + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (error != std::errc() || end != digits.data() + digits.size() || size < 1 || size > 65536)
      throw refuse("'" + std::string(digits) + "' is no number of ranks from 1 to 65536");
    if (mesh.ranks() > max_ranks / size) throw refuse("it has more than " + std::to_string(max_ranks) + " ranks");
    for (int i = 0; i < mesh.count; ++i)
      if (mesh.axes[i].axis == axis) throw refuse("the axis " + std::string(axis->text()) + " stands there twice");
    if (mesh.count == max_axes) throw refuse("a mesh has at most " + std::to_string(max_axes) + " axes");
    mesh.axes[mesh.count++] = {axis, size};
    const std::size_t used = part.size() + (part.size() < argument.size() ? 1 : 0);
    if (used == argument.size() && used > part.size()) throw refuse("it ends in a comma");
    argument.remove_prefix(used);
    if (argument.empty()) break;
  }
  return mesh;
}

}  // namespace parallel::internals
