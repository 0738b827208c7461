// What every test would parse again: doctest, and the heavy headers of the standard library.
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
