// One of several choices, as random tests draw it.
#pragma once

#include <initializer_list>
#include <random>

namespace ghostrank::test {

template <typename T>
T one_of(std::mt19937& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
}

}  // namespace ghostrank::test
