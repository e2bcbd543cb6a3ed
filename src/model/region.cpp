#include "model/region.hpp"

#include "base/number.hpp"

namespace ergometer {
namespace {
std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }
}  // namespace

std::string_view Region::name() const {
  const auto last = last_component(path);
  return last.ends_with(']') ? last.substr(0, last.rfind('[')) : last;
}

std::optional<std::int64_t> Region::index() const {
  const auto last = last_component(path);
  const auto open = last.rfind('[');
  if (!last.ends_with(']') || open == std::string_view::npos) return std::nullopt;
  return parse_int(last.substr(open + 1, last.size() - open - 2));
}

std::string_view Region::parent() const {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string_view{} : std::string_view(path).substr(0, slash);
}

std::string Region::family() const {
  std::string out;
  std::string_view rest = path;
  while (true) {
    const auto slash = rest.find('/');
    std::string_view part = rest.substr(0, slash);
    if (part.ends_with(']')) part = part.substr(0, part.rfind('['));
    out += part;
    if (slash == std::string_view::npos) return out;
    out += '/';
    rest.remove_prefix(slash + 1);
  }
}

std::optional<std::string_view> Region::attribute(std::string_view key) const {
  for (const auto& [k, v] : attributes)
    if (k == key) return v;
  return std::nullopt;
}

}  // namespace ergometer
