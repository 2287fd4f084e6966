// Keys of a job: what is in gradients, how they are compressed, what a verified run learns.
#include <array>

#include "profiles/load/keys/tables.h"

namespace ghostrank::job_tables {
namespace {

// Methods of compression whose payload's size follows from the data.
constexpr std::string_view kDecidedByData =
    "threshold dgc adaq redsync gaussian_ksgd sidco-e sidco-p sidco-gp inceptionn dithering";

constexpr std::array kKeys{
    Key{"tensors.density", KeyType::number, "1",
        "share of a gradient's blocks that are not zero, on every rank: of B blocks, round(density "
        "* B), drawn for every step from run.seed; schemes may leave out the others, and "
        "run.verify sums up real data like that",
        0, 1},
    Key{"tensors.last_density", KeyType::number, "0",
        "density of the last iteration: from tensors.density in the first (warm-up included) it "
        "changes by the same factor in every iteration; 0: it stays",
        0, 1},
    Key{"tensors.block", KeyType::integer, "256", "elements of such a block", 1, 1e12}.unless(
        "tensors.density", "1"),
    Key{"tensors.overlap", KeyType::string, "random",
        "how the blocks of ranks coincide: random: each draws its own; all: they are the same; "
        "none: no two ranks have the same one; or the path of a file of measured overlaps, of all "
        "or by tensor, from which the density follows"}
        .unless("tensors.density", "1"),
    Key{"tensors.distribution", KeyType::any, "laplace",
        "distribution of the gradients' values, for methods of compression that send what the "
        "data decide: laplace, gaussian, gamma SHAPE, pareto SHAPE, or measured FILE, a CSV file "
        "of magnitude,count or magnitude,count,tensor; or rules by tensor, of which the first that "
        "matches counts: [{tensors: '*.bias', law: gaussian}, {law: gamma 0.5, scale: 0.01, drift: "
        "{shape: 1.01}}]",
        0, 0, "LAW"}
        .where("compression.method", kDecidedByData),
    Key{"tensors.scale", KeyType::number, "0.001", "their mean magnitude (not of measured)", 1e-30,
        1e30}
        .where("compression.method", kDecidedByData),
    Key{"tensors.drift", KeyType::any, "{}",
        "how the distribution moves: in iteration i (warm-up included) the scale and the shape are "
        "those given times these factors to the power of i, or of `until` after that iteration, as "
        "in {scale: 0.98, shape: 1.01, until: 100}"}
        .where("compression.method", kDecidedByData),
    Key{"tensors.embeddings", KeyType::choice, "dense",
        "gradients of embedding tables: dense, as all others; or zipf: only rows whose ids a rank "
        "has drawn from Zipf's law in the step are not zero, row 0 being the most frequent",
        0, 0, "dense zipf"}
        .of("ddp"),
    Key{"tensors.zipf_exponent", KeyType::number, "1",
        "row k has a share of the ids in proportion to (k + 1) to the power of minus this", 0, 10}
        .where("tensors.embeddings", "zipf"),
    Key{"compression.method", KeyType::string, "none",
        "how gradients are compressed before ranks exchange them: none, a method of "
        "docs/compression.md (fp16, topk, randomk, qsgd, powersgd, dgc, sidco-e, ...), or a "
        "plugin's; ddp, horovod, wfbp, mgwfbp; byteps: by roots and servers"},
    Key{"compression.ratio", KeyType::number, "0.01",
        "share of a tensor's elements that is sent, by methods that leave out some", 1e-9, 1}
        .unless("compression.method", "none")
        .where("compression.budget_ms", "0"),
    Key{"compression.budget_ms", KeyType::number, "0",
        "ratios follow the network, in place of compression.ratio: step by step a controller "
        "chooses that of every tensor, so that exchanges end so long after the last gradients; 0: "
        "they do not (topk, randomk)",
        0, 1e6}
        .of("ddp")
        .unless("compression.method", "none"),
    Key{"compression.least_ratio", KeyType::number, "1e-04",
        "ratio that the controller always sends", 1e-9, 1}
        .unless("compression.budget_ms", "0"),
    Key{"compression.most_ratio", KeyType::number, "0.5", "ratio that it never exceeds", 1e-9, 1}
        .unless("compression.budget_ms", "0"),
    Key{"compression.communicator", KeyType::choice, "auto",
        "how payloads are exchanged: added up; gathered; broadcast by one rank after the other; or "
        "part by part, whose sums are compressed again; auto: as the method demands",
        0, 0, "auto all_reduce all_gather broadcast all_to_all"}
        .unless("compression.method", "none"),
    Key{"compression.quantum", KeyType::integer, "64",
        "levels above 0 (dithering: BytePS's k; at most 31 of partition natural)", 1, 32767}
        .where("compression.method", "qsgd dithering"),
    Key{"compression.partition", KeyType::choice, "linear",
        "levels of equal distances, or powers of two", 0, 0, "linear natural"}
        .where("compression.method", "dithering"),
    Key{"compression.normalize", KeyType::choice, "max",
        "the highest level: the largest magnitude, or the L2 norm", 0, 0, "max l2"}
        .where("compression.method", "dithering"),
    Key{"compression.threshold", KeyType::number, "0.01", "magnitudes above it are sent", 1e-30,
        1e30}
        .where("compression.method", "threshold"),
    Key{"compression.rank", KeyType::integer, "1", "rank of the approximation", 1, 1024}.where(
        "compression.method", "powersgd"),
    Key{"compression.quantiles", KeyType::integer, "64", "buckets of equal counts", 2, 65536}.where(
        "compression.method", "sketch"),
    Key{"compression.error_bound", KeyType::number, "2e-10", "decides how many bits exponents get",
        1e-30, 0.1}
        .where("compression.method", "inceptionn"),
    Key{"compression.stages", KeyType::auto_integer, "auto",
        "fits of the threshold; auto: as many as the ratio asks for", 1, 64}
        .where("compression.method", "sidco-e sidco-p sidco-gp"),
    Key{"compression.costs", KeyType::string, "v100",
        "how long compressing and decompressing take: v100: as fitted to a V100, or bounded from "
        "below; a measured table by its name in profiles/costs; or the path of a CSV file as "
        "`ghostrank calibrate compression --csv FILE` writes it"}
        .unless("compression.method", "none"),
    Key{"compression.gather_us", KeyType::number, "0",
        "what the host adds to each gathering of payloads, as by staging them in its memory", 0,
        1e9}
        .unless("compression.method", "none"),
    Key{"compression.gather_ns", KeyType::number, "0",
        "likewise, to each byte that a rank receives", 0, 1e6}
        .unless("compression.method", "none"),
    Key{"compression.memory", KeyType::choice, "none",
        "what ranks keep of gradients that were not sent, and add to the next; nesterov: with "
        "momentum; efsignsgd and powersgd with the methods of that name, dgc with methods that "
        "send values; byteps: none, residual or nesterov, and servers keep what they did not send",
        0, 0, "none residual efsignsgd dgc powersgd nesterov"}
        .unless("compression.method", "none"),
    Key{"compression.min_bytes", KeyType::integer, "65536",
        "BYTEPS_MIN_COMPRESS_BYTES: smaller tensors travel as they are", 0, kMaxSize}
        .of("byteps")
        .unless("compression.method", "none"),
    Key{"compression.merge", KeyType::choice, "bucket",
        "what is one tensor to a method: a bucket of ddp's, a fused buffer of horovod's, "
        "a call of wfbp's or mgwfbp's; every parameter tensor (ddp, horovod); all gradients (ddp); "
        "powersgd: every matrix of a bucket, in common calls, as PyTorch's powerSGD_hook (ddp)",
        0, 0, "bucket tensor model matrices"}
        .unless("compression.method", "none"),

    Key{"training.task", KeyType::choice, "none",
        "what the ranks of a verified run learn: nothing; or a logistic regression with a weight "
        "for each gradient of the job, on data drawn from run.seed: the result has its loss after "
        "every iteration; ddp, horovod, wfbp, mgwfbp",
        0, 0, "none logistic"},
    Key{"training.samples", KeyType::integer, "32", "of each rank", 1, 1000000}.where(
        "training.task", "logistic"),
    Key{"training.rate", KeyType::number, "0.3", "by which the mean gradient moves the weights", 0,
        1000}
        .where("training.task", "logistic"),
    Key{"training.vote", KeyType::number, "0.02",
        "by which the sign moves them that most ranks voted for", 0, 1000}
        .where("training.task", "logistic")
        .where("compression.method", "signsgd signum")};

}  // namespace

std::span<const Key> gradients() { return kKeys; }

}  // namespace ghostrank::job_tables
