// Programs over one model that go on where another stopped: the prompt at once, then token by token.
#pragma once
#include <string>

#include <parallel/plan/text.hpp>
#include <parallel/run/failure.hpp>

namespace parallel {

/// Throws CannotRun unless two plans remember the same tensors, laid out alike, of the same layers.
inline void check_remembered(const Plan& plan, const Plan& other) {
  const auto remembered = [](const Plan& p) {
    std::string all = text(p.mesh);
    if (p.graph.stages != nullptr) all += ", layers " + printing::staged_layers(p);
    for (const Member& m : p.graph.members)
      if (m.role == Role::state) all += ", " + std::string(m.path.view()) + " " + text(m.type);
    return all;
  };
  if (remembered(plan) != remembered(other))
    throw CannotRun("two programs that are to remember together remember different tensors: " + remembered(plan) + "; and " + remembered(other) +
                    "; take the same model, room and mesh, and programs that only remember");
}

}  // namespace parallel
