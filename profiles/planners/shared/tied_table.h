// Tables of words that a transformer's embedding and its head share. Threading: pure.
#pragma once

#include "profiles/model/model.h"

namespace ghostrank {

// True if the last layer's product is with the first parameter of the first layer.
inline bool head_has_embedding(const Model& model) {
  return model.transformer && model.transformer->tied &&
         (model.architecture != "bert" || model.layers.back().name == "heads");
}

}  // namespace ghostrank
