// Memories of compression: what was sent and what is kept add up to the gradients, a pair of memory
// and method that makes no sense is refused with one that does, and NaN and infinity are not kept.
#include "collectives/compress/memory.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/compressor.h"
#include "collectives/gradients/gradient_law.h"
#include "tests/method_named.h"

namespace ghostrank {
namespace {

using Floats = std::vector<float>;
constexpr Memory kAll[] = {Memory::none, Memory::residual, Memory::efsignsgd,
                           Memory::dgc,  Memory::powersgd, Memory::nesterov};

CompressionOptions options_of(int step, int rank) {
  CompressionOptions options;
  options.ratio = 0.05;
  options.threshold = 0.002;
  options.rows = 20;
  options.rank = 2;
  options.shared_seed = static_cast<std::uint64_t>(step) + 1;
  options.seed = options.shared_seed * 100 + static_cast<std::uint64_t>(rank);
  return options;
}

Floats gradient_of(int step, int rank) {
  Floats gradient(400);
  GradientLaw{}.draw(static_cast<std::uint64_t>(step * 16 + rank), gradient);
  return gradient;
}

// Per element, summed over four ranks: put in and sent in all steps, kept after the last one.
struct Books {
  std::vector<double> put = std::vector<double>(400), sent = put, kept = put, magnitude = put;
};

// `put` counts gradients as the memory is to send them: with the momentum of dgc and nesterov.
Books books_of(const Compressor& method, Memory kind, int steps) {
  constexpr int kRanks = 4;
  std::vector<GradientMemory> memories(kRanks, GradientMemory(kind, 400));
  std::vector<std::vector<double>> momentum(kRanks, std::vector<double>(400));
  Books books;
  for (int step = 0; step < steps; ++step) {
    std::vector<Floats> tensors;
    std::vector<CompressionOptions> options;
    for (int r = 0; r < kRanks; ++r) {
      Floats tensor = gradient_of(step, r);
      for (std::size_t i = 0; i < 400; ++i) {
        double& u = momentum[static_cast<std::size_t>(r)][i];
        u = momentum_of(kind) * u + static_cast<double>(tensor[i]);
        const double put = kind == Memory::nesterov ? static_cast<double>(tensor[i]) + 0.9 * u : u;
        books.put[i] += put;
        books.magnitude[i] += std::abs(put);
      }
      memories[static_cast<std::size_t>(r)].compensate(0, tensor);
      tensors.push_back(tensor);
      options.push_back(options_of(step, r));
    }
    const Floats sum = exchanged(method, tensors, options);
    for (std::size_t r = 0; r < kRanks; ++r) {
      Floats own = sum;
      if (method.rounds > 1)
        for (float& x : own) x /= kRanks;
      else
        own = exchanged(method, std::vector<Floats>{tensors[r]}, {&options[r], 1});
      memories[r].keep(0, tensors[r], own);
      if (kind == Memory::dgc)  // it masks the momentum of sent elements
        for (std::size_t i = 0; i < 400; ++i)
          if (own[i] != 0) momentum[r][i] = 0;
    }
    const double scale = static_cast<double>(memories[0].scale());
    for (std::size_t i = 0; i < 400; ++i) books.sent[i] += scale * static_cast<double>(sum[i]);
  }
  for (const GradientMemory& memory : memories)
    for (std::size_t i = 0; i < 400 && !memory.kept().empty(); ++i)
      books.kept[i] += static_cast<double>(memory.scale()) * static_cast<double>(memory.kept()[i]);
  return books;
}

TEST(Memories, ConserveGradientsWithEveryMethodTheyServe) {
  int pairs = 0;
  for (const Compressor& one : compressors())
    for (const Memory memory : kAll) {
      if (memory == Memory::none || !why_refused(memory, one).empty()) continue;
      ++pairs;
      const Books books = books_of(one, memory, 30);
      double kept = 0;
      for (std::size_t i = 0; i < 400; ++i) {
        // 30 steps on 4 ranks round floats, and the kept part may be as large as all that was put
        // in. No rank keeps the rounding errors of a sum of halves.
        const double slack =
            (1e-4 + 2 * rounding(one.payload, 4)) * (books.magnitude[i] + std::abs(books.kept[i]));
        ASSERT_NEAR(books.sent[i] + books.kept[i], books.put[i], slack)
            << one.name << " with " << name_of(memory) << " at " << i;
        kept += std::abs(books.kept[i]);
      }
      EXPECT_GT(kept, 0) << one.name << " with " << name_of(memory);
    }
  EXPECT_EQ(pairs, 53);  // residual and nesterov 21 each; dgc 9; efsignsgd, powersgd
}

TEST(Memories, OfNoneLosesWhatIsNotSent) {
  const Books books = books_of(method_named("topk"), Memory::none, 30);
  double lost = 0, put = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    lost += std::abs(books.put[i] - books.sent[i]);
    put += std::abs(books.put[i]);
  }
  EXPECT_GT(lost, 0.3 * put);
}

TEST(Memories, ServeTheMethodsThatTheyAreFor) {
  std::string found;
  for (const Compressor& one : compressors()) {
    found += std::string(one.name) + ":";
    for (const Memory memory : kAll)
      if (memory != Memory::none && why_refused(memory, one).empty())
        found += " " + std::string(name_of(memory));
    found += "\n";
  }
  EXPECT_EQ(found,
            "fp16: residual nesterov\n"
            "topk: residual dgc nesterov\n"
            "randomk: residual dgc nesterov\n"
            "threshold: residual dgc nesterov\n"
            "dgc: residual dgc nesterov\n"
            "adaq: residual nesterov\n"
            "redsync: residual dgc nesterov\n"
            "gaussian_ksgd: residual dgc nesterov\n"
            "sidco-e: residual dgc nesterov\n"
            "sidco-p: residual dgc nesterov\n"
            "sidco-gp: residual dgc nesterov\n"
            "qsgd: residual nesterov\n"
            "terngrad: residual nesterov\n"
            "signsgd:\n"
            "signum:\n"
            "efsignsgd: residual efsignsgd nesterov\n"
            "onebit: residual nesterov\n"
            "natural: residual nesterov\n"
            "8bit: residual nesterov\n"
            "sketch: residual nesterov\n"
            "powersgd: powersgd\n"
            "inceptionn: residual nesterov\n"
            "bf16: residual nesterov\n"
            "dithering: residual nesterov\n");
}

TEST(Memories, RefuseOtherMethodsWithWhatTheyCanUse) {
  EXPECT_EQ(why_refused(Memory::residual, method_named("signsgd")),
            "payloads of signsgd are votes, which have no magnitude that something could be left "
            "of; use none, or method efsignsgd");
  EXPECT_EQ(why_refused(Memory::residual, method_named("powersgd")),
            "what powersgd sends follows from the gradients of all ranks; use powersgd");
  EXPECT_EQ(why_refused(Memory::efsignsgd, method_named("topk")),
            "it is that of method efsignsgd, not of topk; use residual");
  EXPECT_EQ(why_refused(Memory::powersgd, method_named("signum")),
            "it is that of method powersgd, not of signum; use none");
  EXPECT_EQ(why_refused(Memory::dgc, method_named("qsgd")),
            "it forgets what was sent in full, and qsgd sends no element as it is; use a method "
            "that sends values, as dgc, topk or threshold, or memory residual");
}

// By hand: three steps of one element, which is sent in the second.
TEST(Memories, OfDgcAccumulatesItsMomentumAndMasksBoth) {
  GradientMemory memory(Memory::dgc, 1);
  const Floats none{0};
  Floats g{1};
  memory.compensate(0, g);
  EXPECT_FLOAT_EQ(g[0], 1);  // u = 1
  memory.keep(0, g, none);
  g = {1};
  memory.compensate(0, g);
  EXPECT_FLOAT_EQ(g[0], 2.9f);  // u = 1.9
  memory.keep(0, g, g);
  EXPECT_EQ(memory.kept()[0], 0);
  g = {1};
  memory.compensate(0, g);
  EXPECT_FLOAT_EQ(g[0], 1);  // neither u nor v is left
}

TEST(Memories, KeepNothingOfWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const Memory kind : kAll) {
    GradientMemory memory(kind, 3);
    Floats tensor{std::nanf(""), kInf, 1};
    memory.compensate(0, tensor);
    memory.keep(0, tensor, tensor);
    Floats next{1, 1, 1};
    memory.compensate(0, next);
    for (const float x : next) EXPECT_TRUE(std::isfinite(x)) << name_of(kind);
  }
}

}  // namespace
}  // namespace ghostrank
