// Text of a made-up language in which words follow from each other, and the vocabulary that covers it. Used by
// make_data.cpp. Not a model of English: it is there to be learnt from, and to look like WikiText to the reader.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "language/data/random.hpp"

namespace ergometer::workload::language {

class Grammar {
 public:
  // Topics and their words follow from the seed.
  explicit Grammar(std::uint64_t seed);

  // A paragraph is a few sentences on the topic of its article; one line without its end.
  std::string title(std::size_t topic) const;
  std::string section(SampleRandom& random) const;
  std::string paragraph(std::size_t topic, SampleRandom& random) const;
  std::size_t topics() const { return topics_.size(); }

  // [PAD], [UNK], [CLS], [SEP], [MASK], characters, syllables and common words, for the tokeniser of this folder: no
  // word of the text becomes [UNK].
  std::vector<std::string> vocabulary() const;

 private:
  struct Noun {
    std::string word;
    std::string usual_adjective;
    std::string usual_verb;
  };
  struct Topic {
    std::vector<Noun> nouns;  // the first are the most frequent
    std::vector<std::string> adjectives;
    std::vector<std::string> verbs;
  };

  static std::string new_word(SampleRandom& random, int syllables);
  Topic new_topic(SampleRandom& random) const;
  std::string noun_phrase(const Topic& topic, const Noun& noun, SampleRandom& random) const;
  std::string sentence(const Topic& topic, SampleRandom& random) const;

  std::vector<Topic> topics_;
  std::vector<std::string> places_;
};

}  // namespace ergometer::workload::language
