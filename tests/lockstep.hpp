// The oracle of the executor, by the name by which tests know it.
#pragma once
#include <parallel/run/lockstep.hpp>

namespace lockstep = parallel::internals::lockstep;
