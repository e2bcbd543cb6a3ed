// toml++ as the project uses it: header-only and without exceptions. Included by the .cpp files that read TOML, all
// through here, since two settings in one program would be two definitions of the same functions.
#pragma once

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>
