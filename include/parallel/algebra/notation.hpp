// The one notation for a distributed tensor: f32[4096/data, 768], with +axis for a pending sum and ~axis for a
// Broadcast.
#pragma once
#include <string>

#include <parallel/algebra/transition.hpp>
#include <parallel/meta/library.hpp>

namespace parallel {

PARALLEL_INLINE std::string text(const Placement& p);

PARALLEL_INLINE std::string text(const Type& type);

PARALLEL_INLINE std::string text(const Mesh& mesh);

PARALLEL_INLINE std::string text(const AxisList& axes);

}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/algebra/notation.ipp>
#endif
