#include "profiles/pipeline.h"

#include <algorithm>

namespace ghostrank {
namespace {

// One forward, one backward, behind `warmup` forwards.
template <typename Forward, typename Backward>
std::vector<Slot> one_by_one(int total, int warmup, Forward forward, Backward backward) {
  std::vector<Slot> out;
  for (int i = 0; i < warmup; ++i) out.push_back(forward(i));
  for (int i = warmup; i < total; ++i) {
    out.push_back(forward(i));
    out.push_back(backward(i - warmup));
  }
  for (int i = total - warmup; i < total; ++i) out.push_back(backward(i));
  return out;
}

std::vector<Slot> plain(const Pipeline& p, int stage) {
  return one_by_one(
      p.micro_batches, std::min(p.stages - stage - 1, p.micro_batches),
      [](int i) {
        return Slot{Pass::forward, i, 0};
      },
      [](int i) {
        return Slot{Pass::backward, i, 0};
      });
}

// Blocks of as many micro-batches as there are stages pass chunk after chunk.
Slot interleaved_forward(const Pipeline& p, int i) {
  const int block = p.stages * p.chunks;
  return {Pass::forward, i / block * p.stages + i % p.stages, i % block / p.stages};
}

std::vector<Slot> interleaved(const Pipeline& p, int stage) {
  const int total = p.micro_batches * p.chunks;
  const int warmup = std::min(2 * (p.stages - stage - 1) + (p.chunks - 1) * p.stages, total);
  return one_by_one(
      total, warmup, [&](int i) { return interleaved_forward(p, i); },
      [&](int i) {
        const Slot forward = interleaved_forward(p, i);
        return Slot{Pass::backward, forward.micro_batch, p.chunks - 1 - forward.chunk};
      });
}

}  // namespace

std::vector<Slot> pipeline_slots(const Pipeline& pipeline, int stage) {
  return pipeline.schedule == "interleaved" ? interleaved(pipeline, stage) : plain(pipeline, stage);
}

}  // namespace ghostrank
