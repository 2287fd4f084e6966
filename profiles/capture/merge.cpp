#include "profiles/capture/merge.h"

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "profiles/error.h"
#include "profiles/input/yaml.h"
#include "profiles/median.h"

namespace ghostrank {
namespace {

constexpr std::size_t kMaxLayers = 100'000;
constexpr std::size_t kLeastSteps = 5;
// Numbers in a profile's recorded steps: a YAML file has at most kMaxYamlNodes of them.
constexpr std::size_t kMostNumbers = 300'000;

using Mode = CapturedStep::Mode;

void check_together(const std::vector<CapturedRank>& ranks) {
  const CapturedRank& first = ranks.front();
  std::set<int> seen;
  for (const CapturedRank& one : ranks) {
    const auto refuse = [&](const std::string& what) { throw Error(one.file + ": " + what); };
    if (one.group != first.group)
      refuse("its module has another process group than that of " + first.file +
             ", as where stages of a pipeline are trained by groups of ranks; one group of "
             "data-parallel ranks is captured");
    if (one.world != first.world || !seen.insert(one.rank).second ||
        one.parameters != first.parameters || one.plain != first.plain ||
        one.layers_are_buckets != first.layers_are_buckets ||
        one.find_unused != first.find_unused || one.timer != first.timer ||
        one.backend != first.backend)
      refuse("is not of the same run as " + first.file + "; give the records of one run");
    if (one.device != "cpu" && one.timer != kCudaTimer)
      refuse("the module is on " + quote(one.device) +
             ", and times are the host's: of launches and not of kernels; take a Kineto trace and "
             "'profile import'");
    if (one.backend != kFakeGroup && library_of(one.backend).empty())
      refuse("the process group is " + quote(one.backend) +
             "; gloo's and NCCL's are captured, and PyTorch's fake one");
  }
  const int processes = first.backend == kFakeGroup ? 1 : first.world;
  if (static_cast<int>(ranks.size()) != processes)
    throw Error(first.file + ": the run has " + std::to_string(processes) +
                " ranks and there are records of " + std::to_string(ranks.size()) +
                "; bring them into one folder");
}

// Shift of every rank's clock to that of the first, and how far it may be wrong.
struct Clocks {
  std::vector<Nanos> shift;
  Nanos error = 0;
};

// Narrows [low, high], which holds the clock of `there` minus that of `here`: no rank ends a call
// before all ranks have launched it.
void bound(const CapturedRank& here, const CapturedRank& there, Nanos& low, Nanos& high) {
  const std::size_t steps = std::min(here.steps.size(), there.steps.size());
  for (std::size_t s = 0; s < steps; ++s) {
    const auto &a = here.steps[s].buckets, &b = there.steps[s].buckets;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      if (a[i].bucket != b[i].bucket) continue;
      low = std::max(low, b[i].launched - a[i].ended);
      high = std::min(high, b[i].ended - a[i].launched);
    }
  }
}

Clocks align(const std::vector<CapturedRank>& ranks) {
  constexpr Nanos kFar = std::numeric_limits<Nanos>::max() / 4;
  std::map<std::string, Nanos> shift_of{{ranks.front().clock, 0}};
  Clocks out;
  for (const CapturedRank& rank : ranks) {
    if (!shift_of.contains(rank.clock)) {
      Nanos low = -kFar, high = kFar;
      for (const CapturedRank& here : ranks)
        if (here.clock == ranks.front().clock)
          for (const CapturedRank& there : ranks)
            if (there.clock == rank.clock) bound(here, there, low, high);
      if (low == -kFar || high < low)
        throw Error(rank.file + ": its clock cannot be put beside that of " + ranks.front().file +
                    "; the calls of the two contradict each other");
      shift_of[rank.clock] = -(low + (high - low) / 2);
      out.error = std::max(out.error, (high - low) / 2);
    }
    out.shift.push_back(shift_of[rank.clock]);
  }
  return out;
}

// Layers of the profile, and which parameter belongs to which.
struct Layers {
  std::vector<std::vector<std::uint32_t>> runs;  // parameters as they get ready, by run
  std::vector<std::size_t> bucket_end;           // by bucket: runs up to its end
  std::vector<std::size_t> layer_of;             // by parameter, in forward order
};

// By parameter, in the first recorded step; 0: not told.
std::vector<Nanos> ready_times(const CapturedRank& rank) {
  std::vector<Nanos> out(rank.parameters.size());
  const auto step = std::find_if(rank.steps.begin(), rank.steps.end(),
                                 [](const CapturedStep& one) { return one.mode == Mode::on; });
  if (step != rank.steps.end())
    for (const CapturedMoment& one : step->gradients) out[one.parameter] = one.at;
  return out;
}

// Puts the runs of a bucket that is in the order of registration into that in which they get ready.
void put_as_ready(std::span<std::vector<std::uint32_t>> runs, const std::vector<Nanos>& ready) {
  const auto last = [&](const std::vector<std::uint32_t>& run) {
    Nanos at = 0;
    for (const std::uint32_t p : run) at = std::max(at, ready[p]);
    return at;
  };
  for (auto& run : runs) std::reverse(run.begin(), run.end());
  std::stable_sort(runs.begin(), runs.end(),
                   [&](const auto& a, const auto& b) { return last(a) < last(b); });
}

Layers layers_of(const CapturedRank& rank) {
  if (rank.steps.empty())
    throw Error(rank.file +
                ": no step ended: no optimizer of torch.optim stepped behind a backward in which "
                "DDP summed gradients");
  if (rank.formed.empty())
    throw Error(rank.file + ": there are no buckets; let the script train for more steps");
  Layers out;
  std::vector<bool> ready(rank.parameters.size());
  const std::vector<Nanos> ready_at = ready_times(rank);
  for (const CapturedBucket& bucket : rank.formed) {
    const std::string* module = nullptr;
    const std::size_t first_run = out.runs.size();
    for (const std::uint32_t p : bucket.parameters) {
      if (ready[p]) throw Error(rank.file + ": a parameter lies in two buckets");
      ready[p] = true;
      if (!module || (*module != rank.parameters[p].module && !rank.layers_are_buckets))
        out.runs.emplace_back();
      module = &rank.parameters[p].module;
      out.runs.back().push_back(p);
    }
    if (bucket.type != rank.formed.front().type)
      throw Error(rank.file + ": buckets of " + bucket.type + " and of " +
                  rank.formed.front().type + "; gradients of one type are captured");
    if (bucket.type != "float32" && bucket.type != "float16" && bucket.type != "bfloat16")
      throw Error(rank.file + ": gradients of " + bucket.type +
                  " are not played; float32, float16 and bfloat16 are");
    if (rank.find_unused) put_as_ready(std::span(out.runs).subspan(first_run), ready_at);
    out.bucket_end.push_back(out.runs.size());
  }
  for (std::size_t p = 0; p < ready.size(); ++p)
    if (!ready[p])
      throw Error(rank.file + ": parameter " + quote(rank.parameters[p].name) + " has no bucket");
  if (out.runs.size() > kMaxLayers)
    throw Error(rank.file + ": more than " + std::to_string(kMaxLayers) + " layers");
  out.layer_of.resize(ready.size());
  for (std::size_t run = 0; run < out.runs.size(); ++run)
    for (const std::uint32_t p : out.runs[run]) out.layer_of[p] = out.runs.size() - 1 - run;
  return out;
}

std::vector<CaptureLayer> named_layers(const CapturedRank& rank, const Layers& layers) {
  std::vector<CaptureLayer> out(layers.runs.size());
  std::map<std::string, int> times;
  for (std::size_t layer = 0; layer < out.size(); ++layer) {
    const auto& run = layers.runs[out.size() - 1 - layer];
    const auto name_of = [&](std::uint32_t p) {
      const CapturedParameter& one = rank.parameters[p];
      return one.module.empty() ? one.name : one.module;
    };
    std::string name = name_of(run.back());
    if (name != name_of(run.front())) name += " to " + name_of(run.front());
    if (const int before = times[name]++; before > 0) name += "#" + std::to_string(before + 1);
    out[layer].name = name;
    for (auto p = run.rbegin(); p != run.rend(); ++p) {
      out[layer].parameters.push_back(rank.parameters[*p].numel);
      out[layer].captured.push_back(static_cast<std::uint32_t>(*p));
    }
  }
  return out;
}

[[noreturn]] void refuse_step(const CapturedRank& rank, const CapturedStep& step,
                              const std::string& what) {
  throw Error(rank.file + ":" + std::to_string(step.line) + ":1: " + what);
}

void forward_delays(const Layers& layers, const CapturedStep& step, CaptureDelays& out) {
  Nanos at = step.forward_synced;
  std::size_t layer = step.modules.empty() ? 0 : layers.layer_of[step.modules.front().parameter];
  for (std::size_t i = 1; i <= step.modules.size(); ++i) {
    const Nanos end = i < step.modules.size() ? step.modules[i].at : step.forward_end;
    if (end < at) continue;  // entered while buffers were broadcast
    out.forward[layer] += end - at;
    at = end;
    if (i < step.modules.size()) layer = layers.layer_of[step.modules[i].parameter];
  }
  if (step.modules.empty()) out.forward[layer] += step.forward_end - at;
}

void backward_delays(const CapturedRank& rank, const Layers& layers, const CapturedStep& step,
                     CaptureDelays& out) {
  std::vector<Nanos> ready(rank.parameters.size(), -1), launched(layers.bucket_end.size(), -1);
  for (const CapturedMoment& one : step.gradients) ready[one.parameter] = one.at;
  Nanos reduced = 0;
  for (const CapturedReduction& one : step.buckets) {
    if (one.bucket >= launched.size()) refuse_step(rank, step, "a bucket that was not formed");
    launched[one.bucket] = one.launched;
    reduced = std::max(reduced, one.ended);
  }
  Nanos at = step.backward_begin;
  for (std::size_t run = 0, bucket = 0; run < layers.runs.size(); ++run) {
    Nanos last = -1;
    for (const std::uint32_t p : layers.runs[run]) last = std::max(last, ready[p]);
    if (last < 0 && !rank.layers_are_buckets)
      refuse_step(rank, step,
                  "parameter " + quote(rank.parameters[layers.runs[run].front()].name) +
                      " got no gradient; capture such a run with --layers buckets");
    Nanos end = std::max(at, last);
    if (run + 1 == layers.bucket_end[bucket]) {
      if (launched[bucket] < 0) refuse_step(rank, step, "a bucket was not reduced");
      end = std::max(end, launched[bucket++]);
    }
    out.backward[layers.runs.size() - 1 - run] = end - at;
    at = end;
  }
  out.reduced = reduced;
  out.after = std::max<Nanos>(0, step.optimizer_begin - std::max(at, reduced));
}

CaptureDelays delays_of(const CapturedRank& rank, const Layers& layers, std::size_t s) {
  const CapturedStep& step = rank.steps[s];
  CaptureDelays out;
  out.forward.resize(layers.runs.size());
  out.backward.resize(layers.runs.size());
  out.before = step.forward_begin - rank.steps[s - 1].end;
  forward_delays(layers, step, out);
  out.loss = step.backward_begin - step.forward_end;
  backward_delays(rank, layers, step, out);
  out.optimizer = step.end - step.optimizer_begin;
  return out;
}

// Counts from the last rank's arrival: a played broadcast, too, waits for it.
Nanos time_of_buffers(const std::vector<CapturedRank>& ranks, const Clocks& clocks, std::size_t r,
                      std::size_t s) {
  Nanos last = std::numeric_limits<Nanos>::min();
  for (std::size_t i = 0; i < ranks.size(); ++i)
    last = std::max(last, ranks[i].steps[s].forward_begin + clocks.shift[i]);
  return std::max<Nanos>(0, ranks[r].steps[s].forward_synced + clocks.shift[r] - last);
}

// Time from the last rank's end of the step before to the last rank's end of this one.
Nanos duration(const std::vector<CapturedRank>& ranks, const Clocks& clocks, std::size_t s) {
  Nanos before = std::numeric_limits<Nanos>::min(), end = before;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    before = std::max(before, ranks[r].steps[s - 1].end + clocks.shift[r]);
    end = std::max(end, ranks[r].steps[s].end + clocks.shift[r]);
  }
  return end - before;
}

std::vector<CaptureReduction> reductions_of(const std::vector<CapturedRank>& ranks,
                                            const Clocks& clocks, std::size_t s) {
  std::vector<CaptureReduction> out;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const CapturedReduction& one : ranks[r].steps[s].buckets) {
      if (out.size() <= one.bucket) out.resize(one.bucket + 1);
      CaptureReduction& all = out[one.bucket];
      const Nanos launched = one.launched + clocks.shift[r], ended = one.ended + clocks.shift[r];
      all.launched = r == 0 ? launched : std::max(all.launched, launched);
      all.ended = r == 0 ? ended : std::max(all.ended, ended);
      all.bucket = one.bucket;
      all.bytes = one.bytes;
    }
  }
  return out;
}

bool all_are(const std::vector<CapturedRank>& ranks, std::size_t s, Mode mode) {
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](const CapturedRank& one) { return one.steps[s].mode == mode; });
}

std::size_t common_steps(const std::vector<CapturedRank>& ranks) {
  std::size_t steps = ranks.front().steps.size();
  for (const CapturedRank& one : ranks) steps = std::min(steps, one.steps.size());
  return steps;
}

}  // namespace

Nanos add_work_on_buffers(Captured& captured, Nanos broadcasts) {
  std::vector<Nanos> added;
  for (auto& of_rank : captured.delays)
    for (CaptureDelays& step : of_rank) {
      added.push_back(std::max<Nanos>(0, step.buffers - broadcasts));
      step.before += added.back();
    }
  return median(std::move(added));
}

std::vector<Nanos> plain_steps(const std::vector<CapturedRank>& ranks) {
  const Clocks clocks{std::vector<Nanos>(ranks.size()), 0};
  std::vector<Nanos> out;
  for (std::size_t s = 1; s < common_steps(ranks); ++s)
    if (all_are(ranks, s, Mode::off)) out.push_back(duration(ranks, clocks, s));
  return out;
}

std::string library_of(const std::string& backend) {
  if (backend == "gloo") return "gloo";
  return backend == "nccl" ? "nccl-2.28" : "";
}

Captured merge_capture(const std::vector<CapturedRank>& given) {
  std::vector<CapturedRank> ranks = given;
  std::sort(ranks.begin(), ranks.end(),
            [](const CapturedRank& a, const CapturedRank& b) { return a.rank < b.rank; });
  check_together(ranks);
  const CapturedRank& first = ranks.front();
  const Layers layers = layers_of(first);
  for (const CapturedRank& one : ranks)
    if (one.formed != first.formed) throw Error(one.file + ": other buckets than in " + first.file);
  const Clocks clocks = align(ranks);
  Captured out{.model = first.model,
               .torch = first.torch,
               .backend = first.backend,
               .type = first.formed.front().type,
               .device_name = first.timer == kCudaTimer ? first.device_name : "",
               .ranks = first.world,
               .find_unused = first.find_unused,
               .bucket_cap_bytes = first.bucket_cap_bytes,
               .float_buffers = first.float_buffers,
               .integer_buffers = first.integer_buffers,
               .layers = named_layers(first, layers)};
  for (const CapturedBucket& bucket : first.formed) out.buckets.push_back(bucket.parameters.size());
  out.clock_error = clocks.error;
  out.delays.resize(ranks.size());
  std::vector<Nanos> data;
  for (std::size_t s = 1; s < common_steps(ranks); ++s) {
    if (all_are(ranks, s, Mode::off)) out.held_out.push_back(duration(ranks, clocks, s));
    if (!all_are(ranks, s, Mode::on)) continue;
    out.step.push_back(duration(ranks, clocks, s));
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      out.delays[r].push_back(delays_of(ranks[r], layers, s));
      out.delays[r].back().buffers = time_of_buffers(ranks, clocks, r, s);
      out.delays[r].back().reduced += clocks.shift[r];
      data.push_back(ranks[r].steps[s].data);
      if (ranks[r].steps[s].modules.empty())
        ++out.left_out["what each module's forward takes, as " +
                       std::string(first.layers_are_buckets ? "with layers by bucket"
                                                            : "under torch.compile") +
                       ": it is one delay"];
      for (const CapturedCall& call : ranks[r].steps[s].calls)
        ++out.left_out["the script's own " + call.name + ", whose time stays in the delays"];
    }
    out.reductions.push_back(reductions_of(ranks, clocks, s));
  }
  if (out.step.size() < kLeastSteps)
    throw Error(first.file + ": " + std::to_string(out.step.size()) +
                " steps were recorded, fewer than " + std::to_string(kLeastSteps) +
                "; let the script train for more steps");
  out.data = median(data);
  const std::size_t fields = ranks.size() * (2 * layers.runs.size() + 4);
  const std::size_t keep = std::max<std::size_t>(1, kMostNumbers / fields);
  for (auto& of_rank : out.delays)
    if (of_rank.size() > keep)
      of_rank.erase(of_rank.begin(), of_rank.end() - static_cast<std::ptrdiff_t>(keep));
  return out;
}

}  // namespace ghostrank
