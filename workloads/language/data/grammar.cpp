#include "language/data/grammar.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>
#include <unordered_set>

namespace ergometer::workload::language {
namespace {

constexpr std::size_t kTopics = 24;
constexpr std::size_t kNouns = 24;  // of a topic
constexpr std::size_t kAdjectives = 8;
constexpr std::size_t kVerbs = 8;
constexpr std::size_t kPlaces = 60;
constexpr double kUsual = 0.8;  // share of a noun's usual adjective and verb: what there is to learn

constexpr std::array<std::string_view, 16> kOnsets = {"b", "d", "f", "g", "k", "l",  "m",  "n",
                                                      "p", "r", "s", "t", "v", "st", "tr", "br"};
constexpr std::array<std::string_view, 5> kVowels = {"a", "e", "i", "o", "u"};
constexpr std::array<std::string_view, 4> kCodas = {"", "n", "r", "l"};
constexpr std::array<std::string_view, 8> kSections = {"History",   "Description", "Early years", "Development",
                                                       "Reception", "Legacy",      "Geography",   "Other uses"};
constexpr std::array<std::string_view, 22> kFunctionWords = {
    "the",         "a",         "in",      "of",        "and",   "was",   "near",  "with",
    "by",          "year",      "history", "old",       "new",   "early", "years", "development",
    "description", "reception", "legacy",  "geography", "other", "uses"};

template <class List>
const auto& pick(const List& list, SampleRandom& random) {
  return list[random.below(static_cast<std::uint32_t>(list.size()))];
}

// Index below `count`, log-uniform: the first are the most frequent, as in text.
std::size_t pick_frequent(std::size_t count, SampleRandom& random) {
  return static_cast<std::size_t>(std::pow(static_cast<double>(count), random.uniform())) - 1;
}

std::string capitalised(std::string word) {
  if (word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

}  // namespace

Grammar::Grammar(std::uint64_t seed) {
  SampleRandom random(seed, 0);
  for (std::size_t i = 0; i < kPlaces; ++i) places_.push_back(new_word(random, 3));
  for (std::size_t i = 0; i < kTopics; ++i) topics_.push_back(new_topic(random));
}

std::string Grammar::new_word(SampleRandom& random, int syllables) {
  std::string word;
  for (int i = 0; i < syllables; ++i) {
    word += pick(kOnsets, random);
    word += pick(kVowels, random);
    word += pick(kCodas, random);
  }
  return word;
}

Grammar::Topic Grammar::new_topic(SampleRandom& random) const {
  Topic topic;
  for (std::size_t i = 0; i < kAdjectives; ++i) topic.adjectives.push_back(new_word(random, 2));
  for (std::size_t i = 0; i < kVerbs; ++i) topic.verbs.push_back(new_word(random, 2) + "ed");
  for (std::size_t i = 0; i < kNouns; ++i) {
    const int syllables = random.uniform() < 0.5 ? 2 : 3;
    std::string word = new_word(random, syllables);
    const std::string& adjective = pick(topic.adjectives, random);
    const std::string& verb = pick(topic.verbs, random);
    topic.nouns.push_back({std::move(word), adjective, verb});
  }
  return topic;
}

std::string Grammar::title(std::size_t topic) const { return capitalised(topics_[topic].nouns[0].word); }

std::string Grammar::section(SampleRandom& random) const { return std::string(pick(kSections, random)); }

std::string Grammar::noun_phrase(const Topic& topic, const Noun& noun, SampleRandom& random) const {
  if (random.uniform() < 0.5) return "the " + noun.word;
  const bool usual = random.uniform() < kUsual;
  return fmt::format("the {} {}", usual ? noun.usual_adjective : pick(topic.adjectives, random), noun.word);
}

std::string Grammar::sentence(const Topic& topic, SampleRandom& random) const {
  const Noun& subject = topic.nouns[pick_frequent(kNouns, random)];
  const Noun& object = topic.nouns[pick_frequent(kNouns, random)];
  const std::string first = noun_phrase(topic, subject, random);
  const std::string second = noun_phrase(topic, object, random);
  const std::string& verb = random.uniform() < kUsual ? subject.usual_verb : pick(topic.verbs, random);
  const std::string& place = pick(places_, random);
  const std::uint64_t year = 1800 + random.below(200);
  switch (random.below(5)) {
    case 0:
      return fmt::format("{} {} {} .", capitalised(first), verb, second);
    case 1:
      return fmt::format("In {} , {} {} {} near {} .", year, first, verb, second, capitalised(place));
    case 2:
      return fmt::format("{} was {} by {} in {} .", capitalised(second), verb, first, year);
    case 3:
      return fmt::format("{} and {} {} a {} @-@ year @-@ old {} .", capitalised(first), second, verb,
                         2 + random.below(98), object.word);
    default:
      return fmt::format("{} of {} {} , with {} .", capitalised(first), capitalised(place), verb, second);
  }
}

std::string Grammar::paragraph(std::size_t topic, SampleRandom& random) const {
  std::string text;
  const std::uint64_t sentences = 4 + random.below(9);
  for (std::uint64_t i = 0; i < sentences; ++i) {
    if (i > 0) text += ' ';
    text += sentence(topics_[topic], random);
  }
  return text;
}

std::vector<std::string> Grammar::vocabulary() const {
  std::vector<std::string> tokens;
  std::unordered_set<std::string> known;
  const auto add = [&](std::string token) {
    if (known.insert(token).second) tokens.push_back(std::move(token));
  };
  for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) add(special);
  for (char c = '!'; c <= '~'; ++c) {
    if (c < 'A' || c > 'Z') add(std::string(1, c));
  }
  for (char c = '0'; c <= '9'; ++c) add(fmt::format("##{}", c));
  for (char c = 'a'; c <= 'z'; ++c) add(fmt::format("##{}", c));
  for (const std::string_view word : kFunctionWords) add(std::string(word));
  for (const std::string_view onset : kOnsets) {
    for (const std::string_view vowel : kVowels) {
      for (const std::string_view coda : kCodas) {
        add(fmt::format("{}{}{}", onset, vowel, coda));
        add(fmt::format("##{}{}{}", onset, vowel, coda));
      }
    }
  }
  add("##ed");
  for (int century = 18; century <= 19; ++century) add(fmt::format("{}", century));
  for (int year = 0; year < 100; ++year) add(fmt::format("##{:02}", year));
  // The frequent half of the nouns as whole words; the others, verbs and adjectives stay in pieces.
  for (const Topic& topic : topics_) {
    for (std::size_t i = 0; i < kNouns / 2; ++i) add(topic.nouns[i].word);
  }
  return tokens;
}

}  // namespace ergometer::workload::language
