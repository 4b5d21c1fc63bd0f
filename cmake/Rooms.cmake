# gridless_room(name DEPS ...): the static library gridless_<name> from gridless/<name>/**/*.cc.
add_library(gridless_flags INTERFACE)
target_include_directories(gridless_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(gridless_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                                                -fno-math-errno -ffp-contract=off)
# Source places in messages and in compiled kernels are relative to the repository, wherever it was
# built: Ninja compiles by a path relative to the build folder.
file(RELATIVE_PATH gridless_up ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
target_compile_options(gridless_flags INTERFACE -fmacro-prefix-map=${gridless_up}=
                                                -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(GRIDLESS_SANITIZE STREQUAL "address")
  target_compile_options(gridless_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer)
  target_link_options(gridless_flags INTERFACE -fsanitize=address,undefined)
elseif(GRIDLESS_SANITIZE STREQUAL "thread")
  target_compile_options(gridless_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(gridless_flags INTERFACE -fsanitize=thread)
endif()

# The fuzzer is guided by what inputs reach, in the rooms too.
if(GRIDLESS_FUZZ)
  target_compile_options(gridless_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

function(gridless_room name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gridless/${name}/*.cc)
  set(deps "")
  foreach(dep IN LISTS ARG_DEPS)
    if(TARGET gridless_${dep})
      list(APPEND deps gridless_${dep})
    else()
      list(APPEND deps ${dep})
    endif()
  endforeach()
  if(sources)
    add_library(gridless_${name} STATIC ${sources})
    target_link_libraries(gridless_${name} PUBLIC gridless_flags ${deps})
  else()
    add_library(gridless_${name} INTERFACE)
    target_link_libraries(gridless_${name} INTERFACE gridless_flags ${deps})
  endif()
  # One file per instruction set: foo_avx2.cc, foo_avx512.cc, foo_avx512vnni.cc. Nothing else in the
  # project is compiled for more than the baseline, so one binary runs anywhere.
  foreach(source IN LISTS sources)
    if(source MATCHES "_avx512vnni\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vnni;-mavx512bf16;-mfma;-mf16c")
    elseif(source MATCHES "_avx512\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mfma;-mf16c")
    elseif(source MATCHES "_avx2\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
    endif()
  endforeach()
endfunction()

# kernels/NN_name.cc: the gallery, one library.
function(gridless_gallery)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.cc)
  if(sources)
    add_library(gridless_gallery STATIC ${sources})
    target_link_libraries(gridless_gallery PUBLIC gridless_blocks)
  endif()
endfunction()

# apps/*.cc: the command. A file apps/<subcommand>.cc per subcommand.
function(gridless_app)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/*.cc)
  if(sources)
    add_executable(gridless ${sources})
    target_link_libraries(gridless PRIVATE gridless_decode gridless_tpu gridless_time CLI11::CLI11)
    if(TARGET gridless_gallery)
      target_link_libraries(gridless PRIVATE gridless_gallery)
    endif()
    target_compile_definitions(gridless PRIVATE GRIDLESS_VERSION="${PROJECT_VERSION}")
    set_target_properties(gridless PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  endif()
endfunction()

# tests/certificate/library/*.cc: mutants of kernels and generated programs, against which the
# checker is tested; bench/mutants.cc judges every one of them.
function(gridless_certificate)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/certificate/library/*.cc)
  add_library(gridless_certificate STATIC ${sources})
  target_link_libraries(gridless_certificate PUBLIC gridless_emulate gridless_weights
                        gridless_gallery)
  target_compile_definitions(gridless_certificate PRIVATE
    GRIDLESS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  foreach(name mutants agreement)
    add_executable(${name} ${PROJECT_SOURCE_DIR}/bench/${name}.cc)
    target_link_libraries(${name} PRIVATE gridless_certificate)
  endforeach()
  # 2,000 generated programs; a short run is in test_certificate.
  add_test(NAME certificate.agreement COMMAND agreement 2000)
  set_tests_properties(certificate.agreement PROPERTIES LABELS certificate TIMEOUT 600)
endfunction()

# tests/<dir>/*_test.cc: one binary per directory, labels unit (default) or golden, error, fuzz.
function(gridless_tests)
  include(GoogleTest)
  add_custom_target(unit_tests)  # what the address sanitizer builds: the programs of the unit label
  # What the thread sanitizer builds: those that reach a room with threads of its own (cpu, decode,
  # tpu, base; blocks and gallery run what they build on the CPU engine). The other rooms have none.
  add_custom_target(threaded_tests)
  set(threaded base blocks cpu decode gallery tpu)
  file(GLOB dirs CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/tests/*)
  foreach(dir IN LISTS dirs)
    if(NOT IS_DIRECTORY ${dir})
      continue()
    endif()
    get_filename_component(name ${dir} NAME)
    file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
    list(FILTER sources EXCLUDE REGEX "_fuzz\\.cc$")
    if(sources)
      add_executable(test_${name} ${sources})
      target_link_libraries(test_${name} PRIVATE gridless_decode gridless_tpu gridless_time GTest::gmock
                            GTest::gtest_main ${RAPIDCHECK_LIBRARY})
      if(TARGET gridless_gallery)
        target_link_libraries(test_${name} PRIVATE gridless_gallery)
      endif()
      if(name STREQUAL "certificate")
        target_link_libraries(test_${name} PRIVATE gridless_certificate)
      endif()
      if(TARGET gridless)
        add_dependencies(test_${name} gridless)
        target_compile_definitions(test_${name} PRIVATE GRIDLESS_COMMAND="$<TARGET_FILE:gridless>")
      endif()
      target_compile_definitions(test_${name} PRIVATE
        GRIDLESS_TEST_PLUGINS="${PROJECT_BINARY_DIR}/plugins"
        GRIDLESS_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
        GRIDLESS_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
      # tests/<dir>/plugins/*.cc: shared libraries that the tests load (fault injection).
      file(GLOB plugins CONFIGURE_DEPENDS ${dir}/plugins/*.cc)
      foreach(source IN LISTS plugins)
        get_filename_component(plugin ${source} NAME_WE)
        add_library(${plugin} MODULE ${source})
        target_link_libraries(${plugin} PRIVATE gridless_cpu)  # what they may compute with
        set_target_properties(${plugin} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY
                              ${PROJECT_BINARY_DIR}/plugins)
        add_dependencies(test_${name} ${plugin})
      endforeach()
      if(name STREQUAL "commands")
        add_dependencies(test_${name} mock_pjrt)  # the command is given it as its libtpu
      endif()
      set(label unit)
      if(name STREQUAL "golden" OR name STREQUAL "commands")
        set(label ${name})
      else()
        add_dependencies(unit_tests test_${name})
        if(name IN_LIST threaded)
          add_dependencies(threaded_tests test_${name})
          set(label unit_threaded)  # a filter by "unit" takes these too
        endif()
      endif()
      gtest_discover_tests(test_${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
                           PROPERTIES LABELS ${label} TIMEOUT 300)
    endif()
    # Fuzz targets: with clang and GRIDLESS_FUZZ they are libFuzzer binaries; otherwise each is linked
    # with tests/fuzz_replay.cc and replays its seed corpus plus deterministic mutations as a test.
    file(GLOB fuzzers CONFIGURE_DEPENDS ${dir}/*_fuzz.cc)
    foreach(source IN LISTS fuzzers)
      get_filename_component(fuzz ${source} NAME_WE)
      if(GRIDLESS_FUZZ)
        add_executable(${fuzz} ${source})
        target_compile_options(${fuzz} PRIVATE -fsanitize=fuzzer)
        target_link_options(${fuzz} PRIVATE -fsanitize=fuzzer)
      else()
        add_executable(${fuzz} ${source} ${PROJECT_SOURCE_DIR}/tests/fuzz_replay.cc)
        add_dependencies(unit_tests ${fuzz})
        add_test(NAME fuzz.${fuzz} COMMAND ${fuzz} ${PROJECT_SOURCE_DIR}/tests/data/fuzz/${fuzz})
        set_tests_properties(fuzz.${fuzz} PROPERTIES LABELS unit TIMEOUT 300)
      endif()
      target_link_libraries(${fuzz} PRIVATE gridless_decode gridless_tpu)
    endforeach()
  endforeach()
endfunction()

# bench/*_bench.cc: one program each, never part of ctest's default label. bench/cpu_decode is a
# script with one program of ours; the other engine's is built by the script.
function(gridless_bench)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*_bench.cc)
  foreach(source IN LISTS sources ITEMS ${PROJECT_SOURCE_DIR}/bench/cpu_decode/gridless_loop.cc)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE gridless_decode gridless_tpu gridless_time)
    if(TARGET gridless_gallery)
      target_link_libraries(${name} PRIVATE gridless_gallery)
    endif()
  endforeach()
endfunction()
