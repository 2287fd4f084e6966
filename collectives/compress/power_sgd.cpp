// PowerSGD (Vogels et al., 2019): a matrix M of rows x columns is sent as two thin ones, by one
// step of a power iteration; both are all-reduced, one after the other.
//
//   round 0   P = M Q        rows x r      Q: random columns that all ranks share
//   round 1   Q = M^T P'     columns x r   P': the summed P, orthonormalised
//   result    P' Q^T
//
// r = min(rank, rows, columns). A tensor of one row or one column is sent as it is, in round 0
// alone. Where rows are not known, the tensor is laid out as the least square that holds it
// (PyTorch's batched PowerSGD). Error of an element: at most the Frobenius norm of M, because P'
// P'^T projects.
#include "collectives/compress/power_sgd.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "collectives/compress/draws.h"
#include "collectives/compress/methods.h"
#include "collectives/compress/scaled_bytes.h"

namespace ghostrank {
namespace {

struct Shape {
  Shape(std::uint64_t elements, const CompressionOptions& options)
      : n(elements), rows(options.rows) {
    if (rows == 0) {
      while (rows * rows < n) ++rows;
      columns = rows;
    } else {
      columns = (n + rows - 1) / rows;
    }
    rank = std::min({static_cast<std::uint64_t>(options.rank), rows, columns});
  }
  bool raw() const { return rows <= 1 || columns <= 1; }
  std::uint64_t n, rows, columns = 0, rank = 0;
};

std::uint64_t size(std::uint64_t elements, const CompressionOptions& options) {
  const Shape shape(elements, options);
  if (shape.raw()) return options.round == 0 ? elements : 0;
  return shape.rank * (options.round == 0 ? shape.rows : shape.columns);
}

// Element i of Q before round 0, column after column; any directions do, so uniform draws serve.
float first_q(const CompressionOptions& options, std::uint64_t i) {
  return 2 * unit_draw(options.shared_seed, i) - 1;
}

// Gram-Schmidt over the columns of a rows x r matrix, stored column after column; columns that
// depend on others become zero.
std::vector<float> orthonormal(std::span<const float> p, const Shape& shape) {
  std::vector<double> columns(p.begin(), p.end());
  for (std::uint64_t c = 0; c < shape.rank; ++c) {
    double* own = columns.data() + c * shape.rows;
    const auto dot = [&](const double* other) {
      double sum = 0;
      for (std::uint64_t i = 0; i < shape.rows; ++i) sum += own[i] * other[i];
      return sum;
    };
    const double before = dot(own);
    for (int twice = 0; twice < 2; ++twice)  // rounding of the first pass is taken off, too
      for (std::uint64_t b = 0; b < c; ++b) {
        const double* other = columns.data() + b * shape.rows;
        const double along = dot(other);
        for (std::uint64_t i = 0; i < shape.rows; ++i) own[i] -= along * other[i];
      }
    const double norm = std::sqrt(dot(own));
    const double scale = norm > 1e-6 * std::sqrt(before) ? 1 / norm : 0;
    for (std::uint64_t i = 0; i < shape.rows; ++i) own[i] *= scale;
  }
  return {columns.begin(), columns.end()};
}

std::span<const float> floats(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4};
}

// P = M Q.
void first_factor(std::span<const float> tensor, const Shape& shape,
                  const CompressionOptions& options, float* out) {
  for (std::uint64_t c = 0; c < shape.rank; ++c)
    for (std::uint64_t row = 0; row < shape.rows; ++row) {
      const std::uint64_t first = row * shape.columns,
                          end = std::min(first + shape.columns, shape.n);
      double sum = 0;
      for (std::uint64_t i = first; i < end; ++i)
        sum += static_cast<double>(tensor[i]) *
               static_cast<double>(first_q(options, c * shape.columns + i - first));
      out[c * shape.rows + row] = static_cast<float>(sum);
    }
}

// Q = M^T P', of the summed P.
void second_factor(std::span<const float> tensor, const Shape& shape, std::span<const float> summed,
                   float* out) {
  const std::vector<float> p = orthonormal(summed, shape);
  std::vector<double> q(shape.rank * shape.columns);
  for (std::uint64_t c = 0; c < shape.rank; ++c)
    for (std::uint64_t i = 0; i < shape.n; ++i)
      q[c * shape.columns + i % shape.columns] +=
          static_cast<double>(tensor[i]) *
          static_cast<double>(p[c * shape.rows + i / shape.columns]);
  std::copy(q.begin(), q.end(), out);
}

// P' Q^T, of both summed.
void product(std::span<const float> summed, std::span<const float> q, const Shape& shape,
             std::span<float> tensor) {
  const std::vector<float> p = orthonormal(summed, shape);
  for (std::uint64_t i = 0; i < shape.n; ++i) {
    double sum = 0;
    for (std::uint64_t c = 0; c < shape.rank; ++c)
      sum += static_cast<double>(p[c * shape.rows + i / shape.columns]) *
             static_cast<double>(q[c * shape.columns + i % shape.columns]);
    tensor[i] = static_cast<float>(sum);
  }
}

void compress(std::span<const float> tensor, const CompressionOptions& options,
              std::byte* payload) {
  const Shape shape(tensor.size(), options);
  auto* out = reinterpret_cast<float*>(payload);
  if (shape.raw()) {
    if (options.round == 0) std::copy(tensor.begin(), tensor.end(), out);
    return;
  }
  if (options.round == 0)
    first_factor(tensor, shape, options, out);
  else
    second_factor(tensor, shape, floats(options.first_sum), out);
}

void decompress(std::span<const std::byte> payload, const CompressionOptions& options,
                std::span<float> tensor) {
  const Shape shape(tensor.size(), options);
  if (shape.raw()) {
    const std::span<const float> sum = floats(options.round == 0 ? payload : options.first_sum);
    std::copy(sum.begin(), sum.end(), tensor.begin());
    return;
  }
  product(floats(options.first_sum), floats(payload), shape, tensor);
}

// The tensors of a bucket, in order, and where their factors lie in the rounds' payloads.
struct Part {
  Shape shape;
  std::uint64_t at = 0;                 // in the bucket
  bool worth = false;                   // compressed
  std::uint64_t raw = 0, p = 0, q = 0;  // in the payloads of the rounds 0, 1, 2
  std::uint64_t seed = 0;
};

struct Bucket {
  Bucket(std::uint64_t elements, const CompressionOptions& options) {
    std::vector<TensorShape> shapes(options.parts.begin(), options.parts.end());
    if (shapes.empty()) {
      const Shape whole(elements, options);
      shapes.push_back({std::max<std::uint64_t>(1, whole.rows), whole.columns});
    }
    std::uint64_t at = 0;
    for (const TensorShape& one : shapes) {
      CompressionOptions own = options;
      own.rows = one.rows;
      const std::uint64_t left = elements - std::min(at, elements);
      Part part{Shape(std::min(one.rows * one.columns, left), own),
                at,
                false,
                sizes[0],
                sizes[1],
                sizes[2],
                checking::mix(options.shared_seed + parts.size())};
      const Shape& s = part.shape;
      part.worth = !s.raw() && 2 * s.rank * (s.rows + s.columns) < s.rows * s.columns;
      if (part.worth) {
        sizes[1] += s.rank * s.rows;
        sizes[2] += s.rank * s.columns;
      } else {
        sizes[0] += s.n;
      }
      at += s.n;
      parts.push_back(part);
    }
  }
  std::vector<Part> parts;
  std::uint64_t sizes[3] = {0, 0, 0};  // elements of the rounds' payloads
};

std::uint64_t size_of_parts(std::uint64_t elements, const CompressionOptions& options) {
  return options.round > 2 ? 0 : Bucket(elements, options).sizes[options.round];
}

void compress_parts(std::span<const float> tensor, const CompressionOptions& options,
                    std::byte* payload) {
  const Bucket bucket(tensor.size(), options);
  auto* out = reinterpret_cast<float*>(payload);
  const std::span<const float> sums = floats(options.first_sum);
  for (const Part& part : bucket.parts) {
    const std::span<const float> own = tensor.subspan(part.at, part.shape.n);
    CompressionOptions with = options;
    with.shared_seed = part.seed;
    if (!part.worth && options.round == 0) std::copy(own.begin(), own.end(), out + part.raw);
    if (part.worth && options.round == 1) first_factor(own, part.shape, with, out + part.p);
    if (part.worth && options.round == 2)
      second_factor(own, part.shape,
                    sums.subspan(bucket.sizes[0] + part.p, part.shape.rank * part.shape.rows),
                    out + part.q);
  }
}

void decompress_parts(std::span<const std::byte> payload, const CompressionOptions& options,
                      std::span<float> tensor) {
  const Bucket bucket(tensor.size(), options);
  // The sums of the rounds, one after the other: the last is the payload.
  std::vector<float> sums(bucket.sizes[0] + bucket.sizes[1] + bucket.sizes[2]);
  const std::span<const float> before = floats(options.first_sum), last = floats(payload);
  std::copy(before.begin(), before.end(), sums.begin());
  std::copy(last.begin(), last.end(), sums.begin() + static_cast<std::ptrdiff_t>(before.size()));
  const std::span<const float> all(sums);
  for (const Part& part : bucket.parts) {
    const Shape& s = part.shape;
    const std::span<float> own = tensor.subspan(part.at, s.n);
    if (!part.worth) {
      const std::span<const float> raw = all.subspan(part.raw, s.n);
      std::copy(raw.begin(), raw.end(), own.begin());
    } else {
      product(all.subspan(bucket.sizes[0] + part.p, s.rank * s.rows),
              all.subspan(bucket.sizes[0] + bucket.sizes[1] + part.q, s.rank * s.columns), s, own);
    }
  }
}

double error(std::span<const float> tensor, const CompressionOptions&) {
  double squares = 0;
  for (const float x : tensor) squares += static_cast<double>(x) * static_cast<double>(x);
  return 1.0001 * std::sqrt(squares);
}

}  // namespace

const Compressor kPowerSgd{.name = "powersgd",
                           .exchange = Func::all_reduce,
                           .payload = DataType::float32,
                           .cost = fitted(152, LaunchedKernels::many_small),
                           .size = size,
                           .compress = compress,
                           .decompress = decompress,
                           .error = error,
                           .rounds = 2};

const Compressor kPowerSgdOfParts{.name = "powersgd",
                                  .exchange = Func::all_reduce,
                                  .payload = DataType::float32,
                                  .cost = fitted(152, LaunchedKernels::many_small),
                                  .size = size_of_parts,
                                  .compress = compress_parts,
                                  .decompress = decompress_parts,
                                  .error = error,
                                  .rounds = 3};

}  // namespace ghostrank
