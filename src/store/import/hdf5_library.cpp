#include "store/import/hdf5_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>

#include "base/file.hpp"

namespace ergometer::foreign {
namespace {

// Declarations of our own, after the library's reference manual; hid_t has been 64 bits wide since 1.10, which is required.
using Hid = std::int64_t;
constexpr Hid kDefault = 0;
constexpr int kGroup = 2, kDataset = 5;                      // H5I_type_t
constexpr int kIntegerClass = 0, kFloatClass = 1, kCompound = 6;  // H5T_class_t
constexpr std::size_t kDeepest = 16, kMostLinks = 1'000'000, kMostRows = 100'000'000;

struct GroupInfo {
  int storage_type;
  std::uint64_t nlinks;
  std::int64_t max_corder;
  bool mounted;
};

struct Api {
  int (*open)() = nullptr;
  int (*version)(unsigned*, unsigned*, unsigned*) = nullptr;
  int (*silence)(Hid, void*, void*) = nullptr;
  Hid (*open_file)(const char*, unsigned, Hid) = nullptr;
  int (*close_file)(Hid) = nullptr;
  Hid (*open_object)(Hid, const char*, Hid) = nullptr;
  int (*close_object)(Hid) = nullptr;
  int (*kind)(Hid) = nullptr;
  int (*group_info)(Hid, GroupInfo*) = nullptr;
  long (*link_name)(Hid, const char*, int, int, std::uint64_t, char*, std::size_t, Hid) = nullptr;
  Hid (*dataset_type)(Hid) = nullptr;
  Hid (*dataset_space)(Hid) = nullptr;
  long long (*points)(Hid) = nullptr;
  int (*close_space)(Hid) = nullptr;
  int (*type_class)(Hid) = nullptr;
  int (*members)(Hid) = nullptr;
  char* (*member_name)(Hid, unsigned) = nullptr;
  int (*member_class)(Hid, unsigned) = nullptr;
  int (*free_memory)(void*) = nullptr;
  Hid (*create_type)(int, std::size_t) = nullptr;
  int (*insert)(Hid, const char*, std::size_t, Hid) = nullptr;
  int (*close_type)(Hid) = nullptr;
  int (*read)(Hid, Hid, Hid, Hid, Hid, void*) = nullptr;
  const Hid* native_double = nullptr;
};

template <class Pointer>
bool look_up(void* library, const char* name, Pointer& out) {
  out = reinterpret_cast<Pointer>(::dlsym(library, name));
  return out != nullptr;
}

// The library stays loaded: it has threads' data and exit handlers of its own.
Result<Api> load_hdf5(const std::string& file) {
  void* library = nullptr;
  for (const char* name : {"libhdf5_serial.so.103", "libhdf5.so.103", "libhdf5.so.200", "libhdf5.so.310", "libhdf5.so"})
    if ((library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) != nullptr) break;
  if (!library)
    return fail(ErrorCode::unavailable, fmt::format("{} is HDF5, and this machine has no HDF5 library", file),
                "install it (Debian: libhdf5-103-1), or let Slurm write CSV: sh5util --extract --series=Energy --jobs=JOB");
  Api api;
  const bool complete =
      look_up(library, "H5open", api.open) && look_up(library, "H5get_libversion", api.version) &&
      look_up(library, "H5Eset_auto2", api.silence) && look_up(library, "H5Fopen", api.open_file) &&
      look_up(library, "H5Fclose", api.close_file) && look_up(library, "H5Oopen", api.open_object) &&
      look_up(library, "H5Oclose", api.close_object) && look_up(library, "H5Iget_type", api.kind) &&
      look_up(library, "H5Gget_info", api.group_info) && look_up(library, "H5Lget_name_by_idx", api.link_name) &&
      look_up(library, "H5Dget_type", api.dataset_type) && look_up(library, "H5Dget_space", api.dataset_space) &&
      look_up(library, "H5Sget_simple_extent_npoints", api.points) && look_up(library, "H5Sclose", api.close_space) &&
      look_up(library, "H5Tget_class", api.type_class) && look_up(library, "H5Tget_nmembers", api.members) &&
      look_up(library, "H5Tget_member_name", api.member_name) && look_up(library, "H5Tget_member_class", api.member_class) &&
      look_up(library, "H5free_memory", api.free_memory) && look_up(library, "H5Tcreate", api.create_type) &&
      look_up(library, "H5Tinsert", api.insert) && look_up(library, "H5Tclose", api.close_type) &&
      look_up(library, "H5Dread", api.read) && look_up(library, "H5T_NATIVE_DOUBLE_g", api.native_double);
  unsigned major = 0, minor = 0, release = 0;
  if (!complete || api.open() < 0 || api.version(&major, &minor, &release) < 0 || (major == 1 && minor < 10))
    return fail(ErrorCode::unsupported,
                fmt::format("{} is HDF5, and the HDF5 library of this machine is older than 1.10", file), "install a newer one");
  api.silence(kDefault, nullptr, nullptr);  // errors are ours to tell
  return api;
}

// An object of the library, closed with its last use.
class Handle {
 public:
  Handle(Hid id, int (*close)(Hid)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  [[nodiscard]] Hid id() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  Hid id_;
  int (*close_)(Hid);
};

class Reader {
 public:
  Reader(const Api& api, std::string name) : api_(api), name_(std::move(name)) {}

  Result<void> visit(Hid group, std::vector<std::string>& path) {
    if (path.size() > kDeepest) return damaged("its groups are nested too deeply");
    GroupInfo info{};
    if (api_.group_info(group, &info) < 0) return damaged("a group cannot be read");
    for (std::uint64_t i = 0; i < info.nlinks; ++i) {
      if (++links_ > kMostLinks) return damaged("it has too many objects");
      std::array<char, 256> name{};
      if (api_.link_name(group, ".", 0, 0, i, name.data(), name.size(), kDefault) < 0)
        return damaged("a name in it cannot be read");
      const Handle object(api_.open_object(group, name.data(), kDefault), api_.close_object);
      if (!object) continue;  // a link to nowhere
      path.emplace_back(name.data());
      Result<void> done;
      if (const int kind = api_.kind(object.id()); kind == kGroup)
        done = visit(object.id(), path);
      else if (kind == kDataset)
        done = read_table(object.id(), path);
      path.pop_back();
      if (!done) return done;
    }
    return {};
  }

  std::vector<Hdf5Table> tables;

 private:
  [[nodiscard]] Result<void> damaged(const char* what) const {
    return fail(ErrorCode::corrupt, fmt::format("{} is damaged: {}", name_, what), "take another copy of the file");
  }

  Result<void> read_table(Hid dataset, const std::vector<std::string>& path) {
    const Handle type(api_.dataset_type(dataset), api_.close_type);
    const Handle space(api_.dataset_space(dataset), api_.close_space);
    if (!type || !space) return damaged("a table cannot be read");
    if (api_.type_class(type.id()) != kCompound) return {};
    const long long rows = api_.points(space.id());
    if (rows < 0 || static_cast<std::size_t>(rows) > kMostRows) return damaged("a table has an impossible length");
    Hdf5Table table{path, {}, {}};
    for (int i = 0; i < api_.members(type.id()); ++i) {
      const int kind = api_.member_class(type.id(), static_cast<unsigned>(i));
      if (kind != kIntegerClass && kind != kFloatClass) continue;
      char* name = api_.member_name(type.id(), static_cast<unsigned>(i));
      if (!name) return damaged("a column has no name");
      table.columns.emplace_back(name);
      api_.free_memory(name);
      std::vector<double> values(static_cast<std::size_t>(rows));
      if (!read_column(dataset, table.columns.back(), values)) return damaged("a column cannot be read");
      table.values.push_back(std::move(values));
    }
    if (!table.columns.empty()) tables.push_back(std::move(table));
    return {};
  }

  // The library converts whatever number the file holds.
  bool read_column(Hid dataset, const std::string& name, std::vector<double>& values) {
    const Handle wanted(api_.create_type(kCompound, sizeof(double)), api_.close_type);
    if (!wanted || api_.insert(wanted.id(), name.c_str(), 0, *api_.native_double) < 0) return false;
    return values.empty() || api_.read(dataset, wanted.id(), kDefault, kDefault, kDefault, values.data()) >= 0;
  }

  const Api& api_;
  std::string name_;
  std::size_t links_ = 0;
};

}  // namespace

Result<std::vector<Hdf5Table>> read_hdf5_tables(const std::filesystem::path& file) {
  const auto name = file.filename().string();
  const auto api = load_hdf5(name);
  if (!api) return tl::unexpected(api.error());
  const Handle opened(api->open_file(file.c_str(), 0, kDefault), api->close_file);
  if (!opened)
    return fail(ErrorCode::corrupt, fmt::format("{} cannot be opened as HDF5: it is damaged, or still being written", name),
                "merge it when the job has ended: sh5util --jobs=JOB");
  Reader reader(*api, name);
  std::vector<std::string> path;
  if (auto done = reader.visit(opened.id(), path); !done) return tl::unexpected(done.error());
  return std::move(reader.tables);
}

}  // namespace ergometer::foreign
