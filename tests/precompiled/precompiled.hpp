// What nearly every test would parse again.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>
