// The keys of jobs that describe tensors, and the tensors that the planners' collectives name.
#include "profiles/planners/tensors.h"

#include <map>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "profiles/load/load.h"
#include "profiles/model/model.h"
#include "profiles/planners/plan.h"
#include "tests/profiles/support.h"

namespace ghostrank {
namespace {

std::string job(const std::string& parallel, const std::string& more = "") {
  return "schema: ghostrank/job/1\nmodel: {base: gpt2, layers: 4}\ndevice: h100-sxm\n"
         "precision: {parameters: bf16}\n"
         "cluster: {nodes: 2, gpus_per_node: 4, nics_per_node: 2}\nparallel: {" +
         parallel + "}\n" + more;
}

// The error of planning a job, without the job's folder.
std::string plan_error(const std::string& text) {
  const std::string error = test::error_of([&] { plan_workload(test::load_text(text).spec); });
  return error.empty() ? error : error.substr(error.find("job.yaml"));
}

class EveryPlanner : public testing::TestWithParam<const char*> {};

TEST_P(EveryPlanner, NamesATensorWhereverGradientsAreSummedUp) {
  const Workload workload = plan_workload(test::load_text(job(GetParam())).spec);
  for (const Role& role : workload.roles) {
    std::map<std::uint16_t, std::multiset<std::uint32_t>> named;  // by kind of group
    for (const OpList& stream : role.iterations.back().streams)
      for (const Op& op : stream) {
        if (op.kind == Op::Kind::collective && op.func == Func::reduce_scatter &&
            !workload.group_names[op.group].starts_with("tp")) {
          EXPECT_NE(op.tensor, 0u) << workload.group_names[op.group];
        }
        if (op.tensor == 0) continue;
        EXPECT_EQ(op.kind, Op::Kind::collective);
        EXPECT_TRUE(reduces(op.func));
        named[op.group].insert(op.tensor);
      }
    EXPECT_FALSE(named.empty()) << role.name;
    for (const auto& [kind, numbers] : named)
      EXPECT_EQ(numbers.size(), std::set(numbers.begin(), numbers.end()).size())
          << workload.group_names[kind];
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, EveryPlanner,
                         testing::Values("framework: ddp", "framework: ddp, launch: flat",
                                         "framework: horovod", "framework: dear",
                                         "framework: dear, decouple: reduce", "framework: wfbp",
                                         "framework: mgwfbp", "framework: bytescheduler",
                                         "framework: fsdp", "framework: fsdp, dp_replicate: 2",
                                         "framework: torchtitan", "framework: zero1",
                                         "framework: zero2, use_multi_rank_bucket_allreduce: false",
                                         "framework: zero3", "framework: megatron, tp: 2",
                                         "framework: megatron, pp: 2, global_batch: 8, "
                                         "distributed_optimizer: true"));

TEST(Tensors, OfDdpAreItsBucketsWhichHoldEveryParameter) {
  const LoadedJob loaded = test::load_text(job("framework: ddp"));
  const Workload workload = plan_workload(loaded.spec);
  for (const Program& program : workload.roles[0].iterations) {
    std::uint64_t elements = 0;
    for (const Op& op : program.streams[1])
      if (op.tensor != 0) elements += op.count;
    EXPECT_EQ(elements, loaded.spec.model->parameters());
  }
}

TEST(Tensors, AreDenseUnlessTheJobSaysOtherwise) {
  EXPECT_FALSE(test::load_text(job("framework: ddp")).spec.tensors.has_value());
  const std::string dense = "tensors: {density: 1, block: 64, overlap: random}\n";
  EXPECT_FALSE(test::load_text(job("framework: ddp", dense)).spec.tensors.has_value());
  const LoadedJob sparse =
      test::load_text(job("framework: ddp", "tensors: {density: 0.1, block: 64, overlap: all}\n"));
  EXPECT_EQ(sparse.spec.tensors, (Sparsity{0.1, 64, Overlap::all}));
  EXPECT_EQ(plan_error(job("framework: ddp", "tensors: {density: 0.1}\n")), "");
}

TEST(Tensors, ThatCannotBeAreRefusedWithWhatCan) {
  EXPECT_EQ(test::load_error(job("framework: ddp", "tensors: {density: 1.5}\n")),
            "job.yaml:7:20: tensors.density is '1.5'; write a number from 0 to 1");
  EXPECT_EQ(plan_error(job("framework: ddp", "tensors: {density: 0.2, overlap: none}\n")),
            "job.yaml:7:20: tensors.overlap is none, but at density 0.2 the blocks of 8 ranks do "
            "not all differ; set tensors.density to at most 0.125, or tensors.overlap to random or "
            "all");
  EXPECT_EQ(plan_error(job("framework: ddp", "tensors: {overlap: none}\n")),
            "job.yaml: tensors.overlap is none, but at density 1 the blocks of 8 ranks do not all "
            "differ; set tensors.density to at most 0.125, or tensors.overlap to random or all");
}

TEST(Tensors, MayBecomeSparserFromIterationToIteration) {
  const JobSpec spec =
      test::load_text(job("framework: ddp", "tensors: {density: 1, last_density: 0.01}\n")).spec;
  EXPECT_EQ(spec.tensors, (Sparsity{1, 256, Overlap::random}));
  EXPECT_EQ(spec.last_density, 0.01);
  EXPECT_EQ(plan_error(job("framework: ddp", "tensors: {last_density: 0.01, block: 64}\n")), "");
  EXPECT_EQ(test::load_error(job("framework: ddp", "tensors: {density: 0, last_density: 0.1}\n")),
            "job.yaml:7:37: tensors.last_density: from a density of 0 no factor leads to it; set "
            "tensors.density above 0");
  EXPECT_EQ(plan_error(job("framework: ddp",
                           "tensors: {density: 0.1, last_density: 0.2, overlap: none}\n")),
            "job.yaml:7:20: tensors.overlap is none, but at density 0.2 the blocks of 8 ranks do "
            "not all differ; set tensors.density to at most 0.125, or tensors.overlap to random or "
            "all");
}

constexpr const char* kByHand = R"(schema: ghostrank/job/1
cluster: {nodes: 1, gpus_per_node: 2}
tensors: {density: 0.5}
program:
  ranks: 2
  groups: {dp: [0-1]}
  roles:
    - name: all
      ranks: 0-1
      iterations:
        - compute: |
            allreduce dp float32 1024~3 gradients
            reduce dp float32 1024@1~4
)";

std::string plan_by_hand(const std::string& from, const std::string& to) {
  std::string text = kByHand;
  return plan_error(text.replace(text.find(from), from.size(), to));
}

TEST(Tensors, AreNamedByProgramsWrittenByHand) {
  const Workload workload = plan_workload(test::load_text(kByHand).spec);
  const OpList& ops = workload.roles[0].iterations[0].streams[0];
  EXPECT_EQ(ops[0].tensor, 3u);
  EXPECT_EQ(ops[1].tensor, 4u);
  EXPECT_EQ(ops[1].peer, 1);
  EXPECT_EQ(plan_by_hand("1024~3", "1024~0"), "job.yaml:12:20: tensors are numbered from 1 on");
  EXPECT_EQ(plan_by_hand("1024@1~4", "1024@1~four"),
            "job.yaml:13:20: 'four' stands where a tensor is expected; write a number up to "
            "16777216");
  EXPECT_EQ(plan_by_hand(" reduce dp", " scatter dp"),
            "job.yaml:13:20: scatter sums up nothing, so it names no tensor; leave out ~");
  EXPECT_EQ(plan_by_hand(" reduce dp", " broadcast dp"),
            "job.yaml:5:3: role all, group dp: a call of broadcast names tensor 4, which is not "
            "compressed; list it under compressed, or leave out ~");
  EXPECT_EQ(plan_by_hand("~3 gradients\n            reduce dp float32 1024@1~4", ""),
            "job.yaml:3:20: no collective of this job names a tensor whose density could be set; "
            "leave tensors out, or name some in the program, as in  allreduce dp float32 1000~1");
}

TEST(Tensors, OverlapAsAFileSays) {
  const auto read = [](const std::string& text) {
    const auto source = std::make_shared<Source>(Source{"o.yaml", "o.yaml", true});
    return measured_overlaps(parse_yaml(text, source), 64).all;
  };
  const auto error = [&](const std::string& text) { return test::error_of([&] { read(text); }); };
  const Sparsity sparsity = read("schema: ghostrank/overlap/1\nshares: [0.5, 0.3, 0.2]\n");
  EXPECT_DOUBLE_EQ(sparsity.density, 0.35);
  EXPECT_DOUBLE_EQ(sparsity.union_density(2), 0.5);
  EXPECT_EQ(error("shares: [0.5, 0.6]\n"), "o.yaml:1:9: the shares sum to 1.1; they must sum to 1");
  EXPECT_EQ(error("shares: [0.5, half]\n"),
            "o.yaml:1:15: 'half' is no share; write a number from 0 to 1");
  EXPECT_EQ(error("shares: [0.5, 0.5%]\n"),
            "o.yaml:1:15: '0.5%' is no share; write a number from 0 to 1");
  EXPECT_EQ(error("shares: [1, 0]\nranks: 1\n"),
            "o.yaml:2:1: 'ranks' has no place in a file of measured overlaps; it has shares, and "
            "may have schema: ghostrank/overlap/1 and tensors");
  EXPECT_NE(error("shares: 1\n").find("as in  shares: [0.6, 0.2, 0.2]"), std::string::npos);
}

// The rules make the attention's gradients zero and the layers' other gradients dense; embeddings
// follow the file's own shares.
TEST(Tensors, OverlapByTensorAsAFileSays) {
  const test::Folder folder;
  const auto with = [&](const std::string& framework, const std::string& tensors) {
    const std::string file =
        folder.write("o.yaml", "shares: [0.5, 0, 0, 0, 0, 0, 0, 0, 0.5]\n" + tensors);
    return job(framework, "tensors: {overlap: '" + file + "'}\n");
  };
  const std::string rules =
      "tensors:\n  '*.attn.*': [1, 0, 0, 0, 0, 0, 0, 0, 0]\n  'h.*': [0, 0, 0, 0, 0, 0, 0, 0, 1]\n";
  const JobSpec spec = test::load_text(with("framework: ddp", rules)).spec;
  const Workload workload = plan_workload(spec);
  std::uint64_t attention = 0, in_layers = 0, zero = 0, nonzero = 0;
  for (const Layer& layer : spec.model->layers)
    for (const ParameterTensor& tensor : layer.parameters) {
      if (!layer.name.starts_with("h.")) continue;
      (tensor.name.starts_with("attn.") ? attention : in_layers) += tensor.numel;
    }
  for (const TensorPart& part : workload.layouts.back()->parts) {
    const double density = part.sparsity.density;
    EXPECT_TRUE(density == 0 || density == 1) << density;
    (density == 0 ? zero : nonzero) += part.end - part.first;
  }
  EXPECT_GT(attention, 0u);
  EXPECT_EQ(zero, attention);
  EXPECT_EQ(nonzero, in_layers);

  const auto refusal = [&](const std::string& framework, const std::string& tensors) {
    return test::error_of(
        [&] { plan_workload(test::load_text(with("framework: " + framework, tensors)).spec); });
  };
  EXPECT_NE(refusal("ddp", "tensors: {'h.9999.*': [0, 0, 0, 0, 0, 0, 0, 0, 1]}\n")
                .find("tensors.overlap: 'h.9999.*' gives no tensor of 'gpt2' an overlap"),
            std::string::npos);
  EXPECT_NE(refusal("horovod", rules)
                .find("overlaps by tensor are for framework: ddp without compression"),
            std::string::npos);
  EXPECT_NE(refusal("ddp", "tensors: {'h.*': [0.5, 0.5]}\n")
                .find("o.yaml:2:18: 'h.*' has shares of 1 ranks and the file of 8"),
            std::string::npos);
  EXPECT_NE(refusal("ddp", "tensors: []\n").find("o.yaml:2:10: tensors is"), std::string::npos);
}

const char* const kTables = R"(schema: ghostrank/job/1
model: {base: dlrm-criteo, tables: [1000, 50000, 3], lookups: [1, 20, 1]}
device: h100-sxm
cluster: {nodes: 2, gpus_per_node: 2, nics_per_node: 2}
parallel: {framework: ddp, micro_batch: 64}
tensors: {embeddings: zipf, zipf_exponent: 1.1}
)";

// DDP's buckets hold parameters in reverse order of registration, so the tables come last.
TEST(Tensors, HaveTheTablesOfTheModelWhereDdpPutsThem) {
  const Workload workload = plan_workload(test::load_text(kTables).spec);
  std::vector<std::uint64_t> rows;
  std::uint64_t buckets = 0, in_tables = 0;
  for (std::size_t t = 1; t + 1 < workload.layouts.size(); ++t) {
    ++buckets;
    if (!workload.layouts[t]) continue;
    for (const ZipfTable& table : workload.layouts[t]->tables) {
      rows.push_back(table.rows);
      in_tables += table.rows * table.width;
      EXPECT_EQ(table.width, 128u);
      EXPECT_EQ(table.exponent, 1.1);
      EXPECT_EQ(table.ids, table.rows == 50'000 ? 20 * 64 : 64);
    }
  }
  EXPECT_EQ(rows, (std::vector<std::uint64_t>{3, 50'000, 1000}));
  EXPECT_EQ(in_tables, 51'003u * 128);
  // The first iteration has one bucket, which ends with the tables.
  const TensorLayout& all = *workload.layouts.back();
  ASSERT_EQ(all.tables.size(), 3u);
  std::uint64_t numel = 0;
  for (const Op& op : workload.roles[0].iterations[0].streams[1])
    if (op.tensor == buckets + 1) numel = op.count;
  EXPECT_EQ(all.tables.back().first + 1000 * 128, numel);
}

TEST(Tensors, OfWordTablesAreSparseUnlessTheHeadSharesThem) {
  const std::string tied = job("framework: ddp", "tensors: {embeddings: zipf}\n");
  EXPECT_NE(plan_error(tied).find("tied_embeddings: false"), std::string::npos);
  std::string own = tied;
  const std::string layers = "layers: 4";
  own.replace(own.find(layers), layers.size(), "layers: 4, tied_embeddings: false");
  const Workload workload = plan_workload(test::load_text(own).spec);
  ASSERT_FALSE(workload.layouts.empty());
  ASSERT_EQ(workload.layouts.back()->tables.size(), 1u);
  EXPECT_EQ(workload.layouts.back()->tables[0].rows, 50'257u);
}

}  // namespace
}  // namespace ghostrank
