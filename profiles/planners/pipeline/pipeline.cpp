#include "profiles/planners/pipeline/pipeline.h"

#include <algorithm>
#include <array>

namespace ghostrank {
namespace {

// `warmup` forwards, then a forward and a backward in turn, then the remaining backwards.
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

int round_of(const Pipeline& p) { return p.round > 0 ? p.round : p.stages; }

// Each round of micro-batches passes chunk after chunk.
Slot interleaved_forward(const Pipeline& p, int i) {
  const int round = round_of(p), block = round * p.chunks;
  return {Pass::forward, i / block * round + i % round, i % block / round};
}

std::vector<Slot> interleaved(const Pipeline& p, int stage) {
  return one_by_one(
      p.micro_batches * p.chunks, interleaved_warmup(p, stage),
      [&](int i) { return interleaved_forward(p, i); },
      [&](int i) {
        const Slot forward = interleaved_forward(p, i);
        return Slot{Pass::backward, forward.micro_batch, p.chunks - 1 - forward.chunk};
      });
}

// Deals the passes of one stage, each kind and chunk in the order of its micro-batches. Some
// schedules count with micro-batches that do not exist; the dealer omits their passes.
class Dealer {
 public:
  Dealer(int micro_batches, int chunks)
      : micro_batches_(micro_batches), next_(static_cast<std::size_t>(4 * chunks)) {}

  int dealt(Pass pass, int chunk) { return next_[index(pass, chunk)]; }
  void deal(Pass pass, int chunk) {
    const int micro_batch = next_[index(pass, chunk)]++;
    if (micro_batch < micro_batches_) out_.push_back({pass, micro_batch, chunk});
  }
  // The weight passes whose input passes have been dealt.
  void rest_of_weights(int chunk) {
    while (dealt(Pass::weight_backward, chunk) < dealt(Pass::input_backward, chunk))
      deal(Pass::weight_backward, chunk);
  }
  std::vector<Slot> take() { return std::move(out_); }

 private:
  static std::size_t index(Pass pass, int chunk) {
    return static_cast<std::size_t>(4 * chunk) + static_cast<std::size_t>(pass);
  }

  int micro_batches_;
  std::vector<int> next_;
  std::vector<Slot> out_;
};

std::vector<Slot> zero_bubble_h1(const Pipeline& p, int stage) {
  Dealer out(p.micro_batches, 1);
  const int warmup = std::min(p.stages - 1 - stage, p.micro_batches);
  for (int i = 0; i < warmup; ++i) out.deal(Pass::forward, 0);
  for (int i = 0; i < p.micro_batches - warmup; ++i) {
    out.deal(Pass::forward, 0);
    out.deal(Pass::input_backward, 0);
    if (i >= stage) out.deal(Pass::weight_backward, 0);
  }
  for (int i = 0; i < warmup; ++i) {
    out.deal(Pass::input_backward, 0);
    out.deal(Pass::weight_backward, 0);
  }
  out.rest_of_weights(0);
  return out.take();
}

std::vector<Slot> zero_bubble_v(const Pipeline& p, int stage) {
  Dealer out(p.micro_batches, 2);
  const int all = std::max(2 * p.stages - 1, p.micro_batches), to_end = p.stages - stage;
  const auto whole_backward = [&](int chunk) {
    out.deal(Pass::input_backward, chunk);
    out.deal(Pass::weight_backward, chunk);
  };
  for (int i = 0; i < 2 * to_end - 1; ++i) out.deal(Pass::forward, 0);
  for (int i = 0; i < stage; ++i) {
    out.deal(Pass::forward, 1);
    out.deal(Pass::forward, 0);
  }
  for (int i = 0; i < to_end; ++i) {
    out.deal(Pass::forward, 1);
    whole_backward(1);
  }
  while (out.dealt(Pass::forward, 1) < out.dealt(Pass::forward, 0) ||
         out.dealt(Pass::forward, 0) < all) {
    if (out.dealt(Pass::forward, 0) < all) out.deal(Pass::forward, 0);
    whole_backward(0);
    out.deal(Pass::forward, 1);
    whole_backward(1);
  }
  for (int i = 0; i < stage; ++i) {
    out.deal(Pass::input_backward, 0);
    out.deal(Pass::input_backward, 1);
  }
  for (int i = 0; i < to_end; ++i) whole_backward(0);
  out.rest_of_weights(1);
  out.rest_of_weights(0);
  return out.take();
}

// One stage of dualpipe or dualpipev. `far` is its distance in stages from the end of the pipeline,
// `half` the number of stages from that end to where the two chunks meet; each chunk passes `each`
// micro-batches.
class DualStage {
 public:
  DualStage(int half, int far, int each, int first_of_chunk_0, int first_of_chunk_1)
      : half_(half),
        far_(far),
        each_(each),
        next_{{{{first_of_chunk_0, first_of_chunk_1}}, {{first_of_chunk_0, first_of_chunk_1}}}} {}

  std::vector<Slot> deal() {
    const int to_meet = half_ - far_ - 1, from_end = far_ + 1;
    const bool meets = to_meet == 0;
    for (int i = 0; i < 2 * to_meet; ++i) forward(0);
    for (int i = 0; i < from_end; ++i) {
      forward(0, i > 0 ? 1 : 0, meets ? 0 : 1);
      forward(1, 0, meets && i + 1 == from_end ? 1 : 0);
    }
    for (int i = 0; i < to_meet; ++i) {
      backward(1, true);
      weight();
      forward(1, 1);
    }
    for (int i = 0; i < each_ - 2 * half_ + far_ + 1; ++i) {
      // The first receive was launched before the last forward of the second step.
      if (i == 0)
        both(0, !meets, 1 + 3 * to_meet, meets ? 1 : 0);
      else
        both(0, true);
      both(1, true);
    }
    for (int i = 0; i < to_meet; ++i) {
      backward(1, false);
      both(1, true);
    }
    // From half way on, input gradients run ahead of weight gradients.
    for (int i = 0; i < 2 * from_end; ++i) backward(1 - i % 2, i >= from_end);
    for (int i = 0; i < to_meet; ++i) {
      weight();
      backward(0, true);
    }
    for (int i = 0; i < from_end; ++i) weight();
    return std::move(out_);
  }

 private:
  void forward(int chunk, int early = 0, int late = 0) {
    out_.push_back({Pass::forward, next_[0][chunk]++, chunk, false, early, late});
  }
  void backward(int chunk, bool weights_later) {
    const int micro_batch = next_[1][chunk]++;
    out_.push_back({weights_later ? Pass::input_backward : Pass::backward, micro_batch, chunk});
    if (weights_later) owed_.push_back({Pass::weight_backward, micro_batch, chunk});
  }
  // A forward of one chunk and a backward of the other.
  void both(int chunk, bool joined, int early = 0, int late = 0) {
    forward(chunk, early, late);
    out_.back().joined = joined;
    backward(1 - chunk, false);
  }
  void weight() { out_.push_back(owed_[paid_++]); }

  int half_, far_, each_;
  std::array<std::array<int, 2>, 2> next_;  // next micro-batch, forward and backward, by chunk
  std::vector<Slot> owed_;                  // weight passes, in the order of their input passes
  std::size_t paid_ = 0;
  std::vector<Slot> out_;
};

std::vector<Slot> dual(const Pipeline& p, int stage) {
  if (p.is_v()) return DualStage(p.stages, stage, p.micro_batches, 0, 0).deal();
  const int each = p.micro_batches / 2;
  const bool up = stage < p.stages / 2;  // chunk 0 passes micro-batches that entered at stage 0
  const int far = std::min(stage, p.stages - 1 - stage);
  return DualStage(p.stages / 2, far, each, up ? 0 : each, up ? each : 0).deal();
}

}  // namespace

int Pipeline::part(int stage, int chunk) const {
  if (is_bidirectional()) {
    const int early = std::min(stage, stages - 1 - stage);
    return chunk == 0 ? early : parts() - 1 - early;
  }
  return is_v() && chunk == 1 ? parts() - 1 - stage : chunk * stages + stage;
}

int Pipeline::stage_of(int part) const {
  if (is_bidirectional()) return std::min(part, parts() - 1 - part);
  return is_v() && part >= stages ? parts() - 1 - part : part % stages;
}

std::optional<int> Pipeline::neighbour(int stage, int chunk, int step) const {
  const int other = part(stage, chunk) + step;
  if (other < 0 || other >= parts()) return std::nullopt;
  if (is_bidirectional()) return (chunk == 0) == (stage < stages / 2) ? stage + step : stage - step;
  return is_v() && other >= stages ? parts() - 1 - other : other % stages;
}

int pipeline_chunks(const std::string& schedule, int interleave) {
  if (schedule == "zbv" || schedule.starts_with("dualpipe")) return 2;
  return schedule == "interleaved" ? interleave : 1;
}

int interleaved_warmup(const Pipeline& p, int stage) {
  return std::min(2 * (p.stages - stage - 1) + (p.chunks - 1) * round_of(p),
                  p.micro_batches * p.chunks);
}

std::optional<double> pipeline_bubble(const Pipeline& p) {
  if (!p.alike) return std::nullopt;
  const double waits = p.stages - 1, passes = p.micro_batches;
  if (p.schedule == "1f1b") return waits / passes;
  if (p.schedule == "interleaved" && round_of(p) == p.stages) return waits / (p.chunks * passes);
  return std::nullopt;
}

std::vector<Slot> pipeline_slots(const Pipeline& pipeline, int stage) {
  if (pipeline.schedule == "interleaved") return interleaved(pipeline, stage);
  if (pipeline.schedule == "zb-h1") return zero_bubble_h1(pipeline, stage);
  if (pipeline.schedule == "zbv") return zero_bubble_v(pipeline, stage);
  if (pipeline.schedule.starts_with("dualpipe")) return dual(pipeline, stage);
  return plain(pipeline, stage);
}

int pipeline_period(const Pipeline& pipeline) {
  if (pipeline.schedule == "interleaved") return round_of(pipeline);
  return pipeline.is_bidirectional() ? 2 : 1;
}

Pipeline shortened(const Pipeline& pipeline, int least) {
  const int step = pipeline_period(pipeline);
  Pipeline out = pipeline;
  out.micro_batches -= std::max(0, pipeline.micro_batches - least) / step * step;
  return out;
}

}  // namespace ghostrank
