// Distributions of gradients' values: what decides how much a compression method sends whose
// payload depends on the data.
//
//   laplace     magnitudes are exponential
//   gaussian    normal
//   gamma a     magnitudes are gamma of shape a (a < 1: more small ones than laplace)
//   pareto k    magnitudes are generalised Pareto of shape k, 0 < k < 1: a heavy tail
//   measured    a histogram of magnitudes; evenly inside a bin
//
// Signs are fair. Threading: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ghostrank {

struct GradientLaw {
  enum class Kind : std::uint8_t { laplace, gaussian, gamma, pareto, measured };
  struct Bin {
    double up_to = 0;  // magnitudes; the first bin begins at 0
    double count = 0;
    bool operator==(const Bin&) const = default;
  };

  Kind kind = Kind::laplace;
  double shape = 1;         // of gamma and pareto
  double scale = 1e-3;      // mean magnitude; measured: the histogram's own counts
  std::vector<Bin> bins{};  // of measured, upwards
  bool operator==(const GradientLaw&) const = default;

  // Why it is none; "": it is one.
  std::string why_wrong() const;
  // A tensor of independent draws, the same for the same seed.
  void draw(std::uint64_t seed, std::span<float> tensor) const;
};

}  // namespace ghostrank
