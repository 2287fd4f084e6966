// See compressor.h: the table of methods, and the test that every method must pass.
#include "collectives/compress/methods.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "collectives/common/dice.h"
#include "collectives/compressor.h"

namespace ghostrank {
namespace {

constexpr std::byte kGuard{0x5a};
constexpr std::size_t kGuards = 64;  // guard bytes behind a payload

// Tensors of four kinds: zeros, one magnitude, small integers, many scales.
std::vector<float> drawn(int kind, std::uint64_t elements, checking::Dice& dice) {
  std::vector<float> tensor(elements);
  for (float& x : tensor) {
    const auto unit = static_cast<float>(dice.below(2'000'001)) * 1e-6f - 1;
    if (kind == 1) x = unit < 0 ? -0.5f : 0.5f;
    if (kind == 2) x = static_cast<float>(dice.below(20)) - 5;
    if (kind == 3) x = std::ldexp(unit, -static_cast<int>(dice.below(12)));
  }
  return tensor;
}
constexpr int kKinds = 4;

// Tests one method and keeps the first defect.
class Trial {
 public:
  Trial(const Compressor& method, const CompressionOptions& options, std::uint64_t elements)
      : method_(method), options_(options), elements_(elements) {}

  std::string run(int kind) {
    if (method_.rounds > 1) return run_rounds(kind);
    checking::Dice dice(elements_ * 31 + static_cast<std::uint64_t>(kind));
    std::vector<std::byte> sum;
    std::vector<double> added(elements_), magnitude(elements_);
    constexpr int kRanks = 3;
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::vector<float> tensor = drawn(kind, elements_, dice);
      const std::vector<std::byte> payload = payload_of(tensor);
      if (!wrong_.empty()) return wrong_;
      const std::vector<float> back = tensor_of(payload);
      compare(back, tensor, method_.error(tensor, options_));
      for (std::size_t i = 0; i < back.size(); ++i) {
        added[i] += static_cast<double>(back[i]);
        magnitude[i] += std::abs(static_cast<double>(back[i]));
      }
      if (sum.empty())
        sum = payload;
      else if (method_.exchange == Func::all_reduce)
        add_elements(method_.payload, sum.data(), payload.data(), size());
    }
    if (method_.exchange == Func::all_reduce) compare_sum(tensor_of(sum), added, magnitude);
    return wrong_;
  }

  // Several rounds: the error of three ranks' sum is at most the sum of their errors.
  std::string run_rounds(int kind) {
    checking::Dice dice(elements_ * 31 + static_cast<std::uint64_t>(kind));
    std::vector<std::vector<float>> tensors;
    std::vector<double> sum(elements_);
    double allowed = 0;
    for (int rank = 0; rank < 3; ++rank) {
      tensors.push_back(drawn(kind, elements_, dice));
      allowed += method_.error(tensors.back(), options_);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(tensors.back()[i]);
    }
    const std::vector<float> truth(sum.begin(), sum.end());
    const std::vector<CompressionOptions> options(3, options_);
    compare(exchanged(method_, tensors, options), truth, allowed * (1 + 1e-5) + 1e-6);
    return wrong_;
  }

 private:
  std::uint64_t size() const { return method_.size(elements_, options_); }

  void fail(const std::string& what) {
    if (wrong_.empty())
      wrong_ = what + " (a tensor of " + std::to_string(elements_) + " elements, ratio " +
               std::to_string(options_.ratio) + ")";
  }

  std::vector<std::byte> payload_of(const std::vector<float>& tensor) {
    const std::uint64_t most = payload_bytes(method_, elements_, options_);
    const std::uint64_t bytes =
        method_.measure ? method_.measure(tensor, options_) * bytes_of(method_.payload) : most;
    if (bytes > most) fail("measure() says more than size()");
    std::vector<std::byte> payload(bytes + kGuards, kGuard), again(bytes + kGuards, std::byte{1});
    method_.compress(tensor, options_, payload.data());
    method_.compress(tensor, options_, again.data());
    if (std::any_of(payload.begin() + static_cast<std::ptrdiff_t>(bytes), payload.end(),
                    [](std::byte b) { return b != kGuard; }))
      fail("compress() writes more than the " + std::to_string(bytes) + " bytes that size() says");
    if (std::memcmp(payload.data(), again.data(), bytes) != 0)
      fail("compress() leaves bytes of the payload unwritten, or writes others a second time");
    payload.resize(bytes);
    return payload;
  }

  std::vector<float> tensor_of(const std::vector<std::byte>& payload) const {
    std::vector<float> tensor(elements_, 12345.0f);
    method_.decompress(payload, options_, tensor);
    return tensor;
  }

  void compare(const std::vector<float>& is, const std::vector<float>& was, double error) {
    for (std::size_t i = 0; i < is.size(); ++i)
      if (!(std::abs(static_cast<double>(is[i]) - static_cast<double>(was[i])) <=
            error * (1 + 1e-6)))
        return fail("element " + std::to_string(i) + " is " + std::to_string(is[i]) +
                    " after decompress() and was " + std::to_string(was[i]) +
                    ", more than error() allows, " + std::to_string(error));
  }

  void compare_sum(const std::vector<float>& is, const std::vector<double>& sum,
                   const std::vector<double>& magnitude) {
    const double share = rounding(method_.payload, 3) + 1e-6;
    for (std::size_t i = 0; i < is.size(); ++i)
      if (!(std::abs(static_cast<double>(is[i]) - sum[i]) <= share * magnitude[i] + 1e-6))
        return fail("the sum of three payloads is decompressed to " + std::to_string(is[i]) +
                    " at " + std::to_string(i) + ", theirs add up to " + std::to_string(sum[i]) +
                    ": what is all-reduced must be linear");
  }

  const Compressor& method_;
  const CompressionOptions options_;
  const std::uint64_t elements_;
  std::string wrong_;
};

}  // namespace

std::span<const Compressor> compressors() {
  static const std::array kMethods{
      kFp16,   kTopK,    kRandomK,  kThreshold, kDgc,      kAdaq,       kRedSync, kGaussianKsgd,
      kSidcoE, kSidcoP,  kSidcoGp,  kQsgd,      kTernGrad, kSignSgd,    kSignum,  kEfSignSgd,
      kOneBit, kNatural, kEightBit, kSketch,    kPowerSgd, kInceptionn, kBf16,    kDithering};
  return kMethods;
}

std::vector<std::byte> payload_of(const Compressor& method, std::span<const float> tensor,
                                  const CompressionOptions& options) {
  const std::uint64_t elements =
      method.measure ? method.measure(tensor, options) : method.size(tensor.size(), options);
  std::vector<std::byte> payload(elements * bytes_of(method.payload));
  method.compress(tensor, options, payload.data());
  return payload;
}

std::vector<float> exchanged(const Compressor& method, std::span<const std::vector<float>> tensors,
                             std::span<const CompressionOptions> options) {
  const std::size_t elements = tensors[0].size();
  std::vector<float> back(elements), result(elements);
  if (method.exchange == Func::all_gather) {
    for (std::size_t r = 0; r < tensors.size(); ++r) {
      method.decompress(payload_of(method, tensors[r], options[r]), options[r], back);
      for (std::size_t i = 0; i < elements; ++i) result[i] += back[i];
    }
    if (method.majority)
      for (float& x : result) x = x >= 0 ? 1.0f : -1.0f;
    return result;
  }
  std::vector<std::byte> first, sum;
  for (int round = 0; round < method.rounds; ++round) {
    first.insert(first.end(), sum.begin(), sum.end());
    sum.clear();
    for (std::size_t r = 0; r < tensors.size(); ++r) {
      CompressionOptions now = options[r];
      now.round = round;
      now.first_sum = first;
      const std::vector<std::byte> own = payload_of(method, tensors[r], now);
      if (r == 0)
        sum = own;
      else
        add_elements(method.payload, sum.data(), own.data(), own.size() / bytes_of(method.payload));
    }
  }
  CompressionOptions last = options[0];
  last.round = method.rounds - 1;
  last.first_sum = first;
  method.decompress(sum, last, result);
  return result;
}

double rounding(DataType type, int payloads) {
  const double half_ulp = type == DataType::float32    ? 0x1p-24
                          : type == DataType::float16  ? 0x1p-11
                          : type == DataType::bfloat16 ? 0x1p-8
                                                       : 0;
  return half_ulp * std::max(0, payloads - 1);
}

std::string why_wrong(const Compressor& method) {
  if (method.name.empty() || method.name == "none") return "it needs a name of its own";
  if (method.exchange != Func::all_reduce && method.exchange != Func::all_gather)
    return "payloads are exchanged by all_reduce or all_gather";
  if (!method.size || !method.compress || !method.decompress || !method.error)
    return "it needs all of size, compress, decompress and error";
  if (method.cost.source.empty()) return "its cost needs a source";
  if (method.measure && method.exchange != Func::all_gather)
    return "payloads whose size the data decide are all-gathered";
  if (method.rounds > 1 && method.exchange != Func::all_reduce)
    return "a later round follows the sums of those before, which are all-reduced";
  for (const double ratio : {0.01, 0.3, 1.0})
    for (const std::uint64_t elements : {1, 2, 7, 256, 1000})
      for (int kind = 0; kind < kKinds; ++kind) {
        CompressionOptions options;
        options.ratio = ratio;
        options.seed = elements;
        options.rows = elements == 256 ? 16 : elements == 1000 ? 40 : 0;
        if (method.size(elements, options) == 0) return "it has payloads of no size";
        const std::string wrong = Trial(method, options, elements).run(kind);
        if (!wrong.empty()) return wrong;
      }
  return {};
}

}  // namespace ghostrank
