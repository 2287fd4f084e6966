// The end of a segment: process 0 collects what all processes counted, and all get the summary.
#include <algorithm>
#include <thread>
#include <utility>

#include "emulator/common/blob.h"
#include "emulator/common/log.h"
#include "emulator/player.h"
#include "emulator/published.h"
#include "emulator/result/figures.h"
#include "profiles/median.h"

namespace ghostrank {
namespace {

constexpr std::size_t kPieceBytes = 4u << 20;
static_assert(2 * kPieceBytes < kMaxFrameBytes);
constexpr std::chrono::seconds kReportPatience{1};  // after a stop
constexpr std::chrono::milliseconds kAwaitLook{2};

}  // namespace

void Player::send(const SegmentReport& mine) {
  const std::string blob = mine.to_blob();
  const std::string kind = BlobWriter().put(Published::report).bytes();
  for (std::size_t at = 0; at < blob.size(); at += kPieceBytes)
    control_.publish(kind + blob.substr(at, kPieceBytes));
  control_.publish(kind);
}

// After a stop there are no more barriers: process 0 waits for the reports for a while.
void Player::await_reports() {
  const auto all_came = [&] {
    take_published();
    return std::all_of(arriving_.begin() + 1, arriving_.end(),
                       [](const Arriving& one) { return one.whole; });
  };
  const auto until = std::chrono::steady_clock::now() + kReportPatience;
  while (!all_came() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(kAwaitLook);
}

// Process 0 parses the reports of the other processes. `whole`: all have come.
void Player::read_reports(bool whole) {
  for (std::size_t h = 1; h < arriving_.size(); ++h) {
    const Arriving came = std::exchange(arriving_[h], {});
    std::optional<SegmentReport> report;
    if (whole || came.whole) report = SegmentReport::from_blob(came.pieces);
    if (!report || !report->could_be_of({rows().size(), cluster_.nics(), cluster_.parties()})) {
      missing_.insert(Host(h));
      if (whole) control_.fail(malformed_from(Host(h), "report"));
      continue;
    }
    report->host.index = Host(h);
    log_debug("process ", h, " reports ", report->events, " events, ", report->messages,
              " messages");
    reports_.push_back(*std::move(report));
  }
}

double Player::seconds_of_calls(const SegmentReport& sum, Func func) const {
  double all = 0;
  for (std::size_t i = 0; i < sum.rows.size(); ++i)
    if (rows()[i].func == func) all += sum.rows[i].total.seconds();
  return all;
}

// Gives process 0's summary to all, so that all draw the same conclusion from a warm-up. False: the
// run was stopped.
bool Player::share(SegmentSummary& sum) {
  BlobWriter mine;
  if (host_ == Host(0)) mine.put(sum);
  const std::vector<std::string> all = control_.all_gather(mine.bytes());
  if (all.empty()) return false;
  BlobReader r(all[0]);
  r.get(sum);
  if (!r.complete()) control_.fail(malformed_from(Host(0), "summary"));
  return r.complete();
}

// If one ledger outgrew memory, every shard writes all its rows to its file. `together`: all
// processes wait until all files are complete.
void Player::complete_spills(bool together) {
  for (auto& shard : shards_) {
    shard->ledger().spill_rest();
    if (const std::string& why = shard->ledger().failure(); !why.empty()) control_.fail(why);
  }
  if (together) control_.all_gather({});
}

// Process 0 collects all reports; the others get the summary only, because reports may be large and
// processes many.
SegmentReport Player::gather(SegmentReport mine) {
  const bool alone = control_.world().size == 1;
  if (host_ != Host(0) && control_.stop() != Stop::machine) send(mine);
  bool whole = alone ? control_.stop() == Stop::none : !control_.all_gather({}).empty();
  reports_.clear();
  reports_.push_back(std::move(mine));
  if (host_ == Host(0)) {
    take_published();
    if (!whole && segment_.measured) await_reports();
    read_reports(whole);
  }
  log_info("segment ", segment_.number, " ends: ", reports_.size(), " of ", control_.world().size,
           " reports are here");
  SegmentReport sum;
  for (SegmentReport& r : reports_) sum.merge(r);
  sum.median_seconds = median(first_job().steps);
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    if (segment_.job != kEveryJob && segment_.job != static_cast<int>(job)) continue;  // it rests
    const JobSums& own = jobs_[job];
    sum.median_error = std::max(sum.median_error, median_error(own.steps, own.late));
    if (!own.steps.empty()) sum.median_seconds = std::min(sum.median_seconds, median(own.steps));
  }
  if (chooser_) sum.call_seconds = seconds_of_calls(sum, chooser_->exchange());
  if (watch_ && whole)
    for (const Gap& gap : common_gaps(sum.gaps, stall_threshold(spec_, segment_.dilation)))
      report_stall(gap);
  sum.stalls = stalls_.size();
  if (!alone && whole) whole = share(sum);
  if (sum.spilled > 0) {
    log_warn("the counts of ", sum.spilled, " engine threads outgrew memory and go to files");
    complete_spills(!alone && whole);
    if (control_.stop() != Stop::none) sum.in_files = Spilled::some;
  }
  return sum;
}

}  // namespace ghostrank
