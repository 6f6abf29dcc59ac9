// Rows of the table of lessons. Only src/store includes this.

#ifndef KG_STORE_LESSONS_H
#define KG_STORE_LESSONS_H

#include "store/database.h"
#include "store/patterns.h"

// Texts are borrowed.
struct kg_lesson {
    const char *problem; // a hash of its key
    const char *op, *class, *dtype, *bucket, *isa, *date;
    enum kg_pattern_subject subject;
    const char *family, *parameter;
    int64_t value;
    int tried, failed;
    bool competed; // there is a time with it and one without it
    double ratio;  // logarithm of the one over the other
    bool fitted;   // families expected the times,
    double effect; // and this is the logarithm of what it adds to them
};

// Inside a transaction; replaces the lesson of this problem and subject.
enum kg_status kg_store_add_lesson(struct kg_store *store, const struct kg_lesson *lesson,
                                   struct kg_error *error);
// The next row of KG_SQL_EACH_LESSON; texts are borrowed until the next step.
bool kg_store_next_lesson(struct kg_query *query, struct kg_lesson *lesson);
// Makes the lessons of all problems that have new outcomes.
enum kg_status kg_store_mine(struct kg_store *store, struct kg_error *error);

#endif
