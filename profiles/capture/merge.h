// Merges the records of all ranks into a profile: layers as gradients get ready, every rank's times
// in every recorded step, DDP's buckets, and what the run says about its network.
//
// A layer of the profile is a run of parameters of one module that get ready one after the other
// and lie in one bucket: its backward ends when the last of them is ready, or when their bucket is
// launched. Where hooks of modules and gradients were left out, because they cost too much, each
// bucket is a layer, and the whole forward is the delay of the first layer. Time outside of modules
// with parameters (functions, activations) counts to the layer before it in the forward, to the
// layer after it in the backward.
//
// Clocks: ranks of one machine share theirs. Another machine's is shifted to the middle of what the
// all-reduces allow, because none ends before all its ranks have launched it; drift is not
// modelled.
//
// With PyTorch's fake process group one rank runs alone and its all-reduces end at once, so such a
// run says nothing about a network.
//
// Units: nanoseconds. Threading: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "profiles/capture/records.h"

namespace ghostrank {

inline constexpr const char* kFakeGroup = "fake";  // as a backend

// The library whose schedules a job plays for a backend of PyTorch's; empty: none is known.
std::string library_of(const std::string& backend);

struct CaptureLayer {
  std::string name;
  std::vector<std::uint64_t> parameters;  // elements, in the reverse of the order they get ready in
  std::vector<std::uint32_t> captured;    // their numbers in the records
};

// One step of one rank.
struct CaptureDelays {
  Nanos before = 0, loss = 0, after = 0, optimizer = 0;
  Nanos buffers = 0;                     // from the last rank's arrival until they are broadcast
  Nanos reduced = 0;                     // when its last all-reduce ended, in the common clock
  std::vector<Nanos> forward, backward;  // by layer, in forward order
};

// An all-reduce as the whole group saw it, in the common clock.
struct CaptureReduction {
  std::uint32_t bucket = 0;
  std::uint64_t bytes = 0;
  Nanos launched = 0, ended = 0;  // last launch, last end
};

struct Captured {
  std::string model, torch, backend, type;  // type of the gradients
  std::string device_name;                  // whose times these are; empty: the host's
  int ranks = 0;
  bool find_unused = false;  // as CapturedRank's
  std::uint64_t bucket_cap_bytes = 0, float_buffers = 0, integer_buffers = 0;
  std::vector<CaptureLayer> layers;                       // in forward order
  std::vector<std::size_t> buckets;                       // tensors in each
  std::vector<std::vector<CaptureDelays>> delays;         // by rank and recorded step
  std::vector<std::vector<CaptureReduction>> reductions;  // by recorded step
  std::vector<Nanos> step, held_out;  // times of steps that were recorded, and that were not
  Nanos data = 0;                     // median time of a step in its data loader
  Nanos clock_error = 0;  // half of the widest span that another machine's shift may lie in
  std::map<std::string, std::uint64_t> left_out;  // what is not played, with its count
};

// All-reduces that nothing holds up are as quick as this share of them.
inline constexpr double kQuick = 0.1;

// What a call of the group costs where nothing holds it up, by least squares over the spans in
// which calls were under way, the kQuick quantile of each kind of span: seconds = calls * per_call
// + bytes * per_byte. `bytes` are of the buffers.
struct CallCost {
  double per_call = 0, per_byte = 0;  // seconds
  // False: bytes per call differ by less than a factor of 2 between spans, or per_call is no more
  // than twice its standard error. per_call is then 0, and per_byte includes its time.
  bool per_call_known = false;
};

// Throws Error(usage) for records that do not belong together or cannot be played.
Captured merge_capture(const std::vector<CapturedRank>& ranks);

// A job plays the broadcast of buffers as calls that take `broadcasts`. The rest of the measured
// time is work of the hosts (packing, waking, unpacking): adds it to the time before the forward.
// Returns the median of what it adds.
Nanos add_work_on_buffers(Captured& captured, Nanos broadcasts);

// A job plays all-reduces that take what `cost` says. Where those that were under way last in a
// step took longer, hosts worked or waited: adds that to the time before the optimizer. Returns the
// median of what it adds.
Nanos add_work_on_reductions(Captured& captured, const CallCost& cost);

// Times of the steps of a run without hooks (mode `plain`), warm-up left out.
std::vector<Nanos> plain_steps(const std::vector<CapturedRank>& ranks);

CallCost call_cost(const std::vector<std::vector<CaptureReduction>>& reductions);

}  // namespace ghostrank
