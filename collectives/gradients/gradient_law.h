// Distributions of gradients' values. They decide how much a compression method sends if its
// payload depends on the data.
//
//   laplace     magnitudes are exponential
//   gaussian    normal
//   gamma a     magnitudes are gamma of shape a (a < 1: more small ones than laplace)
//   pareto k    magnitudes are generalised Pareto of shape k, 0 < k < 1: a heavy tail
//   measured    a histogram of magnitudes; evenly inside a bin
//
// Signs are fair. A law may drift: in iteration i its scale and its shape are those of iteration 0
// times the drift's factors to the power of min(i, until).
//
// Threading: immutable.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace ghostrank {

// Factors from one iteration to the next. Iterations after `until` are like iteration `until`.
struct GradientDrift {
  static constexpr std::uint32_t kAlways = std::numeric_limits<std::uint32_t>::max();
  double scale = 1, shape = 1;
  std::uint32_t until = kAlways;
  bool moves() const { return (scale != 1 || shape != 1) && until > 0; }
  bool operator==(const GradientDrift&) const = default;
};

struct GradientLaw {
  enum class Kind : std::uint8_t { laplace, gaussian, gamma, pareto, measured };
  struct Bin {
    double up_to = 0;  // magnitudes; the first bin begins at 0
    double count = 0;
    bool operator==(const Bin&) const = default;
  };

  Kind kind = Kind::laplace;
  double shape = 1;         // of gamma and pareto
  double scale = 1e-3;      // mean magnitude; measured: not used, the bins give it
  std::vector<Bin> bins{};  // of measured, upwards
  GradientDrift drift{};
  bool operator==(const GradientLaw&) const = default;

  bool has_shape() const { return kind == Kind::gamma || kind == Kind::pareto; }
  // Why this law is not valid; "": it is.
  std::string why_wrong() const;
  // The law as it stands in an iteration, counted from 0; the returned law does not drift.
  GradientLaw in(std::uint32_t iteration) const;
  // A tensor of independent draws, the same for the same seed; drift has no effect.
  void draw(std::uint64_t seed, std::span<float> tensor) const;
};

// The laws of all gradients of a rank, one after the other in the order in which an iteration
// reduces them, so that a bucket of several tensors has parts with laws of their own.
struct GradientLaws {
  struct Part {
    std::uint64_t elements = 0;
    std::uint32_t law = 0;  // index into `laws`
    bool operator==(const Part&) const = default;
  };
  std::vector<GradientLaw> laws{GradientLaw{}};
  std::vector<Part> parts{};  // empty: all gradients follow the first law

  bool drift() const;
  std::uint64_t elements() const;  // of all parts

  // Gradients [first, first + elements) of an iteration, the same for the same seed; they lie
  // within the parts. A shorter `sample` takes gradients at even distances.
  void draw(std::uint64_t seed, std::uint32_t iteration, std::uint64_t first,
            std::uint64_t elements, std::span<float> sample) const;
};

}  // namespace ghostrank
