#!/bin/sh
set -e
mkdir build
# shellcheck disable=SC2046,SC2086  # each is a list of words
$CXX -std=c++20 main.cpp $(pkg-config --cflags --libs parallel) -o build/consumer
