// The CPU as a device.
#pragma once
#include <parallel/device/cpu/device.hpp>
#ifndef PARALLEL_LIBRARY
#include <parallel/device/cpu/kernels.hpp>
#endif
