#!/bin/sh
set -e
# shellcheck disable=SC2046,SC2086  # each is a list of words
$CXX -std=c++20 -O2 -fvisibility=hidden main.cpp $(pkg-config --cflags --libs parallel) -o main
