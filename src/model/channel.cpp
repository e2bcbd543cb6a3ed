#include "model/channel.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace ergometer {
namespace {

template <class E, std::size_t N>
using Words = std::array<std::pair<E, const char*>, N>;

constexpr Words<Quantity, 8> kQuantities{{{Quantity::power, "power"},
                                          {Quantity::energy, "energy"},
                                          {Quantity::ratio, "ratio"},
                                          {Quantity::bytes, "bytes"},
                                          {Quantity::frequency, "frequency"},
                                          {Quantity::temperature, "temperature"},
                                          {Quantity::duration, "duration"},
                                          {Quantity::count, "count"}}};
constexpr Words<Behaviour, 2> kBehaviours{{{Behaviour::counter, "counter"}, {Behaviour::gauge, "gauge"}}};
constexpr Words<Scope, 12> kScopes{{{Scope::node, "node"},
                                    {Scope::module, "module"},
                                    {Scope::psys, "psys"},
                                    {Scope::package, "package"},
                                    {Scope::core, "core"},
                                    {Scope::uncore, "uncore"},
                                    {Scope::dram, "dram"},
                                    {Scope::gpu, "gpu"},
                                    {Scope::memory, "memory"},
                                    {Scope::rail, "rail"},
                                    {Scope::tree, "tree"},
                                    {Scope::system, "system"}}};
constexpr Words<Method, 5> kMethods{{{Method::samples, "samples"},
                                     {Method::counter, "counter"},
                                     {Method::integral, "integral"},
                                     {Method::average, "average"},
                                     {Method::model, "model"}}};

template <class E, std::size_t N>
const char* word_of(const Words<E, N>& words, E value) {
  for (const auto& [e, word] : words)
    if (e == value) return word;
  return "unknown";
}

template <class E, std::size_t N>
std::optional<E> value_of(const Words<E, N>& words, std::string_view text) {
  for (const auto& [e, word] : words)
    if (text == word) return e;
  return std::nullopt;
}

}  // namespace

const char* to_word(Quantity v) { return word_of(kQuantities, v); }
const char* to_word(Behaviour v) { return word_of(kBehaviours, v); }
const char* to_word(Scope v) { return word_of(kScopes, v); }
const char* to_word(Method v) { return word_of(kMethods, v); }
std::optional<Quantity> quantity_from(std::string_view t) { return value_of(kQuantities, t); }
std::optional<Behaviour> behaviour_from(std::string_view t) { return value_of(kBehaviours, t); }
std::optional<Scope> scope_from(std::string_view t) { return value_of(kScopes, t); }
std::optional<Method> method_from(std::string_view t) { return value_of(kMethods, t); }

}  // namespace ergometer
