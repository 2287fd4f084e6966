// Keys of a job: what is trained, on which device, in which types.
#include <array>

#include "profiles/load/keys/tables.h"

namespace ghostrank::job_tables {
namespace {

constexpr std::array kKeys{
    Key{"schema", KeyType::choice, kJobSchema, "form of the file", 0, 0, kJobSchema},
    Key{"model", KeyType::profile, kAbsent,
        "what is trained: a name in profiles/models, a path (.yaml, .csv) or a mapping"},
    Key{"program", KeyType::any, kAbsent,
        "programs as `ghostrank plan --programs` writes them, or the path of such a file, played "
        "as they are: model, device, precision and parallel then only say where they came from"},
    Key{"trace", KeyType::any, kAbsent,
        "trace of a real run, played in place of model and parallel: a file, a folder or a pattern "
        "(run/*.et), a list of them, or {files, format, ranks}; also what `ghostrank profile "
        "import` wrote"},
    Key{"device", KeyType::profile, kAbsent,
        "GPU that computes: a name in profiles/devices, a path or a mapping; not needed for "
        "measured layers"},

    Key{"jobs", KeyType::any, kAbsent,
        "several jobs on this cluster and fabric, in place of model, trace or program: "
        "[{name: a, file: a.yaml, nodes: 0-7}, ...]"},

    Key{"precision.parameters", KeyType::choice, "fp32",
        "type of weights, hidden states and matrix products; fp8: linear layers multiply in fp8, "
        "all else is bf16 (megatron); without it that of a measured model",
        0, 0, "fp32 float32 bf16 bfloat16 fp16 float16 int32 fp8"},
    Key{"precision.fp8_recipe", KeyType::choice, "delayed",
        "how scales of fp8 tensors are found: delayed: from largest elements of earlier passes, "
        "which ranks reduce after every pass; tensorwise: from the tensor's own (--fp8-recipe)",
        0, 0, "delayed tensorwise", "blockwise mxfp8"}
        .where("precision.parameters", "fp8"),
    Key{"precision.tp_only_amax_red", KeyType::boolean, "false",
        "largest elements are reduced among tp and cp ranks alone, so that replicas have scales of "
        "their own"}
        .where("precision.parameters", "fp8")
        .where("precision.fp8_recipe", "delayed"),
    Key{"precision.gradients", KeyType::choice, "auto",
        "type in which gradients are reduced; auto: that of a measured model; else that of the "
        "parameters with zero1, zero2, zero3, and fp32 with other frameworks",
        0, 0, "auto fp32 float32 bf16 bfloat16 fp16 float16 int32", "fp8"},
    Key{"precision.optimizer", KeyType::choice, "adam",
        "decides the bytes that the optimizer moves through memory", 0, 0, "adam sgd"}};

}  // namespace

std::span<const Key> job() { return kKeys; }

}  // namespace ghostrank::job_tables
