#include "profiles/planners/pipeline/layer_split.h"

#include <algorithm>
#include <cctype>

#include "profiles/error.h"

namespace ghostrank {
namespace {

constexpr std::size_t kLongestLayout = 100'000;
constexpr const char* kLayout = "parallel.pipeline_model_parallel_layout";
constexpr const char* kFirst = "parallel.decoder_first_pipeline_num_layers";
constexpr const char* kLast = "parallel.decoder_last_pipeline_num_layers";

[[noreturn]] void refuse(const JobSpec& spec, const std::string& key, const std::string& what) {
  throw Error(spec.source_of(key) + ": " + key + ": " + what);
}

std::string number(int value) { return std::to_string(value); }

// Sets each part's first layer, and puts embedding, head, final norm and mtp modules where they are
// without a layout.
std::vector<Part> with_ends(const Transformer& model, const std::vector<int>& layers) {
  std::vector<Part> out(layers.size());
  int next = 0;
  for (std::size_t p = 0; p < layers.size(); ++p) {
    out[p].first_layer = next;
    out[p].layers = layers[p];
    next += layers[p];
  }
  out.front().embedding = true;
  out.back().head = out.back().final_norm = true;
  out.back().mtp = static_cast<int>(model.mtp);
  return out;
}

// ---- A layout ----

std::string repeated(const std::string& piece, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += piece;
  return out;
}

// Reads "*12" at `at` and moves `at` behind it. Returns 1 if there is none, 0 if it is too large.
int times_at(const std::string& text, std::size_t& at) {
  if (at + 1 >= text.size() || text[at] != '*' ||
      std::isdigit(static_cast<unsigned char>(text[at + 1])) == 0)
    return 1;
  std::size_t times = 0;
  for (++at; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0; ++at)
    times = std::min(10 * times + (text[at] - '0'), kLongestLayout + 1);
  return times > kLongestLayout ? 0 : static_cast<int>(times);
}

// How often each letter occurs in one part.
struct Letters {
  int embedding = 0, layers = 0, mtp = 0, head = 0;
};

Letters letters_of(const JobSpec& spec, const std::string& part) {
  Letters out;
  for (const char letter : part) {
    // The order inside a part does not matter, because the kinds of the letters determine it.
    if (letter == 'E')
      ++out.embedding;
    else if (letter == 't')
      ++out.layers;
    else if (letter == 'm')
      ++out.mtp;
    else if (letter == 'L')
      ++out.head;
    else
      refuse(spec, kLayout,
             "'" + std::string(1, letter) +
                 "' stands for nothing; write E (embedding), t (a layer), m (a module of "
                 "multi-token prediction), L (head and loss), | between parts, as in "
                 "Ettt|(tt|)*14,tL");
  }
  return out;
}

std::vector<std::string> parts_in(const std::string& unrolled) {
  std::vector<std::string> out(1);
  for (const char letter : unrolled) {
    if (letter == '|')
      out.emplace_back();
    else
      out.back() += letter;
  }
  return out;
}

std::string whole_layout(const JobSpec& spec) {
  std::string out = unrolled_layout(spec.parallel.pipeline_layout);
  if (out.empty())
    refuse(spec, kLayout,
           "it has no letters, or repeats them beyond " + number(static_cast<int>(kLongestLayout)) +
               "; write it as in Ettt|(tt|)*14,tL");
  return out;
}

void check_letters(const JobSpec& spec, const Transformer& model, const std::string& unrolled,
                   const Letters& all) {
  if (unrolled.front() != 'E' || unrolled.back() != 'L' || all.embedding != 1 || all.head != 1)
    refuse(spec, kLayout, "it begins with the one E and ends with the one L");
  if (all.layers != static_cast<int>(model.layers) || all.mtp != static_cast<int>(model.mtp))
    refuse(spec, kLayout,
           "it has " + number(all.layers) + " t and " + number(all.mtp) + " m but the model " +
               number(static_cast<int>(model.layers)) + " layers and " +
               number(static_cast<int>(model.mtp)) + " mtp_layers; they must be as many");
  if (all.mtp > 0 && unrolled.find('m') < unrolled.rfind('t'))
    refuse(spec, kLayout, "an m stands before a t; modules of mtp follow the last layer");
}

std::vector<Part> by_layout(const JobSpec& spec, const Transformer& model,
                            const Pipeline& pipeline) {
  const std::string unrolled = whole_layout(spec);
  const std::vector<std::string> parts = parts_in(unrolled);
  const int count = static_cast<int>(parts.size()), wanted = pipeline.parts();
  if (count != wanted)
    refuse(spec, kLayout,
           "it has " + number(count) + " parts but schedule " + pipeline.schedule + " with pp " +
               number(pipeline.stages) + " has " + number(wanted) +
               (pipeline.schedule == "1f1b" && count % pipeline.stages == 0
                    ? "; use parallel.schedule=interleaved"
                    : "; they must be as many"));
  std::vector<Part> out;
  Letters all;
  for (const std::string& text : parts) {
    const Letters one = letters_of(spec, text);
    out.push_back({all.layers, one.layers, one.mtp, one.embedding > 0, one.head > 0, false});
    all.embedding += one.embedding;
    all.layers += one.layers;
    all.mtp += one.mtp;
    all.head += one.head;
  }
  check_letters(spec, model, unrolled, all);
  // With mtp modules the final norm stays with the last layer, wherever the head is.
  std::size_t norm = out.size() - 1;
  while (model.mtp > 0 && out[norm].layers == 0) --norm;
  out[norm].final_norm = true;
  const auto last =
      static_cast<std::size_t>(pipeline.stages) * (pipeline.parts() / pipeline.stages - 1);
  for (std::size_t p = 0; p < out.size(); ++p) {
    if (out[p].mtp == 0) continue;
    if (out[p].mtp != all.mtp)
      refuse(spec, kLayout, "modules of mtp stand in several parts; put all into one");
    if (pipeline.is_bidirectional() && p + 1 < out.size())
      refuse(spec, kLayout, "with schedule dualpipe modules of mtp stand in the last part");
    if (pipeline.schedule == "interleaved" && p < last)
      refuse(spec, kLayout, "modules of mtp stand in no last chunk of a stage; put them later");
  }
  return out;
}

// ---- Unequal ends ----

// Layers by stage, where the job sets those of the first or the last stage.
std::vector<int> layers_of_stages(const JobSpec& spec, const Transformer& model) {
  const ParallelPlan& p = spec.parallel;
  const int layers = static_cast<int>(model.layers);
  const int ends = p.first_layers + p.last_layers;
  const int others = p.pp - (p.first_layers > 0 ? 1 : 0) - (p.last_layers > 0 ? 1 : 0);
  const char* key = p.first_layers > 0 ? kFirst : kLast;
  if (p.embedding_in_split || p.loss_in_split)
    refuse(spec, key,
           "it cannot stand beside account_for_embedding_in_pipeline_split or "
           "account_for_loss_in_pipeline_split; leave out either");
  if (p.pp == 1 || others < 0) refuse(spec, key, "it needs pipeline stages; use parallel.pp=2");
  const int rest = layers - ends;
  if (rest < 0 || (others == 0 && rest > 0))
    refuse(spec, key,
           "the first stage and the last would have " + number(ends) + " of the model's " +
               number(layers) + " layers; use " +
               (others > 0 ? "fewer" : number(layers) + " in all"));
  if (others > 0 && rest % others != 0)
    refuse(spec, key,
           number(layers) + " layers without " + number(ends) + " leave " + number(rest) +
               " for the other " + number(others) + " stages, who must have as many each; change " +
               "it by " + number(rest % others));
  std::vector<int> out(p.pp, others > 0 ? rest / others : 0);
  if (p.first_layers > 0) out.front() = p.first_layers;
  if (p.last_layers > 0) out.back() = p.last_layers;
  return out;
}

std::vector<int> by_stages(const JobSpec& spec, const Transformer& model,
                           const Pipeline& pipeline) {
  const char* key = spec.parallel.first_layers > 0 ? kFirst : kLast;
  if (pipeline.is_v() || pipeline.is_bidirectional())
    refuse(spec, key,
           "schedule " + pipeline.schedule +
               " has the first layers and the last on one stage; use " + kLayout);
  const std::vector<int> stages = layers_of_stages(spec, model);
  std::vector<int> out;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
    for (const int layers : stages) {
      if (layers % pipeline.chunks != 0)
        refuse(spec, "parallel.interleave",
               "a stage has " + number(layers) + " layers, which " + number(pipeline.chunks) +
                   " chunks do not divide; use " + std::string(kLayout));
      out.push_back(layers / pipeline.chunks);
    }
  return out;
}

// ---- An even split ----

// Layers for the last stage, near the even share, that leave the others equally many; 0: none.
int fitting_last_stage(int layers, int stages, int chunks) {
  for (int last = (layers + stages - 1) / stages; last > 0; --last)
    if ((layers - last) % ((stages - 1) * chunks) == 0 && last % chunks == 0) return last;
  return 0;
}

[[noreturn]] void refuse_stages(const JobSpec& spec, const Transformer& model,
                                const Pipeline& pipeline, int units) {
  const int layers = static_cast<int>(model.layers), unit = pipeline.parts() / pipeline.stages;
  // A single stage has no schedule but 1f1b.
  const auto legal = [&](int stages) {
    return units % (stages * unit) == 0 && (!pipeline.is_bidirectional() || stages % 2 == 0) &&
           (stages > 1 || pipeline.schedule == "1f1b");
  };
  std::string nearest;
  for (int below = pipeline.stages - 1; below >= 1 && nearest.empty(); --below)
    if (legal(below)) nearest = number(below);
  for (int above = pipeline.stages + 1; above <= units; ++above) {
    if (!legal(above)) continue;
    nearest += (nearest.empty() ? "" : " or ") + number(above);
    break;
  }
  const std::string what =
      number(units) + (units == layers ? " layers" : " units (layers, embedding, loss)");
  const int last = pipeline.is_v() || pipeline.is_bidirectional() || pipeline.stages == 1
                       ? 0
                       : fitting_last_stage(layers, pipeline.stages, unit);
  std::string uneven = "unequal parts: ";
  if (last > 0)
    uneven += std::string(kLast) + "=" + number(last) +
              ", decoder_first_pipeline_num_layers, account_for_embedding_in_pipeline_split, "
              "account_for_loss_in_pipeline_split or pipeline_model_parallel_layout";
  else
    uneven += kLayout;
  throw Error(spec.source_of("parallel.pp") + ": parallel.pp is " + number(pipeline.stages) +
              " but does not divide " + what +
              (unit > 1 ? " into " + number(unit) + " parts per stage" : "") + "; use " +
              (nearest.empty() ? "" : "parallel.pp=" + nearest + ", or ") + uneven);
}

std::vector<int> evenly(const JobSpec& spec, const Transformer& model, const Pipeline& pipeline) {
  const ParallelPlan& p = spec.parallel;
  const int units = static_cast<int>(model.layers) + p.embedding_in_split + p.loss_in_split;
  const int parts = pipeline.parts();
  if (units % parts != 0) refuse_stages(spec, model, pipeline, units);
  std::vector<int> out(parts, units / parts);
  if (p.embedding_in_split) --out.front();
  if (p.loss_in_split) --out.back();
  return out;
}

}  // namespace

std::string unrolled_layout(const std::string& layout) {
  std::string text = layout;
  std::erase(text, ',');
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t close = text[at] == '(' ? text.find(')', at) : std::string::npos;
    std::string piece(1, text[at]);
    if (close != std::string::npos) {
      piece = unrolled_layout(text.substr(at + 1, close - at - 1));
      at = close;
    }
    const int times = times_at(text, ++at);
    if (times == 0 || out.size() + piece.size() * times > kLongestLayout) return "";
    out += repeated(piece, times);
  }
  return out;
}

int parts_of_layout(const JobSpec& spec) {
  if (spec.parallel.pipeline_layout.empty()) return 0;
  return static_cast<int>(parts_in(whole_layout(spec)).size());
}

std::vector<Part> split_as_megatron(const JobSpec& spec, const Transformer& model,
                                    const Pipeline& pipeline) {
  const ParallelPlan& p = spec.parallel;
  const bool by_ends = p.first_layers > 0 || p.last_layers > 0;
  if (!p.pipeline_layout.empty()) {
    if (by_ends || p.embedding_in_split || p.loss_in_split)
      refuse(spec, kLayout,
             "it says all, so leave out decoder_first_pipeline_num_layers, "
             "decoder_last_pipeline_num_layers and account_for_…_in_pipeline_split");
    return by_layout(spec, model, pipeline);
  }
  return with_ends(model,
                   by_ends ? by_stages(spec, model, pipeline) : evenly(spec, model, pipeline));
}

std::vector<Part> split_as_torchtitan(const JobSpec& spec, const Transformer& model,
                                      const Pipeline& pipeline) {
  const int parts = pipeline.parts(), units = static_cast<int>(model.layers) + 2;
  if (parts == 1) return with_ends(model, {static_cast<int>(model.layers)});
  if (parts > units) {
    const bool by_chunks = pipeline.schedule == "interleaved" && 2 * pipeline.stages <= units;
    const std::string key = by_chunks ? "parallel.interleave" : "parallel.pp";
    const std::string each =
        pipeline.chunks > 1 ? " of " + number(pipeline.chunks) + " chunks each" : "";
    throw Error(spec.source_of(key) + ": " + number(pipeline.stages) + " stages" + each + " make " +
                number(parts) + " parts of " + number(units) +
                " units (layers, embedding, head); use " + key + "=" +
                number(units / (by_chunks         ? pipeline.stages
                                : pipeline.is_v() ? 2
                                                  : 1)) +
                " or less");
  }
  std::vector<int> layers;
  for (int part = 0; part < parts; ++part)
    layers.push_back(units / parts + (part < units % parts ? 1 : 0));
  --layers.front();
  --layers.back();
  return with_ends(model, layers);
}

}  // namespace ghostrank
