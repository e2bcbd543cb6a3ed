#include "language/workloads.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "language/data/corpus.hpp"
#include "language/data/files.hpp"
#include "language/data/make_data.hpp"
#include "language/data/packed_set.hpp"
#include "language/data/synthetic.hpp"
#include "language/networks/masked_model.hpp"
#include "language/networks/masked_task.hpp"

namespace ergometer::workload::language {
namespace {

// In the tokenised WikiText (train.txt, wiki.train.tokens) "<unk>" stands for a rare word: one unknown token, not three
// pieces. "@-@" and spaced punctuation stay as they are.
constexpr const char* kUnknownWord = "<unk>";

Result<TokenRow> read_text(const DataOptions& options, Split split) {
  auto files = find_files(options.folder, split);
  if (!files) return files.error();
  const auto vocabulary = Vocabulary::read(files->vocabulary, static_cast<std::size_t>(kVocabularySize));
  if (!vocabulary) return vocabulary.error();
  TokenRow row;
  row.state = vocabulary->fingerprint();
  if (!options.state.empty() && options.state != row.state) {
    return Error{Fault::data,
                 fmt::format("{}: another vocabulary ({}) than the training's ({})", files->vocabulary, row.state,
                             options.state),
                 "token numbers would mean other words: use the training's vocab.txt"};
  }
  const SpecialTokens& specials = vocabulary->specials();
  const WordPiece tokeniser(*vocabulary, {{kUnknownWord, specials.unknown}});
  auto corpus = read_corpus(files->text, tokeniser, options.strict, at::get_num_threads());
  if (!corpus) return corpus.error();
  row.tokens = std::move(corpus->tokens);
  row.specials = specials;
  row.vocabulary_size = static_cast<std::uint32_t>(vocabulary->size());
  row.name = files->text;
  row.notes = std::move(files->notes);
  if (corpus->invalid_bytes > 0) {
    row.notes.push_back(fmt::format("{}: {} bytes that are no UTF-8 are left out, the first at {}", files->text,
                                    corpus->invalid_bytes, corpus->first_invalid));
  }
  return row;
}

Result<std::unique_ptr<DataSet>> open_data(const DataOptions& options, Split split) {
  if (auto checked = check_sequence(options.sequence); !checked) return checked.error();
  if (options.folder == "synthetic") return PackedSet::make(synthetic_tokens(split), options);
  auto row = read_text(options, split);
  if (!row) return row.error();
  return PackedSet::make(std::move(*row), options);
}

std::unique_ptr<Task> make_bert_task(const DataOptions&) { return std::make_unique<MaskedTask>(make_bert_base()); }
std::unique_ptr<Task> make_distilbert_task(const DataOptions&) {
  return std::make_unique<MaskedTask>(make_distilbert());
}

// Batch, epochs and update rule are our choice: the protocol's source does not name them.
Workload masked_language_model() {
  Workload workload;
  workload.domain = "language";
  workload.data_set = "WikiText-103, raw text and BERT's vocab.txt";
  workload.unit = "sequences";
  workload.input = "512 tokens";
  workload.batch = 32;
  workload.epochs = 3;
  workload.optimiser.rule = Rule::adam;
  workload.optimiser.learning_rate = 1e-4;
  workload.optimiser.weight_decay = 0.01;
  workload.optimiser.decoupled_decay = true;
  workload.open_data = open_data;
  workload.make_data = make_data;
  return workload;
}

Workload bert_base() {
  Workload workload = masked_language_model();
  workload.name = "bert_base";
  workload.parameters = 109'514'298;
  workload.source = "Devlin et al. 2018, arXiv:1810.04805";
  workload.make_task = make_bert_task;
  return workload;
}

Workload distilbert() {
  Workload workload = masked_language_model();
  workload.name = "distilbert";
  workload.parameters = 66'985'530;
  workload.source = "Sanh et al. 2019, arXiv:1910.01108";
  workload.make_task = make_distilbert_task;
  return workload;
}

}  // namespace

const Workload kBertBase = bert_base();
const Workload kDistilbert = distilbert();

}  // namespace ergometer::workload::language
