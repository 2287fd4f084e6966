#include "profiles/load/idle_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "collectives/library.h"
#include "profiles/algorithms/algorithms.h"
#include "profiles/device/compute.h"
#include "profiles/device/device.h"
#include "profiles/device/kernels/measured.h"
#include "profiles/input/idle.h"
#include "profiles/planners/ddp.h"

namespace ghostrank {
namespace {

std::string alternatives(std::string_view list) { return join(words(list), " or "); }

bool is_of(std::string_view families, const std::string& library, const Algorithms& own) {
  return own.is_plugin(library) ? is_among(families, "plugin")
                                : is_among(families, name_of(library_named(library)));
}

// The libraries that a row's families stand for, as "nccl-2.28 or nccl-2.30".
std::string libraries_named(std::string_view families, const Algorithms& own) {
  std::vector<std::string> names = own.libraries();
  std::erase_if(names, [&](const std::string& name) { return !is_of(families, name, own); });
  return join(names, " or ");
}

// Collects one line per reason, with all keys that it applies to.
class Notes {
 public:
  void add(const std::string& reason, const std::string& key) { note("no effect" + reason, key); }
  void add_small(const std::string& reason, const std::string& key) {
    note("little effect" + reason, key);
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const auto& [what, keys] : lines_) out.push_back(what + ": " + keys);
    return out;
  }

 private:
  void note(const std::string& what, const std::string& key) {
    const auto known = std::find_if(lines_.begin(), lines_.end(),
                                    [&](const auto& line) { return line.first == what; });
    if (known == lines_.end())
      lines_.emplace_back(what, key);
    else
      known->second += ", " + key;
  }

  std::vector<std::pair<std::string, std::string>> lines_;
};

class Search {
 public:
  Search(const Settings& in, const JobSpec& spec, const std::set<std::string_view>& schemes)
      : in_(in), spec_(spec), schemes_(schemes) {}

  std::vector<std::string> run() {
    for (const Setting& setting : in_.all())
      if (is_changed(setting)) look_at(setting);
    look_at_device();
    return notes_.lines();
  }

 private:
  static constexpr const char* kWithoutKernels = " where compute is not by kernels";

  void look_at(const Setting& setting) {
    const Key& key = *setting.key;
    refuse_of_others(setting);
    if (is_of_plan(key.path) && plays_program())
      return notes_.add(" on a program or trace, which is played as it is", std::string(key.path));
    if (is_idle_without_kernels(key.path))
      return notes_.add(kWithoutKernels, std::string(key.path));
    if (key.path == "precision.optimizer" && in_.text("parallel.framework") == "phub")
      return notes_.add(" where servers step the weights", std::string(key.path));
    if (!plays_here(setting))
      return idle(setting, " on fabric " + in_.text("fabric.kind"),
                  std::string(key.path) + " means nothing to fabric " + in_.text("fabric.kind") +
                      "; leave it out, or use fabric.kind: " + alternatives(fabrics_of(setting)),
                  in_.given("fabric.kind"));
    for (const Beside& one : key.beside)
      if (!one.key.empty() && !stands_alone(setting) && !holds(one, in_.text(one.key)))
        return idle_beside(setting, one);
    if (key.path == "fabric.qps_per_connection" && !spreads_connections())
      return idle(setting, " where no links between switches are modelled",
                  std::string(key.path) +
                      " means nothing where no links between switches are modelled; set "
                      "cluster.topology.kind (leaf_spine, for one), or leave it out",
                  in_.given("cluster.topology.kind") || in_.given("fabric.network"));
    const bool only_for_schemes = key.schemes || is_for_packets_alone(setting);
    if (only_for_schemes && !plays_scheme(key)) {
      const std::string played =
          "no collective is played by " +
          (key.only_schemes.empty() ? "a scheme" : alternatives(key.only_schemes));
      const std::string one =
          key.only_schemes.empty() ? "switchml" : std::string(words(key.only_schemes).front());
      return idle(setting, " where " + played,
                  std::string(key.path) + " means nothing here: " + played +
                      "; name one (collectives: {allreduce: " + one + "}), or leave it out",
                  chooses_algorithms() || (!key.schemes && chooses_packets()));
    }
    if (only_for_schemes && key.path.starts_with("fabric.packets.") && !plays_packets())
      notes_.add(" where no scheme sends packets", std::string(key.path));
    if (is_idle_to_method(key.path))
      notes_.add(" where compression.method is " + in_.text("compression.method"),
                 std::string(key.path));
    if (is_idle_to_ssgd(setting))
      notes_.add(" where parallel.variant is ssgd", std::string(key.path));
    if (is_idle_to_merge(key.path))
      notes_.add(" where compression.merge is " + in_.text("compression.merge"),
                 std::string(key.path));
    if (is_idle_without_zeros(key.path))
      notes_.add(" where no scheme leaves out zeros and run.verify is false",
                 std::string(key.path));
    if (is_idle_without_servers(key.path))
      notes_.add(" where no collective is played by a scheme", std::string(key.path));
  }

  // What the job itself puts in place of its device's numbers. A program or trace has no use for
  // kernels, but computations of traces take the efficiency.
  void look_at_device() {
    if (!spec_.model || plays_program() || !is_given("device")) return;
    const YamlValue& device = *in_.at("device").raw;
    if (!device.is_map() || !device.find("base")) return;
    const bool by_kernels = computes_by_kernels(spec_),
               by_flops = !by_kernels || spec_.parallel.framework == Framework::kfac ||
                          (spec_.model->transformer->experts.count > 0 &&
                           spec_.parallel.framework != Framework::megatron);
    if (!by_flops && device.find("efficiency"))
      notes_.add(" where compute is by kernels", "device.efficiency");
    const YamlValue* kernels = device.find("kernels");
    if (!kernels) return;
    for (const YamlValue& one : kernels->children) {
      const std::string key = "device.kernels." + one.key;
      if (!by_kernels)
        notes_.add(kWithoutKernels, key);
      else if (is_stated_beside_measured(one.key))
        notes_.add_small(
            " beside measured kernels, which products: '', transfers: '' and attention: '' leave "
            "out",
            key);
    }
  }

  // Measured kernels take their own times and correct the formula for all others, whatever it says.
  bool is_stated_beside_measured(std::string_view key) const {
    const auto& measured = spec_.device.measured;
    if (!measured) return false;
    const KernelTables& tables = measured->tables();
    const Precision& precision = spec_.precision;
    const bool products = measured->has_products(operand_type(spec_.device, precision)) &&
                          measured->has_products(operand_type(spec_.device, precision.parameters)),
               transfers = !tables.transfers.empty();
    return (key == "matmul" && products) || (key == "memory" && transfers) ||
           (key == "launch_us" && products && transfers);
  }

  // A key of another framework or library is a mistake: no job plays two of them.
  void refuse_of_others(const Setting& setting) const {
    const Key& key = *setting.key;
    const std::string what = std::string(key.path) + " means nothing to ";
    if (!key.frameworks.empty() && !is_among(key.frameworks, in_.text("parallel.framework")))
      fail(setting.mark,
           what + "framework " + in_.text("parallel.framework") +
               "; leave it out, or use parallel.framework: " + alternatives(key.frameworks));
    if (!key.libraries.empty() &&
        !is_of(key.libraries, spec_.collectives.library, *spec_.collectives.own))
      fail(setting.mark, what + "library " + spec_.collectives.library +
                             "; leave it out, or use collectives.library: " +
                             libraries_named(key.libraries, *spec_.collectives.own));
  }

  void idle_beside(const Setting& setting, const Beside& one) {
    idle(setting, where_idle(in_, one), refusal_of_idle(in_, setting, one), in_.given(one.key));
  }

  void idle(const Setting& setting, const std::string& reason, const std::string& error,
            bool chosen) {
    if (!chosen) fail(setting.mark, error);
    notes_.add(reason, std::string(setting.key->path));
  }

  // Packet by packet each queue pair has its own congestion control, too.
  bool spreads_connections() const {
    return !is_among("nonblocking single_switch", in_.text("cluster.topology.kind")) ||
           in_.text("fabric.network") == "packet";
  }

  // For some keys the fabrics depend on the value.
  std::string_view fabrics_of(const Setting& setting) const {
    if (setting.key->path == "fabric.colocated")
      return setting.text == "wire" ? "ofi packets" : "memory ofi packets";
    const bool list = setting.key->path == "hosts" && setting.raw && setting.raw->is_list();
    if (list && setting.raw->children.size() > 1) return "ofi";
    return setting.key->fabrics;
  }

  bool plays_here(const Setting& setting) const {
    const std::string_view fabrics = fabrics_of(setting);
    return fabrics.empty() || is_among(fabrics, in_.text("fabric.kind"));
  }

  // True if the key has an effect though its conditions fail: overlap `none` and a file of overlaps
  // act at any density, and so do last_density and Zipf's tables, which use blocks.
  bool stands_alone(const Setting& setting) const {
    const std::string& overlap = in_.text("tensors.overlap");
    if (setting.key->path == "tensors.block" && in_.text("tensors.embeddings") == "zipf")
      return true;
    const bool differs = in_.number("tensors.last_density") > 0;
    return (setting.key->path == "tensors.overlap" || setting.key->path == "tensors.block") &&
           (differs || (overlap != "random" && overlap != "all"));
  }

  bool plays_scheme(const Key& key) const {
    return key.only_schemes.empty() ? !schemes_.empty() : plays_one_of(key.only_schemes);
  }

  // A plugin's scheme may look at everything that ours look at.
  bool plays_one_of(std::string_view names) const {
    return std::any_of(schemes_.begin(), schemes_.end(), [&](std::string_view scheme) {
      return is_among(names, scheme) || !is_built_in(scheme);
    });
  }

  // OmniReduce sends packets or messages.
  bool plays_packets() const {
    return plays_one_of("switchml atp omnireduce_switch") ||
           (plays_one_of("omnireduce") && in_.text("omnireduce.carriage") == "packets");
  }

  static bool is_built_in(std::string_view scheme) {
    return std::ranges::any_of(registry(), [&](const Algorithm& row) {
      return row.library == kSchemes && row.name == scheme;
    });
  }

  // What is in tensors is seen by schemes that leave out zeros, and by what is verified.
  bool is_idle_without_zeros(std::string_view path) const {
    const bool about_zeros = is_among(
        "tensors.density tensors.last_density tensors.block tensors.overlap "
        "tensors.embeddings tensors.zipf_exponent",
        path);
    return about_zeros && !in_.boolean("run.verify") &&
           !plays_one_of("omnireduce omnireduce_switch sparse_all_gather sparcml");
  }

  // Servers of no use are nodes without traffic, but they take places in a topology, and ports of
  // the switch that plays packets.
  bool is_idle_without_servers(std::string_view path) const {
    return (path == "servers.count" || path == "servers.placement") && schemes_.empty() &&
           is_among("nonblocking single_switch", in_.text("cluster.topology.kind")) &&
           in_.text("fabric.network") != "packet";
  }

  // Whether compression takes other tensors than the buckets that the key makes.
  bool is_idle_to_merge(std::string_view path) const {
    const bool sizes =
        is_among("parallel.bucket_cap_mb parallel.first_bucket_mb parallel.fusion_mb", path);
    if (!sizes && path != "parallel.launch") return false;
    if (in_.text("compression.method") == "none") return false;
    const std::string& merge = in_.text("compression.merge");
    return merge == "model" || (merge == "tensor" && sizes);
  }

  bool is_for_packets_alone(const Setting& setting) const {
    return setting.key->path == "fabric.packets.mtu" && in_.text("fabric.framing") == "none" &&
           in_.text("fabric.kind") != "packets" && in_.text("fabric.network") != "packet";
  }

  // Whether the job says what else has packets, which another file or flag may turn off.
  bool chooses_packets() const {
    return in_.given("fabric.kind") || in_.given("fabric.framing") || in_.given("fabric.network");
  }

  // By names, or by a framework that has schemes of its own.
  bool chooses_algorithms() const {
    if (!schemes_.empty()) return true;
    const auto is_chosen = [&](Func func) { return in_.given(algorithm_key(func)); };
    for (int f = 0; f < kFuncs; ++f)
      if (is_chosen(static_cast<Func>(f))) return true;
    return in_.given("collectives.groups");
  }

  // PyTorch's experts are computed by FLOPs (profiles/device/compute.h).
  bool is_idle_without_kernels(std::string_view path) const {
    const bool by_kernels = spec_.model && computes_by_kernels(spec_);
    if (path == "parallel.optimizer_implementation" ||
        path == "parallel.gradient_accumulation_fusion")
      return !by_kernels;
    if (path == "parallel.blocking_wait")
      return !by_kernels || spec_.device.kernels.host_us == 0 || spec_.parallel.tp == 1;
    if (path != "parallel.compile" && path != "parallel.gradient_as_bucket_view") return false;
    return !by_kernels || spec_.model->transformer->experts.count > 0;
  }

  // Whether the job's method of compression has no use for the key.
  bool is_idle_to_method(std::string_view path) const {
    const bool shares = path == "compression.ratio",
               gathers = path.starts_with("compression.gather_");
    if (!shares && !gathers) return false;
    for (const Compressor* method : spec_.collectives.own->compressors())
      if (method->name == in_.text("compression.method"))
        return shares ? !method->kept : method->exchange != Func::all_gather;
    return false;
  }

  // Without a second order only Horovod's requests are left of the cost, and one value has them.
  bool is_idle_to_ssgd(const Setting& setting) const {
    return setting.key->path == "parallel.kfac_cost" && setting.text != "rtx2080ti" &&
           in_.text("parallel.variant") == "ssgd";
  }

  bool plays_program() const { return is_given("program") || is_given("trace"); }

  // False also for keys that `in_` lacks: load_cluster_job() has none of the training.
  bool is_given(std::string_view path) const {
    return std::any_of(in_.all().begin(), in_.all().end(), [&](const Setting& setting) {
      return setting.key->path == path && setting.given;
    });
  }

  // Keys that only planners read. Keys that also decide the peak FLOPs (the device and the
  // products' type) are not among them.
  static bool is_of_plan(std::string_view path) {
    return path.starts_with("parallel.") || path == "model" || path == "background" ||
           (path.starts_with("precision.") && path != "precision.parameters");
  }

  const Settings& in_;
  const JobSpec& spec_;
  const std::set<std::string_view>& schemes_;
  Notes notes_;
};

using Calls = std::array<bool, kFuncs>;  // by function: whether it is called

// The calls of a job's collectives, by kind of group.
std::map<std::string, Calls> calls_of(const Workload& workload, std::size_t job) {
  std::vector<Calls> calls(workload.group_names.size());
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream.distinct()) {
          if (op.kind == Op::Kind::collective)
            calls[op.group][static_cast<std::size_t>(op.func)] = true;
          else if (op.kind == Op::Kind::send || op.kind == Op::Kind::recv)
            calls[op.group][static_cast<std::size_t>(Func::send_recv)] = true;
        }
  std::map<std::string, Calls> named;
  for (std::uint16_t kind = 0; kind < calls.size(); ++kind)
    if (job_of_kind(workload, kind) == job && !is_service(workload, kind))
      named[own_name(workload, kind)] = calls[kind];
  return named;
}

// The algorithms that a job names for calls that it never makes.
Notes unused_algorithms(const CollectiveSpec& spec, const std::map<std::string, Calls>& calls) {
  Notes unused;
  const std::string reason = ", as the job makes no such call";
  for (std::size_t f = 0; f < kFuncs; ++f) {
    const auto func = static_cast<Func>(f);
    const bool called =
        std::any_of(calls.begin(), calls.end(), [&](const auto& kind) { return kind.second[f]; });
    if (!called && spec.algorithm(func) != "auto") unused.add(reason, algorithm_key(func));
  }
  for (const auto& [group, named] : spec.groups) {
    const auto kind = calls.find(group);
    if (kind == calls.end()) continue;  // the engine refuses such a job
    for (const auto& [func, algorithm] : named)
      if (algorithm != "auto" && !kind->second[static_cast<std::size_t>(func)])
        unused.add(reason, "collectives.groups." + group + "." + std::string(name_of(func)));
  }
  return unused;
}

// Says which numbers of a captured model's job are measured, computed and assumed.
std::vector<std::string> captured_notes(const JobSpec& spec) {
  const Model& model = *spec.model;
  const CaptureFacts& facts = *model.capture;
  const int ranks = spec.cluster.gpus();
  const auto captured = static_cast<int>(model.recorded.size());
  const bool steps = plays_recorded_steps(spec);
  std::vector<std::string> out{
      "measured: " +
      (steps ? "delays of " + std::to_string(captured) + " of " + std::to_string(ranks) +
                   " ranks in " + std::to_string(model.recorded.front().size()) + " steps"
             : std::string("medians of delays, which every rank has in every step")) +
      (spec.parallel.framework == Framework::ddp ? ", and DDP's buckets" : "") +
      ", by a capture (" + facts.backend + ", torch " + facts.torch +
      "); what was fitted to captures, the profile's first lines say"};
  if (steps && captured < ranks)
    out.push_back("assumed: the other " + std::to_string(ranks - captured) +
                  " ranks compute as those, with their steps shifted");
  out.emplace_back(
      "arithmetic: the calls' messages, by the library's schedules; their times are those of the "
      "network that the job describes");
  return out;
}

// Says what MFU counts where that is more than the kernels compute (docs/accuracy.md).
std::string note_on_flops(const Model& model) {
  constexpr double kWorthANote = 0.1;
  const double share = masked_flops(model) / std::max(1.0, model.forward_flops());
  if (share <= kWorthANote) return {};
  return "model FLOPs and MFU count all of attention's scores; the half that the causal mask "
         "leaves out is " +
         std::to_string(std::lround(100 * share)) + " % of them";
}

}  // namespace

std::set<std::string_view> named_schemes(const CollectiveSpec& spec) {
  std::set<std::string_view> names;
  const auto add = [&](Func func, const std::string& group) {
    const Algorithm* row = spec.row(func, group);
    if (row && row->ends) names.insert(row->name);
  };
  for (int f = 0; f < kFuncs; ++f) {
    add(static_cast<Func>(f), "");
    for (const auto& [group, named] : spec.groups) add(static_cast<Func>(f), group);
  }
  return names;
}

std::vector<std::string> idle_keys(const Settings& in, const JobSpec& spec,
                                   const std::set<std::string_view>& schemes) {
  return Search(in, spec, schemes).run();
}

std::vector<std::string> notes_of(const JobSpec& spec, const Workload& workload) {
  std::vector<std::string> notes = spec.notes;
  for (std::size_t job = 0; job < jobs_of(workload); ++job) {
    const Notes unused = unused_algorithms(spec.of_job(job).collectives, calls_of(workload, job));
    const std::string of = workload.jobs.empty() ? "" : "job " + workload.jobs[job].name + ": ";
    for (const std::string& note : unused.lines()) notes.push_back(of + note);
    const JobSpec& own = spec.of_job(job);
    if (!own.model) continue;
    if (own.model->capture)
      for (const std::string& note : captured_notes(own)) notes.push_back(of + note);
    else if (const std::string note = note_on_flops(*own.model); !note.empty() && !own.program)
      notes.push_back(of + note);
    if (own.model->measured && !own.program && own.sources.contains("device"))
      notes.push_back(of + "the model's times are measured: device changes none of them");
  }
  return notes;
}

}  // namespace ghostrank
