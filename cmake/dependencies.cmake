# Everything from outside that the library links: see docs/dependencies.md for why.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

add_library(kg_dependencies INTERFACE)
if(KG_STATIC_DEPENDENCIES)
  pkg_check_modules(SQLITE REQUIRED sqlite3)
  pkg_check_modules(JANSSON REQUIRED jansson)
  pkg_check_modules(LIBELF REQUIRED libelf)
  find_library(KG_SQLITE libsqlite3.a REQUIRED HINTS ${SQLITE_LIBRARY_DIRS})
  find_library(KG_JANSSON libjansson.a REQUIRED HINTS ${JANSSON_LIBRARY_DIRS})
  find_library(KG_LIBELF libelf.a REQUIRED HINTS ${LIBELF_LIBRARY_DIRS})
  find_library(KG_ZLIB libz.a REQUIRED HINTS ${LIBELF_LIBRARY_DIRS}) # libelf's own dependency
  target_link_libraries(kg_dependencies INTERFACE ${KG_SQLITE} ${KG_JANSSON} ${KG_LIBELF}
                                                  ${KG_ZLIB})
  # In a shared library, where the linker makes the archive's symbols local. The archives of Jansson and libelf
  # are for programs alone (their code is not position-independent): these two stay shared, and are packed
  # beside the library (python/kernelgen_build.py).
  pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
  pkg_check_modules(LIBELF REQUIRED IMPORTED_TARGET libelf)
  set(kg_shared_dependencies ${KG_SQLITE} PkgConfig::JANSSON PkgConfig::LIBELF Threads::Threads
                             ${CMAKE_DL_LIBS} m)
else()
  pkg_check_modules(SQLITE REQUIRED IMPORTED_TARGET sqlite3)
  pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
  pkg_check_modules(LIBELF REQUIRED IMPORTED_TARGET libelf)
  target_link_libraries(kg_dependencies INTERFACE PkgConfig::SQLITE PkgConfig::JANSSON
                                                  PkgConfig::LIBELF)
  set(kg_shared_dependencies kg_dependencies)
endif()
target_link_libraries(kg_dependencies INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
# The header alone: the library is opened at run time (src/asm/capstone_library.h).
find_path(KG_CAPSTONE capstone/capstone.h REQUIRED)
target_include_directories(kg_dependencies INTERFACE $<BUILD_INTERFACE:${KG_CAPSTONE}>)
