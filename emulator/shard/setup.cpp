// Before and after a segment. See shard.h.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "emulator/common/log.h"
#include "emulator/host/cores.h"
#include "emulator/network/link_rates.h"
#include "emulator/shard/inline.h"
#include "emulator/shard/on_the_way/packet_connections.h"
#include "emulator/shard/ranks/ahead.h"
#include "emulator/shard/ranks/slow_ranks.h"

namespace ghostrank {
namespace {

constexpr Picoseconds kBeforeAll = std::numeric_limits<Picoseconds>::min() / 2;
constexpr int kBinsPerHop = 8;                    // of events in virtual time
constexpr std::size_t kScratchBytes = 256 << 10;  // copies stay in the cache

}  // namespace

Shard::Shard(const Setup& setup)
    : spec_(setup.spec),
      workload_(setup.workload),
      cluster_(setup.cluster),
      host_(setup.host),
      index_(setup.index),
      flows_(setup.flows),
      cpus_(setup.cpus),
      fabric_(setup.fabric),
      packets_(setup.packets),
      switch_packets_(setup.switch_packets),
      states_(setup.states),
      nonce_(setup.nonce),
      nic_(setup.cluster.topology().own()),
      intra_(LinkSpeed::from_rate(setup.spec.cluster.intra_node.rate_bps,
                                  setup.spec.cluster.intra_node.latency)),
      gpu_links_(setup.spec.cluster),
      rates_(setup.spec.cluster.nic_rates.get()),
      virtual_(setup.spec.fabric.kind == FabricKind::virtual_time),
      copy_payload_(setup.spec.fabric.payload == PayloadMode::copied),
      reanchor_(!virtual_ && setup.spec.fabric.colocated == Colocated::memory),
      wired_(!setup.flows.of(setup.host, setup.index).empty() || setup.switch_packets),
      model_nodes_(setup.spec.fabric.inside_node == InsideNode::model),
      runs_ahead_(may_run_ahead(setup.spec, setup.workload, setup.cluster)),
      recorder_(setup.recorder),
      slice_(setup.cluster.is_slice()),
      schedules_(setup.spec, setup.workload, setup.cluster),
      node_calls_(setup.spec, setup.workload, schedules_),
      agents_(
          setup.cluster, setup.cluster.ranks_of(setup.host, setup.index),
          setup.cluster.helpers_of(setup.host, setup.index),
          server_machine(setup.spec.cluster.servers, setup.spec.cluster.rank_nodes()),
          setup.spec.fabric.packets.mtu,
          setup.packets ? setup.packets->most_bytes() : setup.spec.fabric.packets.mtu - kUdpAndIp,
          setup.spec.network_switch, *this),
      misfortune_(setup.spec.fabric.packets, setup.spec.run.seed,
                  std::max(setup.spec.collectives.in_switch.slots,
                           setup.spec.collectives.omnireduce.slots)),
      // Virtual runs must be repeatable, so ties break by rank.
      timers_(virtual_ ? TimerQueue<Event>(TimerQueue<Event>::Ties::by_rank,
                                           cluster_.topology().lookahead() / kBinsPerHop)
                       : TimerQueue<Event>(TimerQueue<Event>::Ties::as_they_come)),
      ready_(setup.cluster.ranks_of(setup.host, setup.index).size()),
      flowlets_(setup.spec.cluster.topology.flowlet_gap),
      meetings_(setup.workload.groups.size()),
      ledger_(1'000'000, setup.spill_path),
      link_times_(setup.link_times),
      spans_(setup.max_spans),
      spin_(virtual_ ? std::chrono::nanoseconds(0)
                     : awake_before_sleep(cluster_.hosts() * cluster_.shards())) {
  const std::vector<WorldRank>& mine = cluster_.ranks_of(host_, index_);
  const std::vector<WorldParty>& helpers = cluster_.helpers_of(host_, index_);
  players_ = mine.size();
  ranks_.resize(mine.size() + helpers.size());
  for (std::size_t i = 0; i < helpers.size(); ++i) {
    RankState& r = ranks_[players_ + i];
    r.party = helpers[i];
    r.local = static_cast<std::uint32_t>(players_ + i);
  }
  for (const SchemeUse& use : cluster_.schemes()) scheme_row_.push_back(schedules_.row_of(use));
  sequences_.resize(mine.size() * workload_.group_names.size());
  VectorBy<WorldRank, bool> traced(workload_.ranks);
  for (const WorldRank rank : setup.trace_ranks) traced[rank] = true;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    RankState& r = ranks_[i];
    r.party = mine[i];
    r.local = static_cast<std::uint32_t>(i);
    r.role = &workload_.roles[workload_.role_of[mine[i]]];
    r.traced = traced[mine[i]];
  }
  if (spec_.events) {
    auto slow = std::make_unique<const SlowRanks>(*spec_.events);
    if (slow->any()) slow_ranks_ = std::move(slow);
    auto links = std::make_unique<const LinkRates>(*spec_.events, cluster_.topology());
    if (links->any()) link_rates_ = std::move(links);
  }
  nics_.resize(cluster_.nics());
  for (const RankState& r : ranks_) own_nic_.push_back(cluster_.location(r.party).nic);
  if (virtual_ && !helpers.empty() && cluster_.topology().links() == 0) find_helpers_alone();
  for (const SchemeUse& use : cluster_.schemes())
    switch_flow_.emplace_back(use.outside ? use.ends->size() : 0, -1);
  for (const SwitchEnd& end : cluster_.switch_ends(host_, index_))
    switch_flow_[end.scheme][end.position] = static_cast<int>(switch_flows_++);
  if (spec_.fabric.network == NetworkModel::flow)
    fluids_ = std::make_unique<FluidCalls>(spec_, workload_, cluster_, schedules_);
  // Ports are alike there, and it does not matter for a compute when the messages of a transfer
  // come.
  const bool ports_alone = !spec_.cluster.links && spec_.run.compute_slowdown == 0;
  if (fluids_ && model_nodes_ && ports_alone && cluster_.schemes().empty())
    node_transfers_ = std::make_unique<NodeTransfers>(workload_, cluster_, schedules_, intra_);
  if (node_transfers_ && !node_transfers_->any()) node_transfers_.reset();
  if (spec_.fabric.network == NetworkModel::packet)
    by_packets_ = std::make_unique<PacketConnections>(spec_, cluster_.topology(), nics_.size(),
                                                      link_rates_.get());
  if (copy_payload_) scratch_.resize(2 * kScratchBytes);
  lookahead_ = cluster_.shards() > 1 ? cluster_.topology().lookahead() : Windows::kNever;
  // What leaves a slice may lead to something at any shard.
  if (!slice_ && FirstSends::known(spec_, workload_, cluster_))
    first_sends_ =
        std::make_unique<FirstSends>(workload_, cluster_, host_, index_, spec_.run.jitter);
}

// Finds the helpers of this shard that have a node to themselves.
void Shard::find_helpers_alone() {
  std::map<Node, int> parties;
  for (std::int32_t p = 0; p < cluster_.parties(); ++p)
    ++parties[cluster_.location(WorldParty(p)).node];
  for (const WorldParty helper : cluster_.helpers_of(host_, index_))
    helpers_alone_.push_back(parties[cluster_.location(helper).node] == 1);
}

void Shard::prepare(const Segment& segment, ShardShared& shared) {
  segment_ = segment;
  shared_ = &shared;
  shared.players[index_] = this;
  if (!cpus_.empty()) bind_this_thread(cpus_);
  known_calls_.clear();
  if (!virtual_) play_node_calls();
  stats_ = {};
  stats_.rows.resize(schedules_.rows().size());
  ledger_.clear();
  spans_.begin();
  std::fill(nics_.begin(), nics_.end(), Port{});
  gpu_links_.clear();
  lost_turns_.begin(!virtual_ && !wired_ && cluster_.shards() > 1 ? nics_.size() : 0);
  pacing_.begin(wired_ ? nics_.size() : 0);
  outboxes_.resize(static_cast<std::size_t>(cluster_.shards()) +
                   flows_.of(host_, index_).size() * (packets_ ? 2 : 1) + switch_flows_);
  if (packets_) packets_before_ = packets_->stats();
  if (switch_packets_) switch_packets_before_ = switch_packets_->stats();
  switch_slips_.begin(cluster_.schemes().size());
  unanswered_.begin(cluster_.schemes().size());
  connections_.clear();
  note_order_.begin(cluster_.schemes().empty() ? 0 : nics_.size());
  agents_.clear(segment_.measured);
  misfortune_.begin(segment_.first);
  links_.assign(cluster_.topology().links(), {});
  links_change_ = segment_.measured && link_rates_;
  last_note_.assign(cluster_.schemes().empty() ? 0 : links_.size(), {});
  GHOSTRANK_ASSERT(ranks_.size() + links_.size() <= kMostTargets);
  if (link_times_) watch_links();
  sent_on_links_.assign(links_.empty() ? 0 : ranks_.size(), 0);
  entered_.assign(links_.empty() ? 0 : nics_.size(), {});
  in_turn_.clear();
  flowlets_.clear();
  timers_.clear();
  note_payloads_ = {};
  timers_.look_ahead(
      [](const void* shard, const Event& next, std::uint32_t second) {
        static_cast<const Shard*>(shard)->prefetch_notes(next, second);
      },
      this);
  backlogs_.begin(static_cast<std::uint32_t>(players_), helpers_alone_);
  meetings_.clear();
  if (node_transfers_) node_transfers_->clear();
  if (fluids_) fluids_->clear(segment_.at, links_change_ ? link_rates_.get() : nullptr);
  rates_wanted_ = -1;
  if (by_packets_) by_packets_->clear(segment_.at, links_change_);
  packets_due_at_ = -1;
  ranks_left_ = begin_ranks();
  if (ranks_left_ == 0) shared_->ended.fetch_add(1);
  ended_ = 0;
  now_ = virtual_ ? 0 : kBeforeAll;  // no message to the fabric is due before the start
  quiet_.begin(stall_threshold(spec_, segment_.dilation));
  of_agents_ = 0;
  got_on_at_ = window_ = 0;
  suspects_agents_ = false;
  if (slice_) begin_slice();
  for (RankState& r : ranks_) {
    r.nvlink = {};
    if (r.local >= players_) continue;
    if (r.iteration < r.stop_at) begin_iteration(r, {});
  }
  window_end_ = 0;
  busy_with_others_ = 0;
  if (first_sends_) first_sends_->begin(ranks_, players_);
  for (std::size_t i = 0; i < players_; ++i) {
    advance(ranks_[i]);
    go_on();
  }
}

void Shard::watch_links() {
  stats_.link_times = LinkTimes(links_.size());
  if (fluids_) fluids_->watch(&stats_.link_times);
  if (by_packets_) by_packets_->network().watch(&stats_.link_times);
}

// Sets which iterations each rank plays. Returns how many ranks play any: where one of several jobs
// plays alone, the ranks of the others have nothing to do.
std::uint32_t Shard::begin_ranks() {
  std::uint32_t playing = 0;
  std::vector<std::uint32_t> of_job(jobs_of(workload_));
  for (std::size_t i = 0; i < players_; ++i) {
    RankState& r = ranks_[i];
    const std::uint16_t job = r.role->job;
    r.iteration = segment_.first;
    r.stop_at = segment_.first + segment_.count_of(job);
    if (r.iteration == r.stop_at) continue;
    ++playing;
    ++of_job[job];
  }
  const Location& first = cluster_.location(cluster_.first_played());
  if (slice_ && first.host == host_ && first.shard == index_) {
    outside_ends_ = segment_.count;
    ++playing;
    ++of_job[0];
  }
  iterations_.resize(of_job.size());
  for (std::size_t job = 0; job < of_job.size(); ++job)
    iterations_[job].begin(static_cast<std::uint16_t>(job), segment_.first, segment_.count_of(job),
                           of_job[job]);
  return playing;
}

void Shard::play(const Clock& clock) {
  clock_ = clock;
  run_delay_ = std::make_unique<RunDelay>();
  const std::optional<std::int64_t> queued = run_delay_->so_far_ns();
  queued_ns_ = queued.value_or(0);
  woke_ = false;
  const HeldUp::Instant began = instant();
  held_up_.begin(began);
  looked_ns_ = began.wall_ns;
  if (virtual_) {
    run_virtual();
  } else {
    run_real();
  }
  const HeldUp::Instant end = instant();
  held_up_.rest(end);
  // Count the messages sent, after a stop, too.
  for (RankState& r : ranks_) {
    for (Flight* f : r.flights) {
      for (ActorState& a : f->actors) settle(*f, a.route);
    }
  }
  agents_.enter_counts();
  if (packets_) count_packets(*packets_, packets_before_);
  if (switch_packets_) count_packets(*switch_packets_, switch_packets_before_);
  stats_.helpers = agents_.helper_counts();
  stats_.troubles = agents_.troubles();
  for (const Link& link : links_) stats_.links.push_back(link.count());
  if (by_packets_) stats_.links = by_packets_->counts();
  if (fluids_) {
    stats_.messages += fluids_->count(ledger_, stats_.links);
    stats_.fluids = fluids_->collectives();
  }
  stats_.until = stats_.end.at;
  if (stopped() || ranks_left_ > 0) {  // links count a message, and flows a call, when it begins
    stats_.until = std::max(stats_.until, now_);
    for (const Link& link : links_) stats_.until = std::max(stats_.until, link.free_at());
    for (const LinkCount& link : stats_.links) stats_.until = std::max(stats_.until, link.busy);
  }
  stats_.paced = pacing_.paced();
  stats_.pace_error = pacing_.error();
  stats_.spans_dropped = spans_.dropped();
  stats_.gaps = quiet_.gaps();
  const auto in_seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };
  stats_.wall_seconds = in_seconds(end.wall_ns - began.wall_ns);
  stats_.cpu_seconds = in_seconds(end.cpu_ns - began.cpu_ns);
  if (virtual_)
    log_debug("shard ", index_, ": ", stats_.events, " events in ", stats_.busy_windows, " of ",
              stats_.windows, " windows, ", stats_.cpu_seconds, " s of processor time, ",
              stats_.idle_seconds, " s waiting for other shards, ", stats_.handed,
              " messages to them");
  const std::optional<std::int64_t> queued_since = run_delay_->so_far_ns();
  stats_.run_queue_seconds = queued && queued_since ? in_seconds(*queued_since - *queued) : -1;
  stats_.held_up_seconds = in_seconds(held_up_.total_ns());
  stats_.taken_seconds = in_seconds(held_up_.taken_ns());
  if (!virtual_ && players_ > 0)  // agents may serve on after the last rank has ended
    stats_.wall_behind =
        std::max<Picoseconds>(0, (ranks_left_ == 0 ? ended_ : now_) - stats_.end.at);
}

}  // namespace ghostrank
