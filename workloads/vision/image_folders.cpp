// ImageNet in folders, as torchvision's ImageFolder takes it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

#include "core/text.hpp"
#include "vision/augment.hpp"
#include "vision/data.hpp"
#include "vision/decode.hpp"
#include "vision/picture_set.hpp"

namespace ergometer::workload::vision {
namespace {

namespace fs = std::filesystem;

Error fault(const fs::path& path, const std::error_code& error) {
  return {Fault::data, fmt::format("{}: {}", path.string(), error.message()), {}};
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool has_picture_suffix(const fs::path& path) {
  constexpr std::array kSuffixes = {".jpg", ".jpeg", ".png"};
  const std::string suffix = lower(path.extension().string());
  return std::find(kSuffixes.begin(), kSuffixes.end(), suffix) != kSuffixes.end();
}

struct ClassFolders {
  std::vector<std::string> names;  // sorted
  std::vector<std::string> notes;
};

// The folders in `folder`, hidden ones aside. A link to another of them would count its pictures twice: it is left out.
Result<ClassFolders> list_classes(const fs::path& folder) {
  std::error_code error;
  std::vector<std::pair<bool, std::string>> found;  // whether it is a link: real folders come first
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.front() == '.' || !is_folder(it->path())) continue;
    if (name.find('\n') != std::string::npos) {
      return Error{Fault::data, fmt::format("{}: a class folder's name has a line break", folder.string()),
                   "rename the folder"};
    }
    std::error_code ignored;
    found.emplace_back(it->is_symlink(ignored), name);
  }
  if (error) return fault(folder, error);
  std::sort(found.begin(), found.end());
  ClassFolders classes;
  std::set<fs::path> places;
  for (const auto& [link, name] : found) {
    const fs::path place = fs::canonical(folder / name, error);
    if (error) return fault(folder / name, error);
    if (places.insert(place).second) {
      classes.names.push_back(name);
    } else {
      classes.notes.push_back(
          fmt::format("{}: a link to a class folder that is already counted; left out", (folder / name).string()));
    }
  }
  std::sort(classes.names.begin(), classes.names.end());
  return classes;
}

// Adds the pictures of one class, sorted by name, with their paths below `root`. Links to folders are not followed.
Result<Done> list_pictures(const fs::path& root, const fs::path& folder, std::int64_t label,
                           std::vector<Picture>& pictures, std::int64_t& others) {
  const auto first = static_cast<std::ptrdiff_t>(pictures.size());
  const std::size_t prefix = root.string().size() + 1;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code unclear;
    if (!it->is_regular_file(unclear)) continue;
    if (has_picture_suffix(it->path())) {
      pictures.push_back({it->path().string().substr(prefix), label});
    } else {
      ++others;
    }
  }
  if (error) return fault(folder, error);
  std::sort(pictures.begin() + first, pictures.end(),
            [](const Picture& a, const Picture& b) { return a.name < b.name; });
  return Done{};
}

struct Layout {
  fs::path train;
  fs::path validation;
  bool flat = false;
};

Result<Layout> find_layout(const std::string& folder) {
  const fs::path root(folder);
  if (!is_folder(root)) {
    return Error{Fault::data, fmt::format("{}: no such folder", folder),
                 "give the folder that holds train/ and val/, or --data synthetic"};
  }
  if (is_folder(root / "train") || is_folder(root / "val")) return Layout{root / "train", root / "val", false};
  return Layout{root, root, true};
}

Result<std::vector<std::string>> class_names(const Layout& layout, const DataOptions& options, const Form& form) {
  std::vector<std::string> names;
  if (!options.state.empty()) {
    std::istringstream lines(options.state);
    for (std::string line; std::getline(lines, line);) names.push_back(line);
  } else if (!is_folder(layout.train)) {
    return Error{Fault::data, fmt::format("{}: no such folder", layout.train.string()),
                 "the classes are numbered by the training folders: give them, or a checkpoint, which knows them"};
  } else {
    auto classes = list_classes(layout.train);
    if (!classes) return classes.error();
    names = std::move(classes->names);
  }
  if (static_cast<std::int64_t>(names.size()) > form.classes) {
    return Error{Fault::data,
                 fmt::format("{}: {} classes, but {} has {} outputs", layout.train.string(), names.size(), form.name,
                             form.classes),
                 "is this the folder of the class folders? Remove what is no class"};
  }
  return names;
}

Result<Done> prepare_photo_training(Workspace& workspace, int side, Random& random, std::uint8_t* output) {
  const bool mirror = random.coin();
  const auto done = decode(
      workspace.bytes, 3, [&](Size size) { return random_resized_crop(size, side, random); }, workspace.pixels);
  if (done) resample(workspace.pixels, {side, side}, mirror, workspace.resample, output);
  return done;
}

Result<Done> prepare_photo_validation(Workspace& workspace, int side, Random&, std::uint8_t* output) {
  const auto done = decode(
      workspace.bytes, 3, [&](Size size) { return centre_crop(size, side); }, workspace.pixels);
  if (done) resample(workspace.pixels, {side, side}, false, workspace.resample, output);
  return done;
}

// The pictures of `folders` with the numbers that `contents.class_names` gives them.
Result<Done> add_pictures(const fs::path& folder, const ClassFolders& folders, PictureSet::Contents& contents) {
  std::int64_t others = 0;
  const auto& names = contents.class_names;
  for (const std::string& name : folders.names) {
    const auto found = std::lower_bound(names.begin(), names.end(), name);
    if (found == names.end() || *found != name) {
      return Error{Fault::data, fmt::format("{}: not a class of the training data", (folder / name).string()),
                   "remove the folder, or train with this class"};
    }
    if (auto done = list_pictures(folder, folder / name, found - names.begin(), contents.pictures, others); !done) {
      return done;
    }
  }
  if (others > 0) {
    contents.notes.push_back(
        fmt::format("{}: {} files that are not .jpg, .jpeg or .png are left out", folder.string(), others));
  }
  std::vector<bool> held(names.size(), false);
  for (const Picture& picture : contents.pictures) held[static_cast<std::size_t>(picture.label)] = true;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!held[i]) {
      contents.notes.push_back(
          fmt::format("{}: no pictures; class {} keeps its number", (folder / names[i]).string(), i));
    }
  }
  return Done{};
}

}  // namespace

Result<std::unique_ptr<DataSet>> open_image_folders(const DataOptions& options, Split split, const Form& form) {
  const auto side = side_of(form, options);
  if (!side) return side.error();
  const auto layout = find_layout(options.folder);
  if (!layout) return layout.error();
  auto names = class_names(*layout, options, form);
  if (!names) return names.error();
  const fs::path& folder = split == Split::train ? layout->train : layout->validation;
  const auto folders = list_classes(folder);
  if (!folders) return folders.error();

  PictureSet::Contents contents;
  contents.folder = folder.string();
  contents.class_names = std::move(*names);
  contents.notes = folders->notes;
  contents.channels = form.channels;
  contents.side = *side;
  contents.keeps_class_names = true;
  contents.prepare = split == Split::train ? prepare_photo_training : prepare_photo_validation;
  if (layout->flat) {
    contents.notes.push_back(fmt::format("{}: no train/ and val/; its class folders serve for both", options.folder));
  }
  if (auto done = add_pictures(folder, *folders, contents); !done) return done.error();
  if (contents.pictures.empty()) {
    return Error{Fault::data, fmt::format("{}: no pictures", folder.string()),
                 "expected are class folders with .JPEG files; 'ergometer-workload data make' writes an example"};
  }
  return std::unique_ptr<DataSet>(std::make_unique<PictureSet>(std::move(contents), options));
}

}  // namespace ergometer::workload::vision
