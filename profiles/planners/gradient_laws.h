// Distributions of gradients as jobs and commands name them: laplace, gaussian, gamma SHAPE, pareto
// SHAPE, measured FILE; and the rules by which a job gives tensors laws of their own.
//
//   tensors:
//     distribution:
//     - {tensors: '*.bias', law: gaussian}                       the first rule that names a tensor
//     - {tensors: 'layer4.*', law: gamma 0.5, scale: 0.002, drift: {shape: 1.01}}
//     - {law: measured run.tensors.csv}                          all others
//     scale: 0.001                                               where a rule has none of its own
//     drift: {scale: 0.98, until: 100}                           likewise
//
// A file of histograms has the columns magnitude and count, and may have one histogram for each
// tensor, which its column tensor names. Every tensor then follows its own: by name or, with
// `measured FILE by number`, by its number among the model's.
//
// Threading: pure functions, but for the files.
#pragma once

#include <string>

#include "collectives/gradients/gradient_law.h"

namespace ghostrank {

struct Model;
class Settings;

// One law. `scale`: mean magnitude of a law that is not measured; a histogram's file is looked for
// from `folder`. Throws Error(usage) with what is wrong after `where`.
GradientLaw parse_gradient_law(const std::string& text, double scale, const std::string& folder,
                               const std::string& where);

// The text of a law with its file's text in place of the file's name, if there is such a file.
std::string law_with_file(const std::string& text, const std::string& folder);

// tensors.distribution, tensors.scale and tensors.drift, for the tensors of `model`; null: the job
// has no model, and so no names of tensors. Throws Error(usage).
GradientLaws read_gradient_laws(const Settings& in, const Model* model, const std::string& folder);

}  // namespace ghostrank
