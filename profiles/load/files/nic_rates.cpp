#include "profiles/load/files/nic_rates.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "profiles/input/csv.h"
#include "profiles/input/named_text.h"
#include "profiles/input/quantity.h"
#include "profiles/load/files/nic_names.h"

namespace ghostrank {
namespace {

constexpr double kMostSeconds = 1e6, kLeastBps = 1e3;

std::string name_of(Nic nic, const ClusterSpec& cluster) {
  return "n" + std::to_string(nic.value() / cluster.nics_per_node) + ".nic" +
         std::to_string(nic.value() % cluster.nics_per_node);
}

class RatesReader {
 public:
  RatesReader(CsvTable table, const ClusterSpec& cluster)
      : cluster_(cluster),
        table_(std::move(table)),
        servers_(cluster.rank_nodes() * cluster.nics_per_node),
        column_of_(cluster.all_nodes() * cluster.nics_per_node, NicRates::kConstant) {}

  NicRates read() {
    const std::optional<std::size_t> seconds = table_.column("seconds");
    if (!seconds)
      fail(table_.head.mark,
           "a file of rates begins with the head seconds,rate, or names NICs, as in "
           "seconds,n0,n1.nic0");
    move_to_front(*seconds);
    if (table_.rows.empty())
      fail(table_.head.mark, "there is no row; write SECONDS,RATE, as 0,10Gbps");
    for (std::size_t column = 1; column < table_.head.fields.size(); ++column) take_nics(column);
    if (std::ranges::count(table_.head.fields, "rate") > 1)
      fail(table_.head.mark, "two columns are named rate; leave one out");
    if (const auto others = table_.column("rate"))
      for (const Nic nic : column_of_.keys())
        if (nic < servers_ && column_of_[nic] == NicRates::kConstant)
          column_of_[nic] = static_cast<std::uint32_t>(*others - 1);
    std::vector<std::vector<RateCurve::Change>> curves(table_.head.fields.size() - 1);
    Picoseconds last = -1;
    for (const CsvRow& row : table_.rows) {
      const Picoseconds from = time_of(row, last);
      for (std::size_t c = 0; c < curves.size(); ++c)
        curves[c].push_back({from, 8e12 / rate_of(row, c + 1)});
      last = from;
    }
    for (const Nic nic : column_of_.keys()) check(nic, curves);
    return {{curves.begin(), curves.end()}, std::move(column_of_)};
  }

 private:
  void move_to_front(std::size_t column) {
    const auto move = [&](std::vector<std::string>& fields) {
      if (column < fields.size())
        std::rotate(fields.begin(), fields.begin() + static_cast<std::ptrdiff_t>(column),
                    fields.begin() + static_cast<std::ptrdiff_t>(column) + 1);
    };
    move(table_.head.fields);
    for (CsvRow& row : table_.rows) move(row.fields);
  }

  void take_nics(std::size_t column) {
    const std::string& name = table_.head.fields[column];
    if (name == "rate") return;
    const std::optional<NamedNics> named = nics_named(name);
    if (!named)
      fail(table_.head.mark, "the column " + quote(name) +
                                 " names no NICs; write rate, or NICs as in n0, n0-3 or n2.nic1");
    const int nics = cluster_.nics_per_node;
    if (named->last_node >= cluster_.all_nodes() || named->first_node > named->last_node ||
        named->nic.value_or(0) >= nics)
      fail(table_.head.mark, "the column " + quote(name) + ": this cluster has n0 to n" +
                                 std::to_string(cluster_.all_nodes() - 1) +
                                 ", each with nic0 to nic" + std::to_string(nics - 1));
    for (int node = named->first_node; node <= named->last_node; ++node)
      for (int n = named->nic.value_or(0); n <= named->nic.value_or(nics - 1); ++n) {
        std::uint32_t& of = column_of_[Nic(node * nics + n)];
        if (of != NicRates::kConstant)
          fail(table_.head.mark, "two columns name " + name_of(Nic(node * nics + n), cluster_) +
                                     "; leave it out of one");
        of = static_cast<std::uint32_t>(column - 1);
      }
  }

  static Picoseconds time_of(const CsvRow& row, Picoseconds last) {
    const std::optional<double> seconds = parse_number(row.fields.front());
    const double picos = seconds.value_or(-1) * 1e12;
    const auto from =
        static_cast<Picoseconds>(picos >= 0 && picos <= kMostSeconds * 1e12 ? picos + 0.5 : -1);
    if (from < 0 || (last < 0 ? from != 0 : from <= last))
      fail(row.mark, quote(row.fields.front()) +
                         " is no time of a row; seconds go upwards from 0 to at most 1e6");
    return from;
  }

  double rate_of(const CsvRow& row, std::size_t column) const {
    const double rate = column < row.fields.size() ? parse_rate(row.fields[column]).value_or(0) : 0;
    if (!(rate >= kLeastBps))
      fail(row.mark, "the row has no rate from 1Kbps for the column " +
                         quote(table_.head.fields[column]) + "; write one such as 10Gbps");
    return rate;
  }

  void check(Nic nic, const std::vector<std::vector<RateCurve::Change>>& curves) const {
    if (column_of_[nic] == NicRates::kConstant) return;
    const double most = nic < servers_ ? cluster_.nic.rate_bps : cluster_.servers.nic.rate_bps;
    for (std::size_t i = 0; i < table_.rows.size(); ++i) {
      const double bps = 8e12 / curves[column_of_[nic]][i].ps_per_byte;
      if (most > 0 && bps <= most * (1 + 1e-12)) continue;
      fail(table_.rows[i].mark,
           "a rate of " + rate_text(bps) + " for " + name_of(nic, cluster_) + ", whose own is " +
               (most > 0 ? rate_text(most) : std::string("unlimited")) + "; set " +
               (nic < servers_ ? "cluster" : "servers") + ".nic.rate to the most that it gets to");
    }
  }

  const ClusterSpec& cluster_;
  CsvTable table_;
  const Nic servers_;  // NICs of dedicated servers from here on
  VectorBy<Nic, std::uint32_t> column_of_;
};

}  // namespace

NicRates parse_nic_rates(std::string_view text, const std::string& path,
                         const ClusterSpec& cluster) {
  return RatesReader(parse_csv(text, path, "seconds,rate"), cluster).read();
}

std::shared_ptr<const NicRates> read_nic_rates(const Setting& file, const std::string& near,
                                               const ClusterSpec& cluster) {
  if (file.text.empty()) return nullptr;
  const std::optional<NamedText> rates = named_text(file.text, file.key->path, near);
  if (!rates)
    fail(file.mark, "cluster.nic.rates is " + quote(file.text) +
                        "; write the path of a CSV file of rates (there is no such file)");
  return std::make_shared<const NicRates>(parse_nic_rates(rates->text, rates->name, cluster));
}

}  // namespace ghostrank
