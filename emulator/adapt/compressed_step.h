// A planned step whose gradients are compressed, as a controller of ratios sees it: when each
// tensor can be sent, what the communication stream does beside sending, and payloads whose sizes
// can be changed.
//
// Units: seconds since the step began; elements; bytes. Threading: plain values, pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiles/job/job.h"

namespace ghostrank {

// A tensor whose payload is exchanged by one call.
struct SentTensor {
  std::uint32_t tensor = 0;  // as Op::tensor
  std::uint64_t elements = 0;
};

// What the communication stream does, in order: it waits for gradients, computes, or sends.
struct StreamPart {
  enum class Kind : std::uint8_t { wait, compute, send } kind = Kind::compute;
  double seconds = 0;    // wait: when the gradients are ready; compute: its duration
  std::size_t call = 0;  // send: index into CompressedStep::calls
};

struct CompressedStep {
  std::vector<SentTensor> calls;
  std::vector<StreamPart> stream;
  double computed = 0;  // when the last wait passes: the backward pass and all before it have ended
  double compute = 0;   // the compute stream alone, the optimizer included
  // What a rank's host adds to each byte of its payload's size, as it stages those of the others
  // (compression.gather_ns); not part of `stream`.
  double staged_byte = 0;
};

// Returns the steady step of a plan by ddp. Requires a job that compresses.
CompressedStep compressed_step(const JobSpec& spec, const Workload& workload);

// Returns `program`, the step's program with any ratios, with ratios[i] for step.calls[i].
Program with_ratios(const JobSpec& spec, const Workload& workload, const CompressedStep& step,
                    const Program& program, const std::vector<double>& ratios);

// Returns the plan with the steady step at the ratios by_step[i] as iteration i; later iterations
// repeat the last.
Workload with_ratios(const JobSpec& spec, const Workload& workload, const CompressedStep& step,
                     std::span<const std::vector<double>> by_step);

// Share of the gradients that a step with these ratios sends.
double share_of(const JobSpec& spec, const CompressedStep& step, std::span<const double> ratios);

// Bytes of the payload of a call at this ratio.
double payload_at(const JobSpec& spec, const SentTensor& call, double ratio);

}  // namespace ghostrank
