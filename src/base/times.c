// Sums of seconds by activity: see times.h.

#include "base/times.h"

#include "base/json.h"

#include <time.h>

static const struct {
    const char *name;
    const char *meaning;
} activities[KG_ACTIVITY_COUNT] = {
    [KG_ACTIVITY_OPEN] = {"open", "devices asked what they are"},
    [KG_ACTIVITY_REFERENCE] = {"reference", "inputs and results the gates judge by"},
    [KG_ACTIVITY_COMPILE] = {"compile", "kernels, in parallel"},
    [KG_ACTIVITY_PREPARE] = {"prepare", "processes that run kernels, and their tensors"},
    [KG_ACTIVITY_LOAD] = {"load", "kernels into them"},
    [KG_ACTIVITY_JUDGE] = {"judge", "kernels in the accuracy gate"},
    [KG_ACTIVITY_CHECK] = {"check", "outputs and inputs before and after timing"},
    [KG_ACTIVITY_MEASURE] = {"measure", "kernels timed one by one"},
    [KG_ACTIVITY_RACE] = {"race", "kernels timed alternately"},
};

double kg_times_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void kg_times_add(struct kg_times *times, enum kg_activity activity, double wall, double work)
{
    if (!times)
        return;
    times->of[activity].wall += wall;
    times->of[activity].work += work;
    times->of[activity].count++;
}

void kg_times_since(struct kg_times *times, enum kg_activity activity, double start)
{
    double seconds = kg_times_now() - start;
    kg_times_add(times, activity, seconds, seconds);
}

void kg_times_merge(struct kg_times *times, const struct kg_times *more)
{
    for (int i = 0; times && i < KG_ACTIVITY_COUNT; i++) {
        times->of[i].wall += more->of[i].wall;
        times->of[i].work += more->of[i].work;
        times->of[i].count += more->of[i].count;
    }
}

static void add_row(const char *name, const struct kg_time *time, const char *meaning, bool json,
                    struct kg_json *object)
{
    if (!json) {
        kg_text_format(object->text, "%-10s %8.3f s %8.3f s %5d  %s\n", name, time->wall,
                       time->work, time->count, meaning);
        return;
    }
    kg_json_begin_object(object, name);
    kg_json_number(object, "wall", time->wall);
    kg_json_number(object, "work", time->work);
    kg_json_integer(object, "count", time->count);
    kg_json_end_object(object);
}

void kg_times_print(const struct kg_times *times, bool json, struct kg_text *text)
{
    struct kg_json object = {.text = text};
    struct kg_time all = {.wall = kg_times_now() - times->began}, other = all;
    if (json)
        kg_json_begin_object(&object, NULL);
    else
        kg_text_format(text, "%-10s %10s %10s %5s\n", "time", "waited", "worked", "count");
    for (int i = 0; i < KG_ACTIVITY_COUNT; i++) {
        const struct kg_time *time = &times->of[i];
        all.work += time->work;
        other.wall -= time->wall;
        if (time->count > 0)
            add_row(activities[i].name, time, activities[i].meaning, json, &object);
    }
    other.wall = other.work = other.wall > 0 ? other.wall : 0;
    all.work += other.work;
    add_row("other", &other, "everything else", json, &object);
    add_row("all", &all, "since the start", json, &object);
    if (json)
        kg_json_end_object(&object);
}
