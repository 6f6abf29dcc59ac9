# kg_embed(OUTPUT HEADER ROW TABLE ROOT FILES...): one C file that defines TABLE, an array of struct ROW
# as HEADER declares it, with the name below ROOT and the text of every file, so that the program needs
# no files beside it.
function(kg_embed output header row table root)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${header} -DROW=${row} -DTABLE=${table}
            -DROOT=${root} "-DFILES=${ARGN}" -P ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${ARGN} ${CMAKE_SOURCE_DIR}/cmake/embed_script.cmake
    COMMENT "Embedding ${root}"
    VERBATIM)
endfunction()
