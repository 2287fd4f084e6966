#include "profiles/capture/scales.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "profiles/capture/edit.h"
#include "profiles/capture/profile_text.h"
#include "profiles/input/quantity.h"
#include "profiles/median.h"
#include "profiles/model/model.h"

namespace ghostrank {
namespace {

constexpr double kSignificant = 2;   // standard errors
constexpr double kOtherNetwork = 2;  // rates that differ by more are not of one network

// A capture's delays by column of recorded_ns, in nanoseconds, over all ranks and steps.
struct Scale {
  YamlValue description;
  Model model;
  std::vector<std::vector<double>> columns;
  std::size_t steps = 0;
  double ranks() const { return model.capture->ranks; }
};

Scale scale_of(YamlValue description) {
  Scale out;
  YamlValue bare = description;
  std::erase_if(bare.children, [](const YamlValue& child) { return child.key == "schema"; });
  out.model = make_model(bare);
  if (!out.model.capture || out.model.recorded.empty())
    fail(description.mark,
         "there are no recorded steps in it; several files are fitted where 'profile capture' "
         "wrote them");
  if (out.model.capture->step.empty())
    fail(
        description.mark,
        "there are no times of its steps (step_ns), as of a profile that was rescaled; a fit needs "
        "captures of real runs");
  out.steps = out.model.recorded.front().size();
  for (const YamlValue& rank : description.find("recorded_ns")->children)
    for (const YamlValue& step : rank.children) {
      out.columns.resize(step.children.size());
      for (std::size_t c = 0; c < step.children.size(); ++c)
        out.columns[c].push_back(static_cast<double>(*parse_integer(step.children[c].text)));
    }
  out.description = std::move(description);
  return out;
}

void check_same_script(const Scale& one, const Scale& other) {
  const auto refuse = [&](const std::string& what) {
    fail(other.description.mark,
         "it has other " + what + " than the capture before; give captures of one script");
  };
  const Model &a = one.model, &b = other.model;
  const auto sizes = [](const Model& model) {
    std::vector<std::vector<std::uint64_t>> out;
    for (const Layer& layer : model.layers) {
      out.emplace_back();
      for (const auto& parameter : layer.parameters) out.back().push_back(parameter.numel);
    }
    return out;
  };
  if (sizes(a) != sizes(b)) refuse("layers");
  if (a.buckets != b.buckets) refuse("buckets");
  if (a.find_unused != b.find_unused) refuse("find_unused_parameters");
  if (a.dtype != b.dtype) refuse("types of gradients");
  if (a.running_statistics != b.running_statistics || a.batch_counters != b.batch_counters)
    refuse("buffers");
  if (a.capture->backend != b.capture->backend) refuse("process groups");
  if (a.capture->torch != b.capture->torch) refuse("versions of PyTorch");
}

// Seconds per bit; 0: unlimited.
double per_bit(const Scale& scale) {
  const double rate = scale.model.capture->nic_rate_bps;
  return rate > 0 ? 1 / rate : 0;
}

double latency(const Scale& scale) { return static_cast<double>(scale.model.capture->nic_latency); }

void check_networks(const std::vector<Scale>& scales) {
  const auto [least, most] =
      std::minmax_element(scales.begin(), scales.end(),
                          [](const Scale& a, const Scale& b) { return per_bit(a) < per_bit(b); });
  if (per_bit(*least) == 0 && per_bit(*most) > 0)
    fail(least->description.mark,
         "its all-reduces passed no network, as of a capture of one process or with --ranks; give "
         "captures over one network");
  if (per_bit(*most) > kOtherNetwork * per_bit(*least))
    fail(most->description.mark,
         "its network is more than twice as slow as that of the capture "
         "with " +
             std::to_string(least->model.capture->ranks) +
             " ranks; give captures over one network");
}

template <class Of>
double fit_of(const std::vector<Scale>& scales, int ranks, const Of& of) {
  std::vector<ScalePoint> points;
  for (const Scale& one : scales) points.push_back({one.ranks(), of(one), 0});
  return fit_scale(points, ranks).value;
}

std::string millis(double nanos) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g ms", nanos * 1e-6);
  return text;
}

void put_network(YamlValue& capture, const std::vector<Scale>& scales, int ranks,
                 std::vector<std::string>& comments) {
  const double bit = fit_of(scales, ranks, per_bit);
  if (bit <= 0)
    fail(capture.mark,
         "the more ranks a capture has the faster is its network, so that the fit has "
         "no rate for " +
             std::to_string(ranks) + "; capture nearer to that number");
  const std::string rate = measured_rate_text(1 / bit);
  const std::string one_way = micros_text(std::max(0.0, fit_of(scales, ranks, latency)) /
                                          static_cast<double>(kPicosPerNano));
  put_scalar(capture, "nic_rate", rate);
  put_scalar(capture, "nic_latency_us", one_way);
  comments.push_back("fitted: the network, " + rate + " and " + one_way +
                     " us one way, by the captures' time per byte and latency");
}

// Captures of one script by their ranks, fewest first.
std::vector<Scale> scales_of(std::vector<YamlValue> captures) {
  std::vector<Scale> out;
  for (YamlValue& one : captures) out.push_back(scale_of(std::move(one)));
  std::sort(out.begin(), out.end(),
            [](const Scale& a, const Scale& b) { return a.ranks() < b.ranks(); });
  for (std::size_t i = 1; i < out.size(); ++i) {
    check_same_script(out[i - 1], out[i]);
    if (out[i].ranks() == out[i - 1].ranks())
      fail(out[i].description.mark, "two captures are of " +
                                        std::to_string(out[i].model.capture->ranks) +
                                        " ranks; a fit needs different numbers");
  }
  check_networks(out);
  return out;
}

// Columns of recorded_ns, as a step passes them: [begin, end).
struct Phase {
  const char* name;
  std::size_t begin, end;
};

std::vector<Phase> phases_of(const Model& model) {
  const std::size_t layers = model.layers.size();
  return {{"the time before the forward", 0, 1},
          {"the forward", 1, 1 + layers},
          {"the loss", 1 + layers, 2 + layers},
          {"the backward", 2 + layers, 2 + 2 * layers},
          {"the time before the optimizer", 2 + 2 * layers, 3 + 2 * layers},
          {"the optimizer", 3 + 2 * layers, 4 + 2 * layers}};
}

// By step and rank, in nanoseconds.
std::vector<double> sums_of(const Scale& scale, const Phase& phase) {
  std::vector<double> sums(scale.columns.front().size());
  for (std::size_t c = phase.begin; c < phase.end; ++c)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += scale.columns[c][i];
  return sums;
}

// Nanoseconds.
struct Fitted {
  std::vector<double> factor;    // by column of recorded_ns, of the capture with most ranks
  std::vector<double> measured;  // by capture: the sum of all phases
  double total = 0, error = 0, residual = 0;
  std::size_t phases = 0, constant = 0;  // all; those that do not change with the ranks
};

Fitted fit_delays(const std::vector<Scale>& scales, int ranks) {
  const Scale& largest = scales.back();
  Fitted out;
  out.measured.resize(scales.size());
  double squares = 0;
  for (const Phase& phase : phases_of(largest.model)) {
    std::vector<ScalePoint> points;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      const std::vector<double> sums = sums_of(scales[i], phase);
      points.push_back({scales[i].ranks(), median(sums), median_error(sums, scales[i].steps)});
      out.measured[i] += points.back().value;
    }
    const ScaleFit fit = fit_scale(points, ranks);
    if (fit.value + kSignificant * fit.error < 0)
      fail(largest.description.mark,
           std::string(phase.name) + " would take " + millis(fit.value) + " with " +
               std::to_string(ranks) +
               " ranks, by the captures' medians; capture nearer to that number");
    const double nanos = std::max(0.0, fit.value), from = points.back().value;
    out.factor.insert(out.factor.end(), phase.end - phase.begin, from > 0 ? nanos / from : 1);
    out.total += nanos;
    squares += fit.error * fit.error;
    out.residual = std::max(out.residual, fit.residual);
    out.constant += fit.constant ? 1 : 0;
    ++out.phases;
  }
  out.error = std::sqrt(squares);
  return out;
}

void stretch_steps(YamlValue& recorded, const std::vector<double>& factor) {
  for (YamlValue& rank : recorded.children)
    for (YamlValue& step : rank.children)
      for (std::size_t c = 0; c < step.children.size(); ++c) {
        const double nanos = static_cast<double>(*parse_integer(step.children[c].text));
        step.children[c].text = std::to_string(std::llround(nanos * factor[c]));
      }
}

// Appends to `comments` what was fitted and assumed.
void account(const std::vector<Scale>& scales, const Fitted& fitted, int ranks,
             std::vector<std::string>& comments) {
  std::string captures, delays;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::string its = std::to_string(scales[i].model.capture->ranks);
    captures += (i > 0 ? ", " : "") + its;
    delays += millis(fitted.measured[i]) + " of " + its + ", ";
  }
  comments.push_back("fitted: from captures of " + captures + " ranks; steps are those of " +
                     std::to_string(scales.back().model.capture->ranks) + ", stretched by the fit");
  comments.push_back(
      "fitted: " + std::to_string(fitted.phases - fitted.constant) + " of " +
      std::to_string(fitted.phases) +
      " phases of a step change with the ranks, as a + b / ranks; a step's delays are " + delays +
      "and " + millis(fitted.total) + " of " + std::to_string(ranks) + ", standard error " +
      millis(fitted.error));
  comments.push_back(scales.size() == 2
                         ? "assumed: that form; two captures cannot show that it is another"
                         : "fitted: the captures are off the curves by up to " +
                               millis(fitted.residual));
  comments.emplace_back("assumed: ranks play the captured steps, shifted against each other");
}

// The medians beside recorded_ns, in the order of its columns.
void stretch_medians(YamlValue& model, const Scale& largest, const std::vector<double>& factor) {
  std::size_t at = 0;
  const auto next = [&] {
    const std::size_t column = at++;
    return micros_text(median(largest.columns[column]) * factor[column]);
  };
  put_scalar(model, "before_us", next());
  for (const char* key : {"forward_us", "loss_us", "backward_us"}) {
    if (std::string_view(key) == "loss_us")
      put_scalar(model, key, next());
    else
      for (YamlValue& layer : model.find("layers")->children) put_scalar(layer, key, next());
  }
  put_scalar(model, "after_us", next());
  put_scalar(model, "optimizer_us", next());
}

}  // namespace

ScaleFit fit_scale(const std::vector<ScalePoint>& points, double ranks) {
  const double count = static_cast<double>(points.size());
  double mean_inverse = 0, mean = 0, spread = 0, slope = 0, slope_error = 0;
  for (const ScalePoint& one : points) {
    mean_inverse += 1 / one.ranks / count;
    mean += one.value / count;
  }
  const auto away_from_mean = [&](double of) { return 1 / of - mean_inverse; };
  for (const ScalePoint& one : points) spread += std::pow(away_from_mean(one.ranks), 2);
  for (const ScalePoint& one : points) {
    const double weight = away_from_mean(one.ranks) / spread;
    slope += weight * one.value;
    slope_error += weight * weight * one.error * one.error;
  }
  slope_error = std::sqrt(slope_error);
  ScaleFit out;
  out.constant = std::abs(slope) <= kSignificant * slope_error;
  if (out.constant) slope = 0;
  const double away = out.constant ? 0 : away_from_mean(ranks) / spread;
  double squares = 0, off_curve = 0;
  for (const ScalePoint& one : points) {
    const double weight = 1 / count + away * away_from_mean(one.ranks);
    squares += weight * weight * one.error * one.error;
    const double off = one.value - (mean + slope * away_from_mean(one.ranks));
    off_curve += off * off;
    if (points.size() > 2) out.residual = std::max(out.residual, std::abs(off));
  }
  if (points.size() > 2) squares += off_curve / (count - 2) * (1 / count + away * away * spread);
  out.value = mean + slope * away_from_mean(ranks);
  out.error = std::sqrt(squares);
  return out;
}

YamlValue fit_scales(std::vector<YamlValue> captures, int ranks,
                     std::vector<std::string>& comments) {
  const std::vector<Scale> scales = scales_of(std::move(captures));
  const Fitted fitted = fit_delays(scales, ranks);
  YamlValue out = scales.back().description;
  stretch_medians(out, scales.back(), fitted.factor);
  stretch_steps(*out.find("recorded_ns"), fitted.factor);
  account(scales, fitted, ranks, comments);
  YamlValue& capture = *out.find("capture");
  put_ranks(capture, ranks);
  if (per_bit(scales.back()) > 0) put_network(capture, scales, ranks, comments);
  return out;
}

}  // namespace ghostrank
