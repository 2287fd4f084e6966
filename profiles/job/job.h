// A job, resolved: every key has its value and remembers its origin. The loader checks jobs against
// one table of keys (profiles/load/job_schema.cpp), from which --print-config, docs/job-format.md
// and profiles/schema/job.schema.json come, too.
//
// Threading: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/gradients/gradient_law.h"
#include "collectives/tensor_content.h"
#include "profiles/job/background.h"
#include "profiles/job/cluster_spec.h"
#include "profiles/job/collective_spec.h"
#include "profiles/job/compression_spec.h"
#include "profiles/job/device_profile.h"
#include "profiles/job/fabric_spec.h"
#include "profiles/job/hosts.h"
#include "profiles/job/parallel_plan.h"
#include "profiles/job/precision.h"
#include "profiles/job/run_spec.h"
#include "profiles/job/switch_spec.h"
#include "profiles/workload/program.h"

namespace ghostrank {

// A variant of a job that `ghostrank compare` plays: a name, and settings as for -s.
struct JobVariant {
  std::string name, settings;
};

// Gradients of verified runs are those of a logistic regression (profiles/training/logistic.h).
struct TrainingSpec {
  int samples = 32;    // of a rank
  double rate = 0.3;   // by which the mean gradient moves the weights
  double vote = 0.02;  // by which a majority of signs moves them
};

// The gradients of tensors whose names match a pattern, as in "fc.*".
struct TensorRule {
  std::string tensors;
  Sparsity sparsity;
};

// One of several jobs on the nodes of one cluster.
struct JobOnNodes {
  std::string name;                           // unique
  std::vector<Node> nodes;                    // of its ranks, in their order; no other job has them
  std::shared_ptr<const struct JobSpec> job;  // on a cluster of so many nodes
  std::string source;                         // "FILE:LINE:COL"
};

struct JobSpec {
  std::string file;  // as given
  std::string model_name;
  DeviceProfile device;
  Precision precision;
  ClusterSpec cluster;
  ParallelPlan parallel;
  CollectiveSpec collectives;
  std::optional<Sparsity> tensors;       // content of the ops' tensors; empty: dense
  std::vector<TensorRule> tensor_rules;  // of parts of them; the first that matches counts
  // Above 0: the density of the last iteration, warm-up included; from one iteration to the next
  // the density changes by a constant factor.
  double last_density = 0;
  std::optional<double> zipf;  // of embeddings' ids: the exponent; empty: gradients are dense
  std::optional<CompressionSpec> compression;  // of the ops' tensors; empty: none
  GradientLaws gradients;                      // for methods whose payload sizes depend on the data
  std::optional<TrainingSpec> training;        // empty: nothing is learned
  std::vector<HostEntry> hosts;                // empty: one process per launched host
  Placement placement;
  double dilation = 0;  // 0: auto
  // At which a process sends at most from an interface of its machine, bits per second, all headers
  // counted; 0: unlimited.
  double max_nic_bps = 0;
  // Ascending: the emulated nodes that are played, while the rest of the cluster is modelled;
  // empty: all are played.
  std::vector<Node> slice;
  FabricSpec fabric;
  SwitchSpec network_switch;
  RunSpec run;
  std::vector<JobVariant> variants;
  std::vector<Background> background;
  std::shared_ptr<const struct JobEvents> events;  // null: none
  std::vector<JobOnNodes> jobs;                    // several on one fabric; empty: this one alone
  std::shared_ptr<const struct Model> model;       // null: only `program`, or `jobs`
  std::shared_ptr<const Workload> program;     // played instead of a plan; null: there is a plan
  std::vector<std::string> notes;              // assumptions of the loader, for reports
  std::map<std::string, std::string> sources;  // "FILE:LINE:COL" of every given key

  // The settings by which a job trains its ranks: those of one of several jobs, or these.
  const JobSpec& of_job(std::size_t job) const { return jobs.empty() ? *this : *jobs[job].job; }

  // The source that an error about a key names: its line, or the job file if the key is not given.
  const std::string& source_of(const std::string& key) const;
};

// The settings of the job that groups of `kind` belong to; its cluster has only that job's nodes.
inline const JobSpec& settings_of(const JobSpec& spec, const Workload& workload,
                                  std::uint16_t kind) {
  return spec.of_job(job_of_kind(workload, kind));
}

}  // namespace ghostrank
