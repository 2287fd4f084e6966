// Keys of a job: how the job is played, and what happens beside it.
#include <array>

#include "profiles/load/keys/tables.h"

namespace ghostrank::job_tables {
namespace {

// 2^53 - 1: every JSON reader keeps integers up to it exactly.
constexpr double kMaxSeed = 9007199254740991;
constexpr double kMostUntil = 100'000;  // iterations of run.until: a result keeps so many

constexpr std::array kKeys{
    Key{"run.iterations", KeyType::integer, "5", "training steps that are measured", 1, 1e6},
    Key{"run.warmup", KeyType::integer, "1", "training steps before the measured ones", 0, 1e6},
    Key{"run.min_seconds", KeyType::number, "0",
        "wall seconds that the measured steps last at least, as far as the warm-up tells: where "
        "run.iterations are over sooner, more are played, up to 100,000",
        0, 1e6}
        .on("memory ofi packets"),
    Key{"run.verify", KeyType::boolean, "false", "give ranks real data and check every sum"},
    Key{"run.seed", KeyType::integer, "1", "seed of all random draws", 0, kMaxSeed},
    Key{"run.jitter", KeyType::number, "0",
        "relative standard deviation of compute delays: each is multiplied by a lognormal draw of "
        "mean 1 and this deviation, from run.seed, the same on every fabric",
        0, 1},
    Key{"run.compute_slowdown", KeyType::number, "0",
        "by how much a compute is longer if it begins while a collective, a send or a receive of "
        "its rank is in flight and uses the GPU, too: 0.1 is a tenth",
        0, 10},
    Key{"run.stall_timeout_s", KeyType::number, "60",
        "end the run when nothing moves for so long; on fabric virtual, when only schemes repeat "
        "themselves for so long, of emulated time",
        0.001, 1e6},
    Key{"run.shards", KeyType::auto_integer, "auto",
        "engine threads of a process; auto: memory: one for every core, at most four; else one", 1,
        256},
    Key{"run.probe_ms", KeyType::integer, "200",
        "how long to load the fabric before the start to see what it carries; 0: not at all, and "
        "then several hosts need scale.dilation",
        0, 60000}
        .on("ofi packets"),
    Key{"run.duration", KeyType::string, kAbsent,
        "how long the measured steps last, as 90s, 30m, 24h or 7d: wall time, on fabric virtual "
        "emulated; at least run.iterations are played"},
    Key{"run.until.ci95_percent", KeyType::number, "0",
        "measure until the 95 % interval of the mean step (step_time.ci95) reaches at most so many "
        "percent of the mean to either side; 0: play run.iterations",
        0, 100},
    Key{"run.until.min_iterations", KeyType::integer, "30",
        "the fewest iterations; run.iterations, if those are more", 2, kMostUntil}
        .unless("run.until.ci95_percent", "0"),
    Key{"run.until.max_seconds", KeyType::number, "600",
        "wall seconds of the measured iterations after which they end all the same; looked at once "
        "the fewest are played",
        0.001, 1e7}
        .unless("run.until.ci95_percent", "0"),

    Key{"events", KeyType::any, "[]",
        "what happens at given times of the measured iterations: marks, ranks that compute more "
        "slowly, links that fail or slow down, processes that die"},
    Key{"background", KeyType::any, "[]",
        "traffic beside the training's: checkpoints and data, between the GPUs and storage nodes, "
        "or patterns among the GPUs; beside jobs: patterns among the nodes that no job has"},
    Key{"variants", KeyType::any, "{}",
        "what `ghostrank compare` plays of the job if no flag names variants: {NAME: 'key=value "
        "...'}; other verbs take the job as it is"},
    Key{"safety.max_rate_per_nic", KeyType::string, "none",
        "the most that a process sends from an interface of its machine, as 10Gbps, whatever is "
        "emulated; headers of frames count, what TCP sends again does not"}
        .on("ofi packets")};

}  // namespace

std::span<const Key> run() { return kKeys; }

}  // namespace ghostrank::job_tables
