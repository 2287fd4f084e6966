// Random small jobs. See random_job.h.
#include "tests/emulator/jobs/random_job.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <sstream>

#include "collectives/compress/byteps.h"
#include "collectives/node_links.h"
#include "collectives/routing.h"
#include "collectives/schemes/keyed/piece_compression.h"
#include "profiles/input/yaml.h"
#include "profiles/job/nic_rates.h"
#include "profiles/model/model.h"
#include "profiles/planners/compression/compression.h"
#include "profiles/planners/compression/piece_sizes.h"
#include "profiles/planners/plan.h"
#include "tests/emulator/jobs/integers.h"
#include "tests/emulator/plugins.h"
#include "tests/one_of.h"

namespace ghostrank::testing {
namespace {

using test::one_of;

constexpr std::string_view kSchemes[]{"test/at-server",
                                      "mine/sparse-server",
                                      "switchml",
                                      "sharp",
                                      "atp",
                                      "parameter_server",
                                      "byteps",
                                      "phub",
                                      "omnireduce",
                                      "omnireduce_switch",
                                      "sparse_all_gather",
                                      "sparcml"};

// Sums all-reduces at servers, colocated or on their own nodes, or in switches.
void add_agents(std::mt19937& random, std::string_view scheme, SmallJob& job) {
  JobSpec& spec = job.spec;
  spec.collectives.own = load_plugins({GHOSTRANK_AGENTS_PLUGIN, GHOSTRANK_SPARSE_PLUGIN});
  const std::string_view drawn = kSchemes[random() % std::size(kSchemes)];
  spec.collectives.algorithm(Func::all_reduce) = scheme.empty() ? drawn : scheme;
  spec.collectives.at_servers = {.big_array = 5000, .chunk_bytes = 4096};
  spec.collectives.at_servers.partition_bytes = one_of(random, {4096, 100'000});
  spec.collectives.at_servers.credit_bytes = one_of(random, {0, 5'000, 100'000'000});
  spec.collectives.at_servers.bound = random() % 2 == 0;
  spec.collectives.at_servers.schedules = random() % 2 == 0;
  // A long timeout, so that nothing is retransmitted.
  spec.collectives.in_switch = {one_of(random, {4, 64}), one_of(random, {32, 256}),
                                kPicosPerSecond};
  if (spec.collectives.algorithm(Func::all_reduce) == "atp")  // which needs no slot for a packet
    spec.collectives.in_switch.memory_slots = one_of(random, {3, 64, 8192});
  const bool packets = random() % 2 == 0;
  spec.collectives.omnireduce = {one_of(random, {16, 256}), packets ? 1 : one_of(random, {1, 4}),
                                 one_of(random, {1, 16}), packets, kPicosPerSecond};
  spec.cluster.servers.count = one_of(random, {1, 2});
  if (spec.collectives.algorithm(Func::all_reduce) == "phub" && random() % 2 == 0)
    spec.collectives.algorithm(Func::all_reduce) = "phub_racks";
  spec.cluster.servers.colocated = random() % 2 == 0;
  spec.cluster.servers.nic = {one_of(random, {0.0, 1e10}), 2 * kPicosPerMicro};
  spec.collectives.at_servers.optimizer = {one_of(random, {0.1F, 0.5F}), 0.5F};
  if (spec.cluster.nics_per_node > 1 && !spec.cluster.servers.colocated && random() % 2 == 0)
    spec.cluster.servers.nics = 2, spec.collectives.at_servers.rack_nics = 1;
}

bool shares_switches(std::string_view scheme) {
  return scheme == "switchml" || scheme == "sharp" || scheme == "atp" ||
         scheme.starts_with("omnireduce");
}

// A stream of its own sums a tensor in groups of half of the ranks each, which share switches and
// servers with the group of all: neighbours, or every other rank.
void add_halves(std::mt19937& random, SmallJob& job) {
  Workload& workload = job.workload;
  workload.group_names.emplace_back("half");
  const bool neighbours = random() % 2 == 0;
  std::vector<WorldRank> halves[2];
  for (int r = 0; r < workload.ranks; ++r)
    halves[neighbours ? r * 2 / workload.ranks : r % 2].emplace_back(r);
  for (std::vector<WorldRank>& members : halves) workload.groups.push_back({1, std::move(members)});
  Op op;
  op.kind = Op::Kind::collective;
  op.func = Func::all_reduce;
  op.group = 1;
  op.dtype = DataType::int32;
  op.count = one_of<std::uint64_t>(random, {1, 3000, 40'000});
  job.program().stream_names.emplace_back("halves");
  job.program().streams.push_back(OpList{op});
}

// Compresses pieces at BytePS's roots and servers, if all tensors are float32.
void add_piece_compression(std::mt19937& random, JobSpec& spec, const Workload& workload) {
  for (const Role& role : workload.roles)
    for (const Program& program : role.iterations)
      for (const OpList& stream : program.streams)
        for (const Op& op : stream)
          if (op.kind == Op::Kind::collective && op.tensor != 0 && op.dtype != DataType::float32)
            return;
  std::vector<const Compressor*> methods;
  for (const Compressor& method : compressors())
    if (method.rounds == 1 && !method.majority) methods.push_back(&byteps_form(method));
  PieceCompression how{methods[random() % methods.size()],
                       {},
                       one_of(random, {Memory::none, Memory::residual, Memory::nesterov}),
                       one_of<std::uint64_t>(random, {0, 10'000})};
  how.options.ratio = 0.05;
  how.time = [](std::uint64_t elements) {
    return CodecTime{static_cast<Picoseconds>(elements) * 100, kPicosPerMicro};
  };
  const auto sizes = std::make_shared<PieceSizes>(how, spec.gradients.laws.front(),
                                                  spec.cluster.nodes, 1, spec.run.seed);
  how.expected = [sizes](std::uint64_t elements) { return sizes->of(elements); };
  spec.collectives.at_servers.compression = std::make_shared<const PieceCompression>(how);
}

// For virtual time alone: a real network has its own links.
void add_links(std::mt19937& random, ClusterSpec& cluster) {
  TopologySpec& spec = cluster.topology;
  using Kind = TopologySpec::Kind;
  spec.kind =
      one_of(random, {Kind::leaf_spine, Kind::rail_optimised, Kind::torus, Kind::dragonfly});
  if (spec.kind == Kind::torus) spec.dimensions = {one_of(random, {2, 3}), 2};
  spec.spines = one_of(random, {0, 1, 3});
  spec.oversubscription = one_of(random, {1, 3});
  spec.routing = &routings()[random() % routings().size()];
}

// Laws of gradients that drift.
GradientLaws random_laws(std::mt19937& random) {
  GradientLaw law;
  law.kind = one_of(random, {GradientLaw::Kind::laplace, GradientLaw::Kind::gamma});
  law.shape = law.kind == GradientLaw::Kind::gamma ? 0.5 : 1;
  law.drift = {one_of(random, {1.0, 0.8}), law.has_shape() ? 1.1 : 1.0, one_of(random, {3u, 100u})};
  return {{law}};
}

// The sparsity of the tensors that all-reduces name.
Sparsity random_sparsity(std::mt19937& random, int ranks) {
  const Sparsity drawn{one_of(random, {0.01, 0.1, 0.5}),
                       one_of(random, {std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{256}}),
                       one_of(random, {Overlap::random, Overlap::all, Overlap::none})};
  return drawn.refuses(ranks).empty() ? drawn : Sparsity{drawn.density, drawn.block};
}

// Parts of tensor 5, which are as sparse as each says; one of them has a single element.
void add_parts(std::mt19937& random, Workload& workload, const Sparsity& whole, int ranks) {
  auto layout = std::make_shared<TensorLayout>();
  for (const auto& [first, end] : {std::pair{100, 2000}, {2000, 2001}, {3000, 5000}}) {
    Sparsity own = random_sparsity(random, ranks);
    own.block = whole.block;
    layout->parts.push_back(
        {static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(end), std::move(own)});
  }
  workload.layouts.resize(6);
  workload.layouts[5] = std::move(layout);
}

// Traffic beside planned steps, drawn apart from the rest of the job.
std::vector<Background> random_background(unsigned seed, int nodes) {
  using Pattern = Background::Pattern;
  std::mt19937 random(seed + 1000);
  std::vector<Background> list;
  for (const Pattern pattern : {Pattern::incast, Pattern::permutation, Pattern::bisection}) {
    if (random() % 3 > 0 || (pattern == Pattern::bisection && nodes % 2 != 0)) continue;
    Background& one = list.emplace_back();
    one.pattern = pattern;
    one.every = one_of(random, {1, 2, 3});
    one.over = one_of(random, {1, one.every});
    one.bytes = one_of<std::uint64_t>(random, {1, 1000, 150'001});
    one.chunk = one_of<std::uint64_t>(random, {64 << 10, 4 << 20});
    one.rate_bps = one_of(random, {0.0, 1e10});
    one.blocking = random() % 2 == 0;
    if (pattern != Pattern::incast) continue;
    one.fan_in = one_of(random, {0, 1, nodes - 1});
    one.at_once = one_of(random, {1, 3});
  }
  return list;
}

// In place of single calls, the steps of a random model whose communication is scheduled under
// compute.
void plan_steps(std::mt19937& random, SmallJob& job) {
  auto model = std::make_shared<Model>();
  model->measured = true;
  for (int layers = one_of(random, {1, 2, 5}); layers > 0; --layers) {
    Layer layer;
    layer.name = "layer" + std::to_string(layers);
    for (const char* name : {"w", "b"})
      layer.parameters.push_back({name, one_of<std::uint64_t>(random, {1, 1000, 30'000})});
    layer.forward = one_of(random, {0, 10, 100}) * kPicosPerMicro;
    layer.backward = one_of(random, {0, 20, 200}) * kPicosPerMicro;
    model->layers.push_back(std::move(layer));
  }
  ParallelPlan& parallel = job.spec.parallel;
  parallel.framework =
      one_of(random, {Framework::dear, Framework::dear, Framework::wfbp, Framework::mgwfbp,
                      Framework::bytescheduler, Framework::byteps, Framework::phub});
  if (plays_at_servers(parallel.framework)) {
    job.spec.collectives.algorithm(Func::all_reduce) = std::string(name_of(parallel.framework));
    job.spec.cluster.servers.count = one_of(random, {1, 2});
  }
  parallel.fusion =
      one_of(random, {Fusion::size, Fusion::layers, Fusion::waiting_time, Fusion::none});
  parallel.threshold_mb = one_of(random, {0.01, 0.1, 25.0});
  parallel.nearby_layers = 2;
  parallel.wait_ms = 0.1;
  parallel.decouple_reduce = random() % 3 == 0;
  parallel.partition_bytes = one_of(random, {4096, 100'000});
  parallel.credit_bytes = one_of(random, {0, 10'000, 1'000'000});
  if (parallel.framework == Framework::bytescheduler && random() % 2 == 0) {
    parallel.launch = Launch::after_backward;
    parallel.cycle_ms = one_of(random, {0.01, 0.5});
  }
  if (job.spec.collectives.library == "gloo")  // which has none
    job.spec.collectives.algorithm(Func::reduce_scatter) = "generic/auto";
  job.spec.model = std::move(model);
  job.workload = plan_workload(job.spec);
}

// Steps of K-FAC on small linear maps.
void plan_second_order(std::mt19937& random, SmallJob& job) {
  auto model = std::make_shared<Model>();
  for (int layers = one_of(random, {1, 2, 5}); layers > 0; --layers) {
    const auto rows = one_of<std::uint64_t>(random, {1, 7, 60});
    model->layers.push_back({"layer" + std::to_string(layers),
                             {{"weight", rows * one_of<std::uint64_t>(random, {3, 40}), rows}},
                             1e6,
                             0,
                             0});
    if (random() % 2 == 0) model->layers.back().parameters.push_back({"bias", rows});
  }
  JobSpec& spec = job.spec;
  spec.device.peak_tflops = {{"float32", 1}};
  spec.device.memory_GBps = 100;
  spec.parallel.framework = Framework::kfac;
  KfacPlan& kfac = spec.parallel.kfac;
  kfac.variant =
      one_of(random, {KfacVariant::ssgd, KfacVariant::d, KfacVariant::mpd, KfacVariant::spd,
                      KfacVariant::spd, KfacVariant::pad, KfacVariant::dp});
  if (kfac.variant == KfacVariant::spd) kfac.local_below = one_of(random, {0, 20, 1024});
  kfac.factor_every = one_of(random, {1, 1, 2});
  kfac.inverse_every = one_of(random, {1, 3});
  spec.model = std::move(model);
  job.workload = plan_workload(spec);
}

// Steps of a small transformer under PyTorch, computed kernel by kernel.
void plan_kernels(std::mt19937& random, SmallJob& job) {
  const std::string architecture = one_of<const char*>(random, {"gpt2", "llama"});
  JobSpec& spec = job.spec;
  spec.model = std::make_shared<const Model>(make_model(
      parse_yaml("{kind: transformer, architecture: " + architecture +
                     ", layers: 2, hidden: 64, heads: 4, ffn: 128, sequence: 16, vocabulary: 160}",
                 std::make_shared<Source>(Source{"model", "model", true}))));
  spec.device.multiprocessors = 8;
  spec.device.memory_GBps = 100;
  spec.device.peak_tflops = {{"bfloat16", 10}, {"tfloat32", 5}};
  spec.device.kernels.host_us = one_of(random, {0, 2});
  spec.precision.parameters = one_of(random, {DataType::bfloat16, DataType::float32});
  spec.precision.gradients = DataType::float32;
  ParallelPlan& parallel = spec.parallel;
  parallel.framework = one_of(random, {Framework::ddp, Framework::ddp, Framework::horovod,
                                       Framework::fsdp, Framework::zero1});
  // Its controller's bits are int64, which no switch adds.
  if (parallel.framework == Framework::horovod &&
      shares_switches(spec.collectives.algorithm(Func::all_reduce)))
    spec.collectives.groups["controller"][Func::all_reduce] = "generic/auto";
  parallel.compiled = random() % 2 == 0;
  parallel.foreach_optimizer = random() % 2 == 0;
  parallel.bucket_views = random() % 2 == 0;
  parallel.bucket_cap_mb = 0.1;
  parallel.launch = one_of(random, {Launch::overlap, Launch::after_backward, Launch::flat});
  if (spec.collectives.library == "gloo")  // which has none
    spec.collectives.algorithm(Func::reduce_scatter) = "generic/auto";
  job.workload = plan_workload(spec);
}

// Every rank sends to the next one while it receives from the one before, once or in a body that is
// repeated: the computes of all repetitions may have ended before the first send.
void add_shift(std::mt19937& random, SmallJob& job) {
  Program& program = job.program();
  program.stream_names.resize(2, "send");
  program.streams.resize(2);
  OpList& own = program.streams[0];
  const auto times = one_of<std::size_t>(random, {1, 3});
  Op op;
  op.func = Func::send_recv;
  op.dtype = one_of(random, {DataType::uint8, DataType::float32});
  op.count = one_of<std::uint64_t>(random, {0, 1000, 300'000});
  op.within = one_of(random, {Op::Within::group, Op::Within::pair, Op::Within::unknown});
  Op event;
  event.event = program.events++;
  event.kind = Op::Kind::wait;
  op.kind = Op::Kind::send;
  op.peer = 1;
  program.streams[1] = {event, op};
  program.streams[1].repeat(0, times);
  event.kind = Op::Kind::record;
  const std::size_t begin = own.size();
  job.compute(10 * kPicosPerMicro);
  own.push_back(event);
  own.repeat(begin, times);
  op.kind = Op::Kind::recv;
  op.peer = -1;
  for (std::size_t i = 0; i < times; ++i) own.push_back(op);
}

// The collectives of the compute stream start together, after all else there.
void launch_collectives(Workload& workload) {
  OpList& stream = workload.roles[0].iterations[0].streams[0];
  OpList ops;
  std::vector<Op> calls;
  for (const Op& op : stream)
    if (op.kind == Op::Kind::collective)
      calls.push_back(op);
    else
      ops.push_back(op);
  make_launch(calls, workload.launches);
  for (const Op& call : calls) ops.push_back(call);
  stream = std::move(ops);
}

// Another library plays one collective.
void mix_libraries(std::mt19937& random, CollectiveSpec& collectives) {
  const Func func = one_of(random, {Func::all_reduce, Func::all_gather, Func::broadcast});
  if (func == Func::all_reduce && collectives.algorithm(func) != "auto") return;  // agents
  const std::string library =
      one_of<const char*>(random, {"generic", "nccl-2.28", "gloo", "openmpi-4.1"});
  if (find_algorithm(library, func, "auto")) collectives.algorithm(func) = library + "/auto";
}

// Blink in place of the library's own choice, on nodes whose GPUs have links or are all alike;
// drawn apart from the rest of the job.
void add_blink(unsigned seed, JobSpec& spec) {
  std::mt19937 random(seed + 2000);
  if (random() % 4 > 0) return;
  for (const Func func : {Func::all_reduce, Func::broadcast})
    if (spec.collectives.algorithm(func) == "auto") spec.collectives.algorithm(func) = "blink";
  // NCCL's search would lay its rings out by them.
  if (spec.collectives.library == "nccl-2.28" || random() % 3 == 0) return;
  NodeLinks links = unlinked("random", spec.cluster.gpus_per_node);
  for (int a = 0; a < links.gpus; ++a)
    for (int b = 0; b < a; ++b)
      if (random() % 3 > 0) links.connect(a, b, one_of(random, {1e10, 2e11, 4e11}));
  spec.cluster.links = std::make_shared<const NodeLinks>(std::move(links));
}

}  // namespace

bool sums_in_switch(const JobSpec& spec) {
  const std::string& scheme = spec.collectives.algorithm(Func::all_reduce);
  return shares_switches(scheme) && scheme != "omnireduce";
}

void add_rates(std::mt19937& random, ClusterSpec& cluster, double slowest) {
  if (cluster.nic.rate_bps == 0) return;
  std::vector<RateCurve> curves;
  for (int c = 0; c < 2; ++c) {
    std::vector<RateCurve::Change> changes;
    for (int i = 0; i < 50; ++i)
      changes.push_back({i * one_of(random, {10, 1000}) * kPicosPerMicro,
                         8e12 / cluster.nic.rate_bps * one_of(random, {1.0, 1.5, slowest})});
    std::sort(changes.begin(), changes.end(),
              [](const auto& a, const auto& b) { return a.from < b.from; });
    curves.emplace_back(std::move(changes));
  }
  VectorBy<Nic, std::uint32_t> curve_of(cluster.rank_nodes() * cluster.nics_per_node);
  for (const Nic nic : curve_of.keys())
    curve_of[nic] = one_of<std::uint32_t>(random, {0, 1, NicRates::kConstant});
  cluster.nic_rates = std::make_shared<const NicRates>(std::move(curves), std::move(curve_of));
}

std::span<const std::string_view> random_schemes() { return kSchemes; }

RandomJob random_job(unsigned seed, std::string_view scheme) {
  std::mt19937 random(seed);
  const int nodes = one_of(random, {2, 3, 4, 6}), gpus = one_of(random, {1, 2, 4});
  SmallJob job(nodes, gpus, FabricKind::ofi);
  JobSpec& spec = job.spec;
  spec.cluster.nic.rate_bps = one_of(random, {0.0, 1e9, 1e10, 1e11});
  spec.cluster.nic.latency = one_of(random, {0, 1, 5, 50}) * kPicosPerMicro;
  spec.collectives.library =
      one_of<const char*>(random, {"generic", "nccl-2.28", "gloo", "openmpi-4.1"});
  if (spec.collectives.library == "generic") {
    spec.collectives.slice_bytes = one_of(random, {0, 4 << 10, 64 << 10});
    spec.collectives.credits = one_of(random, {0, 1, 4});
  }
  if (random() % 4 == 0 || !scheme.empty()) add_agents(random, scheme, job);
  const std::string& summed_by = spec.collectives.algorithm(Func::all_reduce);
  const bool integers = summed_by == "omnireduce_switch";  // whose switch adds nothing else
  if (random() % 3 == 0) mix_libraries(random, spec.collectives);
  if (random() % 3 == 0) spec.tensors = random_sparsity(random, nodes * gpus);
  if (random() % 4 == 0) spec.fabric.framing = {1448, 90, 0};
  spec.fabric.provider = one_of<const char*>(random, {"net", "net", "tcp;ofi_rxm"});
  spec.fabric.inside_node = InsideNode::messages;
  spec.dilation = one_of(random, {1, 10, 30});
  spec.run.verify = true;
  spec.run.shards = one_of(random, {1, 1, 2});
  spec.run.iterations = 8;
  // PHub's servers step weights by gradients, not by payloads.
  const bool compressed = random() % 3 == 0 && !summed_by.starts_with("phub") && !integers;
  std::uint64_t drawn = 0;
  for (int ops = 1 + static_cast<int>(random() % 4); ops > 0; --ops) {
    // Some calls have the size of the one before, and may have another type.
    if (drawn == 0 || random() % 3 > 0) drawn = one_of(random, {1, 1000, 30'000, 65'536, 200'003});
    // Verification makes every rank compress the tensors of all ranks: keep them small.
    const std::uint64_t count = compressed ? std::min<std::uint64_t>(drawn, 5'000) : drawn;
    const Func func =
        one_of(random, {Func::all_reduce, Func::all_reduce, Func::all_gather, Func::broadcast});
    const auto root = static_cast<GroupRank>(random() % static_cast<unsigned>(nodes * gpus));
    job.compute(one_of(random, {10, 100, 1000}) * kPicosPerMicro)
        .collective(
            func, func == Func::all_gather ? count / 8 + 1 : count,
            compressed ? DataType::float32
                       : one_of(random, {DataType::int32, DataType::float32, DataType::bfloat16}),
            func == Func::broadcast ? root : 0,
            func == Func::all_reduce ? static_cast<std::uint32_t>(ops) : 0,
            func == Func::all_reduce
                ? one_of(random, {Reduction::sum, Reduction::sum, Reduction::avg, Reduction::max})
                : Reduction::sum);
  }
  if (random() % 3 == 0) add_shift(random, job);
  if (random() % 2 == 0) add_links(random, spec.cluster);
  if (spec.tensors) job.collective(Func::all_reduce, 5000, DataType::float32, 0, 5);
  if (compressed) {
    // Other libraries do not gather payloads whose sizes the data decide.
    const bool gathers_v = spec.collectives.library == "generic";
    std::vector<const Compressor*> methods;
    for (const Compressor& method : compressors())
      if (gathers_v || !method.measure) methods.push_back(&method);
    CompressionOptions options;
    options.ratio = 0.05;
    spec.compression = CompressionSpec{methods[random() % methods.size()], options};
    if (random() % 2 == 0) spec.gradients = random_laws(random);
    compress(spec, job.workload);
  } else if (random() % 2 == 0 && !integers) {
    spec.background = random_background(seed, nodes);
    one_of(random, {plan_second_order, plan_steps, plan_kernels})(random, job);
  }
  const int processes = std::min(nodes, one_of(random, {2, 3}));
  if (spec.tensors && !spec.compression && !spec.model && random() % 2 == 0)
    add_parts(random, job.workload, *spec.tensors, nodes * gpus);
  if (!spec.compression && !spec.model && random() % 2 == 0) launch_collectives(job.workload);
  if (spec.collectives.algorithm(Func::all_reduce) == "byteps" && !spec.training &&
      !spec.compression && random() % 2 == 0)
    add_piece_compression(random, spec, job.workload);
  if (integers) reduce_integers(job.program());
  if (shares_switches(summed_by) && !spec.compression && !spec.model && nodes * gpus >= 4 &&
      random() % 2 == 0)
    add_halves(random, job);
  if (random() % 2 == 0) add_rates(random, spec.cluster, 3);
  if (random() % 4 == 0) spec.collectives.algorithm(Func::broadcast) = "unicast";
  add_blink(seed, spec);
  return {std::move(job), processes};
}

JobNumbers asked_jobs(unsigned otherwise) {
  const auto asked = [](const char* name, unsigned none) {
    const char* text = std::getenv(name);
    return text ? static_cast<unsigned>(std::atoi(text)) : none;
  };
  const unsigned first = asked("GHOSTRANK_RANDOM_FIRST", 0);
  return {first, first + asked("GHOSTRANK_RANDOM_JOBS", otherwise)};
}

std::string name_of(const RandomJob& random) {
  const JobSpec& spec = random.job.spec;
  std::ostringstream name;
  name << spec.collectives.library << ", all-reduce "
       << spec.collectives.algorithm(Func::all_reduce) << ", " << spec.cluster.nodes << " x "
       << spec.cluster.gpus_per_node << " ranks, NICs of " << spec.cluster.nic.rate_bps
       << " b/s, dilation " << spec.dilation << ", "
       << (spec.cluster.nic_rates ? "rates that change, " : "")
       << (spec.cluster.links ? "links between GPUs, " : "") << (spec.tensors ? "sparse, " : "")
       << (spec.model ? std::string(name_of(spec.parallel.framework)) + ", " : "")
       << (spec.background.empty() ? "" : "background, ")
       << (spec.compression ? std::string(spec.compression->method->name) + ", " : "")
       << (random.job.workload.launches.empty() ? "" : "one launch, ") << random.processes
       << " processes of " << spec.run.shards << " shards, " << spec.fabric.provider;
  return name.str();
}

}  // namespace ghostrank::testing
