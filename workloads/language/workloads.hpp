// The masked-language-modelling workloads bert_base and distilbert (protocol of Frey et al. 2022, arXiv:2201.12423).
// Used by the registry and by the tests.
#pragma once

#include "core/workload.hpp"

namespace ergometer::workload::language {

// Data: a folder with the text of WikiText (wiki.train.raw or train.txt, and so on) and vocab.txt, BERT's uncased
// vocabulary; see data/files.hpp. A batch holds two tensors, see data/packed_set.hpp.
extern const Workload kBertBase;
extern const Workload kDistilbert;

}  // namespace ergometer::workload::language
