// Records of a made-up run, as the hooks would write them: two ranks, two layers, two buckets, over
// a network of 1 Gb/s without latency.
#pragma once

#include <string>

namespace ghostrank::test {

struct MadeRun {
  int steps = 45, block = 5;
  long long clock_shift = 0;  // ns; of rank 1, which then is on another machine
  // Nanoseconds that the broadcast of 1,000 floating-point buffers takes; the first layer's forward
  // is that much shorter. Rank 1 begins the broadcast kRootLate before rank 0.
  long long broadcast = 0;
  long long without_hooks = 0;  // ns by which a step without hooks is longer
  long long held_up = 0;        // ns by which hosts hold up the last all-reduce of some steps
};
inline bool is_held_up(int step) { return step % 5 >= 2; }
inline constexpr long long kRootLate = 200'000;

// The delays of step `step`, in nanoseconds.
inline long long backward_of_last(int step) { return 4'000'000 + 40'000 * (step % 5); }
inline constexpr long long kBefore = 1'000'000, kForwardA = 2'000'000, kForwardB = 3'000'000,
                           kLoss = 500'000, kBackwardA = 2'000'000, kAfter = 1'000'000,
                           kOptimizer = 2'000'000, kLate = 300'000, kReduce = 24'000'000;
inline constexpr long long kFixed =
    kBefore + kForwardA + kForwardB + kLoss + kReduce + kAfter + kOptimizer + kLate;
// From one step's end to the next, in ns: both buckets share the network from the first launch on.
inline long long step_of(int step) { return kFixed + backward_of_last(step); }

inline std::string made_header(int rank, const std::string& clock, bool buffers = false) {
  return R"({"ghostrank_capture":1,"mode":"hooks","rank":)" + std::to_string(rank) +
         R"(,"world":2,"host":"h","clock":")" + clock +
         R"(","torch":"1.13.0","backend":"gloo","device":"cpu","model":"Net","bucket_cap_bytes":26214400,)" +
         R"("parameters":[["a.weight","a",249900,"float32"],["a.bias","a",100,"float32"],)" +
         R"(["b.weight","b",499900,"float32"],["b.bias","b",100,"float32"]],"buffers":[)" +
         (buffers ? R"(["float32",1000])" : "") + "]}\n";
}

// held_up: ns, of this step.
inline std::string made_step(int step, long long begin, int rank, long long broadcast = 0,
                             long long held_up = 0) {
  const auto text = [](long long value) { return std::to_string(value); };
  const long long late = rank == 1 ? kLate : 0;  // rank 1 takes longer for its first layer
  const long long forward = begin + kBefore, b_entered = forward + kForwardA + late;
  const long long own = rank == 1 && broadcast > 0 ? forward - kRootLate : forward;
  const long long synced = forward + broadcast;
  const long long forward_end = b_entered + kForwardB, backward = forward_end + kLoss;
  const long long b_ready = backward + backward_of_last(step), a_ready = b_ready + kBackwardA;
  const long long first_reduced =
      begin + kFixed - kAfter - kOptimizer + backward_of_last(step) - 4'000'000;
  const long long reduced = first_reduced + 4'000'000 + held_up;
  const long long stepping = reduced + kAfter, end = stepping + kOptimizer;
  return R"({"step":)" + std::to_string(step) + R"(,"mode":"on","end":)" + text(end) +
         R"(,"forward":[)" + text(own) + "," + text(synced) + "," + text(forward_end) +
         R"(],"modules":[[0,)" + text(synced) + "],[2," + text(b_entered) + R"(]],"backward":[)" +
         text(backward) + "," + text(reduced) + R"(],"gradients":[[3,)" + text(b_ready - 1000) +
         "],[2," + text(b_ready - 500) + "],[1," + text(a_ready - 1000) + "],[0," +
         text(a_ready - 500) + R"(]],"buckets":[[0,2000000,)" + text(b_ready) + "," +
         text(first_reduced) + "],[1,1000000," + text(a_ready) + "," + text(reduced) +
         R"(]],"optimizer":[)" + text(stepping) + "," + text(end) +
         R"(],"data":400000,"forwards":1,"calls":[]})" + "\n";
}

inline std::string made_records(int rank, const MadeRun& run = {}) {
  const bool elsewhere = rank == 1 && run.clock_shift != 0;
  std::string out = made_header(rank, elsewhere ? "other" : "here", run.broadcast > 0);
  long long at = 1'000'000'000 + (elsewhere ? run.clock_shift : 0);
  constexpr int kWarm = 5;
  for (int step = 0; step < run.steps; ++step) {
    const int block = (step - kWarm) / run.block;
    const bool changes = step >= kWarm && (step - kWarm) % run.block == 0;
    const bool on = step >= kWarm && !changes && block % 2 == 0;
    const bool off = step >= kWarm && !changes && block % 2 == 1;
    const long long held_up = is_held_up(step) ? run.held_up : 0;
    const long long length = step_of(step) + (off ? run.without_hooks : 0) + held_up;
    if (on) {
      out += made_step(step, at, rank, run.broadcast, held_up);
    } else {
      const char* mode = off ? "off" : changes ? "switch" : "warm";
      out += R"({"step":)" + std::to_string(step) + R"(,"mode":")" + mode + R"(","end":)" +
             std::to_string(at + length) + "}\n";
    }
    if (changes && block % 2 == 0)
      out += R"({"formed":[[0,"float32",500000,[3,2]],[1,"float32",250000,[1,0]]]})"
             "\n";
    at += length;
  }
  return out;
}

}  // namespace ghostrank::test
