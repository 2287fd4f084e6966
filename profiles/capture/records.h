// What the hooks of `ghostrank profile capture` write (hooks/ghostrank_hooks.py): a file for each
// rank, JSON lines.
//
//   {"ghostrank_capture": 1, "mode": "hooks", "layers": "modules" | "buckets", "rank", "world",
//   "group": [rank of the run, ...], "host", "clock",
//    "timer": "host" | "cuda events", "torch", "backend", "device", "device_name", "model",
//    "bucket_cap_bytes", "find_unused", "parameters": [[name, module, elements, type], ...],
//    "buffers": [[type, elements], ...]} the first line
//   {"step": 4, "mode": "warm" | "off" | "switch", "end": ns}                   not recorded
//   {"step": 6, "mode": "on", "end": ns, "forward": [begin, begin behind the broadcast of buffers,
//    end], "modules": [[first parameter, entered], ...], "backward": [begin, end],
//    "gradients": [[parameter, ready], ...] (at least the last of each run of one module's
//    parameters in a bucket), "buckets": [[index, bytes, launched, ended], ...],
//    "optimizer": [begin, end], "data": ns, "forwards": n,
//    "calls": [[name, bytes, begin, end], ...]}                                 recorded
//   {"formed": [[index, type, elements, [parameter, ...]], ...]}                DDP's buckets
//   {"magnitudes": [[parameter, zeros, [[k, elements], ...]], ...],
//    "blocks": [[parameter, [n, ...]], ...], "block": elements}     a bucket's gradients before
//    they are summed
//   {"not_finite": bucket}    a bucket whose gradients were left out: infinite or not a number
//   {"refused": why}
//
// Times are nanoseconds of the clock that the header names; equal names are one clock. `timer`:
// whether a time is when the host launched the work ("host", also if the key is missing) or when
// the device reached it. With layers by bucket there are no modules and gradients; if `layers` is
// missing, layers are by module. With `find_unused` (missing: false) DDP's buckets keep the order
// of registration. `rank` and `world` are those of the module's process group, and `group` says
// which of the run's ranks that has (missing: not known). A step ends when its optimizer has
// stepped. Magnitudes are counted from 2^(k/4) up to 2^((k+1)/4). Of the bucket's blocks that begin
// in a parameter, n are nonzero on exactly 0, 1, 2 ... ranks. Input is not trusted. Threading:
// plain values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ghostrank {

using Nanos = std::int64_t;

struct CapturedParameter {
  std::string name, module, type;
  std::uint64_t numel = 0;
  bool operator==(const CapturedParameter&) const = default;
};

struct CapturedBucket {
  std::string type;
  std::uint64_t numel = 0;
  std::vector<std::uint32_t> parameters;
  bool operator==(const CapturedBucket&) const = default;
};

struct CapturedMoment {
  std::uint32_t parameter = 0;
  Nanos at = 0;
};

struct CapturedReduction {
  std::uint32_t bucket = 0;
  std::uint64_t bytes = 0;
  Nanos launched = 0, ended = 0;
};

struct CapturedCall {
  std::string name;
  std::uint64_t bytes = 0;
};

struct CapturedStep {
  enum class Mode : std::uint8_t { warm, off, change, on };
  std::uint64_t number = 0, line = 0;
  Mode mode = Mode::warm;
  Nanos end = 0;
  // Of a step that is on:
  Nanos forward_begin = 0, forward_synced = 0, forward_end = 0;
  Nanos backward_begin = 0, backward_end = 0, optimizer_begin = 0, data = 0;
  std::vector<CapturedMoment> modules, gradients;
  std::vector<CapturedReduction> buckets;
  std::vector<CapturedCall> calls;
};

// Gradients of one rank, summed over the steps in which they were looked at.
struct CapturedGradients {
  struct Tensor {
    std::uint64_t zeros = 0;
    std::map<std::int32_t, std::uint64_t> counts;  // of magnitudes, by k
    std::vector<std::uint64_t> blocks;  // of DDP's buckets that begin in it, by number of ranks
  };
  std::vector<Tensor> parameters;
  std::uint64_t block = 0;       // elements; 0: the hooks did not look at gradients
  std::uint64_t not_finite = 0;  // buckets left out
};

struct CapturedRank {
  std::string file, clock, timer, torch, backend, device, device_name, model;
  bool plain = false;               // only the ends of steps
  bool layers_are_buckets = false;  // else runs of a module's parameters
  bool find_unused = false;         // find_unused_parameters, of a graph that is not static
  int rank = 0, world = 1;
  std::vector<int> group;  // ranks of the run; empty: not known
  std::uint64_t bucket_cap_bytes = 0;
  std::uint64_t float_buffers = 0, integer_buffers = 0;  // elements
  std::vector<CapturedParameter> parameters;
  std::vector<CapturedBucket> formed;
  std::vector<CapturedStep> steps;
  CapturedGradients gradients;
};

inline constexpr const char* kLayersByModule = "modules";
inline constexpr const char* kLayersByBucket = "buckets";
inline constexpr const char* kHostTimer = "host";
inline constexpr const char* kCudaTimer = "cuda events";
inline constexpr std::uint64_t kMaxCapturedSteps = 1'000'000;

// Throws Error(usage) "FILE:LINE:1: what; what to do".
CapturedRank read_captured_rank(const std::string& path);

// The files rank*.jsonl of a folder, in order; empty if there are none.
std::vector<std::string> capture_files(const std::string& folder);

// Reads them; that there are none is an error.
std::vector<CapturedRank> read_capture(const std::string& folder);

}  // namespace ghostrank
