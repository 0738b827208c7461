// Programs and meshes as they were read from an object file.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <parallel/plan/demands.hpp>
#include <parallel/schedule/schedule.hpp>

namespace parallel::internals::object {

/// A program as an object file carries it. Its graph points into it, so it stays where it is.
struct Carried {
  std::string name{};         ///< "Training<Mlp, AdamW>(f32[4096/data, 768])", the same from every compiler (portable)
  std::int64_t checksum = 0;  ///< meshes name their program by it
  Graph graph{};
  Demands demands{};
  std::deque<Axis> axes{};
  std::deque<Operation> operations{};
  std::deque<std::string> words{};                          ///< names of axes, operations and files
  Schedule schedule = schedules::one_forward_one_backward;  ///< of its stages, where it has any

  Carried() = default;
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;

  const Axis* axis(std::string_view named) const {
    for (const Axis& a : axes)
      if (a.text() == named) return &a;
    return nullptr;
  }
};
/// A mesh that the compiler planned a program for, its axes by name.
struct CarriedMesh {
  std::int64_t program = 0;
  std::vector<std::pair<std::string, int>> axes{};
  int here = 0;  ///< the stage that the plan is of
};

}  // namespace parallel::internals::object
