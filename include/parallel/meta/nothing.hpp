// What never is: of a constructor that is there to refuse what it is given, its members are made of this.
#pragma once
#include <parallel/meta/letters.hpp>

namespace parallel::internals {

/// Called by nothing that compiles, so it is defined nowhere.
template <class T>
T& nothing();

}  // namespace parallel::internals
